"""Scans beside other things: forks, and more rows than a test can hold."""

from __future__ import annotations

import os
import signal
import threading
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np
import pytest

import dpcov
from dpcov.core import Clipping, Gram, PrivacyCost, SeededBits, SourceError
from dpcov.core.lattice import Lattice
from dpcov.core.query import Table
from dpcov.maps import identity_map
from dpcov.opening import opened
from dpcov.sources import ArraySource, _remote
from dpcov.sources._remote import Partial
from dpcov.sources._scan import add_totals

PATIENCE = 600
ROWS = np.random.default_rng(0).normal(size=(50, 2))


def release_in_a_child() -> int:
    """Fork, release there, and return 7 if that was refused, 0 if it was made."""
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)  # if it hangs, it ends
        try:
            dpcov.release(ROWS, rho=1, method="gaussian", radius=1.0)
        except SourceError as error:
            os._exit(7 if "forked while another thread read a table" in str(error) else 8)
        except BaseException:  # noqa: BLE001 - a child must not run on into the tests
            os._exit(9)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_forked_in_a_scan_refuses_before_its_blas_can_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()
    rows = ArraySource._rows

    def slow(self: ArraySource, first: int, last: int) -> Any:
        reading.set()
        assert go_on.wait(PATIENCE)
        return rows(self, first, last)

    monkeypatch.setattr(ArraySource, "_rows", slow)
    scan = threading.Thread(
        target=dpcov.release, args=(ROWS,), kwargs={"rho": 1, "method": "gaussian", "radius": 1.0}
    )
    scan.start()
    assert reading.wait(PATIENCE)
    monkeypatch.undo()
    try:
        assert release_in_a_child() == 7
    finally:
        go_on.set()
        scan.join()
    assert release_in_a_child() == 0


MANY = (2**31, 3 * 10**9, 10**12)


def split(total: int, parts: int) -> list[int]:
    cuts = [total * i // parts for i in range(parts + 1)]
    return [after - before for before, after in pairwise(cuts)]


@pytest.mark.parametrize("n_rows", MANY)
def test_sums_over_billions_of_rows_are_exact(n_rows: int) -> None:
    # All rows at the bound of the lattice, in the totals of partitions as they would come from a cluster.
    d = 3
    lattice = Lattice.for_table(n_rows, d)
    parts = split(n_rows, 1000)
    largest = np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 0]])
    partials = [Partial(rows, rows * lattice.bound**2 * largest) for rows in parts]
    added = _remote.add([_remote.add(partials[i : i + 8]) for i in range(0, 1000, 8)])
    exact = n_rows * lattice.bound**2
    assert (added.n_rows, added.total is not None) == (n_rows, True)
    total = _remote.unwrap(added, n_rows)
    assert total.tolist() == (exact * largest.astype(object)).tolist()
    assert (
        add_totals([partial.total for partial in partials if partial.total is not None]).tolist()
        == total.tolist()
    )

    query = Gram(Clipping(identity_map(d), 1.0), Fraction(1, 2), purpose="gram")
    table = Table(n_rows, d, constant=False, in_memory=False, lattice=lattice)
    noisy = query.answer(total, table, SeededBits(np.random.default_rng(0)))
    # Noise of 12 standard deviations has a probability below 1e-30: an overflow would be off by far more.
    noise = noisy.integers.astype(object) - exact * largest.astype(object)
    assert max(abs(int(entry)) for entry in noise.ravel()) <= 12 * isqrt(noisy.variance)


def test_a_coarser_bound_would_overflow() -> None:
    # The bound twice as large, without which the test above could not fail: the sum wraps around.
    n_rows = MANY[0]
    bound = 2 * Lattice.for_table(n_rows, 3).bound
    parts = split(n_rows, 1000)
    total = add_totals([np.array([rows * bound**2]) for rows in parts])
    assert total.tolist() != [n_rows * bound**2]


def test_a_table_beyond_two_billion_rows_is_told_what_rounding_does(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 10**10

    class Huge(ArraySource):
        @property
        def n_rows(self) -> int:
            return many

    monkeypatch.setattr("dpcov.opening.open_source", lambda data, *_: Huge(data))
    with (
        pytest.warns(UserWarning, match=r"10,000,000,000 rows .* up to 3\.6 standard deviations"),
        opened(ROWS, PrivacyCost(Fraction(1)), "m"),
    ):
        pass
    many = 10**9
    with opened(ROWS, PrivacyCost(Fraction(1)), "m"):
        pass
