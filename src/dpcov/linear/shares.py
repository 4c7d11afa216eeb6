"""Shares: means of columns that hold 0 and 1 alone.

Such a column D is its own square, so that two entries of the second moment tell its mean: that of D with the
constant, and that of D with itself. Their noise differs: where few rows have a 1, the second has much less.
They are pooled by their noise,

    m = ((1 - w) S_Dc + w S_DD) / S_cc,

with the w of least variance under the law of the noise. Clipping shrinks a row as a whole and so takes the
same from both; but a method that restores what was lost does so direction by direction. So the pooled mean is
taken where its error is smaller with all of that counted, and the plain one elsewhere. The rows of a column
that is not resolved may all be clipped, so that its entry with itself is next to nothing, with next to no
noise: that is not pooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcov.arrays import Array
from dpcov.linear.geometry import Geometry
from dpcov.linear.responses import Response
from dpcov.linear.uncertainty import ErrorLaw


def pool_shares(
    geometry: Geometry, law: ErrorLaw, places: Sequence[int], *, sampling: bool
) -> tuple[Array, Response, list[int]]:
    """Return means of columns of 0 and 1 with their responses, for those that gain by it.

    Parameters
    ----------
    geometry : Geometry
        The released matrix.
    law : ErrorLaw
        The law of its errors.
    places : sequence of int
        The columns, each of them resolved.
    sampling : bool
        Whether errors will include sampling error. That of a share is that of the plain mean.

    Returns
    -------
    ndarray, Response, list of int
        The means, how they respond, and which of `places` they are for.
    """
    plain = geometry.of_mean()
    last = len(geometry.mean)
    means, responses, kept = [], [], []
    for place in places:
        mean, complete = geometry.mean[place], geometry.complete
        with_constant = np.array([[0.0, 0.5], [0.5, -mean]]) / complete
        with_itself = np.array([[1.0, 0.0], [0.0, -mean]]) / complete
        noise, _, _ = geometry.products_of_gradients(np.array([with_constant, with_itself]), [place, last])
        spread = float(noise[0, 0] + noise[1, 1] - 2 * noise[0, 1])
        weight = float(np.clip((noise[0, 0] - noise[0, 1]) / spread, 0.0, 1.0)) if spread > 0 else 0.0
        gradient = (1 - weight) * with_constant + weight * with_itself
        pooled = geometry.of_gradients(gradient[None], [place, last])
        own = plain.select(np.array([place]))
        errors = [float(law.standard_error(one, sampling=False)[0]) for one in (pooled, own)]
        if not errors[0] < errors[1]:
            continue
        if sampling:
            pooled = replace(pooled, own=own.own, cross=own.cross)
        means.append((1 - weight) * mean + weight * geometry.moment[place, place] / complete)
        responses.append(pooled)
        kept.append(place)
    if not kept:
        return np.zeros(0), plain.select(np.zeros(0, dtype=int)), kept
    parts = [one.parts() for one in responses]
    joined = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    return np.array(means), Response(**joined), kept
