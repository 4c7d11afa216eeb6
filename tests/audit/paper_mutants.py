"""Broken variants of the paper's code: one line each, and the tests that must fail with it.

A mutant is a text that stands once in a file, and what stands there instead. ``test_paper_mutants.py`` runs
the tests on a copy of the source with each of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One change of one file below ``src/dpcov``, and the tests that notice."""

    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


_REPLAY = ("paper/test_recursive_replay.py",)
_RECURSIVE = ("paper/test_recursive.py",)
_THEORY = ("paper/theory/test_recursion.py",)
_SIZES = ("paper/theory/test_sample_size.py",)
_GROUPS = ("paper/queries/test_groups.py",)
_NOISE = ("paper/queries/test_multiplicative.py",)
_AGGREGATE = ("paper/test_aggregate.py::test_groups_agree_within_two_alpha_over_one_less_alpha",)
_PASS_MARK = ("paper/queries/test_aggregation.py::test_the_pass_mark_is_four_fifths",)
_PARAMETERS = ("paper/test_parameters.py::test_groups_agree_within_two_alpha_over_one_less_alpha",)
_EIGENVALUE = ("paper/test_eigenvalue.py",)
_BETA = ("paper/theory/test_subsamplability.py",)
_LAWS = ("paper/theory/test_distributions.py", "paper/theory/test_named.py")
_COMPARED = ("paper/theory/test_comparison.py",)
_OUTLIERS = ("paper/theory/test_outliers.py",)

PAPER_MUTANTS: dict[str, Mutant] = {
    "no chain of shrinkings": Mutant(
        "paper/recursive.py", "earlier = (*earlier, Shrinking(lattice_map, radius))", "", _REPLAY
    ),
    "the last step of the chain only": Mutant(
        "paper/recursive.py",
        "(*earlier, Shrinking(lattice_map, radius))",
        "(Shrinking(lattice_map, radius),)",
        _REPLAY,
    ),
    "psi doubled": Mutant("paper/recursive.py", "chosen.psi / size", "2 * chosen.psi / size", _REPLAY),
    "psi halved": Mutant("paper/recursive.py", "chosen.psi / size", "chosen.psi / size / 2", _REPLAY),
    "small directions halved": Mutant("paper/recursive.py", "large = values >=", "large = values <", _REPLAY),
    "no growth": Mutant("paper/recursive.py", "math.sqrt(GROWTH) * np.where", "np.where", _REPLAY),
    "rows not scaled by 1 - alpha": Mutant(
        "paper/recursive.py", "math.sqrt(1 / ((1 - alpha) * least))", "math.sqrt(1 / least)", _REPLAY
    ),
    "lambda not divided by 1 + alpha": Mutant(
        "paper/recursive.py", "return found / (1 + alpha)", "return found", _RECURSIVE
    ),
    "the whole budget in every round": Mutant(
        "paper/recursive.py",
        "each = curator.remaining.rho / course.releases",
        "each = curator.remaining.rho / (course.releases + 1)",
        _RECURSIVE,
    ),
    "guaranteed error halved": Mutant(
        "paper/recursive.py", '"guaranteed_error": error,', '"guaranteed_error": error / 2,', _RECURSIVE
    ),
    "a promise for the paper's constants": Mutant(
        "paper/recursive.py", 'math.inf if constants == "paper" else ', "", _RECURSIVE
    ),
    "hopeless groups asked all the same": Mutant(
        "paper/eigenvalue.py", "if n_groups >= bucket_threshold(epsilon, delta):", "if n_groups:", _EIGENVALUE
    ),
    "eta 0.6": Mutant(
        "paper/theory/recursion.py",
        "REPAIRED = RecursionConstants(eta=0.5",
        "REPAIRED = RecursionConstants(eta=0.6",
        _REPLAY,
    ),
    "the paper's eta 0.6": Mutant(
        "paper/theory/recursion.py",
        "PAPER = RecursionConstants(eta=0.5",
        "PAPER = RecursionConstants(eta=0.6",
        _REPLAY,
    ),
    "C = 320": Mutant("paper/theory/recursion.py", "stopping=550", "stopping=320", _REPLAY),
    "the paper's C = 320": Mutant("paper/theory/recursion.py", "stopping=640", "stopping=320", _REPLAY),
    "one round too few": Mutant(
        "paper/theory/recursion.py",
        "return self.shrinking_rounds + 1",
        "return self.shrinking_rounds",
        _THEORY,
    ),
    "noise of rounds not looked at": Mutant(
        "paper/theory/recursion.py", "    if plan.shrinking_rounds:", "    if False:", _THEORY
    ),
    "half the norm of the noise": Mutant(
        "paper/theory/recursion.py",
        "return math.sqrt(2 * count(n_columns",
        "return math.sqrt(count(n_columns",
        _THEORY,
    ),
    "rows of a distribution without 1 - g": Mutant(
        "paper/theory/sample_size.py",
        "distribution.least_eigenvalue * (1 - each)",
        "distribution.least_eigenvalue",
        _SIZES,
    ),
    "beta without the logarithm": Mutant(
        "paper/theory/subsamplability.py", "(1 + 1 / size + math.log(ratio))", "(1 + 1 / size)", _BETA
    ),
    "the tail of large betas": Mutant(
        "paper/theory/subsamplability.py", "max(b + b * b, -math.log1p(-b))", "(b + b * b)", _BETA
    ),
    "agreement within 2 alpha": Mutant(
        "paper/aggregate.py", "distance = 2 * alpha / (1 - alpha)", "distance = 2 * alpha", _AGGREGATE
    ),
    "subsamplability within 2 alpha": Mutant(
        "paper/parameters.py", "2 * share / (1 - share),", "2 * share,", _PARAMETERS
    ),
    "a pass mark of one half": Mutant(
        "paper/queries/multiplicative.py",
        "LEAST_AGREEMENT = Fraction(4, 5)",
        "LEAST_AGREEMENT = Fraction(1, 2)",
        _PASS_MARK,
    ),
    "all weights 1": Mutant(
        "paper/queries/multiplicative.py",
        "min(compared, max(0, _WEIGHT_SLOPE * int(count) - _WEIGHT_START * compared))",
        "compared",
        _NOISE,
    ),
    "weights from one half on": Mutant(
        "paper/queries/multiplicative.py",
        "_WEIGHT_SLOPE, _WEIGHT_START = 10, 6",
        "_WEIGHT_SLOPE, _WEIGHT_START = 10, 5",
        _NOISE,
    ),
    "twice the slope": Mutant(
        "paper/queries/multiplicative.py",
        "_WEIGHT_SLOPE, _WEIGHT_START = 10, 6",
        "_WEIGHT_SLOPE, _WEIGHT_START = 20, 12",
        _NOISE,
    ),
    "half the change of the mean": Mutant(
        "paper/queries/multiplicative.py",
        "change = _CHANGE * (closeness + 1) / least_weight",
        "change = _CHANGE * (closeness + 1) / least_weight / 100",
        _NOISE,
    ),
    "arithmetic for nothing": Mutant(
        "paper/queries/multiplicative.py", " - _arithmetic_delta(n_columns, epsilon)", "", _NOISE
    ),
    "compared groups for nothing": Mutant(
        "paper/queries/multiplicative.py", "delta * (1 - CHANCE_SHARE)", "delta", _NOISE
    ),
    "a quarter of the comparisons": Mutant(
        "paper/queries/groups.py", "2 * half + 1", "2 * (half // 4) + 1", _GROUPS
    ),
    "one side of the ring": Mutant(
        "paper/queries/groups.py", "            counts[others] += close\n", "", _GROUPS
    ),
    "an open ring": Mutant(
        "paper/queries/groups.py",
        "    counts[: len(counts) - n_groups] += counts[n_groups:] - 1\n",
        "",
        _GROUPS,
    ),
    "one end of the distance": Mutant(
        "paper/queries/groups.py", " & (least * (1 + distance) >= 1)", "", _GROUPS
    ),
    "too few groups searched all the same": Mutant(
        "paper/search.py",
        "if searched_groups(curator.n_rows // size, epsilon):",
        "if size:",
        ("paper/test_recursive.py::test_bad_arguments_are_refused_before_anything_is_spent",),
    ),
    "a Pareto law of another shape": Mutant(
        "paper/theory/pareto.py", "rest = shape - power", "rest = shape - power - 1", _LAWS
    ),
    "rows stretched by variances": Mutant(
        "paper/theory/named.py", "np.sqrt(values / base", "(values / base", _LAWS
    ),
    "the default predicted with the whole budget": Mutant(
        "paper/theory/prediction.py", "rho * _RELEASED_SHARE", "rho", _COMPARED
    ),
    "one release compared without 1 - g": Mutant(
        "paper/theory/comparison.py",
        "least = distribution.least_eigenvalue * (1 - error)",
        "least = distribution.least_eigenvalue",
        _COMPARED,
    ),
    "aggregation stands more outliers below": Mutant(
        "paper/theory/outliers.py", "if recursion > aggregation", "if recursion < aggregation", _OUTLIERS
    ),
    "outliers of any size are harmless": Mutant(
        "paper/theory/outliers.py", "largest <= 1 / (7 * eta) + 1", "largest <= 1 / eta + 1", _OUTLIERS
    ),
    "too near by the Frobenius norm": Mutant(
        "paper/queries/groups.py",
        "lengths <= (distance / (1 + distance)) ** 2",
        "lengths <= (1 + distance) ** 2",
        _GROUPS,
    ),
}
"""By what was changed. The first of each kind were found to pass the tests of an earlier version."""
