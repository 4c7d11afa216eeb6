"""Methods: private estimators of a second-moment matrix, by name.

They talk to a curator and nothing else. One algorithm, one file, one citation.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcov.core import ArgumentError, Curator
from dpcov.methods.aggregate import estimate_aggregate
from dpcov.methods.estimate import Estimate, NoiseLaw
from dpcov.methods.gaussian import estimate_gaussian
from dpcov.methods.recursive import estimate_recursive
from dpcov.methods.tail import TailLaw
from dpcov.methods.whitening import estimate_whitening

__all__ = ["Estimate", "Method", "NoiseLaw", "TailLaw", "find_method", "methods"]


@dataclass(frozen=True)
class Method:
    """An estimator and what one should know before choosing it.

    Attributes
    ----------
    name : str
        What ``dpcov.release(..., method=name)`` takes.
    citation : str
        Where it comes from.
    privacy : str
        The guarantee.
    needs : str
        What must be told, and must not come from the rows.
    """

    name: str
    citation: str
    privacy: str
    needs: str
    estimate: Callable[..., Estimate]
    delta_share: Callable[[Mapping[str, Any]], Fraction] = lambda _options: Fraction(0)
    """Of a budget in (epsilon, delta), the share of delta that queries of its own need."""

    def parameters(self) -> tuple[str, ...]:
        """Return the names of the options that this method takes."""
        return tuple(inspect.signature(self.estimate).parameters)[1:]

    def run(self, curator: Curator, options: Mapping[str, Any]) -> Estimate:
        """Run the method with `options`."""
        return self.estimate(curator, **options)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an `ArgumentError` for an option that this method does not take."""
        for name in options:
            if name not in self.parameters():
                raise ArgumentError(
                    f"method '{self.name}' takes no {name}; it takes: {', '.join(self.parameters())}."
                )


_METHODS = (
    Method(
        name="whitening",
        citation="dpcov, after Mahpud, Sheffet: A Private Approximation of the 2nd-Moment Matrix of Any "
        "Subsamplable Input (NeurIPS 2025)",
        privacy="rho-zCDP",
        needs="nothing",
        estimate=estimate_whitening,
    ),
    Method(
        name="recursive",
        citation="Mahpud, Sheffet: A Private Approximation of the 2nd-Moment Matrix of Any Subsamplable "
        "Input (NeurIPS 2025), Algorithms 1 and 2",
        privacy="rho-zCDP; delta-approximate if it has to find the least eigenvalue",
        needs="m, alpha; radius and least_eigenvalue save budget",
        estimate=estimate_recursive,
        delta_share=lambda options: Fraction(1 if options.get("least_eigenvalue") is None else 0, 10),
    ),
    Method(
        name="aggregate",
        citation="Mahpud, Sheffet (NeurIPS 2025), Algorithm 3, after Ashtiani, Liaw: Private and polynomial "
        "time algorithms for learning Gaussians and beyond (COLT 2022)",
        privacy="delta-approximate rho-zCDP",
        needs="m, alpha and a delta; very many rows",
        estimate=estimate_aggregate,
        delta_share=lambda _options: Fraction(1, 2),
    ),
    Method(
        name="gaussian",
        citation="Dwork, Talwar, Thakurta, Zhang: Analyze Gauss (STOC 2014)",
        privacy="rho-zCDP",
        needs="radius",
        estimate=estimate_gaussian,
    ),
)


def methods() -> tuple[Method, ...]:
    """Return every method, with its citation and what it needs."""
    return _METHODS


def find_method(name: str) -> Method:
    """Return the method called `name`, or raise an `ArgumentError` that lists all."""
    for method in _METHODS:
        if method.name == name:
            return method
    names = [method.name for method in _METHODS]
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise ArgumentError(f"method '{name}' does not exist.{hint} There are: {', '.join(names)}.")
