"""What clipping takes from the sum of the rows: exact, in full of rows that are not far, and as private."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import ArgumentError, BitSource, Budget, Clipping, Curator, PrivacyCost, SeededBits
from dpcov.core.lattice import Lattice
from dpcov.core.noise import rounded_gaussian
from dpcov.core.queries.joint import JointTask
from dpcov.core.query import Table
from dpcov.losses import FAR, KEPT_FAR, KEPT_LOSING, KEPT_NEAR, given_back, kept_square, loss_strength
from dpcov.maps import identity_map, integer_map
from dpcov.methods.whitening.queries import clipped
from dpcov.methods.whitening.queries.clipped import ClippedGram, NoisyClippedGram, Pull
from dpcov.sources import ArraySource

PULL = Pull(2.0, Fraction(19, 20), Fraction(17, 20), Fraction(7, 10))
COUNTING = replace(PULL, kept_losing=None)
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


def squared_change(change: Integers, weights: tuple[int, int], d: int, louder: float = 1.0) -> int:
    """Return the square of the length of a change of all that gets noise; `louder` losses are a mutant's."""
    entries = [int(entry) for entry in change.tolist()]
    matrix = np.array(entries[: d * d], dtype=object).reshape(d, d)
    counts = [count * weight for count, weight in zip(entries[d * d : d * d + 2], weights, strict=True)]
    losses = [round(entry * louder) for entry in entries[d * d + 2 :]]
    assert len(losses) == d
    return int((matrix * matrix).sum()) + int(matrix.trace()) ** 2 + sum(n**2 for n in counts + losses)


def moved(asked: ClippedGram, first: Floats, second: Floats) -> int:
    weights = asked.pull.weights(table_of(first).lattice)
    return squared_change(exact(asked, first) - exact(asked, second), weights, first.shape[1])


rows_of_three = hnp.arrays(np.float64, 3, elements=st.one_of(st.floats(-4, 4), st.sampled_from(HOSTILE)))
parts = st.fractions(Fraction(1, 2), Fraction(999, 1000))


@settings(max_examples=300, deadline=None)
@given(rows_of_three, rows_of_three, st.lists(parts, min_size=3, max_size=3), st.floats(0.1, 3), st.data())
def test_replacing_a_row_moves_no_more_than_the_matrix_alone_may(
    first: Floats, second: Floats, kept: list[Fraction], radius: float, data: st.DataObject
) -> None:
    least, far, near = sorted(kept)
    pull = Pull(data.draw(st.floats(1.1, 9)), near, far + Fraction(1, 2000), least)
    # Opposite rows are those whose losses differ most.
    turned = second if data.draw(st.booleans()) else -data.draw(st.floats(0.3, 1)) * first
    tables = [np.vstack([np.ones((3, 3)), row]) for row in (first, turned)]
    assert moved(query(3, radius, pull), *tables) <= 2 * table_of(tables[0]).lattice.bound ** 4


# One room for counts, and one for next to nothing but losses.
LOSING = Pull(2.0, Fraction(9999, 10_000), Fraction(9998, 10_000), Fraction(7, 10))
ANGLES = np.linspace(0, math.pi, 61)
PAIRS = [(1.3, 1.3), (1.9, 1.9), (5.0, 5.0), (1.3, 5.0), (0.99999, 1.9), (0.99999, 5.0)]


@pytest.mark.parametrize("lengths", PAIRS)
@pytest.mark.parametrize("pull", [PULL, LOSING])
def test_the_bound_holds_at_every_angle_and_is_tight(pull: Pull, lengths: tuple[float, float]) -> None:
    table = Table.of_size(10, 2, constant=False)
    asked = query(2, pull=pull)
    weights, limit = pull.weights(table.lattice), 2 * table.lattice.bound**4
    first = exact(asked, np.vstack([[lengths[0], 0.0], np.zeros((9, 2))]))
    moves, louder = [], []
    for angle in ANGLES:
        second = np.array([math.cos(angle), math.sin(angle)]) * lengths[1]
        change = first - exact(asked, np.vstack([second, np.zeros((9, 2))]))
        moves.append(squared_change(change, weights, 2))
        louder.append(squared_change(change, weights, 2, louder=1.02))
    assert max(moves) <= limit
    # Two rows of a kind leave the room of their counts. Without it, losses that are 2% too large break the
    # bound: of equal rows at an obtuse angle, where the product is `-m l / 2`, too.
    if pull is LOSING:
        assert max(moves) > 0.99 * limit
        assert max(louder) > limit
    if lengths in {(1.9, 1.9), (5.0, 5.0)}:
        assert math.pi / 2 < ANGLES[int(np.argmax(moves))] < 0.85 * math.pi


def test_losses_are_what_the_rows_were_shrunk_by() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_t(2, size=(4000, 3)) + 0.3
    rows[5], rows[77, 2], rows[100] = np.nan, np.inf, 1e100
    whole = np.asarray(np.isfinite(rows).all(axis=1))
    lattice_map = integer_map(rng.normal(size=(3, 3)))
    asked = ClippedGram(Clipping(lattice_map, 3.0), PULL, 1, "clipped")
    answer = asked.answer(exact(asked, rows), table_of(rows), Silent())
    y = np.where(whole[:, None], rows, 0.0) @ lattice_map.matrix().T
    norms = np.linalg.norm(y, axis=1) / 3.0
    # A row of 1e100 counts as one at the edge to the far ones.
    ratio, left = np.clip(norms, 1.0, PULL.far), pulled(np.maximum(norms, 1.0))
    shrunk = np.sqrt(left) / ratio
    back = np.where(whole & (norms > 1), (1 / shrunk - shrunk) * np.sqrt(left) * 3.0, 0.0)
    expected = (back / np.maximum(norms * 3.0, 1e-9)) @ y / len(rows)
    assert answer.lost is not None
    np.testing.assert_allclose(answer.lost, expected, rtol=1e-4)
    # Of rows that are not far, that is the whole loss of a row times its constant.
    near = np.flatnonzero(whole & (norms > 1) & (norms <= 2.0))
    np.testing.assert_allclose((1 - shrunk**2)[near] * norms[near] * 3.0, back[near], rtol=1e-9)


class Silent(SeededBits):
    """Bits that nobody draws noise from: the answer is exact."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0))


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    true = rounded_gaussian

    def draw(bits: BitSource, variance: int, count: int) -> Integers:
        return np.zeros(count, dtype=np.int64) if isinstance(bits, Silent) else true(bits, variance, count)

    monkeypatch.setattr(clipped, "rounded_gaussian", draw)
    monkeypatch.setattr("dpcov.core.queries.gram.rounded_gaussian", draw)


def pulled(norms: Floats) -> Floats:
    """Solve ``w + b^2 (1/s - s)^2 = 2 (1 - s^2 v^2)`` for what is left, ``s^2 v^2``, from above."""
    counted = np.where(norms > PULL.far, float(PULL.kept_far), float(PULL.kept_near))
    left, ratio = counted, np.minimum(norms, PULL.far)
    for _ in range(200):
        shrunk = np.sqrt(left) / ratio
        left = counted - (PULL.strength * (1 / shrunk - shrunk)) ** 2 / 2
    return left


def test_far_rows_are_left_with_their_part_and_nearer_ones_with_more() -> None:
    lengths = np.array([1.01, 1.5, 1.99, 2.01, 30.0])
    for length in lengths:
        rows = np.array([[length, 0.0], [0.0, 0.0]])
        total = exact(query(2), rows)
        bound = table_of(rows).lattice.bound
        part = total[0] / bound**2
        assert part == pytest.approx(float(pulled(np.array([length]))[0]), rel=1e-4)
        losses = total[-2:] / (PULL.strength * bound)
        shrunk = math.sqrt(part) / min(length, 2.0)
        assert losses[0] == pytest.approx((1 / shrunk - shrunk) * math.sqrt(part) * bound, rel=1e-4)
        assert losses[1] == 0
    assert float(pulled(np.array([30.0]))[0]) == pytest.approx(0.7)


def test_rows_within_the_radius_lose_nothing() -> None:
    rows = np.array([[0.7, 0.7], [-0.9, 0.0], [np.nan, 3.0], [0.0, 0.0]])
    assert exact(query(2), rows)[-2:].tolist() == [0, 0]
    assert (exact(query(2), rows)[:-2] == exact(query(2, pull=COUNTING), rows)).all()


def worker_that(**changes: Any) -> Any:
    """Return a worker in the plane whose rows are not drawn in, or multiplied, as they should be."""
    table = Table.of_size(2, 2, constant=False)
    worker: Any = query(2).task(table, SeededBits(np.random.default_rng(0))).worker()
    kept = worker._rows.kept

    def wrongly(unclipped: Floats, whole: Floats) -> Floats:
        factor: Floats = kept(unclipped, whole)
        worker._rows.wanted = worker._rows.wanted * changes.get("multiple", 1.0) + changes.get("more", 0.0)
        return factor * float(changes.get("length", 1.0))

    worker._rows.kept = wrongly
    return worker


@pytest.mark.parametrize("changes", [{"multiple": 9.0}, {"more": 1e12}, {"more": np.inf}])
def test_a_multiple_that_is_too_large_is_cut_to_what_the_proof_allows(changes: dict[str, float]) -> None:
    worker = worker_that(**changes)
    worker.add(np.array([[1.9, 0.0], [0.0, 0.0]]).T, 0)
    total, lattice = worker.total(), Lattice.for_table(2, 2)
    square, room = int(total[0]), PULL.rooms(lattice)[0]
    multiple = int(total[-2]) // math.isqrt(square)
    allowed = 2 * (lattice.bound**2 - square) - room
    assert multiple**2 <= allowed < (multiple + 1) ** 2


@pytest.mark.parametrize(
    "changes", [{"length": 0.7}, {"length": 1.1}, {"multiple": np.nan}, {"multiple": -1.0}]
)
def test_what_does_not_pass_the_tests_of_the_proof_loses_nothing(changes: dict[str, float]) -> None:
    worker = worker_that(**changes)
    worker.add(np.array([[1.9, 0.0], [0.0, 0.0]]).T, 0)
    assert worker.total()[-2:].tolist() == [0, 0]
    if "length" in changes:
        assert worker.total()[4:6].tolist() == [0, 0]


def test_blocks_orders_and_joint_scans_change_nothing() -> None:
    rows = np.random.default_rng(4).standard_t(2, size=(70_000, 2)) * [1.0, 3.0]
    asked = query(2, 2.0)
    table, bits = table_of(rows), SeededBits(np.random.default_rng(0))
    other = replace(asked, pull=COUNTING)
    tasks = tuple(part.task(table, bits) for part in (other, asked, other))
    together = JointTask(tasks)
    found = together.split(ArraySource(rows, threads=1).scan(together))
    assert (found[1] == exact(asked, rows)).all()
    assert (found[1] == ArraySource(rows[::-1].copy(order="F"), threads=2).scan(tasks[1])).all()
    assert (found[0] == found[2]).all()
    # Counts see the same rows, whether losses are asked or not.
    assert found[0][-2:].tolist() == found[1][4:6].tolist()


def test_every_loss_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, int]] = []

    def draw(bits: BitSource, variance: int, count: int) -> Integers:
        del bits
        drawn.append((variance, count))
        return np.full(count, 7, dtype=np.int64)

    rows = np.random.default_rng(3).normal(size=(100, 3)) * 2
    exactly = exact(query(3), rows)
    monkeypatch.setattr(clipped, "rounded_gaussian", draw)
    answer = query(3).answer(exactly, table_of(rows), SeededBits(np.random.default_rng(0)))
    assert drawn == [(answer.gram.variance, 2), (answer.gram.variance, 3)]
    assert answer.losses is not None
    assert (answer.losses == exactly[-3:] + 7).all()


def test_losses_have_the_noise_that_is_said() -> None:
    rows = np.vstack([np.tile([0.5, 0.0], (900, 1)), np.tile([1.8, 0.0], (100, 1))])
    curator = Curator(
        ArraySource(rows), Budget(PrivacyCost(Fraction(2000))), SeededBits(np.random.default_rng(2))
    )
    answers: list[NoisyClippedGram] = [curator.ask(query(2, rho=0.5)) for _ in range(2000)]
    found = np.array([answer.lost for answer in answers])
    part = float(pulled(np.array([1.8]))[0])
    lost = 100 / 1000 * (1.8 - part / 1.8)
    spread = answers[0].lost_spread
    assert spread == pytest.approx(1 / (PULL.strength * 1000 * math.sqrt(0.5)), rel=1e-3)
    # A standard deviation of 2,000 draws is off by 4.8% once in 400; one of half the noise by half.
    assert found.std(axis=0) == pytest.approx(spread, rel=0.05)
    # A mean by 3.7 of its standard errors once in 4,600.
    assert np.abs(found.mean(axis=0) - [lost, 0]).max() < 3.7 * spread / 2000**0.5


def test_laws_know_what_is_left_of_rows() -> None:
    near, far, least = (Fraction(part).limit_denominator(100) for part in (KEPT_NEAR, KEPT_FAR, KEPT_LOSING))
    pull = Pull(FAR, near, far, least)
    assert pull.strength == pytest.approx(loss_strength())
    norms = np.array([1.0001, 1.2, 1.4, 1.5, 1.9, 2.5, 5.0, 9.0])
    bound = Table.of_size(8, 2, constant=False).lattice.bound
    for norm in norms:
        total = exact(query(2, pull=pull), np.vstack([[norm, 0.0], np.zeros((7, 2))]))
        left = float(kept_square(np.array([norm]), measured=True)[0])
        assert total[0] / bound**2 == pytest.approx(left, rel=1e-4)
        back = float(given_back(np.array([norm]))[0])
        assert total[-2] / (pull.strength * bound**2) == pytest.approx(back, abs=1e-3)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: replace(PULL, kept_losing=Fraction(17, 20)), "kept_losing"),
        (lambda: replace(PULL, kept_losing=Fraction(1, 3)), "kept_losing"),
    ],
)
def test_a_pull_that_makes_no_sense_is_refused(asked: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        asked()


def test_losses_of_units_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(ArgumentError, match="units have no proof"):
        query(2).check(Table.of_size(9, 2, constant=False, grouped=True))
    query(2, pull=COUNTING).check(Table.of_size(9, 2, constant=False, grouped=True))
