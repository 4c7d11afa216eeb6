"""What a report says, as plain data: all of it from a release, and from its ledger if there is one."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov._version import VERSION
from dpcov.arrays import Array
from dpcov.core import PrivacyCost, UnresolvedError
from dpcov.guessing import least_misses, mu_of
from dpcov.ledger import Account, Entry
from dpcov.methods import methods
from dpcov.release import Release
from dpcov.report.words import USUAL_DELTAS, epsilon_at, guarantee, rounded_up

_FALSE_ALARMS = tuple(k / 50 for k in range(51))
_DIGITS = 6
_CORRELATION_STEPS = 10_000
_MOST_UNRESOLVED = 20


@dataclass(frozen=True)
class Bounded:
    """A number with its 95% interval; None where it is not known."""

    estimate: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Column:
    """One column; without a constant in the release only its root mean square is known, as `spread`."""

    name: str
    mean: Bounded | None
    spread: Bounded


@dataclass(frozen=True)
class SpectrumData:
    """Eigenvalues of the correlation matrix, largest first, each with what noise alone could make."""

    eigenvalues: tuple[Bounded, ...]
    floor: tuple[float | None, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class CorrelationData:
    """Correlations in steps of 1/10,000 as little-endian int16, row by row, and which are not zero.

    The smallest int16 stands for a correlation that is not known. `told` has one bit a cell, the highest bit
    of a byte first. Both are base64: 500 columns take 0.7 MB.
    """

    size: int
    values: str
    told: str

    def arrays(self) -> tuple[Array, NDArray[np.bool_]]:
        """Return the matrix, NaN where it is not known, and the mask."""
        steps = np.frombuffer(base64.b64decode(self.values), dtype="<i2").reshape(self.size, self.size)
        values = np.where(steps == np.iinfo(np.int16).min, math.nan, steps / _CORRELATION_STEPS)
        bits = np.frombuffer(base64.b64decode(self.told), dtype=np.uint8)
        return values, np.unpackbits(bits, count=self.size**2).reshape(self.size, self.size).astype(bool)


@dataclass(frozen=True)
class Cost:
    """What something cost, in numbers to read."""

    what: str
    rho: float
    delta: float


@dataclass(frozen=True)
class HistoryLine:
    """A line of the ledger, without the name of the user."""

    number: int
    time: str
    kind: str
    method: str
    purpose: str
    rho: float
    private: bool


@dataclass(frozen=True)
class AccountData:
    """The dataset's budget in the ledger, as it was when the report was made."""

    dataset: str
    total: Cost
    spent: Cost
    left: Cost
    closed: bool
    private: bool
    history: tuple[HistoryLine, ...]


@dataclass(frozen=True)
class ReportData:
    """All that a report says.

    Attributes
    ----------
    name : str
        The release's file, for the lines that load it.
    version : str
        Of dpcov, which made the page.
    columns : tuple of Column
        In the order of the table.
    n_rows : int
        The public number of rows.
    intercept : bool
        Whether the release has a constant column, so that means are known.
    private, vetted : bool
        Whether the noise came from the system's entropy; whether the method's arithmetic is exact.
    method, citation : str
        The method that made the release, and where it comes from.
    guarantee : tuple of str
        The guarantee in plain sentences.
    mu : float, optional
        The parameter of Gaussian differential privacy, if all noise is Gaussian.
    trade_off : tuple of (float, float)
        How often someone misses a candidate at least, for how often it is seen where it is not.
    epsilons : tuple of (float, float)
        Pairs of delta and the epsilon that goes with it.
    predicted_error : float, optional
        How far the variance of any resolved combination may be off, as a share of it.
    problem : str
        Why there is nothing to show, if so.
    spectrum, correlation : optional
        The numbers that the figures show.
    unresolved : tuple of str
        Combinations of columns that noise hides, in words.
    n_unresolved : int
        Their number; not all are spelled out.
    n_resolved : int, optional
        How many independent combinations of columns stand above the noise; None if the noise has no law.
    limit : Cost
        The budget of the release.
    spent : Cost
        The part of the budget that was spent.
    receipt : tuple of Cost
        What each query cost.
    account : AccountData, optional
        The dataset's budget, if there is a ledger.
    versions : mapping
        The versions of the software that made the release.
    """

    name: str
    version: str
    columns: tuple[Column, ...]
    n_rows: int
    intercept: bool
    private: bool
    vetted: bool
    method: str
    citation: str
    guarantee: tuple[str, ...]
    mu: float | None
    trade_off: tuple[tuple[float, float], ...]
    epsilons: tuple[tuple[float, float | None], ...]
    predicted_error: float | None
    problem: str
    spectrum: SpectrumData | None
    correlation: CorrelationData | None
    unresolved: tuple[str, ...]
    n_unresolved: int
    n_resolved: int | None
    limit: Cost
    spent: Cost
    receipt: tuple[Cost, ...]
    account: AccountData | None
    versions: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the same as mappings, lists, numbers and texts, which JSON can hold."""
        return asdict(self)


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
    delta = account.asked[1] if account is not None and account.asked is not None else USUAL_DELTAS[1]
    columns: tuple[Column, ...] = ()
    unresolved: tuple[str, ...] = ()
    problem, spectrum, correlation = "", None, None
    try:
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
        version=VERSION,
        columns=columns or tuple(Column(c, None, _UNKNOWN) for c in release.columns),
        n_rows=release.n_rows,
        intercept=release.intercept,
        private=receipt.private,
        vetted=known is not None and known.vetted,
        method=release.method,
        citation="" if known is None else known.citation,
        guarantee=guarantee(receipt, delta),
        mu=None if (mu := mu_of(receipt.spent)) is None else rounded_up(mu),
        trade_off=tuple((a, math.floor(1e4 * least_misses(receipt.spent, a)) / 1e4) for a in _FALSE_ALARMS),
        epsilons=tuple((float(d), _promise(epsilon_at(receipt.spent, d))) for d in deltas),
        predicted_error=_rounded(float(release.diagnostics.get("predicted_error", math.nan))),
        problem=problem,
        spectrum=spectrum,
        correlation=correlation,
        unresolved=unresolved[:_MOST_UNRESOLVED],
        n_unresolved=len(unresolved),
        n_resolved=release.resolved,
        limit=_cost("limit", receipt.limit),
        spent=_cost("spent", receipt.spent),
        receipt=tuple(_cost(charge.purpose, charge.cost) for charge in receipt.charges),
        account=None if account is None else _account(account, history),
        versions=dict(release.versions),
    )


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
    return tuple(
        Column(
            name,
            _bounded(mean.values[i], means.lower[i], means.upper[i]),
            _root(variance.values[i], variances.lower[i], variances.upper[i]),
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
    steps = np.rint(answer.values * _CORRELATION_STEPS)
    packed = np.where(np.isnan(steps), np.iinfo(np.int16).min, steps).astype("<i2")
    told = np.packbits(answer.differs_from_zero())
    return CorrelationData(
        len(answer), base64.b64encode(packed.tobytes()).decode(), base64.b64encode(told.tobytes()).decode()
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
            entry.private,
        )
        for entry in history
    )
    return AccountData(
        account.name,
        _cost("total", account.total),
        _cost("spent", account.spent),
        _cost("left", account.remaining),
        account.closed,
        account.private,
        tuple(lines),
    )


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
