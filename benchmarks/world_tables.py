"""Random tables of more than 25 families, each drawn from a seed alone.

    draw_table(1000).rows

A benchmark of fixed tables can be fitted: every constant of a method may come to suit them. Here any number
of tables is at hand that no tuning has seen, with parameters, sizes and budgets drawn as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import world_continuous as continuous
import world_discrete as discrete
import world_structured as structured
from world_draws import Array, Columns, Family, Flags, Generator, beside, conditioned_map, one_log_uniform

FEWEST_ROWS, MOST_ROWS = 400, 300_000
FEWEST_COLUMNS, MOST_COLUMNS = 2, 60
LEAST_RHO, MOST_RHO = 0.02, 2.0
# Larger tables take too long to draw and release by the hundred.
MOST_NUMBERS = 6_000_000

_SHARE_JOINED = 0.25
_SHARE_MIXED = 0.3
_SHARE_WITH_GAPS = 0.1

FAMILIES: Mapping[str, Family] = {
    "gaussian": continuous.gaussian,
    "clusters": continuous.clusters,
    "copula": continuous.copula,
    "large-means": continuous.large_means,
    "scales": continuous.scales,
    "heavy-columns": continuous.heavy_columns,
    "elliptical": continuous.elliptical,
    "bounded": continuous.bounded,
    "circles": continuous.circles,
    "patches": continuous.patches,
    "durations": continuous.durations,
    "regimes": continuous.regimes,
    "counts": discrete.counts,
    "zero-inflated": discrete.zero_inflated,
    "rare-flags": discrete.rare_flags,
    "flags-and-numbers": discrete.flags_and_numbers,
    "categories": discrete.categories,
    "complementary": discrete.complementary,
    "survey": discrete.survey,
    "heaped": discrete.heaped,
    "purchases": discrete.purchases,
    "spikes": discrete.spikes,
    "polynomials": structured.polynomials,
    "interactions": structured.interactions,
    "lags": structured.lags,
    "factors": structured.factors,
    "duplicates": structured.duplicates,
    "totals": structured.totals,
    "compositions": structured.compositions,
    "wages": structured.wages,
    "panel": structured.panel,
}


@dataclass(frozen=True, eq=False)
class WorldTable:
    """A random table and the budget to release it with.

    Attributes
    ----------
    family : str
        Its family; of two families side by side ``a+b``, with ``~mixed`` if a random linear map was applied
        to the columns, and ``~gaps`` if some rows have missing values.
    seed : int
        What it was drawn from.
    rows : ndarray, shape (n, d)
        May hold NaN: such a row counts as a row of zeros.
    rho : float
        The budget in zCDP.
    columns : tuple of str
        Names.
    flags : ndarray of bool, shape (d,)
        Which columns a custodian would declare as 0/1.
    """

    family: str
    seed: int
    rows: Array
    rho: float
    columns: tuple[str, ...]
    flags: Flags

    @property
    def name(self) -> str:
        """The family, the sizes and the budget in one word."""
        n, d = self.rows.shape
        return f"{self.family}-{n}x{d}-rho{self.rho:.2g}"


def draw_table(seed: int) -> WorldTable:
    """Draw a table: family, parameters, sizes and budget all follow from the seed.

    Parameters
    ----------
    seed : int
        At least 0. The same seed gives the same table.

    Examples
    --------
    >>> table = draw_table(7)
    >>> table.rows.shape == (len(table.rows), len(table.columns))
    True
    """
    rng = np.random.default_rng([seed, 16])
    n, d = _draw_sizes(rng)
    rho = one_log_uniform(rng, LEAST_RHO, MOST_RHO)
    family, drawn = _draw_columns(rng, n, d)
    rows = drawn.values
    if rng.random() < _SHARE_WITH_GAPS:
        family += "~gaps"
        rows = rows.copy()
        gaps = np.flatnonzero(rng.random(n) < one_log_uniform(rng, 1e-3, 0.3))
        rows[gaps, rng.integers(d, size=len(gaps))] = np.nan
    names = tuple(f"{'flag' if flag else 'x'}{j}" for j, flag in enumerate(drawn.flags))
    return WorldTable(family, seed, np.ascontiguousarray(rows), rho, names, drawn.flags)


def _draw_sizes(rng: Generator) -> tuple[int, int]:
    while True:
        n = round(one_log_uniform(rng, FEWEST_ROWS, MOST_ROWS))
        d = round(one_log_uniform(rng, FEWEST_COLUMNS - 0.5, MOST_COLUMNS + 0.5))
        if FEWEST_COLUMNS <= d <= MOST_COLUMNS and n * d <= MOST_NUMBERS:
            return n, d


def _draw_columns(rng: Generator, n: int, d: int) -> tuple[str, Columns]:
    names = list(FAMILIES)
    if d < 4 or rng.random() >= _SHARE_JOINED:
        name = str(rng.choice(names))
        return name, FAMILIES[name](rng, n, d)
    first, second = (str(name) for name in rng.choice(names, 2, replace=False))
    d_first = int(rng.integers(2, d - 1))
    joined = beside([FAMILIES[first](rng, n, d_first), FAMILIES[second](rng, n, d - d_first)])
    if rng.random() >= _SHARE_MIXED:
        return f"{first}+{second}", joined
    # Columns are brought to one size first: a map of raw columns would leave the largest one alone.
    size = np.sqrt(np.mean(np.square(joined.values), axis=0))
    mixed = joined.values / np.where(size > 0, size, 1.0) @ conditioned_map(rng, d, 1e2)
    return f"{first}+{second}~mixed", Columns(mixed, np.zeros(d, dtype=np.bool_))
