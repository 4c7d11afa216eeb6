"""Turn the figures of ``make audit`` into ``docs/assurance.md``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from proof_notes import Note, lines_of, proof_notes
from scipy.special import ndtr, ndtri

import dpcov

mpl.use("Agg")

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "assurance.json"
PAGE = ROOT / "docs" / "assurance.md"
PICTURE = ROOT / "benchmarks" / "results" / "trade-off.png"

_INTRODUCTION = """# Assurance

Made by `benchmarks/assurance.py` from the figures of the last `make audit`; not edited by hand.
What is claimed and against whom: [threat-model.md](threat-model.md). What is not:
[limitations.md](limitations.md).
"""

_CLAIMS = """## Claims

Every program ran so many times on each of two neighbours that differ as much as they can. A fifth of the
runs chose what to look at; the others bound from below, by Clopper and Pearson at many thresholds together,
the privacy loss that the program really has. Where Gaussian noise is claimed, the bound is one on mu, by its
trade-off curve. A claim below its bound would be false, with confidence
{confidence:.2%}. *rho at least* is such a bound where rho is claimed; *epsilon at least* is the bound at
the delta where it comes closest to the claim. Runs can refute a claim, never show it: a bound far below its
claim proves little. Programs named *all answers* are judged by the likelihood of all private answers of a
run, for someone who knows every row but one: no statistic tells more. What each answer tells is also compared
exactly with what was charged for it (`tests/test_transcripts.py`): a missed charge shows there, however
small, unless the neighbours leave its answer alone or it shares a scan with one that has room to spare.
"""

_TRADE_OFF = """## The trade-off

Someone sees a release and says which of two neighbours it was made from. Whoever raises a false alarm so
often misses at least so often: the curve of mu-Gaussian differential privacy with mu = {mu:.3g}, from the
noise that was claimed. Each point is a threshold: for the default, on the likelihood of all its private
answers under either neighbour, which nobody can improve on ({runs:,} runs on each); for its main query, along
the direction that tells the neighbours apart best. Its bars reach to what bounds the errors from above, all
together with confidence {confidence:.2%}. The default and its query stay above the curve. With half the
noise, both get below it.

![Misses over false alarms](../benchmarks/results/trade-off.png)
"""

_MUTANTS = """## Mutants

The same audits of programs that were broken on purpose. An audit that does not catch them would be worth
nothing: each bound is to exceed the claim of the program that the mutant was made from.
"""

_PAPER_MUTANTS = """## Mutants of the paper's code

One line of the paper's algorithms or theory changed at a time: the tests named beside it must fail, and pass
without the change.
"""

_NEIGHBOURS = """## Neighbours with the same private answers

A run on one table records all private answers; a run on a neighbour asks its own rows in earnest, but gets
the recorded answers. Everything that can be seen (release file, diagnostics, receipt, messages, warnings,
log, standard output and error, exit code, progress, report page, ledger, names and sizes of files) is
compared byte by byte, the time of day left out. Tables and rows are drawn by hypothesis, NaN, infinities,
1e308, subnormals among them.
"""

_INPUT = """## Hostile input

No crash without a clear error, no partial file, no charge lost: each was checked.
"""

_ATTACKS = """## Attacks

Published attacks on others and on dpcov: how often they were tried, and how often they told the secret. More
of them, and the precision of Haney et al. (2022), are in `tests/attacks`.
"""

_PROOFS = """## Proof notes

One for each mechanism, beside its code: statement, precondition, proof, the machine's arithmetic, status.
Lines are those of the code when this page was made.
"""

_METHODS = """## Methods

Vetted methods compute with exact integers and exact noise. The others are proved for real numbers, and run
with `allow_unvetted=True` only.
"""

_TIME = """## Time of the samplers

Not claimed, only measured: one draw after another, and whether its time goes with its size (rank
correlation).
"""


def table(head: list[str], lines: Iterable[list[Any]]) -> str:
    """Return a Markdown table."""
    rows = [head, ["---"] * len(head), *[[str(cell) for cell in line] for line in lines]]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def claims_table(claims: dict[str, Any]) -> str:
    """Return claim and bound of every program."""
    lines = []
    for name, case in claims.items():
        compares_rho = case["claim"].startswith("rho") and "delta" not in case["claim"]
        lines.append(
            [
                name, case["neighbours"], f"{case['runs']:,}", case["claim"],
                f"{case['rho']:.2f}" if compares_rho else "",
                f"{case['epsilon']:.2f} of {case['claimed_epsilon']:.2f} at delta={case['delta']:g}",
                "EXCEEDED" if case["exceeded"] else "holds",
            ]
        )  # fmt: skip
    head = ["program", "neighbours", "runs each", "claim", "rho at least", "epsilon at least", ""]
    return table(head, lines)


def trade_off_words(programs: dict[str, Any], confidence: float) -> str:
    """Return what the picture shows; nothing if it was not measured."""
    if not programs:
        return ""
    first = programs["whitening"]
    return _TRADE_OFF.format(mu=first["mu"], runs=first["runs"], confidence=confidence)


def draw_trade_off(programs: dict[str, Any]) -> None:
    """Draw the errors of every program beside the claimed curve."""
    figure, axes = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
    mu = next(iter(programs.values()))["mu"]
    alarms = np.linspace(0, 1, 201)
    axes.plot(alarms, ndtr(ndtri(1 - alarms) - mu), "k-", label=f"claimed: mu = {mu:.3g}")
    axes.plot([0, 1], [1, 0], ":", color="0.6", label="a coin")
    for name, found in programs.items():
        reach = [
            np.subtract(found["alarms_at_most"], found["alarms"]),
            np.subtract(found["misses_at_most"], found["misses"]),
        ]
        zeros = np.zeros(len(found["alarms"]))
        axes.errorbar(
            found["alarms"], found["misses"], xerr=[zeros, reach[0]], yerr=[zeros, reach[1]], fmt=".",
            markersize=4, linewidth=0.6, label=name,
        )  # fmt: skip
    axes.set(xlabel="false alarms", ylabel="misses", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=120, metadata={"Software": None})
    plt.close(figure)


def mutants_table(mutants: dict[str, Any]) -> str:
    """Return what was found about every mutant."""
    lines = [
        [
            *name.split(": ", 1), f"{case['runs']:,}", f"{case['rho']:.2f}",
            f"{case['epsilon']:.2f} of {case['claimed_epsilon']:.2f}",
            "caught" if case["exceeded"] else "ESCAPED",
        ]
        for name, case in mutants.items()
    ]  # fmt: skip
    return table(["program", "mutant", "runs each", "rho at least", "epsilon at least", ""], lines)


def paper_mutants_table(mutants: dict[str, Any]) -> str:
    """Return which mutants of the paper's code the tests caught."""
    lines = [
        [name, f"`{case['file']}`", ", ".join(f"`{test.partition('::')[0]}`" for test in case["tests"]),
         "caught" if case["caught"] else "ESCAPED"]
        for name, case in mutants.items()
    ]  # fmt: skip
    return table(["mutant", "code", "tests", ""], lines)


def notes_on_claims(claims: dict[str, Any]) -> str:
    """Return why some programs have no milder mutants."""
    programs: dict[str, list[str]] = {}
    for name, case in claims.items():
        if case.get("note"):
            programs.setdefault(case["note"], []).append(name)
    return "".join(f"*{', '.join(names)}.* {note}\n\n" for note, names in programs.items())


def methods_table() -> str:
    """Return which methods are vetted."""
    return table(
        ["method", "status", "guarantee"],
        [[method.name, method.status, method.privacy] for method in dpcov.methods() if method.available],
    )


def notes_table() -> str:
    """Return which lines of code every proof note covers."""
    return table(["note", "about", "lines of code", "status"], [_note(note) for note in proof_notes()])


def _note(note: Note) -> list[str]:
    covered = []
    for path, name in note.code:
        first, last = lines_of(path, name)
        covered.append(f"`{path.name}` {name + ' ' if name else ''}{first}-{last}")
    place = note.path.relative_to(ROOT)
    return [f"[{note.path.name}](../{place})", note.title, ", ".join(covered), note.status]


def facts_table(kind: str, facts: dict[str, Any]) -> str:
    """Return figures by name, one column for each."""
    names = list(dict.fromkeys(name for case in facts.values() for name in case))
    lines = [[name, *(_cell(case.get(field)) for field in names)] for name, case in facts.items()]
    return table([kind, *(name.replace("_", " ") for name in names)], lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items())
    return str(value)


def page(results: dict[str, Any]) -> str:
    """Return the whole page."""
    claims, mutants = results.get("claims", {}), results.get("mutants", {})
    of_paper = results.get("paper_mutants", {})
    noticed = sum(case["caught"] for case in of_paper.values())
    exceeded = sum(case["exceeded"] for case in claims.values())
    caught = sum(case["exceeded"] for case in mutants.values())
    pairs = results.get("neighbours", {})
    tried = sum(case["pairs"] for case in pairs.values())
    differing = sum(case["differing"] for case in pairs.values())
    inputs = sum(case["tried"] for case in results.get("hostile input", {}).values())
    summary = [
        f"- {len(claims)} programs audited, {exceeded} claims exceeded.",
        f"- {len(mutants)} mutants, {caught} caught, {len(mutants) - caught} escaped.",
        f"- {len(of_paper)} mutants of the paper's code, {noticed} caught by tests.",
        f"- {tried} pairs of neighbours with the same private answers, {differing} show a difference.",
        f"- {inputs} hostile inputs; what came of each kind stands below.",
    ]
    confidence = min((case["confidence"] for case in claims.values()), default=0.0)
    parts = [
        _INTRODUCTION,
        "\n".join(summary) + "\n",
        _CLAIMS.format(confidence=confidence),
        claims_table(claims),
        notes_on_claims(claims),
        trade_off_words(results.get("trade_off", {}), confidence),
        _MUTANTS,
        mutants_table(mutants),
        _PAPER_MUTANTS,
        paper_mutants_table(of_paper),
        _NEIGHBOURS,
        facts_table("what", pairs),
        _ATTACKS,
        facts_table("attack", results.get("attacks", {})),
        _INPUT,
        facts_table("kind", results.get("hostile input", {})),
        "## Load\n",
        facts_table("what", results.get("load", {})),
        _TIME,
        facts_table("sampler", results.get("timing", {})),
        _METHODS,
        methods_table(),
        _PROOFS,
        notes_table(),
    ]
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    results = json.loads(RESULTS.read_text())
    if results.get("trade_off"):
        draw_trade_off(results["trade_off"])
    PAGE.write_text(page(results))
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
