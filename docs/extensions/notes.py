"""Proof notes stand beside the code, notebooks in ``examples``; the site has copies, and links follow."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dpcov"
LINK = re.compile(r"\]\((?:\.\./)+src/dpcov/([\w/-]+\.md)")
INDEX = """# Proofs

A note stands beside every mechanism in the code: what is claimed, under which preconditions, the proof, what
the machine's arithmetic does to it, and what was tested. Begin with the kernel.

```{toctree}
:maxdepth: 1

"""


def copy_notes(app: Sphinx) -> None:
    """Copy all notes, and list them."""
    folder = Path(app.srcdir) / "proofs"
    shutil.rmtree(folder, ignore_errors=True)
    notes = sorted(PACKAGE.rglob("*.md"), key=lambda note: ("core" not in note.parts, note.parts))
    for note in notes:
        place = folder / note.relative_to(PACKAGE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(note, place)
    names = [str(note.relative_to(PACKAGE).with_suffix("")) for note in notes]
    (folder / "index.md").write_text(INDEX + "\n".join(names) + "\n```\n")


def copy_notebooks(app: Sphinx) -> None:
    """Copy all notebooks; they run when the site is built."""
    folder = Path(app.srcdir) / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for notebook in (ROOT / "examples").glob("*.ipynb"):
        shutil.copyfile(notebook, folder / notebook.name)


def follow_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to notes lead to their copies."""
    del app
    up = "../" * page.count("/")
    source[0] = LINK.sub(lambda found: f"]({up}proofs/{found[1]}", source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Copy notes and notebooks before pages are found."""
    app.connect("builder-inited", copy_notes)
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", follow_links)
    return {"parallel_read_safe": True}
