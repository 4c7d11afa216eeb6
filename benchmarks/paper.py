"""The paper's claims on data: a table and plots.

    python benchmarks/paper.py [--quick] [--check NAME ...] [--no-plots]

Every claim is checked on synthetic tables whose parameters the theory gives. "repaired" is what the library
promises; "paper" marks the paper's own words where they differ, which are expected to fail in places.
Writes benchmarks/results/paper.csv and paper-*.png.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from paper_checks.accuracy import (
    check_least_eigenvalue,
    check_moments,
    check_prediction,
    check_speed,
    check_theorem,
)
from paper_checks.analysis import check_reference, check_shrinking, check_spectrum, check_tail
from paper_checks.findings import FULL, PAPER, QUICK, REPAIRED, Finding, Scale
from paper_checks.plots import PLOTS

RESULTS = Path(__file__).parent / "results"
CHECKS: dict[str, Callable[[Scale], Iterator[Finding]]] = {
    "tail": check_tail,
    "spectrum": check_spectrum,
    "shrinking": check_shrinking,
    "reference": check_reference,
    "eigenvalue": check_least_eigenvalue,
    "moments": check_moments,
    "theorem": check_theorem,
    "prediction": check_prediction,
    "speed": check_speed,
}


def format_finding(finding: Finding) -> str:
    """Return a finding as two lines of the printed table."""
    return (
        f"{'yes' if finding.holds else 'NO':<4}{finding.version:<10}{finding.place:<25}{finding.claim}: "
        f"{finding.setting}\n{'':39}{finding.bound}; seen: {finding.measured}"
    )


def write_findings(findings: Mapping[str, Sequence[Finding]], path: Path) -> None:
    """Write findings as CSV; those of checks that were not run stay.

    Parameters
    ----------
    findings : mapping
        From the name of a check to what it found.
    path : Path
        The file.
    """
    rows: list[dict[str, str]] = []
    if path.exists():
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["check"] not in findings]
    rows += [{"check": check} | asdict(finding) for check, found in findings.items() for finding in found]
    order = list(CHECKS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["check", *(entry.name for entry in fields(Finding))])
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: order.index(row["check"])))


def summarise(findings: Sequence[Finding]) -> str:
    """Return how many claims hold, and which do not."""
    lines = []
    for version, told in ((REPAIRED, "what the library promises"), (PAPER, "the paper's own words")):
        chosen = [finding for finding in findings if finding.version == version]
        failed = [finding for finding in chosen if not finding.holds]
        lines.append(f"{told}: {len(chosen) - len(failed)} of {len(chosen)} hold")
        lines += [f"  not: {f.claim} ({f.place}), {f.setting}: {f.measured}" for f in failed]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description="The paper's claims on data.")
    parser.add_argument("--check", nargs="+", choices=list(CHECKS), default=list(CHECKS), help="which claims")
    parser.add_argument("--quick", action="store_true", help="smaller tables, fewer runs")
    parser.add_argument("--no-plots", action="store_true", help="the table only")
    given = parser.parse_args(arguments)
    scale = QUICK if given.quick else FULL
    findings: dict[str, list[Finding]] = {}
    for check in given.check:
        print(f"\n{check}: {(CHECKS[check].__doc__ or '').strip()}")
        findings[check] = []
        for finding in CHECKS[check](scale):
            print(format_finding(finding), flush=True)
            findings[check].append(finding)
        write_findings(findings, RESULTS / "paper.csv")
        if check in PLOTS and not given.no_plots:
            PLOTS[check](scale, RESULTS / f"paper-{check}.png")
    print()
    print(summarise([finding for found in findings.values() for finding in found]))


if __name__ == "__main__":
    main()
