"""``dpcov methods``: every method, whether it is vetted, and what it needs."""

from __future__ import annotations

import dpcov
from dpcov.cli.arguments import AsJson
from dpcov.cli.failures import reported
from dpcov.cli.output import print_json, print_table, print_text


@reported
def methods(*, as_json: AsJson = False) -> None:
    """List the methods that dpcov release can run.

    A vetted method computes with exact integers and exact noise. An unvetted one has a guarantee that is
    proved for real numbers but computes in floating point: it runs with --allow-unvetted only.

        dpcov methods
    """
    known = dpcov.methods()
    if as_json:
        fields = ("name", "available", "vetted", "privacy", "needs", "assumes", "citation")
        print_json([{name: getattr(method, name) for name in fields} for method in known])
        return
    header = ("method", "status", "guarantee", "needs", "assumes")
    lines = [(one.name, one.status, one.privacy, one.needs, one.assumes) for one in known]
    print_table("Methods", header, lines)
    print_text("Where they come from: dpcov methods --json")
