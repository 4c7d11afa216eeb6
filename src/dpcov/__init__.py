"""Release the second-moment matrix of a sensitive table once, ask any linear question.

Differentially private (zCDP) to the last bit: exact integers, exact noise, an exact budget.
"""

from dpcov.core import ArgumentError, BudgetError, DpcovError, LedgerError, NoAnswerError, Receipt
from dpcov.ledger import Ledger
from dpcov.methods import methods
from dpcov.parameters import covering_radius, enclosing_ball, least_eigenvalue, subsamplability
from dpcov.plan import Plan, plan
from dpcov.release import Release, release, second_moment

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BudgetError",
    "DpcovError",
    "Ledger",
    "LedgerError",
    "NoAnswerError",
    "Plan",
    "Receipt",
    "Release",
    "covering_radius",
    "enclosing_ball",
    "least_eigenvalue",
    "methods",
    "plan",
    "release",
    "second_moment",
    "subsamplability",
]
