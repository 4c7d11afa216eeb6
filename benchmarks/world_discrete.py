"""Families of random tables with counts, 0/1 columns, categories and amounts that are often zero."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri
from world_draws import (
    Array,
    Columns,
    Flags,
    Generator,
    beside,
    correlated_normals,
    flags,
    log_uniform,
    numbers,
    one_log_uniform,
    split_count,
)


def counts(rng: Generator, n: int, d: int) -> Columns:
    """Poisson and negative binomial counts with means from 0.01 to 1000."""
    means = log_uniform(rng, 0.01, 1000.0, d)
    rates = np.broadcast_to(means, (n, d))
    if rng.random() < 0.5:
        # One busyness for the whole row makes the counts depend on each other.
        shape = one_log_uniform(rng, 0.5, 20.0)
        rates = rates * rng.gamma(shape, 1 / shape, (n, 1))
    overdispersed = rng.random(d) < rng.uniform(0, 1)
    shapes = log_uniform(rng, 0.3, 20.0, d)
    noise = np.where(overdispersed, rng.gamma(shapes, 1 / shapes, (n, d)), 1.0)
    return numbers(rng.poisson(rates * noise).astype(np.float64))


def zero_inflated(rng: Generator, n: int, d: int) -> Columns:
    """Amounts (spending, rain, savings) that are zero for most rows and skewed for the others."""
    latent = correlated_normals(rng, n, d)
    shares = log_uniform(rng, 0.02, 0.7, d)
    sizes = np.exp(rng.uniform(0.2, 1.3, d) * rng.standard_normal((n, d)))
    amounts = np.where(ndtr(latent) < shares, sizes * log_uniform(rng, 0.1, 1e4, d), 0.0)
    debts = rng.random((n, d)) < np.where(rng.random(d) < 0.3, 0.3, 0.0)
    return numbers(np.where(debts, -amounts, amounts))


def rare_flags(rng: Generator, n: int, d: int) -> Columns:
    """0/1 columns from common ones down to a handful of ones, independent or not."""
    least = max(10 / n, 5e-4)
    shares = log_uniform(rng, least, 0.5, d)
    latent = correlated_normals(rng, n, d) if rng.random() < 0.5 else rng.standard_normal((n, d))
    return flags(ndtr(latent) < shares)


def flags_and_numbers(rng: Generator, n: int, d: int) -> Columns:
    """0/1 columns beside numbers that depend on them."""
    n_flags = split_count(rng, d)
    marked = rare_flags(rng, n, n_flags)
    if n_flags == d:
        return marked
    effects = rng.normal(0, 1, (n_flags, d - n_flags)) * (rng.random((n_flags, d - n_flags)) < 0.5)
    values = marked.values @ effects + correlated_normals(rng, n, d - n_flags)
    return beside([marked, numbers(values * log_uniform(rng, 0.1, 1000, d - n_flags))])


def categories(rng: Generator, n: int, d: int) -> Columns:
    """Categories with rare levels as one 0/1 column a level, and numbers that differ between levels."""
    n_codes = max(1, d - int(rng.integers(0, 1 + d // 2)))
    parts: list[Columns] = []
    effects = np.zeros((n, d - n_codes))
    while sum(part.values.shape[1] for part in parts) < n_codes:
        n_levels = int(rng.integers(2, 15))
        level = rng.choice(n_levels, n, p=_level_shares(rng, n_levels, n))
        # With every level the columns of a category add up to the constant: an exact collinearity.
        first = 0 if rng.random() < 0.15 else 1
        parts.append(flags(level[:, None] == np.arange(first, n_levels)))
        effects += rng.normal(0, 1, (n_levels, d - n_codes))[level]
    codes = beside(parts)
    chosen = Columns(codes.values[:, :n_codes], codes.flags[:n_codes])
    values = (effects + rng.standard_normal(effects.shape)) * log_uniform(rng, 0.1, 1e4, d - n_codes)
    return beside([chosen, numbers(values)]) if d > n_codes else chosen


def _level_shares(rng: Generator, n_levels: int, n: int) -> Array:
    """Return shares that fall as in Zipf's law, none so rare that it is a handful of rows."""
    shares = np.arange(1.0, n_levels + 1) ** -rng.uniform(0.0, 2.0) * rng.dirichlet(np.full(n_levels, 5.0))
    shares = np.maximum(shares / shares.sum(), min(20 / n, 0.5 / n_levels))
    return np.asarray(shares / shares.sum())


def complementary(rng: Generator, n: int, d: int) -> Columns:
    """Pairs of 0/1 columns that add up to 1 but for few rows, beside numbers."""
    n_pairs = max(1, int(rng.integers(1, 1 + max(1, d // 2))))
    first = rng.random((n, n_pairs)) < rng.uniform(0.1, 0.9, n_pairs)
    neither = rng.random((n, n_pairs)) < log_uniform(rng, 2e-3, 0.1, n_pairs)
    pairs = flags(np.hstack([first & ~neither, ~first & ~neither])[:, :d])
    if d <= 2 * n_pairs:
        return pairs
    values = correlated_normals(rng, n, d - 2 * n_pairs)
    values += pairs.values[:, :1] * rng.normal(0, 1, values.shape[1])
    return beside([pairs, numbers(values * log_uniform(rng, 0.1, 1e3, values.shape[1]))])


def survey(rng: Generator, n: int, d: int) -> Columns:
    """Answers from 1 to 5 or 1 to 10 that share an attitude, with some 0/1 questions and an age."""
    attitude = correlated_normals(rng, n, d)
    levels = rng.choice([2, 5, 7, 10], d, p=[0.3, 0.4, 0.1, 0.2])
    columns = []
    for j in range(d):
        if j == 0 and rng.random() < 0.7:
            columns.append(np.floor(np.clip(48 + 17 * attitude[:, j], 18, 95)))
            levels[j] = 0
            continue
        limits = np.sort(rng.normal(rng.normal(0, 0.7), 1.0, levels[j] - 1))
        columns.append(np.searchsorted(limits, attitude[:, j]) + (0.0 if levels[j] == 2 else 1.0))
    return Columns(np.column_stack(columns), levels == 2)


def heaped(rng: Generator, n: int, d: int) -> Columns:
    """Amounts and ages as people report them: rounded, some to 5, 10 or 1000, and cut off at the top."""
    values = np.exp(rng.uniform(0.1, 0.9, d) * correlated_normals(rng, n, d)) * log_uniform(rng, 5, 5e4, d)
    step = np.power(10.0, np.floor(np.log10(np.median(values, axis=0)) - rng.choice([0.0, 1.0, 2.0], d)))
    coarse = rng.random((n, d)) < rng.uniform(0, 0.8, d)
    values = np.where(coarse, 5 * step * np.round(values / (5 * step)), step * np.round(values / step))
    top = np.where(rng.random(d) < 0.3, np.quantile(values, 0.97, axis=0), np.inf)
    return numbers(np.minimum(values, top))


def purchases(rng: Generator, n: int, d: int) -> Columns:
    """Which brand was bought, at what price, with what promotion: products of 0/1 columns and amounts."""
    n_brands = max(1, (d + 1) // 3)
    brand = rng.choice(n_brands + 1, n, p=_level_shares(rng, n_brands + 1, n))
    bought = brand[:, None] == np.arange(1, n_brands + 1)
    prices = np.exp(0.2 * rng.standard_normal((n, n_brands))) * log_uniform(rng, 0.5, 50, n_brands)
    promoted = rng.random((n, n_brands)) < log_uniform(rng, 0.02, 0.5, n_brands)
    values = np.hstack([bought, np.where(bought, prices, 0.0), promoted])[:, :d]
    flagged: Flags = np.concatenate([np.ones(n_brands), np.zeros(n_brands), np.ones(n_brands)])[:d] > 0
    if values.shape[1] < d:
        values = np.column_stack([values, np.exp(ndtri(rng.random((n, d - values.shape[1]))))])
        flagged = np.append(flagged, np.zeros(d - len(flagged), dtype=np.bool_))
    return Columns(values, flagged)


def spikes(rng: Generator, n: int, d: int) -> Columns:
    """Numbers most of which are one value (a default, a price, a minimum), the others spread around it."""
    at_spike = rng.random((n, d)) < rng.uniform(0.3, 0.97, d)
    level = rng.normal(0, 3, d) * (rng.random(d) < 0.7)
    rows = np.where(at_spike, level, level + correlated_normals(rng, n, d) * log_uniform(rng, 0.1, 10, d))
    return numbers(rows * log_uniform(rng, 0.01, 1000, d))
