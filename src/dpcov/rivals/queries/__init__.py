"""Queries that only the related work asks, with proof notes; in `unvetted` with idealised arithmetic."""

from dpcov.rivals.queries.spectrum import NoisySpectrum, NoisyTrace
from dpcov.rivals.queries.unvetted import NoisyEigenpairs, StableMoment

__all__ = ["NoisyEigenpairs", "NoisySpectrum", "NoisyTrace", "StableMoment"]
