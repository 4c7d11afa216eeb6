"""Figures that follow from a budget alone, by the library's own conversions: nothing is measured."""

from __future__ import annotations

import math
from fractions import Fraction

from figure_tables import table

from dpcov.core import PrivacyCost
from dpcov.core.conversion import epsilon_from_rho, rho_from_epsilon
from dpcov.guessing import greatest_guess, least_misses, percent

_DELTA = Fraction(1, 10**6)
_FALSE_ALARMS = 0.05
_IN_WORDS = {
    Fraction(1, 10): "strict",
    Fraction(3, 10): "strict",
    Fraction(1): "usual for releases of sensitive tables",
    Fraction(3): "weak; for tables of little sensitivity",
    Fraction(10): "protects hardly anyone; dpcov warns",
}


def _cost(epsilon: Fraction) -> PrivacyCost:
    return PrivacyCost(rho_from_epsilon(epsilon, _DELTA, gaussian=True), gaussian=True)


def _guess(epsilon: int) -> str:
    return percent(greatest_guess(_cost(Fraction(epsilon))))


def guess_at_one() -> str:
    """Return how often a guess is right at most at epsilon = 1."""
    return _guess(1)


def guess_at_three() -> str:
    """Return how often a guess is right at most at epsilon = 3."""
    return _guess(3)


def epsilon_of_half() -> str:
    """Return the epsilon that rho = 0.5 means."""
    return f"{float(epsilon_from_rho(Fraction(1, 2), _DELTA, gaussian=True)):.1f}"


def officer_table() -> str:
    """Return what each epsilon means for someone who guesses, in words."""
    lines = [
        [f"{float(epsilon):g}", percent(greatest_guess(_cost(epsilon))), words]
        for epsilon, words in _IN_WORDS.items()
    ]
    told = table(["epsilon, at delta = 1e-6", "guesses right, at most", "in words"], lines)
    return told.replace("| --- | ---: | ---: |", "| ---: | ---: | --- |")


def guess_table() -> str:
    """Return what each epsilon means in other terms, and how much noise the tighter conversion saves."""
    lines = []
    for epsilon in _IN_WORDS:
        cost = _cost(epsilon)
        mu = math.sqrt(2 * cost.rho)
        gain = (float(cost.rho) / float(rho_from_epsilon(epsilon, _DELTA))) ** 0.5
        lines.append(
            [
                f"{float(epsilon):g}", f"{mu:.3f}", percent(greatest_guess(cost)),
                f"{least_misses(cost, _FALSE_ALARMS):.1%}", f"{gain:.3f} times smaller",
            ]
        )  # fmt: skip
    head = ["epsilon, at delta = 1e-6", "mu", "guesses right, at most", "misses at 5% false alarms, at least",
            "noise, compared with a conversion through zCDP"]  # fmt: skip
    return table(head, lines)
