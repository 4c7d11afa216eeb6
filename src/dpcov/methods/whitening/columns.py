"""Step 1, columns: bring every column to a common centre and scale, each on its own.

Columns come in any unit, and often far from zero: a year is 2013 +- 3. Taken together, the largest would hide
all others, one after another. Taken one by one, all are found at once.

A histogram of ``|x - c|`` tells the scale a of a column, whatever it is. Unit rows of ``((x - c) / a, 1)``
then tell its centre, to within a small part of a. If the rows lie much closer to the new centre, the scale
was that of their distance from it, and both are asked for again: so the centre of a year comes within its
spread in two or three rounds, as its error shrinks by a factor of 20 or more in each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcov.arrays import Matrix
from dpcov.core import Clipping, Gram, NoisyGram, NormHistogram, Rule, sampled_rows
from dpcov.maps import identity_map, integer_map
from dpcov.methods.whitening import constants as c
from dpcov.methods.whitening.frames import LEAST_SPREAD, in_frame
from dpcov.methods.whitening.looks import NormLook, column_grid
from dpcov.methods.whitening.queries.columns import PerColumn
from dpcov.methods.whitening.run import Run

# The constant must be seen by so many standard deviations before a centre is taken relative to it.
_CLEARLY_THERE = 4.0


@dataclass(frozen=True)
class _Column:
    """What is known of a column: its place, its centre, and the root mean square of the distance from it."""

    place: int
    centre: float = 0.0
    scale: float = 1.0

    @property
    def forms(self) -> Matrix:
        """The column about its centre, in units of its scale, and the constant."""
        return np.array([[1 / self.scale, -self.centre / self.scale], [0.0, 1.0]])


def standardise(run: Run) -> Matrix:
    """Return coordinates, one for each column: most with a centre of about 0 and a scale of about 1.

    Columns whose values are too few to be seen beside zeros are left as they are. A table that is too short
    for its number of columns is not asked: there, public bounds stand for centres and scales. Elsewhere the
    rows tell more than bounds do.
    """
    untouched = [_Column(place) for place in range(run.d - run.constant)]
    known = {column.place: column for column in untouched}
    if not are_asked(run):
        known |= _told(run)
    else:
        looks = _look(run, untouched)
        # A row with a gap is zero in all columns: no more of them than any column has zeros.
        missing = max(min(look.zero_share for look in looks), 0.0)
        # What is hardly ever more than zero is taken to hold 0 and 1, the most common of its kind.
        run.mostly_zero = {
            column.place: look.typical if look.found else 1.0
            for column, look in zip(untouched, looks, strict=True)
            if not look.found or _is_mostly_zero(look.zero_share, missing)
        }
        run.never_seen = {
            column.place for column, look in zip(untouched, looks, strict=True) if not look.found
        }
        scaled = {
            column.place: replace(column, scale=look.size)
            for column, look in zip(untouched, looks, strict=True)
            if look.found
        }
        known |= scaled
        if run.constant:
            known |= _centre(run, list(scaled.values()), [look.zero_share for look in looks])
    forms = np.eye(run.d)
    for column in known.values():
        forms[column.place, column.place] = 1 / column.scale
        if run.constant:
            forms[column.place, -1] = -column.centre / column.scale
    return forms


def are_asked(run: Run) -> bool:
    """Whether rows are asked about the columns: not if that would cost too much.

    Where all have public bounds it may cost less, as these tell something, too.
    """
    least = _share_for(run, run.d - run.constant, c.ROWS_OF_A_BULK)
    most = c.MOST_FOR_COLUMNS_TOLD if _all_told(run) else c.MOST_FOR_COLUMNS
    return least <= most


def are_scaled(run: Run) -> bool:
    """Whether `standardise` asks about the columns, or all have public bounds."""
    return are_asked(run) or _all_told(run)


def _all_told(run: Run) -> bool:
    return bool(np.isfinite(run.curator.bounds).all())


def _told(run: Run) -> dict[int, _Column]:
    """Return what public bounds tell: the middle between them, and half the way from one to the other."""
    known = {}
    for place, (lower, upper) in enumerate(run.curator.bounds.tolist()):
        centre = lower / 2 + upper / 2 if run.constant else 0.0
        scale = max(upper - centre, centre - lower)
        # Bounds may leave one value, or so little beside it that its reciprocal is infinite.
        if math.isfinite(scale) and scale > LEAST_SPREAD * abs(centre) and math.isfinite(1 / scale):
            known[place] = _Column(place, centre, scale)
    return known


def _centre(run: Run, scaled: list[_Column], zero_shares: list[float]) -> dict[int, _Column]:
    """Move the centres of columns to their rows, and their scales with them.

    Rows that come closer without end have the same value, and the others were too few to be seen. They are
    taken to be as far from that value as zero is. If the budget ends it, nobody knows: a column keeps its
    last centre and scale, unless the value may be 1.

    Parameters
    ----------
    run : Run
        The curator.
    scaled : list of _Column
        Columns about zero.
    zero_shares : list of float
        Which part of all rows is zero or missing, for every column of the table.
    """
    known: dict[int, _Column] = {}
    moving, unseen = scaled, 1.0
    for _ in range(c.MOST_CENTRINGS):
        if not moving or run.left < (1 + c.KEPT_IN_THE_DARK) / 2:
            break
        moved = _move(run, moving)
        looks = _look(run, moved)
        found = [
            (before, replace(after, scale=look.size))
            for before, after, look in zip(moving, moved, looks, strict=True)
            # What is still zero is missing.
            if look.found and not _is_mostly_zero(zero_shares[after.place], look.zero_share)
        ]
        known |= {after.place: after for _, after in found}
        moving = [after for before, after in found if after.scale < c.CLOSER * before.scale]
        unseen = looks[0].unseen_share
    first = {column.place: column.scale for column in scaled}
    ended = run.left >= (1 + c.KEPT_IN_THE_DARK) / 2
    return known | {
        column.place: replace(column, scale=first[column.place] * math.sqrt(unseen))
        for column in moving
        if ended or _may_be_one(column)
    }


def _may_be_one(column: _Column) -> bool:
    """Whether most values may be 1: those of a 0/1 column with few zeros, the most common of its kind."""
    return abs(column.centre - 1) <= 2 * column.scale


def _is_mostly_zero(zero_or_missing: float, missing: float) -> bool:
    """Whether most values are zero: that is then the centre, and the rows would come closer without end."""
    return zero_or_missing - missing > (1 - missing) / 2


def _look(run: Run, columns: list[_Column]) -> list[NormLook]:
    """Ask for histograms of the distances from the centres, whatever their scale."""
    purpose, share = "scales of the columns", _share(run, len(columns))
    rho = run.part(share) / len(columns)
    # Where noise is the limit, wider bins show more.
    grid = column_grid(wide=share > c.LEAST_FOR_COLUMNS)
    # Zeros stay zeros in a map of the column alone. Beside the constant they do not: maps are invertible.
    alone = not any(column.centre for column in columns)
    queries: tuple[NormHistogram, ...]
    if alone:
        queries = (NormHistogram(identity_map(1), grid, rho, purpose),) * len(columns)
    else:
        queries = tuple(
            NormHistogram(
                integer_map([[1.0, -column.centre], [0.0, 0.0]], [column.scale, 1.0], [column.centre, 0.0]),
                grid,
                rho,
                purpose,
            )
            for column in columns
        )
    places = tuple(column.place for column in columns)
    answers = run.curator.ask(PerColumn(places, queries, purpose, run.every_column, alone=alone))
    run.note("columns", share, 0)
    return [NormLook(answer, ignored_rows=run.contamination * answer.n_rows) for answer in answers]


def _move(run: Run, columns: list[_Column]) -> list[_Column]:
    """Ask for the centres of the rows, seen from the present ones."""
    purpose, share = "centres of the columns", _share(run, len(columns))
    rho = run.part(share) / len(columns)
    maps = [integer_map(column.forms, [column.scale, 1.0], [column.centre, 0.0]) for column in columns]
    queries = tuple(Gram(Clipping(map_, 1.0, Rule.DIRECTION), rho, purpose) for map_ in maps)
    places = tuple(column.place for column in columns)
    answers = run.curator.ask(PerColumn(places, queries, purpose, run.every_column))
    run.note("columns", share, 0)
    return [
        replace(column, centre=column.centre + column.scale * _shift(column, answer))
        for column, answer in zip(columns, answers, strict=True)
    ]


def _shift(column: _Column, answer: NoisyGram) -> float:
    """Return the mean of a column relative to that of the constant, among unit rows."""
    _, signs = in_frame(answer, column.forms)
    return float(signs[0, 1] / signs[1, 1]) if signs[1, 1] > _CLEARLY_THERE * answer.sigma else 0.0


def _share(run: Run, n_columns: int) -> float:
    """Return what a round about n columns costs."""
    wanted = min(_share_for(run, n_columns, c.ROWS_OF_A_COLUMN), c.ENOUGH_FOR_COLUMNS)
    return max(wanted, _share_for(run, n_columns, c.ROWS_OF_A_BULK), c.LEAST_FOR_COLUMNS)


def _share_for(run: Run, n_columns: int, part: float) -> float:
    """Return what makes the noise of one column's count this part of all rows.

    Questions about n columns have a variance of ``n / (share rho)`` each, in rows.
    """
    return n_columns * (part / sampled_rows(run.n, run.every_column)) ** 2 / run.rho
