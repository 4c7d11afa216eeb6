"""How answers respond to a change of the released matrix: the few numbers that laws of errors need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcov.arrays import Array

Index = NDArray[Any] | slice | tuple[NDArray[Any] | slice | int, ...]
"""Which of some answers: as numpy takes it."""


@dataclass(frozen=True, eq=False)
class Response:
    """How answers respond to a change of the second moment: sizes of their gradients.

    With G the gradient, Q is ``F^T G F`` for a factor ``F F^T`` of the second moment: G for white rows. Its
    parts belong to the table's own directions and to the constant. Arrays have the shape of the answer.

    Attributes
    ----------
    noise : ndarray
        ``|B^T G B|^2``, with B the map of the noise law.
    own : ndarray
        ``|Q|^2`` among the table's own directions.
    cross : ndarray
        ``|q|^2``, between them and the constant.
    trace : ndarray
        The trace of Q among the table's own directions.
    constant : ndarray
        The entry of Q that belongs to the constant.
    along : ndarray, shape (..., number of heavy directions), optional
        ``v^T Q v`` for each direction v in which many long rows agree; None if there is none.
    beside : ndarray, shape (..., number of heavy directions), optional
        ``|Q v - (v^T Q v) v|`` among the table's own directions.
    across : ndarray, shape (..., number of heavy directions), optional
        ``q^T v``; None if it is zero.
    moved : ndarray, shape (..., number of draws), optional
        What the answer is too small by in each draw of the losses along heavy directions, where it was found
        without derivatives (``refits.py``); None if `along` and `across` tell.
    """

    noise: Array
    own: Array
    cross: Array
    trace: Array
    constant: Array
    along: Array | None = None
    beside: Array | None = None
    across: Array | None = None
    moved: Array | None = None

    def select(self, index: Index) -> Self:
        """Return the responses of some of the answers."""
        return self._each(lambda part: part[index])

    def flat(self) -> Self:
        """Return the responses with a single axis for the answers."""
        return self._each(lambda part: part.reshape(self.noise.size, *part.shape[self.noise.ndim :]))

    def times(self, factor: Array | float) -> Self:
        """Return the responses of the answers times a factor, one for all or one for each."""
        sizes = np.asarray(factor, dtype=np.float64)
        squared = {"noise", "own", "cross"}
        heavy = {"along", "beside", "across", "moved"}
        scaled = {}
        for name, part in self.parts().items():
            scale = np.square(sizes) if name in squared else sizes
            scaled[name] = part * (scale[..., None] if name in heavy and sizes.ndim else scale)
        return type(self)(**scaled)

    def parts(self) -> dict[str, Array]:
        """Return all arrays that there are, by name."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: part for name, part in given.items() if part is not None}

    def _each(self, change: Callable[[Array], Array]) -> Self:
        return type(self)(**{name: change(part) for name, part in self.parts().items()})
