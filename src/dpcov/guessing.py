"""What a budget means for someone who guesses: the plain reading of Gaussian differential privacy.

Someone knows every other row of the table and two candidates for one row, sees the release, and guesses
which of the two it was. Nobody is right more often than half of one plus the total variation of the two laws
of the release.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from scipy.special import ndtr, ndtri

from dpcov.core import PrivacyCost
from dpcov.core.conversion import gaussian_delta


def greatest_guess(cost: PrivacyCost) -> float:
    """Return how often someone guesses right at most, where 0.5 is a coin; rounded up.

    Under Gaussian differential privacy it is ``Phi(mu / 2)`` exactly. Under rho-zCDP the Kullback-Leibler
    divergence is at most rho, hence the total variation at most ``sqrt(rho / 2)`` (Pinsker) and
    ``sqrt(1 - exp(-rho))`` (Bretagnolle and Huber); an approximate part adds its delta.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.guessing import greatest_guess
    >>> round(greatest_guess(PrivacyCost(Fraction(1, 2), gaussian=True)), 4)
    0.6915
    >>> round(greatest_guess(PrivacyCost(Fraction(1, 2))), 4)
    0.75
    """
    if cost.rho == 0:
        variation = float(cost.delta)
    elif cost.gaussian:
        # The delta at epsilon 0 is the total variation.
        variation = float(gaussian_delta(cost.rho, Fraction(0))[1])
    else:
        rho = float(cost.rho)
        variation = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho))) + float(cost.delta)
    # Floats are off by a few units in the last place, which 10^-12 covers.
    return min(1.0, (1 + variation) / 2 * (1 + 1e-12)) if variation else 0.5


def mu_of(cost: PrivacyCost) -> float | None:
    """Return the parameter of Gaussian differential privacy, rounded up; None if the cost is not Gaussian.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.guessing import mu_of
    >>> round(mu_of(PrivacyCost(Fraction(1, 50), gaussian=True)), 9)
    0.2
    """
    return math.nextafter(math.sqrt(2 * cost.rho), math.inf) if cost.gaussian and cost.rho else None


def percent(chance: float) -> str:
    """Return a chance in per cent with one decimal, never below what it is.

    Examples
    --------
    >>> from dpcov.guessing import percent
    >>> percent(0.54711), percent(0.5), percent(0.9999)
    ('54.8%', '50%', '100%')
    """
    # A hair of rounding in the last bits of a float is no decimal.
    up = Decimal(chance * 100 * (1 - 1e-11)).quantize(Decimal("0.1"), ROUND_CEILING)
    return f"{float(up):g}%"


def guessing_sentence(cost: PrivacyCost, unit: str = "row") -> str:
    """Return the promise as a bound on guesses, in one sentence.

    Parameters
    ----------
    cost : PrivacyCost
        What was or may be spent.
    unit : str, default "row"
        Whose replacement the promise is about.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.guessing import guessing_sentence
    >>> print(guessing_sentence(PrivacyCost(Fraction(1, 50), gaussian=True)))
    Someone who knows every other row, and two candidates for the last one, picks the right candidate at \
most 54% of the time; a coin gets 50%.
    """
    return (
        f"Someone who knows every other {unit}, and two candidates for the last one, picks the right "
        f"candidate at most {percent(greatest_guess(cost))} of the time; a coin gets 50%."
    )


def not_gaussian_sentence(purposes: tuple[str, ...]) -> str:
    """Return why a promise is counted in zCDP, which says less; empty if it is not.

    Examples
    --------
    >>> from dpcov.guessing import not_gaussian_sentence
    >>> not_gaussian_sentence(("least eigenvalue",))
    'Privacy is accounted in zCDP, which promises less, because some noise is not Gaussian: least eigenvalue.'
    """
    if not purposes:
        return ""
    return (
        "Privacy is accounted in zCDP, which promises less, because some noise is not Gaussian: "
        f"{', '.join(purposes)}."
    )


def least_misses(cost: PrivacyCost, false_alarms: float) -> float:
    """Return how often someone misses the second candidate at least, who takes the first for it so often.

    The trade-off curve of Gaussian differential privacy, ``Phi(Phi^-1(1 - false alarms) - mu)``; without it,
    the bound that a total variation of v leaves: ``1 - v - false alarms``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.guessing import least_misses
    >>> round(least_misses(PrivacyCost(Fraction(1, 2), gaussian=True), 0.05), 3)
    0.74
    """
    mu = mu_of(cost)
    if mu is not None:
        return float(ndtr(ndtri(1 - false_alarms) - mu))
    return max(0.0, 2 * (1 - greatest_guess(cost)) - false_alarms)
