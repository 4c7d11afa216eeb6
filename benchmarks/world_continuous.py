"""Families of random tables with continuous columns."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta as beta_law
from world_draws import (
    Array,
    Columns,
    Generator,
    conditioned_map,
    correlated_normals,
    log_uniform,
    numbers,
    one_log_uniform,
    split_count,
)

# A uniform number this close to 0 or 1 has a finite image under every inverse distribution function.
_EDGE = 1e-12


def gaussian(rng: Generator, n: int, d: int) -> Columns:
    """Rows of a normal law with a random condition number."""
    condition = one_log_uniform(rng, 1.0, 1e10)
    return numbers(rng.standard_normal((n, d)) @ conditioned_map(rng, d, condition))


def clusters(rng: Generator, n: int, d: int) -> Columns:
    """Several normal clusters with shapes, places, spreads and weights of their own."""
    count = int(rng.integers(2, 7))
    weights = rng.dirichlet(np.full(count, one_log_uniform(rng, 0.3, 5.0)))
    distance = one_log_uniform(rng, 0.3, 20.0)
    sizes = rng.multinomial(n, weights)
    parts = []
    for size in sizes:
        shape = conditioned_map(rng, d, one_log_uniform(rng, 1.0, 100.0))
        centre = distance * rng.standard_normal(d)
        parts.append(centre + one_log_uniform(rng, 0.05, 5.0) * rng.standard_normal((size, d)) @ shape)
    return numbers(rng.permutation(np.vstack(parts)))


def copula(rng: Generator, n: int, d: int) -> Columns:
    """Correlated columns, each with a margin of another kind: normal, skewed, bounded, counted or 0/1."""
    uniform = np.clip(ndtr(correlated_normals(rng, n, d)), _EDGE, 1 - _EDGE)
    kinds = rng.integers(len(_MARGINS), size=d)
    columns = [_MARGINS[kind](rng, uniform[:, j]) for j, kind in enumerate(kinds)]
    return Columns(np.column_stack(columns), kinds == 0)


def _flag_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(uniform < one_log_uniform(rng, 0.01, 0.5), dtype=np.float64)


def _normal_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(rng.normal(0, 3) + one_log_uniform(rng, 0.1, 100) * ndtri(uniform))


def _uniform_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(one_log_uniform(rng, 0.1, 1000) * uniform)


def _exponential_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(-one_log_uniform(rng, 0.1, 1000) * np.log(uniform))


def _log_normal_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(one_log_uniform(rng, 1, 1e5) * np.exp(rng.uniform(0.2, 1.2) * ndtri(uniform)))


def _logistic_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(rng.normal(0, 10) + one_log_uniform(rng, 0.1, 100) * np.log(uniform / (1 - uniform)))


def _geometric_margin(rng: Generator, uniform: Array) -> Array:
    return np.asarray(np.floor(np.log(uniform) / np.log1p(-one_log_uniform(rng, 0.02, 0.9))))


_MARGINS = (
    _flag_margin,
    _normal_margin,
    _uniform_margin,
    _exponential_margin,
    _log_normal_margin,
    _logistic_margin,
    _geometric_margin,
)


def large_means(rng: Generator, n: int, d: int) -> Columns:
    """Columns whose mean is far above their spread: years, altitudes, 1e6 +- 1."""
    ratio = log_uniform(rng, 1.0, 1e6, d) * rng.choice([-1.0, 1.0], d)
    return numbers(log_uniform(rng, 0.01, 100.0, d) * (correlated_normals(rng, n, d) + ratio))


def scales(rng: Generator, n: int, d: int) -> Columns:
    """Columns in units from 1e-8 to 1e8, some with means of another order."""
    spread = log_uniform(rng, 1e-8, 1e8, d)
    means = np.where(rng.random(d) < 0.5, log_uniform(rng, 1e-3, 1e3, d), 0.0)
    # Beyond, double precision itself blurs the spread.
    means = np.minimum(means, 1e6 * spread)
    return numbers(correlated_normals(rng, n, d) * spread + means)


def heavy_columns(rng: Generator, n: int, d: int) -> Columns:
    """Put log-normal, Student and Pareto columns beside normal ones."""
    rows = correlated_normals(rng, n, d)
    for j in range(split_count(rng, d)):
        kind = rng.integers(3)
        if kind == 0:
            rows[:, j] = np.exp(rng.uniform(0.5, 1.7) * rows[:, j])
        elif kind == 1:
            degrees = rng.uniform(2.5, 8.0)
            rows[:, j] /= np.sqrt(rng.chisquare(degrees, n) / degrees)
        else:
            rows[:, j] = ndtr(-np.abs(rows[:, j])) ** (-1 / rng.uniform(2.5, 6.0))
    if rng.random() < 0.3:
        rows = rows @ conditioned_map(rng, d, 1e3)
    return numbers(rows)


def elliptical(rng: Generator, n: int, d: int) -> Columns:
    """Multivariate Student rows with a mean that is not zero."""
    degrees = one_log_uniform(rng, 2.5, 20.0)
    rows = rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees)
    return numbers(rows @ conditioned_map(rng, d, one_log_uniform(rng, 1, 1e6)) + rng.standard_normal(d))


def bounded(rng: Generator, n: int, d: int) -> Columns:
    """Beta columns, from U-shaped to a narrow peak near a bound."""
    uniform = ndtr(correlated_normals(rng, n, d))
    first, second = log_uniform(rng, 0.3, 20.0, d), log_uniform(rng, 0.3, 20.0, d)
    # Inverse distribution functions from a table of them: exact ones take seconds.
    grid = np.linspace(0, 1, 2001)
    columns = [np.interp(uniform[:, j], grid, beta_law.ppf(grid, first[j], second[j])) for j in range(d)]
    return numbers(log_uniform(rng, 1, 100, d) * np.column_stack(columns))


def circles(rng: Generator, n: int, d: int) -> Columns:
    """Cosines and sines of angles (times of day, bearings): rows of one length, or nearly."""
    n_angles = max(1, d // int(rng.integers(2, 7)))
    angles = rng.vonmises(0.0, rng.uniform(0.01, 4.0, n_angles), (n, n_angles))
    waves = np.arange(d) // (2 * n_angles) + 1
    phase = np.where(np.arange(d) // n_angles % 2 == 0, 0.0, np.pi / 2)
    rows = np.cos(waves * angles[:, np.arange(d) % n_angles] - phase)
    return numbers(rows + rng.choice([0.0, 0.01, 0.1]) * rng.standard_normal((n, d)))


def patches(rng: Generator, n: int, d: int) -> Columns:
    """Neighbouring pixels: smooth fields of different brightness and contrast, cut off at black and white."""
    place = np.arange(d) / d
    reach = one_log_uniform(rng, 0.05, 1.0)
    kernel = np.exp(-np.square(place[:, None] - place) / (2 * reach**2)) + 1e-4 * np.eye(d)
    contrast = rng.gamma(2.0, 0.5, (n, 1))
    rows = rng.normal(0.5, 0.2, (n, 1)) + 0.2 * contrast * (
        rng.standard_normal((n, d)) @ np.linalg.cholesky(kernel).T
    )
    rows = np.clip(rows, 0.0, 1.0)
    return numbers(np.round(255 * rows) if rng.random() < 0.5 else rows)


def durations(rng: Generator, n: int, d: int) -> Columns:
    """Weibull times whose rates depend on what stands beside them, some of them cut off and marked so."""
    n_causes = split_count(rng, d)
    causes = correlated_normals(rng, n, n_causes)
    flagged = np.zeros(d, dtype=np.bool_)
    columns = [causes]
    for j in range(n_causes, d):
        if j > n_causes and rng.random() < 0.3:
            limit = np.quantile(columns[-1], rng.uniform(0.5, 0.99))
            columns.append((columns[-1] > limit).astype(np.float64))
            columns[-2] = np.minimum(columns[-2], limit)
            flagged[j] = True
            continue
        rate = np.exp(causes @ rng.normal(0, 0.5 / np.sqrt(n_causes), n_causes))
        times = rng.weibull(rng.uniform(0.7, 3.0), n) / rate
        columns.append(one_log_uniform(rng, 0.1, 1000) * times[:, None])
    return Columns(np.hstack(columns), flagged)


def regimes(rng: Generator, n: int, d: int) -> Columns:
    """Sensors that are quiet most of the time and loud in bursts, each burst in a direction of its own."""
    rows = rng.standard_normal((n, d)) @ conditioned_map(rng, d, one_log_uniform(rng, 1, 1e4))
    for _ in range(int(rng.integers(1, 5))):
        loud = rng.random(n) < one_log_uniform(rng, 0.003, 0.3)
        direction = rng.standard_normal(d) * (rng.random(d) < rng.uniform(0.1, 1.0))
        rows[loud] += one_log_uniform(rng, 1, 30) * rng.standard_normal((int(loud.sum()), 1)) * direction
    return numbers(rows + rng.normal(0, 2, d))
