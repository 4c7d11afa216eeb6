"""The trusted core: the only code that sees a row.

Exact integers, exact noise, a budget. Whatever leaves the core is private.
"""

from dpcov.core.budget import Budget, Charge, Number, PrivacyCost, Receipt, resolve_budget
from dpcov.core.curator import Curator
from dpcov.core.entropy import BitSource, OSEntropy, SeededBits

from dpcov.core.errors import (  # isort: skip
    ArgumentError, ArtefactError, BudgetError, DpcovError, ExactnessError, LedgerError, MissingExtraError,
    NoAnswerError, SourceChangedError, SourceError, UnresolvedError,
)  # fmt: skip
from dpcov.core.lattice import LatticeMap
from dpcov.core.passes import Block
from dpcov.core.queries.gram import Clipping, Gram, NoisyGram, Rule
from dpcov.core.queries.histogram import LogNormGrid, NoisyCount, NoisyCounts, NormHistogram, RowsBeyond
from dpcov.core.queries.sample import sampled_rows
from dpcov.core.query import Query
from dpcov.core.tasks import HeldRows, Report, RowTask, RowWorker, Source

__all__ = [
    "ArgumentError", "ArtefactError", "BitSource", "Block", "Budget", "BudgetError", "Charge", "Clipping",
    "Curator", "DpcovError", "ExactnessError", "Gram", "HeldRows", "LatticeMap", "LedgerError", "LogNormGrid",
    "MissingExtraError", "NoAnswerError", "NoisyCount", "NoisyCounts", "NoisyGram", "NormHistogram",
    "Number", "OSEntropy", "PrivacyCost", "Query", "Receipt", "Report", "RowTask", "RowWorker",
    "RowsBeyond", "Rule", "SeededBits", "Source", "SourceChangedError", "SourceError", "UnresolvedError",
    "resolve_budget", "sampled_rows",
]  # fmt: skip
