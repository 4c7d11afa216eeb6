"""Release the second-moment matrix of a sensitive table once, ask any linear question.

Differentially private (zCDP) to the last bit: exact integers, exact noise, an exact budget.
"""

from dpcov._version import VERSION
from dpcov.artefact import load
from dpcov.core import ArgumentError, ArtefactError, BudgetError, DpcovError, Receipt, UnresolvedError
from dpcov.linear import Answer, Components, Regression
from dpcov.methods import methods
from dpcov.release import Release, covariance, release, second_moment

__version__ = VERSION

__all__ = [
    "Answer",
    "ArgumentError",
    "ArtefactError",
    "BudgetError",
    "Components",
    "DpcovError",
    "Receipt",
    "Regression",
    "Release",
    "UnresolvedError",
    "covariance",
    "load",
    "methods",
    "release",
    "second_moment",
]
