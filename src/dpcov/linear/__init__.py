"""Linear questions to a released second-moment matrix, with the law of their errors.

Everything here is post-processing of private answers: it sees no row and needs no budget.
"""

from dpcov.linear.answers import Answer, Interval
from dpcov.linear.description import Description
from dpcov.linear.fitted import Regression
from dpcov.linear.inference import WaldTest
from dpcov.linear.predicted import Predictions
from dpcov.linear.questions import Questions
from dpcov.linear.spectra import Components, Spectrum, Whitening
from dpcov.linear.summary import Summary
from dpcov.linear.unresolved import Combination

__all__ = [
    "Answer",
    "Combination",
    "Components",
    "Description",
    "Interval",
    "Predictions",
    "Questions",
    "Regression",
    "Spectrum",
    "Summary",
    "WaldTest",
    "Whitening",
]
