"""Means: what clipping takes from them is measured with the release itself, and given back.

A long row that is shrunk by s adds ``s^2`` of its product with the constant. The rows of a skewed column, as
one of incomes, are long on one side only, so their losses do not cancel: in a table of 5,000 people they came
to twice what the interval of the mean income allowed for. The last query adds these losses up at no cost
(``queries/clipped.md``), in full for rows of up to `reach` radii. A longer reach leaves less of the losses out, and
measures them with more noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.laws import FAR, loss_strength
from dpcov.methods.whitening.queries.clipped import NoisyClippedGram
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.tail import lost_length
from dpcov.methods.whitening.wrap import Region

_REACHES = np.geomspace(FAR, 8.0, 16)


@dataclass(frozen=True, eq=False)
class Losses:
    """What clipping took from the means of rows times their constant, as it was measured.

    Attributes
    ----------
    lost : ndarray, shape (d,)
        In the table's columns; the last entry is that of the constant itself.
    spread : float
        Standard deviation of the noise in each of the coordinates that were clipped.
    """

    lost: Vector
    spread: float

    @classmethod
    def of(cls, answer: NoisyClippedGram) -> Losses | None:
        """Take what came with a Gram matrix; None if it was not asked."""
        if answer.lost is None:
            return None
        columns = np.linalg.solve(answer.gram.lattice_map.matrix(), answer.lost)
        return cls(np.asarray(columns, dtype=np.float64), answer.lost_spread)

    def expected(self, largest: float) -> Losses:
        """Return what was lost, given its noise and how much that can be at all: its mean and deviation.

        The rows beyond are counted, and a loss along one direction has about the size `largest` if all of them
        lie there on one side. Normal laws of that size and of the noise make the mean the measured loss times
        ``largest^2 / (largest^2 + spread^2)``.
        """
        trust = largest**2 / (largest**2 + self.spread**2)
        return Losses(trust * self.lost, math.sqrt(trust) * self.spread)

    def give_back(self, matrix: Matrix) -> Matrix:
        """Return T so that ``T matrix T^T`` has the means that rows had before, and the same covariance.

        Parameters
        ----------
        matrix : ndarray, shape (d, d)
            A second moment; its last column belongs to the constant.
        """
        before = matrix[:, -1]
        after = before + self.lost
        if not (before[-1] > 0 and after[-1] > 0):
            # There is no constant to tell a mean by.
            return np.eye(len(matrix))
        moving = np.eye(len(matrix))
        moving[:-1, -1] = after[:-1] / after[-1] - before[:-1] / before[-1]
        result: Matrix = math.sqrt(after[-1] / before[-1]) * moving
        return result

    def widening(self, constant: Vector, sigma: float) -> Matrix:
        """Return F so that noise N of the matrix and that of what is given back are together ``F N F``.

        In a mean along a unit vector beside the constant, N has the variance ``sigma^2 |e|^2 / 2``, and what is
        given back that of `spread`. Of the constant itself, F N F has more noise than both.

        Parameters
        ----------
        constant : ndarray, shape (d,)
            The form e that tells the constant of a row in the coordinates that were clipped.
        sigma : float
            Standard deviation of N on its diagonal.
        """
        length = float(np.linalg.norm(constant))
        factor = math.sqrt(1 + 2 * (self.spread / (sigma * length)) ** 2)
        result: Matrix = np.eye(len(constant)) + (factor - 1) * np.outer(constant, constant) / length**2
        return result


def best_reach(run: Run, region: Region, radius: float, constant: Vector) -> float:
    """Return the reach with which means are least uncertain: noise, and what is left out beyond.

    That is what the laws of the tails let rows beyond the reach lose, in the median, if as many of them agree
    in direction as seem to, and lie on one side.

    Parameters
    ----------
    run : Run
        The curator.
    region : Region
        Where rows will be clipped.
    radius : float
        How far it reaches in the coordinates of the query.
    constant : ndarray, shape (d,)
        The form that tells the constant of a row in these coordinates.
    """
    rows = 1 / math.sqrt(run.left * run.rho)
    of_matrix = rows * radius * float(np.linalg.norm(constant)) / math.sqrt(2)
    laws = [law for tail in region.tails if (law := tail.law) is not None]

    def uncertainty(reach: float) -> float:
        left_out = region.agreement.about * sum(lost_length(law, reach) for law in laws)
        return math.hypot(of_matrix, rows / loss_strength(reach), left_out)

    return float(min(_REACHES.tolist(), key=uncertainty))
