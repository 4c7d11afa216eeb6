"""What is known about a method before it is chosen, and how it is run."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcov.core import ArgumentError, Curator, Number, PrivacyCost, resolve_budget
from dpcov.methods.estimate import Estimate

_CONSENT = "allow_unvetted"

_MEANINGS = {
    "radius": "a bound on the length of a row",
    "largest_eigenvalue": "an upper bound on the eigenvalues of the second moment",
    "least_eigenvalue": "a lower bound on the eigenvalues of the second moment",
    "m": "how many random rows keep the second moment up to 1 +- alpha",
}
"""What a method may have to be told."""


@dataclass(frozen=True, repr=False)
class Method:
    """An estimator and what one should know before choosing it.

    Attributes
    ----------
    name : str
        What ``dpcov.release(..., method=name)`` takes.
    citation : str
        The work that it comes from.
    privacy : str
        The guarantee for replacing one row.
    needs : str
        What must be told, and must not come from the rows.
    algorithm : str
        The module and the function that run it, such as ``"dpcov.methods.gaussian:estimate_gaussian"``.
        They are imported when they are first needed. Empty if there is nothing to run.
    assumes : str
        What its accuracy rests on. Its privacy rests on nothing about the rows.
    requires : tuple of str
        Options without which it does not run.
    vetted : bool
        Whether it runs on exact integers and exact noise like everything else. An unvetted method proves its
        guarantee for real numbers, computes with float64, and runs only with ``allow_unvetted=True``.
    gram_noise : bool
        Whether its result has at least the noise of one Gram matrix that spends all: `dpcov.laws.least_size`
        then tells from public sizes whether anything can come of it.
    scans : int, optional
        About how many times it reads the rows, where that is known.
    takes_units : bool
        Whether it can protect all rows of a person together, with ``privacy_unit=``.
    reason : str
        Why there is no algorithm to run, if there is none.
    rate : str
        How many rows it needs, where that is all there is to say.

    Examples
    --------
    >>> import dpcov
    >>> gaussian = {method.name: method for method in dpcov.methods()}["gaussian"]
    >>> gaussian
    <dpcov method 'gaussian': vetted, mu-GDP and rho-zCDP>
    >>> gaussian.parameters()
    ('radius',)
    >>> gaussian.check({})
    Traceback (most recent call last):
    dpcov.core.errors.ArgumentError: method 'gaussian' needs radius: a bound on the length of a row. It must \
not come from the rows.
    """

    name: str
    citation: str
    privacy: str
    needs: str
    algorithm: str = ""
    assumes: str = ""
    delta_share: Callable[[Mapping[str, Any]], Fraction] = lambda _options: Fraction(0)
    """Of a budget in (epsilon, delta), the share of delta that queries of its own need."""
    gaussian: bool = False
    """Whether all its noise is Gaussian, if it needs no delta: then it is Gaussian differentially private."""
    requires: tuple[str, ...] = ()
    vetted: bool = True
    gram_noise: bool = False
    scans: int | None = None
    takes_units: bool = False
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
        return bool(self.algorithm)

    def parameters(self) -> tuple[str, ...]:
        """Return the names of the options that this method takes."""
        if not self.available:
            return ()
        names = tuple(inspect.signature(self._estimate()).parameters)[1:]
        return tuple(name for name in names if name != _CONSENT)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an `ArgumentError` for an option that this method does not take, or one that is missing."""
        if not self.available:
            raise ArgumentError(
                f"method '{self.name}' cannot be run: {self.reason}. It is listed for its rate: {self.rate}."
            )
        for name in options:
            if name not in self.parameters():
                known = ", ".join(self.parameters()) or "no options"
                raise ArgumentError(f"method '{self.name}' takes no {name}; it takes: {known}.")
        missing = [name for name in self.requires if options.get(name) is None]
        if missing:
            raise ArgumentError(
                f"method '{self.name}' needs {' and '.join(missing)}: "
                f"{', '.join(_MEANINGS[name] for name in missing)}. It must not come from the rows."
            )

    def check_consent(self, *, allow_unvetted: bool) -> None:
        """Raise an `ArgumentError` for an unvetted method that was not allowed."""
        if not self.vetted and allow_unvetted is not True:
            raise ArgumentError(
                f"method '{self.name}' is unvetted: its guarantee is proved for real numbers, but it "
                "computes with floating point. Pass allow_unvetted=True to run it, on data that is not "
                "sensitive."
            )

    def check_units(self) -> None:
        """Raise an `ArgumentError` if it protects single rows only."""
        if not self.takes_units:
            raise ArgumentError(
                f"method '{self.name}' protects single rows only; use the default method with privacy_unit."
            )

    def limit(
        self,
        options: Mapping[str, Any],
        *,
        rho: Number | None = None,
        mu: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
    ) -> PrivacyCost:
        """Return what a release with these options may spend, or raise an `ArgumentError`."""
        self.check(options)
        share = self.delta_share(options)
        gaussian = self.gaussian and not share
        if mu is not None and not gaussian:
            raise ArgumentError(
                f"method '{self.name}' has noise that is not Gaussian, so it has no mu: give rho or epsilon."
            )
        limit = resolve_budget(
            rho=rho, mu=mu, epsilon=epsilon, delta=delta, approximate_share=share, gaussian=gaussian
        )
        self._check_delta(options, limit)
        return limit

    def run(self, curator: Curator, options: Mapping[str, Any], *, allow_unvetted: bool = False) -> Estimate:
        """Run the method with `options`. Whatever it needs is checked before anything is spent."""
        self.check_consent(allow_unvetted=allow_unvetted)
        self.check(options)
        if curator.grouped:
            self.check_units()
        self._check_delta(options, curator.remaining)
        consent = {} if self.vetted else {_CONSENT: True}
        return self._estimate()(curator, **options, **consent)

    def _check_delta(self, options: Mapping[str, Any], limit: PrivacyCost) -> None:
        if self.delta_share(options) and not limit.delta:
            raise ArgumentError(
                f"method '{self.name}' needs a delta in its budget: give delta beside rho, or epsilon with "
                f"delta. All that it needs: {self.needs}."
            )

    def _estimate(self) -> Callable[..., Estimate]:
        module, _, function = self.algorithm.partition(":")
        estimate: Callable[..., Estimate] = getattr(importlib.import_module(module), function)
        return estimate
