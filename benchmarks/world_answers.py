"""Whether 95% intervals hold the answers of the raw rows: means, variances and regressions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from world_draws import Array, NamedRows
from world_tables import WorldTable

import dpcov

N_REGRESSIONS = 3
MOST_PREDICTORS = 8

# As in `oracle`: of singular values of columns brought to one size, centred here.
_LEAST_SINGULAR_VALUE = 1e-10
# Raw answers are rounded themselves.
_ROUNDING = 1e-9
_ROWS_FOR_AN_ANSWER = 30.0


@dataclass(frozen=True)
class Tally:
    """How many intervals held the raw answer.

    Attributes
    ----------
    asked, held : int
        Answers without a note, and those of them whose interval held the raw answer.
    flagged, flagged_held : int
        The same for answers with a note.
    refused : int
        Questions without an answer, or with an interval that says nothing (R squared between 0 and 1).
    """

    asked: int = 0
    held: int = 0
    flagged: int = 0
    flagged_held: int = 0
    refused: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.asked + other.asked,
            self.held + other.held,
            self.flagged + other.flagged,
            self.flagged_held + other.flagged_held,
            self.refused + other.refused,
        )


@dataclass(frozen=True, eq=False)
class RawRegression:
    """Least squares of one column on others in the complete rows.

    Attributes
    ----------
    target, on : int, tuple of int
        Places of the columns.
    coefficients : ndarray
        One a predictor and the intercept last; NaN if the predictors are collinear.
    r_squared : float
        The share of the target's variance that is explained.
    """

    target: int
    on: tuple[int, ...]
    coefficients: Array
    r_squared: float

    @property
    def singular(self) -> bool:
        """Whether the predictors are collinear, so that a refusal is the right answer."""
        return bool(np.isnan(self.coefficients).any())


@dataclass(frozen=True, eq=False)
class RawAnswers:
    """Means, variances and regressions of the complete rows."""

    means: Array
    variances: Array
    regressions: tuple[RawRegression, ...]


def raw_answers(table: WorldTable) -> RawAnswers:
    """Compute the answers of the raw rows; the regressions are drawn from the table's seed."""
    rows = table.rows[np.isfinite(table.rows).all(axis=1)]
    means, variances = rows.mean(axis=0), rows.var(axis=0)
    rng = np.random.default_rng([table.seed, 17])
    varying = np.flatnonzero(variances > 0)
    regressions = []
    if len(varying) >= 2:
        for _ in range(N_REGRESSIONS):
            count = int(rng.integers(1, min(MOST_PREDICTORS, len(varying) - 1) + 1))
            target, *on = rng.permutation(varying)[: count + 1].tolist()
            regressions.append(fit_raw(rows, target, on))
    return RawAnswers(means, variances, tuple(regressions))


def fit_raw(rows: Array, target: int, on: Sequence[int]) -> RawRegression:
    """Explain one column of complete rows by others.

    Parameters
    ----------
    rows : ndarray
        Without gaps.
    target, on : int, sequence of int
        Places of the columns.
    """
    chosen = list(on)
    predictors, goal = rows[:, chosen], rows[:, target]
    means, scale = predictors.mean(axis=0), predictors.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    white, centred = (predictors - means) / scale, goal - goal.mean()
    triangle = np.asarray(np.linalg.qr(np.column_stack([white, centred]), mode="r"))
    left, singular, right = np.linalg.svd(triangle[: len(chosen), : len(chosen)])
    kept = singular > _LEAST_SINGULAR_VALUE * max(float(singular[0]), math.sqrt(len(rows)))
    explained = left[:, kept].T @ triangle[: len(chosen), -1]
    share = float(np.square(explained).sum() / np.square(triangle[:, -1]).sum())
    slopes = right[kept].T @ (explained / singular[kept]) / scale
    coefficients = np.append(slopes, goal.mean() - slopes @ means)
    return RawRegression(
        target, tuple(chosen), coefficients if kept.all() else np.full(len(chosen) + 1, math.nan), share
    )


def under_penalty(rows: Array, regression: RawRegression, fit: dpcov.Regression) -> RawRegression:
    """Return what the raw rows give under the penalty of a fit; slopes that it leaves at 0 are left at 0.

    Parameters
    ----------
    rows : ndarray
        Those with gaps are left out.
    regression : RawRegression
        Its target and predictors.
    fit : Regression
        Whose penalty.
    """
    complete = rows[np.isfinite(rows).all(axis=1)]
    goal = complete[:, regression.target]
    slopes = np.zeros(len(regression.on))
    kept = np.flatnonzero(fit.coefficients.values[: len(slopes)])
    predictors = complete[:, [regression.on[place] for place in kept]]
    moments = np.atleast_2d(np.cov(np.column_stack([predictors, goal]).T, bias=True))
    own = moments[:-1, :-1]
    slopes[kept] = np.linalg.solve(own + fit.ridge * np.diag(np.diag(own)), moments[:-1, -1])
    intercept = goal.mean() - predictors.mean(axis=0) @ slopes[kept]
    left = float(np.var(goal - predictors @ slopes[kept]))
    return RawRegression(
        regression.target, regression.on, np.append(slopes, intercept), 1 - left / float(goal.var())
    )


def flagged_entries(answer: Any, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which entries carry a note: one that names columns is about these, another about all.

    Parameters
    ----------
    answer : Answer
        Whose `notes` to read.
    names : sequence of str
        The columns that its entries are about.
    """
    found = np.zeros(len(names), dtype=np.bool_)
    for note in getattr(answer, "notes", ()):
        named = np.array([re.search(rf"(?<!\w){re.escape(name)}(?!\w)", note) is not None for name in names])
        found |= named if named.any() else True
    return found


def check(answer: Any, raw: Array, scale: Array, names: Sequence[str]) -> Tally:
    """Compare the intervals of an answer with the raw numbers.

    Parameters
    ----------
    answer : Answer
        A vector.
    raw, scale : ndarray
        The raw numbers, and what their rounding is relative to.
    names : sequence of str
        The columns that its entries are about.
    """
    lower, upper = answer.interval()
    slack = _ROUNDING * scale
    held = (lower <= raw + slack) & (raw - slack <= upper)
    least, most = answer.limits
    says_something = np.isfinite(lower) & np.isfinite(upper) & ((lower > least) | (upper < most))
    answered = np.isfinite(answer.values) & says_something
    flagged = flagged_entries(answer, names)
    plain, noted = answered & ~flagged, answered & flagged
    return Tally(
        asked=int(plain.sum()),
        held=int((plain & held).sum()),
        flagged=int(noted.sum()),
        flagged_held=int((noted & held).sum()),
        refused=int((~answered).sum()),
    )


def is_due(n_rows: int, rho: float, n_predictors: int) -> bool:
    """Whether a regression should be answered: ``n sqrt(rho) / (p + 2)^1.5 > 30``."""
    return n_rows * math.sqrt(rho) > _ROWS_FOR_AN_ANSWER * math.pow(n_predictors + 2, 1.5)


def ask_everything(release: dpcov.Release, table: NamedRows, rho: float, raw: RawAnswers) -> dict[str, Any]:
    """Ask a release for means, variances and regressions; return the fields of an outcome."""
    names, spread = table.columns, np.sqrt(raw.variances)
    try:
        # Rounding of a mean is relative to the numbers that it is the mean of.
        means = check(release.mean(), raw.means, np.abs(raw.means) + spread, names)
        variances = check(release.variance(), raw.variances, raw.variances, names)
    except dpcov.UnresolvedError:
        means = variances = Tally(refused=len(names))
    coefficients, shares = Tally(), Tally()
    refused, due, due_refused = 0, 0, 0
    for regression in raw.regressions:
        count = len(regression.on)
        expected = is_due(len(table.rows), rho, count)
        on = [names[place] for place in regression.on]
        due += expected and not regression.singular
        try:
            fit = release.regress(names[regression.target], on=on)
        except dpcov.UnresolvedError:
            if not regression.singular:
                refused += 1
                due_refused += expected
                coefficients += Tally(refused=count + 1)
                shares += Tally(refused=1)
            continue
        # Intervals under a penalty, or without some columns, are for what the raw rows give so.
        changed = fit.ridge or not fit.coefficients.values[:count].all()
        aim = under_penalty(table.rows, regression, fit) if changed else regression
        if not aim.singular:
            size = np.abs(aim.coefficients)
            coefficients += check(fit.coefficients, aim.coefficients, size, [*on, "constant"])
        shares += check(fit.r_squared, np.array([aim.r_squared]), np.ones(1), ["R squared"])
    return {
        "means": means,
        "variances": variances,
        "coefficients": coefficients,
        "r_squared": shares,
        "regressions": len(raw.regressions),
        "singular": sum(regression.singular for regression in raw.regressions),
        "refused": refused,
        "due": due,
        "due_refused": due_refused,
    }


def total(tallies: Iterable[Tally]) -> Tally:
    """Add tallies."""
    return sum(tallies, start=Tally())
