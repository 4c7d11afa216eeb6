"""The trusted core: the only code that sees a row.

Exact integers, exact noise, a budget. Whatever leaves the core is private.
"""

from dpcov.core.answers import (
    NoisyAggregate,
    NoisyAgreement,
    NoisyBucket,
    NoisyCount,
    NoisyCounts,
    NoisyGram,
)
from dpcov.core.arrays import Array, Matrix, Vector
from dpcov.core.budget import Budget, Charge, Number, PrivacyCost, Receipt, resolve_budget
from dpcov.core.curator import Curator
from dpcov.core.entropy import BitSource, OSEntropy, SeededBits
from dpcov.core.errors import (
    ArgumentError,
    ArtefactError,
    BudgetError,
    DpcovError,
    ExactnessError,
    LedgerError,
    MissingExtraError,
    NoAnswerError,
    SourceChangedError,
    SourceError,
    UnresolvedError,
    did_you_mean,
)
from dpcov.core.lattice import Block, LatticeMap
from dpcov.core.maps import identity_map, integer_map
from dpcov.core.queries.gram import Clipping, Rule, Shrinking
from dpcov.core.queries.histogram import LogNormGrid
from dpcov.core.sampling import sampled_rows
from dpcov.core.tasks import Report, RowTask, RowWorker, Source

__all__ = [
    "ArgumentError",
    "Array",
    "ArtefactError",
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
    "LedgerError",
    "LogNormGrid",
    "Matrix",
    "MissingExtraError",
    "NoAnswerError",
    "NoisyAggregate",
    "NoisyAgreement",
    "NoisyBucket",
    "NoisyCount",
    "NoisyCounts",
    "NoisyGram",
    "Number",
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
    "UnresolvedError",
    "Vector",
    "did_you_mean",
    "identity_map",
    "integer_map",
    "resolve_budget",
    "sampled_rows",
]
