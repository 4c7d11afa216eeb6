"""scikit-learn's own checks: with seeded noise, since many compare two fits, and with true noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpcov.learn import (
    PrivateCovariance,
    PrivateImputer,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
    PrivateWhitener,
)

NO_OBJECTS = (
    "whether all values of an object array can be converted is a fact about the rows, so the dtype is refused"
)
NO_REPORT = "a NaN or infinity in y makes its row count as zeros; reporting it would leak"
NOISE_DIFFERS = "two private fits differ: the noise is fresh each time"

PLAIN = {"check_dtype_object": NO_OBJECTS}
REGRESSION = {**PLAIN, "check_supervised_y_no_nan": NO_REPORT}
# The checks have ten to two hundred rows; only a very large budget tells anything about so few.
BUDGET = 1e6


def expected_to_fail(estimator: Any) -> dict[str, str]:
    """Return which checks fail, and why."""
    regression = isinstance(estimator, PrivateLinearRegression)
    known = dict(REGRESSION if regression else PLAIN)
    if estimator.rng is not None:
        return known
    if not isinstance(estimator, PrivateCovariance):
        known["check_fit_idempotent"] = NOISE_DIFFERS
    if regression:
        known["check_regressor_data_not_an_array"] = NOISE_DIFFERS
        known["check_supervised_y_2d"] = NOISE_DIFFERS
    return known


class Seeded(np.random.Generator):
    """A generator without its address in its name, so that tests are called the same in every process."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def __repr__(self) -> str:
        return "seeded"


KINDS = (
    PrivateCovariance,
    PrivatePCA,
    PrivateWhitener,
    PrivateScaler,
    PrivateImputer,
    PrivateLinearRegression,
    PrivateRidge,
)


def seeded(kind: type) -> Any:
    """Return an estimator whose fits repeat: a quick one where that does, as checks fit hundreds of times.

    These two need every direction above the noise, which for tables of any scale the default alone achieves.
    """
    if kind in (PrivateWhitener, PrivateLinearRegression):
        return kind(rho=BUDGET, rng=Seeded())
    return kind(rho=1000 * BUDGET, method="gaussian", release_options={"radius": 30.0}, rng=Seeded())


pytestmark = [
    pytest.mark.filterwarnings("ignore::dpcov.learn.RefitWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


def run(estimator: Any, check: Any) -> None:
    """Run a check that passes, or one that must fail: as an expected failure it would be told at length."""
    if check.func.__name__ in expected_to_fail(estimator):
        with pytest.raises((AssertionError, ValueError, TypeError)):
            check(estimator)
    else:
        check(estimator)


@parametrize_with_checks([seeded(kind) for kind in KINDS])  # type: ignore[untyped-decorator]
def test_scikit_learn_with_seeded_noise(estimator: Any, check: Any) -> None:
    run(estimator, check)


@pytest.mark.audit
@parametrize_with_checks([kind(rho=BUDGET) for kind in KINDS])  # type: ignore[untyped-decorator]
def test_scikit_learn_with_true_noise(estimator: Any, check: Any) -> None:
    # Whether noise lets a check pass that must fail for every seed is up to the noise.
    if check.func.__name__ not in expected_to_fail(estimator):
        check(estimator)
