"""What a noisy histogram of the rows' norms tells: where to clip, and what clipping takes away."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcov.core import LogNormGrid, NoisyCounts
from dpcov.methods.whitening.directions import LARGEST_GAIN_RATIO

Vector = NDArray[np.float64]

_COARSE_HALVES = 1
_FINE_HALVES = 8
_FINE_WINDOW = 8
_NEAR = 1.5
_FAR = 5.5
_CLEAR = 2.5
_BUMP = 5.0


def coarse_grid() -> LogNormGrid:
    """Bins for norms from 1e-132 to 1e132: with room to spare, those whose squares float64 holds."""
    return LogNormGrid(lowest=-440, highest=440, halves=_COARSE_HALVES)


def fine_grid(typical: float, n_rows: int) -> LogNormGrid:
    """Bins around a typical norm, up to norms that ten rows could share in a white table."""
    centre = math.floor(math.log2(typical))
    above = math.ceil(math.log2(math.sqrt(max(n_rows / 10, 1)))) + 2
    return LogNormGrid(lowest=centre - 4, highest=centre + above, halves=_FINE_HALVES)


@dataclass(frozen=True)
class Scale:
    """A coarse look at the norms.

    Attributes
    ----------
    typical : float
        Where most rows are.
    excess : float
        How many times more second moment a far bump of rows has than the typical rows together. In a
        white table it cannot be much above 1; more tells that a direction was amplified too far.
    """

    typical: float
    excess: float


def find_scale(answer: NoisyCounts) -> Scale | None:
    """Find the typical norm in a histogram over all norms; None if all of it may be noise."""
    counts = answer.counts.astype(np.float64)
    counts[[0, -1]] = 0.0
    edges = answer.grid.edges()
    smooth = np.convolve(counts, np.ones(5), "same")
    mode = int(np.argmax(smooth[1:-1])) + 1
    if smooth[mode] < _BUMP * math.sqrt(5 * float(answer.variance)):
        return None
    typical = math.sqrt(edges[mode - 1] * edges[mode])
    pairs = counts[:-1] + counts[1:]
    significant = pairs > _BUMP * math.sqrt(2 * float(answer.variance))
    # No further out than amplifying a direction can take a row: a spurious bin there would ruin all.
    within_reach = (np.arange(len(pairs)) > mode + 2) & (edges[: len(pairs)] < LARGEST_GAIN_RATIO * typical)
    far = np.flatnonzero(significant & within_reach)
    excess = max((pairs[i] / answer.n_rows * (edges[i] / typical) ** 2 for i in far), default=0.0)
    return Scale(typical, float(excess))


class NormHistogram:
    """A fine histogram of norms around the typical one.

    Parameters
    ----------
    answer : NoisyCounts
        On a grid of `fine_grid`.
    n_rows : int
        Rows of the whole table, of which the answer may have read a part. Numbers of rows
        below refer to the whole table.
    """

    def __init__(self, answer: NoisyCounts, n_rows: int) -> None:
        edges = answer.grid.edges()
        self._counts = answer.counts.astype(np.float64)
        self._sigma = math.sqrt(float(answer.variance))
        self._n_rows = answer.n_rows
        self._part = answer.n_rows / n_rows
        self._low = np.concatenate([[edges[0] / 2], edges])
        self._high = np.concatenate([edges, [edges[-1] * 2]])
        self._middle = np.sqrt(self._low * self._high)
        sums = np.concatenate([[0.0], np.cumsum(self._counts)])
        ends = np.minimum(np.arange(len(self._counts)) + _FINE_WINDOW, len(self._counts))
        self._windows = sums[ends] - sums[:-1]
        self._mode = int(np.argmax(self._windows[1:-_FINE_WINDOW])) + 1

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
        """Standard deviation of the noise of a window of bins, from r to sqrt 2 r."""
        return self._sigma * math.sqrt(_FINE_WINDOW)

    def beyond(self, share: float, radius: float) -> tuple[Vector, Vector, Vector]:
        """Return lower edges, upper edges and counts of the bins beyond the last `share` of the rows.

        The first of them lies below `radius`, whatever the share.
        """
        before = np.cumsum(self._counts[:-1])
        first = int(np.argmax(before >= (1 - share) * self._n_rows)) or len(before) - 1
        first = max(min(first, int(np.searchsorted(self._low, radius)) - 2), 1)
        return self._low[first:-1], self._high[first:-1], self._counts[first:-1]

    def radius(self, rows_beyond: float, *, ignore_beyond: float = 0.0) -> float:
        """Return a radius that about `rows_beyond` rows exceed.

        The number of rows beyond r is judged by the window (r, sqrt 2 r), which keeps the noise of far
        empty bins out. Bumps further out count if they are clearly no noise.

        Parameters
        ----------
        rows_beyond : float
            How many rows to clip; at least what the histogram can tell from noise.
        ignore_beyond : float, default 0
            Far bumps of up to this many rows together are left outside.
        """
        wanted = max(rows_beyond * self._part, _NEAR * self.window_sigma)
        start = self._mode
        for far in np.flatnonzero(self._windows >= max(wanted, _FAR * self.window_sigma)):
            if far > start and self._rows_from(int(far)) > ignore_beyond * self._part:
                start = int(far)
        i = start
        while i < len(self._counts) - 1 and self._windows[i] >= wanted:
            i += 1
        if i == self._mode:
            return float(self._high[i])
        before = max(self._windows[i - 1], wanted)
        after = max(min(self._windows[i], wanted), 1e-3 * wanted)
        # Between two edges the count falls about exponentially; where it falls off a cliff, all
        # rows of the bin may lie anywhere in it, so its upper edge is the safe choice.
        steep = before > 8 * after
        part = 1.0 if steep else math.log(before / wanted) / max(math.log(before / after), 1e-9)
        return float(self._low[i - 1] * (self._low[i] / self._low[i - 1]) ** part)

    def excess(self, typical: float) -> float:
        """Return how many times more second moment some far rows have than the typical ones."""
        significant = self._windows >= _FAR * self.window_sigma
        far = significant & (self._low > 2 * typical)
        shares = self._windows[far] / self._n_rows * (self._low[far] / typical) ** 2
        return float(shares.max(initial=0.0))

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
        windows = np.add.reduceat(self._counts, range(first, len(self._counts), _FINE_WINDOW))
        clear = windows > _CLEAR * self.window_sigma
        return float(windows[clear].sum()) - _CLEAR * self.window_sigma * math.sqrt(int(clear.sum()))

    def _share_beyond(self, radius: float) -> float:
        counts = self._counts[self._low >= radius * 0.999]
        # Only windows that are clearly no noise: many empty bins would add up to a large error.
        beyond = float(counts[-1]) if len(counts) else 0.0
        for first in range(0, len(counts) - 1, _FINE_WINDOW):
            window = counts[first : min(first + _FINE_WINDOW, len(counts) - 1)]
            if window.sum() > _CLEAR * self._sigma * math.sqrt(len(window)):
                beyond += float(window.sum())
        return min(max(beyond / self._n_rows, 0.0), 1.0)
