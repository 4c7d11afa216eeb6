"""Figures of ``arena_validation.py``: reimplementations beside their papers and public libraries."""

from __future__ import annotations

from typing import Any

from figure_tables import results, short, table

_ROUNDS = (1, 2, 3, 4)
_REVISITED = {"gaussian": "Gaussian mechanism", "separate": "separate", "adaptive": "adaptive"}
_SIZES = ((10, 50_000), (50, 50_000), (200, 50_000), (200, 5_000))
_SCALES = {"1": "all columns alike", "0.1": "scales 1 to 0.1"}
_SOURCES = {"ours": "ours", "opendp": "OpenDP", "diffprivlib": "diffprivlib"}


def _errors() -> Any:
    return results("arena_validation").set_index(["method", "setting", "source"])["error"]


def _beside(method: str, setting: str) -> str:
    found = _errors()
    return " / ".join(short(found[method, setting, source], 3) for source in ("published", "ours"))


def validated_coinpress() -> str:
    """Return errors of CoinPress as published and as measured here."""
    lines = [
        [f"n = {n:,}", *(_beside("coinpress", f"n={n} t={rounds}") for rounds in _ROUNDS)]
        for n in (3_000, 8_000)
    ]
    setting = "published / ours; d = 10, rho = 0.5, bound 10 sqrt(10)"
    return table([setting, *(f"t = {rounds}" for rounds in _ROUNDS)], lines)


def validated_revisited() -> str:
    """Return errors of the separate and adaptive mechanisms as published and as measured here."""
    lines = [
        [
            f"d = {d}, n = {n:,}",
            *(_beside(method, f"d={d} n={n}") for method in _REVISITED),
            _of_the_default(f"d={d} n={n}"),
        ]
        for d, n in _SIZES
    ]
    head = ["published / ours; rho = 0.1, Zipf rows", *_REVISITED.values(), "default, told nothing"]
    return table(head, lines)


def _of_the_default(setting: str) -> str:
    found = results("arena_validation").set_index(["method", "setting", "source"])
    line = found.loc["whitening", setting, "ours"]
    return f"{short(line['error'], 2)} +- {short(line['spread'], 1)}"


def validated_exponential() -> str:
    """Return errors of the exponential mechanism here and in public libraries."""
    found = _errors()
    lines = [
        [
            title,
            *(
                short(found["exponential", f"d=5 n=20000 smallest scale {scale}", source], 2)
                for source in _SOURCES
            ),
        ]
        for scale, title in _SCALES.items()
    ]
    return table(["Frobenius error; epsilon = 1, d = 5, n = 20,000", *_SOURCES.values()], lines)
