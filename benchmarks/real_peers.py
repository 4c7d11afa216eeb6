"""Other methods that regress, told the same public bounds, at the same (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from world_draws import Array

from dpcov.core import Curator, PrivacyCost
from dpcov.opening import opened
from dpcov.rivals.adassp import BoundedFit, fit_adassp, fit_boosted_adassp

Peer = Callable[
    [Array, int, Sequence[int], Sequence[tuple[float, float]], float, float, np.random.Generator], Array
]
"""Another method, called as ``peer(rows, target, predictors, bounds, epsilon, delta, rng)``.

It gets the complete rows, the places of target and predictors, the bounds of every column in their order, and
the budget; it returns one coefficient a predictor and the intercept last.
"""


def analytic_rho(epsilon: float, delta: float) -> float:
    """Return the rho of all Gaussian noise together that is (epsilon, delta)-DP.

    The analytic Gaussian mechanism (Balle and Wang 2018): noise of sensitivity over standard deviation m in
    all, ``rho = m^2 / 2``, has ``delta = P(Z < m/2 - epsilon/m) - exp(epsilon) P(Z < -m/2 - epsilon/m)``. It
    is more than zCDP in general allows, and what peers made of Gaussian noise alone may spend. Rounding
    noise to whole units is post-processing.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee.
    """

    def excess(ratio: float) -> float:
        spent = ndtr(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * ndtr(-ratio / 2 - epsilon / ratio)
        return float(spent) - delta

    return float(brentq(excess, 1e-6, 50.0, xtol=1e-12)) ** 2 / 2


def _peer(fit: Callable[..., BoundedFit]) -> Peer:
    def run(  # noqa: PLR0917 - as a peer is called
        rows: Array,
        target: int,
        predictors: Sequence[int],
        bounds: Sequence[tuple[float, float]],
        epsilon: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Array:
        places = [*predictors, target]
        names = [f"x{place}" for place in places]
        told = {name: bounds[place] for name, place in zip(names, places, strict=True)}
        limit = PrivacyCost(Fraction(analytic_rho(epsilon, delta)))
        with opened(rows[:, places], limit, fit.__name__, constant=True, columns=names, rng=rng) as curator:
            return _coefficients(fit, curator, names[-1], told)

    return run


def _coefficients(
    fit: Callable[..., BoundedFit], curator: Curator, target: str, told: Mapping[str, tuple[float, float]]
) -> Array:
    found: Array = fit(curator, target=target, bounds=told).coefficients
    return found


PEERS: Mapping[str, Peer] = {"AdaSSP": _peer(fit_adassp), "boosted AdaSSP": _peer(fit_boosted_adassp)}
