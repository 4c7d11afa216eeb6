"""Gaps: missing values are filled with a public number, and a column of 0 and 1 tells where.

The column tells where values are *missing*, not where they are there: where hardly any is missing, it is zero
in nearly all rows, and no copy of the constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Array
from dpcov.sources.encoding.kinds import Kind
from dpcov.sources.encoding.terms import Term


@dataclass(frozen=True)
class Gap:
    """A column that tells where some others are missing, all of them together.

    Attributes
    ----------
    name : str
        What it is called.
    columns : tuple of int
        The places of the columns that it is about.
    fills : tuple of float
        What stands in them where they are missing: the number next to 0 that their bounds allow.
    """

    name: str
    columns: tuple[int, ...]
    fills: tuple[float, ...]


def find_gaps(kinds: Mapping[str, Kind], terms: Sequence[Term], bounds: Array) -> tuple[Gap, ...]:
    """Return the columns that tell where values are missing.

    A column that may have gaps needs one, and so does a term of several such columns, or with a logarithm,
    which not every number has. A term of one such column is missing where that is.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.sources.encoding import number
    >>> from dpcov.sources.encoding.gaps import find_gaps
    >>> kinds = {"age": number(gaps=False), "wage": number(gaps=True)}
    >>> [gap.name for gap in find_gaps(kinds, [], np.tile([-np.inf, np.inf], (2, 1)))]
    ['missing(wage)']
    """
    found: dict[str, list[int]] = {}
    lengths = {raw: len(kind.names(raw)) for raw, kind in kinds.items()}
    ends = {raw: kind.bounds() for raw, kind in kinds.items()}
    place = 0
    for raw, kind in kinds.items():
        if kind.gaps and lengths[raw]:
            found[raw] = list(range(place, place + lengths[raw]))
        place += lengths[raw]
    for term in terms:
        size = math.prod(lengths[factor.column] for factor in term.factors)
        own = dict.fromkeys(factor.column for factor in term.factors if factor.column in found)
        logs = [factor.column for factor in term.factors if factor.log]
        defined = all(lower > 0 for column in logs for lower, _ in ends[column])
        name = next(iter(own)) if len(own) == 1 and defined else str(term)
        if own or not defined:
            found.setdefault(name, []).extend(range(place, place + size))
        place += size
    return tuple(
        Gap(f"missing({name})", tuple(places), tuple(float(np.clip(0.0, *bounds[i])) for i in places))
        for name, places in found.items()
    )


def fill_gaps(columns: list[Array], gaps: Sequence[Gap]) -> list[Array]:
    """Return columns without gaps, and those that tell where they were.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.sources.encoding.gaps import Gap, fill_gaps
    >>> fill_gaps([np.array([3.0, np.nan])], [Gap("missing(age)", (0,), (0.0,))])
    [array([3., 0.]), array([0., 1.])]
    """
    filled = list(columns)
    for gap in gaps:
        missing = np.zeros(len(columns[gap.columns[0]]), dtype=bool)
        for place in gap.columns:
            missing |= ~np.isfinite(columns[place])
        for place, number in zip(gap.columns, gap.fills, strict=True):
            filled[place] = np.where(missing, number, columns[place])
        filled.append(missing.astype(np.float64))
    return filled
