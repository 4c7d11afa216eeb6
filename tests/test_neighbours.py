"""Nothing but private answers tells two neighbours apart: not an error, a warning, a message, a file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.cases import to_be_audited
from audit.record import record
from helpers.replay import compare
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from typer.testing import CliRunner

import dpcov
from dpcov import learn
from dpcov.cli.app import app
from dpcov.core import Curator
from dpcov.ledger import Ledger
from dpcov.methods.estimate import Estimate
from dpcov.methods.method import Method
from dpcov.report import render_page, report_data
from dpcov.sources import ArraySource

Array = NDArray[np.float64]

ROWS = np.random.default_rng(0).normal(size=(80, 2)) * [1.0, 30.0]
OPTIONS: dict[str, dict[str, Any]] = {
    "whitening": {"rho": 2},
    "recursive": {"rho": 2, "m": 4, "radius": 50.0, "least_eigenvalue": 0.1},
    "gaussian": {"rho": 1, "radius": 10.0},
    "coinpress": {"rho": 1, "largest_eigenvalue": 900.0},
    "preconditioning": {"rho": 1, "largest_eigenvalue": 900.0, "least_eigenvalue": 0.5},
    "separate": {"rho": 1, "radius": 10.0},
    "adaptive": {"rho": 1, "radius": 10.0},
    "exponential": {"rho": 1, "radius": 10.0, "allow_unvetted": True},
    # These three want many rows.
    "leverage": {"rho": 500, "delta": 0.3, "leverage": 8.0, "allow_unvetted": True},
    "unbounded": {"rho": 50, "delta": 0.3},
    "aggregate": {"rho": 50, "delta": 0.3, "m": 1, "alpha": 0.02, "radius": 2.0},
}
MANY = ("leverage", "unbounded", "aggregate")
FEW = sorted(set(OPTIONS) - set(MANY))
HOSTILE = st.one_of(
    st.floats(width=64),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, 1e-300, 1e150]),
)
PAIR = st.tuples(HOSTILE, HOSTILE)
SETTINGS = settings(max_examples=25)


def neighbour(rows: Array, place: int, line: tuple[float, float]) -> Array:
    other = rows.copy()
    other[place] = line
    return other


def released(folder: Path, rows: NDArray[Any], method: str, **more: Any) -> Callable[[], Any]:
    """Everything about a release that can be seen."""

    def act() -> Any:
        made = dpcov.release(rows, method=method, **{**OPTIONS[method], **more})
        made.save(folder / "made.dpcov")
        return (
            (folder / "made.dpcov").read_bytes(),
            repr(made),
            made._repr_html_(),
            str(made.receipt),
            repr(made.diagnostics),
            unresolved(made),
            render_page(report_data(made, "made.dpcov")),
            {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        )

    return act


def unresolved(made: dpcov.Release) -> str:
    try:
        return repr(made.unresolved)
    except dpcov.UnresolvedError as error:
        return str(error)


def differences(folder: Path, one: NDArray[Any], other: NDArray[Any], method: str, **more: Any) -> list[str]:
    return compare(
        released(folder, one, method, **more), released(folder, other, method, **more), refused=method in MANY
    )


def test_every_method_is_covered() -> None:
    assert set(OPTIONS) == {method.name for method in dpcov.methods() if method.available}


@pytest.mark.parametrize("method", FEW)
@pytest.mark.parametrize("line", [(np.nan, 1.0), (1e308, -1e308), (5e-324, np.inf), (0.0, 0.0)])
def test_a_hostile_row_shows_nowhere(method: str, line: tuple[float, float], tmp_path: Path) -> None:
    assert differences(tmp_path, ROWS, neighbour(ROWS, 3, line), method) == []


@pytest.mark.parametrize("method", FEW)
def test_a_number_beyond_float64_shows_nowhere(method: str, tmp_path: Path) -> None:
    rows = ROWS.astype(np.longdouble)
    other = rows.copy()
    other[3, 0] = np.longdouble("1e400")
    assert differences(tmp_path, rows, other, method) == []


@given(PAIR, st.integers(0, len(ROWS) - 1), st.sampled_from(FEW), st.booleans())
@SETTINGS
def test_no_row_shows_anywhere(
    tmp_path_factory: pytest.TempPathFactory, line: tuple[float, float], place: int, method: str,
    intercept: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("release")
    assert differences(folder, ROWS, neighbour(ROWS, place, line), method, intercept=intercept) == []


@pytest.mark.audit
@pytest.mark.parametrize("method", OPTIONS)
def test_no_row_of_a_hostile_table_shows_anywhere(
    method: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, tried, differing = tmp_path_factory.mktemp("release"), [0], [0]
    base = np.random.default_rng(1).normal(size=(700 if method in MANY else 40, 2))

    @given(st.lists(PAIR, min_size=1, max_size=6), PAIR, st.booleans())
    @settings(SETTINGS, max_examples=60, database=None)
    def fuzz(lines: list[tuple[float, float]], line: tuple[float, float], intercept: bool) -> None:  # noqa: FBT001
        rows = base.copy()
        rows[: len(lines)] = lines
        tried[0] += 1
        found = differences(folder, rows, neighbour(rows, 0, line), method, intercept=intercept)
        differing[0] += bool(found)
        assert found == []

    try:
        fuzz()
    finally:
        record("neighbours", method, pairs=tried[0], differing=differing[0])


def asked(function: Callable[..., Any], rows: Array, **options: Any) -> Callable[[], Any]:
    """Everything about a private parameter that can be seen."""
    return lambda: repr(function(rows, **options))


def fitted(estimator: type, rows: Array) -> Callable[[], Any]:
    """Everything that a fitted estimator learned."""

    def act() -> Any:
        made = estimator(rho=20, method="gaussian", release_options={"radius": 3.0})
        # Columns of one size, so that noise hides none of them.
        table = rows / [1.0, 30.0]
        made.fit(table[:, 1:], table[:, 0]) if hasattr(made, "predict") else made.fit(table)
        learned = {name: repr(value) for name, value in vars(made).items() if name.endswith("_")}
        return learned, repr(made), str(made.receipt_)

    return act


ENTRIES: dict[str, Callable[[Array], Callable[[], Any]]] = {
    "covering_radius": lambda rows: asked(dpcov.covering_radius, rows, rho=1),
    "enclosing_ball": lambda rows: asked(dpcov.enclosing_ball, rows, rho=50),
    "least_eigenvalue": lambda rows: asked(
        dpcov.least_eigenvalue, rows, m=2, epsilon=8, delta=0.1, radius=50.0
    ),
    "subsamplability": lambda rows: asked(
        dpcov.subsamplability, rows, m=1, epsilon=1, delta=0.1, radius=50.0
    ),
    "PrivateCovariance": lambda rows: fitted(learn.PrivateCovariance, rows),
    "PrivatePCA": lambda rows: fitted(learn.PrivatePCA, rows),
    "PrivateWhitener": lambda rows: fitted(learn.PrivateWhitener, rows),
    "PrivateScaler": lambda rows: fitted(learn.PrivateScaler, rows),
    "PrivateImputer": lambda rows: fitted(learn.PrivateImputer, rows),
    "PrivateLinearRegression": lambda rows: fitted(learn.PrivateLinearRegression, rows),
    "PrivateRidge": lambda rows: fitted(learn.PrivateRidge, rows),
}


def test_every_entry_is_covered() -> None:
    named = {name.rpartition(".")[2] for name in to_be_audited() if name.startswith("dpcov.")}
    # These two are a release and nothing else.
    assert set(ENTRIES) == named - {"second_moment", "covariance"}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("line", [(np.nan, 1.0), (1e308, -1e308), (0.0, 0.0)])
def test_a_hostile_row_shows_in_no_parameter_and_no_estimator(entry: str, line: tuple[float, float]) -> None:
    make = ENTRIES[entry]
    assert compare(make(ROWS), make(neighbour(ROWS, 3, line))) == []


@pytest.mark.audit
@pytest.mark.parametrize("entry", ENTRIES)
def test_no_row_shows_in_a_parameter_or_an_estimator(entry: str) -> None:
    tried, differing = [0], [0]

    @given(st.lists(PAIR, min_size=1, max_size=6), PAIR)
    @settings(SETTINGS, max_examples=60, database=None)
    def fuzz(lines: list[tuple[float, float]], line: tuple[float, float]) -> None:
        rows = ROWS.copy()
        rows[: len(lines)] = lines
        tried[0] += 1
        found = compare(ENTRIES[entry](rows), ENTRIES[entry](neighbour(rows, 0, line)), refused=True)
        differing[0] += bool(found)
        assert found == []

    try:
        fuzz()
    finally:
        record("neighbours", entry, pairs=tried[0], differing=differing[0])


TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")


def commanded(folder: Path, lines: list[str], *more: str) -> Callable[[], Any]:
    """Everything that can be seen of the command line on a CSV file with these lines, the time left out."""

    def act() -> Any:
        for path in folder.iterdir():
            path.unlink()
        ledger = Ledger.create(folder / "budget.db")
        ledger.add_dataset("people", rho=10)
        table = folder / "table.csv"
        table.write_text("\n".join(["a,b", *lines]) + "\n")
        made = CliRunner().invoke(
            app,
            ["release", str(table), "--columns", "a,b", "-o", str(folder / "made.dpcov"), "--ledger",
             str(ledger.path), "--dataset", "people", *more],
        )  # fmt: skip
        table.unlink()
        charges = [(e.kind, e.method, e.purpose, str(e.cost), e.private) for e in ledger.history("people")]
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        # A ledger's lines hold the time; what else it holds was compared above.
        contents = {
            path.name: TIME.sub("", path.read_bytes().decode("latin-1"))
            for path in sorted(folder.iterdir())
            if not path.name.startswith("budget.db")
        }
        return made.exit_code, TIME.sub("", made.stdout), made.stderr, charges, sizes, contents

    return act


CELL = st.one_of(
    st.floats(width=64).map(repr), st.sampled_from(["", "NA", "nan", "x", "1e999", "-1e-999", " 1 ", '"2"'])
)


COMMANDS = st.sampled_from(
    [("--rho", "1", "--method", "gaussian", "--option", "radius=1"), ("--rho", "4"), ("--rho", "4", "--json"),
     ("--rho", "1e-200"), ("--rho", "20")]
)  # fmt: skip


def command_differences(folder: Path, cells: tuple[str, str], options: tuple[str, ...]) -> list[str]:
    lines = [f"{a!r},{b!r}" for a, b in ROWS.tolist()]
    other = [*lines]
    other[5] = ",".join(cells)
    # The last two spend too little or too much.
    refused = options[1] in {"1e-200", "20"}
    return compare(commanded(folder, lines, *options), commanded(folder, other, *options), refused=refused)


@given(CELL, CELL, COMMANDS)
@settings(SETTINGS, max_examples=15)
def test_the_command_line_tells_nothing_of_a_cell(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str, options: tuple[str, ...]
) -> None:
    assert command_differences(tmp_path_factory.mktemp("command"), (first, second), options) == []


@pytest.mark.audit
def test_the_command_line_tells_nothing_of_many_cells(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, tried, differing = tmp_path_factory.mktemp("command"), [0], [0]

    @given(CELL, CELL, COMMANDS)
    @settings(SETTINGS, max_examples=150, database=None)
    def fuzz(first: str, second: str, options: tuple[str, ...]) -> None:
        tried[0] += 1
        found = command_differences(folder, (first, second), options)
        differing[0] += bool(found)
        assert found == []

    try:
        fuzz()
    finally:
        record("neighbours", "command line", pairs=tried[0], differing=differing[0])


def test_a_warning_that_tells_of_a_row_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = ArraySource.scan

    def warning(self: ArraySource, *arguments: Any) -> Any:
        if not all(np.isfinite(column).all() for column in self._blocks_for_tests()):  # type: ignore[attr-defined]
            warnings.warn("a row is not finite", stacklevel=2)
        return scan(self, *arguments)

    tables = iter([ROWS, neighbour(ROWS, 3, (np.nan, 1.0))])
    monkeypatch.setattr(ArraySource, "_blocks_for_tests", lambda _self: next(tables).T, raising=False)
    monkeypatch.setattr(ArraySource, "scan", warning)
    assert differences(tmp_path, ROWS, neighbour(ROWS, 3, (np.nan, 1.0)), "gaussian") == ["warnings"]


def test_a_diagnostic_that_tells_of_a_row_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Method.run
    tables = iter([ROWS, neighbour(ROWS, 3, (0.0, 0.0))])

    def leaking(self: Method, curator: Curator, *arguments: Any, **options: Any) -> Estimate:
        estimate = run(self, curator, *arguments, **options)
        exact = float(np.square(next(tables)).sum())
        return Estimate(
            estimate.second_moment, {**estimate.diagnostics, "trace": exact}, estimate.noise, estimate.losses
        )

    monkeypatch.setattr(Method, "run", leaking)
    assert differences(tmp_path, ROWS, neighbour(ROWS, 3, (0.0, 0.0)), "gaussian") == ["result"]
