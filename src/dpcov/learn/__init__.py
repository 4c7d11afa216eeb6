"""scikit-learn estimators, fitted by one private release each.

`fit` spends the budget of one `dpcov.release`; all else is post-processing. `from_release` builds any of
them from a release that exists, and spends nothing. Needs ``pip install 'dpcov[sklearn]'``.
"""

from dpcov._extras import require

require("sklearn", "sklearn")

from dpcov.learn._base import RefitWarning
from dpcov.learn._pipelines import NotPrivateStepWarning
from dpcov.learn.components import PrivatePCA
from dpcov.learn.covariance import PrivateCovariance
from dpcov.learn.regression import PrivateLinearRegression, PrivateRidge
from dpcov.learn.scaler import PrivateImputer, PrivateScaler
from dpcov.learn.whitener import PrivateWhitener

__all__ = [
    "NotPrivateStepWarning",
    "PrivateCovariance",
    "PrivateImputer",
    "PrivateLinearRegression",
    "PrivatePCA",
    "PrivateRidge",
    "PrivateScaler",
    "PrivateWhitener",
    "RefitWarning",
]
