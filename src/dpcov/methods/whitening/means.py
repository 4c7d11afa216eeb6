"""Means: what clipping takes from them is measured with the release itself, and given back.

A long row that is shrunk by s adds ``s^2`` of its product with the constant. The rows of a skewed column, as
one of incomes, are long on one side only, so their losses do not cancel: in a table of 5,000 people they came
to twice what the interval of the mean income allowed for. The last query adds these losses up at no cost
(``queries/clipped.md``), in full for rows that do not lie far beyond the region.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.methods.whitening.queries.clipped import NoisyClippedGram


@dataclass(frozen=True, eq=False)
class Losses:
    """What clipping took from the means of rows times their constant, as it was measured.

    Attributes
    ----------
    lost : ndarray, shape (d,)
        In the coordinates that were clipped.
    spread : float
        Standard deviation of the noise in each of them.
    """

    lost: Vector
    spread: float

    @classmethod
    def of(cls, answer: NoisyClippedGram, forms: Matrix) -> Losses | None:
        """Take what came with a Gram matrix, in coordinates `forms`; None if it was not asked."""
        if answer.lost is None:
            return None
        lost = forms @ np.linalg.solve(answer.gram.lattice_map.matrix(), answer.lost)
        return cls(np.asarray(lost, dtype=np.float64), answer.lost_spread)

    def expected(self, largest: float, owned: float) -> Losses:
        """Return what was lost, given its noise and how much it can be at all: its mean and deviation.

        The rows beyond are counted, and a loss along one direction has about the size `largest` if all of
        them lie there on one side. Normal laws of that size and of the noise make the mean the measured loss
        times ``largest^2 / (largest^2 + spread^2)``. But rows may also lie on all sides, and lose nothing.
        That is unlikely where they are those of a column, or where the measured loss is longer than noise
        is: the factor of James and Stein is what is not noise of its square.

        Parameters
        ----------
        largest : float
            As above.
        owned : float
            How likely the rows are those of a column.
        """
        noise = len(self.lost) * self.spread**2
        beyond_noise = max(1 - noise / max(float(self.lost @ self.lost), noise), 0.0)
        trust = max(owned, beyond_noise) * largest**2 / (largest**2 + self.spread**2)
        return Losses(trust * self.lost, math.sqrt(trust) * self.spread)

    def give_back(self, matrix: Matrix, inverse: Matrix) -> Matrix:
        """Return T so that ``T matrix T^T`` has the means that rows had before, and the same covariance.

        The constant stays as it is, too: how much of it is lost, the law of the tail tells with less noise.

        Parameters
        ----------
        matrix : ndarray, shape (d, d)
            A second moment; its last column belongs to the constant.
        inverse : ndarray, shape (d, d)
            From clipped coordinates to the table's columns.
        """
        moving = np.eye(len(matrix))
        before = matrix[:, -1]
        after = before + inverse @ self.lost
        # Without a constant there is nothing to tell a mean by.
        if before[-1] > 0 and after[-1] > 0:
            moving[:-1, -1] = (after / after[-1] - before / before[-1])[:-1]
        return moving

    def widening(self, constant: Vector, sigma: float) -> Matrix:
        """Return F so that noise N of the matrix and that of what is given back are together ``F N F``.

        In a mean along a unit vector beside the constant, N has the variance ``sigma^2 |e|^2 / 2``, and what
        is given back that of `spread`. Of the constant itself, F N F has more noise than there is.

        Parameters
        ----------
        constant : ndarray, shape (d,)
            The form e that tells the constant of a row in the coordinates that were clipped.
        sigma : float
            Standard deviation of N on its diagonal.
        """
        length = float(np.linalg.norm(constant))
        factor = self.widened(constant, sigma)
        result: Matrix = np.eye(len(constant)) + (factor - 1) * np.outer(constant, constant) / length**2
        return result

    def widened(self, constant: Vector, sigma: float) -> float:
        """Return how much more noise a mean has with what is given back, as a factor.

        By its square the law overstates the noise of the constant itself.
        """
        length = float(np.linalg.norm(constant))
        return math.sqrt(1 + 2 * (self.spread / (sigma * length)) ** 2)
