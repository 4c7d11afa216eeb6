"""Release the second-moment matrix of a sensitive table once, ask any linear question.

Differentially private (zCDP) to the last bit: exact integers, exact noise, an exact budget.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dpcov._version import VERSION

if TYPE_CHECKING:
    from dpcov.artefact import load
    from dpcov.combine import combine
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
    from dpcov.plan import plan
    from dpcov.plan_answer import Plan
    from dpcov.release import covariance, release, second_moment
    from dpcov.released import Release
    from dpcov.rivals.compare import Comparison, compare
    from dpcov.sources.encoding import category, date, flag, number

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
    "category",
    "combine",
    "compare",
    "covariance",
    "covering_radius",
    "date",
    "enclosing_ball",
    "flag",
    "least_eigenvalue",
    "load",
    "methods",
    "number",
    "plan",
    "release",
    "second_moment",
    "subsamplability",
    "theory",
]

# Where each name is, as above: imported when it is first used, so that a part loads no other room.
_HOMES = {
    "dpcov.artefact": ["load"],
    "dpcov.combine": ["combine"],
    "dpcov.core": [
        "ArgumentError",
        "ArtefactError",
        "BudgetError",
        "DpcovError",
        "LedgerError",
        "NoAnswerError",
        "Receipt",
        "UnresolvedError",
    ],
    "dpcov.ledger": ["Ledger"],
    "dpcov.linear": ["Answer", "Components", "Regression"],
    "dpcov.methods": ["methods"],
    "dpcov.paper": ["theory"],
    "dpcov.paper.parameters": ["covering_radius", "enclosing_ball", "least_eigenvalue", "subsamplability"],
    "dpcov.plan": ["plan"],
    "dpcov.plan_answer": ["Plan"],
    "dpcov.release": ["covariance", "release", "second_moment"],
    "dpcov.released": ["Release"],
    "dpcov.rivals.compare": ["Comparison", "compare"],
    "dpcov.sources.encoding": ["category", "date", "flag", "number"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'dpcov' has no attribute {name!r}")
        # As "from home import name" does, which also finds a module.
        found = getattr(__import__(_HOME_OF[name], fromlist=[name]), name)
        vars(self)[name] = found
        return found

    def __setattr__(self, name: str, value: object) -> None:
        # Importing ``dpcov.release`` would put the module in the place of the function of that name.
        if name not in _HOME_OF or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *__all__})


sys.modules[__name__].__class__ = _Package
