"""The recursion, call by call, beside a replay from the paper's own lines with the same noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.paper_lines import Replay
from numpy.typing import NDArray

from dpcov.core import Budget, Curator, Query, SeededBits, resolve_budget
from dpcov.paper.queries import ShrunkGram
from dpcov.paper.queries.shrinking import ShrinkingMemory
from dpcov.paper.recursive import estimate_recursive
from dpcov.sources import ArraySource

Matrix = NDArray[np.float64]


class Watched(Curator):
    """A real curator that remembers maps, radii, answers, and the scalars that rows were shrunk by."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.maps: list[Matrix] = []
        self.radii: list[float] = []
        self.answers: list[Matrix] = []
        self.factors: list[Matrix] = []

    def ask(self, *queries: Query[Any]) -> Any:
        answer = super().ask(*queries)
        if isinstance(queries[0], ShrunkGram):
            self.maps.append(queries[0].clipping.lattice_map.matrix())
            self.radii.append(queries[0].clipping.radius)
            self.answers.append(answer.mean())
            memory = self._table.memory.get(ShrunkGram)
            # The scalars after this step too; from the second question on.
            if isinstance(memory, ShrinkingMemory):
                self.factors.append(memory.factors)
        return answer


def rows_with_tails(seed: int, n_rows: int = 4000, d: int = 4) -> Matrix:
    """Rows of a thin ellipsoid in general position; one in 40 is many times longer in one direction."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_rows, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    far = rng.random(n_rows) < 1 / 40
    rows[far] = np.eye(d)[rng.integers(d, size=int(far.sum()))] * np.exp(rng.uniform(0, 9, (far.sum(), 1)))
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(rows * np.geomspace(1, 1e4, d) @ turn)


def watched(rows: Matrix, rho: float, seed: int, **told: Any) -> tuple[Watched, Matrix]:
    curator = Watched(
        ArraySource(rows), Budget(resolve_budget(rho=rho)), SeededBits(np.random.default_rng(seed))
    )
    return curator, estimate_recursive(curator, **told).second_moment


@pytest.mark.parametrize("kind", ["repaired", "paper"])
@pytest.mark.parametrize(("seed", "alpha", "rho"), [(0, 0.5, 1e8), (1, 0.3, 1e4), (2, 0.1, 1.0)])
def test_every_call_has_the_maps_directions_and_scalars_of_the_paper(
    kind: str, seed: int, alpha: float, rho: float
) -> None:
    rows, m = rows_with_tails(seed), 6.0
    radius, least = 2e4, 0.01
    curator, found = watched(
        rows, rho, seed, m=m, alpha=alpha, radius=radius, least_eigenvalue=least, constants=kind
    )
    turns = []

    def noisy(call: int, forms: Matrix, exact: Matrix) -> Matrix:
        # The library's map is the paper's up to a rotation of its output, and to rounding to integers.
        turn = forms @ np.linalg.inv(curator.maps[call])
        np.testing.assert_allclose(turn @ turn.T, np.eye(4), atol=1e-3)
        turns.append(turn)
        answer = np.asarray(turn @ curator.answers[call] @ turn.T)
        if rho == 1e8:
            # Noise of kappa / (n sqrt(rho)): the second moment itself, tail and all.
            np.testing.assert_allclose(answer, exact, atol=1e-5 * curator.radii[call] ** 2)
        return answer

    replay = Replay(noisy)
    expected = replay.run(rows, m=m, alpha=alpha, radius=radius, least=least, kind=kind)
    calls = replay.calls
    assert len(calls) == len(curator.maps) > 8
    np.testing.assert_allclose(np.square(curator.radii), [call.squared_radius for call in calls], rtol=1e-9)
    for turn, call, following in zip(turns, calls, curator.maps[1:], strict=False):
        # What the library's next map halves, seen in the paper's coordinates, is V.
        step = turn.T @ call.forms
        halved = following @ np.linalg.inv(step)
        gram = np.asarray(turn @ halved.T @ halved @ turn.T)
        np.testing.assert_allclose(gram, 8 / 7 * (np.eye(4) - 0.75 * call.large), atol=2e-3)
    # V is neither empty nor everything, and changes on the way.
    assert len({round(float(np.trace(call.large))) for call in calls}) >= 2
    # Each question leaves the least ratio of every row so far: that of its own radius included.
    assert len(curator.factors) == len(calls) - 1
    for call, factors in zip(calls[1:], curator.factors, strict=True):
        np.testing.assert_allclose(np.minimum(factors, 1.0), call.factors, rtol=1e-3)
    shrunk = [int((call.factors < 1 - 1e-6).sum()) for call in calls]
    assert shrunk[0] < shrunk[len(calls) // 2] < shrunk[-1] < len(rows)
    if rho > 1:
        scale = float(np.linalg.norm(expected, 2))
        np.testing.assert_allclose(found, expected, atol=1e-3 * scale)
