"""The paper's theory with explicit constants: subsamplability, sample sizes, distributions.

Formulas of public numbers, except `public_rows`, which is for public and synthetic tables. Where the
paper's statement does not hold, the docstring says so. Mahpud and Sheffet, "A Private Approximation of
the 2nd-Moment Matrix of Any Subsamplable Input" (NeurIPS 2025).
"""

from dpcov.paper.theory.bounds import Bound
from dpcov.paper.theory.comparison import Compared, compare
from dpcov.paper.theory.distributions import (
    Distribution,
    EllipsoidSurface,
    Gaussian,
)
from dpcov.paper.theory.mixtures import LinearImage, WithOutliers, log_spaced_gaussian
from dpcov.paper.theory.named import DISTRIBUTIONS, named_distribution
from dpcov.paper.theory.outliers import (
    outliers_harmless,
    tolerated_by_aggregate,
    tolerated_by_learner,
    tolerated_by_leverage,
    tolerated_by_recursion,
    tolerates_more_below,
)
from dpcov.paper.theory.pareto import ParetoBesideDirection, ParetoTimesDirection, pareto_moment
from dpcov.paper.theory.public_rows import (
    EmpiricalSize,
    SizeTrial,
    empirical_size,
    leverage_scores,
    table_moments,
    tail,
)
from dpcov.paper.theory.rates import (
    aggregate_rate,
    cluster_loss_rate,
    cluster_rate,
    learner_rows,
    recursive_rate,
)
from dpcov.paper.theory.recursion import (
    RecursionConstants,
    Schedule,
    noise_norm_at_most,
    recursion_constants,
    recursion_schedule,
    recursive_error,
    recursive_rows,
)
from dpcov.paper.theory.sample_size import (
    aggregate_groups,
    aggregate_parameters,
    aggregate_rows,
    distribution_rows,
    eigenvalue_rows,
    gaussian_error,
    gaussian_rows,
    masking_scale,
)
from dpcov.paper.theory.subsamplability import (
    TheoremWarning,
    bernstein_size,
    check_parameters,
    largest_beta,
    paper_bernstein_size,
    smallest_size,
    tail_share,
)

__all__ = [
    "DISTRIBUTIONS",
    "Bound",
    "Compared",
    "Distribution",
    "EllipsoidSurface",
    "EmpiricalSize",
    "Gaussian",
    "LinearImage",
    "ParetoBesideDirection",
    "ParetoTimesDirection",
    "RecursionConstants",
    "Schedule",
    "SizeTrial",
    "TheoremWarning",
    "WithOutliers",
    "aggregate_groups",
    "aggregate_parameters",
    "aggregate_rate",
    "aggregate_rows",
    "bernstein_size",
    "check_parameters",
    "cluster_loss_rate",
    "cluster_rate",
    "compare",
    "distribution_rows",
    "eigenvalue_rows",
    "empirical_size",
    "gaussian_error",
    "gaussian_rows",
    "largest_beta",
    "learner_rows",
    "leverage_scores",
    "log_spaced_gaussian",
    "masking_scale",
    "named_distribution",
    "noise_norm_at_most",
    "outliers_harmless",
    "paper_bernstein_size",
    "pareto_moment",
    "recursion_constants",
    "recursion_schedule",
    "recursive_error",
    "recursive_rate",
    "recursive_rows",
    "smallest_size",
    "table_moments",
    "tail",
    "tail_share",
    "tolerated_by_aggregate",
    "tolerated_by_learner",
    "tolerated_by_leverage",
    "tolerated_by_recursion",
    "tolerates_more_below",
]
