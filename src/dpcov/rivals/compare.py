"""Methods side by side on one table: for public or synthetic data only.

The true matrix, and every bound that a method must be told, are computed from the rows in the clear. What
comes out is therefore NOT private, which is why `compare` asks for ``public=True``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dpcov._extras import require
from dpcov.arrays import Matrix
from dpcov.checks import count
from dpcov.core import ArgumentError, DpcovError, Number
from dpcov.methods import Method, find_method, methods
from dpcov.release import release

NOTICE = "NOT PRIVATE: the true matrix and all bounds come from the rows in the clear."

# Of singular values of rows with unit columns: far above rounding, far below a condition number of 1e12.
_LEAST_SINGULAR_VALUE = 1e-10
_ALPHA = 0.5


@dataclass(frozen=True)
class Outcome:
    """How one method did.

    Attributes
    ----------
    method : str
        Its name.
    error : float
        Median over the runs of ``|S^-1/2 S~ S^-1/2 - I|`` in spectral norm; NaN if it never answered.
    lowest, highest : float
        The least and the greatest error of a run.
    seconds : float
        Median time of a run.
    vetted : bool
        Whether its arithmetic is exact.
    told : mapping
        What it was told.
    failure : str
        Why it gave no answer in some run, if so.
    """

    method: str
    error: float
    lowest: float
    highest: float
    seconds: float
    vetted: bool
    told: Mapping[str, float]
    failure: str = ""


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one table. Not private.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Best first; those without an answer come last.
    rho, delta : float
        The budget of every run; delta is there for methods that need one.
    n_rows, n_columns : int
        The shape of the table.
    runs : int
        How many draws of noise.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> made_up = np.random.default_rng(0).normal(size=(5_000, 3)) * [1, 10, 100]
    >>> found = dpcov.compare(made_up, public=True, rho=1, methods=["gaussian", "whitening"], runs=1)
    >>> [outcome.method for outcome in found.outcomes]
    ['whitening', 'gaussian']
    """

    outcomes: tuple[Outcome, ...]
    rho: float
    delta: float
    n_rows: int
    n_columns: int
    runs: int

    def __str__(self) -> str:
        shape = f"{self.n_rows} rows, {self.n_columns} columns"
        head = f"{shape}, rho={self.rho:g}, delta={self.delta:g}, {self.runs} runs. {NOTICE}"
        lines = [head, f"{'method':<17} {'error':>9} {'range':>21} {'seconds':>8}  told"]
        for one in self.outcomes:
            told = ", ".join(f"{name}={value:.3g}" for name, value in one.told.items()) or "nothing"
            spread = f"{one.lowest:.3g} .. {one.highest:.3g}"
            figures = f"{one.error:>9.3g} {spread:>21} {one.seconds:>8.2f}"
            if math.isnan(one.error):
                figures = f"{'-':>9} {'-':>21} {one.seconds:>8.2f}"
            note = "" if one.vetted else "; unvetted"
            failure = f"; {one.failure}" if one.failure else ""
            lines.append(f"{one.method:<17} {figures}  {told}{note}{failure}")
        return "\n".join(lines)

    def figure(self, path: str | Path) -> None:
        """Draw the errors and write them to `path`; needs the extra ``plot``.

        Parameters
        ----------
        path : str or Path
            The kind of image follows from its ending.
        """
        module = require("matplotlib.figure", "plot")
        answered = [one for one in self.outcomes if not math.isnan(one.error)][::-1]
        figure = module.Figure(figsize=(8, 1.4 + 0.4 * len(self.outcomes)), layout="constrained")
        axes = figure.subplots()
        places = range(len(answered))
        errors = [one.error for one in answered]
        whiskers = [
            [one.error - one.lowest for one in answered],
            [one.highest - one.error for one in answered],
        ]
        colours = ["#1f6f8b" if one.vetted else "#b0b0b0" for one in answered]
        axes.barh(places, errors, color=colours)
        axes.errorbar(errors, places, xerr=whiskers, fmt="none", ecolor="black", capsize=3)
        axes.set_yticks(places, [one.method + ("" if one.vetted else " (unvetted)") for one in answered])
        axes.set_xscale("log")
        axes.set_xlabel("relative spectral error (median and range)")
        silent = [one.method for one in self.outcomes if math.isnan(one.error)]
        shape = f"{self.n_rows:,} rows, {self.n_columns} columns, rho = {self.rho:g}"
        axes.set_title(shape + (f"\nno answer: {', '.join(silent)}" if silent else ""), fontsize=10)
        figure.savefig(path, dpi=150)


def compare(
    data: Any,
    *,
    public: bool = False,
    rho: Number,
    delta: Number = 1e-6,
    methods: Iterable[str] | None = None,
    runs: int = 5,
    intercept: bool = False,
    allow_unvetted: bool = False,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
) -> Comparison:
    """Run methods side by side on public or synthetic rows, with the same budget.

    The result is NOT private: errors are measured against the true second moment, and bounds that a method
    must be told are read off the rows, so each method gets them for free.

    Parameters
    ----------
    data : array or dataframe
        Rows that are public or synthetic. A row with a missing or infinite value counts as zeros.
    public : bool
        Must be True: your word that the rows are not sensitive.
    rho : number
        The budget of every run in zCDP.
    delta : number, default 1e-6
        What methods may spend beside it that have a delta of their own.
    methods : iterable of str, optional
        Names; by default all that can be run, unvetted ones only if allowed.
    runs : int, default 5
        How many draws of noise.
    intercept : bool, default False
        Whether a constant column joins the table. Methods that assume mean zero then see one that has a mean.
    allow_unvetted : bool, default False
        Whether to run methods whose arithmetic is idealised.
    options : mapping, optional
        By method, options that replace what it would be told.
    seed : int, default 0
        Seeds the noise.

    Returns
    -------
    Comparison
        Print it, or draw it with ``.figure(path)``.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> made_up = np.random.default_rng(0).normal(size=(5_000, 3)) * [1, 10, 100]
    >>> found = dpcov.compare(made_up, public=True, rho=1, methods=["gaussian", "whitening"], runs=1)
    >>> [(outcome.method, outcome.error < 0.1) for outcome in found.outcomes]
    [('whitening', True), ('gaussian', False)]
    """
    if public is not True:
        raise ArgumentError(
            "compare looks at the rows in the clear: its output is not private. "
            "Pass public=True if the rows are public or synthetic."
        )
    runs = count(runs, "runs")
    chosen = _choose(methods, allow_unvetted=allow_unvetted)
    rows = _clean_rows(data)
    truth = TrueMoment.of(np.column_stack([rows, np.ones(len(rows))]) if intercept else rows)
    outcomes = []
    for method in chosen:
        told = dict((options or {}).get(method.name, truth.bounds_for(method)))
        method.check(told)
        arguments = {"rho": rho, "delta": delta, "intercept": intercept, "allow_unvetted": allow_unvetted}
        outcomes.append(_measure(method, rows, truth, runs=runs, seed=seed, told=told, arguments=arguments))
    outcomes.sort(key=lambda one: (math.isnan(one.error), one.error))
    return Comparison(tuple(outcomes), float(rho), float(delta), *truth.shape, runs)


@dataclass(frozen=True, eq=False)
class TrueMoment:
    """The exact second moment of rows, and every bound that a method may have to be told. Not private.

    Attributes
    ----------
    whitener : ndarray, shape (d, rank)
        W with ``W^T S W = I`` on the range of S.
    shape : tuple of int
        Rows and columns.
    largest_norm, largest_eigenvalue, least_eigenvalue, largest_leverage : float
        Of the rows; the least eigenvalue is that on the range.
    """

    whitener: Matrix
    shape: tuple[int, int]
    largest_norm: float
    largest_eigenvalue: float
    least_eigenvalue: float
    largest_leverage: float

    @classmethod
    def of(cls, rows: Matrix) -> TrueMoment:
        """Compute it from rows whose condition number may reach 1e12, so by singular values."""
        n, d = rows.shape
        scale = np.sqrt(np.mean(np.square(rows), axis=0))
        scale[scale == 0] = 1.0
        triangle = np.asarray(np.linalg.qr(rows / scale, mode="r")) / math.sqrt(n)
        _, singular, basis = np.linalg.svd(triangle)
        kept = singular > _LEAST_SINGULAR_VALUE * max(singular[0], 1e-300)
        if not kept.any():
            raise ArgumentError("all rows are zero: there is nothing to compare.")
        whitener = basis[kept].T / singular[kept] / scale[:, None]
        spectrum = np.linalg.svd(triangle * scale, compute_uv=False)[: int(kept.sum())] ** 2
        leverages = np.square(rows @ whitener).sum(axis=1)
        return cls(
            whitener,
            (n, d),
            float(np.linalg.norm(rows, axis=1).max()),
            float(spectrum[0]),
            float(spectrum[-1]),
            float(leverages.max()),
        )

    def relative_error(self, estimate: Matrix) -> float:
        """Return ``|S^-1/2 S~ S^-1/2 - I|`` in spectral norm, on the range of S."""
        # In double precision the products alone would add 1e-4 at a condition number of 1e12.
        wide = self.whitener.astype(np.longdouble)
        product = (wide.T @ estimate.astype(np.longdouble) @ wide).astype(np.float64)
        error = (product + product.T) / 2 - np.eye(len(product))
        return float(np.abs(np.linalg.eigvalsh(error)).max())

    def bounds_for(self, method: Method) -> dict[str, float]:
        """Return all bounds that `method` takes, if it cannot do without any; else nothing.

        CoinPress gets the number of rounds that its condition number asks for. An m is the least for which no
        row belongs to the tail: ``m (1 + alpha)`` is then the largest leverage.
        """
        if not method.requires:
            return {}
        n, d = self.shape
        condition = self.largest_eigenvalue / self.least_eigenvalue
        known = {
            "radius": self.largest_norm,
            "largest_eigenvalue": self.largest_eigenvalue,
            "least_eigenvalue": self.least_eigenvalue,
            "rounds": 2 + math.ceil(2 * math.log(condition) / math.log(max(n / d, 2))),
            "m": self.largest_leverage / (1 + _ALPHA),
        }
        return {name: value for name, value in known.items() if name in method.parameters()}


def _choose(names: Iterable[str] | None, *, allow_unvetted: bool) -> list[Method]:
    if isinstance(names, str):
        raise ArgumentError(f"methods must be a list of names, got {names!r}.")
    if names is None:
        return [one for one in methods() if one.available and (one.vetted or allow_unvetted)]
    chosen = [find_method(name) for name in names]
    if not chosen:
        raise ArgumentError("methods must name at least one method.")
    for method in chosen:
        method.check_consent(allow_unvetted=allow_unvetted)
    return chosen


def _clean_rows(data: Any) -> Matrix:
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    rows = np.asarray(frame.to_numpy() if isinstance(frame, nw.DataFrame) else frame)
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] < 1:
        raise ArgumentError(f"data must have rows and columns, got shape {rows.shape}.")
    if rows.dtype.kind not in "biuf":
        raise ArgumentError(f"data must hold real numbers, got dtype {rows.dtype}.")
    numbers = rows.astype(np.float64)
    return np.where(np.isfinite(numbers).all(axis=1, keepdims=True), numbers, 0.0)


def _measure(
    method: Method,
    rows: Matrix,
    truth: TrueMoment,
    *,
    runs: int,
    seed: int,
    told: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> Outcome:
    errors, seconds, failure = [], [], ""
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        start = time.perf_counter()
        try:
            result = release(rows, method=method.name, rng=rng, **arguments, **told)
        except DpcovError as problem:
            failure = str(problem)
        else:
            errors.append(truth.relative_error(result.second_moment().values))
        seconds.append(time.perf_counter() - start)
    known = errors or [math.nan]
    return Outcome(
        method=method.name,
        error=float(np.median(known)),
        lowest=min(known),
        highest=max(known),
        seconds=float(np.median(seconds)),
        vetted=method.vetted,
        told=told,
        failure=failure,
    )
