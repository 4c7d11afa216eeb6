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

`benchmarks/assurance.py` writes this page from the results of the last `make audit`. Nobody edits it by
hand. [The threat model](threat-model.md) says what is claimed, and against whom. [The
limitations](limitations.md) say what is not.
"""

_CLAIMS = """## Claims

An audit runs a program many times on two neighbouring tables that differ as much as neighbours can. A row
that is *turned* is replaced by one in another direction; a row *for zero* replaces a row of zeros. A
fifth of the runs choose what to look at. The other runs give a lower bound on the program's true privacy
loss: Clopper and Pearson intervals at many thresholds, which all hold together with confidence
{confidence:.2%}. Where the noise is claimed to be Gaussian, the bound is on mu, from its trade-off curve.
If a lower bound exceeds the claim, the claim is false.

*rho at least* is the lower bound on rho, for programs that claim a rho. *epsilon at least* is the lower
bound on epsilon, at the delta where it comes closest to the claim. An audit can refute a claim, but it
cannot prove one: a bound far below the claim says little.

Programs named *all answers* are judged by the likelihood of all private answers of a run, as seen by
someone who knows every row but one. No other statistic tells more. In addition,
`tests/test_transcripts.py` compares what each answer reveals with what was charged for it, exactly. That
test notices a missed charge of any size, unless the neighbours leave that answer unchanged, or it shares
a scan with an answer that was charged more than it reveals.
"""

_TRADE_OFF = """## The trade-off

Someone sees a release and says which of two neighbours it was made from. They make two kinds of error:
false alarms and misses. The curve shows the fewest misses that are possible for each rate of false
alarms, if the claim holds: mu-Gaussian differential privacy with mu = {mu:.3g}. Each point is one
threshold. For the default method it is a threshold on the likelihood ratio of all private answers, which
no test can beat ({runs:,} runs on each table). For its main query it is a threshold along the direction
that separates the neighbours best. Bars end at upper bounds on both errors; all of them hold together
with confidence {confidence:.2%}. The default and its main query stay above the curve. With half the
noise, both fall below it.

![Misses over false alarms](../benchmarks/results/trade-off.png)
"""

_MUTANTS = """## Mutants

These are the same audits, of programs that were broken on purpose. An audit that cannot catch a broken
program is worth nothing. A mutant is caught if its lower bound exceeds the claim of the program that it
was made from.
"""

_PAPER_MUTANTS = """## Mutants of the paper's code

Each mutant changes one line of the paper's algorithms or theory. The tests beside it must fail with the
change, and pass without it.
"""

_NEIGHBOURS = """## Neighbours with the same private answers

A run on one table records all private answers. A run on a neighbour then scans its own rows, but receives
the recorded answers. Everything visible must be the same, byte by byte, except the time of day: the
release file, diagnostics, receipt, messages, warnings, log, standard output and error, exit code,
progress, report page, ledger, and the names and sizes of files. The library hypothesis draws the tables
and the rows that differ, including NaN, infinities, 1e308 and subnormal numbers.
"""

_INPUT = """## Hostile input

Each input was checked for three things: every failure is a clear error, no partial file is left behind,
and no charge is lost.
"""

_ATTACKS = """## Attacks

These are published attacks, run against other implementations and against dpcov: how often each was
tried, and how often it found the secret. `tests/attacks` has more of them, among them the precision-based
attacks of Haney et al. (2022).
"""

_PROOFS = """## Proof notes

Each mechanism has a note beside its code, with the statement, the precondition, the proof, the machine's
arithmetic and the status. Line numbers are those of the code when this page was written.
"""

_METHODS = """## Methods

Vetted methods compute with exact integers and exact noise. The others are proved for real numbers only,
and run only with `allow_unvetted=True`.
"""

_TIME = """## Timing of the samplers

dpcov makes no claim about timing. This table shows the time of single draws, and its rank correlation
with the size of the number drawn.
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
    head = ["program", "neighbours", "runs on each", "claim", "rho at least", "epsilon at least", "result"]
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
    return table(["program", "mutant", "runs on each", "rho at least", "epsilon at least", "result"], lines)


def paper_mutants_table(mutants: dict[str, Any]) -> str:
    """Return which mutants of the paper's code the tests caught."""
    lines = [
        [name, f"`{case['file']}`", ", ".join(f"`{test.partition('::')[0]}`" for test in case["tests"]),
         "caught" if case["caught"] else "ESCAPED"]
        for name, case in mutants.items()
    ]  # fmt: skip
    return table(["mutant", "code", "tests", "result"], lines)


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
        f"- {len(claims)} programs were audited. {exceeded} of their claims were exceeded.",
        f"- {len(mutants)} mutants were audited. {caught} were caught, {len(mutants) - caught} escaped.",
        f"- {len(of_paper)} mutants of the paper's code were tested. Tests caught {noticed}.",
        f"- {tried} pairs of neighbours were given the same private answers. {differing} show a difference.",
        f"- {inputs} hostile inputs were tried. A table below shows the outcomes.",
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
        "## Load\n\nLarge tables, little memory, and many releases at once.\n",
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
