"""Queries about random groups of rows: the paper's Algorithms 3 and 4, with proof notes."""

from dpcov.paper.queries.multiplicative import groups_for_noise
from dpcov.paper.queries.subsample import NoisySubspace, groups_for_agreement

__all__ = ["NoisySubspace", "groups_for_agreement", "groups_for_noise"]
