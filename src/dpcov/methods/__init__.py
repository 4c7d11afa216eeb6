"""Methods: private estimators of a second-moment matrix, by name.

They talk to a curator and nothing else. One algorithm, one file, one citation.
"""

from __future__ import annotations

from dpcov.checks import choice
from dpcov.methods.estimate import Estimate
from dpcov.methods.method import Method
from dpcov.methods.registry import METHODS
from dpcov.tables import html_table

__all__ = ["Estimate", "Method", "find_method", "methods"]


class _Methods(tuple[Method, ...]):
    """Methods that a notebook shows as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        head = ["method", "status", "guarantee", "needs", "assumes", "citation"]
        lines = [[one.name, one.status, one.privacy, one.needs, one.assumes, one.citation] for one in self]
        return html_table("dpcov methods", head, lines, [], text=True)


def methods() -> tuple[Method, ...]:
    """Return every method, with its citation, its guarantee and what it needs.

    Some stand here for their rate alone: ``method.available`` is then False and ``method.reason`` says why.

    Examples
    --------
    >>> import dpcov
    >>> [method.name for method in dpcov.methods() if method.vetted and method.available]
    ['whitening', 'recursive', 'aggregate', 'gaussian', 'coinpress', 'preconditioning', 'unbounded', \
'separate', 'adaptive']
    """
    return _Methods(METHODS)


def find_method(name: str) -> Method:
    """Return the method called `name`, or raise an `ArgumentError` with the nearest name.

    Examples
    --------
    >>> from dpcov.methods import find_method
    >>> find_method("whitening").needs
    'nothing'
    """
    by_name = {method.name: method for method in METHODS}
    return by_name[choice(name, "method", list(by_name))]
