"""The trusted core: the only code that sees a row.

Exact integers, exact noise, a budget. Whatever leaves the core is private.
"""

from dpcov.core.answers import NoisyAgreement, NoisyBucket, NoisyCounts, NoisyGram
from dpcov.core.budget import Budget, Charge, PrivacyCost, Receipt, resolve_budget
from dpcov.core.curator import Curator
from dpcov.core.entropy import BitSource, OSEntropy, SeededBits
from dpcov.core.errors import (
    ArgumentError,
    BudgetError,
    DpcovError,
    ExactnessError,
    MissingExtraError,
    SourceChangedError,
    SourceError,
)
from dpcov.core.gram import Clipping, Rule, Shrinking
from dpcov.core.lattice import Block, LatticeMap
from dpcov.core.log_norms import LogNormGrid
from dpcov.core.sampling import sampled_rows
from dpcov.core.tasks import Report, RowTask, RowWorker, Source

__all__ = [
    "ArgumentError",
    "BitSource",
    "Block",
    "Budget",
    "BudgetError",
    "Charge",
    "Clipping",
    "Curator",
    "DpcovError",
    "ExactnessError",
    "LatticeMap",
    "LogNormGrid",
    "MissingExtraError",
    "NoisyAgreement",
    "NoisyBucket",
    "NoisyCounts",
    "NoisyGram",
    "OSEntropy",
    "PrivacyCost",
    "Receipt",
    "Report",
    "RowTask",
    "RowWorker",
    "Rule",
    "SeededBits",
    "Shrinking",
    "Source",
    "SourceChangedError",
    "SourceError",
    "resolve_budget",
    "sampled_rows",
]
