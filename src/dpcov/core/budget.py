"""What privacy costs, and an account that refuses to overspend.

The currency is delta-approximate zCDP (Bun and Steinke 2016, Section 8): a pair ``(rho, delta)`` in exact
rationals. Costs add up. Those of Gaussian noise are known as such: together they are sqrt(2 rho)-GDP, which
says more. A method may choose each next query after seeing earlier answers, as long as the sums stay below
fixed limits: both notions have privacy filters without loss. The proof note is ``budget.md``.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from dpcov.core.conversion import epsilon_from_rho, rho_from_epsilon
from dpcov.core.errors import ArgumentError, BudgetError

Number = int | float | Fraction

_GREATEST_NUMBER = 10**9


@dataclass(frozen=True)
class PrivacyCost:
    """A cost or limit in delta-approximate rho-zCDP, or in Gaussian differential privacy.

    Parameters
    ----------
    rho : Fraction
        The zCDP parameter.
    delta : Fraction, default 0
        The probability with which the rho-zCDP guarantee may fail to apply.
    gaussian : bool, default False
        Whether it is sqrt(2 rho)-GDP as well. As a limit: whether nothing else may be charged.
    """

    rho: Fraction
    delta: Fraction = Fraction(0)
    gaussian: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", as_fraction(self.rho, "rho"))
        object.__setattr__(self, "delta", as_fraction(self.delta, "delta"))
        # What costs nothing is 0-GDP.
        object.__setattr__(self, "gaussian", not self.delta and (self.gaussian or not self.rho))

    def __add__(self, other: PrivacyCost) -> PrivacyCost:
        return PrivacyCost(self.rho + other.rho, self.delta + other.delta, self.gaussian and other.gaussian)

    def __sub__(self, other: PrivacyCost) -> PrivacyCost:
        return PrivacyCost(self.rho - other.rho, self.delta - other.delta, self.gaussian and other.gaussian)

    def fits_within(self, limit: PrivacyCost) -> bool:
        """Whether both parameters are at most those of `limit`, and it is Gaussian if the limit is."""
        return self.rho <= limit.rho and self.delta <= limit.delta and self.gaussian >= limit.gaussian

    def epsilon(self, delta: Number) -> float:
        """Return an epsilon such that this cost implies (epsilon, `delta`)-DP, rounded up.

        A delta'-approximate rho-zCDP mechanism is (epsilon, delta' + delta'')-DP when rho-zCDP
        alone is (epsilon, delta'')-DP, so `delta` must exceed this cost's own delta.
        """
        total = as_fraction(delta, "delta")
        if total <= self.delta:
            raise ArgumentError(
                f"delta must exceed {float(self.delta):g}, which the cost already contains; "
                f"got {float(total):g}."
            )
        least = epsilon_from_rho(self.rho, total - self.delta, gaussian=self.gaussian)
        nearest = float(least)
        return nearest if Fraction(nearest) >= least else math.nextafter(nearest, math.inf)

    def __str__(self) -> str:
        return f"rho={float(self.rho):.6g}" + (f", delta={float(self.delta):.3g}" if self.delta else "")


def resolve_budget(
    *,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    approximate_share: Fraction = Fraction(0),
    gaussian: bool = False,
) -> PrivacyCost:
    """Turn a user's ``rho``, ``mu``, or ``epsilon`` and ``delta`` into a limit that is within them if spent.

    Parameters
    ----------
    rho : number, optional
        zCDP parameter. May come with `delta`, which then limits the approximate part.
    mu : number, optional
        Parameter of Gaussian differential privacy, for queries of Gaussian noise only.
    epsilon, delta : number, optional
        An (epsilon, delta)-DP guarantee for everything together.
    approximate_share : Fraction, default 0
        With `epsilon`: the share of `delta` kept for queries that have a delta of their own.
    gaussian : bool, default False
        Whether only queries of Gaussian noise will be charged: then epsilon allows for more.
    """
    if sum(given is not None for given in (rho, mu, epsilon)) > 1:
        raise ArgumentError("Give one of rho, mu, and epsilon with delta.")
    if mu is not None:
        if not gaussian or delta is not None:
            raise ArgumentError("mu is for Gaussian noise only, without delta: give rho or epsilon.")
        return PrivacyCost(_positive(mu, "mu") ** 2 / 2, gaussian=True)
    if rho is not None:
        approximate = Fraction(0) if delta is None else as_fraction(delta, "delta")
        if not 0 <= approximate < 1:
            raise ArgumentError(f"delta must be at least 0 and below 1, got {float(approximate):g}.")
        return PrivacyCost(_positive(rho, "rho"), approximate, gaussian)
    if epsilon is None:
        raise ArgumentError("A budget is needed: give epsilon with delta, or mu, or rho.")
    if delta is None:
        raise ArgumentError("epsilon needs delta as well, for example delta=1e-6 (or give mu or rho).")
    total = as_fraction(delta, "delta")
    if not 0 < total < 1:
        raise ArgumentError(f"delta must lie strictly between 0 and 1, got {float(total):g}.")
    approximate = total * approximate_share
    gaussian = gaussian and not approximate
    share = rho_from_epsilon(as_fraction(epsilon, "epsilon"), total - approximate, gaussian=gaussian)
    return PrivacyCost(share, approximate, gaussian)


@dataclass(frozen=True)
class Charge:
    """One debit: what it cost and what it paid for."""

    purpose: str
    cost: PrivacyCost


@dataclass(frozen=True)
class Receipt:
    """Everything that was charged against a limit.

    Attributes
    ----------
    limit : PrivacyCost
        What might have been spent.
    charges : tuple of Charge
        In the order of spending.
    private : bool
        False when the noise came from a seeded generator: then nothing is guaranteed.

    Examples
    --------
    >>> from dpcov.core import Charge, PrivacyCost, Receipt
    >>> print(Receipt(PrivacyCost(2), (Charge("the released matrix", PrivacyCost(1)),), private=True))
    spent rho=1 of rho=2
      rho=1  the released matrix
    """

    limit: PrivacyCost
    charges: tuple[Charge, ...]
    private: bool

    @property
    def spent(self) -> PrivacyCost:
        """The sum of all charges."""
        return sum((charge.cost for charge in self.charges), PrivacyCost(Fraction(0)))

    @property
    def not_gaussian(self) -> tuple[str, ...]:
        """What was charged for other noise than Gaussian: it makes the whole claim one in zCDP."""
        return tuple(dict.fromkeys(charge.purpose for charge in self.charges if not charge.cost.gaussian))

    def epsilon(self, delta: Number) -> float:
        """Return epsilon of the (epsilon, `delta`)-DP guarantee for what was spent."""
        return self.spent.epsilon(delta)

    def __str__(self) -> str:
        lines = [f"spent {self.spent} of {self.limit}"]
        for purpose, group in itertools.groupby(self.charges, key=lambda charge: charge.purpose):
            charges = list(group)
            cost = sum((charge.cost for charge in charges), PrivacyCost(Fraction(0)))
            times = f" ({len(charges)} times)" if len(charges) > 1 else ""
            lines.append(f"  {cost}  {purpose}{times}")
        if not self.private:
            lines.append("  NOT PRIVATE: the noise came from a seeded generator")
        return "\n".join(lines)


class Budget:
    """A limit and what was charged against it.

    Formal guarantee
    ----------------
    If every mechanism run after ``charge`` returned satisfies its cost given all earlier answers, then
    everything together satisfies the limit, however the costs were chosen.
    """

    def __init__(self, limit: PrivacyCost) -> None:
        self._limit = limit
        self._charges: list[Charge] = []
        self._spent = PrivacyCost(Fraction(0))
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    def close(self) -> PrivacyCost:
        """Refuse every later charge, and return what was spent: it does not change any more."""
        with self._lock:
            self._closed = True
            return self._spent

    @property
    def limit(self) -> PrivacyCost:
        """What may be spent in total."""
        return self._limit

    @property
    def remaining(self) -> PrivacyCost:
        """What may still be spent."""
        return self._limit - self._spent

    def charge(self, *charges: Charge) -> None:
        """Debit all of `charges`, or raise `BudgetError` and debit nothing."""
        if any(charge.cost.rho < 0 or charge.cost.delta < 0 for charge in charges):
            raise ArgumentError("a cost cannot be negative.")
        if os.getpid() != self._process:
            raise BudgetError(
                "this budget belongs to the process that made it: after a fork both would spend it. "
                "Nothing was spent; make a new one from what this process may spend."
            )
        cost = sum((charge.cost for charge in charges), PrivacyCost(Fraction(0)))
        with self._lock:
            if self._closed:
                raise BudgetError("this budget is closed: its release has ended. Nothing was spent.")
            if self._limit.gaussian and not cost.gaussian:
                raise BudgetError("this budget is for Gaussian noise only. Nothing was spent.")
            if not (self._spent + cost).fits_within(self._limit):
                left = str(self.remaining) + (", delta=0" if cost.delta and not self.remaining.delta else "")
                purposes = " and ".join(dict.fromkeys(charge.purpose for charge in charges))
                raise BudgetError(
                    f"{purposes} would cost {cost}, but only {left} is left of {self._limit}. "
                    "Nothing was spent; ask for less or begin with a larger budget."
                )
            self._spent += cost
            self._charges.extend(charges)

    def receipt(self, *, private: bool) -> Receipt:
        """Return the charges so far."""
        with self._lock:
            return Receipt(self._limit, tuple(self._charges), private)


def as_fraction(value: Number, name: str) -> Fraction:
    """Return `value` exactly, or raise an `ArgumentError` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ArgumentError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        if isinstance(value, Rational):
            # int(): a numpy integer would stay one inside the Fraction, and wrap around.
            exact = Fraction(int(value.numerator), int(value.denominator))
        else:
            exact = Fraction(value) if isinstance(value, Decimal) else Fraction(float(value))
    except (ValueError, OverflowError):
        raise ArgumentError(f"{name} must be finite, got {value}.") from None
    if abs(exact) > _GREATEST_NUMBER:
        raise ArgumentError(f"{name} must be at most 1e9.")
    return exact


def gaussian_cost(rho: Number) -> PrivacyCost:
    """Return the cost of Gaussian noise, or raise an `ArgumentError` for a rho that is not above 0."""
    return PrivacyCost(_positive(rho, "rho"), gaussian=True)


def _positive(value: Number, name: str) -> Fraction:
    exact = as_fraction(value, name)
    if exact <= 0:
        raise ArgumentError(f"{name} must be greater than 0, got {float(exact):g}.")
    return exact
