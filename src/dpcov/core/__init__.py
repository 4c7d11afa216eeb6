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
from dpcov.core.budget import Budget, Charge, PrivacyCost, Receipt, resolve_budget
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
)
from dpcov.core.gram import Clipping, Rule, Shrinking
from dpcov.core.lattice import Block, LatticeMap
from dpcov.core.log_norms import LogNormGrid
from dpcov.core.multiplicative import groups_for_noise
from dpcov.core.sampling import sampled_rows
from dpcov.core.spectrum import NoisySpectrum, NoisyTrace
from dpcov.core.subsample import NoisySubspace, groups_for_agreement
from dpcov.core.tasks import Report, RowTask, RowWorker, Source
from dpcov.core.unvetted import NoisyEigenpairs, StableMoment

__all__ = [
    "ArgumentError",
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
    "MissingExtraError",
    "NoAnswerError",
    "NoisyAggregate",
    "NoisyAgreement",
    "NoisyBucket",
    "NoisyCount",
    "NoisyCounts",
    "NoisyEigenpairs",
    "NoisyGram",
    "NoisySpectrum",
    "NoisySubspace",
    "NoisyTrace",
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
    "StableMoment",
    "UnresolvedError",
    "groups_for_agreement",
    "groups_for_noise",
    "resolve_budget",
    "sampled_rows",
]
