"""How much room the constant gets in the region: it pays for the means.

In coordinates in which rows are ``(y, c)``, y centred and no longer than r, c the constant's coordinate, a
Gram matrix has noise of size ``r^2 + c^2`` in every entry. A mean is an entry between y and the constant,
over c. With ``h = (c / r)^2`` and in units of ``1 / (n sqrt(2 rho))``:

    noise of a mean      (r^2 + c^2) / c = r (1 + h) / sqrt(h)
    noise of all others  1 + h times what it is without a constant.

A query of its own for the sums of y has sensitivity 2 r. If it costs the others as much, it has a share of
2 h of the budget, and noise of ``2 r / sqrt(2 h)``: sqrt 2 times as much. With all of the budget it has 2 r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix
from dpcov.methods.whitening import constants as c


@dataclass(frozen=True, eq=False)
class Room:
    """A region in which the constant's coordinate is as long as its means deserve.

    Attributes
    ----------
    stretch : ndarray, shape (d, d)
        What to apply to coordinates: it stretches them along the constant's own direction.
    radius : float
        The radius that holds the same rows then.
    """

    stretch: Matrix
    radius: float


def make_room(forms: Matrix, radius: float, *, constant: bool) -> Room:
    """Make the constant's coordinate `CONSTANT_REACH` of how far rows reach beside it, unless it is longer.

    Parameters
    ----------
    forms : ndarray, shape (d, d)
        Coordinates: one linear form of the columns a row.
    radius : float
        Where rows are clipped in them.
    constant : bool
        Whether the last column is the constant one. In units of several rows it is not the same for all: one
        of many rows would leave the region for its constant alone.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.methods.whitening.room import make_room
    >>> room = make_room(np.eye(3), 10.0, constant=True)
    >>> room.stretch.diagonal().round(2), round(room.radius, 2)
    (array([1.  , 1.  , 2.49]), 10.26)
    """
    size = len(forms)
    if not constant:
        return Room(np.eye(size), radius)
    # The constant of a row y is ``along @ y``, so complete rows lie at this distance from the origin.
    along = np.asarray(np.linalg.inv(forms)[-1], dtype=np.float64)
    present = 1 / float(np.linalg.norm(along))
    beside = math.sqrt(max(radius**2 - present**2, 0.0))
    wanted = max(c.CONSTANT_REACH * beside, present)
    direction = along * present
    stretch = np.eye(size) + (wanted / present - 1) * np.outer(direction, direction)
    return Room(stretch, math.sqrt(radius**2 - present**2 + wanted**2) if wanted > present else radius)
