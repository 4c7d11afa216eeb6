"""Release the second-moment matrix of a sensitive table once, ask any linear question.

Differentially private (zCDP) to the last bit: exact integers, exact noise, an exact budget.
"""

from typing import TYPE_CHECKING, Any

from dpcov._version import VERSION
from dpcov.artefact import load
from dpcov.core import (
    ArgumentError,
    ArtefactError,
    BudgetError,
    DpcovError,
    LedgerError,
    NoAnswerError,
    Receipt,
    UnresolvedError,
)
from dpcov.ledger import Ledger
from dpcov.linear import Answer, Components, Regression
from dpcov.methods import methods
from dpcov.paper import theory
from dpcov.paper.parameters import covering_radius, enclosing_ball, least_eigenvalue, subsamplability
from dpcov.plan import Plan, plan
from dpcov.release import Release, covariance, release, second_moment

if TYPE_CHECKING:
    from dpcov.rivals.compare import Comparison, compare

__version__ = VERSION

__all__ = [
    "Answer",
    "ArgumentError",
    "ArtefactError",
    "BudgetError",
    "Comparison",
    "Components",
    "DpcovError",
    "Ledger",
    "LedgerError",
    "NoAnswerError",
    "Plan",
    "Receipt",
    "Regression",
    "Release",
    "UnresolvedError",
    "compare",
    "covariance",
    "covering_radius",
    "enclosing_ball",
    "least_eigenvalue",
    "load",
    "methods",
    "plan",
    "release",
    "second_moment",
    "subsamplability",
    "theory",
]


def __getattr__(name: str) -> Any:
    # The related work is imported when it is asked for: nobody who releases with the default loads it.
    if name in {"Comparison", "compare"}:
        from dpcov.rivals import compare as module  # noqa: PLC0415

        return getattr(module, name)
    raise AttributeError(f"module 'dpcov' has no attribute {name!r}")
