"""Shares of levels: pooled from two entries of the matrix, and the first level, which has no column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.core import ArgumentError
from dpcov.laws import NoiseLaw
from dpcov.linear import Questions
from dpcov.losses import LossLaw

N = 20_000
RNG = np.random.default_rng(0)
REGION = RNG.choice(["north", "south", "east", "west"], N, p=[0.5, 0.4, 0.06, 0.04])
WAGE = RNG.normal(size=N) + np.select([REGION == "south", REGION == "east"], [2.0, 5.0], 1.0)
CODED = np.column_stack([name == REGION for name in ("south", "east", "west")])
ROWS = np.column_stack([CODED, WAGE, np.ones(N)])
NAMES = ("region[south]", "region[east]", "region[west]", "wage")
LEVELS = {"region": ("region[north]", *NAMES[:3])}


def _law() -> NoiseLaw:
    """Return noise of the size of each column's spread, around its mean."""
    mean, spread = ROWS.mean(axis=0)[:4], ROWS.std(axis=0)[:4]
    forms = np.eye(5)
    forms[:4, 4] = mean
    return NoiseLaw(forms @ np.diag([*spread, 1.0]), 2e-3)


LAW = _law()


def _asked(error: NDArray[np.float64] | float = 0.0) -> Questions:
    moment = ROWS.T @ ROWS / N + error
    return Questions(NAMES, N, moment, LAW, (), shares=(0, 1, 2), levels=LEVELS)


def _noise(seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(5, 5)) * LAW.sigma / np.sqrt(2), 1)
    noise = upper + upper.T + np.diag(rng.normal(size=5) * LAW.sigma)
    return np.asarray(LAW.inverse @ noise @ LAW.inverse.T)


def test_pooled_shares_have_the_errors_that_they_claim_and_smaller_ones_than_plain() -> None:
    """Each of 3 deviations over 200 draws is off by 30% with probability below 1e-8."""
    claimed = _asked().mean(list(NAMES[:3]), sampling=False)
    draws = [_asked(_noise(seed)) for seed in range(200)]
    seen = np.std([one.mean(list(NAMES[:3]), sampling=False).values for one in draws], axis=0)
    np.testing.assert_allclose(claimed.values, CODED.mean(axis=0))
    np.testing.assert_allclose(seen, claimed.standard_error, rtol=0.3)
    plain = replace(_asked(), shares=()).mean(list(NAMES[:3]), sampling=False)
    assert (claimed.standard_error[1:] < 0.6 * plain.standard_error[1:]).all(), "rare levels gain most"
    assert (claimed.standard_error <= plain.standard_error).all()


def test_pooling_is_left_where_what_clipping_took_would_make_it_worse() -> None:
    lost = LossLaw(np.full(8, 60.0), np.zeros(8), np.full(8, 1.0), 8.0, directions=4, restored=0.05)
    asked = replace(_asked(), noise=NoiseLaw(LAW.inverse, 1e-5), losses=(lost,))
    plain = replace(asked, shares=()).mean(list(NAMES[:3]), sampling=False)
    pooled = asked.mean(list(NAMES[:3]), sampling=False)
    assert (pooled.standard_error <= plain.standard_error).all()
    assert pooled.values.tolist() == pytest.approx(plain.values.tolist())


def test_sampling_error_of_a_share_is_that_of_its_rows() -> None:
    quiet = replace(_asked(), noise=NoiseLaw(LAW.inverse, 1e-9))
    share = CODED.mean(axis=0)
    answer = quiet.mean(list(NAMES[:3]), sampling=True)
    np.testing.assert_allclose(answer.standard_error, np.sqrt(share * (1 - share) / N), rtol=1e-4)


def test_a_level_below_the_noise_is_not_pooled() -> None:
    """Its rows may all be clipped: what is left of them has next to no noise, and is no share."""
    moment = ROWS.T @ ROWS / N
    moment[2], moment[:, 2] = 1e-11, 1e-11
    forms = LAW.inverse.copy()
    forms[2] = [0, 0, 1e-4, 0, 0]
    asked = replace(_asked(), moment=moment, noise=NoiseLaw(forms, LAW.sigma))
    plain = replace(asked, shares=())
    error = asked.mean(["region[west]"], sampling=False).standard_error
    assert error == pytest.approx(plain.mean(["region[west]"], sampling=False).standard_error)


@pytest.mark.parametrize("missing", ["complete", "pairwise"])
def test_the_first_level_has_a_share_a_mean_and_contrasts(missing: str) -> None:
    table = pd.DataFrame({"region": REGION, "wage": WAGE})
    table.loc[::5, "wage"] = np.nan
    if missing == "pairwise":
        table.loc[1::7, "region"] = None
    kinds = {
        "region": dpcov.category(["north", "south", "east", "west"], other=False),
        "wage": dpcov.number(-10, 20),
    }
    made = dpcov.release(table, rho=1e6, columns=kinds, missing=missing, rng=np.random.default_rng(0))
    there = table.dropna()
    own = there if missing == "complete" else table.dropna(subset="region")
    names = ["north", "south", "east", "west"]
    shares = made.shares("region")
    assert shares.labels[0] == LEVELS["region"]
    np.testing.assert_allclose(shares.values, own.region.value_counts(normalize=True)[names], atol=1e-4)
    np.testing.assert_allclose(made.mean(list(NAMES[:3])).values, shares.values[1:])
    means = there.groupby("region").wage.mean()
    np.testing.assert_allclose(made.mean_by("wage", "region").values, means[names], atol=5e-3)
    fit = made.regress("wage ~ C(region)")
    difference = float(fit.contrast("region[north]", "region[east]"))
    if missing == "complete":
        assert difference == pytest.approx(means["north"] - means["east"], abs=5e-3)
        assert float(fit.contrast("region[south]", "region[east]")) == pytest.approx(
            means["south"] - means["east"], abs=5e-3
        )
    assert difference == -fit.coefficients["region[east]"]
    with pytest.raises(ArgumentError, match=r"region\[nort\]"):
        fit.contrast("region[nort]", "region[east]")
    with pytest.raises(ArgumentError, match="there is no"):
        made.shares("regio")
    with pytest.raises(ArgumentError, match="is a level"):
        made.mean_by("region[south]", "region")


def test_means_by_level_have_the_errors_that_they_claim() -> None:
    """Each of 4 deviations over 200 draws is off by 30% with probability below 1e-8."""
    from dpcov.linear.levels import means_by_level  # noqa: PLC0415

    draws = [means_by_level(_asked(_noise(seed)), "wage", "region").values for seed in range(200)]
    claimed = means_by_level(_asked(), "wage", "region")
    np.testing.assert_allclose(
        claimed.values, [WAGE[n == REGION].mean() for n in ("north", "south", "east", "west")]
    )
    np.testing.assert_allclose(np.std(draws, axis=0), claimed.standard_error, rtol=0.3)


@pytest.mark.parametrize("missing", ["complete", "pairwise"])
def test_rare_levels_are_joined_and_named_instead_of_failing_the_regression(missing: str) -> None:
    rng = np.random.default_rng(1)
    names = [f"l{i}" for i in range(10)]
    chosen = rng.choice([*names, "unheard"], 40_000, p=[0.5, 0.3, *[0.0005] * 8, 0.196])
    wage = rng.normal(size=40_000) + (chosen == "l1")
    table = pd.DataFrame({"code": chosen, "wage": wage})
    kinds = {"code": dpcov.category(names), "wage": dpcov.number(-10, 10)}
    made = dpcov.release(table, rho=0.02, columns=kinds, missing=missing, rng=np.random.default_rng(0))
    fit = made.regress("wage ~ C(code)", ridge=0)
    (note,) = (note for note in fit.coefficients.notes if note.startswith("Too rare"))
    # With all of them, even "other" would be below the noise.
    assert "counted as code[l0]: code[l2]" in note
    assert fit.on == ("code[l1]", "code[other]")
    assert fit.terms == {"C(code)": fit.on}
    assert fit.coefficients["code[l1]"] == pytest.approx(1.0, abs=0.2)
    assert fit.wald("C(code)").degrees == 2
    alone = made.regress("wage", ["code[l1]", "code[l2]", "code[l3]"], ridge=0)
    assert alone.on == ("code[l1]",), "even together they are below the noise"
    assert any("counted as code[l0]: code[l2], code[l3]." in note for note in alone.coefficients.notes)
    most = made.regress("wage", [name for name in made.columns if name not in ("wage", "code[other]")])
    assert most.on in (("code[l1]",), ("code[l1]", f"code[{' or '.join(names[2:])}]")), (
        "other is not asked for"
    )
