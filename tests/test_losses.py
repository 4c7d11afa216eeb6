"""What clipping takes from rows, by how long they are."""

from __future__ import annotations

import numpy as np

from dpcov.losses import LossLaw


def test_norms_under_all_laws_are_those_under_each() -> None:
    law = LossLaw(np.full(3, 9.0), np.array([0.0, 0.3, -0.2]), np.array([0.1, 0.2, 0.3]), 4.0)
    upper = np.random.default_rng(0).random((7, 5))
    expected = [law.norms(row, i % 3) for i, row in enumerate(upper)]
    np.testing.assert_allclose(law.all_norms(upper), expected, rtol=1e-14)
