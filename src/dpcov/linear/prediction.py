"""How well the coefficients of a release would predict on the raw rows, by the law of the noise.

Columns are brought to variance 1. Write C for the covariance of the predictors and t for theirs with the
target in the raw rows, ``C + E`` and ``t + e`` for what was released, ``b = C^-1 t`` for the coefficients of
the raw rows. A penalty g on squared coefficients gives

    b~ = A (t + e),   A = (C + E + g I)^-1,

and b~ leaves ``1 - r(b~)`` of the target's variance unexplained on the raw rows, with
``r(b~) = 2 b~^T t - b~^T C b~``: their R squared, up to the error of the intercept. The release knows
``2 b~^T (t + e) - b~^T (C + E) b~``, which is too large on average, as b~ has followed the noise. To first
order ``b~ = b_g + A (e - E b_g)``, so that the excess is

    E[2 b~^T e - b~^T E b~] = 2 tr(A V),   V = Cov(e - E b_g),

in the way of Mallows' C_p and Stein's unbiased estimate of risk. The noise of the block of predictors and
target is ``F N F^T`` with a public F. With ``K = F F^T`` and w = (-b~, 1), the coefficients of the residual,

    V_ij = sigma^2 / 2 (w^T K w K_ij + (K w)_i (K w)_j).

All of it is post-processing of the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcov.arrays import Array
from dpcov.laws import NoiseLaw, noise_norm, rarely_exceeded
from dpcov.linear.questions import Questions

_ZERO = 1e-12
"""A combination of columns of variance 1 that varies less is zero: rounding of the matrix leaves as much."""

_PENALTIES = np.geomspace(1e-6, 1e3, 91)
"""Which penalties ``ridge="auto"`` looks at: ten a decade, in units of a column's variance.

Below 1e-6 a penalty changes no answer, above 1e3 nothing is left of one. Between two neighbours, 26% apart,
the expected error is flat to second order.
"""


@dataclass(frozen=True)
class Outlook:
    """What to expect of coefficients on the raw rows, as shares of the target's variance.

    Attributes
    ----------
    explained : float
        What they explain according to the release.
    followed : float
        What noise they followed: `explained` is too large by twice this, on average.
    misled : float
        What they lose at most to it, if every direction varies as much as noise and clipped rows may hide.
    intercept : float
        What the error of the intercept costs, on average.
    """

    explained: float
    followed: float
    misled: float
    intercept: float

    @property
    def r_squared(self) -> float:
        """Their R squared on the raw rows, where noise and clipped rows are as harmful as they may be."""
        return self.explained - self.followed - self.misled - self.intercept


class Prediction:
    """The regression of one column of a release on others, under any penalty.

    Parameters
    ----------
    questions : Questions
        The release.
    noise : NoiseLaw
        The law of its noise.
    chosen : list of int
        The places of the predictors.
    goal : int
        The place of the target.
    """

    def __init__(self, questions: Questions, noise: NoiseLaw, chosen: list[int], goal: int) -> None:
        block, size = [*chosen, goal], len(chosen)
        covariance, factor = questions.centred
        part, forms = covariance[np.ix_(block, block)], factor[block]
        spread = np.sqrt(np.diag(part))
        # A column without any released variance has slope 0: its unit does not matter.
        spread = np.where(spread > 0, spread, np.linalg.norm(forms, axis=1))
        relative, forms = part / np.outer(spread, spread), forms / spread[:, None]
        self._noise = noise
        self._gram = forms @ forms.T
        self._with_target = relative[:size, size]
        values, self._vectors = np.linalg.eigh(relative[:size, :size])
        self._values = np.maximum(values, 0.0)
        self._least = float(self._values[0])
        self._constant = np.zeros(size + 1), 0.0
        if questions.has_constant:
            last = questions.constant_factor
            self._constant = forms @ last, float(last @ last)

    @cached_property
    def best_ridge(self) -> float:
        """The penalty of least expected error on the raw rows; infinite if no other beats the mean."""
        expected = [self.expected_r_squared(float(penalty)) for penalty in (0.0, *_PENALTIES)]
        best = int(np.argmax(expected))
        return float([0.0, *_PENALTIES][best]) if expected[best] > 0 else math.inf

    @property
    def beats_the_mean(self) -> bool:
        """Whether under the best penalty predictions are better than the mean at the worst."""
        return math.isfinite(self.best_ridge) and self.outlook(self.best_ridge).r_squared > 0

    def outlook(self, ridge: float) -> Outlook:
        """Return what to expect of the coefficients under a penalty."""
        slopes, inverse = self._solve(ridge)
        size, sigma = len(slopes), self._noise.sigma
        noise, residual, spread = self._noise_of(slopes)
        unseen = rarely_exceeded(size) * noise_norm(size, sigma) + self._noise.hidden
        widened = self._predictors + unseen * self._gram[:size, :size]
        with_constant, constant = self._constant
        intercept = sigma**2 / 2 * (spread * constant + float(residual @ with_constant) ** 2)
        return Outlook(
            explained=self._explained(slopes),
            followed=float(np.vdot(inverse, noise)),
            # The slope along a direction without any released variance may be anything.
            misled=float(np.vdot(inverse @ widened @ inverse, noise))
            if self._least + ridge > _ZERO
            else math.inf,
            intercept=intercept,
        )

    @cached_property
    def _predictors(self) -> Array:
        return np.asarray((self._vectors * self._values) @ self._vectors.T)

    def expected_r_squared(self, ridge: float) -> float:
        """Return the expected R squared on the raw rows under a penalty, up to the intercept's part."""
        slopes, inverse = self._solve(ridge)
        return self._explained(slopes) - 2 * float(np.vdot(inverse, self._noise_of(slopes)[0]))

    def _solve(self, ridge: float) -> tuple[Array, Array]:
        penalised = self._values + ridge
        # As in a pseudo-inverse: a direction that is zero up to rounding has slope 0.
        inverse = np.divide(1.0, penalised, out=np.zeros_like(penalised), where=penalised > _ZERO)
        matrix = (self._vectors * inverse) @ self._vectors.T
        return matrix @ self._with_target, matrix

    def _explained(self, slopes: Array) -> float:
        return float(2 * slopes @ self._with_target - slopes @ self._predictors @ slopes)

    def _noise_of(self, slopes: Array) -> tuple[Array, Array, float]:
        """Return V, the residual's coefficients w, and ``w^T K w``."""
        size = len(slopes)
        residual = np.append(-slopes, 1.0)
        mapped = self._gram @ residual
        spread = float(residual @ mapped)
        own = self._gram[:size, :size]
        covariance = self._noise.sigma**2 / 2 * (spread * own + np.outer(mapped[:size], mapped[:size]))
        return covariance, residual, spread
