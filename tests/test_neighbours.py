"""Nothing but private answers tells two neighbours apart: not an error, a warning, a message, a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.record import record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from replay import QUERIES, compare
from typer.testing import CliRunner

import dpcov
from dpcov.cli.app import app
from dpcov.core import Curator
from dpcov.methods.estimate import Estimate
from dpcov.methods.method import Method
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
SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def neighbour(rows: Array, place: int, line: tuple[float, float]) -> Array:
    other = rows.copy()
    other[place] = line
    return other


def released(folder: Path, rows: Array, method: str, **more: Any) -> Callable[[], Any]:
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
        )

    return act


def unresolved(made: dpcov.Release) -> str:
    try:
        return repr(made.unresolved)
    except dpcov.UnresolvedError as error:
        return str(error)


def differences(folder: Path, one: Array, other: Array, method: str, **more: Any) -> list[str]:
    return compare(
        released(folder, one, method, **more), released(folder, other, method, **more), refused=method in MANY
    )


def test_every_method_and_query_is_covered() -> None:
    assert set(OPTIONS) == {method.name for method in dpcov.methods() if method.available}
    assert {"gram", "log_norms", "rows_beyond", "aggregate", "eigenvalues", "first_above"} <= set(QUERIES)


@pytest.mark.parametrize("method", FEW)
@pytest.mark.parametrize("line", [(np.nan, 1.0), (1e308, -1e308), (5e-324, np.inf), (0.0, 0.0)])
def test_a_hostile_row_shows_nowhere(method: str, line: tuple[float, float], tmp_path: Path) -> None:
    assert differences(tmp_path, ROWS, neighbour(ROWS, 3, line), method) == []


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


def commanded(folder: Path, lines: list[str], *more: str) -> Callable[[], Any]:
    """Everything that can be seen of the command line on a CSV file with these lines."""

    def act() -> Any:
        for path in folder.iterdir():
            path.unlink()
        table = folder / "table.csv"
        table.write_text("\n".join(["a,b", *lines]) + "\n")
        made = CliRunner().invoke(
            app, ["release", str(table), "--columns", "a,b", "-o", str(folder / "made.dpcov"), *more]
        )
        table.unlink()
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        return made.exit_code, made.stdout, made.stderr, files

    return act


CELL = st.one_of(
    st.floats(width=64).map(repr), st.sampled_from(["", "NA", "nan", "x", "1e999", "-1e-999", " 1 ", '"2"'])
)


@given(CELL, CELL, st.sampled_from([("--rho", "1", "--method", "gaussian", "--option", "radius=1"),
                                    ("--rho", "4"), ("--rho", "1e-200")]))  # fmt: skip
@SETTINGS
def test_the_command_line_tells_nothing_of_a_cell(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str, options: tuple[str, ...]
) -> None:
    folder = tmp_path_factory.mktemp("command")
    lines = [f"{a!r},{b!r}" for a, b in ROWS.tolist()]
    other = [*lines]
    other[5] = f"{first},{second}"
    refused = "1e-200" in options
    one, two = commanded(folder, lines, *options), commanded(folder, other, *options)
    assert compare(one, two, refused=refused) == []


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
            estimate.second_moment, {**estimate.diagnostics, "trace": exact}, estimate.noise, estimate.tail
        )

    monkeypatch.setattr(Method, "run", leaking)
    assert differences(tmp_path, ROWS, neighbour(ROWS, 3, (0.0, 0.0)), "gaussian") == ["result"]
