"""Families of random tables whose columns are made from each other."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import numpy as np
from scipy.signal import lfilter
from world_draws import (
    Array,
    Columns,
    Generator,
    beside,
    correlated_normals,
    flags,
    log_uniform,
    numbers,
    one_log_uniform,
    split_count,
)


def polynomials(rng: Generator, n: int, d: int) -> Columns:
    """Powers and products, up to the third degree, of raw columns that are not centred."""
    n_base = int(rng.integers(1, 4))
    while 1 + n_base + n_base * (n_base + 1) // 2 + n_base * (n_base + 1) * (n_base + 2) // 6 <= d:
        n_base += 1
    n_base = min(n_base, d)
    base = rng.uniform(-2, 2, n_base) + correlated_normals(rng, n, n_base) * rng.uniform(0.3, 1.5, n_base)
    if rng.random() < 0.4:
        base = rng.uniform(0, one_log_uniform(rng, 0.5, 20), (n, n_base))
    products = [
        np.prod(base[:, list(chosen)], axis=1)
        for degree in (1, 2, 3)
        for chosen in combinations_with_replacement(range(n_base), degree)
    ]
    return numbers(np.column_stack(products[:d]))


def interactions(rng: Generator, n: int, d: int) -> Columns:
    """Numbers, 0/1 columns, and products of two of them."""
    n_base = 2
    while n_base + n_base * (n_base - 1) // 2 < d:
        n_base += 1
    n_base = min(n_base, d)
    n_flags = split_count(rng, n_base)
    marked = flags(rng.random((n, n_flags)) < rng.uniform(0.05, 0.6, n_flags))
    base = marked
    if n_base > n_flags:
        values = rng.normal(0, 2, n_base - n_flags) + correlated_normals(rng, n, n_base - n_flags)
        base = beside([marked, numbers(values)])
    pairs = list(combinations(range(n_base), 2))[: d - n_base]
    if not pairs:
        return base
    first, second = (list(side) for side in zip(*pairs, strict=True))
    crossed = Columns(base.values[:, first] * base.values[:, second], base.flags[first] & base.flags[second])
    return beside([base, crossed])


def lags(rng: Generator, n: int, d: int) -> Columns:
    """Time series beside their own past: stationary, or nearly a random walk."""
    n_series = int(rng.integers(1, 1 + max(1, d // 3)))
    n_lags = -(-d // n_series)
    memory = 1 - log_uniform(rng, 1e-3, 1.0, n_series)
    shocks = correlated_normals(rng, n + n_lags, n_series)
    if rng.random() < 0.3:
        shocks /= np.sqrt(rng.chisquare(5.0, shocks.shape) / 5.0)
    series = np.column_stack([lfilter([1.0], [1.0, -memory[j]], shocks[:, j]) for j in range(n_series)])
    series = series * log_uniform(rng, 0.1, 100, n_series) + rng.normal(0, 10, n_series)
    rows = np.hstack([series[n_lags - lag : n_lags - lag + n] for lag in range(n_lags)])
    return numbers(rows[:, :d])


def factors(rng: Generator, n: int, d: int) -> Columns:
    """Few shared factors and, column by column, a little of its own."""
    n_factors = int(rng.integers(1, max(2, d // 3 + 1)))
    common = rng.standard_normal((n, n_factors)) @ rng.standard_normal((n_factors, d))
    own = log_uniform(rng, 1e-3, 1.0, d)
    return numbers((common + own * rng.standard_normal((n, d))) * log_uniform(rng, 0.1, 100, d))


def duplicates(rng: Generator, n: int, d: int) -> Columns:
    """Columns beside copies of themselves or of their combinations, exact or nearly so."""
    n_base = split_count(rng, d, max(1, d // 3))
    base = correlated_normals(rng, n, n_base) * log_uniform(rng, 0.1, 100, n_base) + rng.normal(0, 3, n_base)
    weights = rng.standard_normal((n_base, d - n_base)) * (rng.random((n_base, d - n_base)) < 0.3)
    weights[rng.integers(n_base, size=d - n_base), np.arange(d - n_base)] = 1.0
    copies = base @ weights
    exact = rng.random(d - n_base) < 0.3
    error = np.where(exact, 0.0, log_uniform(rng, 1e-5, 1e-1, d - n_base)) * copies.std(axis=0)
    return numbers(np.hstack([base, copies + error * rng.standard_normal(copies.shape)]))


def totals(rng: Generator, n: int, d: int) -> Columns:
    """Skewed parts, sums of some of them, and differences, sums exact or rounded."""
    n_parts = split_count(rng, d, max(1, d // 2))
    spread = rng.uniform(0.3, 1.0)
    parts = np.exp(spread * correlated_normals(rng, n, n_parts)) * log_uniform(rng, 1, 1000, n_parts)
    member = rng.random((n_parts, d - n_parts)) < 0.5
    member[rng.integers(n_parts, size=d - n_parts), np.arange(d - n_parts)] = True
    sums = parts @ member
    rounded = rng.random(d - n_parts) < 0.5
    return numbers(np.hstack([parts, np.where(rounded, np.round(sums), sums)]))


def compositions(rng: Generator, n: int, d: int) -> Columns:
    """Shares of a whole: all columns, or all but one, add up to 1."""
    every = rng.random() < 0.2
    sizes = log_uniform(rng, 0.3, 30.0, d if every else d + 1)
    weights = rng.gamma(sizes, 1.0, (n, len(sizes))) + 1e-12
    return numbers((weights / weights.sum(axis=1, keepdims=True))[:, :d])


def wages(rng: Generator, n: int, d: int) -> Columns:
    """Years of school and work, their squares, a log wage, years as codes, and 0/1 facts of a person."""
    school = np.clip(np.round(rng.normal(12.5, 2.5, n)), 6, 20)
    age = rng.integers(20, 66, n).astype(np.float64)
    work = np.maximum(age - school - 6, 0.0)
    facts = rng.random((n, 4)) < np.append(rng.uniform(0.1, 0.6, 2), log_uniform(rng, 0.01, 0.2, 2))
    effects = facts @ rng.normal(0, 0.2, 4)
    log_wage = 0.08 * school + 0.04 * work - 7e-4 * work**2 + effects + rng.normal(1, 0.45, n)
    year = rng.integers(1980, 1980 + int(rng.integers(2, 30)), n)
    plain: list[Array] = [log_wage, school, work, work**2, age, np.exp(log_wage), year.astype(np.float64)]
    rest = max(0, d - len(plain) - facts.shape[1])
    codes = year[:, None] == np.unique(year)[None, 1 : 1 + rest]
    found = beside([numbers(np.column_stack(plain)), flags(facts), flags(codes)])
    extra = d - found.values.shape[1]
    if extra > 0:
        hours = rng.poisson(log_uniform(rng, 1, 200, extra), (n, extra)).astype(np.float64)
        found = beside([found, numbers(hours * (1 + 0.1 * school[:, None]))])
    chosen = np.sort(rng.permutation(found.values.shape[1])[:d])
    return Columns(found.values[:, chosen], found.flags[chosen])


def panel(rng: Generator, n: int, d: int) -> Columns:
    """Repeated measurements of units: slow unit levels, a common trend, and changes since the last time."""
    waves = int(rng.integers(3, 15))
    unit, wave = np.arange(n) // waves, np.arange(n) % waves
    levels = rng.standard_normal((unit[-1] + 1, d)) * log_uniform(rng, 0.3, 30, d)
    noise = rng.standard_normal((n, d)) * log_uniform(rng, 0.1, 3, d)
    rows = levels[unit] + wave[:, None] * rng.normal(0, 0.3, d) + noise
    rows[:, 0] = 2000 + wave
    for j in range(2, d, 3):
        rows[:, j] = rows[:, j - 1] - np.where(wave > 0, np.roll(rows[:, j - 1], 1), rows[:, j - 1])
    return numbers(rows)
