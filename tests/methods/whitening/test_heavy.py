from __future__ import annotations

import numpy as np
from helpers.runs import start_run

from dpcov.methods.whitening.heavy import find_heavy
from dpcov.methods.whitening.settle import settle
from dpcov.methods.whitening.whiten import White

N, D, RARE = 40_000, 6, 150


def test_the_direction_of_a_column_is_found_exactly_and_that_of_a_mixture_about() -> None:
    mixture = np.array([0.0, 0.0, 0.6, 0.0, 0.8, 0.0])
    column = np.eye(D)[0]
    for along, least in ((column, 1 - 1e-9), (mixture, 0.97)):
        cosines = []
        for seed in range(5):
            rows = np.random.default_rng(seed).standard_normal((N, D))
            rows[:RARE] += 16 * along
            run = start_run(rows, seed=seed)
            # The coordinates are the columns themselves.
            white = White(np.eye(D), np.sqrt(D), 20.0, D)
            far_rows = settle(run, white).far_rows
            assert far_rows is not None
            heavy, agreement = find_heavy(run, white, far_rows)
            cosines += [abs(float(direction.vector @ along)) for direction in heavy[:1]]
            assert agreement.about > 0.2
        # Noise of 28 rows, of 150, tilts a direction by about 0.1.
        assert len(cosines) == 5
        assert np.median(cosines) > least
        assert (max(cosines) < 1 - 1e-6) == (least < 0.98)
