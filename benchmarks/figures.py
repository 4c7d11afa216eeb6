"""Figures that pages and the README show, taken from ``benchmarks/results``: a figure stands in one place.

    python benchmarks/figures.py    # brings the README up to date

Pages of the site say ``{{ name }}`` for one of `measured`. The README, which is read as it is, has it between
``<!-- measured: name -->`` and ``<!-- end -->``; a test fails where the two differ.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from functools import cache
from pathlib import Path

import figures_default
import figures_methods
import figures_privacy
import figures_releases
import figures_validation

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
WIDTH = 118

_ROOMS = (figures_default, figures_methods, figures_privacy, figures_releases, figures_validation)
_BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@cache
def measured() -> dict[str, str]:
    """Return every figure by its name, as Markdown: what each public function of these modules returns."""
    return {
        name: str(maker())
        for room in _ROOMS
        for name, maker in inspect.getmembers(room, inspect.isfunction)
        if maker.__module__ == room.__name__ and not name.startswith("_")
    }


def filled(text: str) -> str:
    """Return a text with every marked block as the results have it."""
    known = measured()

    def fill(block: re.Match[str]) -> str:
        content = known[block[2]]
        if not content.startswith("|"):
            content = textwrap.fill(content, WIDTH, break_long_words=False, break_on_hyphens=False)
        return f"{block[1]}{content}\n{block[4]}"

    return _BLOCK.sub(fill, text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text()))
