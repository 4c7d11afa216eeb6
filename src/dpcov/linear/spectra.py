"""Components, spectra and white coordinates as they are answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcov.arrays import Array
from dpcov.core import ArgumentError
from dpcov.linear.answers import Answer
from dpcov.linear.rows import read_rows
from dpcov.pictures import draw_biplot, draw_spectrum
from dpcov.tables import make_frame


@dataclass(frozen=True, eq=False, repr=False)
class Components:
    """Principal components of the correlation, or of the covariance.

    Attributes
    ----------
    columns : tuple of str
        The columns that they are components of.
    standardized : bool
        Whether columns were brought to a variance of 1 first.
    mean, scale : ndarray
        What is subtracted from rows, and what they are divided by, before they get scores.
    n_above_noise : int or None
        How many components have a variance above what noise alone could make; None if its law is not known.
    variances : Answer
        The variance of each component, largest first.
    explained : Answer
        Its share of the total variance.
    directions : Answer
        One component a line; the coefficient of largest size is positive.
    loadings : Answer
        Directions times the standard deviation of their component: of standardized columns, the correlation
        of each column with the component.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> found = made.pca()
    >>> found.directions.labels
    (('PC1', 'PC2'), ('height', 'weight'))
    >>> found.variances.values.round(1)
    array([1.8, 0.2])
    >>> found.scores({"height": 190, "weight": 90})[:, 0].round()
    array([4.])
    """

    columns: tuple[str, ...]
    standardized: bool
    mean: Array
    scale: Array
    n_above_noise: int | None
    variances: Answer
    explained: Answer
    directions: Answer
    loadings: Answer

    def scores(self, rows: Any) -> Array:
        """Return the coordinates of new rows along the components, one row a line.

        Columns of a table are found by name, those of an array by their order.
        """
        standard = (read_rows(rows, self.columns) - self.mean) / self.scale
        return np.asarray(standard @ self.directions.values.T)

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the columns as arrows along the first two components, and return the axes.

        Of standardized columns, an arrow that reaches the circle lies wholly in this plane. Grey is a column
        whose loadings on both components may be zero at `level`. Needs the extra ``plot``.
        """
        if len(self.variances) < 2:
            raise ArgumentError("the picture needs two components; ask for more of them.")
        told = np.any(self.loadings.differs_from_zero(level)[:2], axis=0)
        labels = [
            f"{name} ({share:.1%} of the variance)"
            for name, share in zip(self.explained.labels[0][:2], self.explained.values[:2], strict=True)
        ]
        return draw_biplot(
            self.columns, self.loadings.values[:2], told, (labels[0], labels[1]), ax, circle=self.standardized
        )

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a dataframe: variances with their intervals, shares and directions, one component a line."""
        lower, upper = self.variances.interval(level)
        columns = {
            "variance": self.variances.values,
            "lower": lower,
            "upper": upper,
            "explained": self.explained.values,
        }
        directions = dict(zip(self.directions.labels[1], self.directions.values.T, strict=True))
        return make_frame({**columns, **directions}, self.variances.labels[0])

    def _above(self) -> str:
        if self.n_above_noise is None:
            return "how many components stand above the noise is not known"
        return f"{self.n_above_noise} of {len(self.columns)} components stand above the noise"

    def __repr__(self) -> str:
        return f"{self.variances!r}\n{self.directions!r}\n{self._above()}"

    def _repr_html_(self) -> str:
        return f"{self.variances._repr_html_()}{self.directions._repr_html_()}<p>{self._above()}</p>"


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """Eigenvalues of the correlation matrix, and how large noise alone would make them.

    Attributes
    ----------
    columns : tuple of str
        Those that stand above the noise by themselves.
    eigenvalues : Answer
        Largest first. They are the variances of uncorrelated combinations of standardised columns.
    floor : ndarray
        For each, what it must exceed to stand above the noise; NaN where the law of the noise is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> found = made.spectrum()
    >>> found.columns
    ('height', 'weight')
    >>> found.eigenvalues.values.round(1)
    array([1.8, 0.2])
    """

    columns: tuple[str, ...]
    eigenvalues: Answer
    floor: Array

    def plot(self, ax: Any = None, level: float = 0.95) -> Any:
        """Draw the eigenvalues over the floor of the noise, and return the axes; needs the extra ``plot``."""
        return draw_spectrum(self.eigenvalues.values, self.eigenvalues.interval(level), self.floor, ax)

    def __repr__(self) -> str:
        return repr(self.eigenvalues)

    def _repr_html_(self) -> str:
        return self.eigenvalues._repr_html_()


@dataclass(frozen=True, eq=False)
class Whitening:
    """A map to coordinates in which the table has mean zero and the identity as covariance.

    Attributes
    ----------
    columns : tuple of str
        The columns of the rows that it takes.
    mean : ndarray, shape (d,)
        Subtracted from the rows first.
    matrix : ndarray, shape (d, d)
        The symmetric inverse root of the correlation, times one over the standard deviations. Each white
        coordinate then belongs to a column, and units do not matter (ZCA-cor of Kessy, Lewin and Strimmer
        2018).

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> whitening = made.whiten()
    >>> whitening.transform([[170, 62]]).round(1) + 0.0
    array([[0., 0.]])
    """

    columns: tuple[str, ...]
    mean: Array
    matrix: Array

    def transform(self, rows: Any) -> Array:
        """Return rows in white coordinates: a table of these columns, or an array in their order."""
        return np.asarray((read_rows(rows, self.columns) - self.mean) @ self.matrix.T)
