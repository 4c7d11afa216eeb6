from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpcov.core import Budget, Curator, ExactnessError, PrivacyCost, SeededBits
from dpcov.core.exact_blas import add_gram, check_blas
from dpcov.core.lattice import Lattice, LatticeMap
from dpcov.core.queries.gram import Clipping, Gram, GramSum, GramTask, NoisyGram, Rule
from dpcov.core.query import Table
from dpcov.core.tasks import RowTask
from dpcov.core.units import Units
from dpcov.maps import integer_map
from dpcov.sources import ArraySource


def table(seed: int = 0, n_rows: int = 3000, d: int = 7) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(2, size=(n_rows, d)) @ rng.normal(size=(d, d))
    rows[5] = np.nan
    rows[77, 3] = np.inf
    rows[100] = 1e308
    return rows


def clippings(d: int) -> list[Clipping]:
    rng = np.random.default_rng(d)
    first = integer_map(rng.normal(size=(d, d)))
    return [
        Clipping(first, 5.0),
        Clipping(first, 5.0, Rule.DROP),
        Clipping(first, 1.0, Rule.DIRECTION),
        Clipping(first, 5.0, Rule.TAIL),
    ]


def scan(rows: NDArray[np.float64], task: RowTask, threads: int = 1) -> NDArray[np.int64]:
    return ArraySource(rows, threads=threads).scan(task)


def scan_in_blocks(rows: NDArray[np.float64], task: RowTask, length: int) -> NDArray[np.int64]:
    worker = task.worker()
    for first in range(0, len(rows), length):
        worker.add(rows[first : first + length].T, first)
    return worker.total()


@pytest.mark.parametrize("clipping", clippings(4), ids=["clip", "drop", "direction", "tail"])
def test_the_gram_is_what_python_integers_give(clipping: Clipping) -> None:
    rows = table(n_rows=300, d=4)
    lattice = Lattice.for_table(len(rows), 4)
    exact = reference.gram(rows, clipping, lattice)
    assert scan(rows, GramTask(clipping, lattice, constant=False)).tolist() == exact


@pytest.mark.parametrize("clipping", clippings(7), ids=["clip", "drop", "direction", "tail"])
def test_the_gram_keeps_its_bits_whatever_the_order_blocks_threads_and_layout(clipping: Clipping) -> None:
    rows = table()
    task = GramTask(clipping, Lattice.for_table(len(rows), 7), constant=False)
    expected = scan(rows, task)
    permuted = rows[np.random.default_rng(1).permutation(len(rows))]
    assert (scan(permuted, task) == expected).all()
    assert (scan(np.asfortranarray(rows), task) == expected).all()
    assert (scan(rows, task, threads=2) == expected).all()
    for length in (17, 256, 512):
        assert (scan_in_blocks(rows, task, length) == expected).all()
    for length in (1, 2, 3):
        assert (scan_in_blocks(rows[:300], task, length) == scan(rows[:300], task)).all()
    assert (scan(rows[:, ::-1][:, ::-1], pickle.loads(pickle.dumps(task))) == expected).all()  # noqa: S301


@pytest.mark.parametrize("clipping", clippings(4), ids=["clip", "drop", "direction", "tail"])
def test_on_the_coarse_grid_the_gram_is_what_python_integers_give(clipping: Clipping) -> None:
    rows = table(n_rows=1500, d=4)
    size = Table.of_size(len(rows), 4, constant=False)
    task = Gram(clipping, 1, "", coarse=True).task(size, SeededBits(np.random.default_rng(0)))
    coarse = Lattice.for_table(len(rows), 4).coarse()
    assert scan(rows, task).tolist() == reference.gram(rows, clipping, coarse)
    assert scan_in_blocks(rows, task, 17).tolist() == scan(rows, task, threads=2).tolist()


@pytest.mark.parametrize(
    ("n_rows", "rho", "every", "hidden"),
    [
        (1000, 1, 1, True),
        # A twelfth for each row, and a hundredth of 4095^2 / sqrt(rho): equal at 2,012,283 rows for 1.
        (2_012_283, 1, 1, True),
        (2_012_284, 1, 1, False),
        (4_024_566, Fraction(1, 4), 1, True),
        (4_024_567, Fraction(1, 4), 1, False),
        (8_000_000, 1, 4, True),
        (8_100_000, 1, 4, False),
    ],
)
def test_rows_are_rounded_to_fewer_bits_where_noise_hides_it(
    n_rows: int, rho: Fraction | int, every: int, *, hidden: bool
) -> None:
    clipping, fine = clippings(4)[0], Lattice.for_table(n_rows, 4)
    for grouped in (False, True):
        size = Table.of_size(n_rows, 4, constant=False, grouped=grouped)
        query = Gram(clipping, rho, "", every, coarse=True)
        taken = fine.coarse() if hidden and not grouped else size.lattice
        assert query.lattice(size) == taken
        assert query.task(size, SeededBits(np.random.default_rng(0))).lattice == taken  # type: ignore[attr-defined]
        assert replace(query, coarse=False).lattice(size) == size.lattice


def test_the_coarse_grid_has_the_same_noise_and_tells_the_same() -> None:
    rows = np.random.default_rng(3).normal(size=(20_000, 5))
    answers = []
    for coarse in (False, True):
        bits = SeededBits(np.random.default_rng(5))
        curator = Curator(ArraySource(rows, threads=1), Budget(PrivacyCost(Fraction(1))), bits)
        answers.append(curator.ask(Gram(Clipping(integer_map(np.eye(5)), 4.0), 1, "", coarse=coarse)))
    fine, coarse_ = answers
    # B^4 / rho, in units of (R / clip)^2: the clip is B less 3.
    assert coarse_.variance == 2 * -(-(4095**4) // 2)
    assert coarse_.sigma == pytest.approx(fine.sigma * (4095 / 4092) ** 2, rel=1e-5)
    # Noise is up to five times sigma in both; a wrong unit would be off by a factor of 65,000.
    assert np.abs(fine.mean() - coarse_.mean()).max() < 12 * fine.sigma < 0.01


def test_a_constant_column_is_a_column_of_ones() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3))
    clipping = Clipping(integer_map(np.eye(4)), 3.0)
    lattice = Lattice.for_table(500, 4)
    with_ones = np.column_stack([rows, np.ones(500)])
    joined = scan(rows, GramTask(clipping, lattice, constant=True))
    assert (joined == scan(with_ones, GramTask(clipping, lattice, constant=False))).all()


def test_beyond_2_to_the_53_the_sum_is_no_longer_exact() -> None:
    # The block length that Lattice chooses is needed: the same data in longer blocks go wrong.
    rng = np.random.default_rng(0)
    block = np.rint(rng.uniform(-1, 1, size=(3, 4096)) * 2**26)
    exact = [[sum(int(a) * int(b) for a, b in zip(r, s, strict=True)) for s in block] for r in block]
    total = np.zeros((3, 3))
    add_gram(total, block)
    assert exact[0][0] > 2**53
    assert [int(v) for v in total[np.triu_indices(3)]] != [
        exact[i][j] for i, j in zip(*np.triu_indices(3), strict=True)
    ]
    within = block[:, :2].copy()
    total = np.zeros((3, 3))
    add_gram(total, within)
    assert int(total[0, 1]) == sum(int(a) * int(b) for a, b in zip(within[0], within[1], strict=True))


def test_this_machines_blas_is_exact() -> None:
    check_blas()


@pytest.mark.parametrize("d", [1, 2, 10, 11, 12, 40])
def test_products_of_few_and_of_many_columns_are_what_python_integers_give(d: int) -> None:
    # Two products are in use, up to 11 columns and beyond. Squares of 30 bits, 8000 of them: close to 2^53.
    block = np.random.default_rng(d).integers(-(2**20), 2**20, size=(d, 8000))
    total = np.full((d, d), 3.0)
    add_gram(total, block.astype(np.float64))
    exact = block.astype(object) @ block.T.astype(object) + 3
    assert exact.max() > 2**50
    assert (np.triu(total.astype(np.int64)) == np.triu(exact)).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "longdouble", "int64", "uint8", "bool"])
def test_values_of_other_types_become_float64_before_centres_are_subtracted(dtype: str) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(900, 3)) * 3).astype(dtype)
    if dtype == "longdouble":
        # As float64 this is the centre.
        rows[:, 1] = np.longdouble(-1e11) + np.longdouble(2) ** -19
    coefficients = np.tri(4) * [1e3, 1e6, 1e3, 1e3]
    centred = LatticeMap(coefficients, 1e3, np.array([0, 0, -9, 0]), np.array([0.3, -1e11, 0.0, 0.0]))
    task = GramTask(Clipping(centred, 5.0), Lattice.for_table(900, 4), constant=True)
    about = np.column_stack([rows.astype(np.float64) - centred.centres[:3], np.ones(900)])
    plain = replace(centred, centres=np.zeros(4))
    expected = reference.gram(about, Clipping(plain, 5.0), Lattice.for_table(900, 4))
    for block in (rows.T, [np.ascontiguousarray(column) for column in rows.T]):
        worker = task.worker()
        worker.add(block, 0)
        assert worker.total().tolist() == expected
    assert scan(rows, task).tolist() == expected
    assert scan(np.asfortranarray(rows), task).tolist() == expected


def grid_rows(columns: int, n_rows: int, bound: int = 3) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integer rows, one a column, and their squared norms."""
    values = np.random.default_rng(columns).integers(-bound, bound + 1, size=(columns, n_rows))
    return values.astype(np.float64), (values**2).sum(axis=0).astype(np.float64)


@pytest.mark.parametrize("d", [1, 3, 14])
def test_a_block_that_is_too_long_to_be_exact_is_added_in_pieces(d: int) -> None:
    values, squares = grid_rows(d, 103)
    found, moved = GramSum(d, 2**53 // 20), []
    inner = found._move
    # One piece at most before all that was added is moved to integers.
    found._move = lambda: (moved.append(found._rows), inner())  # type: ignore[assignment, method-assign, func-returns-value]
    for first, last in ((0, 7), (7, 67), (67, 103)):
        found.add(values[:, first:last], squares[first:last])
    assert (found.total() == values @ values.T).all()
    assert max(moved) <= 20
    assert sum(moved) == 103


def test_pieces_of_units_end_where_a_unit_does() -> None:
    counts = np.random.default_rng(0).integers(0, 6, 50)
    units = Units(np.cumsum(counts))
    values, squares = grid_rows(4, int(counts.sum()))
    joint = units.add_up(squares.astype(np.int64)).astype(np.float64)
    found = GramSum(4, 2**53 // 7)
    found.add(values, joint, units)
    # The trace of every piece is compared with the squares of its units, so a wrong cut raises.
    assert (found.total() == values @ values.T).all()
    with pytest.raises(ExactnessError):
        GramSum(4, 2**53 // 7).add(values, joint, Units(np.roll(units.ends, 1)[1:].repeat(2)[:50]))


def test_a_scan_leaves_numpys_buffer_as_it_was() -> None:
    task = GramTask(clippings(7)[0], Lattice.for_table(3000, 7), constant=False)
    with np.errstate():
        np.setbufsize(4096)
        scan(table(), task)
        assert np.getbufsize() == 4096


@given(
    hnp.arrays(np.float64, (9, 3), elements=st.floats(width=64)),
    hnp.arrays(np.float64, 3, elements=st.floats(width=64)),
    st.integers(0, 8),
    st.floats(1e-3, 1e3),
    st.sampled_from(range(4)),
)
@settings(max_examples=200)
def test_replacing_a_row_moves_the_gram_and_its_trace_by_at_most_sqrt_2_b_squared(
    rows: NDArray[np.float64], other: NDArray[np.float64], place: int, radius: float, kind: int
) -> None:
    chosen = clippings(3)[kind]
    clipping = Clipping(chosen.lattice_map, radius, chosen.rule)
    lattice = Lattice.for_table(9, 3)
    task = GramTask(clipping, lattice, constant=False)
    neighbour = rows.copy()
    neighbour[place] = other
    change = (scan(rows, task) - scan(neighbour, task)).astype(object)
    assert (change * change).sum() + change.trace() ** 2 <= 2 * lattice.bound**4


def test_no_more_could_be_told_of_the_trace_for_the_same_price() -> None:
    # One row at the edge and a zero row take all there is: with less noise on the trace they would take more.
    lattice = Lattice.for_table(9, 3)
    task = GramTask(Clipping(integer_map(np.eye(3)), 1.0), lattice, constant=False)
    rows = np.zeros((9, 3))
    empty = scan(rows, task)
    rows[4] = [0.0, 7.0, 0.0]
    change = (scan(rows, task) - empty).astype(object)
    taken = (change * change).sum() + change.trace() ** 2
    assert 0.9999 * 2 * lattice.bound**4 < taken <= 2 * lattice.bound**4


@given(hnp.arrays(np.int64, (4, 4), elements=st.integers(-(2**40), 2**40)), st.integers(-(2**42), 2**42))
def test_the_mean_is_the_least_squares_estimate_from_the_matrix_and_its_trace(
    entries: NDArray[np.int64], trace: int
) -> None:
    integers = np.triu(entries) + np.triu(entries, 1).T
    answer = NoisyGram(integers, trace, 0.5, 9, 1.0, 10, integer_map(np.eye(4)))
    # One equation for each entry of the diagonal and one for the trace, all with the same noise.
    told = np.append(integers.diagonal(), trace).astype(np.float64)
    diagonal = np.linalg.lstsq(np.vstack([np.eye(4), np.ones(4)]), told, rcond=None)[0]
    expected = integers.astype(np.float64)
    np.fill_diagonal(expected, diagonal)
    assert np.allclose(answer.mean(), expected * 0.05, rtol=1e-12, atol=1e-3)


def test_the_trace_has_noise_of_its_own_and_takes_most_of_it_from_the_mean() -> None:
    # 2,000 answers about zero rows, in units of the noise. A sample variance is off by 3.2% of itself then,
    # and by 5 times that once in 1.7 million. Noise of the diagonal used again for the trace would leave 2
    # there, and none 0.
    rows, d, asked = np.zeros((4, 2)), 2, 2000
    curator = Curator(
        ArraySource(rows, threads=1),
        Budget(PrivacyCost(Fraction(asked))),
        SeededBits(np.random.default_rng(5)),
    )
    query = Gram(Clipping(integer_map(np.eye(2)), 1.0), 1, "noise")
    answers = [curator.ask(query) for _ in range(asked)]
    sigma = answers[0].sigma
    traces = np.array([answer.trace for answer in answers]) * answers[0].unit / 4 / sigma
    means = np.array([answer.mean().trace() for answer in answers]) / sigma
    assert abs(traces.var() - 1) < 5 * 0.0316
    assert abs(means.var() / (d / (d + 1)) - 1) < 5 * 0.0316
