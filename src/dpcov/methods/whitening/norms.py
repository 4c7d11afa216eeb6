"""Fine bins around the bulk: where to clip, and what clipping takes away."""

from __future__ import annotations

import math

import numpy as np

from dpcov.arrays import Vector
from dpcov.core import LogNormGrid, NoisyCounts
from dpcov.methods.whitening.looks import occupied_bins

_FINE_HALVES = 4
# Beyond that many doublings of a typical norm, and of what was seen, bins are wide: rows that lie thinly over
# a long way out would hide in the noise of many narrow ones.
_FINE_DOUBLINGS = 3
# From one bin to the next a normal tail of many columns falls by a factor of 20 or so, a cliff by more.
_STEEP = 64.0
_NEAR = 1.5
_CLEAR = 2.5


def fine_grid(typical: float, n_rows: int, far: float = 0.0) -> LogNormGrid:
    """Bins around a typical norm, up to norms that ten rows could share in a white table, or beyond `far`."""
    centre = math.floor(math.log2(typical))
    above = math.ceil(math.log2(math.sqrt(max(n_rows / 10, 1)))) + 2
    fine = max(centre + _FINE_DOUBLINGS, math.ceil(math.log2(far)) if far else centre)
    highest = max(centre + above, fine + 1)
    return LogNormGrid(lowest=centre - 4, highest=highest, halves=_FINE_HALVES, doublings=highest - fine)


class FineNorms:
    """A fine histogram of norms around the typical one.

    Parameters
    ----------
    answer : NoisyCounts
        On a `fine_grid`.
    n_rows : int
        Rows of the whole table, of which the answer may have read a part. Numbers of rows
        below refer to the whole table.
    seen : float, default 0
        Up to here rows were seen before: fewer of them are enough to be taken for rows again.
    """

    def __init__(self, answer: NoisyCounts, n_rows: int, seen: float = 0.0) -> None:
        edges = answer.grid.edges()
        self._counts = answer.counts.astype(np.float64)
        self._sigma = math.sqrt(float(answer.variance))
        self._n_rows = answer.n_rows
        self._part = answer.n_rows / n_rows
        self._low = np.concatenate([[edges[0] / 2], edges])
        self._high = np.concatenate([edges, [edges[-1] * 2]])
        self._middle = np.sqrt(self._low * self._high)
        # As many bins as there are from r to sqrt 2 r.
        self._window = answer.grid.halves
        sums = np.concatenate([[0.0], np.cumsum(self._counts)])
        places = np.arange(len(self._counts))
        # Where bins are wide, one of them is a window.
        ends = np.searchsorted(self._high, 1.001 * math.sqrt(2) * self._low, side="right").clip(places + 1)
        self._windows = sums[ends] - sums[:-1]
        self._window_sigmas = self._sigma * np.sqrt(ends - places)
        self._mode = int(np.argmax(self._windows[1 : -self._window])) + 1
        self._last_near = max(
            self._mode + 4 * self._window, int(np.searchsorted(self._high, seen)) + self._window
        )

    @property
    def n_rows(self) -> int:
        """Rows that were read."""
        return self._n_rows

    @property
    def part(self) -> float:
        """The share of the table's rows that were read."""
        return self._part

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of a count."""
        return self._sigma

    @property
    def window_sigma(self) -> float:
        """Standard deviation of the noise of a window of narrow bins, from r to sqrt 2 r."""
        return self._sigma * math.sqrt(self._window)

    def beyond(self, share: float, radius: float) -> tuple[Vector, Vector, Vector]:
        """Return lower edges, upper edges and counts of the bins beyond the last `share` of the rows.

        The first of them lies below `radius`, whatever the share.
        """
        before = np.cumsum(self._counts[:-1])
        first = int(np.argmax(before >= (1 - share) * self._n_rows)) or len(before) - 1
        first = max(min(first, int(np.searchsorted(self._low, radius)) - 2), 1)
        return self._low[first:-1], self._high[first:-1], self._counts[first:-1]

    def radius(self, rows_beyond: float, *, ignore_beyond: float = 0.0, within: float = math.inf) -> float:
        """Return a radius that at most about `rows_beyond` rows exceed; it reaches the furthest seen.

        The number of rows beyond r is judged by the window (r, sqrt 2 r), which keeps the noise of far
        empty bins out. It begins where the furthest window of bins does that clearly has rows.

        Parameters
        ----------
        rows_beyond : float
            How many rows to clip at most; not less than the histogram can tell from noise.
        ignore_beyond : float, default 0
            Far bumps of up to this many rows together are left outside.
        within : float, optional
            Rows beyond this are left outside, however many.
        """
        # One step too far is a twelfth of the radius in narrow bins, and doubles it in wide ones.
        sure = np.where(self._high > 1.5 * self._low, _CLEAR, _NEAR)
        enough = np.maximum(rows_beyond * self._part, sure * self._window_sigmas)
        last = min(int(np.searchsorted(self._high, within, side="right")), len(self._counts) - 1)
        start = self._mode
        for far in self._occupied():
            if start < far < last and (
                not ignore_beyond or self._rows_from(far) > ignore_beyond * self._part
            ):
                start = far
        i = start
        while i < last and self._windows[i] >= enough[i]:
            i += 1
        if i == self._mode:
            return float(self._high[i])
        wanted = float(enough[i])
        before = max(self._windows[i - 1], wanted)
        after = max(min(self._windows[i], wanted), 1e-3 * wanted)
        # Between two edges the count falls about exponentially; where it falls off a cliff, all
        # rows of the bin may lie anywhere in it, so its upper edge is the safe choice.
        steep = before > _STEEP * after
        part = 1.0 if steep else math.log(before / wanted) / max(math.log(before / after), 1e-9)
        # Never before the furthest window that clearly has rows.
        furthest = float(self._low[start]) if start > self._mode else 0.0
        return max(float(self._low[i - 1] * (self._low[i] / self._low[i - 1]) ** part), furthest)

    def ends_at(self, radius: float) -> bool:
        """Whether rows end there as at a cliff: next to none lie between it and sqrt 2 times as far."""
        inside = (self._low >= 0.999 * radius / math.sqrt(2)) & (self._high <= 1.001 * radius)
        beyond = (self._low >= 0.999 * radius) & (self._high <= 1.001 * math.sqrt(2) * radius)
        at_most = max(float(self._counts[beyond].sum()), 0.0) + _CLEAR * self.window_sigma
        return float(self._counts[inside].sum()) > _STEEP * at_most

    def lost_inside(self, places: Vector, radius: float) -> Vector:
        """Return what clipping at each of `places` takes from the squares of the rows within `radius`.

        Rows are taken to lie anywhere in their bin: all at its middle, clipping a little beyond the middle of
        a full one would seem to cost nothing.
        """
        inside = self._middle < radius
        low, high = self._low[inside], np.minimum(self._high[inside], radius)
        # The mean of max(r^2 - p^2, 0) over r between two edges: the integral from p on, if p lies between.
        at = np.clip(places[:, None], low, high)
        squares = (high**3 - at**3) / 3 - places[:, None] ** 2 * (high - at)
        result: Vector = squares @ (self._counts[inside] / (high - low)) / self._part
        return result

    def look_radius(self, rows: float) -> float:
        """Return a radius that about `rows` rows exceed, counted from the furthest that are seen."""
        occupied = self._occupied()
        last = max(occupied[-1], self._mode) if occupied else self._mode
        beyond = 0.0
        for place in range(last, self._mode, -1):
            beyond += max(float(self._counts[place]), 0.0) / self._part
            if beyond >= rows:
                return float(self._low[place])
        return float(self._high[self._mode])

    def _occupied(self) -> list[int]:
        widths = tuple(2**k for k in range(self._window.bit_length() + 1))
        near = range(self._mode, min(self._last_near, len(self._counts) - 1))
        return occupied_bins(self._counts[:-1], self._sigma, widths, near)

    def correction(self, radius: float) -> float:
        """Return E|y|^2 / E min(|y|, radius)^2, drawn to 1 where the histogram cannot tell."""
        inside = np.arange(len(self._counts)) > 0
        above = inside & (self._low >= radius * 0.999) & (self._middle < 1.5 * radius)
        gains = self._middle[above] ** 2 - radius**2
        lost = float(self._counts[above] @ gains)
        noise = self._sigma * float(np.linalg.norm(gains))
        if lost <= 0:
            return 1.0
        lost *= max(0.0, 1 - (1.5 * noise / lost) ** 2)
        below = inside & (self._low < radius * 0.999)
        kept = float(self._counts[below] @ self._middle[below] ** 2)
        kept += max(float(self._counts[above].sum()), 0.0) * radius**2
        return 1 + lost / kept if kept > 0 else 1.0

    def dropping_correction(self, radius: float, rows_beyond: float) -> float:
        """Return by what to multiply the mean over all rows once those beyond `radius` are dropped.

        Rows far beyond are outliers: they no longer count. Of the `rows_beyond` rows that the radius was
        chosen by, before it was widened a little, about a sixth lie beyond it and belong to the
        bulk: what they would have added is put back.
        """
        outliers = self._share_beyond(math.sqrt(2) * radius)
        inside = (np.arange(len(self._counts)) > 0) & (self._high <= radius * 1.001)
        kept = float(self._counts[inside] @ self._middle[inside] ** 2)
        near = max(rows_beyond * self._part, _NEAR * self.window_sigma) / 6
        back = near * (1.1 * radius) ** 2 / kept if kept > 0 else 0.0
        return (1 + back) / max(1 - outliers, 0.5)

    def _rows_from(self, first: int) -> float:
        """Return how many rows lie from a bin on, at least: windows that are clearly no noise, less some."""
        windows = np.add.reduceat(self._counts, range(first, len(self._counts), self._window))
        clear = windows > _CLEAR * self.window_sigma
        return float(windows[clear].sum()) - _CLEAR * self.window_sigma * math.sqrt(int(clear.sum()))

    def _share_beyond(self, radius: float) -> float:
        counts = self._counts[self._low >= radius * 0.999]
        # Only windows that are clearly no noise: many empty bins would add up to a large error.
        beyond = float(counts[-1]) if len(counts) else 0.0
        for first in range(0, len(counts) - 1, self._window):
            window = counts[first : min(first + self._window, len(counts) - 1)]
            if window.sum() > _CLEAR * self._sigma * math.sqrt(len(window)):
                beyond += float(window.sum())
        return min(max(beyond / self._n_rows, 0.0), 1.0)
