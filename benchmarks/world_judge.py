"""What a release of a table is worth: its errors beside an oracle's, and whether its claims hold."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_cases import Table
from oracle import QUANTILES, Reference, find_oracle_errors, make_reference
from scipy.linalg import qr
from world_answers import RawAnswers, Tally, ask_everything, flagged_entries, raw_answers
from world_draws import Array, NamedRows
from world_tables import WorldTable

import dpcov

CACHE = Path(__file__).parent / "results" / ".cache" / "world"

_ORACLE_RUNS = 101
_ORACLE_DRAWS = 5
_HALF = 0.5

ReleaseFunction = Callable[..., dpcov.Release]
"""Called as ``release(rows, rho=..., columns=..., rng=...)``; `dpcov.release` is one."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What the raw rows say, and what an oracle could release of them.

    Attributes
    ----------
    reference : Reference
        The exact second moment, with the constant as last column; rows with gaps are rows of zeros.
    oracle : float
        The oracle's error: the best over radii of the median over draws of noise.
    oracle_draws : tuple of float
        Errors of single releases by the oracle, to show how far chance alone moves one release.
    least_direction : float
        See `Outcome`.
    answers : RawAnswers
        Means, variances and regressions of the complete rows.
    """

    reference: Reference
    oracle: float
    oracle_draws: tuple[float, ...]
    least_direction: float
    answers: RawAnswers


@dataclass(frozen=True)
class Outcome:
    """One release, judged.

    Attributes
    ----------
    name, family, seed, run : str, str, int, int
        Which table, and which release of it.
    n_rows, n_columns, rho : int, int, float
        Sizes and budget.
    oracle, oracle_draw, error, ratio : float
        The oracle's median error, a single one of its own, the release's relative spectral error in *all*
        directions, and `error` over `oracle`. Infinite if nothing was released.
    least_direction : float
        The least root mean square of a combination of length 1 of the columns and the constant, each brought
        to a root mean square of 1. Below 1e-6 it is beyond what the default amplifies.
    trimmed_error : float
        The error on the best subspace of as many dimensions as are called resolved: whichever they are,
        the error in them cannot be less.
    resolved_error : float
        The error in directions called resolved, see `resolved_columns`. NaN if none is.
    predicted_error : float
        What the release said that it would be. NaN if it said nothing.
    exceeded, noted : bool
        Whether `resolved_error` is above `predicted_error`, and whether the release says that it may be:
        rows were seen far beyond its region.
    unresolved, resolved_columns : int
        Combinations listed as unresolved; columns that remain without them.
    false_zeros, noted_zeros : tuple of str
        See `find_false_zeros`; those of them whose answer carries a note.
    means, variances, coefficients, r_squared : Tally
        How often 95% intervals held the raw answer.
    regressions, singular, refused, due, due_refused : int
        Regressions asked for; those whose predictors are collinear in the raw rows; those of the others
        that were refused; those of the others with ``n sqrt(rho) / (p + 2)^1.5 > 30``, and those of them
        that were refused.
    seconds : float
        How long the release took.
    failure : str
        The error if nothing was released.
    """

    name: str
    family: str
    seed: int
    run: int
    n_rows: int
    n_columns: int
    rho: float
    oracle: float
    oracle_draw: float
    least_direction: float
    error: float = math.inf
    ratio: float = math.inf
    trimmed_error: float = math.nan
    resolved_error: float = math.nan
    predicted_error: float = math.nan
    exceeded: bool = False
    noted: bool = False
    unresolved: int = 0
    resolved_columns: int = 0
    false_zeros: tuple[str, ...] = ()
    noted_zeros: tuple[str, ...] = ()
    means: Tally = Tally()  # noqa: RUF009 - frozen
    variances: Tally = Tally()  # noqa: RUF009
    coefficients: Tally = Tally()  # noqa: RUF009
    r_squared: Tally = Tally()  # noqa: RUF009
    regressions: int = 0
    singular: int = 0
    refused: int = 0
    due: int = 0
    due_refused: int = 0
    seconds: float = math.nan
    failure: str = ""


def with_constant(rows: Array, chosen: Sequence[int] | None = None) -> Table:
    """Return rows (of some columns) and a last column of ones; a row with a gap in any column is zero."""
    complete = np.isfinite(rows).all(axis=1, keepdims=True)
    part = rows if chosen is None else rows[:, list(chosen)]
    return Table(np.where(complete, np.column_stack([part, np.ones(len(rows))]), 0.0))


def measure_truth(table: WorldTable, cache: Path | None = CACHE) -> Truth:
    """Compute what the raw rows say, and the oracle's error unless the cache on disk knows it.

    Parameters
    ----------
    table : WorldTable
        The table.
    cache : path, optional
        A directory with one file a seed; None computes everything anew.
    """
    rows = with_constant(table.rows)
    reference = make_reference(rows)
    key = f"rho={table.rho:.6g} runs={_ORACLE_RUNS} {reference.fingerprint()}"
    place = None if cache is None else cache / f"{table.seed}.json"
    stored = json.loads(place.read_text()) if place is not None and place.exists() else {}
    if stored.get("key") != key:
        best, *_ = find_oracle_errors(
            rows, reference, [table.rho], _ORACLE_RUNS, seed=table.seed, quantiles=QUANTILES
        )
        # Single releases at the radius that was best, with noise that the search for it has not seen.
        draws = [
            find_oracle_errors(
                rows, reference, [table.rho], 1, seed=10**9 + _ORACLE_DRAWS * table.seed + draw,
                quantiles=(best.quantile,),
            )[0].error
            for draw in range(_ORACLE_DRAWS)
        ]  # fmt: skip
        stored = {"key": key, "error": best.error, "draws": draws}
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(stored) + "\n")
    sizes = np.sqrt(np.mean(np.square(rows.rows), axis=0))
    return Truth(
        reference=reference,
        oracle=float(stored["error"]),
        oracle_draws=tuple(stored["draws"]),
        least_direction=1 / float(np.linalg.norm(sizes[:, None] * reference.whitener, 2)),
        answers=raw_answers(table),
    )


def evaluate(
    table: WorldTable,
    release_function: ReleaseFunction = dpcov.release,
    *,
    run: int = 0,
    truth: Truth | None = None,
) -> Outcome:
    """Release a table once and judge the release.

    Parameters
    ----------
    table : WorldTable
        The table.
    release_function : callable, optional
        Called with the rows, and `rho`, `columns` and `rng` by name.
    run : int, default 0
        Another one gives other noise.
    truth : Truth, optional
        Of this table, if it is at hand.
    """
    known = measure_truth(table) if truth is None else truth
    n, d = table.rows.shape
    facts: dict[str, Any] = {
        "name": table.name,
        "family": table.family,
        "seed": table.seed,
        "run": run,
        "n_rows": n,
        "n_columns": d,
        "rho": table.rho,
        "oracle": known.oracle,
        "oracle_draw": known.oracle_draws[run % len(known.oracle_draws)],
        "least_direction": known.least_direction,
    }
    start = time.perf_counter()
    try:
        release = release_function(
            table.rows, rho=table.rho, columns=table.columns, rng=np.random.default_rng([table.seed, run, 3])
        )
    except (dpcov.DpcovError, ArithmeticError, ValueError) as failure:
        return Outcome(**facts, failure=f"{type(failure).__name__}: {failure}")
    facts["seconds"] = time.perf_counter() - start
    asked = ask_everything(release, table, table.rho, known.answers)
    facts |= asked | judge_matrix(release, table, known.reference)
    facts["false_zeros"], facts["noted_zeros"] = find_false_zeros(release, table, known.answers)
    return Outcome(**facts, ratio=facts["error"] / known.oracle)


def judge_matrix(release: dpcov.Release, table: NamedRows, reference: Reference) -> dict[str, Any]:
    """Return the errors of the released matrix, in all directions and in those called resolved."""
    moment = release.second_moment().values
    error = reference.relative_error(moment)
    predicted = float(release.diagnostics.get("predicted_error", math.nan))
    noted = not release.diagnostics.get("rows_beyond", {}).get("explained", True)
    try:
        n_unresolved = len(release.unresolved)
        kept = resolved_columns(release)
    except dpcov.UnresolvedError:
        # The release says that it knows nothing.
        return {"error": error, "predicted_error": predicted, "noted": noted, "unresolved": len(moment)}
    within = math.nan
    if kept:
        places = [*kept, len(table.columns)]
        part = reference
        if len(kept) < len(table.columns):
            part = make_reference(with_constant(table.rows, kept))
        within = part.relative_error(moment[np.ix_(places, places)])
        # A combination that is constant in the raw rows was called resolved.
        within = within if part.rank == len(places) else math.inf
    return {
        "error": error,
        "trimmed_error": _trimmed(reference, moment, len(kept) + 1) if kept else math.nan,
        "resolved_error": within,
        "predicted_error": predicted,
        "exceeded": within > predicted,
        "noted": noted,
        "unresolved": n_unresolved,
        "resolved_columns": len(kept),
    }


def _trimmed(reference: Reference, moment: Array, dimensions: int) -> float:
    """Return the least error over subspaces of so many dimensions.

    By Courant and Fischer that leaves out the eigenvalues of the white error that are furthest from zero.
    """
    white = reference.whitener.astype(np.longdouble)
    error = (white.T @ moment @ white - np.eye(reference.rank)).astype(np.float64)
    sizes = np.sort(np.abs(np.linalg.eigvalsh((error + error.T) / 2)))
    return float(sizes[min(dimensions, len(sizes)) - 1])


def resolved_columns(release: dpcov.Release) -> list[int]:
    """Return a largest set of columns all combinations of which the release calls resolved.

    A release lists unresolved combinations of columns, and advises to leave one column of each out. This
    does so: it leaves out as many columns as there are independent combinations on the list, those with
    the largest shares in them (QR with pivoting, columns in units of their released spread). Every
    combination of the other columns and the constant is then called resolved, so `predicted_error` has to
    bound the relative spectral error of that block of the matrix. Where the release itself refuses to
    invert the block, because leaving columns out left others that are not resolved alone, columns are
    taken up one by one as long as the release agrees.

    Why not the complement of the list in some metric: in that of the raw rows a direction that is hardly
    known would move all those correlated with it, and in that of the released matrix a combination whose
    released variance is zero has no complement.

    Parameters
    ----------
    release : Release
        With an intercept.
    """
    names = list(release.columns)
    kept = list(range(len(names)))
    if release.unresolved:
        spread = np.sqrt(release.variance().values)
        forms = np.zeros((len(release.unresolved), len(names)))
        for form, combination in zip(forms, release.unresolved, strict=True):
            for name, coefficient in combination.coefficients:
                form[names.index(name)] = coefficient
            lead = names.index(combination.coefficients[0][0])
            if np.isfinite(combination.standard_deviation_at_most):
                spread[lead] = max(spread[lead], combination.standard_deviation_at_most)
        triangle, pivots = qr(forms * spread, mode="r", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        left_out = set(pivots[: int((sizes > 1e-9 * sizes[0]).sum())].tolist())
        kept = [place for place in kept if place not in left_out]
    if _agrees(release, kept):
        return kept
    taken: list[int] = []
    for place in kept:
        if _agrees(release, [*taken, place]):
            taken.append(place)
    return taken


def _agrees(release: dpcov.Release, places: Sequence[int]) -> bool:
    """Whether the release inverts the covariance of these columns."""
    if not places:
        return True
    try:
        release.whiten([release.columns[place] for place in places])
    except (dpcov.UnresolvedError, np.linalg.LinAlgError):
        return False
    return True


def find_false_zeros(
    release: dpcov.Release, table: NamedRows, answers: RawAnswers
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that the release took for less than half of what they are, and did not list.

    The released variance (of a 0/1 column: the mean, which is its second moment) is below half of the raw
    one, the 95% interval leaves the raw one out, and no unresolved combination lists the column. Second:
    those of them whose answer carries a note.
    """
    try:
        means, variances = release.mean(), release.variance()
        listed = {name for combination in release.unresolved for name, _ in combination.coefficients}
    except dpcov.UnresolvedError:
        return (), ()
    flags = table.flags
    released = np.where(flags, means.values, variances.values)
    upper = np.where(flags, means.interval().upper, variances.interval().upper)
    raw = np.where(flags, answers.means, answers.variances)
    lost = (released < _HALF * raw) & (upper < raw)
    lost &= np.array([name not in listed for name in table.columns])
    notes = [flagged_entries(answer, table.columns) for answer in (means, variances)]
    noted = lost & np.where(flags, *notes)
    names = np.array(table.columns)
    return tuple(names[lost].tolist()), tuple(names[noted].tolist())
