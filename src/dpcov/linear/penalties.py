"""Which penalty a regression takes, and which of its predictors: those of whose variance enough is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Bools
from dpcov.checks import number
from dpcov.core import ArgumentError, UnresolvedError
from dpcov.laws import NoiseLaw, least_resolved
from dpcov.linear.prediction import Prediction
from dpcov.linear.questions import Questions

AUTO = "auto"
ADVICE = 'leave one of these columns out, or give ridge="auto"'
_ADVICE_FOR_TARGET = "explain another column"

_HIDDEN = 0.5
"""Which part of what rows far beyond the region may have had of a variance it must exceed: below, they may
have had twice what was released of it."""

_PAYING = 0.02
"""What columns that are not resolved must add to R squared to be taken beside others that are.

Two releases each of tables for tuning (those of ``benchmarks/shelf.py`` at epsilon 0.3, 1 and 3, and seeds
21000 to 21119 of ``benchmarks/world.py``) had 189 regressions that depend on it. Where such columns seemed to
add less, in 102, they made R squared on the raw rows better by 0.05 or more in none and worse in five, four
of these by more than 2. Where they seemed to add more, in 87, it was better in 49 and worse in four, by 0.11
at most. What they seemed to add is there the difference of the released R squared; the rule takes off what
noise adds to it.
"""


@dataclass(frozen=True, eq=False)
class Penalty:
    """The penalty, which of the predictors it leaves at 0, and what tells how well it predicts.

    It stands in if none was asked for, and coefficients without one would be noise.
    """

    ridge: float
    left_out: tuple[int, ...] = ()
    prediction: Prediction | None = None
    stands_in: bool = False


def _no_slopes(chosen: list[int]) -> Penalty:
    """Return the penalty that leaves all slopes at 0."""
    return Penalty(math.inf, tuple(range(len(chosen))))


def choose_penalty(questions: Questions, chosen: list[int], goal: int, ridge: float | str | None) -> Penalty:
    """Return the penalty that was asked for, or the best one, or none at first if nothing was asked for.

    Unless a number was, columns whose unit is not known are left out (`_choose_columns`).

    A target may be below the noise. Unless these columns explain it clearly under the best penalty, slopes
    would be made of noise alone.
    """
    noise = questions.noise
    if ridge is None and noise is None:
        ridge = 0.0
    if ridge is not None and ridge != AUTO:
        if isinstance(ridge, str):
            raise ArgumentError(f'ridge must be a number or "auto", got {ridge!r}.')
        given = number(ridge, "ridge", at_least=0)
        return Penalty(given, (), None if noise is None else Prediction(questions, noise, chosen, goal))
    # Says so if nothing was released at all.
    block, factor = questions.centred
    if noise is None:
        raise UnresolvedError('ridge="auto" needs the law of the noise, which this method does not state.')
    kept = _choose_columns(questions, noise, chosen, goal)
    if not kept.any() and ridge is None:
        questions.refuse_unresolved(chosen, "The regression", ADVICE)
    if not kept.any():
        return _no_slopes(chosen)
    prediction = Prediction(questions, noise, [chosen[i] for i in np.flatnonzero(kept)], goal)
    is_noise = block[goal, goal] <= least_resolved(1, noise.sigma) * float(np.square(factor[goal]).sum())
    if is_noise and not prediction.beats_the_mean:
        if ridge is None:
            questions.refuse_unresolved([goal], "The regression", _ADVICE_FOR_TARGET)
        return _no_slopes(chosen)
    best = prediction.best_ridge if ridge == AUTO else 0.0
    left_out = np.arange(len(chosen)) if math.isinf(best) else np.flatnonzero(~kept)
    return Penalty(best, tuple(map(int, left_out)), prediction)


def _choose_columns(questions: Questions, noise: NoiseLaw, chosen: list[int], goal: int) -> Bools:
    """Return which predictors to take, of whose variance enough is known.

    The rows of a rare 0/1 column may have been clipped to a hundredth of their length. A slope in that unit
    would predict a hundred times too much for them. So a column is taken if rows far beyond the region may
    have had at most twice what was released of its variance. If it is not resolved beside others that are, it
    has to add to what these explain. If no column is left, all that stand above the noise are taken, with a
    note.
    """
    block, factor = questions.centred
    sizes, units = np.diag(block)[chosen], np.square(factor[chosen]).sum(axis=1)
    above_noise = least_resolved(1, noise.sigma)
    resolved = sizes > least_resolved(1, noise.sigma, noise.hidden) * units
    likely = sizes > max(above_noise, _HIDDEN * noise.hidden) * units
    if not likely.any():
        return np.asarray(sizes > above_noise * units)

    def promised(taken: Bools) -> float:
        prediction = Prediction(questions, noise, [chosen[i] for i in np.flatnonzero(taken)], goal)
        best = prediction.best_ridge
        return 0.0 if math.isinf(best) else prediction.expected_r_squared(best)

    doubtful = resolved.any() and (likely & ~resolved).any()
    pays = not doubtful or promised(likely) >= promised(resolved) + _PAYING
    return np.asarray(likely if pays else resolved)
