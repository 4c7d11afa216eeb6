"""Whether a step of a pipeline before a private one voids its guarantee."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags


class NotPrivateStepWarning(UserWarning):
    """A step before a private estimator learns from the rows without privacy."""


def warn_of_earlier_steps(estimator: Any, private: type) -> None:
    """Warn if `estimator` is being fitted by a pipeline with a step before it that learns without privacy.

    What such a step gives depends on all rows in a way that nothing bounds: one row can change every row that
    the private estimator sees. A pipeline does not tell its steps that they are in one, so that it is looked
    for among the callers.
    """
    leaking = [name for pipeline in _pipelines() for name in _learning_steps(pipeline, estimator, private)]
    if leaking:
        names = ", ".join(dict.fromkeys(leaking))
        warnings.warn(
            f"{names} before this {type(estimator).__name__} learns from the rows without privacy, "
            "which voids the guarantee: use PrivateScaler or PrivateImputer, or steps that learn nothing, "
            "such as FunctionTransformer.",
            NotPrivateStepWarning,
            stacklevel=5,
        )


def _pipelines() -> Iterator[Pipeline]:
    frame = inspect.currentframe()
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Pipeline) and frame.f_code.co_name == "fit":
            yield found
        frame = frame.f_back


def _learning_steps(pipeline: Pipeline, estimator: Any, private: type) -> Iterator[str]:
    """Yield the kinds of the steps before the estimator that learn, and not privately."""
    steps = [step for _, step in pipeline.steps]
    # With a cache a pipeline fits a clone of its step, which is of the same kind.
    own = next((i for i, step in enumerate(steps) if step is estimator), None)
    if own is None:
        own = next((i for i, step in enumerate(steps) if type(step) is type(estimator)), 0)
    for step in steps[:own]:
        if step in (None, "passthrough") or isinstance(step, private):
            continue
        if get_tags(step).requires_fit:
            yield type(step).__name__
