"""Where the error of the default goes: what a search under noise costs beside an oracle that needs none.

    python benchmarks/where.py --seeds 60000:60100 [--out results/where.csv]

Tables are those of `world.py` on which the oracle's error is below 0.2. Ratios to the oracle's median error:

- *released*: the default's own single release.
- *its region*: rows clipped to the region that the default found, and the noise that was left for it.
- *shorter*, *longer*: the same, with all radii a tenth shorter or longer than the default chose.
- *best radius*: the same frame, with the radius that is best in hindsight, and the noise that was left.
- *whole budget*: that radius, and noise as if the search had cost nothing. What is left is the frame's part.
- *told the frame*: the oracle's frame for nothing, and a region found in it as the default does, with the
  noise that is left. NaN if the rows do not span all directions.
- *oracle*: a single release by the oracle, which chance alone moves.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from world_judge import measure_truth, with_constant
from world_records import write_outcomes
from world_tables import WorldTable, draw_table

from dpcov.core import Budget, Curator, PrivacyCost, SeededBits
from dpcov.methods.whitening.method import find_coordinates
from dpcov.methods.whitening.release import find_region, release
from dpcov.methods.whitening.run import Run
from dpcov.methods.whitening.whiten import White
from dpcov.methods.whitening.wrap import Region
from dpcov.sources import ArraySource

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "where.csv"

_HOPELESS = 0.2
_DRAWS = 31
# In units of the radius that was chosen.
_FACTORS = np.geomspace(0.35, 8, 26)
_SHORTER, _LONGER = 0.9, 1.1


@dataclass(frozen=True)
class Parts:
    """One table: errors as multiples of the oracle's, and what was left for the release of the budget."""

    seed: int
    name: str
    oracle_error: float
    left: float
    released: float
    its_region: float
    shorter: float
    longer: float
    best_radius: float
    whole_budget: float
    told_the_frame: float
    oracle: float


def take_apart(seed: int) -> Parts | None:
    """Release the table of one seed, and then again with what only its custodian can know.

    None if the oracle itself has nothing to show, or nothing was seen of the rows.

    Parameters
    ----------
    seed : int
        Of the table.
    """
    table = draw_table(seed)
    truth = measure_truth(table)
    if truth.oracle >= _HOPELESS:
        return None
    run = _start(table, [seed, 0, 3])
    # As `estimate_whitening` does.
    white = find_coordinates(run)
    if white is None:
        return None
    white, region = find_region(run, white)
    made = release(run, white, region)
    left = float(made.diagnostics["released_share"])
    reference = truth.reference
    rows = with_constant(table.rows).rows
    white_rows = rows @ reference.whitener
    lengths, noise = _clipped_by(rows, white, region, reference.whitener, _spread(run, left))

    def error_at(factor: float) -> float:
        return _median_error(white_rows, lengths / factor, noise * factor**2)

    errors = [error_at(factor) for factor in _FACTORS]
    best = float(_FACTORS[int(np.argmin(errors))])
    free = _median_error(white_rows, lengths / best, noise * best**2 * math.sqrt(left))
    return Parts(
        seed=seed,
        name=table.name,
        oracle_error=truth.oracle,
        left=left,
        released=reference.relative_error(made.second_moment) / truth.oracle,
        its_region=error_at(1.0) / truth.oracle,
        shorter=error_at(_SHORTER) / truth.oracle,
        longer=error_at(_LONGER) / truth.oracle,
        best_radius=min(errors) / truth.oracle,
        whole_budget=free / truth.oracle,
        told_the_frame=_told_the_frame(table, rows, reference.whitener) / truth.oracle,
        oracle=truth.oracle_draws[0] / truth.oracle,
    )


def _start(table: WorldTable, seed: list[int]) -> Run:
    bits = SeededBits(np.random.default_rng(seed))
    budget = Budget(PrivacyCost(Fraction(table.rho)))
    curator = Curator(ArraySource(table.rows), budget, bits, constant=True)
    return Run(curator, curator.n_rows, curator.n_columns, float(table.rho))


def _clipped_by(
    rows: Array, white: White, region: Region, whitener: Array, spread: float
) -> tuple[Array, Array]:
    """Return the lengths of rows where the region is the unit ball, and draws of its noise in white rows."""
    d = len(white.rows)
    inside = np.linalg.solve(region.shape(d), white.rows) / region.radius
    back = whitener.T @ np.linalg.inv(inside)
    return np.linalg.norm(rows @ inside.T, axis=1), spread * back @ _noise(d) @ back.T


def _told_the_frame(table: WorldTable, rows: Array, whitener: Array) -> float:
    """Return the median error in a region that is looked for in the oracle's frame."""
    run = _start(table, [table.seed, 0, 4])
    if whitener.shape != (run.d, run.d):
        return math.nan
    frame = np.ascontiguousarray(whitener.T)
    look = run.look(frame, run.careful_look, "norms of the rows", every=run.every)
    if not look.found:
        return math.inf
    white, region = find_region(run, White.seen(frame, look, run.d))
    made = release(run, white, region)
    spread = _spread(run, float(made.diagnostics["released_share"]))
    return _median_error(rows @ whitener, *_clipped_by(rows, white, region, whitener, spread))


def _spread(run: Run, left: float) -> float:
    """Return the standard deviation of the noise of a mean of squares in the unit ball."""
    return 1 / (run.n * math.sqrt(run.rho * left))


def _noise(d: int) -> Array:
    """Noise of Gram matrices that come with their traces, in units of its standard deviation.

    It is 1 on the diagonal and ``sqrt(1/2)`` off it before the trace helps, which the oracle has to do
    without (``core/queries/gram.md``).
    """
    rng = np.random.default_rng(1)
    drawn = rng.standard_normal((_DRAWS, d, d))
    noise = (drawn + drawn.transpose(0, 2, 1)) / 2
    excess = rng.standard_normal(_DRAWS) - np.trace(noise, axis1=1, axis2=2)
    return np.asarray(noise + excess[:, None, None] / (d + 1) * np.eye(d))


def _median_error(white: Array, lengths: Array, noise: Array) -> float:
    """Return the median error if rows longer than 1 are shrunk to 1, with several draws of noise."""
    shrunk = white / np.maximum(lengths, 1.0)[:, None]
    off = shrunk.T @ shrunk / len(white) - np.eye(white.shape[1])
    return float(np.median(np.abs(np.linalg.eigvalsh(off + noise)).max(axis=-1)))


def summarise(parts: Sequence[Parts]) -> str:
    """Return a line for each kind of release.

    Parameters
    ----------
    parts : sequence of Parts
        One a table.
    """
    lines = [f"{len(parts)} tables; left for the release: {np.median([part.left for part in parts]):.0%}"]
    names = [entry.name for entry in fields(Parts)][4:]
    for name in names:
        ratios = np.array([asdict(part)[name] for part in parts])
        ratios = ratios[~np.isnan(ratios)]
        lines.append(
            f"{name.replace('_', ' '):<14} median {np.median(ratios):.3f}, "
            f"<= 1.25: {np.mean(ratios <= 1.25):.0%}, <= 2: {np.mean(ratios <= 2):.0%}"
        )
    return "\n".join(lines)


def main() -> None:
    """Take the tables of some seeds apart."""
    parser = argparse.ArgumentParser(description="Where the error of the default goes.")
    parser.add_argument("--seeds", required=True, help="such as 60000:60100")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    parts = [part for part in map(take_apart, range(first, last)) if part is not None]
    write_outcomes(parts, given.out)
    print(summarise(parts))


if __name__ == "__main__":
    main()
