"""What error to expect for so many rows, or how many rows an error needs, method by method.

No table is needed and no budget is spent: the answer is a function of public numbers. It is about tables with
light tails (Gaussian rows, eigenvalues spread evenly on a log scale); heavy tails cost more, see `Plan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri

from dpcov.checks import count, number, share
from dpcov.core import ArgumentError, Number, PrivacyCost, resolve_budget
from dpcov.guessing import greatest_guess, guessing_sentence, mu_of
from dpcov.methods import find_method, methods
from dpcov.paper.queries import groups_for_noise
from dpcov.paper.theory.bounds import Bound, least_rows
from dpcov.paper.theory.mixtures import log_spaced_gaussian
from dpcov.paper.theory.recursion import recursive_error
from dpcov.paper.theory.related import aden_ali_rows, alabi_rows, brown_rows, kothari_rows
from dpcov.paper.theory.subsamplability import LARGEST_ALPHA, smallest_size

# Measured on the Gaussian tables of benchmarks/results/accuracy.csv.
_RELEASED_SHARE = 0.85
_FEW_ROWS = 0.25
_LARGEST_LEARNT = 1e6

_CALIBRATED = "calibrated on benchmarks"
_THEOREM = "theorem"
_RATE = "rate only"


@dataclass(frozen=True)
class PlanEntry:
    """One method's answer.

    Attributes
    ----------
    method : str
        The method's name, as in ``dpcov.methods()``; with ``-paper``, with the constants of the paper.
    error : float
        Relative error in the worst direction, ``|S^-1/2 S~ S^-1/2 - I|``: predicted if the rows were given.
        Infinite where nothing is promised, NaN where the method needs epsilon and delta and has none.
    rows : float
        Rows needed, if the error was given.
    basis : {"calibrated on benchmarks", "theorem", "rate only"}
        A typical error that benchmarks confirm, a guarantee with explicit constants, or a rate whose
        hidden constants are taken as 1.
    assumes : str
        What it takes for granted.
    available : bool
        Whether ``dpcov.release`` can run it.
    """

    method: str
    error: float
    rows: float
    basis: str
    assumes: str
    available: bool


@dataclass(frozen=True, repr=False)
class Plan:
    """What to expect, method by method.

    Attributes
    ----------
    n_columns : int
        Columns, the constant one included.
    rho, mu : float
        The budget in zCDP, and in Gaussian differential privacy for methods whose noise is all Gaussian.
    guess : float
        How often someone guesses right at most which of two candidates a row is, if such a method spends it.
    epsilon, delta : float or None
        For methods that need them.
    condition : float
        The ratio of the largest to the least eigenvalue that the answers are about.
    failure : float
        The probability with which a guarantee may fail.
    n_rows, error : float or None
        The one that was given.
    entries : tuple of PlanEntry
        One answer for each method.

    Notes
    -----
    On the benchmark's Gaussian tables the errors of "whitening" were 0.84 to 1.23 times the predicted
    ones, where those are below 0.1, and up to 4 times above; those of "gaussian" 0.75 to 2.1 times. Other
    tables have other figures: rare 0/1 columns, heavy tails and clusters cost several times as much.

    Examples
    --------
    >>> import dpcov
    >>> plan = dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5)
    >>> plan["whitening"].error < 0.001 < plan["gaussian"].error
    True
    """

    n_columns: int
    rho: float
    mu: float
    guess: float
    epsilon: float | None
    delta: float | None
    condition: float
    failure: float
    n_rows: int | None
    error: float | None
    entries: tuple[PlanEntry, ...]

    def __getitem__(self, method: str) -> PlanEntry:
        for entry in self.entries:
            if entry.method == method:
                return entry
        known = ", ".join(entry.method for entry in self.entries)
        raise ArgumentError(f"the plan has no method '{method}'. There are: {known}.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; infinite and missing numbers become None."""
        result = asdict(self)
        result["entries"] = [
            {key: _plain(value) for key, value in asdict(entry).items()} for entry in self.entries
        ]
        return result

    def __repr__(self) -> str:
        asked = f"{self.n_rows} rows" if self.n_rows is not None else f"error {self.error:g}"
        budget = f"mu={self.mu:.4g}, rho={self.rho:.4g}"
        if self.epsilon is not None:
            budget += f" (epsilon={self.epsilon:.4g}, delta={self.delta:g})"
        head = "error" if self.n_rows is not None else "rows"
        lines = [
            guessing_sentence(PrivacyCost(Fraction(self.rho), gaussian=True)),
            f"plan: {asked}, {self.n_columns} columns, {budget}, condition {self.condition:g}",
            f"{'method':<18}{head:>12}  basis",
        ]
        for entry in self.entries:
            value = entry.error if self.n_rows is not None else entry.rows
            lines.append(f"{entry.method:<18}{_shown(value):>12}  {entry.basis}; {entry.assumes}")
        return "\n".join(lines)


def plan(
    *,
    n_columns: int,
    n_rows: int | None = None,
    error: float | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    condition: float = 1e6,
    failure: float = 0.05,
    m: float | None = None,
) -> Plan:
    """Predict the error for a number of rows, or the rows for an error, method by method.

    Parameters
    ----------
    n_columns : int
        Columns of the table; one more with an intercept.
    n_rows : int, optional
        How many rows there are. Give this or `error`.
    error : float, optional
        The relative error wanted in the worst direction, below 1.
    rho, mu, epsilon, delta : float, optional
        The budget, as for ``dpcov.release``. Methods that are not zCDP need `delta`; with `rho` and
        `delta` they are compared at the epsilon that rho-zCDP implies.
    condition : float, default 1e6
        Largest over least eigenvalue of the second moment, as far as it is guessed.
    failure : float, default 0.05
        The probability with which guarantees may fail.
    m : float, optional
        The subsample size at alpha = 1/2 told to "recursive"; that of Gaussian rows by default.

    Returns
    -------
    Plan
        Prints as a table.

    Examples
    --------
    >>> import dpcov
    >>> plan = dpcov.plan(n_rows=1_000_000, n_columns=20, rho=0.5)
    >>> f"{plan['whitening'].error:.1e}"
    '4.9e-04'
    >>> needed = dpcov.plan(error=0.01, n_columns=20, rho=0.5)["whitening"].rows
    >>> 10_000 < needed < 1_000_000
    True
    """
    d = count(n_columns, "n_columns")
    if (n_rows is None) == (error is None):
        raise ArgumentError("Give either n_rows, to learn the error, or error, to learn the rows.")
    rows = None if n_rows is None else count(n_rows, "n_rows")
    target = None if error is None else share(error, "error")
    spread = number(condition, "condition", at_least=1)
    chance = share(failure, "failure")
    size = None if m is None else number(m, "m", at_least=1)
    limit = resolve_budget(rho=rho, mu=mu, epsilon=epsilon, delta=delta, gaussian=True)
    spending = PrivacyCost(limit.rho, gaussian=True)
    budget = float(limit.rho)
    whole = None
    if delta is not None and float(delta) > 0:
        whole = float(epsilon) if epsilon is not None else PrivacyCost(limit.rho).epsilon(delta)
        share_of_delta = find_method("aggregate").delta_share({})
        limit = resolve_budget(rho=rho, epsilon=epsilon, delta=delta, approximate_share=share_of_delta)
    case = _Case(d, budget, whole, None if whole is None else float(delta or 0), spread, chance, size, limit)

    runnable = {method.name for method in methods() if method.available}

    def entry(
        method: str,
        error_at: Callable[[int], float] | None,
        basis: str,
        assumes: str,
        rows_for: Callable[[float], float] | None = None,
    ) -> PlanEntry:
        available = method.removesuffix("-paper") in runnable
        if error_at is None:
            found = math.nan
            return PlanEntry(method, found, found, basis, f"{assumes}; give delta to compare", available)
        if rows is not None:
            return PlanEntry(method, error_at(rows), float(rows), basis, assumes, available)
        wanted = target or math.nan
        needed = rows_for(wanted) if rows_for else least_rows(error_at, wanted)
        return PlanEntry(method, wanted, needed, basis, assumes, available)

    learnt = whole is not None
    entries = (
        entry("whitening", case.whitening, _CALIBRATED, "light tails, an error below 0.1"),
        entry("gaussian", case.gaussian, _CALIBRATED, "light tails, a tight radius"),
        entry("recursive", case.recursive, _THEOREM, "Gaussian rows, known radius, eigenvalue and m"),
        entry("recursive-paper", case.recursive_paper, _THEOREM, "the same; its proof has gaps"),
        entry(
            "aggregate",
            case.aggregate if learnt else None,
            _THEOREM,
            "Gaussian rows, known m",
            lambda wanted: case.aggregate_rows(wanted / 2),
        ),
        entry("leverage", case.rate(brown_rows), _RATE, "no row of high leverage"),
        entry("aden-ali-2020", case.rate(aden_ali_rows), _RATE, "Gaussian rows; no algorithm"),
        entry("kothari-2021", case.rate(kothari_rows), _RATE, "sub-Gaussian rows, robust"),
        entry("alabi-2023", case.rate(alabi_rows), _RATE, "Gaussian rows, robust"),
    )
    return Plan(
        d, budget, mu_of(spending) or math.nan, greatest_guess(spending), whole, case.delta, spread, chance,
        rows, target, entries,
    )  # fmt: skip


@dataclass(frozen=True)
class _Case:
    """The public numbers of one question, and each method's error as a function of the rows."""

    d: int
    rho: float
    epsilon: float | None
    delta: float | None
    condition: float
    failure: float
    m: float | None
    limit: PrivacyCost

    def whitening(self, rows: int) -> float:
        """Noise of the last release, at the radius beyond which d sqrt(2 d / rho) rows are clipped."""
        clipped = min(self.d * math.sqrt(2 * self.d / self.rho) / rows, 0.5)
        squared = float(chdtri(self.d, clipped))
        noise = math.sqrt(2 * self.d) / (rows * math.sqrt(self.rho))
        predicted = noise * squared / math.sqrt(_RELEASED_SHARE)
        # With so few rows the method looks for no directions and makes one release of the rows as they are.
        few = noise * self.d > _FEW_ROWS
        return max(predicted, self.gaussian(rows)) if few else predicted

    def gaussian(self, rows: int) -> float:
        """Noise of one release at the radius of the longest row, in the metric of the second moment."""
        values = np.logspace(0, -math.log10(self.condition), self.d)
        scale = float(np.sum(values**2) / values.sum())
        # The squared length is about a multiple of a chi-square variable (Satterthwaite).
        squared = scale * float(chdtri(float(values.sum()) / scale, 1 / max(rows, 2)))
        # So many directions are about as small as the least; the rest hardly matter.
        small = float((values[-1] / values).sum())
        norm = math.sqrt(2 * small) * (1 - 0.5 * math.pow(small, -2 / 3))
        return norm * squared / (rows * math.sqrt(self.rho) * float(values[-1]))

    def recursive(self, rows: int) -> float:
        return self._recursive(rows, "repaired")

    def recursive_paper(self, rows: int) -> float:
        return self._recursive(rows, "paper")

    def _recursive(self, rows: int, constants: str) -> float:
        table = log_spaced_gaussian(self.d, self.condition)
        radius, least = table.radius_of(rows, self.failure / 2), table.least_eigenvalue
        size = (
            self.m
            or smallest_size(
                lambda beta: table.subsample_size(LARGEST_ALPHA, beta),
                LARGEST_ALPHA,
                radius,
                least,
                constants=constants,
            )[0]
        )
        return recursive_error(
            rows,
            self.d,
            self.rho,
            m=size,
            alpha=LARGEST_ALPHA,
            radius=radius,
            least_eigenvalue=least,
            failure=self.failure / 2,
            constants=constants,
        )

    def aggregate(self, rows: int) -> float:
        """Twice the least alpha for which the rows are enough; infinite if none up to 1/2 is."""
        return _least(self.aggregate_rows, rows, LARGEST_ALPHA) * 2

    def aggregate_rows(self, alpha: float) -> float:
        """Return the rows for which groups within 1 +- alpha, and the noise on top, stay within 2 alpha.

        By the library's own proof (``paper/queries/multiplicative.md``), which asks for far fewer groups than
        the paper's lemma (`dpcov.theory.aggregate_rows`).
        """
        epsilon, delta = math.sqrt(self.limit.rho), float(self.limit.delta) / 2
        norm = 2 * math.sqrt(self.d) + math.sqrt(2 * math.log(2 / self.failure))
        scale = (math.sqrt(1 + alpha / (1 + alpha)) - 1) / norm
        for_release = groups_for_noise(
            self.d, 2 * alpha / (1 - alpha), Fraction(epsilon), self.limit.delta / 2, scale
        )
        # Noise of the test of agreement is at most a tenth, so that groups that agree pass.
        for_test = 20 / epsilon * math.log1p(math.expm1(epsilon) / (2 * delta))
        groups = max(for_release, math.ceil(for_test))
        if math.isinf(groups):
            return math.inf
        table = log_spaced_gaussian(self.d, self.condition)
        return groups * table.subsample_size(alpha, self.failure / (2 * groups))

    def rate(self, bound: Callable[[float, int, float, float], Bound]) -> Callable[[int], float] | None:
        """Turn a rate, rows for an error, around."""
        if self.epsilon is None or self.delta is None:
            return None
        epsilon, delta = self.epsilon, self.delta
        return lambda rows: _least(
            lambda error: bound(error, self.d, epsilon, delta).rows, rows, _LARGEST_LEARNT
        )


def _least(needed: Callable[[float], float], rows: int, largest: float) -> float:
    """Return the least value up to `largest` that needs at most `rows`; infinite if there is none."""
    if needed(largest) > rows:
        return math.inf

    def excess(log_value: float) -> float:
        return math.log(min(needed(math.exp(log_value)), 1e300) / rows)

    lowest = math.log(1e-12)
    if excess(lowest) <= 0:
        return math.exp(lowest)
    # Rows grow about like a power, so that a line in logarithms finds the place in few steps.
    found = float(brentq(excess, lowest, math.log(largest), xtol=1e-7))
    while excess(found) > 0:
        found += 1e-7
    return min(math.exp(found), largest)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "no promise"
    return f"{value:.3g}" if value < 1e4 else f"{value:.2e}"
