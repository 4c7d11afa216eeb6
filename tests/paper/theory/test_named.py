from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcov import ArgumentError, theory


@pytest.mark.parametrize("name", theory.DISTRIBUTIONS)
def test_eigenvalues_are_as_asked_and_m1_and_m2_do_not_change(name: str) -> None:
    plain, stretched = (theory.named_distribution(name, 4, condition=c) for c in (1.0, 1e6))
    assert stretched.eigenvalues == pytest.approx(np.logspace(-6, 0, 4))
    assert (plain.m1, plain.m2) == pytest.approx((stretched.m1, stretched.m2))
    assert plain.subsample_size(0.5, 0.1) == stretched.subsample_size(0.5, 0.1)
    rows = stretched.sample(40_000, np.random.default_rng(1)) / np.sqrt(np.logspace(0, -6, 4))
    assert rows.T @ rows / len(rows) == pytest.approx(np.eye(4), abs=0.1)


def test_a_heavier_tail_and_a_wider_one_need_more_rows() -> None:
    sizes = [
        theory.named_distribution("pareto", 4, shape=shape, bound=bound).subsample_size(0.1, 0.05)
        for shape, bound in ((5.0, 10.0), (4.0, 10.0), (3.0, 10.0), (3.0, 20.0))
    ]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 4
    assert theory.named_distribution("pareto", 4).subsample_size(0.1, 0.05) == sizes[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "parto"}, "Did you mean 'pareto'"),
        ({"name": "ellipsoid", "shape": 4.0}, "shape is for pareto and pareto-beside"),
        ({"name": "gaussian", "bound": 4.0}, "bound is for pareto and pareto-beside"),
        ({"shape": 0.0}, "shape must be greater than 0"),
        ({"bound": 1.0}, "bound must be greater than 1"),
        ({"bound": 1e200}, "bound must be at most"),
        ({"condition": 0.5}, "condition must be at least 1"),
        ({"condition": 1e300}, "condition must be at most"),
        ({"n_columns": 0}, "n_columns"),
        ({"name": "pareto-beside", "n_columns": 1}, "n_columns must be at least 2"),
    ],
)
def test_what_does_not_fit_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        theory.named_distribution(**{"name": "pareto", "n_columns": 4, **wrong})
