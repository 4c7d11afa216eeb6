"""Every method, every function and estimator that takes rows, and the command line, with their mutants."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from audit.harness import Array, Case, Claim, Program
from audit.queries import (
    APPROXIMATE,
    COMMON,
    DELTA,
    EPSILON,
    FEW_RUNS,
    GDP,
    METHOD_RUNS,
    NOISE_FOR_THE_WORST,
    QUERY_RUNS,
    RHO,
    TOO_CAREFUL,
    ZCDP,
)
from audit.tables import (
    BALANCED,
    CLOUD_EAST,
    CLOUD_NORTH,
    EAST,
    FAR,
    FAR_EAST,
    FARTHER_NORTH,
    FEW_FAR,
    FEW_LOW,
    MANY_ROWS,
    NORMAL,
    NORTH,
    TWINS,
    UNIT_ROWS,
    ones,
    swapped,
)
from helpers.transcripts import overheard
from typer.testing import CliRunner

import dpcov
from dpcov import learn
from dpcov.cli.app import app
from dpcov.core import DpcovError

# The budget at which a thousand runs prove the largest share of what is lost.
MUCH = Fraction(4)
_STRONG = ("a tenth of the noise", "seeded generator reused")
_SEEDED = ("seeded generator reused",)
_ONE_RELEASE = (
    "It makes the release that whitening is audited with, where half the noise and a missed charge show. What"
    " each of its answers tells is compared with what was charged for it, exactly "
    "(`tests/test_transcripts.py`): a few runs are enough here."
)
_MANY_QUERIES = (
    "Each of its queries has a small share of the budget, and is audited on its own with all of it. These "
    "neighbours show one share at a time, so that half the noise escapes."
)


def released(method: str, delta: Fraction | None = None, rho: Fraction = RHO, **options: Any) -> Program:
    """Return the program that releases rows by a method, and shows entries of the matrix."""

    def program(rows: Array) -> list[float]:
        try:
            made = dpcov.release(
                rows, rho=rho, delta=delta, method=method, intercept=False, progress=False, **options
            )
        except DpcovError as error:
            return [-float(len(type(error).__name__))] * (rows.shape[1] + 2)
        diagonal = np.diag(made._matrix)
        return [*diagonal.tolist(), float(made._matrix[0, -1]), float(diagonal[0] - diagonal[-1])]

    return program


def _parameter(function: Callable[..., Any], field: str, **budget: Any) -> Program:
    def program(rows: Array) -> list[float]:
        try:
            return [float(getattr(function(rows, progress=False, **budget), field))]
        except DpcovError:
            return [-1.0]

    return program


def _matrix_of(function: Callable[..., Array]) -> Program:
    def program(rows: Array) -> list[float]:
        matrix = function(rows, rho=RHO, method="gaussian", radius=1.0, progress=False)
        return [*np.diag(matrix).tolist(), float(matrix[0, -1])]

    return program


def _fitted(estimator: type, *attributes: str, target: bool = False, default: bool = False) -> Program:
    """Fit an estimator by the default, or by "gaussian".

    If it has a target, that is the first column, and the last where all answers are heard: a release has it
    last, and who listens must know the order of the columns.
    """
    arguments = (
        {"rho": RHO, "release_options": {"progress": False}}
        if default
        else {"rho": RHO, "method": "gaussian", "release_options": {"radius": 1.0, "progress": False}}
    )

    def program(rows: Array) -> list[float]:
        made = estimator(**arguments)
        try:
            x, y = (rows[:, :-1], rows[:, -1]) if default else (rows[:, 1:], rows[:, 0])
            made.fit(x, y) if target else made.fit(rows)
        except dpcov.UnresolvedError:
            return [-1.0] * len(attributes)
        return [float(np.ravel(getattr(made, name))[0]) for name in attributes]

    return program


def _command(*options: str) -> Program:
    def program(rows: Array) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            table, made = Path(folder) / "table.csv", Path(folder) / "made.dpcov"
            np.savetxt(table, rows, delimiter=",", header="a,b", comments="")
            line = ["release", str(table), *options, "--columns", "a,b", "--no-intercept", "-o", str(made)]
            result = CliRunner().invoke(app, line)
            # One far row may be all that noise shows, in which case nothing is usable.
            assert result.exit_code in {0, 6}, result.output
            if result.exit_code:
                return [-1.0] * 3
            matrix = np.asarray(dpcov.load(made).second_moment())
        return [float(matrix[0, 0]), float(matrix[1, 1]), float(matrix[0, 1])]

    return program


def all_answers(program: Program, one: Array, other: Array) -> Program:
    """Return what all answers of a run tell about which neighbour it is: log-likelihood ratios."""

    def listening(rows: Array) -> list[float]:
        with overheard(one, other) as asked:
            program(rows)
        heard = [answer for together in asked for answer in together.heard]
        matrices = sum(answer.log_ratio for answer in heard if answer.query == "Gram")
        return [sum(answer.log_ratio for answer in heard), matrices]

    return listening


def _answers_of_the_default(name: str, program: Program) -> tuple[Case]:
    """Return the case of a program that makes one release by the default."""
    heard = all_answers(program, CLOUD_EAST, CLOUD_NORTH)
    return (
        Case(f"{name}, all answers", heard, CLOUD_EAST, CLOUD_NORTH, GDP, FEW_RUNS,
             ("a tenth of the noise",), "far row turned", _ONE_RELEASE, mutant_runs=150),
    )  # fmt: skip


_METHODS: dict[str, tuple[Case, ...]] = {
    "method whitening": (
        Case("whitening", released("whitening"), MANY_ROWS, swapped(MANY_ROWS, [0, 1]), GDP,
             METHOD_RUNS * 3 // 2, COMMON, "one of 200 rows turned", mutant_runs=4 * METHOD_RUNS),
        Case("whitening, outlier", released("whitening"), swapped(MANY_ROWS, [FAR, 0]),
             swapped(MANY_ROWS, [0, 0]), GDP, METHOD_RUNS // 2, _SEEDED),
        Case("whitening, all answers",
             all_answers(released("whitening", rho=MUCH), FAR_EAST, FARTHER_NORTH), FAR_EAST, FARTHER_NORTH,
             Claim(rho=MUCH, gaussian=True), METHOD_RUNS,
             ("half the noise", "asked twice, paid once", "no clipping"), "far row turned",
             mutant_runs=METHOD_RUNS // 2),
    ),
    "method gaussian": (
        Case("gaussian", released("gaussian", radius=1.0), swapped(UNIT_ROWS, [FAR, 0]),
             swapped(UNIT_ROWS, [0, FAR]), GDP, 3 * METHOD_RUNS,
             (*COMMON, "no clipping", "one release too few"), "far row among 40 turned"),
    ),
    "method recursive": (
        Case("recursive", released("recursive", m=2, radius=1.0, least_eigenvalue=0.2), UNIT_ROWS,
             swapped(UNIT_ROWS, [0, 1]), GDP, METHOD_RUNS, COMMON, "one of 40 rows turned"),
    ),
    "method coinpress": (
        Case("coinpress", released("coinpress", largest_eigenvalue=1.0, rounds=1), EAST, NORTH, GDP,
             METHOD_RUNS, COMMON, "far row turned"),
    ),
    "method preconditioning": (
        Case("preconditioning",
             released("preconditioning", largest_eigenvalue=1.0, least_eigenvalue=1.0),
             swapped(UNIT_ROWS, [5, 0]), swapped(UNIT_ROWS, [0, 5]), GDP, METHOD_RUNS, _STRONG,
             "row near the radius turned"),
    ),
    "method separate": (
        Case("separate", released("separate", radius=1.0), UNIT_ROWS, swapped(UNIT_ROWS, [0, 1]), GDP,
             METHOD_RUNS, _STRONG, "one of 40 rows turned"),
    ),
    "method adaptive": (
        Case("adaptive", released("adaptive", radius=1.0), EAST, NORTH, ZCDP, METHOD_RUNS // 2, _STRONG,
             "far row turned"),
    ),
    "method unbounded": (
        Case("unbounded", released("unbounded", delta=Fraction(1, 20)), NORMAL, swapped(NORMAL, [FAR]),
             Claim(rho=RHO, delta=Fraction(1, 20)), 2 * FEW_RUNS, _SEEDED, "far row among 600",
             _MANY_QUERIES),
    ),
    "method aggregate": (
        Case("aggregate", released("aggregate", delta=Fraction(1, 5), m=1, alpha=0.0099, radius=2.0),
             ones(850), swapped(ones(850), [1.009]), Claim(rho=RHO, delta=Fraction(1, 5)), FEW_RUNS * 3 // 2,
             _SEEDED, "one of 850 equal rows", NOISE_FOR_THE_WORST),
    ),
    "method exponential": (
        Case("exponential", released("exponential", radius=1.0, allow_unvetted=True), TWINS,
             swapped(TWINS, [0, 1]), Claim(epsilon=Fraction(math.sqrt(2))), 2 * METHOD_RUNS, _STRONG,
             "one of 20 equal rows turned"),
    ),
    "method leverage": (
        Case("leverage", released("leverage", delta=Fraction(1, 500), leverage=1.0, allow_unvetted=True),
             swapped(ones(700), [1.64]), swapped(ones(700), [0]), Claim(rho=RHO, delta=Fraction(1, 500)),
             METHOD_RUNS, ("moment without noise", "seeded generator reused"),
             "row of the highest leverage for zero", TOO_CAREFUL),
    ),
}  # fmt: skip

_FUNCTIONS: dict[str, tuple[Case, ...]] = {
    "dpcov.second_moment": (
        Case("second moment", _matrix_of(dpcov.second_moment), swapped(UNIT_ROWS, [FAR, 0]),
             swapped(UNIT_ROWS, [0, FAR]), GDP, METHOD_RUNS, COMMON, "far row among 40 turned"),
    ),
    "dpcov.covariance": (
        Case("covariance", _matrix_of(dpcov.covariance), BALANCED, swapped(BALANCED, [0, 1]), GDP,
             METHOD_RUNS, _STRONG, "one of 80 rows turned"),
    ),
    "dpcov.covering_radius": (
        Case("covering radius", _parameter(dpcov.covering_radius, "radius", rho=RHO), FEW_FAR,
             swapped(FEW_FAR, [FAR]), GDP, METHOD_RUNS // 2, ("a tenth of the noise",),
             "one far row more than it tells"),
    ),
    "dpcov.enclosing_ball": (
        Case("enclosing ball", _parameter(dpcov.enclosing_ball, "radius", rho=RHO), ones(1000),
             swapped(ones(1000), [FAR]), GDP, FEW_RUNS, _SEEDED, "far row among 1000", _MANY_QUERIES),
    ),
    "dpcov.least_eigenvalue": (
        Case("least eigenvalue",
             _parameter(dpcov.least_eigenvalue, "value", m=1, epsilon=EPSILON, delta=DELTA, radius=1.0),
             FEW_LOW, swapped(FEW_LOW, [0.1]), APPROXIMATE, METHOD_RUNS, ("a tenth of the noise",),
             "one group more than the threshold"),
    ),
    "dpcov.subsamplability": (
        Case("subsamplability",
             _parameter(dpcov.subsamplability, "score", m=1, epsilon=EPSILON, delta=DELTA, radius=1.0),
             ones(44), swapped(ones(44), [0.1]), APPROXIMATE, QUERY_RUNS, COMMON, "one of 44 equal rows"),
    ),
    "dpcov release": (
        Case("command line", _command("--rho", "1", "--method", "gaussian", "--option", "radius=1"),
             swapped(UNIT_ROWS, [FAR, 0]), swapped(UNIT_ROWS, [0, FAR]), GDP, FEW_RUNS, _STRONG,
             "far row among 40 turned"),
        *_answers_of_the_default("command line", _command("--rho", "1")),
    ),
}  # fmt: skip

_FITS: dict[type, Program] = {
    learn.PrivateCovariance: _fitted(learn.PrivateCovariance, "location_", "covariance_"),
    learn.PrivatePCA: _fitted(learn.PrivatePCA, "mean_", "explained_variance_"),
    learn.PrivateWhitener: _fitted(learn.PrivateWhitener, "mean_", "whitening_"),
    learn.PrivateScaler: _fitted(learn.PrivateScaler, "mean_", "scale_"),
    learn.PrivateImputer: _fitted(learn.PrivateImputer, "statistics_"),
    learn.PrivateLinearRegression: _fitted(learn.PrivateLinearRegression, "intercept_", "coef_", target=True),
    learn.PrivateRidge: _fitted(learn.PrivateRidge, "intercept_", "coef_", target=True),
}
# All estimators fit through the same release: one with a target and one without.
_FITS_BY_DEFAULT: dict[type, tuple[Case, ...]] = {
    estimator: _answers_of_the_default(estimator.__name__, _fitted(estimator, target=target, default=True))
    for estimator, target in ((learn.PrivateCovariance, False), (learn.PrivateLinearRegression, True))
}
_ESTIMATORS = {
    f"dpcov.learn.{estimator.__name__}": (
        Case(estimator.__name__, program, BALANCED, swapped(BALANCED, [-1, 0]), GDP, METHOD_RUNS, COMMON,
             "one of 80 rows turned round"),
        *_FITS_BY_DEFAULT.get(estimator, ()),
    )
    for estimator, program in _FITS.items()
}  # fmt: skip

ENTRIES = {**_METHODS, **_FUNCTIONS, **_ESTIMATORS}
