"""The Gram matrix that comes with the number of clipped rows: exact, and no more sensitive than without."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import (
    ArgumentError,
    BitSource,
    Budget,
    Clipping,
    Curator,
    Gram,
    PrivacyCost,
    Rule,
    SeededBits,
)
from dpcov.core.queries.joint import JointTask
from dpcov.core.query import Table
from dpcov.core.units import Units
from dpcov.maps import identity_map, integer_map
from dpcov.methods.whitening.queries import clipped
from dpcov.methods.whitening.queries.clipped import ClippedGram, NoisyClippedGram, Pull
from dpcov.sources import ArraySource

PULL = Pull(math.sqrt(2), Fraction(19, 20), Fraction(17, 20))
HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def query(d: int, radius: float = 1.0, pull: Pull = PULL, rho: float = 1.0) -> ClippedGram:
    return ClippedGram(Clipping(identity_map(d), radius), pull, rho, "clipped")


def table_of(rows: Floats) -> Table:
    return Table.of_size(*rows.shape, constant=False)


def exact(asked: ClippedGram, rows: Floats) -> Integers:
    task = asked.task(table_of(rows), SeededBits(np.random.default_rng(0)))
    return ArraySource(rows, threads=1).scan(task)


def moved(asked: ClippedGram, first: Floats, second: Floats, weights: tuple[int, int]) -> int:
    """Return the square of what replacing rows moves: matrix, trace and weighted counts, in integers."""
    return squared_change(exact(asked, first) - exact(asked, second), weights)


def squared_change(change: Integers, weights: tuple[int, int]) -> int:
    """Return the square of the length of a change of all that gets noise."""
    d = math.isqrt(len(change) - 2)
    entries = [int(entry) for entry in change.tolist()]
    matrix = np.array(entries[:-2], dtype=object).reshape(d, d)
    counts = [count * weight for count, weight in zip(entries[-2:], weights, strict=True)]
    return int((matrix * matrix).sum()) + int(matrix.trace()) ** 2 + sum(count**2 for count in counts)


def test_matrix_and_counts_are_what_python_integers_give() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_t(2, size=(400, 4))
    rows[5], rows[77, 3], rows[100] = np.nan, np.inf, 1e308
    lattice_map = integer_map(rng.normal(size=(4, 4)))
    asked = ClippedGram(Clipping(lattice_map, 3.0), PULL, 1, "clipped")
    lattice = table_of(rows).lattice
    within = replace(asked.clipping, rule=Rule.DROP)
    everywhere = replace(asked.clipping, rule=Rule.SHRINK)
    far = replace(within, radius=3.0 * PULL.far)
    n_within, n_near = (
        sum(reference.gram(rows[i : i + 1], clipping, lattice) != [[0] * 4] * 4 for i in range(len(rows)))
        for clipping in (within, far)
    )
    n_all = sum(
        reference.gram(rows[i : i + 1], everywhere, lattice) != [[0] * 4] * 4 for i in range(len(rows))
    )
    total = exact(asked, rows)
    assert total[-2:].tolist() == [n_near - n_within, n_all - n_near]
    # Rows beyond are left with their part of the squared radius, rounding aside; all others as they were.
    kept = np.array(reference.gram(rows, within, lattice)).trace()
    drawn_in = (n_near - n_within) * 0.95 + (n_all - n_near) * 0.85
    assert total[:-2].reshape(4, 4).trace() - kept == pytest.approx(drawn_in * lattice.bound**2, rel=1e-4)


def test_rows_within_the_radius_are_those_of_a_plain_gram_matrix() -> None:
    rows = np.random.default_rng(1).normal(size=(500, 3))
    asked = query(3, radius=50.0)
    plain = Gram(asked.clipping, 1, "plain").task(table_of(rows), SeededBits(np.random.default_rng(0)))
    total = exact(asked, rows)
    assert total[-2:].tolist() == [0, 0]
    assert (total[:-2].reshape(3, 3) == ArraySource(rows).scan(plain)).all()


rows_of_three = hnp.arrays(np.float64, 3, elements=st.one_of(st.floats(-4, 4), st.sampled_from(HOSTILE)))
kept_parts = st.fractions(Fraction(1, 2), Fraction(999, 1000))


@settings(max_examples=300, deadline=None)
@given(rows_of_three, rows_of_three, kept_parts, kept_parts, st.floats(0.1, 3))
def test_replacing_a_row_moves_no_more_than_the_matrix_alone_may(
    first: Floats, second: Floats, near: Fraction, far: Fraction, radius: float
) -> None:
    asked = query(3, radius, Pull(math.sqrt(2), near, far))
    others = np.ones((3, 3))
    tables = [np.vstack([others, row]) for row in (first, second)]
    lattice = table_of(tables[0]).lattice
    assert moved(asked, tables[0], tables[1], asked.pull.weights(lattice)) <= 2 * lattice.bound**4


PAIRS = [(0.999, 1.2), (0.999, 5.0), (1.2, 5.0), (0.0, 5.0), (1.2, 1.3)]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_bound_holds_for_rows_at_right_angles(pair: tuple[float, float]) -> None:
    first, second = (np.vstack([row, np.zeros((9, 2))]) for row in np.diag(pair))
    lattice = table_of(first).lattice
    assert moved(query(2), first, second, PULL.weights(lattice)) <= 2 * lattice.bound**4


@pytest.mark.parametrize("length", [1.2, 5.0])
def test_larger_weights_would_break_it(length: float) -> None:
    first, second = (np.vstack([row, np.zeros((9, 2))]) for row in np.diag([0.99999, length]))
    lattice = table_of(first).lattice
    near, far = PULL.weights(lattice)
    assert moved(query(2), first, second, (near + near // 1000, far + far // 1000)) > 2 * lattice.bound**4


def test_rows_within_and_hostile_ones_are_not_counted() -> None:
    rows = np.vstack([np.full((3, 2), 1e-3), np.zeros((2, 2)), [[np.nan, 1.0]], [[0.0, 0.999]]])
    assert exact(query(2), rows)[-2:].tolist() == [0, 0]
    assert exact(query(2), np.array([[0.0, 1.001], [1.5, 0.0], [1e300, 0.0]]))[-2:].tolist() == [1, 2]


def worker_that_leaves(lengths: tuple[float, float], n_rows: int = 2, *, grouped: bool = False) -> Any:
    """Return a worker in the plane that draws rows in to other lengths than it should."""
    table = Table.of_size(n_rows, 2, constant=False, grouped=grouped)
    worker: Any = query(2).task(table, SeededBits(np.random.default_rng(0))).worker()
    worker._rows._lengths = np.array([1.0, *lengths])
    return worker


def count_at(square: int, kind: int) -> int:
    """Return whether a row of this kind is counted if it is left with this square, an exact integer."""
    worker = worker_that_leaves((0.5, 0.5))
    worker._rows.clip = lambda mapped, **_: (mapped.values, np.array([float(square)]))
    worker._rows.kind = np.array([kind])
    worker._sum.add = lambda *_: None
    worker.add(np.array([[0.0], [1.0]]), 0)
    near, far = worker.total()[-2:].tolist()
    assert (near if kind == 2 else far) == 0
    return int(near + far)


@pytest.mark.parametrize("kind", [1, 2])
def test_rows_count_from_one_exact_square_to_another(kind: int) -> None:
    lattice = table_of(np.ones((2, 2))).lattice
    most = lattice.bound**2 - PULL.rooms(lattice)[kind - 1] // 2
    assert most == math.floor(PULL.kept[kind - 1] * lattice.bound**2)
    least = PULL.least_squares(lattice)[kind - 1]
    assert [count_at(square, kind) for square in (least - 1, least, most, most + 1)] == [0, 1, 1, 0]
    assert count_at(most, 0) == 0


@given(st.fractions(Fraction(1, 2), Fraction(9999, 10_000)), st.integers(1, 2**50))
def test_no_weight_is_larger_than_the_proof_allows(kept: Fraction, n_rows: int) -> None:
    lattice = Table.of_size(n_rows, 1, constant=False).lattice
    pull = Pull(1.5, kept, kept)
    most, least = math.floor(kept * lattice.bound**2), min(pull.least_squares(lattice))
    assert least <= most
    for weight in pull.weights(lattice):
        assert weight**2 <= 2 * least * (lattice.bound**2 - most) < (weight + 1) ** 2


@pytest.mark.parametrize("length", [0.1, 0.99])
def test_a_row_that_was_drawn_in_too_far_or_not_enough_is_not_counted(length: float) -> None:
    worker = worker_that_leaves((length, length))
    worker.add(np.array([[0.0, 1.2], [9.0, 0.0]]).T, 0)
    assert worker.total()[-2:].tolist() == [0, 0]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("length", [0.1, 0.99])
def test_neither_is_such_a_unit(length: float, even: bool) -> None:  # noqa: FBT001
    worker = worker_that_leaves((length, length), grouped=True)
    rows = np.array([[1.2, 0.0], [1.2, 0.0], [9.0, 0.0], [9.0, 0.0]])
    worker.add(rows.T, 0, Units(np.array([2, 4]), even))
    assert worker.total()[-2:].tolist() == [0, 0]


@pytest.mark.parametrize("radius", [1.0, 1e-12])
def test_nobody_and_rows_of_zeros_are_not_counted(radius: float) -> None:
    task = query(2, radius).task(
        Table.of_size(4, 2, constant=False, grouped=True), SeededBits(np.random.default_rng(0))
    )
    worker = task.worker()
    worker.add(np.zeros((2, 3)), 0, Units(np.array([0, 1, 3, 3])))
    assert not worker.total().any()


units_of_three = hnp.arrays(
    np.float64,
    st.tuples(st.integers(0, 3), st.just(3)),
    elements=st.one_of(st.floats(-4, 4), st.sampled_from(HOSTILE)),
)


@settings(max_examples=200, deadline=None)
@given(units_of_three, units_of_three, kept_parts, st.floats(0.1, 3))
def test_replacing_a_unit_moves_no_more_either(
    first: Floats, second: Floats, kept: Fraction, radius: float
) -> None:
    asked = query(3, radius, Pull(math.sqrt(2), kept, kept))
    table = Table.of_size(2, 3, constant=False, grouped=True)
    totals = []
    for own in (first, second):
        worker = asked.task(table, SeededBits(np.random.default_rng(0))).worker()
        worker.add(np.vstack([np.ones((2, 3)), own]).T, 0, Units(np.array([2, 2 + len(own)])))
        totals.append(worker.total())
    weights = asked.pull.weights(table.lattice)
    assert squared_change(totals[0] - totals[1], weights) <= 2 * table.lattice.bound**4


def test_blocks_and_joint_scans_change_nothing() -> None:
    rows = np.random.default_rng(4).standard_t(2, size=(70_000, 2)) * [1.0, 3.0]
    asked, other = query(2, 2.0), query(2, 1.0, Pull(3.0, Fraction(9, 10), Fraction(4, 5)))
    # The same map, so that all work on the same mapped rows.
    other = replace(other, clipping=replace(other.clipping, lattice_map=asked.clipping.lattice_map))
    plain = Gram(asked.clipping, 1, "plain")
    table, bits = table_of(rows), SeededBits(np.random.default_rng(0))
    queries: list[Any] = [asked, plain, other, plain, asked]
    tasks = tuple(part.task(table, bits) for part in queries)
    together = JointTask(tasks)
    found = together.split(ArraySource(rows, threads=1).scan(together))
    for task, total in zip(tasks, found, strict=True):
        assert (total == ArraySource(rows, threads=1).scan(task)).all()
    # Several blocks add up to what single rows do.
    assert asked.task(table, bits).block_rows < len(rows)
    norms = np.linalg.norm(rows, axis=1)
    assert found[0][-2:].tolist() == [
        np.count_nonzero((norms > 2) & (norms <= 2 * PULL.far)),
        np.count_nonzero(norms > 2 * PULL.far),
    ]


def test_every_number_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, int]] = []

    def draw(bits: BitSource, variance: int, count: int) -> Integers:
        del bits
        drawn.append((variance, count))
        return np.zeros(count, dtype=np.int64)

    rows = np.random.default_rng(3).normal(size=(100, 3))
    asked = query(3)
    exactly = exact(asked, rows)
    # So many that a float64 would round what they count.
    exactly[-2:] = 2**21 + 1, 2**21 - 1
    monkeypatch.setattr(clipped, "rounded_gaussian", draw)
    answer = asked.answer(exactly, table_of(rows), SeededBits(np.random.default_rng(0)))
    # Two draws, of the variance of the matrix's diagonal; the matrix has drawn its own.
    assert drawn == [(answer.gram.variance, 2)]
    weights = PULL.weights(table_of(rows).lattice)
    assert answer.counts.tolist() == [int(n) * w for n, w in zip(exactly[-2:], weights, strict=True)]


def test_counts_have_the_noise_that_is_said() -> None:
    rows = np.vstack(
        [np.tile([0.5, 0.0], (900, 1)), np.tile([1.2, 0.0], (60, 1)), np.tile([0, 9.0], (40, 1))]
    )
    bits = SeededBits(np.random.default_rng(2))
    curator = Curator(ArraySource(rows), Budget(PrivacyCost(Fraction(2000))), bits)
    answers: list[NoisyClippedGram] = [curator.ask(query(2, rho=0.5)) for _ in range(2000)]
    found = np.array([answer.rows for answer in answers])
    spreads = answers[0].spreads
    expected = 1 / np.sqrt(2 * 0.5 * np.array([0.95 * 0.05, 0.85 * 0.15]))
    assert spreads == pytest.approx(expected, rel=1e-4)
    # A standard deviation of 2,000 draws is off by 4.8% once in 400; noise without the weights by half.
    assert found.std(axis=0) == pytest.approx(spreads, rel=0.05)
    # A mean by 3.7 of its standard errors once in 4,600.
    assert np.abs(found.mean(axis=0) - [60, 40]) == pytest.approx(
        0, abs=float(3.7 * spreads.max() / 2000**0.5)
    )


def test_it_costs_what_the_matrix_alone_does_and_has_its_noise() -> None:
    rows = np.random.default_rng(3).normal(size=(100, 2))
    table = table_of(rows)
    plain = Gram(query(2).clipping, 1, "plain")
    curator = Curator(
        ArraySource(rows), Budget(PrivacyCost(Fraction(1))), SeededBits(np.random.default_rng(0))
    )
    assert curator.ask(query(2)).gram.variance == plain.variance(table.lattice)
    assert curator.remaining.rho == 0


def test_units_are_counted_by_their_joint_length() -> None:
    rows = np.array([[0.8, 0.0], [0.8, 0.0], [0.5, 0.0], [3.0, 0.0], [4.0, 0.0]])
    task = query(2).task(
        Table.of_size(4, 2, constant=False, grouped=True), SeededBits(np.random.default_rng(0))
    )
    worker = task.worker()
    worker.add(rows.T, 0, Units(np.array([2, 3, 3, 5])))
    # Two rows of 0.8 have 1.13 together; half a row lies within; nobody; and two far out count once.
    assert worker.total()[-2:].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: query(3), "takes 3 columns, not 2"),
        (lambda: replace(query(2), clipping=Clipping(identity_map(2), 1.0, Rule.DROP)), "Rule.SHRINK"),
        (lambda: query(2, radius=0.0), "radius"),
        (lambda: query(2, pull=Pull(1.0, Fraction(1, 2), Fraction(1, 2))), "far must be a number above 1"),
        (lambda: query(2, pull=Pull(2.0, Fraction(1), Fraction(1, 2))), "kept_near and kept_far"),
        (lambda: query(2, pull=Pull(2.0, Fraction(1, 2), Fraction(1, 3))), "kept_near and kept_far"),
        (
            lambda: query(2, pull=Pull(2.0, Fraction(9, 10), Fraction(1, 2))),
            "too little to be counted",
        ),
        (lambda: query(2, rho=1e-30), "rho"),
    ],
)
def test_what_cannot_be_asked_costs_nothing(asked: object, message: str) -> None:
    curator = Curator(
        ArraySource(np.ones((9, 2))), Budget(PrivacyCost(Fraction(1))), SeededBits(np.random.default_rng(0))
    )
    with pytest.raises(ArgumentError, match=message):
        curator.ask(asked())  # type: ignore[operator]
    assert curator.remaining.rho == 1
