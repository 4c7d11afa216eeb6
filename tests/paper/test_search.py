"""A search for m: what it tells is true of the table, and the recursion runs with nothing told."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers.curators import curator, identity
from numpy.typing import NDArray

import dpcov
from dpcov.paper.queries import FirstAgreement
from dpcov.paper.queries.first_agreement import _share, searched_groups
from dpcov.paper.queries.groups import agreeing_groups
from dpcov.paper.search import Searched
from dpcov.paper.theory import leverage_scores

Rows = NDArray[np.float64]


def normal_rows(n_rows: int, d: int, seed: int = 0) -> Rows:
    return np.random.default_rng(seed).normal(size=(n_rows, d))


def search(rows: Rows, *, epsilon: float = 8.0, size: int = 5, seed: int = 0) -> Any:
    subject, _ = curator(rows, rho=100, seed=seed)
    found = subject.ask(FirstAgreement(identity(rows.shape[1], 50.0), size, 2.0, epsilon=epsilon, purpose=""))
    assert subject.receipt().spent.rho == Fraction(epsilon) ** 2 / 2
    return found


def test_the_first_size_at_which_groups_agree_is_found() -> None:
    found = search(normal_rows(10_000, 2))
    # Nine in ten pairs of groups of 20 agree, 99.7% of 40.
    assert (found.group_size, found.n_groups) == (40, 250)
    assert 0.9 < found.at_least < 0.997


def test_a_share_is_what_a_passing_sum_says() -> None:
    for n_groups, off in ((100, 3), (101, 3), (64, 0)):
        f = n_groups // 2 - 2 * off
        # Fewer agreeing pairs make for a smaller sum.
        least = next(a for a in range(n_groups**2) if a // (n_groups - 1) >= f)
        assert _share(n_groups, off) == Fraction(n_groups + 2 * least, n_groups**2)
    assert _share(64, 0) == 1


def test_groups_of_unlike_rows_pass_at_no_size() -> None:
    heavy = normal_rows(10_000, 2) * np.exp(3 * normal_rows(10_000, 1, 1))
    assert search(np.minimum(heavy, 50)) is None


def test_replacing_a_group_moves_every_sum_by_at_most_one() -> None:
    rng = np.random.default_rng(3)
    query = FirstAgreement(identity(2), 5, 1.0, epsilon=1, purpose="")
    for _ in range(30):
        rows = np.rint(rng.normal(size=(64, 30, 2)) * 1000 * rng.uniform(0.7, 1.4, (64, 1, 1)))
        grams = np.einsum("tni,tnj->tij", rows, rows).astype(np.int64)
        changed = grams.copy()
        changed[rng.integers(64)] = np.eye(2, dtype=np.int64) * int(10 ** rng.uniform(0, 9))
        sums = [list(query._sums(table, 5)) for table in (grams, changed)]
        assert max(abs(a - b) for a, b in zip(*sums, strict=True)) <= 1
        assert sums[0][0] == (agreeing_groups(grams, 1.0, 64).sum() - 64) // 2 // 63


def test_sizes_that_tell_too_little_are_not_tried() -> None:
    assert searched_groups(8000, Fraction(4)) == [8000, 4000, 2000, 1000, 500, 250]
    assert searched_groups(100, Fraction(1)) == []


@pytest.mark.parametrize("kind", ["normal", "outliers"])
def test_what_agreement_proves_is_true(kind: str) -> None:
    # In the clear: a share of good groups bounds the leverage of all their rows, and the least eigenvalue.
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(4000, 3)) * [1, 0.1, 5]
    if kind == "outliers":
        rows[rng.choice(4000, 12, replace=False)] *= 40
    groups = rows.reshape(50, 80, 3)
    grams = np.einsum("tni,tnj->tij", np.rint(groups * 2**16), np.rint(groups * 2**16)).astype(np.int64)
    counts = np.array([[agreeing_groups(grams[[s, t]], 2.0, 2)[0] == 2 or s == t for t in range(50)]
                       for s in range(50)])  # fmt: skip
    good = counts[counts.sum(axis=1).argmax()]
    told = Searched(80, float(counts.mean()))
    assert told.good <= good.mean()
    leverages = leverage_scores(rows).reshape(50, 80)
    assert leverages[good].max() <= told.m(0.5) * 1.5
    least = np.linalg.eigvalsh(rows.T @ rows / 4000)[0]
    assert np.linalg.eigvalsh(grams[good] / 2.0**32 / 80)[:, 0].max() / told.below <= least
    if kind == "outliers":
        assert not good.all()


def test_the_recursion_runs_with_nothing_told() -> None:
    # A budget that stands for many rows: of those, many more groups would be compared.
    rows = normal_rows(6_000, 2) * [1.0, 0.5]
    made = dpcov.release(
        rows, rho=16_000, delta=1e-6, method="recursive", intercept=False, rng=np.random.default_rng(0)
    )
    facts = made.diagnostics
    purposes = {charge.purpose for charge in made.receipt.charges}
    assert {"search for m", "covering radius", "least eigenvalue", "the released matrix"} <= purposes
    assert made.receipt.spent.rho == 16_000
    whole = rows.T @ rows / len(rows)
    assert facts["least_eigenvalue"] <= np.linalg.eigvalsh(whole)[0]
    assert leverage_scores(rows).max() <= facts["m"] * 1.5
    root = np.linalg.inv(np.linalg.cholesky(whole))
    error = np.linalg.norm(root @ made.second_moment().values @ root.T - np.eye(2), 2)
    # Holds with probability 0.94; the seed is fixed.
    assert error <= facts["guaranteed_error"] < 0.2
    assert facts["guarantee_fails"] == pytest.approx(0.06)
    assert "subsamplable" not in facts["guarantee"]
    assert math.isfinite(facts["guaranteed_error"])
