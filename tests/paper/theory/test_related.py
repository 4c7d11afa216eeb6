from __future__ import annotations

import math

import pytest

from dpcov.paper.theory.related import aden_ali_rows, alabi_rows, brown_rows, kothari_rows

RATES = [brown_rows, aden_ali_rows, kothari_rows, alabi_rows]


@pytest.mark.parametrize("rate", RATES)
def test_rates_say_that_they_are_rates(rate: type) -> None:
    found = rate(0.1, 10, 1.0, 1e-6)
    assert not found.exact
    assert found.place
    assert rate(0.05, 10, 1.0, 1e-6).rows > found.rows
    assert rate(0.1, 10, 0.5, 1e-6).rows > found.rows


@pytest.mark.parametrize(
    ("rate", "power"), [(brown_rows, 1.5), (aden_ali_rows, 2), (kothari_rows, 8), (alabi_rows, 2)]
)
def test_growth_with_the_dimension(rate: type, power: float) -> None:
    ratio = rate(1e-3, 2_000_000, 1.0, 1e-6).rows / rate(1e-3, 1_000_000, 1.0, 1e-6).rows
    assert math.log2(ratio) == pytest.approx(power, abs=0.01)


def test_an_outlier_raises_the_leverage() -> None:
    assert brown_rows(0.1, 10, 1.0, 1e-6, leverage=1e6).rows > 1e4 * brown_rows(0.1, 10, 1.0, 1e-6).rows
