"""Figures of audits, kept in one file that ``benchmarks/assurance.py`` turns into ``docs/assurance.md``."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "assurance.json"


def record(section: str, name: str, **figures: Any) -> None:
    """Put the figures of one check in place of what an earlier run left."""
    with RESULTS.open("a+") as file:
        # Two parts of the audit may run at once.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = json.loads(file.read() or "{}")
        known.setdefault(section, {})[name] = figures
        file.seek(0)
        file.truncate()
        file.write(json.dumps(known, indent=1, sort_keys=True) + "\n")
