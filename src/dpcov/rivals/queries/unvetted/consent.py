"""Consent to arithmetic that is not exact."""

from __future__ import annotations

from dpcov.core import ArgumentError


def check_consent(*, allow_unvetted: bool) -> None:
    """Raise an `ArgumentError` unless the caller said ``allow_unvetted=True``."""
    if allow_unvetted is not True:
        raise ArgumentError("this query computes with floating point; it needs allow_unvetted=True.")
