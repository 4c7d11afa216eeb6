"""Mechanisms whose guarantees hold for real numbers, not to the last bit.

They see rows like the rest of the core and their budget is charged like any other, but float64 takes part in
what privacy rests on. Every query here demands ``allow_unvetted=True``, and receipts say "idealised
arithmetic". No default uses them.
"""

from dpcov.rivals.queries.unvetted.eigenpairs import Eigenpairs, NoisyEigenpairs
from dpcov.rivals.queries.unvetted.stable_moment import SampledMoment, StableMoment

__all__ = ["Eigenpairs", "NoisyEigenpairs", "SampledMoment", "StableMoment"]
