"""Claims of the paper's analysis: the tail, the spectrum round by round, and which rows are shrunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from paper_checks.findings import (
    PAPER,
    REPAIRED,
    Finding,
    Scale,
    largest_eigenvalue_of,
    least_eigenvalue_of,
    spectral_norm,
    whitened,
)
from paper_checks.reference import (
    Course,
    Mask,
    Matrix,
    largest_allowed_noise,
    private_noise,
    recursive_in_the_clear,
)
from paper_checks.tables import (
    ALPHA,
    PublicTable,
    distributions,
    draw_table,
    table_that_breaks_lemma_3_9,
    table_with_a_constant,
    table_with_a_large_tail,
    table_with_random_tail,
)

import dpcov
from dpcov.paper.theory import (
    empirical_size,
    largest_beta,
    leverage_scores,
    recursion_constants,
    recursion_schedule,
    recursive_error,
    tail,
    tail_share,
)

TAIL_BETA = 0.2
"""Of the tables that `check_tail` looks at."""


def tables(scale: Scale, seed: int = 1) -> list[PublicTable]:
    """Return a table of every distribution, and one with a constant column."""
    rng = np.random.default_rng(seed)
    drawn = [draw_table(name, law, scale.rows, rng) for name, law in distributions().items()]
    return [*drawn, table_with_a_constant(scale.rows, rng)]


def run_in_the_clear(table: PublicTable, version: str, rng: np.random.Generator) -> Course:
    """Run Algorithms 1 and 2 with as much noise as the analysis allows."""
    constants = recursion_constants(version)
    return recursive_in_the_clear(
        table.rows,
        m=table.m,
        alpha=ALPHA,
        radius=table.radius,
        least_eigenvalue=table.least_eigenvalue,
        constants=constants,
        noise=largest_allowed_noise(table.m, table.rows.shape[1], constants, rng),
    )


def check_tail(scale: Scale) -> Iterator[Finding]:
    """Check that the tail holds at most (beta + beta^2) / m' of the rows, for every m' from m on."""
    rng = np.random.default_rng(2)
    for name, rows, m in tail_tables(scale, rng):
        sizes = {"": m}
        # The theory's m is cautious; a smaller one leaves more rows in the tail.
        found = empirical_size(rows, ALPHA, TAIL_BETA, rng=rng).m
        if found is not None:
            sizes |= {" found by subsampling": found, ", three times that": 3 * found}
        for told, size in sizes.items():
            share, bound = float(tail(rows, size, ALPHA).mean()), tail_share(size, TAIL_BETA)
            yield Finding(
                "the tail is small", "Claim 3.7", REPAIRED, f"{name}, beta={TAIL_BETA:g}, m={size}{told}",
                f"share <= {bound:.2e}", f"{share:.2e}", share <= bound,
            )  # fmt: skip


def tail_tables(scale: Scale, rng: np.random.Generator) -> Iterator[tuple[str, Matrix, int]]:
    """Yield names, tables of two columns, and a subsample size m(1/2, 0.2) for each."""
    for name, law in distributions(2, carried=0.03).items():
        yield name, law.sample(scale.rows, rng), law.subsample_size(ALPHA, TAIL_BETA)
    yield "built, a large tail", table_with_a_large_tail(100, TAIL_BETA, scale.rows), 100


def check_spectrum(scale: Scale) -> Iterator[Finding]:
    """Check that one round brings the spectrum under 3/7 of kappa and the least eigenvalue stays above 1."""
    rng = np.random.default_rng(3)
    for table in tables(scale):
        inside = ~tail(table.rows, table.m, ALPHA)
        yield _keeps_enough(table, inside)
        course = run_in_the_clear(table, REPAIRED, rng)
        setting = f"{table.name}, m={table.m:.1f}, {len(course.rounds)} rounds"
        # Before rows are shrunk, which can only lower it.
        largest = max(largest_eigenvalue_of(made.mapped) / made.kappa for made in course.rounds)
        yield Finding(
            "a round shrinks the spectrum", "Corollary 3.5", REPAIRED, setting,
            "largest eigenvalue <= 0.4286 kappa", f"{largest:.4f} kappa", largest <= 3 / 7,
        )  # fmt: skip
        least = min(least_eigenvalue_of(made.after) for made in course.rounds)
        kept = least_eigenvalue_of(course.last[inside].T @ course.last[inside] / len(inside))
        yield Finding(
            "the least eigenvalue stays above 1", "Corollary 3.10", REPAIRED, setting,
            "in every round >= 1, in the last without the tail >= 1", f"{least:.3f}, {kept:.3f}",
            min(least, kept) >= 1,
        )  # fmt: skip
        expected = max(0, math.ceil(_exact_rounds(table)))
        yield Finding(
            "number of rounds", "Corollary 3.6", REPAIRED, setting, f"ceil(T) = {expected} and a release",
            f"{len(course.rounds)} and a release", len(course.rounds) == expected,
        )  # fmt: skip


def _keeps_enough(table: PublicTable, inside: Mask) -> Finding:
    kept = table.rows[inside].T @ table.rows[inside] / len(inside)
    share = least_eigenvalue_of(whitened(kept, table.rows))
    return Finding(
        "without the tail enough is left", "Lemma 3.8", REPAIRED, f"{table.name}, m={table.m:.1f}",
        f"S_eff >= {1 - ALPHA:g} S", f"{share:.3f} S", share >= 1 - ALPHA,
    )  # fmt: skip


def _exact_rounds(table: PublicTable) -> float:
    kappa = table.radius**2 / ((1 - ALPHA) * table.least_eigenvalue)
    return math.log(kappa / (recursion_constants(REPAIRED).stopping * table.m), 7 / 3)


def check_shrinking(scale: Scale) -> Iterator[Finding]:
    """Check that only rows of the tail are shrunk; with the paper's constants a built table refutes it."""
    rng = np.random.default_rng(4)
    for table in tables(scale):
        in_tail = tail(table.rows, table.m, ALPHA)
        for version in (REPAIRED, PAPER):
            shrunk = run_in_the_clear(table, version, rng).ever_shrunk
            yield _shrinking(f"{table.name}, m={table.m:.1f}", version, shrunk, in_tail)
    small = [table_with_random_tail(rng) for _ in range(10 * scale.runs)]
    marks = [tail(table.rows, table.m, ALPHA) for table in small]
    for version in (REPAIRED, PAPER):
        shrunk = np.concatenate([run_in_the_clear(table, version, rng).ever_shrunk for table in small])
        yield _shrinking(f"{len(small)} random tables of 400 rows", version, shrunk, np.concatenate(marks))
    built, noise = table_that_breaks_lemma_3_9()
    beta = largest_beta(ALPHA, built.m, built.radius, built.least_eigenvalue, constants=PAPER)
    found = empirical_size(built.rows, ALPHA, beta, rng=rng).m
    yield Finding(
        "the built table is subsamplable", "Theorem 3.3", PAPER, f"built, m={built.m:g}, beta={beta:.4f}",
        f"subsamples of {built.m:g} rows or more are within 1/2", f"from {found} rows on",
        found is not None and found <= built.m,
    )  # fmt: skip
    for version in (REPAIRED, PAPER):
        constants = recursion_constants(version)
        course = recursive_in_the_clear(
            built.rows,
            m=built.m,
            alpha=ALPHA,
            radius=built.radius,
            least_eigenvalue=built.least_eigenvalue,
            constants=constants,
            # All the noise that this version's event allows.
            noise=_scaled(noise * (constants.noise * 80)),
        )
        in_tail = tail(built.rows, built.m, ALPHA)
        leverage = float(leverage_scores(built.rows).max())
        setting = f"built, m={built.m:g}, a row of leverage {leverage / built.m:.4f} m"
        yield _shrinking(setting, version, course.ever_shrunk, in_tail)


def _scaled(noise: Matrix) -> Callable[[float], Matrix]:
    return lambda kappa: noise * kappa


def _shrinking(setting: str, version: str, shrunk: Mask, in_tail: Mask) -> Finding:
    outside = int(np.count_nonzero(shrunk & ~in_tail))
    return Finding(
        "only the tail is shrunk", "Lemma 3.9", version, setting, "0 rows outside the tail",
        f"{np.count_nonzero(shrunk)} shrunk, {np.count_nonzero(in_tail)} in the tail, {outside} outside it",
        outside == 0,
    )  # fmt: skip


def check_reference(scale: Scale) -> Iterator[Finding]:
    """Check that the library's method and the algorithm in the clear give the same matrix up to noise."""
    rng = np.random.default_rng(5)
    rho = 1e9
    for table in tables(scale):
        (n, d), least = table.rows.shape, table.least_eigenvalue
        releases = recursion_schedule(table.m, ALPHA, table.radius, least).releases
        clear = recursive_in_the_clear(
            table.rows,
            m=table.m,
            alpha=ALPHA,
            radius=table.radius,
            least_eigenvalue=least,
            constants=recursion_constants(REPAIRED),
            noise=private_noise(n, d, rho, releases, rng),
        )
        made = dpcov.release(
            table.rows, rho=rho, method="recursive", intercept=False, rng=rng,
            m=table.m, alpha=ALPHA, radius=table.radius, least_eigenvalue=least,
        )  # fmt: skip
        gap = spectral_norm(whitened(made.second_moment() - clear.second_moment, table.rows))
        bound = 2 * recursive_error(
            n, d, rho, m=table.m, alpha=ALPHA, radius=table.radius, least_eigenvalue=least, failure=1e-6
        )
        yield Finding(
            "the library runs the paper's algorithm", "Algorithms 1 and 2", REPAIRED,
            f"{table.name}, {releases} releases, rho={rho:g}", f"gap <= twice the noise, {bound:.1e}",
            f"{gap:.1e}", gap <= bound and made.diagnostics["rounds"] == len(clear.rounds) + 1,
        )  # fmt: skip
