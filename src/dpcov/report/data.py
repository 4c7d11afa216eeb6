"""What a report says, as plain data: all of it from a release, and from its ledger if there is one."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

import numpy as np

from dpcov._version import VERSION
from dpcov.arrays import Array, Bools
from dpcov.core import PrivacyCost, UnresolvedError
from dpcov.guessing import least_misses, mu_of
from dpcov.ledger import Account, Entry
from dpcov.methods import methods
from dpcov.privacy_unit import ROW
from dpcov.receipts import spendings
from dpcov.released import Release
from dpcov.report.content import (
    CORRELATION_STEPS,
    AccountData,
    Bounded,
    Column,
    CorrelationData,
    Cost,
    HistoryLine,
    Pair,
    ReportData,
    SpectrumData,
    SpendingData,
)
from dpcov.report.words import (
    USUAL_DELTAS,
    clipped_rows,
    epsilon_at,
    error_covers,
    guarantee,
    rounded_up,
)

_FALSE_ALARMS = tuple(k / 50 for k in range(51))
_DIGITS = 6
_MOST_UNRESOLVED = 20
_MOST_IN_ORDER = 24
_MOST_PAIRS = 20


def report_data(
    release: Release, name: str, account: Account | None = None, history: Sequence[Entry] = ()
) -> ReportData:
    """Collect what there is to say about a release.

    Parameters
    ----------
    release : Release
        The release to describe.
    name : str
        The name of the release's file.
    account : Account, optional
        The dataset's budget.
    history : sequence of Entry
        The ledger's lines about the dataset.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> from dpcov.report import report_data
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> data = report_data(dpcov.release(rows, rho=1), "table.dpcov")
    >>> [column.name for column in data.columns], data.n_resolved
    (['x0', 'x1'], 2)
    """
    receipt = release.receipt
    delta = release.provenance.delta or USUAL_DELTAS[1]
    if account is not None and account.asked is not None:
        delta = account.asked[1]
    columns: tuple[Column, ...] = ()
    unresolved: tuple[str, ...] = ()
    problem, spectrum, correlation, complete = "", None, None, None
    try:
        complete = _complete(release) if release.intercept else None
        columns = _columns(release)
        spectrum = _spectrum(release)
        correlation = _correlation(release) if release.intercept else None
        unresolved = tuple(f"{found.describe()}." for found in release.unresolved)
    except UnresolvedError as error:
        problem = str(error)
    known = {method.name: method for method in methods()}.get(release.method)
    deltas = sorted({*USUAL_DELTAS, delta}, reverse=True)
    return ReportData(
        name=name,
        title=release.provenance.title or ("" if account is None else account.name) or name,
        date=release.provenance.date,
        custodian="" if account is None else account.user,
        unit=ROW if release.unit is None else release.unit.name,
        population="" if release.unit is None else release.unit.population,
        epsilon=_promise(epsilon_at(receipt.spent, delta)),
        delta=float(delta),
        complete=complete,
        pairwise=release.pairwise,
        version=VERSION,
        columns=columns or tuple(Column(c, None, _UNKNOWN) for c in release.columns),
        n_units=release.n_units,
        intercept=release.intercept,
        private=receipt.private,
        vetted=known is not None and known.vetted,
        method=release.method,
        citation="" if known is None else known.citation,
        guarantee=guarantee(receipt, delta, release.n_units, release.unit),
        mu=None if (mu := mu_of(receipt.spent)) is None else rounded_up(mu),
        trade_off=tuple((a, math.floor(1e4 * least_misses(receipt.spent, a)) / 1e4) for a in _FALSE_ALARMS),
        epsilons=tuple((float(d), _promise(epsilon_at(receipt.spent, d))) for d in deltas),
        predicted_error=None if release.predicted_error is None else _rounded(release.predicted_error),
        error_covers=error_covers(release.method),
        clipped_rows=clipped_rows(release.diagnostics, ROW if release.unit is None else release.unit.name),
        problem=problem,
        spectrum=spectrum,
        correlation=correlation,
        unresolved=unresolved[:_MOST_UNRESOLVED],
        n_unresolved=len(unresolved),
        n_resolved=release.resolved,
        limit=_cost("limit", receipt.limit),
        spent=_cost("spent", receipt.spent),
        spendings=tuple(
            SpendingData(one.purpose, one.queries, round(one.share, 6), _cost("", one.cost).rho)
            for one in spendings(receipt)
        ),
        receipt=tuple(_cost(charge.purpose, charge.cost) for charge in receipt.charges),
        account=None if account is None else _account(account, history),
        versions=dict(release.versions),
    )


def _complete(release: Release) -> Bounded:
    """Return the share of complete rows, or of those with the column that has most gaps."""
    answer = release.describe().rows
    bounds, least = answer.interval(), int(np.argmin(answer.values))
    found = (answer.values[least], bounds.lower[least], bounds.upper[least])
    return _bounded(*(float(v) / release.n_units for v in found))


def _columns(release: Release) -> tuple[Column, ...]:
    if not release.intercept:
        squares = release.second_moment()
        bounds = squares.interval()
        return tuple(
            Column(name, None, _root(float(squares.values[i, i]), bounds.lower[i, i], bounds.upper[i, i]))
            for i, name in enumerate(release.columns)
        )
    mean, variance = release.mean(), release.variance()
    means, variances = mean.interval(), variance.interval()
    rows = release.describe().rows.values if release.pairwise else None
    return tuple(
        Column(
            name,
            _bounded(mean.values[i], means.lower[i], means.upper[i]),
            _root(variance.values[i], variances.lower[i], variances.upper[i]),
            None if rows is None else round(float(rows[i])),
        )
        for i, name in enumerate(release.columns)
    )


def _spectrum(release: Release) -> SpectrumData:
    found = release.spectrum()
    lower, upper = found.eigenvalues.interval()
    known = set(found.columns)
    return SpectrumData(
        tuple(_bounded(*numbers) for numbers in zip(found.eigenvalues.values, lower, upper, strict=True)),
        tuple(_rounded(value) for value in found.floor),
        tuple(name for name in release.columns if name not in known),
    )


def _correlation(release: Release) -> CorrelationData:
    answer = release.correlation()
    steps = np.rint(answer.values * CORRELATION_STEPS)
    packed = np.where(np.isnan(steps), np.iinfo(np.int16).min, steps).astype("<i2")
    told = answer.differs_from_zero()
    return CorrelationData(
        len(answer),
        base64.b64encode(packed.tobytes()).decode(),
        base64.b64encode(np.packbits(told).tobytes()).decode(),
        _order(answer.values),
        _strongest(answer.values, told, release.columns),
    )


def _order(values: Array) -> tuple[int, ...]:
    """Return an order of the columns; if they are many, with those that go together beside each other."""
    size = len(values)
    if size <= _MOST_IN_ORDER:
        return tuple(range(size))
    from scipy.cluster.hierarchy import leaves_list, linkage  # noqa: PLC0415  (takes long, is rarely needed)
    from scipy.spatial.distance import squareform  # noqa: PLC0415  (as above)

    apart = 1 - np.abs(np.nan_to_num(values))
    np.fill_diagonal(apart, 0.0)
    return tuple(map(int, leaves_list(linkage(squareform((apart + apart.T) / 2), "average"))))


def _strongest(values: Array, told: Bools, names: Sequence[str]) -> tuple[Pair, ...]:
    first, second = np.triu_indices(len(values), 1)
    seen = told[first, second]
    first, second = first[seen], second[seen]
    sizes = np.abs(values[first, second])
    best = np.argsort(-sizes, kind="stable")[:_MOST_PAIRS]
    return tuple(
        Pair(names[i], names[j], round(float(values[i, j]), 4))
        for i, j in zip(first[best], second[best], strict=True)
    )


def _account(account: Account, history: Sequence[Entry]) -> AccountData:
    lines = (
        HistoryLine(
            entry.number,
            f"{entry.time:%Y-%m-%d %H:%M:%S}",
            entry.kind if entry.settles is None else f"settles line {entry.settles}",
            entry.method,
            entry.purpose,
            float(entry.cost.rho),
            _share(entry.cost, account.total),
            entry.private,
        )
        for entry in history
    )
    return AccountData(
        account.name,
        None if account.asked is None else (float(account.asked[0]), float(account.asked[1])),
        _share(account.spent, account.total),
        _cost("total", account.total),
        _cost("spent", account.spent),
        _cost("left", account.remaining),
        account.closed,
        account.private,
        tuple(lines),
    )


def _share(part: PrivacyCost, whole: PrivacyCost) -> float:
    return round(float(part.rho / whole.rho), 6) if whole.rho else 0.0


def _cost(what: str, cost: PrivacyCost) -> Cost:
    return Cost(what, float(f"{float(cost.rho):.6g}"), float(f"{float(cost.delta):.6g}"))


def _root(value: float, lower: float, upper: float) -> Bounded:
    return _bounded(*(math.sqrt(max(number, 0.0)) for number in (value, lower, upper)))


def _bounded(estimate: float, lower: float, upper: float) -> Bounded:
    return Bounded(_rounded(estimate), _rounded(lower), _rounded(upper))


def _promise(epsilon: float) -> float | None:
    return rounded_up(epsilon) if math.isfinite(epsilon) else None


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


_UNKNOWN = Bounded(None, None, None)
