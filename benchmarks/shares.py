"""Shares of levels in a table with 5 categories: what it gains that a 0/1 column is its own square.

    python benchmarks/shares.py [--releases 40]

The table has 16 coded columns, whose levels 1% to 30% of the rows have, and two numbers that depend on them:
normal, or one of them log-normal, which has rows beyond the region. Each release is asked for its means,
pooled from two entries of the matrix (`linear/shares.py`), and from the constant's alone. All that is known,
``D_i D_j = 0`` as well, was tried in the same way, as a projection of the matrix: it is in the lines called
"all facts". It gained a few percent more where noise is small and was worse than plain where rows were
clipped, so that it is not used. Results go to benchmarks/results/shares.csv.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpcov
from dpcov.linear import Questions

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "shares.csv"
LEVELS = [
    [0.5, 0.3, 0.15, 0.05], [0.7, 0.2, 0.08, 0.02], [0.4, 0.3, 0.2, 0.07, 0.03], [0.9, 0.06, 0.03, 0.01],
    [0.6, 0.25, 0.1, 0.05],
]  # fmt: skip
BUDGETS = ((100_000, 0.1), (30_000, 0.03))


@dataclass(frozen=True)
class Line:
    """How one way to estimate shares fared, over all releases.

    Attributes
    ----------
    numbers, way : str
        What the other columns are, and how shares were estimated.
    rows, rho : float
        Of each release.
    rare : bool
        Whether it is about the levels that at most 5% of the rows have, or about the others.
    error : float
        Root mean square error, in standard deviations of the column.
    width : float
        The median width of 95% intervals in the same unit; those of "all facts" were not worked out.
    held : float
        The share of intervals that hold the share in the rows.
    """

    numbers: str
    way: str
    rows: int
    rho: float
    rare: bool
    error: float
    width: float
    held: float


def make_table(n_rows: int, seed: int, *, heavy: bool) -> pd.DataFrame:
    """Return a table of 5 categories and two numbers."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(len(shares), n_rows, p=shares) for shares in LEVELS]
    effects = [rng.normal(size=len(shares)) for shares in LEVELS]
    first = sum(effect[code] for effect, code in zip(effects, codes, strict=True)) + rng.normal(size=n_rows)
    second = rng.normal(size=n_rows) + 0.3 * first
    columns = {f"c{k}": pd.Series(code).astype(str) for k, code in enumerate(codes)}
    return pd.DataFrame({**columns, "first": first, "second": np.exp(1.5 * second) if heavy else second})


def project(questions: Questions) -> Questions:
    """Return the release with all that is known of coded columns: the nearest matrix in units of noise."""
    noise = questions.noise
    if noise is None:
        raise ValueError("the noise has no law")
    names, size = questions.columns, len(questions.moment)
    facts = []
    for place in questions.shares:
        fact = np.zeros((size, size))
        fact[place, place], fact[place, -1], fact[-1, place] = 1.0, -0.5, -0.5
        facts.append(fact)
        for other in questions.shares:
            if other < place and names[other].split("[")[0] == names[place].split("[")[0]:
                fact = np.zeros((size, size))
                fact[place, other] = fact[other, place] = 0.5
                facts.append(fact)
    gram = noise.inverse @ noise.inverse.T
    mapped = [gram @ fact @ gram for fact in facts]
    products = np.array([[np.vdot(fact, other) for other in mapped] for fact in facts])
    off = np.array([np.vdot(fact, questions.moment) for fact in facts])
    scale = np.sqrt(np.diag(products))
    weights = np.linalg.solve(products / np.outer(scale, scale), off / scale) / scale
    moment = questions.moment - np.tensordot(weights, np.array(mapped), 1)
    return replace(questions, moment=moment, shares=())


def measure(*, heavy: bool, n_rows: int, rho: float, releases: int) -> Iterator[Line]:
    """Make releases and yield how each way fared."""
    kinds = {
        **{f"c{k}": dpcov.category(range(len(shares)), other=False) for k, shares in enumerate(LEVELS)},
        "first": dpcov.number(), "second": dpcov.number(),
    }  # fmt: skip
    found: dict[tuple[str, bool], list[tuple[float, float, bool]]] = {}
    for seed in range(releases):
        table = make_table(n_rows, seed, heavy=heavy)
        with warnings.catch_warnings(action="ignore"):
            made = dpcov.release(table, rho=rho, columns=kinds, rng=np.random.default_rng(seed))
        questions = made._questions  # noqa: SLF001  (what is not for users is measured here)
        ways = {"pooled": questions, "plain": replace(questions, shares=()), "all facts": project(questions)}
        for way, asked in ways.items():
            answer = asked.mean(None, sampling=False)
            lower, upper = answer.interval()
            for place in questions.shares:
                name, level = questions.columns[place].rstrip("]").split("[")
                truth = float((table[name] == level).mean())
                unit = (truth * (1 - truth)) ** 0.5
                one = (
                    (answer.values[place] - truth) / unit, (upper[place] - lower[place]) / unit,
                    bool(lower[place] <= truth <= upper[place]),
                )  # fmt: skip
                found.setdefault((way, truth < 0.06), []).append(one)
    for (way, rare), numbers in found.items():
        errors, widths, held = (np.array(part, dtype=np.float64) for part in zip(*numbers, strict=True))
        known = way != "all facts"
        yield Line(
            "log-normal" if heavy else "normal", way, n_rows, rho, rare,
            float(f"{np.sqrt(np.square(errors).mean()):.3g}"),
            float(f"{np.median(widths):.3g}") if known else float("nan"),
            round(float(held.mean()), 4) if known else float("nan"),
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=40)
    releases = parser.parse_args(arguments).releases
    lines: list[Line] = []
    for heavy in (False, True):
        for n_rows, rho in BUDGETS:
            for line in measure(heavy=heavy, n_rows=n_rows, rho=rho, releases=releases):
                lines.append(line)
                print(line, flush=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Line)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


if __name__ == "__main__":
    main()
