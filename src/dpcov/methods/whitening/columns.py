"""Step 1, columns: bring every column to a common centre and scale, each on its own.

Columns come in any unit, and often far from zero: a year is 2013 +- 3. Taken together, the largest would hide
all others, one after another. Taken one by one, all columns are found at once, and d questions about one
column cost no more than one question about d: each has sensitivity 1, together ``sqrt(d)``.

A histogram of ``|x - c|`` tells the scale a of a column, whatever it is. Unit rows of ``((x - c) / a, 1)``
then tell its centre, to within the noise, which is a small part of a. If rows lie much closer to the new
centre, their scale was but that of the distance to it, and both are asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import Clipping, Gram, NormHistogram, Rule, sampled_rows
from dpcov.maps import identity_map, integer_map
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.norms import NormLook, wide_grid
from dpcov.methods.whitening.queries.columns import PerColumn
from dpcov.methods.whitening.run import Run


@dataclass
class _Column:
    """What is known of a column: its place, its centre, and how far most rows lie from it."""

    place: int
    centre: float = 0.0
    scale: float = 1.0


def standardise(run: Run) -> Matrix:
    """Return forms of the columns, one for each, in which most have a centre of about 0 and a scale of 1."""
    own = run.d - run.curator.has_constant
    if _share(run, own) == c.MOST_FOR_COLUMNS:
        return np.eye(run.d)
    columns = [_Column(place) for place in range(own)]
    looks = _scales(run, columns, alone=True)
    active = []
    for column, look in zip(columns, looks, strict=True):
        if look.found:
            column.scale = look.size
            active.append(column)
    first = {column.place: column.scale for column in columns}
    rounds = c.MOST_CENTRINGS if run.curator.has_constant else 0
    for _ in range(rounds):
        if not active or run.left < (1 + c.KEPT_FOR_RELEASE) / 2:
            break
        moved = _moved(run, active)
        looks = _scales(run, moved, alone=False)
        still = []
        for column, new, look in zip(active, moved, looks, strict=True):
            if look.found:
                closer = look.size < column.scale / 2
                column.centre, column.scale = new.centre, look.size
                if closer:
                    still.append(column)
        active = still
    for column in columns:
        if column in active:
            # Its rows come closer without end: most have the same value, and the others were too few to see.
            column.centre, column.scale = 0.0, first[column.place]
    forms = np.zeros((run.d, run.d))
    for column in columns:
        forms[column.place, column.place] = 1 / column.scale
        if run.curator.has_constant:
            forms[column.place, -1] = -column.centre / column.scale
    if run.curator.has_constant:
        forms[-1, -1] = 1.0
    return forms


def _share(run: Run, n_columns: int) -> float:
    rows = sampled_rows(run.n, run.every_column)
    return min(max(c.ROWS_OF_A_BULK**2 * n_columns / (run.rho * rows**2), c.LEAST_FOR_COLUMNS), c.MOST_FOR_COLUMNS)


def _form(column: _Column) -> Matrix:
    return np.array([[1 / column.scale, -column.centre / column.scale], [0.0, 1.0]])


def _scales(run: Run, columns: list[_Column], *, alone: bool) -> list[NormLook]:
    """Ask for histograms of the distances to the centres."""
    rho = run.part(_share(run, len(columns))) / len(columns)
    queries = []
    for column in columns:
        if alone:
            map_ = identity_map(1)
        else:
            form = np.array([[1.0, -column.centre], [0.0, 0.0]])
            map_ = integer_map(form, [column.scale, 1.0], [column.centre, 0.0])
        queries.append(NormHistogram(map_, wide_grid(coarse=True), rho, "scales of the columns"))
    places = tuple(column.place for column in columns)
    answers = run.curator.ask(PerColumn(places, tuple(queries), "scales of the columns", run.every_column, alone))
    run.note("scales", _share(run, len(columns)), 0)
    return [NormLook(answer, ignored_rows=run.contamination * answer.n_rows) for answer in answers]


def _moved(run: Run, columns: list[_Column]) -> list[_Column]:
    """Ask for the centres."""
    rho = run.part(_share(run, len(columns))) / len(columns)
    queries = tuple(
        Gram(Clipping(integer_map(_form(column), [column.scale, 1.0], [column.centre, 0.0]), 1.0, Rule.DIRECTION), rho, "centres of the columns")
        for column in columns
    )
    places = tuple(column.place for column in columns)
    answers = run.curator.ask(PerColumn(places, queries, "centres of the columns", run.every_column))
    run.note("centres", _share(run, len(columns)), 0)
    result = []
    for column, answer in zip(columns, answers, strict=True):
        form = _form(column)
        asked = answer.lattice_map.matrix()
        left, _, right = np.linalg.svd(asked @ np.linalg.inv(form))
        rotation = left @ right
        signs = rotation.T @ answer.mean() @ rotation
        shift = 0.0
        if signs[1, 1] > 4 * answer.sigma:
            shift = float(signs[0, 1] / signs[1, 1])
        result.append(_Column(column.place, column.centre + column.scale * shift, column.scale))
    return result
