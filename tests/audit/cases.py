"""Every private query, method and entry point, with neighbours that differ as much as they can."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from audit.harness import Array, Case, Claim, Program, finest_bit
from typer.testing import CliRunner

import dpcov
from dpcov.cli.app import app
from dpcov.core import (
    BitSource,
    Budget,
    Clipping,
    Curator,
    DpcovError,
    LatticeMap,
    LogNormGrid,
    OSEntropy,
    PrivacyCost,
    Rule,
    Shrinking,
)
from dpcov.sources import ArraySource

RHO = Fraction(1)
EPSILON, DELTA = Fraction(1), Fraction(1, 100)
QUERY_RUNS, METHOD_RUNS, COMMAND_RUNS = 4000, 1000, 300
ZCDP = Claim(rho=RHO)
APPROXIMATE = Claim(epsilon=EPSILON, delta=DELTA)

_FAR = 1e9
_LITTLE = Fraction(1, 10)
_IDENTITY = LatticeMap.identity(2)
_LINE = LatticeMap.identity(1)
_GRID = LogNormGrid(0, 4, 1)
_COMMON = ("half the noise", "seeded generator reused")


def fresh_bits() -> BitSource:
    """Where the noise of a query comes from."""
    return OSEntropy()


def _ask(rows: Array, constant: bool = False) -> Curator:  # noqa: FBT001, FBT002
    budget = Budget(PrivacyCost(Fraction(100), Fraction(1, 2)))
    return Curator(ArraySource(rows, threads=1), budget, fresh_bits(), constant=constant)


def _gram(clipping: Clipping, every: int = 1, rho: Fraction = RHO) -> Program:
    def program(rows: Array) -> list[float]:
        whole = _ask(rows).gram(clipping, rho, purpose="audit", every=every).integers
        entries = [float(whole[0, 0]), float(whole[1, 1]), float(whole[0, 1])]
        return [*entries, entries[0] - entries[1], finest_bit(entries[0])]

    return program


def _log_norms(rho: Fraction) -> Program:
    def program(rows: Array) -> list[float]:
        counts = _ask(rows).log_norms(_IDENTITY, _GRID, rho, purpose="audit").counts
        low, high = float(counts[0]), float(counts[-1])
        return [low, high, low - high, finest_bit(high)]

    return program


def _rows_beyond(rho: Fraction) -> Program:
    def program(rows: Array) -> list[float]:
        count = float(_ask(rows).rows_beyond(_IDENTITY, _GRID, 2, rho, purpose="audit").count)
        return [count, finest_bit(count)]

    return program


def _trace(rows: Array) -> list[float]:
    return [_ask(rows).trace(Clipping(_IDENTITY, 1.0), RHO, purpose="audit").value]


def _eigenvalues(rows: Array) -> list[float]:
    return [*_ask(rows).eigenvalues(Clipping(_IDENTITY, 1.0), RHO, purpose="audit").eigenvalues.tolist()]


def _first_above(rows: Array) -> list[float]:
    # What moves the row lifts all sums but the last, and lowers that one: the worst there is.
    n_bins, others = _GRID.n_bins, 8
    lifted, lowered = [0] * (n_bins - 1) + [1], [1] + [0] * (n_bins - 1)
    found = _ask(rows).first_above(
        _IDENTITY, _GRID, [lifted] * others + [lowered], [1] * (others + 1), epsilon=EPSILON, purpose="audit"
    )
    return [float(others + 1 if found is None else found), float(found == others)]


def _least_buckets(rows: Array) -> list[float]:
    found = _ask(rows).least_eigenvalue_buckets(
        Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit"
    )
    return _counts(found)


def _all_buckets(rows: Array) -> list[float]:
    found = _ask(rows).eigenvalue_buckets(
        Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit"
    )
    return _counts(found[0])


def _counts(buckets: Any) -> list[float]:
    high = sum(float(b.count) for b in buckets if b.upper > 0.1)
    low = sum(float(b.count) for b in buckets if b.upper <= 0.1)
    return [high, low, high - low]


def _subspace(rows: Array) -> list[float]:
    found = _ask(rows).shared_subspace(
        Clipping(_IDENTITY, 1.0), 1, 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit"
    )
    if found is None:
        return [0.0, 0.0]
    return [float(found.count), float(found.count) * (1 if found.projection[0, 0] > 0.5 else -1)]


def _agreement(rows: Array) -> list[float]:
    found = _ask(rows).agreement(Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit")
    return [found.score]


def _aggregate(rows: Array) -> list[float]:
    found = _ask(rows).aggregate(Clipping(_LINE, 2.0), 1, 0.02, epsilon=4, delta=0.2, purpose="audit")
    return [-1.0, 0.0] if found is None else [float(found.second_moment[0, 0]), found.agreement.score]


def _release(method: str, delta: float | None = None, **options: Any) -> Program:
    def program(rows: Array) -> list[float]:
        try:
            made = dpcov.release(
                rows, rho=RHO, delta=delta, method=method, intercept=False, progress=False, **options
            )
        except DpcovError as error:
            return [-float(len(type(error).__name__))] * (rows.shape[1] + 1)
        matrix = made._matrix
        return [*np.diag(matrix).tolist(), float(matrix[0, -1])]

    return program


def _parameter(function: Callable[..., Any], field: str, **budget: Any) -> Program:
    def program(rows: Array) -> list[float]:
        try:
            return [float(getattr(function(rows, progress=False, **budget), field))]
        except DpcovError:
            return [-1.0]

    return program


def _command(rows: Array) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        table, made = Path(folder) / "table.csv", Path(folder) / "made.dpcov"
        np.savetxt(table, rows, delimiter=",", header="a,b", comments="")
        line = [
            "release", str(table), "--rho", "1", "--method", "gaussian", "--option", "radius=1", "--columns",
            "a,b", "--no-intercept", "-o", str(made),
        ]  # fmt: skip
        result = CliRunner().invoke(app, line)
        assert result.exit_code == 0, result.output
        matrix = np.asarray(dpcov.load(made).second_moment())
    return [float(matrix[0, 0]), float(matrix[1, 1]), float(matrix[0, 1])]


def _swapped(rows: Array, row: list[float]) -> Array:
    other = rows.copy()
    other[0] = row
    return other


def _pairs(*lines: list[float]) -> Array:
    return np.array(lines, dtype=np.float64)


_ZEROS = np.zeros((2, 2))
_EAST, _NORTH = _pairs([_FAR, 0], [0, 0]), _pairs([0, _FAR], [0, 0])
_TWINS = np.repeat(_pairs([1, 0]), 20, axis=0)
_THIN = np.column_stack([np.ones(20), 1e-6 * np.arange(-9.5, 10)])
_BULK = 0.05 * np.random.default_rng(0).normal(size=(30, 2))
_UNIT_ROWS = np.repeat(_pairs([1, 0], [0, 1]), 20, axis=0)
_MANY_ROWS = np.repeat(_pairs([1, 0], [0, 1]), 100, axis=0)
_HALVES = np.array([[1.0]] * 24 + [[0.1]] * 24)
_FEW_FAR = np.array([[1.0]] * 390 + [[_FAR]] * 10)
_FEW_LOW = np.array([[1.0]] * 30 + [[0.1]] * 10)
_SHRINK = Clipping(_IDENTITY, 1.0)
_CHAIN = Clipping(_IDENTITY, 1.0, earlier=(Shrinking(_IDENTITY, 4.0), Shrinking(_IDENTITY, 2.0)))

QUERIES = (
    Case("gram", _gram(_SHRINK), _EAST, _NORTH, ZCDP, QUERY_RUNS,
         (*_COMMON, "no sqrt 2", "no clipping", "one release too few"), "far row turned"),
    Case("gram, outlier", _gram(_SHRINK), _EAST, _ZEROS, ZCDP, QUERY_RUNS, ("no clipping",)),
    Case("gram, duplicates", _gram(_SHRINK), _TWINS, _swapped(_TWINS, [0, 1]), ZCDP, QUERY_RUNS,
         ("half the noise",), "one of 20 equal rows turned"),
    Case("gram, least direction", _gram(_SHRINK), _THIN, _swapped(_THIN, [0, _FAR]), ZCDP, QUERY_RUNS,
         ("half the noise",), "a row along the least direction"),
    Case("gram, tail", _gram(_SHRINK), _swapped(_BULK, [_FAR, 0]), _swapped(_BULK, [0, _FAR]), ZCDP,
         QUERY_RUNS, ("half the noise", "no clipping"), "the paper's tail"),
    Case("gram, drop", _gram(Clipping(_IDENTITY, 1.0, Rule.DROP)), _pairs([0.999, 0], [0, 0]),
         _pairs([0, 0.999], [0, 0]), ZCDP, QUERY_RUNS, ("half the noise",), "row at the radius turned"),
    Case("gram, direction", _gram(Clipping(_IDENTITY, 1.0, Rule.DIRECTION)), _pairs([1e-200, 0], [0, 0]),
         _pairs([0, 1e300], [0, 0]), ZCDP, QUERY_RUNS, ("half the noise",), "tiny row for a huge one"),
    Case("gram, beyond the radius", _gram(Clipping(_IDENTITY, 1.0, Rule.TAIL)), _EAST, _NORTH, ZCDP,
         QUERY_RUNS, ("half the noise", "no clipping"), "far row turned"),
    Case("gram, chain", _gram(_CHAIN), _EAST, _NORTH, ZCDP, QUERY_RUNS, ("half the noise",),
         "far row turned"),
    Case("gram, sample", _gram(_SHRINK, every=2), _EAST, _NORTH, ZCDP, QUERY_RUNS,
         ("a tenth of the noise",), "far row turned"),
    Case("histogram of norms", _log_norms(RHO), _EAST, _ZEROS, ZCDP, QUERY_RUNS, (*_COMMON, "no sqrt 2")),
    Case("rows beyond", _rows_beyond(RHO), _EAST, _ZEROS, ZCDP, QUERY_RUNS, _COMMON),
    Case("gram, last bits", _gram(_SHRINK, rho=_LITTLE), _EAST, _ZEROS, Claim(rho=_LITTLE), QUERY_RUNS,
         ("float noise",)),
    Case("histogram, last bits", _log_norms(_LITTLE), _EAST, _ZEROS, Claim(rho=_LITTLE), QUERY_RUNS,
         ("float noise",)),
    Case("trace", _trace, _EAST, _ZEROS, ZCDP, QUERY_RUNS, (*_COMMON, "no clipping")),
    Case("eigenvalues", _eigenvalues, _pairs([_FAR, 0], [_FAR, 0]), _pairs([0, _FAR], [_FAR, 0]), ZCDP,
         QUERY_RUNS, (*_COMMON, "no sqrt 2", "no clipping"), "far twin turned"),
    Case("sparse vector", _first_above, _EAST, _ZEROS, Claim(epsilon=EPSILON), QUERY_RUNS,
         ("a tenth of the noise", "sums without noise"), "all sums move"),
    Case("least eigenvalues of groups", _least_buckets, _HALVES, _swapped(_HALVES, [0.1]), APPROXIMATE,
         QUERY_RUNS, _COMMON, "one group of two heaps moves"),
    Case("least eigenvalues, new bucket", _least_buckets, _HALVES[:24], _swapped(_HALVES[:24], [0.1]),
         APPROXIMATE, QUERY_RUNS, ("rare results shown",), "one of 24 equal rows"),
    Case("eigenvalues of groups", _all_buckets, _HALVES, _swapped(_HALVES, [0.1]), APPROXIMATE,
         QUERY_RUNS, _COMMON, "one group of two heaps moves"),
    Case("subspace of groups", _subspace, _UNIT_ROWS, _swapped(_UNIT_ROWS, [0, 1]), APPROXIMATE,
         QUERY_RUNS, ("seeded generator reused", "a tenth of the noise"), "one group of two heaps moves"),
    Case("agreement of groups", _agreement, np.ones((6, 1)), _swapped(np.ones((6, 1)), [0.1]),
         APPROXIMATE, QUERY_RUNS, _COMMON, "one of 6 equal rows"),
)  # fmt: skip

METHODS = (
    Case("whitening", _release("whitening"), _MANY_ROWS, _swapped(_MANY_ROWS, [0, 1]), ZCDP, METHOD_RUNS,
         _COMMON, "one of 200 rows turned"),
    Case("whitening, outlier", _release("whitening"), _swapped(_MANY_ROWS, [_FAR, 0]),
         _swapped(_MANY_ROWS, [0, 0]), ZCDP, METHOD_RUNS // 2, ("seeded generator reused",)),
    Case("gaussian", _release("gaussian", radius=1.0), _EAST, _NORTH, ZCDP, 3 * METHOD_RUNS,
         (*_COMMON, "no clipping", "one release too few"), "far row turned"),
    Case("recursive", _release("recursive", m=2, radius=1.0, least_eigenvalue=0.2), _UNIT_ROWS,
         _swapped(_UNIT_ROWS, [0, 1]), ZCDP, METHOD_RUNS, _COMMON, "one of 40 rows turned"),
    Case("coinpress", _release("coinpress", largest_eigenvalue=1.0, rounds=1), _EAST, _NORTH, ZCDP,
         METHOD_RUNS, _COMMON, "far row turned"),
    Case("preconditioning", _release("preconditioning", largest_eigenvalue=1.0, least_eigenvalue=1.0),
         _UNIT_ROWS, _swapped(_UNIT_ROWS, [0, 1]), ZCDP, METHOD_RUNS,
         ("a tenth of the noise", "seeded generator reused"), "one of 40 rows turned"),
    Case("separate", _release("separate", radius=1.0), _UNIT_ROWS, _swapped(_UNIT_ROWS, [0, 1]), ZCDP,
         METHOD_RUNS, ("a tenth of the noise", "seeded generator reused"), "one of 40 rows turned"),
    Case("adaptive", _release("adaptive", radius=1.0), _EAST, _NORTH, ZCDP, METHOD_RUNS // 2,
         _COMMON, "far row turned"),
    Case("unbounded", _release("unbounded", delta=0.05), np.random.default_rng(0).normal(size=(600, 1)),
         _swapped(np.random.default_rng(0).normal(size=(600, 1)), [_FAR]),
         Claim(rho=RHO, delta=Fraction(0.05)), 150, (), "far row among 600"),
    Case("covering radius", _parameter(dpcov.covering_radius, "radius", rho=RHO),
         _FEW_FAR, _swapped(_FEW_FAR, [_FAR]), ZCDP, METHOD_RUNS // 2,
         ("a tenth of the noise",), "one far row more than it tells"),
    Case("enclosing ball", _parameter(dpcov.enclosing_ball, "radius", rho=RHO),
         np.ones((1000, 1)), _swapped(np.ones((1000, 1)), [_FAR]), ZCDP, 300, (), "far row among 1000"),
    Case("least eigenvalue",
         _parameter(dpcov.least_eigenvalue, "value", m=1, epsilon=EPSILON, delta=DELTA, radius=1.0),
         _FEW_LOW, _swapped(_FEW_LOW, [0.1]), APPROXIMATE, METHOD_RUNS, ("a tenth of the noise",),
         "one group more than the threshold"),
    Case("subsamplability",
         _parameter(dpcov.subsamplability, "score", m=1, epsilon=EPSILON, delta=DELTA, radius=1.0),
         np.ones((6, 1)), _swapped(np.ones((6, 1)), [0.1]), APPROXIMATE, QUERY_RUNS, _COMMON,
         "one of 6 equal rows"),
    Case("command line", _command, _EAST, _NORTH, ZCDP, COMMAND_RUNS,
         ("a tenth of the noise", "seeded generator reused"), "far row turned"),
)  # fmt: skip

AGGREGATE = Case(
    "subsample and aggregate", _aggregate, np.ones((900, 1)), _swapped(np.ones((900, 1)), [1.005]),
    Claim(rho=Fraction(16), delta=Fraction(0.2)), 100, (), "one of 900 equal rows",
)  # fmt: skip
