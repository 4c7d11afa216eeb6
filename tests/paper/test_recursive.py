from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.core import Budget, Clipping, Curator, OSEntropy, Query, SeededBits, resolve_budget
from dpcov.methods import find_method
from dpcov.paper.queries import ShrunkGram
from dpcov.paper.recursive import estimate_recursive
from dpcov.sources import ArraySource

Rows = NDArray[np.float64]


def ellipsoid(n_rows: int, d: int, condition: float) -> Rows:
    """Rows on the surface of an ellipsoid, whose leverages are at most d: no tail for m >= d."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.sqrt(d * np.geomspace(1, condition, d))


def relative_error(rows: Rows, matrix: NDArray[np.float64]) -> float:
    root = np.linalg.inv(np.linalg.cholesky(rows.T @ rows / len(rows)))
    return float(np.linalg.norm(root @ matrix @ root.T - np.eye(len(root)), 2))


class Listening(Curator):
    """A real curator that remembers what it was asked."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.asked: list[Clipping] = []

    def ask(self, *queries: Query[Any]) -> Any:
        self.asked += [query.clipping for query in queries if isinstance(query, ShrunkGram)]
        return super().ask(*queries)


def listening(rows: Rows, *, rho: float, delta: float = 0.0, seed: int | None = 0) -> Listening:
    limit = resolve_budget(rho=rho, delta=delta)
    bits = OSEntropy() if seed is None else SeededBits(np.random.default_rng(seed))
    return Listening(ArraySource(rows), Budget(limit), bits)


@pytest.mark.parametrize("constants", ["repaired", "paper"])
def test_the_recursion_is_as_accurate_as_it_promises(constants: str) -> None:
    rows = ellipsoid(200_000, 4, 1e8)
    # m rows of the surface keep the second moment: leverages are at most d = 4.
    options: dict[str, Any] = {"m": 30, "alpha": 0.5, "radius": 2e4 * 1.0001, "least_eigenvalue": 0.9}
    subject = listening(rows, rho=100)
    estimate = estimate_recursive(subject, **options, constants=constants)
    facts = estimate.diagnostics
    assert facts["rounds"] > 8
    if constants == "paper":
        assert facts["guaranteed_error"] == math.inf
        assert facts["guarantee"].startswith("None: the proof")
    else:
        # Holds with probability 0.95; the seed is fixed.
        assert relative_error(rows, estimate.second_moment) <= facts["guaranteed_error"] < 0.5
    # One release with all of the budget is useless here: that is what the rounds are for.
    noise = np.random.default_rng(0)
    flat = dpcov.release(rows, rho=100, method="gaussian", radius=2e4, intercept=False, rng=noise)
    assert relative_error(rows, flat.second_moment().values) > 10


@pytest.mark.parametrize(
    ("n_rows", "radius", "m", "alpha", "rho"),
    [(2000, 1.5, 2.0, 0.02, 20.0), (400, 1.5, 2.0, 0.02, 20.0), (3000, 150.0, 2.0, 0.5, 8000.0)],
)
def test_the_guaranteed_error_holds_as_often_as_it_says(
    n_rows: int, radius: float, m: float, alpha: float, rho: float
) -> None:
    rows = ellipsoid(n_rows, 2, radius**2 / 2.01)
    # No row is in the tail: leverages are about 2 at most.
    told: dict[str, Any] = {"m": m, "alpha": alpha, "radius": radius, "least_eigenvalue": 0.9}
    assert np.linalg.norm(rows, axis=1).max() <= radius
    whole = rows.T @ rows / n_rows
    assert np.linalg.eigvalsh(whole)[0] >= 0.9
    assert np.einsum("ni,ij,nj->n", rows, np.linalg.inv(whole), rows).max() <= m * (1 + alpha) * 1.02
    exceeded, runs = 0, 150
    for seed in range(runs):
        estimate = estimate_recursive(listening(rows, rho=rho, seed=seed), **told)
        promised = estimate.diagnostics["guaranteed_error"]
        exceeded += relative_error(rows, estimate.second_moment) > promised
    # Were it exceeded in more than 5% of runs, at most 1 of 150 would show in 1 of 200 tests.
    assert exceeded <= 1
    # Explicit, with the probability of failure shared by rounds and release: not the noise's mean.
    kappa, rounds = radius**2 / ((1 - alpha) * 0.9), 0
    while kappa > 550 * m:
        kappa, rounds = kappa * 3 / 7, rounds + 1
    norm = math.sqrt(4) + math.sqrt(2 * math.log(2 / 0.025))
    assert promised == pytest.approx(kappa * norm * math.sqrt((rounds + 1) / rho) / n_rows)
    assert estimate.diagnostics["guarantee_fails"] == 0.05
    assert "With probability 0.95" in estimate.diagnostics["guarantee"]


def test_where_the_theorem_promises_nothing_that_is_said_in_words() -> None:
    rows = ellipsoid(2000, 2, 1e6)
    estimate = estimate_recursive(listening(rows, rho=1), m=20, radius=1.5e3, least_eigenvalue=0.9)
    assert estimate.diagnostics["guaranteed_error"] == math.inf
    assert "promises nothing below" in estimate.diagnostics["guarantee"]


def test_a_least_eigenvalue_found_privately_is_divided_by_what_a_group_may_exceed() -> None:
    rows = ellipsoid(40_000, 2, 100)
    for alpha in (0.5, 0.3):
        subject = listening(rows, rho=20, delta=1e-6)
        found = estimate_recursive(subject, m=50, alpha=alpha, radius=15.0).diagnostics["least_eigenvalue"]
        # Ends of buckets are powers of 1 - alpha.
        power = math.log(found * (1 + alpha)) / math.log(1 - alpha)
        assert power == pytest.approx(round(power), abs=1e-6)


def test_only_the_tail_shrinks() -> None:
    rows = ellipsoid(200_000, 4, 1e8)
    # Rows a thousand times longer than others in the least direction: the tail.
    rows[:40, 0] = 1e4
    subject = listening(rows, rho=100)
    m = 30
    estimate_recursive(subject, m=m, radius=2.1e4, least_eigenvalue=0.9)
    inverse = np.linalg.inv(rows.T @ rows / len(rows))
    leverage = np.einsum("ni,ij,nj->n", rows, inverse, rows)
    shrunk = np.zeros(len(rows), dtype=np.bool_)
    # The first clipping is the input's ball; from the second on a longer row is a shrunk one.
    for clipping in subject.asked[1:]:
        lengths = np.linalg.norm(rows @ clipping.lattice_map.matrix().T, axis=1)
        shrunk |= lengths > clipping.radius * (1 + 1e-6)
    assert shrunk.any()
    assert leverage[shrunk].min() > m * 1.5
    assert set(np.flatnonzero(shrunk)) <= set(range(40))


@pytest.mark.parametrize(
    ("radius", "least", "rounds"), [(1.0, 10.0, 1), (1e-3, 1.0, 1), (1e3, 1.0, None), (1e8, 1e-3, None)]
)
def test_every_release_gets_the_same_share_and_the_sum_is_the_budget(
    radius: float, least: float, rounds: int | None
) -> None:
    rows = ellipsoid(2000, 3, 10)
    subject = listening(rows, rho=0.7, seed=None)
    estimate = estimate_recursive(subject, m=20, radius=radius, least_eigenvalue=least)
    charges = subject.receipt().charges
    assert len(charges) == estimate.diagnostics["rounds"] == len(subject.asked)
    if rounds is not None:
        assert len(charges) == rounds
    assert subject.receipt().spent.rho == Fraction(0.7)
    assert len({charge.cost.rho for charge in charges}) == 1
    # Every radius is 3/7 of the one before, squared, and the last one is at most C.
    squares = [clipping.radius**2 for clipping in subject.asked]
    assert np.allclose(np.array(squares[1:]) / squares[:-1], 3 / 7)
    assert squares[0] == pytest.approx(2 * radius**2 / least)
    assert squares[-1] <= 640 * 20


def test_radius_and_least_eigenvalue_are_found_privately() -> None:
    rows = ellipsoid(100_000, 3, 1e4)
    subject = listening(rows, rho=20, delta=1e-6)
    estimate = estimate_recursive(subject, m=200, alpha=0.5)
    receipt = subject.receipt()
    assert receipt.spent.rho == 20
    assert receipt.spent.delta == Fraction(1e-6)
    purposes = {charge.purpose for charge in receipt.charges}
    assert {"covering radius", "least eigenvalue", "the released matrix"} <= purposes
    assert 0.1 < estimate.diagnostics["least_eigenvalue"] <= 1.5
    assert relative_error(rows, estimate.second_moment) < 0.5


def test_an_epsilon_budget_is_kept() -> None:
    rows = ellipsoid(100_000, 2, 100)
    choices: list[dict[str, Any]] = [{}, {"radius": 15.0}, {"radius": 15.0, "least_eigenvalue": 0.5}]
    for options in choices:
        result = dpcov.release(rows, epsilon=3, delta=1e-6, method="recursive", m=100, **options)
        assert result.receipt.epsilon(1e-6 * (1 + 1e-9)) <= 3.0


def test_a_table_of_one_kind_of_row_gives_no_error() -> None:
    for value in (0.0, 1.0, np.nan, 1e300):
        rows = np.full((1000, 2), value)
        estimate = estimate_recursive(
            listening(rows, rho=1, seed=None), m=10, radius=1e4, least_eigenvalue=1.0
        )
        assert np.isfinite(estimate.second_moment).all()
        assert estimate.diagnostics["guarantee"]


GOOD: dict[str, Any] = {"m": 20, "alpha": 0.5, "radius": 10.0, "least_eigenvalue": 1.0}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no m, few rows": ({"m": None, "rho": 0.1}, "a search for m needs .* Give m"),
    "no m, hardly any budget": ({"m": None, "rho": 0.001}, "compares 8192 at most, .* a larger budget"),
    "no m, but beta": ({"m": None, "beta": 0.1}, "beta needs m"),
    "no m, no delta": ({"m": None, "least_eigenvalue": None}, "delta"),
    "zero m": ({"m": 0}, "m must"),
    "m is text": ({"m": "x"}, "m must"),
    "infinite m": ({"m": math.inf}, "m must"),
    "m beyond the rows": ({"m": 2001}, "m must"),
    "alpha": ({"alpha": 0.51}, "alpha must be at most 1/2"),
    "negative alpha": ({"alpha": -0.1}, "alpha"),
    "radius": ({"radius": 0}, "radius"),
    "wide radius": ({"radius": 1e141}, "radius"),
    "least eigenvalue": ({"least_eigenvalue": -1.0}, "least_eigenvalue"),
    "nan": ({"least_eigenvalue": math.nan}, "least_eigenvalue"),
    "constants": ({"constants": "mine"}, "constants"),
    "no delta": ({"least_eigenvalue": None}, "delta"),
    "one group": ({"m": 1500, "least_eigenvalue": None, "delta": 1e-6}, "two groups"),
    "one group, no radius": (
        {"m": 1500, "least_eigenvalue": None, "radius": None, "delta": 1e-6},
        "two groups",
    ),
    "few groups": (
        {"m": 50, "least_eigenvalue": None, "delta": 1e-6, "rho": 0.5},
        "40 groups of m=50 rows are too few .* use groups of at most m=",
    ),
    "few groups, no radius": (
        {"m": 50, "least_eigenvalue": None, "radius": None, "delta": 1e-6, "rho": 0.5},
        "too few to find the least eigenvalue",
    ),
    "few rows": (
        {"m": 2, "least_eigenvalue": None, "delta": 1e-6, "rho": 1e-4},
        "use a table of at least",
    ),
    "beta": ({"beta": 2.0, "radius": None}, "beta"),
    "beta is text": ({"beta": "x", "radius": None}, "beta"),
    "far apart": ({"radius": 1e150, "least_eigenvalue": 1e-10}, "do not fit"),
    "overflow": ({"radius": 1e200}, "do not fit"),
    "underflow": ({"radius": 1e-170}, "do not fit"),
    "least of all": ({"least_eigenvalue": 5e-324}, "do not fit"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused_before_anything_is_spent(change: dict[str, Any], message: str) -> None:
    options = {**GOOD, **change}
    subject = listening(ellipsoid(2000, 2, 10), rho=options.pop("rho", 100), delta=options.pop("delta", 0.0))
    with pytest.raises(dpcov.ArgumentError, match=message):
        find_method("recursive").run(subject, options)
    assert subject.receipt().charges == ()


def test_a_least_eigenvalue_that_fits_no_row_gets_no_answer() -> None:
    subject = listening(ellipsoid(2000, 2, 10), rho=100)
    with pytest.raises(dpcov.NoAnswerError, match="does not fit"):
        estimate_recursive(subject, m=20, least_eigenvalue=1e-300)
    assert {charge.purpose for charge in subject.receipt().charges} == {"covering radius"}
