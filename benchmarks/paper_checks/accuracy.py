"""Claims of accuracy and speed, measured: the least eigenvalue, closed-form moments, the main theorem."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator

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
from paper_checks.reference import second_moment_of
from paper_checks.tables import ALPHA, PublicTable, distributions

import dpcov
from dpcov.paper.theory import (
    DISTRIBUTIONS,
    Distribution,
    EllipsoidSurface,
    LinearImage,
    ParetoBesideDirection,
    ParetoTimesDirection,
    WithOutliers,
    eigenvalue_rows,
    log_spaced_gaussian,
    named_distribution,
    pareto_moment,
    recursive_rows,
    tail,
)
from dpcov.paper.theory.prediction import whitening_error


def check_least_eigenvalue(scale: Scale) -> Iterator[Finding]:
    """Check that the least-eigenvalue estimate is within 1 +- alpha: at the paper's m, and at a finer one."""
    rng = np.random.default_rng(6)
    epsilon, delta, failure, alpha = 1.0, 1e-6, 0.05, 0.5
    groups = int(eigenvalue_rows(1, epsilon, delta, failure=failure).rows)
    laws: dict[str, Distribution] = {
        "ellipsoid": EllipsoidSurface(np.diag([1.0, 0.1, 0.01])),
        "Pareto times": ParetoTimesDirection(3, 4.0),
        "Gaussian": log_spaced_gaussian(3, 100.0),
    }
    for name, law in laws.items():
        # The end of a bucket of width a lies up to (1 - a)^2 below: (1 - a)^2 = 1 - alpha.
        for version, told in ((PAPER, alpha), (REPAIRED, 1 - math.sqrt(1 - alpha))):
            m = law.subsample_size(told, failure / (2 * groups))
            rows = law.sample(groups * m, rng)
            truth, radius = least_eigenvalue_of(second_moment_of(rows)), law.radius_of(len(rows), 1e-9)
            for place, lowest, highest in (
                ("anywhere in", 1.0, 1 / (1 - told)),
                ("just above the end of", 1.01, 1.02),
            ):
                ratios = []
                for _ in range(scale.runs // 4):
                    # Ends of buckets are powers of 1 - alpha.
                    scaled = rows * math.sqrt(rng.uniform(lowest, highest) / truth)
                    found = dpcov.least_eigenvalue(
                        scaled, m=m, alpha=told, radius=radius * math.sqrt(highest / truth),
                        epsilon=epsilon, delta=delta, rng=rng,
                    ).value  # fmt: skip
                    ratios.append(found / least_eigenvalue_of(second_moment_of(scaled)))
                good = sum(1 - alpha <= ratio <= 1 + alpha for ratio in ratios) / len(ratios)
                yield Finding(
                    "the least eigenvalue is found", "Theorem B.3", version,
                    f"{name}, {place} a bucket, told alpha={told:.3g}, m={m}, {len(ratios)} runs",
                    f"between {1 - alpha:g} and {1 + alpha:g} times it in {1 - failure:.0%} of runs",
                    f"{good:.1%}, {min(ratios):.3f} to {max(ratios):.3f}", good >= 1 - failure,
                )  # fmt: skip


def check_moments(scale: Scale) -> Iterator[Finding]:
    """Check that closed-form moments are those of samples."""
    rng = np.random.default_rng(7)
    n = 20 * scale.rows
    for name, law in distributions(outliers=0.02).items():
        rows = law.sample(n, rng)
        inverse_root = np.linalg.inv(np.linalg.cholesky(law.second_moment()))
        white = rows @ inverse_root.T
        off = spectral_norm(white.T @ white / n - np.eye(law.n_columns))
        bound = _accuracy_at(law, n)
        yield Finding(
            "second moment", "Section 4.2, Appendix D", REPAIRED, f"{name}, {n} rows",
            f"within {bound:.4f} of its formula", f"{off:.4f}", off <= bound,
        )  # fmt: skip
        squares = np.square(white).sum(axis=1)
        fourth = inverse_root @ law.fourth_moment(inverse_root.T @ inverse_root) @ inverse_root.T
        top = np.linalg.eigh(fourth)[1][:, -1]
        terms = squares * np.square(white @ top)
        error = 5 * float(terms.std()) / math.sqrt(n)
        mean = float(terms.mean())
        yield Finding(
            "M2", "Claim 4.2, Appendix D", REPAIRED, f"{name}, {n} rows",
            f"{law.m2:.4f} +- {error:.4f}", f"{mean:.4f}", abs(mean - law.m2) <= error,
        )  # fmt: skip
        if math.isfinite(law.m1):
            longest = math.sqrt(float(squares.max()))
            yield Finding(
                "M1", "Claim 4.2, Appendix D", REPAIRED, f"{name}, {n} rows", f"|y| <= {law.m1:.4f}",
                f"{longest:.4f}", longest <= law.m1 * (1 + 1e-9),
            )  # fmt: skip
    lengths = ParetoBesideDirection(2).sample(n, rng)[:, 0]
    for power in (1, 2, 4):
        terms = lengths**power
        error, mean = 5 * float(terms.std()) / math.sqrt(n), float(terms.mean())
        formula = pareto_moment(power, 10.0)
        yield Finding(
            f"E lambda^{power}", "Appendix D.2", REPAIRED, f"truncated Pareto, {n} draws",
            f"{formula:.4f} +- {error:.4f}", f"{mean:.4f}", abs(mean - formula) <= error,
        )  # fmt: skip


def _accuracy_at(law: Distribution, n_rows: int) -> float:
    """Return the alpha for which m(alpha, 1e-6) is `n_rows`: so close the theory says the sample is."""
    low, high = 1e-6, 10.0
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if law.subsample_size(middle, 1e-6) <= n_rows else (middle, high)
    return high


def theorem_errors(table: PublicTable, rho: float, runs: int, rng: np.random.Generator) -> list[float]:
    """Return the gamma that each run of the library's method reached.

    The least gamma with ``(1 - gamma) S_eff <= S~ <= (1 + gamma) S``.
    """
    inside = ~tail(table.rows, table.m, ALPHA)
    kept = table.rows[inside]
    errors = []
    for _ in range(runs):
        made = dpcov.release(
            table.rows, rho=rho, method="recursive", intercept=False, rng=rng, m=table.m, alpha=ALPHA,
            radius=table.radius, least_eigenvalue=table.least_eigenvalue,
        ).second_moment().values  # fmt: skip
        low = 1 - least_eigenvalue_of(whitened(made, kept, len(table.rows)))
        high = largest_eigenvalue_of(whitened(made, table.rows)) - 1
        errors.append(max(low, high, 0.0))
    return errors


def theorem_tables() -> dict[str, tuple[Distribution, float, float]]:
    """Return laws, with an m told and a budget, for which the theorem needs few enough rows to run it."""
    gaussian, heavy = log_spaced_gaussian(3, 1e4), np.diag([1.0, 0.1, 0.01])
    return {
        "ellipsoid, d=2, condition 1e4": (EllipsoidSurface(np.diag([1.0, 1e-4])), 1.4, 4.0),
        "ellipsoid, d=5, condition 1e6": (EllipsoidSurface(np.diag(np.logspace(0, -6, 5))), 3.5, 16.0),
        "Pareto times, d=3, condition 1e4": (LinearImage(ParetoTimesDirection(3, 3.0), heavy), 11.5, 100.0),
        "Gaussian, d=3, condition 1e4": (gaussian, 25.0, 100.0),
        "outliers, d=3, condition 1e4": (
            WithOutliers(gaussian, 1e-4, 1.0 / math.sqrt(5), "least"),
            25.0,
            100.0,
        ),
    }


def theorem_table(
    name: str, gamma: float, failure: float, rng: np.random.Generator
) -> tuple[PublicTable, float]:
    """Draw a table as long as the theorem asks for `gamma`, and return it with its budget."""
    law, m, rho = theorem_tables()[name]
    radius, least = law.radius_of(10**6, 1e-3), law.least_eigenvalue / 1.05
    rows = recursive_rows(
        gamma, law.n_columns, rho, m=m, alpha=ALPHA, radius=radius, least_eigenvalue=least, failure=failure
    ).rows
    return PublicTable(name, law.sample(int(rows), rng), m, radius, least), rho


def check_theorem(scale: Scale) -> Iterator[Finding]:
    """Check that where the theorem promises 1 +- gamma, the measured error obeys it."""
    rng = np.random.default_rng(8)
    failure = 0.05
    for name in theorem_tables():
        for gamma in (0.2, 0.5):
            table, rho = theorem_table(name, gamma, failure, rng)
            errors = theorem_errors(table, rho, scale.runs, rng)
            good = sum(error <= gamma for error in errors) / len(errors)
            in_tail = int(np.count_nonzero(tail(table.rows, table.m, ALPHA)))
            yield Finding(
                "the main theorem", "Theorem 3.3", REPAIRED,
                f"{name}, m={table.m:g}, rho={rho:g}, n={len(table.rows)}, {in_tail} in the tail",
                f"error <= {gamma:g} in {1 - failure:.0%} of {len(errors)} runs",
                f"{good:.0%}, largest {max(errors):.4f}, median {statistics.median(errors):.4f}",
                good >= 1 - failure,
            )  # fmt: skip


def time_rounds(n_rows: int, repeats: int = 5) -> tuple[int, list[float], list[float]]:
    """Return the number of rounds, and the seconds of plain products and of rounds, taken in turn."""
    rng = np.random.default_rng(9)
    law = log_spaced_gaussian(50, 1e6)
    rows = np.empty((n_rows, 50))
    for first in range(0, n_rows, 10_000):
        rows[first : first + 10_000] = law.sample(len(rows[first : first + 10_000]), rng)
    rounds, plain, each = 0, [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        _ = rows.T @ rows
        plain.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        made = dpcov.release(
            rows, rho=0.5, method="recursive", intercept=False, m=100, radius=6.0, least_eigenvalue=1e-6
        )
        rounds = int(made.diagnostics["rounds"])
        each.append((time.perf_counter() - begin) / rounds)
    return rounds, plain, each


def check_speed(scale: Scale) -> Iterator[Finding]:
    """Check that a round takes at most 6 plain products ``X.T @ X``."""
    rounds, plain, each = time_rounds(scale.timed_rows)
    ratio = statistics.median(e / p for e, p in zip(each, plain, strict=True))
    yield Finding(
        "speed of a round", "Algorithm 2", REPAIRED,
        f"n={scale.timed_rows}, d=50, condition 1e6, {rounds} rounds, {len(each)} runs in turn",
        "at most 6 times X.T @ X", f"{ratio:.2f} times, {statistics.median(each):.3f} s", ratio <= 6,
    )  # fmt: skip


def check_prediction(scale: Scale) -> Iterator[Finding]:
    """Check that the default's errors on the paper's distributions are as `theory.compare` predicts."""
    rho, d = 0.5, 10
    for name in DISTRIBUTIONS:
        law = named_distribution(name, d, condition=1e6)
        for n in (scale.rows, 10 * scale.rows):
            predicted = whitening_error(n, d, rho, law.leverage_beyond)
            ratios = []
            for run in range(max(5, scale.runs // 10)):
                rng = np.random.default_rng([8, n, run])
                rows = law.sample(n, rng)
                released = dpcov.release(rows, rho=rho, intercept=False, rng=rng).second_moment().values
                ratios.append(spectral_norm(whitened(released, rows) - np.eye(d)) / predicted)
            low, high = np.quantile(ratios, [0.1, 0.9])
            yield Finding(
                "the default's error", "Equation (1)", REPAIRED, f"{name}, {n} rows, {len(ratios)} runs",
                f"the median is within a factor of 2 of {predicted:.2e}",
                f"{statistics.median(ratios):.2f} times it, 8 of 10 runs {low:.2f} to {high:.2f}",
                1 / 2 <= statistics.median(ratios) <= 2,
            )  # fmt: skip
