"""Methods: private estimators of a second-moment matrix, by name.

They talk to a curator and nothing else. One algorithm, one file, one citation.
"""

from __future__ import annotations

import difflib

from dpcov.core import ArgumentError
from dpcov.methods.estimate import Estimate, NoiseLaw
from dpcov.methods.method import Method
from dpcov.methods.registry import METHODS
from dpcov.methods.whitening.tail import TailLaw

__all__ = ["Estimate", "Method", "NoiseLaw", "TailLaw", "find_method", "methods"]


def methods() -> tuple[Method, ...]:
    """Return every method, with its citation, its guarantee and what it needs.

    Some stand here for their rate alone: ``method.available`` is then False and ``method.reason`` says why.

    Examples
    --------
    >>> import dpcov
    >>> [method.name for method in dpcov.methods()][0]
    'whitening'
    """
    return METHODS


def find_method(name: str) -> Method:
    """Return the method called `name`, or raise an `ArgumentError` that lists all that can be run."""
    for method in METHODS:
        if method.name == name:
            if not method.available:
                raise ArgumentError(
                    f"method '{name}' cannot be run: {method.reason}. "
                    f"It is listed for its rate: {method.rate}."
                )
            return method
    names = [method.name for method in METHODS if method.available]
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise ArgumentError(f"method '{name}' does not exist.{hint} There are: {', '.join(names)}.")
