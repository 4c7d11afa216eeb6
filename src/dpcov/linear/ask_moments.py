"""Moments that can be asked of a release: means, spreads, relations between columns."""

from __future__ import annotations

from collections.abc import Sequence

from dpcov.linear.answers import Answer
from dpcov.linear.description import Description, describe, standard_deviation
from dpcov.linear.levels import level_shares, means_by_level
from dpcov.linear.questions import Questions
from dpcov.linear.unresolved import Combination


class AsksMoments:
    """What has a released matrix, and so answers questions about moments. A part of ``dpcov.Release``."""

    @property
    def _questions(self) -> Questions:
        raise NotImplementedError

    @property
    def unresolved(self) -> tuple[Combination, ...]:
        """The independent combinations of columns that lie below the noise, each with a bound on its size.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> people = np.column_stack([people, people[:, 0] - 2 * people[:, 1]])
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight", "excess"])
        >>> [str(combination) for combination in made.unresolved]
        ['weight + 0.5 excess - 0.5 height']
        """
        return self._questions.unresolved

    @property
    def resolved(self) -> int | None:
        """How many independent combinations of columns stand above the noise.

        All but those in `unresolved`; None where the law of the noise is not known.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> people = np.column_stack([people, people[:, 0] - 2 * people[:, 1]])
        >>> dpcov.release(people, rho=1, columns=["height", "weight", "excess"]).resolved
        2
        """
        return self._questions.resolved

    def second_moment(self, *, sampling: bool = False) -> Answer:
        """Return the mean of ``x x^T`` over the rows; with an intercept, its column is the last.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> moment = made.second_moment()
        >>> moment.labels[0]
        ('height', 'weight', 'constant')
        >>> moment.values[2].round()
        array([170.,  62.,   1.])
        """
        return self._questions.second_moment(sampling=sampling)

    def mean(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the means.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.mean().values.round()
        array([170.,  62.])
        >>> lower, upper = made.mean(["weight"]).interval()
        >>> bool(61 < lower[0] < upper[0] < 63)
        True
        """
        return self._questions.mean(columns, sampling=sampling)

    def shares(self, category: str, *, sampling: bool = False) -> Answer:
        """Return the share of rows that have each level of a category, the first level too.

        Each is the best estimate by itself: together they need not be exactly 1.

        Examples
        --------
        >>> import pandas as pd
        >>> import dpcov
        >>> people = pd.DataFrame({"region": ["north", "south", "south", "east"] * 5000})
        >>> kinds = {"region": dpcov.category(["north", "south", "east"], other=False)}
        >>> made = dpcov.release(people, rho=1, columns=kinds)
        >>> made.shares("region").labels
        (('region[north]', 'region[south]', 'region[east]'),)
        >>> made.shares("region").values.round(2)
        array([0.25, 0.5 , 0.25])
        """
        return level_shares(self._questions, category, sampling=sampling)

    def mean_by(self, column: str, category: str) -> Answer:
        """Return the mean of a column for each level of a category, the first level too.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import dpcov
        >>> region = np.random.default_rng(0).choice(["north", "south"], 50_000)
        >>> wage = np.random.default_rng(1).normal(size=50_000) + np.where(region == "north", 30, 20)
        >>> kinds = {"region": dpcov.category(["north", "south"], other=False), "wage": dpcov.number(0, 100)}
        >>> people = pd.DataFrame({"region": region, "wage": wage})
        >>> dpcov.release(people, rho=1, columns=kinds).mean_by("wage", "region").values.round()
        array([30., 20.])
        """
        return means_by_level(self._questions, column, category)

    def variance(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the variances (the mean over rows, not divided by n - 1).

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.variance(["height"]).values.round(-1)
        array([100.])
        """
        return self._questions.variance(columns, sampling=sampling)

    def std(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the standard deviations: roots of `variance`, as their intervals are.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> round(made.std()["height"])
        10
        """
        return standard_deviation(self._questions, columns, sampling=sampling)

    def describe(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Description:
        """Return mean and standard deviation of each column, and the number of complete rows.

        Minimum, maximum and quantiles are not linear questions: a release cannot answer them.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.describe().mean.values.round()
        array([170.,  62.])
        """
        return describe(self._questions, columns, sampling=sampling)

    def covariance(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the covariance matrix (the mean over rows, not divided by n - 1); positive semidefinite.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.covariance().values.round(-1)
        array([[100.,  60.],
               [ 60.,  60.]])
        """
        return self._questions.covariance(columns, sampling=sampling)

    def correlation(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the correlations. A column whose own variance is within the noise has NaN, and a note.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.correlation().values.round(1)
        array([[1. , 0.8],
               [0.8, 1. ]])
        """
        return self._questions.correlation(columns, sampling=sampling)

    # As pandas calls them.
    var, cov, corr = variance, covariance, correlation

    def precision(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the inverse of the covariance.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
        >>> made.precision().values.round(2)
        array([[ 0.02, -0.02],
               [-0.02,  0.04]])
        """
        return self._questions.precision(columns, sampling=sampling)

    def partial_correlation(self, columns: Sequence[str] | None = None, *, sampling: bool = False) -> Answer:
        """Return the correlation of each pair of columns, given all the others.

        Examples
        --------
        >>> import numpy as np
        >>> import dpcov
        >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
        >>> people = np.column_stack([people, people[:, 1] + np.random.default_rng(1).normal(size=50_000)])
        >>> made = dpcov.release(people, rho=1, columns=["height", "weight", "next year's weight"])
        >>> np.abs(made.partial_correlation().values[0]).round(1)
        array([1. , 0.1, 0. ])
        """
        return self._questions.partial_correlation(columns, sampling=sampling)
