"""The guarantee and the numbers, in words for people who do not know differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcov.core import PrivacyCost, Receipt
from dpcov.guessing import guessing_sentence, not_gaussian_sentence
from dpcov.privacy_unit import PrivacyUnit

# Below one over the number of people that one release is about, for all but the largest tables.
USUAL_DELTAS = (Fraction(1, 10**5), Fraction(1, 10**6), Fraction(1, 10**9))
_WORDS_FOR = {10**3: "a thousand", 10**6: "a million", 10**9: "a billion"}
LARGEST_EPSILON = 10.0
"""Above this a guarantee protects hardly anyone."""
_HUGE_FACTOR, _LARGEST_EXPONENT = 1e6, 700.0
_NOT_PRIVATE = (
    "NOT PRIVATE. The noise came from a seeded generator, so anyone who knows or guesses the seed "
    "can take it away. This release is for tests only: do not publish it if the rows are sensitive."
)
_HOLDS = (
    "This holds for every {0}, whatever else someone knows, and whatever is computed from this release later."
)
_PUBLIC = "Only the number of {0}s, the column names and the column types are treated as public."
_ONE_ROW = (
    "What is protected is one row. A person with k rows has the weaker guarantee of k^2 rho: release with "
    "privacy_unit= to protect all rows of a person together."
)


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


def weakness(cost: PrivacyCost, delta: Fraction | None, n_units: int, unit: str = "row") -> str:
    """Return why a budget protects hardly anyone, in a sentence; nothing if it protects.

    Parameters
    ----------
    cost : PrivacyCost
        What was or may be spent.
    delta : Fraction, optional
        The delta that the budget was given with; one in a million if there is none.
    n_units : int
        The public number of rows, or of persons.
    unit : str, default "row"
        Which of them is protected.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import PrivacyCost
    >>> from dpcov.report.words import weakness
    >>> weakness(PrivacyCost(Fraction(1, 100)), Fraction(1, 10), 1000)
    'delta = 0.1 protects hardly anyone: publishing some of the 1,000 rows as they are would satisfy it. \
Choose a delta well below 1 / 1,000.'
    >>> weakness(PrivacyCost(Fraction(1, 100)), Fraction(1, 10**6), 1000)
    ''
    """
    given = USUAL_DELTAS[1] if delta is None else delta
    if delta is not None and delta * n_units > 1:
        return (
            f"delta = {float(delta):g} protects hardly anyone: publishing some of the {n_units:,} {unit}s as "
            f"they are would satisfy it. Choose a delta well below 1 / {n_units:,}."
        )
    epsilon = epsilon_at(cost, given)
    if epsilon > LARGEST_EPSILON:
        return (
            f"epsilon = {rounded_up(epsilon):.4g} (at delta = {float(given):g}) protects hardly anyone: the "
            f"release may give single {unit}s away. 1 is common, {LARGEST_EPSILON:g} is already a lot."
        )
    return ""


def guarantee(
    receipt: Receipt, delta: Fraction, n_units: int, unit: PrivacyUnit | None = None
) -> tuple[str, ...]:
    """Return what was promised to the people in the table, sentence by sentence.

    Parameters
    ----------
    receipt : Receipt
        What was spent.
    delta : Fraction
        At which the epsilon is told.
    n_units : int
        The public number of rows, or of persons.
    unit : PrivacyUnit, optional
        Whose rows are protected together; each row is by itself by default.
    """
    if not receipt.private:
        return (_NOT_PRIVATE,)
    named = "row" if unit is None else unit.name
    whole = "a row" if unit is None else f"all rows of one {named}"
    guess, reason = guessing_sentence(receipt.spent, named), not_gaussian_sentence(receipt.not_gaussian)
    epsilon = epsilon_at(receipt.spent, delta)
    if math.isinf(epsilon):
        said = f"This release guarantees {receipt.spent} of zero-concentrated differential privacy."
        return tuple(sentence for sentence in (guess, said, _covers(unit), reason) if sentence)
    factor = math.exp(min(epsilon, _LARGEST_EXPONENT))
    rounded = float(f"{factor:.{3 if factor > 1.1 else 4}g}") if factor < _HUGE_FACTOR else math.inf
    about = f"about {rounded:,.0f}" if rounded >= 100 else f"about {rounded:g}"
    about = "which is large" if math.isinf(rounded) else about
    promise = (
        f"{_likeness(epsilon, unit)} Replacing {whole} changes the probability of any result by at most a "
        f"factor of e^{rounded_up(epsilon):g} ({about}), plus {one_in(delta)}."
    )
    weak = weakness(receipt.spent, delta, n_units, named)
    weak = weak[:1].upper() + weak[1:]
    told = (weak, guess, promise, _HOLDS.format(named), _covers(unit), _PUBLIC.format(named), reason)
    return tuple(filter(None, told))


def _covers(unit: PrivacyUnit | None) -> str:
    """Return what the guarantee means for a person with several rows."""
    if unit is None:
        return _ONE_ROW
    return (
        f"All rows of one {unit.name} are protected together, however many there are. The number of rows is "
        "not public."
    )


def _likeness(epsilon: float, unit: PrivacyUnit | None) -> str:
    """Return how much alike results are with one row replaced: words follow the number."""
    replaced = "had any one row been different."
    if unit is not None:
        replaced = f"had all rows of any one {unit.name} been different."
    if epsilon <= 1:
        return f"The released numbers would have come out much the same {replaced}"
    if epsilon <= 3:
        return f"The released numbers could well have come out the same {replaced}"
    if epsilon <= LARGEST_EPSILON:
        return f"The released numbers could still have come out the same, if less likely, {replaced}"
    return f"The released numbers might have come out quite differently {replaced}"


def headline(receipt: Receipt, delta: Fraction) -> str:
    """Return the guarantee as the two numbers that the field goes by.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpcov.core import Charge, PrivacyCost, Receipt
    >>> from dpcov.report.words import headline
    >>> cost = PrivacyCost(Fraction(1, 100))
    >>> headline(Receipt(cost, (Charge("all", cost),), private=True), Fraction(1, 10**6))
    'epsilon 0.6217 at delta 1e-06'
    """
    if not receipt.private:
        return "NOT PRIVATE (seeded)"
    epsilon = epsilon_at(receipt.spent, delta)
    if math.isinf(epsilon):
        return str(receipt.spent)
    return f"epsilon {rounded_up(epsilon):g} at delta {float(delta):g}"


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


def clipped_rows(diagnostics: Mapping[str, Any], unit: str = "row") -> str:
    """Return how many rows were clipped and whether errors cover it, in a sentence; nothing if none was.

    Examples
    --------
    >>> from dpcov.report.words import clipped_rows
    >>> clipped_rows({"rows_beyond": {"about": 60.0, "at_most": 130.0, "explained": False}})
    'About 60 rows (at most 130) lie far outside the rest and were clipped. No law tells their \
effect: intervals allow for what is likely of it, and answers that it could move further carry a note.'
    >>> seen = {"about": 60.0, "at_most": 130.0, "explained": True, "columns": ["rain"]}
    >>> clipped_rows({"rows_beyond": seen})
    'About 60 rows (at most 130) lie far outside the rest and were clipped. Their effect is estimated, and \
intervals allow for it. Single rows much further out cannot be seen under the noise: intervals do not allow \
for them. Many far rows lie along rain: these means and variances carry a note.'
    """
    beyond = diagnostics.get("rows_beyond")
    if not isinstance(beyond, Mapping) or float(beyond.get("at_most", 0.0)) < 1:
        return ""
    about, at_most = max(float(beyond["about"]), 0.0), math.ceil(float(beyond["at_most"]))
    rows = f"About {about:,.0f} {unit}s (at most {at_most:,}) lie far outside the rest and were clipped."
    if beyond.get("explained") is False:
        return (
            f"{rows} No law tells their effect: intervals allow for what is likely of it, and answers that "
            "it could move further carry a note."
        )
    estimated = (
        f"{rows} Their effect is estimated, and intervals allow for it. Single {unit}s much further out "
        "cannot be seen under the noise: intervals do not allow for them."
    )
    if beyond.get("columns"):
        named = ", ".join(map(str, beyond["columns"]))
        return f"{estimated} Many far {unit}s lie along {named}: these means and variances carry a note."
    return estimated


def error_covers(method: str) -> str:
    """Return what the predicted error of a method is made of.

    Examples
    --------
    >>> from dpcov.report.words import error_covers
    >>> error_covers("whitening")
    'noise and clipping'
    """
    return "noise and clipping" if method == "whitening" else "noise"


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
