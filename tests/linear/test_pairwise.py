"""Pairwise answers: those of pandas without noise, and intervals that hold with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.core import ArgumentError, UnresolvedError
from dpcov.laws import NoiseLaw
from dpcov.linear import Answer, Questions
from dpcov.linear.components import principal_components
from dpcov.linear.pairwise_questions import PairwiseQuestions, pairwise_questions
from dpcov.linear.regression import regress

NAMES = ("a", "b", "c", "d")
FILLS = (0.0, 3.0, 0.0)
MIXING = np.array([[1.0, 0.5, 0.3, 0.0], [0, 1.0, 0.4, 0.2], [0, 0, 1.0, 0.6], [0, 0, 0, 1.0]])


def _rows(n: int, seed: int = 0) -> NDArray[np.float64]:
    """Return rows whose gaps depend on values: pairs, columns and complete rows differ."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4)) @ MIXING + [5.0, -2.0, 0.0, 100.0]
    gaps = np.column_stack([rows[:, 3] > 101, rng.random(n) < 0.3, rows[:, 0] < 4.5])
    rows[:, :3][gaps] = np.nan
    return np.asarray(rows)


def _released(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    missing = np.isnan(rows[:, :3])
    return np.column_stack([np.where(np.isnan(rows), [*FILLS, 0.0], rows), missing, np.ones(len(rows))])


def _asked(
    rows: NDArray[np.float64], noise: NoiseLaw | None = None, error: NDArray[np.float64] | float = 0.0
) -> PairwiseQuestions:
    full = _released(rows)
    columns = (*NAMES, *(f"missing({name})" for name in NAMES[:3]))
    released = Questions(columns, len(rows), full.T @ full / len(rows) + error, noise, ())
    return pairwise_questions(released, NAMES, [((i,), (fill,)) for i, fill in enumerate(FILLS)])


ROWS = _rows(4000)
FRAME = pd.DataFrame(ROWS, columns=list(NAMES))
COUNTS = FRAME.notna().astype(float).T @ FRAME.notna().astype(float)
COVARIANCE = (FRAME.cov() * (COUNTS - 1) / COUNTS).to_numpy()
MEAN = FRAME.mean().to_numpy()


def test_without_noise_answers_are_those_of_pandas() -> None:
    asked = _asked(ROWS)
    assert np.linalg.eigvalsh(COVARIANCE)[0] > 0
    np.testing.assert_allclose(asked.mean(None, sampling=False).values, MEAN, rtol=1e-10)
    np.testing.assert_allclose(asked.covariance(None, sampling=False).values, COVARIANCE, rtol=1e-9)
    np.testing.assert_allclose(asked.variance(["c", "a"], sampling=False).values, np.diag(COVARIANCE)[[2, 0]])
    np.testing.assert_allclose(asked.rows_of(None, sampling=False).values, FRAME.notna().sum())
    np.testing.assert_allclose(asked.rows, COUNTS)
    spread = np.sqrt(np.diag(COVARIANCE))
    correlation = asked.correlation(None, sampling=False).values
    np.testing.assert_allclose(correlation, COVARIANCE / np.outer(spread, spread), rtol=1e-9)


def test_what_is_not_positive_semidefinite_is_moved_to_what_is() -> None:
    x = np.array([1.0, -1.0])
    nan = np.full(2, np.nan)
    rows = np.vstack([np.column_stack(c) for c in ([x, x, nan, x], [x, nan, x, x], [nan, x, -x, x])])
    asked = _asked(np.tile(rows, (10, 1)))
    assert np.linalg.eigvalsh(asked.pairs.covariance)[0] < -0.1
    assert np.linalg.eigvalsh(asked.covariance(None, sampling=False).values)[0] > -1e-12


def _law() -> NoiseLaw:
    """Return noise of the size of what varies: little of it lies along the constant, which no row changes."""
    forms = np.eye(8)
    forms[:4, 7] = MEAN
    forms[[0, 1, 2], [4, 5, 6]] = FILLS - MEAN[:3]
    return NoiseLaw(forms @ np.diag([1.0, 1.2, 1.1, 1.3, 0.5, 0.6, 0.5, 0.7]), 2e-3)


LAW = _law()


def _noise(seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(8, 8)) * LAW.sigma / np.sqrt(2), 1)
    return np.asarray(
        LAW.inverse @ (upper + upper.T + np.diag(rng.normal(size=8) * LAW.sigma)) @ LAW.inverse.T
    )


def _answers(asked: PairwiseQuestions) -> list[Answer]:
    """Return answers of all kinds."""
    fit = regress(asked, "d", ["a", "b", "c"], 0, intercept=True, sampling=False)
    pca = principal_components(asked, 2, ["b", "c", "d"], standardize=True, sampling=False)
    return [
        asked.mean(None, sampling=False), asked.variance(None, sampling=False),
        asked.covariance(None, sampling=False), asked.correlation(None, sampling=False),
        asked.precision(["a", "b"], sampling=False), asked.rows_of(["a", "b", "c"], sampling=False),
        asked.partial_correlation(["a", "b", "c"], sampling=False),
        fit.coefficients, fit.r_squared, fit.residual_variance, pca.variances, pca.directions,
    ]  # fmt: skip


def test_standard_errors_are_those_of_answers_under_the_noise() -> None:
    """Each of 72 deviations over 60 draws is off by a half with probability below 1e-6; seeds are fixed."""
    draws = [[one.values for one in _answers(_asked(ROWS, LAW, _noise(seed)))] for seed in range(60)]
    for kind, answer in enumerate(_answers(_asked(ROWS, LAW))):
        errors, seen = answer.standard_error, np.std([one[kind] for one in draws], axis=0)
        kept = errors > 1e-9
        assert kept.any()
        np.testing.assert_allclose(seen[kept], errors[kept], rtol=0.5, err_msg=answer.name)
        assert np.all(seen[~kept] < 1e-9)


@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [2, 0], [1]])
def test_gradients_are_those_of_small_changes(columns: list[int]) -> None:
    rng = np.random.default_rng(0)
    pairs = _asked(ROWS).pairs
    by_covariance, change = rng.normal(size=(len(columns),) * 2), rng.normal(size=(8, 8))
    by_covariance, change = by_covariance + by_covariance.T, change + change.T
    by_mean = rng.normal(size=len(columns))

    def value(step: float) -> float:
        moved = replace(pairs, released=pairs.released + step * change)
        covariance = moved.covariance[np.ix_(columns, columns)]
        return float(np.vdot(by_covariance, covariance) + by_mean @ moved.mean[columns])

    (gradient,), block = pairs.pull_back(by_covariance[None], by_mean[None], columns)
    expected = (value(1e-7) - value(-1e-7)) / 2e-7
    assert np.vdot(gradient, change[np.ix_(block, block)]) == pytest.approx(expected, rel=1e-4)


def test_sampling_error_is_that_of_rows_with_gaps_at_random() -> None:
    """Each of 24 deviations over 300 tables is off by a third with probability below 1e-12."""

    def table(seed: int) -> NDArray[np.float64]:
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(1000, 4)) @ MIXING
        rows[:, :3][rng.random((1000, 3)) < [0.2, 0.5, 0.0]] = np.nan
        return np.asarray(rows)

    draws = [_asked(table(seed)).pairs for seed in range(300)]
    asked = _asked(table(0), NoiseLaw(np.eye(8), 1e-9))
    spread = np.std([one.covariance for one in draws], axis=0)
    for seen, answer in (
        (np.std([one.mean for one in draws], axis=0), asked.mean(None, sampling=True)),
        (spread, asked.covariance(None, sampling=True)),
        (np.diag(spread), asked.variance(None, sampling=True)),
    ):
        np.testing.assert_allclose(seen, answer.standard_error, rtol=0.33)
    with pytest.raises(ArgumentError, match="sampling=True"):
        asked.correlation(None, sampling=True)


def test_pairs_that_are_never_there_together_are_named_and_refused() -> None:
    rows = ROWS.copy()
    rows[::2, 0], rows[1::2, 1] = np.nan, np.nan
    asked = _asked(rows, LAW)
    covariance = asked.covariance(None, sampling=False)
    assert np.isnan(covariance.values[0, 1])
    assert np.isfinite(covariance.values[0, 0])
    assert "a and b are hardly ever there together." in covariance.notes
    with pytest.raises(UnresolvedError, match="a and b are hardly"):
        asked.precision(["a", "b"], sampling=False)
    assert np.isfinite(asked.precision(["a", "c"], sampling=False).values).all()


def test_a_column_that_is_never_there_is_named_and_leaves_the_others_alone() -> None:
    rows = ROWS.copy()
    rows[:, 1] = np.nan
    asked = _asked(rows, LAW)
    assert [str(found) for found in asked.find_unresolved([1])] == ["b"]
    assert np.isnan(asked.mean(None, sampling=False).values).tolist() == [False, True, False, False]
    assert np.isnan(asked.variance(None, sampling=False).values).tolist() == [False, True, False, False]
    assert asked.resolved == 3


def test_the_noise_of_a_pair_is_never_taken_for_less() -> None:
    pairs = _asked(ROWS, LAW).pairs
    assert (np.outer(pairs.widening, pairs.widening) * pairs.shared).min() == pytest.approx(1.0)
    alone = pairs.__class__(
        pairs.released, pairs.noise_gram, pairs.sigma, pairs.values[:1], pairs.presence[:1]
    )
    assert alone.widening[0] ** 2 == pytest.approx(1 / pairs.shared[0, 0])


def test_a_release_with_hardly_any_noise_agrees_with_pandas_and_keeps_its_mode(tmp_path: Path) -> None:
    frame = FRAME.assign(e=np.arange(len(FRAME)) % 7)
    kinds = {**{name: dpcov.number() for name in NAMES}, "e": dpcov.number(gaps=False)}
    made = dpcov.release(frame, rho=1e7, columns=kinds, missing="pairwise", rng=np.random.default_rng(0))
    assert made.columns == (*NAMES, "e")
    assert made.released_columns == (*NAMES, "e", *(f"missing({name})" for name in NAMES)), "e has none"
    np.testing.assert_allclose(made.mean().values[:4], MEAN, atol=1e-3)
    np.testing.assert_allclose(made.covariance().values[:4, :4], COVARIANCE, atol=1e-2)
    fewest = FRAME.notna().sum().idxmin()
    assert f"of rows with {fewest} (" in repr(made)
    assert "pairwise" in repr(made)
    assert "rows" in made.describe().to_frame()
    assert "Pairwise: each covariance" in str(made.regress("d", ["a", "b"]).summary())
    made.save(tmp_path / "gaps.dpcov")
    again = dpcov.load(tmp_path / "gaps.dpcov")
    assert again.pairwise
    assert again.columns == made.columns
    assert again.mean().values.tolist() == made.mean().values.tolist()
    page = made.report(tmp_path / "gaps.html").read_text()
    assert "with the column that has most gaps" in page
    assert f"<td>{round(float(made.describe().rows.values[1])):,}</td>" in page


def test_pairwise_releases_are_combined_if_their_gaps_are_the_same() -> None:
    parts = [
        dpcov.release(part, rho=1e7, columns=NAMES, missing="pairwise", rng=np.random.default_rng(0))
        for part in (ROWS[:2500], ROWS[2500:])
    ]
    together = dpcov.combine(parts)
    assert together.pairwise
    np.testing.assert_allclose(together.mean().values, MEAN, atol=2e-3)
    odd = dpcov.release(ROWS, rho=1e7, columns=NAMES, rng=np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="same schema"):
        dpcov.combine([parts[0], odd])


def test_persons_may_have_gaps() -> None:
    who = np.arange(len(ROWS)) // 2
    made = dpcov.release(
        ROWS, rho=1e7, columns=NAMES, missing="pairwise", privacy_unit=who, rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(made.mean().values, MEAN, atol=1e-2)
    assert "rows with" in made.share_of_rows
    with pytest.raises(ArgumentError, match="rows of one person"):
        made.mean(sampling=True)


def test_questions_that_pairs_cannot_answer_say_so() -> None:
    asked = _asked(ROWS, LAW)
    with pytest.raises(ArgumentError, match="origin"):
        regress(asked, "d", ["a"], 0, intercept=False, sampling=False)
    assert asked.second_moment(sampling=False).values.shape == (8, 8)


def test_a_column_that_clipping_may_have_moved_carries_its_note() -> None:
    rows = np.array([[1.0, 0.0, 1.0], [3.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    released = Questions(
        ("age", "missing(age)"), 3, rows.T @ rows / 3, None, (), exposed={"age": "age may be off."}
    )
    asked = pairwise_questions(released, ("age",), [((0,), (0.0,))])
    assert asked.mean(None, sampling=False).notes == ("age may be off.",)
    assert asked.variance(None, sampling=False).notes == ("age may be off.",)
