"""All answers of a run together tell no more than was charged, and worst neighbours take nearly all of it.

What is compared is exact: the shift between two neighbours, the variance that the noise was drawn with, and
the charge. So a missed charge shows at any size, where an audit would need millions of runs: unless the
neighbours leave its answer alone, or it was asked together with a query that has room to spare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import run
from helpers.transcripts import Asked, overheard
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcov
from dpcov import learn
from dpcov.core import Charge, Gram, NormHistogram, PrivacyCost
from dpcov.core.queries.gram import LatticeRows
from dpcov.methods.whitening.queries.columns import PerColumn

Array = NDArray[np.float64]

CLOUD = np.random.default_rng(0).normal(size=(300, 2))
"""Rows among which one lies far out, in either direction and in another bin of every histogram."""
FAR, FARTHER = [1e9, 0.0], [0.0, 1e12]


def with_first(row: list[float]) -> Array:
    rows = CLOUD.copy()
    rows[0] = row
    return rows


def released(rows: Array, _folder: Path) -> None:
    dpcov.release(rows, rho=1, progress=False)


def fitted(rows: Array, _folder: Path) -> None:
    learn.PrivateLinearRegression(rho=1, release_options={"progress": False}).fit(rows[:, :1], rows[:, 1])


def commanded(rows: Array, folder: Path) -> None:
    table = folder / "table.csv"
    np.savetxt(table, rows, delimiter=",", header="a,b", comments="")
    done = run("dpcov release --rho 1 --columns a,b -o", str(folder / "made.dpcov"), str(table))
    # One far row may be all that noise shows, in which case nothing is usable.
    assert done.exit_code in {0, 6}, done.stderr


def transcript(act: Callable[[Array, Path], None], folder: Path) -> list[Asked]:
    one, other = with_first(FAR), with_first(FARTHER)
    with overheard(one, other) as asked:
        act(one, folder)
    return asked


def unpaid(asked: list[Asked]) -> list[str]:
    return [heard.purpose for one in asked if one.loss > one.charged for heard in one.heard]


@pytest.mark.parametrize("act", [released, fitted, commanded])
def test_worst_neighbours_take_nearly_all_that_was_charged_and_no_more(
    act: Callable[[Array, Path], None], tmp_path: Path
) -> None:
    asked = transcript(act, tmp_path)
    assert len(asked) > 5
    assert sum(one.charged for one in asked) == 1
    assert unpaid(asked) == []
    # Of the released matrix they leave a part: rows that both lie far beyond are drawn in and counted alike.
    assert 0.8 < sum(one.loss for one in asked) <= 1


@settings(max_examples=15)
@given(
    pair=st.tuples(*[st.lists(st.floats(allow_subnormal=True), min_size=2, max_size=2)] * 2),
    scale=st.sampled_from([1e-300, 1.0, 1e300]),
)
def test_no_pair_of_rows_takes_more_than_was_charged(
    pair: tuple[list[float], list[float]], scale: float
) -> None:
    first, second = (CLOUD[:40] * scale for _ in pair)
    first[0], second[0] = pair
    with overheard(first, second) as asked:
        dpcov.release(first, rho=5, progress=False, force=True)
    assert asked
    assert unpaid(asked) == []


def free_histograms(patch: pytest.MonkeyPatch) -> None:
    nothing = (Charge("norms", PrivacyCost(Fraction(0))),)
    patch.setattr(NormHistogram, "charges", property(lambda _: nothing))


def one_column_paid(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PerColumn, "charges", property(lambda self: self.queries[0].charges))


def less_variance(patch: pytest.MonkeyPatch) -> None:
    variance = Gram.variance
    patch.setattr(Gram, "variance", lambda self, lattice: variance(self, lattice) // 4 * 2)


def rows_a_little_longer(patch: pytest.MonkeyPatch) -> None:
    make = LatticeRows.__init__

    def longer(self: LatticeRows, clipping: Any, lattice: Any, **options: Any) -> None:
        make(
            self, clipping, replace(lattice, bound=2 * lattice.bound, clip=lattice.clip * 11 // 10), **options
        )

    patch.setattr(LatticeRows, "__init__", longer)


@pytest.mark.parametrize(
    ("mutant", "shows"),
    [
        (free_histograms, "norms of the rows"),
        (one_column_paid, "scales of the columns"),
        (less_variance, "the released matrix"),
        (rows_a_little_longer, "whitening"),
    ],
)
def test_a_missed_charge_and_a_little_less_noise_show(
    mutant: Callable[[pytest.MonkeyPatch], None], shows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert shows in unpaid(transcript(released, tmp_path))
