"""Heavy directions: those in which more of the far rows lie than in others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix, Vector
from dpcov.core import Gram, NoisyGram, Rule
from dpcov.laws import noise_norm, rarely_exceeded
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.align import align
from dpcov.methods.whitening.frames import in_frame
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White

_MOST_LOOKED_AT = 0.1


@dataclass(frozen=True, eq=False)
class HeavyDirection:
    """A direction in which many of the far rows lie.

    Attributes
    ----------
    vector : ndarray, shape (d,)
        A unit vector in white coordinates; no row's constant depends on it.
    tilt : float
        How far it is off, about: the sine of an angle.
    share : float
        The part of the far rows that lie along it.
    """

    vector: Vector
    tilt: float
    share: float


@dataclass(frozen=True)
class Agreement:
    """How much the rows beyond the bulk lie along one direction.

    Attributes
    ----------
    about, at_most : float
        The share of them that does.
    rows : float
        How many rows beyond the bulk were looked at; infinite if none were.
    """

    about: float = 1.0
    at_most: float = 1.0
    rows: float = math.inf

    def expected(self, rank: int) -> float:
        """Return the share along one of `rank` directions: between all and an even one if unknown."""
        return self.about if math.isfinite(self.rows) else 1 / math.sqrt(rank)

    def along_one(self, beyond: float) -> float:
        """Return how many of so many rows beyond a region lie along one direction at most.

        They are among the rows that were looked at, and may all be of the few that agree: what bounds them is
        the number of those. More rows than were looked at are taken to agree as much.
        """
        return min(beyond, self.at_most * max(self.rows, beyond))


@dataclass(frozen=True)
class FarRows:
    """A look at the directions of the rows a little beyond the bulk.

    Attributes
    ----------
    share : float
        What it costs, of the budget.
    rows : float
        How many it aims at.
    """

    share: float
    rows: float

    @classmethod
    def worth_a_look(cls, run: Run, white: White) -> FarRows | None:
        """Return what to ask; None if the rows are too few to tell directions apart, or these not white."""
        own = run.d - run.curator.has_constant
        share = min(c.TAIL_SHARE, run.left / 4)
        rows = c.ROWS_LOOKED_AT * noise_norm(own, 1 / math.sqrt(share * run.rho))
        # Tails are compared between white directions; coordinates that were not looked for are not white.
        compared = white.is_white and not run.has_few_rows and not run.contamination
        return cls(share, rows) if compared and own >= 2 and rows <= _MOST_LOOKED_AT * run.n else None

    def query(self, run: Run, white: White, radius: float) -> Gram:
        """Return the query for the directions of the rows beyond a radius."""
        return run.gram_query(white.rows, radius, self.share, "directions of the tail", rule=Rule.TAIL)


def find_heavy(run: Run, white: White, far_rows: NoisyGram) -> tuple[tuple[HeavyDirection, ...], Agreement]:
    """Return the directions that stand out among those of the rows beyond the bulk, and how much these agree.

    If all directions are alike, none does. Of fewer rows than the norm of the noise, nothing is known.
    """
    basis = _own_basis(run, white.rows)
    own, in_rows = basis.shape[1], run.n / far_rows.radius**2
    noise = noise_norm(own, far_rows.sigma * in_rows)
    _, outer = in_frame(far_rows, white.rows)
    rows = float(np.trace(outer)) * in_rows
    if rows < noise:
        return (), Agreement()
    # In rows: each counts with the square of the part of it that lies along a direction.
    counts = basis.T @ outer @ basis * in_rows
    values, vectors = np.linalg.eigh(counts)
    # Half of the directions or more are taken to be ordinary. Their eigenvalues are the lower half, which
    # noise alone, of a semicircle law, puts 4 / (3 pi) of its norm below their mean.
    half = values[: own - own // 2]
    ordinary = max(float(half.mean()) + 4 / (3 * math.pi) * noise, 0.0)
    # 19 of 20 times, noise and chance together bring no ordinary direction beyond this.
    least = rarely_exceeded(own) * noise + 2 * math.sqrt(ordinary)
    agreement = _agreement(float(values[-1]), noise, own, rows)
    found = vectors[:, values - ordinary > least][:, ::-1]
    columns = basis.T @ white.rows[:, : run.d - run.constant]
    excess = counts - ordinary * np.eye(own)
    vectors = align(found, columns, excess, noise)
    strengths = np.maximum(np.einsum("ji,jk,ki->i", vectors, excess, vectors), least)
    heavy = tuple(
        HeavyDirection(basis @ vector, noise / (2 * strength), min(strength / rows, 1.0))
        for vector, strength in zip(vectors.T, strengths.tolist(), strict=True)
    )
    return heavy, agreement


def _agreement(largest: float, noise: float, n_directions: int, rows: float) -> Agreement:
    """Return how much rows agree whose Gram matrix, in rows, has this largest eigenvalue with noise.

    Noise lifts an eigenvalue t that stands out to ``t + noise^2 / (4 t)`` (Benaych-Georges and Nadakuditi
    2011), which is undone; below what noise alone shows, rows are taken to lie evenly.
    """
    rarely = rarely_exceeded(n_directions) * noise
    about = (largest + math.sqrt(largest**2 - noise**2)) / 2 if largest > rarely else 0.0
    even = 1 / n_directions
    at_most = min(max((largest + rarely) / rows, even), 1.0)
    return Agreement(min(max(about / rows, even), 1.0), at_most, rows)


def _own_basis(run: Run, rows: Matrix) -> Matrix:
    """Return an orthonormal basis of the coordinates on which no row's constant depends."""
    if not run.curator.has_constant:
        return np.eye(run.d)
    constant = np.linalg.inv(rows)[-1]
    return np.asarray(np.linalg.qr(constant[:, None], mode="complete").Q[:, 1:])
