"""Intervals hold the raw answer as often as they say, on new tables from laws with light and heavy tails."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("coverage_benchmark", BENCHMARKS / "coverage.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, marks=pytest.mark.audit) for case in ("gaussian", "elliptical-t5")),
        "one-log-normal",
    ],
)
def test_intervals_cover_in_few_releases(coverage: ModuleType, case: str) -> None:
    outcomes = [coverage.measure_release(case, 5_000, 0.5, seed) for seed in range(20)]
    answered = [outcome for outcome in outcomes if outcome is not None]
    assert len(answered) > 16
    for question in ("covariance", "coefficients", "eigenvalues"):
        share = np.mean([outcome[question].held.mean() for outcome in answered])
        # Entries of one release agree, so about 20 independent trials at worst: a true 0.95 falls below
        # 0.8 once in 390 (binomial). A third of the width covers 0.49.
        assert share >= 0.8, question


def test_a_third_of_the_width_would_not_pass(coverage: ModuleType) -> None:
    shares = []
    for seed in range(12):
        table = coverage.make_table("gaussian", 5_000, seed)
        release = coverage.dpcov.release(table, rho=0.5, rng=np.random.default_rng([seed, 2]))
        answer = release.covariance()
        middle, (lower, upper) = answer.values, answer.interval()
        exact = np.cov(table.T, bias=True)
        shares.append((np.abs(exact - middle) <= np.minimum(upper - middle, middle - lower) / 3).mean())
    # A normal interval covers 0.49 then. Shares of single releases have a standard deviation of 0.22, so the
    # mean of 12 exceeds 0.8 once in 10^6.
    assert np.mean(shares) < 0.8


@pytest.mark.audit
@pytest.mark.parametrize(
    "case",
    [
        "gaussian",
        "student-t5",
        "one-student-t4",
        "one-log-normal",
        pytest.param(
            "elliptical-t5",
            marks=pytest.mark.xfail(strict=True, reason="too wide: directions more even than is allowed for"),
        ),
    ],
)
def test_intervals_cover_in_a_thousand_releases(coverage: ModuleType, case: str) -> None:
    for result in coverage.measure_case(case, 20_000, 0.5, 1000, workers=1):
        if result.question in {"covariance", "coefficients", "eigenvalues"}:
            assert 0.93 - 2 * result.error < result.coverage < 0.97 + 2 * result.error, result
