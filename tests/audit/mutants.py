"""Broken variants of the core. Each takes away one thing that privacy rests on, and an audit must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit.harness import Array, Program
from audit.units import UNIT_MUTANTS
from helpers.query_classes import QUERY_MODULES
from numpy.typing import NDArray

from dpcov import opening
from dpcov.core import Clipping, Gram, NoisyGram, SeededBits
from dpcov.core.noise import rounded_gaussian
from dpcov.core.queries import histogram
from dpcov.core.queries.gram import LatticeRows
from dpcov.methods.whitening.queries import clipped
from dpcov.paper.queries import subsample, threshold
from dpcov.paper.queries.laplace import discrete_laplace, truncated_laplace
from dpcov.rivals.queries import bounded
from dpcov.rivals.queries.unvetted import eigenpairs, stable_moment

_FLOATS = np.random.default_rng()
Mutant = Callable[[pytest.MonkeyPatch, Program], Program]


def _less_noise(patch: pytest.MonkeyPatch, share: Fraction) -> None:
    """Multiply the standard deviation of all noise by the root of `share`, or its scale by `share`'s root."""
    root = Fraction(np.sqrt(float(share)))

    def gaussian(bits: Any, variance: Any, count: int) -> NDArray[np.int64]:
        return rounded_gaussian(bits, Fraction(variance) * share, count)

    def laplace(bits: Any, scale: Any) -> int:
        return discrete_laplace(bits, Fraction(scale) * root)

    def truncated(bits: Any, scale: Any, bound: int) -> int:
        return truncated_laplace(bits, Fraction(scale) * root, int(bound * root))

    weak: dict[str, Callable[..., Any]] = {
        "rounded_gaussian": gaussian,
        "discrete_laplace": laplace,
        "truncated_laplace": truncated,
    }
    for name, sampler in weak.items():
        _draw_from(patch, name, sampler)


def _draw_from(patch: pytest.MonkeyPatch, name: str, sampler: Callable[..., Any]) -> None:
    """Put a sampler in place of another wherever a query draws; the samplers themselves stay as they are."""
    for module in QUERY_MODULES:
        if hasattr(module, name) and getattr(module, name).__module__ != module.__name__:
            patch.setattr(module, name, sampler)


def half_the_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    _less_noise(patch, Fraction(1, 4))
    return program


def tenth_of_the_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    _less_noise(patch, Fraction(1, 100))
    return program


def hardly_any_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    _less_noise(patch, Fraction(1, 10**10))
    return program


def no_square_root_of_two(patch: pytest.MonkeyPatch, program: Program) -> Program:
    _less_noise(patch, Fraction(1, 2))
    return program


def no_clipping(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Rows of up to three radii stay as they are."""

    make = LatticeRows.__init__

    def unclipped(self: LatticeRows, clipping: Clipping, lattice: Any, **options: Any) -> None:
        wider = replace(lattice, bound=3 * lattice.bound, clip=3 * lattice.clip)
        make(self, replace(clipping, radius=3 * clipping.radius), wider, **options)

    patch.setattr(LatticeRows, "__init__", unclipped)
    return program


def no_bounds(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Numbers of up to three times their bounds stay as they are."""
    to_grid = bounded._to_grid

    def unclipped(block: Any, bounds: Any, size: int) -> Any:
        wider = replace(
            bounds, lower=tuple(3 * end for end in bounds.lower), upper=tuple(3 * end for end in bounds.upper)
        )
        return to_grid(block, wider, 3 * size)

    patch.setattr(bounded, "_to_grid", unclipped)
    return program


def one_release_too_few(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Ask twice and pay once."""
    del patch

    def twice(rows: Array) -> list[float]:
        first, second = program(rows), program(rows)
        return [(a + b) / 2 for a, b in zip(first, second, strict=True)]

    return twice


def asked_twice_paid_once(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Every query is answered by the mean of two answers, for the price of one."""

    def mean(bits: Any, variance: Any, count: int) -> NDArray[np.int64]:
        return (rounded_gaussian(bits, variance, count) + rounded_gaussian(bits, variance, count)) // 2

    _draw_from(patch, "rounded_gaussian", mean)
    return program


def seeded_generator_reused(patch: pytest.MonkeyPatch, program: Program) -> Program:
    def again() -> SeededBits:
        return SeededBits(np.random.default_rng(7))

    patch.setattr(opening, "OSEntropy", again)
    patch.setattr("audit.queries.fresh_bits", again)
    return program


def float_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Add normal float64 numbers of the right variance to the exact answer."""

    def normal(_bits: Any, variance: Any, count: int) -> Array:
        return _FLOATS.normal(0.0, np.sqrt(float(variance)), count)

    def noisy_gram(self: Gram, exact: NDArray[np.int64], table: Any, _bits: Any) -> NoisyGram:
        variance, clipping = self.variance(table.lattice), self.clipping
        noise = normal(None, variance, exact.size).reshape(exact.shape)
        noisy: Any = exact + (noise + noise.T) / 2
        trace: Any = float(exact.trace() + normal(None, variance, 1)[0])
        unit = clipping.unit(table.lattice)
        return NoisyGram(noisy, trace, unit, variance, clipping.radius, table.n_rows, clipping.lattice_map)

    patch.setattr(Gram, "answer", noisy_gram)
    patch.setattr(histogram, "rounded_gaussian", normal)
    return program


def one_noise_for_both_counts(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """Numbers of clipped rows that share their noise: their difference has none."""

    def shared(bits: Any, variance: Any, count: int) -> NDArray[np.int64]:
        return np.repeat(rounded_gaussian(bits, variance, 1), count)

    patch.setattr(clipped, "rounded_gaussian", shared)
    return program


def losses_twice_as_large(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """What clipping took from the rows, with more room than was left for it."""
    add = clipped._ClippedWorker._add_losses

    def louder(self: Any, values: Array, room: Array) -> None:
        add(self, 2 * values, room)

    patch.setattr(clipped._ClippedWorker, "_add_losses", louder)
    return program


def sums_without_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """A well-known mistake with the sparse vector technique: noise on the threshold alone."""
    drawn = [0]

    def laplace(bits: Any, scale: Any) -> int:
        drawn[0] += 1
        return discrete_laplace(bits, scale) if drawn[0] == 1 else 0

    patch.setattr(threshold, "discrete_laplace", laplace)

    def counted(rows: Array) -> list[float]:
        drawn[0] = 0
        return program(rows)

    return counted


def rare_results_shown(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """The stability-based histogram without its threshold."""
    patch.setattr(subsample, "laplace_tail_threshold", lambda _scale, _delta: -(10**9))
    return program


def directions_without_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """True eigenvectors beside noisy eigenvalues."""

    def exact(_bits: Any, gram: Array, _epsilons: Any) -> Array:
        return np.asarray(np.linalg.eigh(gram)[1][:, ::-1])

    patch.setattr(eigenpairs, "sample_eigenvectors", exact)
    return program


def moment_without_noise(patch: pytest.MonkeyPatch, program: Program) -> Program:
    """The stable second moment itself in place of that of samples."""

    def exact(_bits: Any, factor: Array, _samples: int) -> Array:
        return np.asarray(factor.T @ factor)

    patch.setattr(stable_moment, "sampled_moment", exact)
    return program


MUTANTS: dict[str, Mutant] = {
    **UNIT_MUTANTS,
    "half the noise": half_the_noise,
    "a tenth of the noise": tenth_of_the_noise,
    "hardly any noise": hardly_any_noise,
    "no sqrt 2": no_square_root_of_two,
    "no clipping": no_clipping,
    "no bounds": no_bounds,
    "one release too few": one_release_too_few,
    "asked twice, paid once": asked_twice_paid_once,
    "seeded generator reused": seeded_generator_reused,
    "float noise": float_noise,
    "one noise for both counts": one_noise_for_both_counts,
    "losses twice as large": losses_twice_as_large,
    "sums without noise": sums_without_noise,
    "rare results shown": rare_results_shown,
    "directions without noise": directions_without_noise,
    "moment without noise": moment_without_noise,
}
