"""What releases of real tables are worth, and regressions from them beside those of other methods."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oracle import find_oracle_errors, make_reference
from real_peers import PEERS
from real_tables import Bounds, RealTable
from world_answers import RawAnswers, RawRegression, Tally, ask_everything, fit_raw, is_due
from world_draws import Array
from world_judge import find_false_zeros, judge_matrix, with_constant

import dpcov

DELTA = 1e-6
WHOLE, OWN = "dpcov", "dpcov told bounds"

_ORACLE_RUNS = 51


@dataclass(frozen=True)
class ReleaseOutcome:
    """One release of a whole table, judged; the fields are those of `world_judge.Outcome` but for these.

    Attributes
    ----------
    mean_error, worst_mean_error : float
        Median and largest error of a mean, in standard deviations of its column; NaN if none was answered.
    """

    table: str
    epsilon: float
    run: int
    n_rows: int
    n_columns: int
    rho: float
    oracle: float
    error: float
    ratio: float
    predicted_error: float
    resolved_error: float
    exceeded: bool
    noted: bool
    unresolved: int
    false_zeros: tuple[str, ...]
    noted_zeros: tuple[str, ...]
    mean_error: float
    worst_mean_error: float
    means: Tally
    variances: Tally
    coefficients: Tally
    r_squared: Tally
    seconds: float


@dataclass(frozen=True)
class RegressionOutcome:
    """One regression from a release, or by a peer.

    Attributes
    ----------
    table, target, method : str
        Which; the method is `WHOLE`, `OWN` (a release of just these columns, told bounds) or a peer.
    predictors, run : int
        How many, and which release.
    epsilon : float
        The budget.
    due : bool
        Whether ``n sqrt(rho) / (p + 2)^1.5 > 30``.
    refused, flagged : bool
        Whether there was no answer; whether it had a note.
    r_squared, raw_r_squared : float
        On the complete rows, of these coefficients (0 if refused) and of least squares.
    largest_error : float
        The largest relative error of a slope; NaN if refused.
    """

    table: str
    target: str
    predictors: int
    epsilon: float
    run: int
    method: str
    due: bool
    refused: bool
    flagged: bool
    r_squared: float
    raw_r_squared: float
    largest_error: float


def private_release(
    table: RealTable, epsilon: float, rng: np.random.Generator, bounds: Bounds | None = None
) -> dpcov.Release:
    """Release a table with the default method."""
    return dpcov.release(
        table.rows, epsilon=epsilon, delta=DELTA, columns=table.columns, rng=rng, bounds=bounds
    )


def r_squared_on_rows(rows: Array, regression: RawRegression, coefficients: Array) -> float:
    """Return the share of the target's variance that coefficients explain; negative if worse than the mean.

    Parameters
    ----------
    rows : ndarray
        The complete rows.
    regression : RawRegression
        Its target and predictors.
    coefficients : ndarray
        One a predictor, the intercept last.
    """
    goal = rows[:, regression.target]
    left = goal - rows[:, list(regression.on)] @ coefficients[:-1] - coefficients[-1]
    return float(1 - np.mean(np.square(left)) / goal.var())


def judge_coefficients(
    rows: Array, regression: RawRegression, answer: tuple[Array, bool] | None
) -> dict[str, Any]:
    """Compare coefficients, and whether they had a note, with least squares; None is a refusal."""
    raw = {"raw_r_squared": regression.r_squared}
    if answer is None or not np.isfinite(answer[0]).all():
        return {**raw, "refused": True, "flagged": False, "r_squared": 0.0, "largest_error": math.nan}
    found, flagged = answer
    slopes = regression.coefficients[:-1]
    return {
        **raw,
        "refused": False,
        "flagged": flagged,
        "r_squared": r_squared_on_rows(rows, regression, found),
        "largest_error": float(np.max(np.abs(found[:-1] - slopes) / np.abs(slopes))),
    }


def _ask(release: dpcov.Release | None, target: str, on: Sequence[str]) -> tuple[Array, bool] | None:
    if release is None:
        return None
    try:
        fit = release.regress(target, on=on)
    except dpcov.UnresolvedError:
        return None
    return fit.coefficients.values, bool(fit.coefficients.notes or fit.r_squared.notes)


def _try_release(
    table: RealTable, epsilon: float, rng: np.random.Generator, bounds: Bounds | None = None
) -> dpcov.Release | None:
    try:
        return private_release(table, epsilon, rng, bounds)
    except dpcov.DpcovError as failure:
        print(f"{table.name}, epsilon {epsilon:g}: {failure}", flush=True)
        return None


def measure_table(
    table: RealTable, epsilons: Sequence[float], releases: int, *, own: bool, peers: Sequence[str] = ()
) -> tuple[list[ReleaseOutcome], list[RegressionOutcome]]:
    """Release one table several times at each budget, and judge releases and regressions.

    Parameters
    ----------
    table : RealTable
        Of any origin.
    epsilons : sequence of float
        Budgets, each with delta 1e-6.
    releases : int
        How many at each budget.
    own : bool
        Whether to release the columns of each regression alone as well, told the bounds that peers are told.
    peers : sequence of str, optional
        Which of `PEERS` to run.
    """
    complete = table.rows[np.isfinite(table.rows).all(axis=1)]
    regressions = [
        fit_raw(complete, table.columns.index(target), [table.columns.index(column) for column in on])
        for target, on in table.regressions
    ]
    raw = RawAnswers(complete.mean(axis=0), complete.var(axis=0), tuple(regressions))
    bounds = [table.bounds[column] for column in table.columns]
    judge = _ReleaseJudge(table, raw)
    found: list[ReleaseOutcome] = []
    fits: list[RegressionOutcome] = []
    for epsilon in epsilons:
        for run in range(releases):
            rng = np.random.default_rng([zlib.crc32(f"{table.name} {epsilon:g}".encode()), run])
            start = time.perf_counter()
            release = _try_release(table, epsilon, rng)
            if release is not None:
                found.append(judge(release, epsilon, run, time.perf_counter() - start))
            for regression, (target, on) in zip(regressions, table.regressions, strict=True):
                answers = {WHOLE: _ask(release, target, on)}
                if own:
                    part = table.select([target, *on])
                    answers[OWN] = _ask(_try_release(part, epsilon, rng, part.bounds), target, on)
                for peer in peers:
                    coefficients = PEERS[peer](
                        complete, regression.target, regression.on, bounds, epsilon, DELTA, rng
                    )
                    answers[peer] = coefficients, False
                fits += [
                    RegressionOutcome(
                        table=table.name,
                        target=target,
                        predictors=len(on),
                        epsilon=epsilon,
                        run=run,
                        method=method,
                        due=is_due(len(table.rows), _rho(epsilon), len(on)),
                        **judge_coefficients(complete, regression, answer),
                    )
                    for method, answer in answers.items()
                ]
    return found, fits


def _rho(epsilon: float) -> float:
    """Return the zCDP budget with which a release implies (epsilon, `DELTA`)-DP.

    The largest rho with ``rho + 2 sqrt(rho log(1/delta)) <= epsilon``: up to a few percent what is charged.
    """
    log = math.log(1 / DELTA)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


class _ReleaseJudge:
    """Judges releases of one table; the oracle's error is found once a budget."""

    def __init__(self, table: RealTable, raw: RawAnswers) -> None:
        self._table, self._raw = table, raw
        self._rows = with_constant(table.rows)
        self._reference = make_reference(self._rows)
        self._oracle: dict[float, float] = {}

    def __call__(self, release: dpcov.Release, epsilon: float, run: int, seconds: float) -> ReleaseOutcome:
        table, raw = self._table, self._raw
        rho = float(release.receipt.limit.rho)
        if rho not in self._oracle:
            best, *_ = find_oracle_errors(self._rows, self._reference, [rho], _ORACLE_RUNS)
            self._oracle[rho] = best.error
        matrix = judge_matrix(release, table, self._reference)
        asked = ask_everything(release, table, rho, raw)
        false_zeros, noted_zeros = find_false_zeros(release, table, raw)
        try:
            errors = np.abs(release.mean().values - raw.means) / np.sqrt(raw.variances)
        except dpcov.UnresolvedError:
            errors = np.array([math.nan])
        return ReleaseOutcome(
            table=table.name,
            epsilon=epsilon,
            run=run,
            n_rows=len(table.rows),
            n_columns=len(table.columns),
            rho=rho,
            oracle=self._oracle[rho],
            error=matrix["error"],
            ratio=matrix["error"] / self._oracle[rho],
            predicted_error=matrix["predicted_error"],
            resolved_error=matrix.get("resolved_error", math.nan),
            exceeded=matrix.get("exceeded", False),
            noted=matrix["noted"],
            unresolved=matrix["unresolved"],
            false_zeros=false_zeros,
            noted_zeros=noted_zeros,
            mean_error=float(np.median(errors)),
            worst_mean_error=float(errors.max()),
            means=asked["means"],
            variances=asked["variances"],
            coefficients=asked["coefficients"],
            r_squared=asked["r_squared"],
            seconds=seconds,
        )
