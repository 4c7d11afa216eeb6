"""What is known about a method before it is chosen, and how it is run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcov.core import ArgumentError, Curator
from dpcov.methods.estimate import Estimate

_CONSENT = "allow_unvetted"


@dataclass(frozen=True, repr=False)
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
    assumes : str
        What its accuracy rests on. Its privacy rests on nothing about the rows.
    requires : tuple of str
        Options without which it does not run.
    vetted : bool
        Whether it runs on exact integers and exact noise like everything else. An unvetted method proves its
        guarantee for real numbers, computes with float64, and runs only with ``allow_unvetted=True``.
    reason : str
        Why there is no algorithm to run, if there is none.
    rate : str
        How many rows it needs, where that is all there is to say.
    """

    name: str
    citation: str
    privacy: str
    needs: str
    estimate: Callable[..., Estimate] | None
    assumes: str = ""
    delta_share: Callable[[Mapping[str, Any]], Fraction] = lambda _options: Fraction(0)
    """Of a budget in (epsilon, delta), the share of delta that queries of its own need."""
    requires: tuple[str, ...] = ()
    vetted: bool = True
    reason: str = ""
    rate: str = ""

    def __repr__(self) -> str:
        return f"<dpcov method '{self.name}': {self.status}, {self.privacy}>"

    @property
    def status(self) -> str:
        """Whether it is vetted, in a word, as commands and reports show it."""
        if not self.available:
            return "cannot be run"
        return "vetted" if self.vetted else "UNVETTED"

    @property
    def available(self) -> bool:
        """Whether there is an algorithm to run."""
        return self.estimate is not None

    def parameters(self) -> tuple[str, ...]:
        """Return the names of the options that this method takes."""
        if self.estimate is None:
            return ()
        names = tuple(inspect.signature(self.estimate).parameters)[1:]
        return tuple(name for name in names if name != _CONSENT)

    def run(self, curator: Curator, options: Mapping[str, Any], *, allow_unvetted: bool = False) -> Estimate:
        """Run the method with `options`."""
        if self.estimate is None:
            raise ArgumentError(f"method '{self.name}' cannot be run: {self.reason}.")
        self.check_consent(allow_unvetted=allow_unvetted)
        consent = {} if self.vetted else {_CONSENT: True}
        return self.estimate(curator, **options, **consent)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an `ArgumentError` for an option that this method does not take."""
        for name in options:
            if name not in self.parameters():
                known = ", ".join(self.parameters()) or "no options"
                raise ArgumentError(f"method '{self.name}' takes no {name}; it takes: {known}.")

    def check_consent(self, *, allow_unvetted: bool) -> None:
        """Raise an `ArgumentError` for an unvetted method that was not allowed."""
        if not self.vetted and allow_unvetted is not True:
            raise ArgumentError(
                f"method '{self.name}' is unvetted: its guarantee is proved for real numbers, but it "
                "computes with floating point. Pass allow_unvetted=True to run it, on data that is not "
                "sensitive."
            )
