from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.linear_tables import NAMES, Array, make_release, make_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcov
from dpcov.laws import NoiseLaw
from dpcov.linear import Questions
from dpcov.linear.components import principal_components
from dpcov.linear.regression import regress
from dpcov.losses import LossLaw


def test_answers_are_those_of_the_rows() -> None:
    rows = make_rows()
    r = make_release(rows, names=NAMES)
    covariance = np.cov(rows.T, bias=True)
    np.testing.assert_allclose(r.mean().values, rows.mean(axis=0))
    np.testing.assert_allclose(r.covariance().values, covariance)
    np.testing.assert_allclose(r.correlation().values, np.corrcoef(rows.T))
    np.testing.assert_allclose(r.precision().values, np.linalg.inv(covariance))
    inverse = np.linalg.inv(covariance)
    partial = -inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    np.fill_diagonal(partial, 1.0)
    np.testing.assert_allclose(r.partial_correlation().values, partial)
    white = r.whiten().transform(rows)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)
    centred = rows - rows.mean(axis=0)
    distances = np.sqrt(np.einsum("ni,ij,nj->n", centred, inverse, centred))
    np.testing.assert_allclose(r.mahalanobis(rows), distances)


def test_white_coordinates_and_synthetic_rows_do_not_depend_on_units() -> None:
    rows = make_rows()
    units = np.array([1e-12, 1.0, 1e6, 1e14])
    release = dpcov.release(rows * units, rho=10, columns=NAMES, rng=np.random.default_rng(0))
    white = release.whiten().transform(rows * units)
    np.testing.assert_allclose(np.cov(white.T), np.eye(4), atol=0.05)
    # A white coordinate belongs to a column: of all of them, it is the most like it.
    likeness = np.corrcoef(white, rows, rowvar=False)
    assert list(np.argmax(np.array(likeness)[:4, 4:], axis=1)) == [0, 1, 2, 3]
    drawn = release.sample(100_000, np.random.default_rng(0))
    # Chance leaves 0.003 in each, and noise less than 0.01.
    np.testing.assert_allclose(np.corrcoef(drawn.T), np.corrcoef(rows.T), atol=0.03)


def test_incomplete_rows_are_left_out() -> None:
    rows = make_rows()
    with_gaps = np.vstack([rows, np.zeros((100, 4))])
    r = make_release(with_gaps)
    # A row with a missing value counts as zeros, its constant too.
    moment = r._matrix.copy()
    moment[-1, -1] = len(rows) / len(with_gaps)
    object.__setattr__(r, "_matrix", moment)
    np.testing.assert_allclose(r.mean().values, rows.mean(axis=0))
    np.testing.assert_allclose(r.covariance().values, np.cov(rows.T, bias=True))


def test_columns_can_be_chosen_and_ordered() -> None:
    r = make_release(make_rows(), names=NAMES)
    whole, part = r.covariance(), r.covariance(["delta", "alpha"])
    np.testing.assert_array_equal(part.values, whole.values[np.ix_([3, 0], [3, 0])])
    np.testing.assert_allclose(part.standard_error, whole.standard_error[np.ix_([3, 0], [3, 0])])
    assert part.labels == (("delta", "alpha"),) * 2
    assert r.mean(["gamma"]).labels == (("gamma",),)
    assert r.pca(1, ["beta", "alpha"]).directions.labels == (("PC1",), ("beta", "alpha"))


def test_samples_have_the_released_moments() -> None:
    r = make_release(make_rows(), names=NAMES)
    drawn = r.sample(200_000, np.random.default_rng(0))
    spread = np.sqrt(np.diag(r.covariance().values))
    # Means of 200,000 rows are off by 6 standard errors once in 10^8, covariances by 2% less often.
    assert (np.abs(drawn.mean(axis=0) - r.mean().values) < 6 * spread / math.sqrt(200_000)).all()
    relative = (np.cov(drawn.T) - r.covariance().values) / np.outer(spread, spread)
    assert np.abs(relative).max() < 0.02
    assert r.sample(0).shape == (0, 4)
    assert r.sample(2, columns=["beta"]).shape == (2, 1)


def test_answers_are_tables_with_names() -> None:
    r = make_release(make_rows(), names=NAMES)
    frame = r.mean().to_frame()
    assert list(frame.columns) == ["estimate", "standard_error", "lower", "upper"]
    assert list(frame.index) == list(NAMES)
    matrix = r.covariance().to_frame()
    assert matrix.loc["beta", "gamma"] == r.covariance().values[1, 2]
    assert np.asarray(r.covariance()).shape == (4, 4)
    assert "alpha" in repr(r.covariance())
    assert "standard error" in repr(r.mean())
    assert "<table>" in r.covariance()._repr_html_()
    assert "4 columns" in repr(r)
    assert "NOT PRIVATE" in r._repr_html_()
    assert "PC1" in repr(r.pca(2))
    assert "PC1" in r.pca(2)._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        r.mean().values[0] = 1.0


def test_names_in_html_are_escaped() -> None:
    r = make_release(make_rows(), names=("<script>", "b", "c", "d"))
    assert "<script>" not in r.covariance()._repr_html_() + r._repr_html_()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.mean(["alfa"]), "no column 'alfa'. Did you mean 'alpha'"),
        (lambda r: r.covariance(["zzz"]), "There are: alpha, beta"),
        (lambda r: r.covariance([]), "columns is empty"),
        (lambda r: r.covariance("alpha"), r"use \['alpha'\]"),
        (lambda r: r.covariance(3), "list of column names"),
        (lambda r: r.covariance([3]), "name of a column"),
        (lambda r: r.covariance(["beta", "beta"]), "twice: beta"),
        (lambda r: r.mean(sampling="yes"), "sampling must be True or False"),
        (lambda r: r.mean().interval(95), "level"),
        (lambda r: r.regress("alfa", on=["beta"]), "target: there is no column 'alfa'"),
        (lambda r: r.regress("alpha", on=["betta"]), "on: there is no column 'betta'"),
        (lambda r: r.regress("alpha", on=[]), "on is empty"),
        (lambda r: r.regress("alpha", on=["beta", "alpha"]), "on contains the target"),
        (lambda r: r.regress("alpha", on=["beta"], ridge=-1), "ridge"),
        (lambda r: r.regress("alpha", on=["beta"], ridge="some"), "ridge"),
        (lambda r: r.pca(0), "n_components"),
        (lambda r: r.pca(5), "n_components must be a whole number from 1 to 4"),
        (lambda r: r.pca(True), "n_components"),
        (lambda r: r.sample(-1), "n must be"),
        (lambda r: r.mahalanobis([[1.0, 2.0]]), "rows must have 4 columns"),
    ],
)
def test_bad_questions_are_refused_in_words(ask: Callable[[dpcov.Release], object], message: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=message):
        ask(make_release(make_rows(), names=NAMES))


@pytest.mark.parametrize("name", ["mean", "covariance", "correlation", "precision", "pca", "whiten"])
def test_without_a_constant_means_cannot_be_asked_for(name: str) -> None:
    r = make_release(make_rows(), intercept=False)
    with pytest.raises(dpcov.ArgumentError, match=r"no constant column.*intercept=True"):
        getattr(r, name)()


def test_the_share_of_complete_rows_is_lost_where_its_own_noise_hides_it() -> None:
    made = make_release(make_rows())
    # Noise of the constant is `sigma |b|^2`, and from about a third of the share on too much.
    root = np.zeros((5, 5))
    root[-1, -1] = 1.0
    for overstated, lost in ((1.0, True), (2.0, False)):
        questions = replace(made, noise=NoiseLaw(root, 0.4, overstated=overstated))._questions
        if lost:
            with pytest.raises(dpcov.UnresolvedError, match="share of complete rows is below the noise"):
                questions.geometry.complete  # noqa: B018 - raises
        else:
            assert questions.geometry.complete == 1
        assert bool(len(questions.unresolved) == 4) is lost


def test_a_release_that_found_nothing_says_so() -> None:
    rows = np.zeros((1000, 2))
    r = dpcov.release(rows, rho=0.01, rng=np.random.default_rng(0), intercept=False)
    assert not r.second_moment().values.any()
    assert r.second_moment().notes == ("Everything is below the noise.",)
    with pytest.raises(dpcov.UnresolvedError, match="Everything is below the noise"):
        r.regress("x0", on=["x1"])


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.1, 1.0, 10.0]), st.integers(2, 6))
def test_answers_are_valid_however_large_the_noise(seed: int, noise: float, d: int) -> None:
    rows = make_rows(50, seed, d)
    rows[:, -1] = rows[:, 0]
    r = make_release(rows, noise=noise, rng=np.random.default_rng(seed))
    values, vectors = np.linalg.eigh(r._matrix)
    valid = (vectors * np.maximum(values, 0)) @ vectors.T
    object.__setattr__(r, "_matrix", (valid + valid.T) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            covariance, correlation = r.covariance(), r.correlation()
            shares = r.pca().explained
        except dpcov.UnresolvedError:
            return
    assert np.linalg.eigvalsh(covariance.values).min() >= -1e-12 * np.abs(covariance.values).max()
    assert (np.diag(covariance.values) >= 0).all()
    known = correlation.values[~np.isnan(correlation.values)]
    assert (np.abs(known) <= 1).all()
    lower, upper = correlation.interval()
    assert (lower >= -1).all()
    assert (upper <= 1).all()
    assert ((shares.values >= 0) & (shares.values <= 1)).all()
    assert r.sample(3, np.random.default_rng(0)).shape == (3, d)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(0.01, 0.2))
def test_relative_errors_survive_schur_complements_submatrices_and_congruence(
    seed: int, d: int, noise: float
) -> None:
    """The claim that everything rests on: no derived matrix has a larger relative error than the release."""
    rows = make_rows(100, seed, d)
    exact = make_release(rows)
    noisy = make_release(rows, noise=noise, rng=np.random.default_rng(seed))

    def error(found: Array, true: Array) -> float:
        root = np.linalg.inv(np.linalg.cholesky(true))
        return float(np.abs(np.linalg.eigvalsh(root @ found @ root.T) - 1).max())

    whole = error(noisy._matrix, exact._matrix)
    if whole >= 1:
        return
    slack = 1 + 1e-7
    # The covariance is the Schur complement over the constant's entry, which has an error of its own.
    complete, true_complete = noisy._matrix[-1, -1], exact._matrix[-1, -1]
    try:
        schur = noisy.covariance().values * complete
    except dpcov.UnresolvedError:
        return
    assert error(schur, exact.covariance().values * true_complete) <= whole * slack
    block = [0, 1]
    assert error(noisy._matrix[np.ix_(block, block)], exact._matrix[np.ix_(block, block)]) <= whole * slack
    recode = np.random.default_rng(seed).standard_normal((2, d + 1))
    assert error(recode @ noisy._matrix @ recode.T, recode @ exact._matrix @ recode.T) <= whole * slack
    if not noisy.unresolved:
        on = list(noisy.columns[1:])
        residual = float(noisy.regress("x0", on=on).residual_variance) * complete
        true_residual = float(exact.regress("x0", on=on).residual_variance) * true_complete
        assert abs(residual / true_residual - 1) <= whole * slack


def test_components_can_be_pickled_before_and_after_their_errors_are_asked_for() -> None:
    found = make_release(make_rows(), noise=1e-3).pca(2)
    early = pickle.loads(pickle.dumps(found))  # noqa: S301  (made here)
    np.testing.assert_array_equal(early.directions.standard_error, found.directions.standard_error)
    late = pickle.loads(pickle.dumps(found))  # noqa: S301  (made here)
    np.testing.assert_array_equal(late.directions.standard_error, found.directions.standard_error)


def test_a_column_may_be_called_constant(tmp_path: Path) -> None:
    rows = make_rows()
    r = make_release(rows, names=("constant", "beta", "gamma", "delta"))
    assert r.second_moment().labels[0][-1] == "constant_"
    fit = r.regress("beta", on=["constant", "gamma"])
    assert fit.coefficients.labels[0] == ("constant", "gamma", "constant_")
    r.save(tmp_path / "out.dpcov")
    assert dpcov.load(tmp_path / "out.dpcov").second_moment().labels == r.second_moment().labels


@pytest.mark.parametrize(
    ("on", "advice"),
    [("beta", r"use \['beta'\]"), ("beta,gamma", r"use \['beta', 'gamma'\]"), ("a, b", r"use \['a', 'b'\]")],
)
def test_a_text_of_columns_is_read_as_it_was_meant(on: str, advice: str) -> None:
    with pytest.raises(dpcov.ArgumentError, match=advice):
        make_release(make_rows(), names=NAMES).regress("alpha", on=on)


def test_a_name_with_a_comma_is_one_name() -> None:
    with pytest.raises(dpcov.ArgumentError, match=r"use \['beta, kg'\]"):
        make_release(make_rows(), names=("alpha", "beta, kg", "c", "d")).regress("alpha", on="beta, kg")


def test_a_note_about_rows_beyond_names_the_answers_that_they_can_move() -> None:
    # All rows beyond lie along the first column, whose loss is far above the noise.
    loss = LossLaw(
        np.full(128, 50.0),
        np.full(128, 0.3),
        np.full(128, 0.5),
        8.0,
        along=np.array([1.0, 0.0]),
        directions=1,
    )
    doubt = "About 50 rows, at most 60, lie beyond the region that rows were clipped to."
    asked = Questions(("wage", "age"), 10_000, np.eye(3), NoiseLaw(np.eye(3), 1e-3), (loss,), (doubt,))
    named = f"{doubt} They can move each of these by more than its interval says: wage."
    assert asked.mean(None, sampling=False).notes == (named,)
    assert asked.variance(None, sampling=False).notes == (named,)
    assert asked.variance(["age"], sampling=False).notes == ()
    whole = f"{doubt} They can move this answer by more than its interval says."
    assert asked.variance(["wage"], sampling=False).notes == (whole,)
    # Entries of a matrix have no names of their own.
    assert asked.covariance(None, sampling=False).notes == (whole,)
    assert replace(asked, notes=()).variance(None, sampling=False).notes == ()
    assert replace(asked, losses=()).variance(["age"], sampling=False).notes == (whole,)


def test_rows_beyond_cast_doubt_on_slopes_only_where_intervals_do_not_allow_for_them() -> None:
    loss = LossLaw(np.linspace(2, 9, 128), np.full(128, 0.3), np.full(128, 0.2), 8.0)
    moment = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    noise, doubt = NoiseLaw(np.eye(3), 1e-3), "About 5 rows lie beyond the region."
    for losses, casts in (((loss,), False), ((), True)):
        asked = Questions(("wage", "age"), 10_000, moment, noise, losses, (doubt,))
        fit = regress(asked, "wage", ["age"], 0, intercept=True, sampling=False)
        for answer in (fit.coefficients, fit.r_squared):
            assert any(note.startswith(doubt) for note in answer.notes) is casts
        # What is left unexplained is a variance, which clipping makes smaller.
        assert any(note.startswith(doubt) for note in fit.residual_variance.notes)


def test_a_column_that_clipping_may_have_moved_carries_its_note() -> None:
    asked = Questions(
        ("wage", "age"), 10_000, np.eye(3), NoiseLaw(np.eye(3), 1e-3), (), exposed={"age": "age may be off."}
    )
    for answer in (
        asked.mean,
        asked.variance,
        asked.correlation,
        asked.covariance,
        asked.precision,
        asked.partial_correlation,
    ):
        assert answer(None, sampling=False).notes == ("age may be off.",)
        assert answer(["wage"], sampling=False).notes == ()


def test_models_of_such_a_column_carry_its_note_too() -> None:
    moment = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    asked = Questions(
        ("wage", "age"), 10_000, moment, NoiseLaw(np.eye(3), 1e-3), (), exposed={"age": "age may be off."}
    )
    for target, on in (("wage", "age"), ("age", "wage")):
        fit = regress(asked, target, [on], None, intercept=True, sampling=False)
        for answer in (fit.coefficients, fit.r_squared, fit.residual_variance):
            assert answer.notes == ("age may be off.",)
    # Beside other predictors, far rows of one hardly move the slopes.
    three = Questions(
        ("wage", "age", "sex"),
        10_000,
        np.eye(4),
        NoiseLaw(np.eye(4), 1e-3),
        (),
        exposed={"age": "age may be off."},
    )
    fit = regress(three, "wage", ["age", "sex"], None, intercept=True, sampling=False)
    assert fit.coefficients.notes == ()
    found = principal_components(asked, None, None, standardize=False, sampling=False)
    for answer in (found.variances, found.explained, found.directions, found.loadings):
        assert answer.notes == ("age may be off.",)


def test_a_column_that_may_rest_on_clipped_rows_is_answered_with_a_note() -> None:
    # Of delta's variance, clipped rows may have all. It stands far above the noise all the same.
    rows = make_rows()
    rows /= rows.std(axis=0)
    rows[:, 3] *= 0.1
    made = make_release(rows, names=NAMES)
    note = (
        "delta may rest on a few rows that were clipped, or on rounding: it may vary much more or less than"
    )
    for sigma, is_below_noise in ((1e-6, False), (0.02, True)):
        r = replace(made, noise=NoiseLaw(np.eye(5), sigma, hidden=0.012))
        correlation, components = r.correlation(), r.pca()
        known = np.arange(4) < 3 if is_below_noise else np.ones(4, dtype=np.bool_)
        raw = np.where(np.outer(known, known), np.corrcoef(rows.T), math.nan)
        np.testing.assert_allclose(correlation.values, raw)
        assert components.columns == tuple(np.array(NAMES)[known])
        assert r.spectrum().columns == components.columns
        said = "delta is below the noise" if is_below_noise else note
        assert correlation.notes[0].startswith(said)
        if is_below_noise:
            for ask in (r.precision, r.partial_correlation):
                with pytest.raises(dpcov.UnresolvedError, match="delta is below the noise"):
                    ask()
        else:
            np.testing.assert_allclose(r.precision().values, np.linalg.inv(np.cov(rows.T, bias=True)))
            noted = (
                r.precision(),
                r.partial_correlation(),
                components.variances,
                components.directions,
                r.spectrum().eigenvalues,
            )
            assert all(note in "\n".join(answer.notes) for answer in noted)
        # A map has no notes.
        with pytest.raises(dpcov.UnresolvedError, match="delta"):
            r.whiten()
