"""What a noisy histogram of norms tells at all scales: how long most rows are, how far the furthest lie."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from dpcov.arrays import Vector
from dpcov.core import LogNormGrid, NoisyCounts
from dpcov.methods.whitening import constants as c

_FURTHEST = 440
_WIDE_HALVES = 2
# Three bins, side by side, have most rows of a table. A 0/1 column has one bin; others span many doublings.
_BULK, _BULK_WIDTHS = 3, (1, 6, 12, 24)
_WIDE_WIDTHS = (1, 2, 4)
# Most tables end within this many doublings beyond their mode. Far bins are more, and tested apart.
_NEAR_DOUBLINGS = 4
_ALMOST_SURE = 3.0


def wide_grid() -> LogNormGrid:
    """Bins for norms from 1e-132 to 1e132: with room to spare, those whose squares float64 holds."""
    return LogNormGrid(lowest=-_FURTHEST, highest=_FURTHEST, halves=_WIDE_HALVES)


def column_grid(*, wide: bool) -> LogNormGrid:
    """Bins for the numbers of one column, which are spread more widely than norms: two a doubling, or one."""
    doublings = 2 * _FURTHEST - 1 if wide else 0
    return LogNormGrid(lowest=-_FURTHEST, highest=_FURTHEST, halves=1, doublings=doublings)


def occupied_bins(counts: Vector, sigma: float, widths: tuple[int, ...], near: range) -> list[int]:
    """Return the bins that begin a window of bins with more rows than noise alone would show.

    Windows of several widths are tested, as rows may lie in one bin or over several. Noise alone passes in
    one of the `near` windows with a probability of at most `FALSE_ALARM`, and in one of all others with at
    most `FAR_FALSE_ALARM`: the threshold is the normal quantile for the number of windows (Bonferroni).
    """
    n_near = len(near) * len(widths)
    n_far = max(len(counts) * len(widths) - n_near, 1)
    is_near = np.zeros(len(counts), dtype=np.bool_)
    is_near[near.start : near.stop] = True
    threshold = np.where(is_near, -ndtri(c.FALSE_ALARM / max(n_near, 1)), -ndtri(c.FAR_FALSE_ALARM / n_far))
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    first = np.arange(len(counts))
    found: set[int] = set()
    for width in widths:
        rows = sums[np.minimum(first + width, len(counts))] - sums[first]
        found.update(np.flatnonzero(rows > threshold * sigma * math.sqrt(width)).tolist())
    return sorted(found)


class NormLook:
    """A look at the norms of all rows, or of a part of them, whatever their scale.

    Parameters
    ----------
    answer : NoisyCounts
        On `wide_grid`, of all rows.
    ignored_rows : float, default 0
        Far rows of up to this many together are outliers, and not looked at.

    Attributes
    ----------
    found : bool
        Whether there is anything but noise.
    typical : float
        Where most rows that are not zero lie.
    far : float
        Beyond this, no rows are seen.
    size : float
        The root mean square of all norms, those beyond `far` left out.
    zero_share : float
        Which part of the norms is zero, up to noise: those of rows with gaps are, too.
    unseen_share : float
        Which part of all rows is not seen, if it lies in one bin and far from the others.
    """

    def __init__(self, answer: NoisyCounts, *, ignored_rows: float = 0.0) -> None:
        self._edges = answer.grid.edges()
        self._near_bins = _NEAR_DOUBLINGS * (1 if answer.grid.doublings else 2 * answer.grid.halves)
        self._sigma, self._n_rows = math.sqrt(float(answer.variance)), answer.n_rows
        # Zero rows say nothing here, and what is beyond the last edge has no length.
        self._counts = answer.counts.astype(np.float64)
        self._counts[[0, -1]] = 0.0
        # Zero rows were counted as well.
        others = answer.n_rows - float(answer.counts[0])
        self.zero_share = 1 - others / answer.n_rows
        self._mode, self.found = self._find_bulk(others, one_bin_a_doubling=answer.grid.doublings > 0)
        threshold = -float(ndtri(c.FAR_FALSE_ALARM / (len(_WIDE_WIDTHS) * len(self._counts))))
        self.unseen_share = min(threshold * self._sigma / answer.n_rows, 1.0)
        self._ignored_rows = ignored_rows
        self._last = self._last_seen(self._sigma)
        self.typical = math.sqrt(self._edges[self._mode - 1] * self._edges[self._mode])
        self.far = float(self._edges[self._last])
        middle = np.sqrt(self._edges[:-1] * self._edges[1:])
        # Bin 0 is open below. Noise may make the sum of squares negative, but not below that of the mode.
        squares = float(np.sum(self._counts[1 : self._last + 1] * middle[: self._last] ** 2))
        least = float(self._counts[self._mode]) * self.typical**2
        self.size = math.sqrt(max(squares, least, self._sigma * self.typical**2) / answer.n_rows)

    def _find_bulk(self, others: float, *, one_bin_a_doubling: bool) -> tuple[int, bool]:
        """Return the bin where most rows lie, and whether they are more than noise.

        Noise alone shows a bulk with a probability of at most `FALSE_ALARM`. Of that, every bin has a part in
        proportion to how usual a scale it is (weighted Bonferroni): of hundreds of doublings noise would
        otherwise choose any, such as 10^40, and a column that was brought to that scale would be lost. A
        doubtful bulk has no more rows than are not zero, up to the noise of its counts and of that of zeros.

        Parameters
        ----------
        others : float
            How many rows are not zero, with noise.
        one_bin_a_doubling : bool
            Whether rows may lie in one bin, or over many.
        """
        widths = (_BULK, *(_BULK_WIDTHS if one_bin_a_doubling else ()))
        middles = np.log2(self._edges[:-1]) / 2 + np.log2(self._edges[1:]) / 2
        usual = 1 / (1 + (middles / c.USUAL_DOUBLINGS) ** 2)
        usual /= usual.sum()
        best = int(np.argmax(np.convolve(self._counts, np.ones(_BULK), "same")[1:-1])) + 1
        for width in widths:
            windows = np.convolve(self._counts[1:-1], np.ones(width), "valid")
            # Of a window, the bin in its middle.
            part = usual[(width - 1) // 2 :][: len(windows)] / len(widths)
            heights = windows / (math.sqrt(width) * self._sigma)
            fits = windows < others + _ALMOST_SURE * math.sqrt(width + 1) * self._sigma
            there = heights > -ndtri(part * np.where(fits, c.FALSE_ALARM, c.FAR_FALSE_ALARM))
            if there.any():
                # The likeliest of them: a normal likelihood, weighed by how usual its scale is.
                likely = np.where(there, heights**2 / 2 + np.log(part), -np.inf)
                first = int(np.argmax(likely)) + 1
                if width == _BULK:
                    return first + 1, True
                return first + int(np.argmax(self._counts[first : first + width])), True
        return best, False

    def far_under(self, sigma: float) -> float:
        """Return how far out these rows would be seen if the noise had another standard deviation."""
        return float(self._edges[self._last_seen(sigma)])

    def radius_exceeded_by(self, share: float) -> float:
        """Return a length that at least this share of the rows exceeds, counted from the furthest seen.

        The lower end of a bin: its rows may all lie in one place, as those of a 0/1 column do.
        """
        beyond = np.cumsum(np.maximum(self._counts[self._last : self._mode : -1], 0.0))
        enough = np.flatnonzero(beyond >= share * self._n_rows)
        last = self._last - int(enough[0]) - 1 if len(enough) else self._mode
        return float(self._edges[last])

    def _last_seen(self, sigma: float) -> int:
        near = range(self._mode, min(self._mode + self._near_bins, len(self._counts) - 1))
        occupied = occupied_bins(self._counts[:-1], sigma, _WIDE_WIDTHS, near)
        ignored_rows = self._ignored_rows
        for last in reversed(occupied):
            if last <= self._mode:
                break
            # The last bins hold a few rows each; those of outliers are many in one place.
            if not ignored_rows or self._rows_between(last, occupied[-1] + _WIDE_WIDTHS[-1]) > ignored_rows:
                return last
        return self._mode

    def _rows_between(self, first: int, last: int) -> float:
        return float(np.maximum(self._counts[first : last + 1], 0.0).sum())
