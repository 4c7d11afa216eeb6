"""The guarantee and the numbers, in words for people who do not know differential privacy."""

from __future__ import annotations

import math
from fractions import Fraction

from dpcov.core import PrivacyCost, Receipt
from dpcov.guessing import guessing_sentence, not_gaussian_sentence

# Below one over the number of people that one release is about, for all but the largest tables.
USUAL_DELTAS = (Fraction(1, 10**5), Fraction(1, 10**6), Fraction(1, 10**9))
_WORDS_FOR = {10**3: "a thousand", 10**6: "a million", 10**9: "a billion"}
_HUGE_FACTOR, _LARGEST_EXPONENT = 1e6, 700.0
_NOT_PRIVATE = (
    "NOT PRIVATE. The noise came from a seeded generator, so anyone who knows or guesses the seed "
    "can take it away. This release is for tests only: do not publish it if the rows are sensitive."
)
_HOLDS = (
    "This holds for every row and every other row in its place, whatever else someone knows, and "
    "whatever is computed from this release later."
)
_PUBLIC = "Public are only the number of rows, the names of the columns and their types."


def epsilon_at(cost: PrivacyCost, delta: Fraction) -> float:
    """Return the epsilon of a cost at some delta; infinite where there is none.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.report.words import epsilon_at
    >>> round(epsilon_at(PrivacyCost(Fraction(1, 100)), Fraction(1, 10**6)), 3)
    0.622
    """
    if cost.rho == 0 and cost.delta <= delta:
        return 0.0
    return cost.epsilon(delta) if delta > cost.delta else math.inf


def guarantee(receipt: Receipt, delta: Fraction) -> tuple[str, ...]:
    """Return what was promised to the people in the table, sentence by sentence."""
    if not receipt.private:
        return (_NOT_PRIVATE,)
    guess, reason = guessing_sentence(receipt.spent), not_gaussian_sentence(receipt.not_gaussian)
    epsilon = epsilon_at(receipt.spent, delta)
    if math.isinf(epsilon):
        named = f"This release guarantees {receipt.spent} of zero-concentrated differential privacy."
        return tuple(sentence for sentence in (guess, named, reason) if sentence)
    factor = math.exp(min(epsilon, _LARGEST_EXPONENT))
    about = f"about {factor:,.3g}" if factor < _HUGE_FACTOR else "which is large"
    promise = (
        "The released numbers would have come out much the same had any one row of the table been another "
        "one. Replacing a row changes the probability of any result by at most a factor of "
        f"e^{rounded_up(epsilon):g} ({about}), up to an extra chance of {one_in(delta)}."
    )
    return tuple(sentence for sentence in (guess, promise, _HOLDS, _PUBLIC, reason) if sentence)


def rounded_up(value: float) -> float:
    """Return a promise in four digits, never below what it is.

    Examples
    --------
    >>> from dpcov.report.words import rounded_up
    >>> rounded_up(0.67231)
    0.6724
    """
    nearest = float(f"{value:.4g}")
    # A hair of rounding in the last bits of a float is no digit.
    if nearest >= value * (1 - 1e-12):
        return nearest
    return float(f"{nearest + 10.0 ** (math.floor(math.log10(value)) - 3):.4g}")


def one_in(chance: Fraction) -> str:
    """Return a small probability as a person would say it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.report.words import one_in
    >>> one_in(Fraction(1, 10**6))
    'one in a million'
    """
    times = round(1 / chance)
    return f"one in {_WORDS_FOR.get(times, f'{times:,}')}"


def number(value: float) -> str:
    """Return a number in four digits, without an exponent where it is easy to read without one.

    Examples
    --------
    >>> from dpcov.report.words import number
    >>> number(12345.678), number(0.00001234)
    ('12,346', '1.234e-05')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "unlimited" if value > 0 else "-unlimited"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e7:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        return f"{value:,.{digits}f}"
    return f"{value:.3e}"
