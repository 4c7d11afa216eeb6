"""Queries that only the related work asks, with proof notes; in `unvetted` with idealised arithmetic."""

from dpcov.rivals.queries.bounded import SLOPE_UNITS, BoundedGram, BoundedProducts, Bounds, NoisyMoments
from dpcov.rivals.queries.shared import EigenvalueBuckets, NoisySubspace, SharedSubspace
from dpcov.rivals.queries.sparse_vector import FirstAbove
from dpcov.rivals.queries.spectrum import Eigenvalues, NoisySpectrum, NoisyTrace, Trace
from dpcov.rivals.queries.unvetted import Eigenpairs, NoisyEigenpairs, SampledMoment, StableMoment

__all__ = [
    "SLOPE_UNITS",
    "BoundedGram",
    "BoundedProducts",
    "Bounds",
    "Eigenpairs",
    "EigenvalueBuckets",
    "Eigenvalues",
    "FirstAbove",
    "NoisyEigenpairs",
    "NoisyMoments",
    "NoisySpectrum",
    "NoisySubspace",
    "NoisyTrace",
    "SampledMoment",
    "SharedSubspace",
    "StableMoment",
    "Trace",
]
