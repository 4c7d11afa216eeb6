"""Releases of tables of several owners become one: each makes its own, and nobody pools rows."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcov._version import VERSION
from dpcov.arrays import Array
from dpcov.core import ArgumentError, Charge, PrivacyCost, Receipt, UnresolvedError
from dpcov.laws import NoiseLaw, square_root
from dpcov.losses import LossLaw
from dpcov.provenance import Provenance, today
from dpcov.released import Part, Release

_FEWEST = 2
_LEAST_SHARE = 1e-12


def combine(releases: Sequence[Release]) -> Release:
    """Return the release of all rows of several tables, from a release of each.

    Each owner releases its own table; this is post-processing, and costs nothing. A person must be in one of
    the tables only: then the guarantee for the person is that of the release that the person is in.

    Parameters
    ----------
    releases : sequence of Release
        Of tables without a row, or a person, in common. They must have the same columns, in any order, and
        protect the same unit.

    Returns
    -------
    Release
        Its second moment is the mean of theirs, weighted by the number of rows or units of each; so are the
        laws of its errors. Its receipt states the largest cost of any; `Release.parts` has all of them.

    Raises
    ------
    ArgumentError
        If the releases do not go together.
    UnresolvedError
        If one of them has no law of its noise, such as one in which all was below the noise.

    Notes
    -----
    *Formal guarantee.* Let each release i be rho_i-zCDP. For neighbours that differ in one row (or unit) of
    one of the tables, all others are the same, and so is the law of their releases: the whole is zCDP with
    the largest rho_i. Likewise for delta and for Gaussian differential privacy.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> rows = np.random.default_rng(0).normal(size=(60_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> names = ["height", "weight"]
    >>> hospitals = [dpcov.release(part, rho=1, columns=names) for part in np.split(rows, 3)]
    >>> together = dpcov.combine(hospitals)
    >>> together.n_rows, print(together.receipt.spent)
    rho=1
    (60000, None)
    >>> together.mean().values.round()
    array([170.,  62.])
    """
    parts = _checked(releases)
    first, total = parts[0], sum(part.n_units for part in parts)
    shares = [part.n_units / total for part in parts]
    orders = [[part.released_columns.index(name) for name in first.released_columns] for part in parts]
    places = [[*order, len(order)] if first.intercept else order for order in orders]
    moments = [part._matrix[np.ix_(place, place)] for part, place in zip(parts, places, strict=True)]  # noqa: SLF001
    matrix = np.sum([share * moment for share, moment in zip(shares, moments, strict=True)], axis=0)
    noises = [
        replace(part.noise, inverse=part.noise.inverse[place])
        for part, place in zip(parts, places, strict=True)
        if part.noise is not None
    ]
    losses = tuple(
        _scaled_loss(law, share, _likeness(matrix, moment), order)
        for part, share, moment, order in zip(parts, shares, moments, orders, strict=True)
        for law in part.losses
    )
    return Release(
        columns=first.columns,
        n_units=total,
        method=first.method if len({part.method for part in parts}) == 1 else "several",
        options={},
        receipt=_largest([part.receipt for part in parts]),
        diagnostics=_rows_beyond([part.diagnostics for part in parts]),
        intercept=first.intercept,
        noise=sum_law(noises, shares),
        losses=losses,
        versions={"dpcov": VERSION, "numpy": np.__version__, "python": platform.python_version()},
        _matrix=(matrix + matrix.T) / 2,
        provenance=Provenance(today(), delta=_common_delta(parts)),
        encoding=first.encoding if all(part.encoding == first.encoding for part in parts) else None,
        unit=first.unit,
        parts=tuple(
            one
            for part in parts
            for one in part.parts or (Part(part.n_units, part.receipt, part.provenance),)
        ),
    )


def sum_law(noises: Sequence[NoiseLaw], shares: Sequence[float]) -> NoiseLaw:
    """Return a law of noise that is at least that of the sum, in every answer.

    With ``K_i = sigma_i share_i F_i F_i^T`` an answer ``<Q, .>`` has the variance
    ``sum_i |K_i^1/2 Q K_i^1/2|^2``. For the K that is returned, ``|K^1/2 Q K^1/2|^2`` is no less for any Q.
    In coordinates in which K is c times the identity, ``B_i (x) B_i`` is at most the mean of
    ``B_i^2 (x) I`` and ``I (x) B_i^2``, so that ``c^2 = lambda_max(sum_i B_i^2)`` is enough. It is exact
    where all K_i are alike.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcov.combine import sum_law
    >>> from dpcov.laws import NoiseLaw
    >>> law = sum_law([NoiseLaw(np.eye(2), 0.2)] * 4, [0.25] * 4)
    >>> (law.sigma * law.inverse @ law.inverse.T).round(3)
    array([[0.1, 0. ],
           [0. , 0.1]])
    """
    grams = [
        law.sigma * share * law.inverse @ law.inverse.T for law, share in zip(noises, shares, strict=True)
    ]
    root = _root(np.sum(grams, axis=0))
    white = [_whitened(gram, root) for gram in grams]
    inner = _root(_matrix_root(np.sum([one @ one for one in white], axis=0)))
    squares = np.sum([np.linalg.matrix_power(_whitened(one, inner), 2) for one in white], axis=0)
    factor = math.sqrt(float(np.linalg.eigvalsh(squares)[-1]))
    inverse = math.sqrt(factor) * root @ inner
    hidden = np.sum(
        [share * law.hidden * law.inverse @ law.inverse.T for law, share in zip(noises, shares, strict=True)],
        axis=0,
    )
    most = float(np.linalg.eigvalsh(_whitened(hidden, inverse))[-1])
    return NoiseLaw(np.asarray(inverse, dtype=np.float64), 1.0, max(most, 0.0))


def _checked(releases: Sequence[Release]) -> list[Release]:
    if isinstance(releases, Release) or not isinstance(releases, Sequence):
        raise ArgumentError("combine takes a list of releases.")
    parts = list(releases)
    if len(parts) < _FEWEST or not all(isinstance(part, Release) for part in parts):
        raise ArgumentError("combine takes a list of at least two releases.")
    if len({id(part) for part in parts}) < len(parts):
        raise ArgumentError("a release is given twice; its rows would count twice.")
    first = parts[0]
    for part in parts[1:]:
        if set(part.columns) != set(first.columns):
            odd = sorted(set(part.columns) ^ set(first.columns))
            raise ArgumentError(f"the releases must have the same columns; not all have: {', '.join(odd)}.")
        if (part.pairwise or first.pairwise) and part.encoding != first.encoding:
            raise ArgumentError(
                "pairwise releases can be combined if they have the same schema: columns in one order, the "
                "same kinds, bounds and terms, and gaps in the same columns (say gaps=True or gaps=False)."
            )
        if part.intercept != first.intercept:
            raise ArgumentError("the releases must all have a constant column, or none of them.")
        if part.unit != first.unit:
            raise ArgumentError("the releases must protect the same unit, with the same weighting.")
    if any(part.noise is None for part in parts):
        raise UnresolvedError(
            "one of the releases has no law of its noise: all of it was below the noise, or its method has "
            "none. Leave it out."
        )
    return parts


def _largest(receipts: Sequence[Receipt]) -> Receipt:
    """Return what anyone in the tables has spent at most: each is in one of them."""
    spent = [receipt.spent for receipt in receipts]
    cost = _most(spent)
    purpose = f"the largest of {len(receipts)} releases of tables with nobody in common"
    limit = _most([receipt.limit for receipt in receipts])
    private = all(receipt.private for receipt in receipts)
    return Receipt(limit, (Charge(purpose, cost),), private=private)


def _most(costs: Sequence[PrivacyCost]) -> PrivacyCost:
    return PrivacyCost(
        max(cost.rho for cost in costs),
        max(cost.delta for cost in costs),
        gaussian=all(cost.gaussian for cost in costs),
    )


def _common_delta(parts: Sequence[Release]) -> Fraction | None:
    deltas = {part.provenance.delta for part in parts}
    return deltas.pop() if len(deltas) == 1 else None


def _rows_beyond(diagnostics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the numbers of rows beyond the regions; what one cannot explain, all cannot."""
    told = [one["rows_beyond"] for one in diagnostics if isinstance(one.get("rows_beyond"), Mapping)]
    if not told:
        return {}
    return {
        "rows_beyond": {
            "about": sum(float(one["about"]) for one in told),
            "at_most": sum(float(one["at_most"]) for one in told),
            "explained": all(one.get("explained") is not False for one in told),
            "columns": list(dict.fromkeys(name for one in told for name in one.get("columns", ()))),
        }
    }


def _likeness(matrix: Array, moment: Array) -> float:
    """Return how large one table's second moment is beside that of all, on average over directions."""
    ratios = np.linalg.eigvalsh(_whitened(moment, _root(matrix)))
    return float(np.mean(np.maximum(ratios, 0.0)))


def _scaled_loss(law: LossLaw, share: float, likeness: float, order: Sequence[int]) -> LossLaw:
    """Return what clipping took from one table, as a part of all rows.

    Rows without a direction of their own are taken to lie as all rows do, but for their size.
    """
    along = law.along
    if along is None:
        law = replace(law, radius=law.radius * math.sqrt(likeness))
    scale = share * (likeness if along is None else 1.0)
    return replace(
        law,
        restored=law.restored * scale,
        restored_constant=law.restored_constant * share,
        along=None if along is None else along[list(order)],
    )


def _root(matrix: Array) -> Array:
    """Return R with ``R R^T`` the matrix, invertible: directions without any are given next to nothing."""
    # A column of zeros has no scale of its own, and the square of next to nothing must not be zero.
    padded = matrix + np.diag(np.where(np.diag(matrix) > 0, 0.0, np.finfo(np.float64).tiny))
    return square_root(padded, _LEAST_SHARE)


def _matrix_root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def _whitened(matrix: Array, root: Array) -> Array:
    """Return the matrix in the coordinates that a root maps back from."""
    half = np.linalg.solve(root, matrix)
    white = np.linalg.solve(root, half.T)
    symmetric: Array = (white + white.T) / 2
    return symmetric
