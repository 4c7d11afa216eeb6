"""What a report holds: plain data, which JSON can hold as well."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array

CORRELATION_STEPS = 10_000


@dataclass(frozen=True)
class Bounded:
    """A number with its 95% interval; None where it is not known."""

    estimate: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Column:
    """One column; without a constant in the release only its root mean square is known, as `spread`.

    `rows` tells how many rows have it, in a pairwise release.
    """

    name: str
    mean: Bounded | None
    spread: Bounded
    rows: int | None = None


@dataclass(frozen=True)
class SpectrumData:
    """Eigenvalues of the correlation matrix, largest first, each with what noise alone could make."""

    eigenvalues: tuple[Bounded, ...]
    floor: tuple[float | None, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class SpendingData:
    """What was spent on one purpose, as a share of the whole."""

    purpose: str
    queries: int
    share: float
    rho: float


@dataclass(frozen=True)
class Pair:
    """Two columns that go together."""

    first: str
    second: str
    correlation: float


@dataclass(frozen=True)
class CorrelationData:
    """Correlations in steps of 1/10,000 as little-endian int16, row by row, and which are not zero.

    The smallest int16 stands for a correlation that is not known. `told` has one bit a cell, the highest bit
    of a byte first. Both are base64: 500 columns take 0.7 MB. The figure shows columns in `order`, which puts
    those that go together beside each other if they are many. `strongest` are the pairs told from zero that
    correlate most.
    """

    size: int
    values: str
    told: str
    order: tuple[int, ...]
    strongest: tuple[Pair, ...]

    def arrays(self) -> tuple[Array, NDArray[np.bool_]]:
        """Return the matrix, NaN where it is not known, and the mask."""
        steps = np.frombuffer(base64.b64decode(self.values), dtype="<i2").reshape(self.size, self.size)
        values = np.where(steps == np.iinfo(np.int16).min, math.nan, steps / CORRELATION_STEPS)
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
    """A line of the ledger, without the name of the user; `share` is that of the dataset's whole budget."""

    number: int
    time: str
    kind: str
    method: str
    purpose: str
    rho: float
    share: float
    private: bool


@dataclass(frozen=True)
class AccountData:
    """The dataset's budget in the ledger, as it was when the report was made.

    `asked` is the epsilon and the delta that it was opened with, if it was.
    """

    dataset: str
    asked: tuple[float, float] | None
    spent_share: float
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
    title : str
        Dataset and purpose as far as they are known, else the file.
    date, custodian : str
        The day of the release, and who opened the account in the ledger; empty if that is not known.
    unit : str
        Whom the guarantee protects, each by itself.
    epsilon, delta : float
        The guarantee in the two numbers that the field goes by; epsilon is None if there is none.
    population : str
        What the numbers are about where a unit has several rows; empty where each row is one.
    complete : Bounded, optional
        The share of complete rows, if that is known; where a unit has several, how many it has on average.
        Of a pairwise release, of those with the column that has most gaps.
    pairwise : bool
        Whether each answer rests on the rows in which both columns are there.
    version : str
        Of dpcov, which made the page.
    columns : tuple of Column
        In the order of the table.
    n_units : int
        The public number of rows, or of other units.
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
        How far the variance of any resolved combination may be off, as a share of it; None where it may be
        off by as much as it is, or nothing is resolved.
    error_covers : str
        What the error is made of.
    clipped_rows : str
        How many rows were clipped, and whether errors cover that.
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
    spendings : tuple of SpendingData
        What was spent, by purpose.
    receipt : tuple of Cost
        What each query cost.
    account : AccountData, optional
        The dataset's budget, if there is a ledger.
    versions : mapping
        The versions of the software that made the release.
    """

    name: str
    title: str
    date: str
    custodian: str
    unit: str
    epsilon: float | None
    delta: float
    population: str
    complete: Bounded | None
    pairwise: bool
    version: str
    columns: tuple[Column, ...]
    n_units: int
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
    error_covers: str
    clipped_rows: str
    problem: str
    spectrum: SpectrumData | None
    correlation: CorrelationData | None
    unresolved: tuple[str, ...]
    n_unresolved: int
    n_resolved: int | None
    limit: Cost
    spent: Cost
    spendings: tuple[SpendingData, ...]
    receipt: tuple[Cost, ...]
    account: AccountData | None
    versions: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the same as mappings, lists, numbers and texts, which JSON can hold."""
        return asdict(self)
