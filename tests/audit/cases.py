"""All cases of the audit by name, and what there is that must have one."""

from __future__ import annotations

import inspect

from audit.entries import ENTRIES
from audit.harness import Case
from audit.queries import QUERIES
from helpers.query_classes import QUERIES as QUERY_CLASSES

import dpcov
from dpcov import learn

CASES_OF = {**QUERIES, **ENTRIES}
"""The cases of everything private."""

CASES: dict[str, Case] = {case.name: case for cases in CASES_OF.values() for case in cases}


def to_be_audited() -> set[str]:
    """Return everything that takes rows and gives something private, by the names in `CASES_OF`."""
    # A release is audited method by method, and compare is for public rows.
    besides = {"release", "compare"}
    functions = [getattr(dpcov, name) for name in dpcov.__all__ if name not in besides]
    takes_rows = [
        f.__name__ for f in functions if inspect.isfunction(f) and "data" in inspect.signature(f).parameters
    ]
    estimators = [name for name in learn.__all__ if hasattr(getattr(learn, name), "fit")]
    return {
        *(f"query {name}" for name in QUERY_CLASSES),
        *(f"method {method.name}" for method in dpcov.methods() if method.available),
        *(f"dpcov.{name}" for name in takes_rows),
        *(f"dpcov.learn.{name}" for name in estimators),
        "dpcov release",
    }
