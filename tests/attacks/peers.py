"""Mechanisms of others that known attacks work on."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable

import numpy as np

Noisy = Callable[[float], float]


def numpy_laplace(value: float) -> float:
    """Add Laplace noise as a textbook does."""
    return float(value + np.random.default_rng().laplace())


def numpy_normal(value: float) -> float:
    """Add normal noise as a textbook does."""
    return float(value + np.random.default_rng().normal())


def diffprivlib_gaussian() -> Noisy | None:
    """Return diffprivlib's Gaussian mechanism for sensitivity 1, or None if it cannot be loaded."""
    found = importlib.util.find_spec("diffprivlib")
    if found is None or found.submodule_search_locations is None:
        return None
    # Its mechanisms alone: its models want an older scikit-learn than may be here.
    package = types.ModuleType("diffprivlib")
    package.__path__ = list(found.submodule_search_locations)
    known = sys.modules.get("diffprivlib")
    sys.modules["diffprivlib"] = package
    try:
        from diffprivlib.mechanisms import Gaussian  # noqa: PLC0415
    except ImportError:
        return None
    finally:
        if known is None:
            del sys.modules["diffprivlib"]
        else:
            sys.modules["diffprivlib"] = known
    mechanism = Gaussian(epsilon=0.9, delta=0.1, sensitivity=1.0)
    return lambda value: float(mechanism.randomise(value))
