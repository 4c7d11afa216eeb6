"""How much of an uncertain loss to give back: as much as leaves the least relative error.

How far out rows lie beyond the region nobody sees. What a column has lost follows from what its mean has
lost, by a law of the tail, and it may be several times as much or a fraction of it. Let a variance be 1 after
clipping, let t be what it lost, and r what it is given back. Then it is off by ``|r - t| / (1 + t)`` of what
it was: by 1 at most if too little is given back, and by any factor if too much. So what is given back is the
r of least expected error, which is the median of t under its law, weighted by ``1 / (1 + t)``. Where losses
are small beside what is left, that is their median.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dpcov.arrays import Vector
from dpcov.methods.whitening import constants as c

_DRAWS = 200


def least_error(expected: Vector) -> Vector:
    """Return what to give back of losses, both as multiples of what is left of the variances.

    Parameters
    ----------
    expected : ndarray
        What was lost, about: the median of its law.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.methods.whitening.caution import least_error
    >>> least_error(np.array([0.0, 0.01, 0.1, 1.0, 10.0])).round(3)
    array([0.   , 0.01 , 0.079, 0.46 , 2.285])
    """
    likely = expected[:, None] * np.exp(c.VAGUE_LOSS * ndtri((np.arange(_DRAWS) + 0.5) / _DRAWS))
    sums = np.cumsum(1 / (1 + likely), axis=1)
    middle = (sums < sums[:, -1:] / 2).sum(axis=1)
    result: Vector = likely[np.arange(len(likely)), middle]
    return result
