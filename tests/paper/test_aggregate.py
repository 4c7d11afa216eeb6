from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.core import Budget, Curator, OSEntropy, Query, resolve_budget
from dpcov.methods import find_method
from dpcov.paper.aggregate import estimate_aggregate
from dpcov.sources import ArraySource

Rows = NDArray[np.float64]


def normal_rows(n_rows: int = 300_000, d: int = 1) -> Rows:
    return np.random.default_rng(0).normal(size=(n_rows, d)) @ np.diag(10.0 ** -np.arange(d))


GOOD: dict[str, Any] = {"method": "aggregate", "m": 500, "alpha": 0.2, "rho": 400, "delta": 1e-6}


@pytest.mark.parametrize(
    ("options", "d", "n_rows"),
    [
        ({"radius": 6.0}, 1, 300_000),
        ({}, 1, 300_000),
        ({"radius": 6.0, "intercept": True}, 1, 400_000),
    ],
)
def test_an_aggregate_is_within_its_guaranteed_error(options: dict[str, Any], d: int, n_rows: int) -> None:
    rows = normal_rows(n_rows, d)
    given = {"intercept": False, **GOOD, **options}
    results = [dpcov.release(rows, **given, rng=np.random.default_rng(seed)) for seed in range(2)]
    whole = np.column_stack([rows, np.ones(n_rows)]) if given["intercept"] else rows
    root = np.linalg.inv(np.linalg.cholesky(whole.T @ whole / n_rows))
    for result in results:
        promised = result.diagnostics["guaranteed_error"]
        error = np.linalg.norm(root @ result.second_moment() @ root.T - np.eye(len(root)), 2)
        # Holds with probability 0.98; seeds are fixed.
        assert error <= promised
        assert promised > 0.2
        assert result.diagnostics["noise_scale"] > 0
        receipt = result.receipt
        assert receipt.spent.fits_within(receipt.limit)
        assert float(receipt.spent.rho) > 0.999 * 400
        assert receipt.spent.delta == receipt.limit.delta


def test_the_guaranteed_error_counts_the_noise() -> None:
    alone = dpcov.release(normal_rows(), **GOOD, radius=6.0, intercept=False, rng=np.random.default_rng(0))
    eta = alone.diagnostics["noise_scale"]
    assert alone.diagnostics["guaranteed_error"] == pytest.approx(1.2 * (1 + 5 * eta) ** 2 - 1)


class Asked(Exception):  # noqa: N818
    """What the rows were to be asked."""


class Stopping(Curator):
    """A curator that tells what it is asked instead of answering."""

    def ask(self, *queries: Query[Any]) -> Any:
        raise Asked(queries[0])


@pytest.mark.parametrize("alpha", [0.1, 0.2, 0.4])
def test_groups_agree_within_two_alpha_over_one_less_alpha(alpha: float) -> None:
    budget = Budget(resolve_budget(rho=400, delta=1e-6))
    with pytest.raises(Asked) as stopped:
        estimate_aggregate(
            Stopping(ArraySource(normal_rows()), budget, OSEntropy()), m=200, alpha=alpha, radius=6.0
        )
    # Groups within 1 +- alpha of the table are within (1 + alpha) / (1 - alpha) of each other.
    assert 1 + stopped.value.args[0].distance == pytest.approx((1 + alpha) / (1 - alpha))


def test_tables_whose_groups_disagree_get_no_answer_and_pay() -> None:
    heavy = normal_rows() * np.exp(5 * np.random.default_rng(1).normal(size=(300_000, 1)))
    budget = Budget(resolve_budget(rho=400, delta=1e-6))
    subject = Curator(ArraySource(heavy), budget, OSEntropy())
    with pytest.raises(dpcov.NoAnswerError, match="do not agree"):
        estimate_aggregate(subject, m=500, alpha=0.2, radius=1e6)
    assert float(subject.remaining.rho) < 1e-9 * 400


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no m": ({"m": None}, "needs m"),
    "m is text": ({"m": "many"}, "m must be a number"),
    "negative m": ({"m": -3}, "m must be"),
    "m beyond the rows": ({"m": 10**7}, "needs at least"),
    "huge m": ({"m": 1e300}, "needs at least"),
    "alpha": ({"alpha": 0.6}, "alpha must be at most"),
    "zero alpha": ({"alpha": 0}, "alpha"),
    "radius": ({"radius": -1.0}, "radius"),
    "infinite radius": ({"radius": float("inf")}, "radius"),
    "wide radius": ({"radius": 1e150}, "radius"),
    "no delta": ({"delta": None}, "needs a delta"),
    "small budget": ({"rho": 0.01}, "needs at least"),
    "small delta": ({"delta": 1e-30}, "larger delta"),
}


def test_a_refusal_names_a_setting_that_is_not_refused() -> None:
    def refusal(n_rows: int, m: int, d: int = 1) -> str:
        budget = Budget(resolve_budget(rho=4, delta=1e-6))
        subject = Stopping(ArraySource(np.zeros((n_rows, d))), budget, OSEntropy())
        with pytest.raises(dpcov.ArgumentError) as refused:
            estimate_aggregate(subject, m=m, alpha=0.2, radius=6.0)
        return str(refused.value)

    named = re.search("m=([0-9]+) or less", refusal(300_000, 500))
    assert named is not None
    for m in (int(named[1]), int(named[1]) // 2):
        subject = Stopping(
            ArraySource(np.zeros((300_000, 1))), Budget(resolve_budget(rho=4, delta=1e-6)), OSEntropy()
        )
        with pytest.raises(Asked):
            estimate_aggregate(subject, m=m, alpha=0.2, radius=6.0)
    assert "No m will do for fewer than" in refusal(1000, 500)


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused_before_anything_is_spent(change: dict[str, Any], message: str) -> None:
    given = {**GOOD, **change}
    limit = resolve_budget(rho=given.pop("rho"), delta=given.pop("delta"))
    given.pop("method")
    subject = Curator(ArraySource(normal_rows()), Budget(limit), OSEntropy())
    with pytest.raises(dpcov.ArgumentError, match=message):
        find_method("aggregate").run(subject, given)
    assert subject.receipt().charges == ()
