"""Release the second-moment matrix of a sensitive table once, ask any linear question.

Differentially private (zCDP) to the last bit: exact integers, exact noise, an exact budget.
"""

from dpcov.compare import Comparison, compare
from dpcov.core import ArgumentError, BudgetError, DpcovError, NoAnswerError, Receipt
from dpcov.methods import methods
from dpcov.parameters import covering_radius, enclosing_ball, least_eigenvalue, subsamplability
from dpcov.release import Release, release, second_moment

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BudgetError",
    "Comparison",
    "DpcovError",
    "NoAnswerError",
    "Receipt",
    "Release",
    "compare",
    "covering_radius",
    "enclosing_ball",
    "least_eigenvalue",
    "methods",
    "release",
    "second_moment",
    "subsamplability",
]
