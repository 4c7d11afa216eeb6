"""The paper's queries: its Algorithms 3 and 4 about random groups of rows, and the rounds of Algorithm 2.

Each is an object with its cost, its row task and its noise; the proof notes stand beside.
"""

from dpcov.paper.queries.aggregate import Aggregate, NoisyAggregate, aggregate_noise_scale
from dpcov.paper.queries.agreement import Agreement, NoisyAgreement, agreement_noise
from dpcov.paper.queries.approximate import approximate_arguments
from dpcov.paper.queries.first_agreement import (
    MOST_GROUPS,
    FirstAgreement,
    FoundSize,
    fewest_groups,
    first_size,
    searched_groups,
)
from dpcov.paper.queries.group_grams import check_group_size, most_groups
from dpcov.paper.queries.groups import SLACK
from dpcov.paper.queries.least_eigenvalue import LeastEigenvalueBuckets
from dpcov.paper.queries.multiplicative import LEAST_AGREEMENT, groups_for_noise
from dpcov.paper.queries.shrinking import Shrinking, ShrunkGram
from dpcov.paper.queries.subsample import NoisyBucket, bucket_threshold, groups_for_agreement

__all__ = [
    "LEAST_AGREEMENT",
    "MOST_GROUPS",
    "SLACK",
    "Aggregate",
    "Agreement",
    "FirstAgreement",
    "FoundSize",
    "LeastEigenvalueBuckets",
    "NoisyAggregate",
    "NoisyAgreement",
    "NoisyBucket",
    "Shrinking",
    "ShrunkGram",
    "aggregate_noise_scale",
    "agreement_noise",
    "approximate_arguments",
    "bucket_threshold",
    "check_group_size",
    "fewest_groups",
    "first_size",
    "groups_for_agreement",
    "groups_for_noise",
    "most_groups",
    "searched_groups",
]
