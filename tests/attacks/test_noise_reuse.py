"""Noise that is drawn once and used twice cancels out: after a fork, among threads, in lazy graphs."""

from __future__ import annotations

import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray

import dpcov
from dpcov.core import (
    Budget,
    BudgetError,
    Clipping,
    Curator,
    Gram,
    HeldRows,
    OSEntropy,
    PrivacyCost,
    RowTask,
    SeededBits,
)
from dpcov.maps import identity_map
from dpcov.sources import ArraySource, open_source

pytestmark = pytest.mark.os_entropy

ROWS = np.random.default_rng(0).normal(size=(40, 3))
ASK = Clipping(identity_map(3), 2.0)


def ask(curator: Curator) -> bytes:
    return curator.ask(Gram(ASK, 1, purpose="attack")).integers.tobytes()


def make_curator(bits: OSEntropy | SeededBits | None = None) -> Curator:
    budget = Budget(PrivacyCost(Fraction(1000)))
    return Curator(ArraySource(ROWS, threads=1), budget, bits or OSEntropy())


def in_child(work: partial[bytes]) -> bytes:
    """What `work` gives in a forked child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside the threads of numerical libraries.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, work())
        except BudgetError:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def release_with(bits: OSEntropy | SeededBits) -> bytes:
    return ask(make_curator(bits))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_forked_children_draw_noise_of_their_own() -> None:
    bits = OSEntropy()
    release_with(bits)
    told = {in_child(partial(release_with, bits)) for _ in range(3)} | {release_with(bits)}
    assert len(told) == 4
    # A generator with a state is copied by a fork: the attack works on it.
    seeded = SeededBits(np.random.default_rng(0))
    assert in_child(partial(release_with, seeded)) == release_with(seeded)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_forked_child_cannot_spend_the_budget_again() -> None:
    curator = make_curator()
    assert in_child(partial(ask, curator)) == b"refused"
    assert curator.remaining.rho == 1000


def test_threads_draw_noise_of_their_own_and_pay_for_each() -> None:
    curator = make_curator()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: ask(curator), range(64)))
    assert len(set(told)) == 64
    assert curator.remaining.rho == 1000 - 64


def test_a_lazy_table_is_computed_twice_with_noise_of_its_own() -> None:
    lazy = da.from_array(ROWS, chunks=(7, 3)).persist()
    names = ["a", "b", "c"]
    made = [
        dpcov.release(lazy, rho=1, method="gaussian", radius=2.0, columns=names, progress=False)
        for _ in range(2)
    ]
    first, second = (release.second_moment().values for release in made)
    assert not np.array_equal(first, second)


def test_nothing_random_travels_to_workers() -> None:
    """The same task pickles to the same bytes, and gives the same exact sum, however often it is asked."""
    seen: list[bytes] = []
    source = open_source(da.from_array(ROWS, chunks=(7, 3)), ["a", "b", "c"])

    class Watching:
        n_rows, columns, bounds = source.n_rows, source.columns, source.bounds
        in_memory, grouped = False, False

        def scan(self, task: RowTask, report: object = None) -> NDArray[np.int64]:
            del report
            seen.append(pickle.dumps(task))
            total = source.scan(task)
            seen.append(total.tobytes())
            return total

        def hold(self, positions: NDArray[np.int64], report: object = None) -> HeldRows:
            del report
            return source.hold(positions)

    curator = Curator(Watching(), Budget(PrivacyCost(Fraction(10))), OSEntropy())
    told = {ask(curator) for _ in range(2)}
    assert len(told) == 2
    assert seen[:2] == seen[2:]
    assert b"OSEntropy" not in seen[0]
