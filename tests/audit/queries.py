"""Every private query of the core, with its mutants."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from audit.harness import Array, Case, Claim, Program, finest_bit
from audit.tables import (
    BULK,
    EAST,
    FAR,
    HALVES,
    NORTH,
    THIN,
    TWINS,
    UNIT_ROWS,
    ZEROS,
    lines,
    ones,
    swapped,
)
from audit.units import NOBODY, ONE_EAST, ONE_NORTH, TEN_EAST, TEN_NORTH, curator_of

from dpcov.core import (
    BitSource,
    Budget,
    Clipping,
    Curator,
    Gram,
    LogNormGrid,
    NoisyGram,
    NormHistogram,
    OSEntropy,
    PrivacyCost,
    RowsBeyond,
    Rule,
)
from dpcov.maps import identity_map
from dpcov.methods.whitening.queries.clipped import ClippedGram, Pull
from dpcov.methods.whitening.queries.columns import PerColumn
from dpcov.paper.queries import (
    Aggregate,
    Agreement,
    FirstAgreement,
    LeastEigenvalueBuckets,
    Shrinking,
    ShrunkGram,
)
from dpcov.rivals.queries import (
    BoundedGram,
    BoundedProducts,
    Bounds,
    Eigenpairs,
    EigenvalueBuckets,
    Eigenvalues,
    FirstAbove,
    SharedSubspace,
    StableMoment,
    Trace,
)
from dpcov.sources import ArraySource

RHO = Fraction(1)
EPSILON, DELTA = Fraction(1), Fraction(1, 100)
QUERY_RUNS, METHOD_RUNS, FEW_RUNS = 4000, 1000, 300
ZCDP = Claim(rho=RHO)
GDP = Claim(rho=RHO, gaussian=True)
APPROXIMATE = Claim(epsilon=EPSILON, delta=DELTA)
COMMON = ("half the noise", "seeded generator reused")

_LITTLE = Fraction(1, 10)
_BOX = Bounds((-1.0, -1.0), (1.0, 1.0), target=1)
_LITTLE_GDP = Claim(rho=_LITTLE, gaussian=True)
_HALF, _SMALL = Fraction(1, 2), Fraction(1, 1000)
_IDENTITY = identity_map(2)
_LINE = identity_map(1)
_GRID = LogNormGrid(0, 4, 1)
_SHRINK = Clipping(_IDENTITY, 1.0)
_CHAIN = (Shrinking(_IDENTITY, 4.0), Shrinking(_IDENTITY, 2.0))
TOO_CAREFUL = (
    "What the proof allows for a row is more than twice what any row is known to do. Half the noise still "
    "hides it: only mutants without noise can be caught."
)
NOISE_FOR_THE_WORST = (
    "The proof covers tables where one row changes the weights of nearly all groups; none that pass the test "
    "are known to come near. The noise is so much larger than these neighbours need that less of it still "
    "hides a row: only mutants with hardly any noise can be caught."
)


def fresh_bits() -> BitSource:
    """Where the noise of a query comes from."""
    return OSEntropy()


def _ask(rows: Array, constant: bool = False) -> Curator:  # noqa: FBT001, FBT002
    budget = Budget(PrivacyCost(Fraction(100), Fraction(1, 2)))
    return Curator(ArraySource(rows, threads=1), budget, fresh_bits(), constant=constant)


def _gram(clipping: Clipping, every: int = 1, rho: Fraction = RHO, *, coarse: bool = False) -> Program:
    def program(rows: Array) -> list[float]:
        return _entries(_ask(rows).ask(Gram(clipping, rho, purpose="audit", every=every, coarse=coarse)))

    return program


def _entries(answer: NoisyGram) -> list[float]:
    whole = answer.integers
    entries = [float(whole[0, 0]), float(whole[1, 1]), float(whole[0, 1]), float(answer.trace)]
    # A row that is turned moves the first difference most, one that comes from far the sum.
    moved = [entries[0] - entries[1], entries[0] + entries[3]]
    return [*entries, *moved, finest_bit(entries[0]), finest_bit(entries[3])]


def _gram_of_persons(rows: Array) -> list[float]:
    return _entries(curator_of(rows, fresh_bits()).ask(Gram(_SHRINK, RHO, purpose="audit")))


def _norms_of_persons(rows: Array) -> list[float]:
    counts = curator_of(rows, fresh_bits()).ask(NormHistogram(_IDENTITY, _GRID, RHO, purpose="audit")).counts
    return [float(counts[0]), float(counts[4]), float(counts[4] - counts[0])]


def _shrunk_gram(rows: Array) -> list[float]:
    return _entries(_ask(rows).ask(ShrunkGram(_SHRINK, _CHAIN, RHO, purpose="audit")))


def _together(rows: Array) -> list[float]:
    """A Gram matrix and a histogram in one scan, half of the budget each."""
    gram, norms = _ask(rows).ask(
        Gram(_SHRINK, RHO / 2, purpose="audit"), NormHistogram(_IDENTITY, _GRID, RHO / 2, purpose="audit")
    )
    # In units of the standard deviation, along what a row that comes from far moves in each.
    size = float(gram.integers[0, 0]) / math.sqrt(gram.variance)
    counts = float(norms.counts[-1] - norms.counts[0]) / math.sqrt(2 * norms.variance)
    return [size, counts, size + math.sqrt(2) * counts]


def _log_norms(rho: Fraction) -> Program:
    def program(rows: Array) -> list[float]:
        counts = _ask(rows).ask(NormHistogram(_IDENTITY, _GRID, rho, purpose="audit")).counts
        low, high = float(counts[0]), float(counts[-1])
        return [low, high, low - high, finest_bit(high)]

    return program


def _rows_beyond(rho: Fraction) -> Program:
    def program(rows: Array) -> list[float]:
        count = float(_ask(rows).ask(RowsBeyond(_IDENTITY, _GRID, 2, rho, purpose="audit")).count)
        return [count, finest_bit(count)]

    return program


def _clipped_gram(rows: Array) -> list[float]:
    pull = Pull(math.sqrt(2), Fraction(19, 20), Fraction(17, 20))
    answer = _ask(rows).ask(ClippedGram(_SHRINK, pull, RHO, purpose="audit"))
    gram, near, far = answer.gram, float(answer.counts[0]), float(answer.counts[1])
    east, north = float(gram.integers[0, 0]), float(gram.integers[1, 1])
    # A row at the edge that comes to lie far beyond, at a right angle: along all that it moves, and apart.
    moved = 0.85 * north - east - 0.15 * float(gram.trace) + math.sqrt(2 * 0.85 * 0.15) * far
    # One noise for both counts would cancel.
    return [east, north, far, moved, far - near, finest_bit(far)]


def _clipped_losses(rows: Array) -> list[float]:
    pull = Pull(math.sqrt(2), Fraction(999, 1000), Fraction(998, 1000), Fraction(3, 4))
    answer = _ask(rows).ask(ClippedGram(_SHRINK, pull, RHO, purpose="audit"))
    assert answer.losses is not None
    east, north = (float(loss) for loss in answer.losses)
    gram = answer.gram.integers
    # Two rows far beyond, at the angle at which matrix and losses together move most.
    moved = float(gram[0, 0] - gram[1, 1]) * 0.75
    # One noise for both losses would cancel.
    return [east, north, moved + math.sqrt(0.496) * (east - north), east - north, finest_bit(east)]


def _per_column(every: int) -> Program:
    """A histogram of each of two columns, half of the budget each."""

    def program(rows: Array) -> list[float]:
        norms = NormHistogram(_LINE, _GRID, RHO / 2, purpose="audit")
        both = PerColumn((0, 1), (norms, norms), "audit", every, alone=True)
        moved = [float(answer.counts[-1] - answer.counts[0]) for answer in _ask(rows).ask(both)]
        return [*moved, sum(moved), finest_bit(moved[0])]

    return program


def _trace(rows: Array) -> list[float]:
    return [_ask(rows).ask(Trace(Clipping(_IDENTITY, 1.0), RHO, purpose="audit")).value]


def _eigenvalues(rows: Array) -> list[float]:
    return [*_ask(rows).ask(Eigenvalues(Clipping(_IDENTITY, 1.0), RHO, purpose="audit")).eigenvalues.tolist()]


def _bounded_gram(rows: Array) -> list[float]:
    whole = _ask(rows, constant=True).ask(BoundedGram(_BOX, RHO, purpose="audit")).values
    return [float(whole[0, 0]), float(whole[0, 1]), float(whole.trace() + 2 * whole[0, 1])]


def _bounded_products(rows: Array) -> list[float]:
    found = _ask(rows, constant=True).ask(BoundedProducts(_BOX, [0, 0], 0.5, RHO, purpose="audit")).values
    return [*found.tolist(), float(found.sum())]


def _first_above(rows: Array) -> list[float]:
    # What moves the row lifts all sums but the last, and lowers that one: the worst there is.
    n_bins, others = _GRID.n_bins, 8
    lifted, lowered = [0] * (n_bins - 1) + [1], [1] + [0] * (n_bins - 1)
    found = _ask(rows).ask(
        FirstAbove(
            _IDENTITY,
            _GRID,
            [lifted] * others + [lowered],
            [1] * (others + 1),
            epsilon=EPSILON,
            purpose="audit",
        )
    )
    return [float(others + 1 if found is None else found), float(found == others)]


def _least_buckets(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        LeastEigenvalueBuckets(Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit")
    )
    return _counts(found)


def _all_buckets(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        EigenvalueBuckets(Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit")
    )
    return _counts(found[0])


def _counts(buckets: Any) -> list[float]:
    high = sum(float(b.count) for b in buckets if b.upper > 0.1)
    low = sum(float(b.count) for b in buckets if b.upper <= 0.1)
    return [high, low, high - low]


def _subspace(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        SharedSubspace(Clipping(_IDENTITY, 1.0), 1, 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit")
    )
    if found is None:
        return [0.0, 0.0]
    return [float(found.count), float(found.count) * (1 if found.projection[0, 0] > 0.5 else -1)]


def _agreement(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        Agreement(Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, delta=DELTA, purpose="audit")
    )
    return [found.score]


def _first_agreement(rows: Array) -> list[float]:
    found = _ask(rows).ask(FirstAgreement(Clipping(_LINE, 1.0), 1, 0.5, epsilon=EPSILON, purpose="audit"))
    return [float(found is not None)]


def _aggregate(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        Aggregate(Clipping(_LINE, 2.0), 1, 0.02, epsilon=EPSILON, delta=0.2, purpose="audit")
    )
    return [-1.0, 0.0] if found is None else [float(found.second_moment[0, 0]), found.agreement.score]


def _eigenpairs(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        Eigenpairs(Clipping(_IDENTITY, 1.0), epsilon=EPSILON, purpose="audit", allow_unvetted=True)
    )
    angle = abs(math.atan2(found.vectors[1, 0], found.vectors[0, 0]))
    return [*found.values.tolist(), min(angle, math.pi - angle)]


def _stable_moment(rows: Array) -> list[float]:
    found = _ask(rows).ask(
        StableMoment(1.0, epsilon=EPSILON, rho=_HALF, delta=_SMALL, purpose="audit", allow_unvetted=True)
    )
    return [-1.0] if found is None else [float(found.second_moment[0, 0])]


QUERIES: dict[str, tuple[Case, ...]] = {
    "query Gram": (
        Case("gram", _gram(_SHRINK), EAST, NORTH, GDP, QUERY_RUNS,
             (*COMMON, "no sqrt 2", "no clipping", "one release too few"), "far row turned"),
        Case("gram, outlier", _gram(_SHRINK), EAST, ZEROS, GDP, QUERY_RUNS,
             ("half the noise", "no clipping")),
        Case("gram, coarse", _gram(_SHRINK, coarse=True), EAST, NORTH, GDP, QUERY_RUNS,
             ("half the noise", "no sqrt 2"), "far row turned"),
        Case("gram, duplicates", _gram(_SHRINK), TWINS, swapped(TWINS, [0, 1]), GDP, QUERY_RUNS,
             ("half the noise",), "one of 20 equal rows turned"),
        Case("gram, least direction", _gram(_SHRINK), THIN, swapped(THIN, [0, FAR]), GDP, QUERY_RUNS,
             ("half the noise",), "a row along the least direction"),
        Case("gram, tail", _gram(_SHRINK), swapped(BULK, [FAR, 0]), swapped(BULK, [0, FAR]), GDP, QUERY_RUNS,
             ("half the noise", "no clipping"), "the paper's tail"),
        Case("gram, drop", _gram(Clipping(_IDENTITY, 1.0, Rule.DROP)), lines([0.999, 0], [0, 0]),
             lines([0, 0.999], [0, 0]), GDP, QUERY_RUNS, ("half the noise",), "row at the radius turned"),
        Case("gram, direction", _gram(Clipping(_IDENTITY, 1.0, Rule.DIRECTION)), lines([1e-200, 0], [0, 0]),
             lines([0, 1e300], [0, 0]), GDP, QUERY_RUNS, ("half the noise",), "tiny row for a huge one"),
        Case("gram, a person of one row", _gram_of_persons, ONE_EAST, ONE_NORTH, GDP, QUERY_RUNS,
             (*COMMON, "joint bound doubled"), "the only row of a person turned"),
        Case("gram, a person of ten rows", _gram_of_persons, TEN_EAST, TEN_NORTH, GDP, QUERY_RUNS,
             ("half the noise", "rows clipped alone", "joint bound doubled", "sort left out"),
             "ten rows of a person turned"),
        Case("gram, a person of no rows", _gram_of_persons, TEN_EAST, NOBODY, GDP, QUERY_RUNS,
             ("rows clipped alone", "joint bound doubled", "sort left out"), "ten rows of a person, or none"),
        Case("gram, beyond the radius", _gram(Clipping(_IDENTITY, 1.0, Rule.TAIL)), EAST, NORTH, GDP,
             QUERY_RUNS, ("half the noise", "no clipping"), "far row turned"),
        Case("gram and histogram together", _together, EAST, ZEROS, GDP, QUERY_RUNS, ("half the noise",)),
        Case("gram, sample", _gram(_SHRINK, every=2), EAST, NORTH, GDP, QUERY_RUNS,
             ("a tenth of the noise",), "far row turned"),
        Case("gram, last bits", _gram(_SHRINK, rho=_LITTLE), EAST, ZEROS, _LITTLE_GDP, QUERY_RUNS,
             ("float noise",)),
    ),
    "query ShrunkGram": (
        Case("gram, chain", _shrunk_gram, EAST, NORTH, GDP, QUERY_RUNS, ("half the noise",),
             "far row turned"),
    ),
    "query NormHistogram": (
        Case("log norms, a person of ten rows", _norms_of_persons, TEN_EAST, NOBODY, GDP, QUERY_RUNS,
             ("half the noise",), "ten rows of a person, or none"),
        Case("histogram of norms", _log_norms(RHO), EAST, ZEROS, GDP, QUERY_RUNS, (*COMMON, "no sqrt 2")),
        Case("histogram, last bits", _log_norms(_LITTLE), EAST, ZEROS, _LITTLE_GDP, QUERY_RUNS,
             ("float noise",)),
    ),
    "query RowsBeyond": (
        Case("rows beyond", _rows_beyond(RHO), EAST, ZEROS, GDP, QUERY_RUNS, COMMON),
    ),
    "query ClippedGram": (
        Case("gram and rows beyond", _clipped_gram, lines([0.9999, 0], [0, 0]), lines([0, FAR], [0, 0]), GDP,
             QUERY_RUNS, (*COMMON, "one noise for both counts"), "row at the edge turned and far beyond"),
        Case("gram and losses", _clipped_losses, lines([FAR, 0], [0, 0]), lines([0, FAR], [0, 0]), GDP,
             QUERY_RUNS, (*COMMON, "one noise for both counts", "losses twice as large"), "far row turned"),
    ),
    "query PerColumn": (
        Case("histograms of columns", _per_column(every=1), lines([FAR, FAR], [0, 0]), ZEROS, GDP, QUERY_RUNS,
             (*COMMON, "no sqrt 2"), "a row far out in both columns"),
        Case("histograms of columns, sample", _per_column(every=2), lines([FAR, FAR], [0, 0]), ZEROS, GDP,
             QUERY_RUNS, ("a tenth of the noise",), "a row far out in both columns"),
    ),
    "query Trace": (
        Case("trace", _trace, EAST, ZEROS, GDP, QUERY_RUNS, (*COMMON, "no clipping")),
    ),
    "query Eigenvalues": (
        Case("eigenvalues", _eigenvalues, lines([FAR, 0], [FAR, 0]), lines([0, FAR], [FAR, 0]), GDP,
             QUERY_RUNS, (*COMMON, "no sqrt 2", "no clipping"), "far twin turned"),
    ),
    "query BoundedGram": (
        # With the constant, (1, 1) and (-1, 1) are orthogonal and as long as can be.
        Case("gram within bounds", _bounded_gram, lines([FAR, 0], [0, 0]), lines([-FAR, 0], [0, 0]), ZCDP,
             QUERY_RUNS, (*COMMON, "no sqrt 2", "no bounds"), "predictor from end to end"),
    ),
    "query BoundedProducts": (
        Case("products within bounds", _bounded_products, lines([FAR, FAR], [0, 0]), lines([FAR, -FAR], [0,
        0]),
             ZCDP, QUERY_RUNS, (*COMMON, "no bounds"), "target from end to end"),
    ),
    "query FirstAbove": (
        Case("sparse vector", _first_above, EAST, ZEROS, Claim(epsilon=EPSILON), QUERY_RUNS,
             ("a tenth of the noise", "sums without noise"), "all sums move"),
    ),
    "query LeastEigenvalueBuckets": (
        Case("least eigenvalues of groups", _least_buckets, HALVES, swapped(HALVES, [0.1]), APPROXIMATE,
             QUERY_RUNS, COMMON, "one group of two heaps moves"),
        Case("least eigenvalues, new bucket", _least_buckets, HALVES[:24], swapped(HALVES[:24], [0.1]),
             APPROXIMATE, QUERY_RUNS, ("rare results shown",), "one of 24 equal rows"),
    ),
    "query EigenvalueBuckets": (
        Case("eigenvalues of groups", _all_buckets, HALVES, swapped(HALVES, [0.1]), APPROXIMATE, QUERY_RUNS,
             COMMON, "one group of two heaps moves"),
    ),
    "query SharedSubspace": (
        Case("subspace of groups", _subspace, UNIT_ROWS, swapped(UNIT_ROWS, [0, 1]), APPROXIMATE, QUERY_RUNS,
             ("seeded generator reused", "a tenth of the noise"), "one group of two heaps moves"),
    ),
    "query Agreement": (
        Case("agreement of groups", _agreement, ones(6), swapped(ones(6), [0.1]), APPROXIMATE, QUERY_RUNS,
             COMMON, "one of 6 equal rows"),
    ),
    "query FirstAgreement": (
        # With 38 of 1,100 groups unlike the others the sum is just at its threshold, with 39 just below.
        # Noise that is the same in every run would hardly ever show in one answer, yes or no.
        Case("search for m", _first_agreement, np.vstack([ones(1062), 0.1 * ones(38)]),
             np.vstack([ones(1061), 0.1 * ones(39)]), Claim(epsilon=EPSILON), FEW_RUNS,
             ("hardly any noise", "a tenth of the noise"), "one group at the threshold moves"),
    ),
    "query Aggregate": (
        Case("subsample and aggregate", _aggregate, ones(850), swapped(ones(850), [1.009]),
             Claim(epsilon=2 * EPSILON, delta=Fraction(1, 5)), FEW_RUNS,
             ("hardly any noise", "seeded generator reused"), "one of 850 equal rows", NOISE_FOR_THE_WORST),
    ),
    "query Eigenpairs": (
        Case("eigenvectors by the exponential mechanism", _eigenpairs, TWINS, swapped(TWINS, [0.7, 0.7]),
             Claim(epsilon=EPSILON), QUERY_RUNS,
             ("a tenth of the noise", "directions without noise", "seeded generator reused"),
             "one of 20 equal rows turned half-way"),
    ),
    "query StableMoment": (
        Case("filter by leverage", _stable_moment, swapped(ones(700), [1.64]), swapped(ones(700), [0]),
             Claim(rho=2 * _HALF, delta=2 * _SMALL), METHOD_RUNS,
             ("moment without noise", "seeded generator reused"), "row of the highest leverage for zero",
             TOO_CAREFUL),
    ),
}  # fmt: skip
