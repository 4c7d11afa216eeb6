"""Linear questions to a released second-moment matrix, with the law of their errors.

Everything here is post-processing of private answers: it sees no row and needs no budget.
"""

from dpcov.linear.answers import Answer, Components, Interval, Regression, Spectrum, Whitening
from dpcov.linear.questions import Questions
from dpcov.linear.unresolved import Combination

__all__ = [
    "Answer",
    "Combination",
    "Components",
    "Interval",
    "Questions",
    "Regression",
    "Spectrum",
    "Whitening",
]
