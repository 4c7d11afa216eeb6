"""The check of the site's links."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "docs" / "check_links.py"
FOUND = importlib.util.spec_from_file_location("check_links", SCRIPT)
assert FOUND is not None
assert FOUND.loader is not None
check_links = importlib.util.module_from_spec(FOUND)
FOUND.loader.exec_module(check_links)


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ("<a href='b/other.html#here'>", False),
        ("<a href='b/other.html#nowhere'>", True),
        ("<a href='missing.html'>", True),
        ("<a href='#top'>", False),
        ("<a href='#gone'>", True),
        ("<a href='https://example.org/'>", False),
        ("<img src='data:image/png;base64,AA'>", False),
        ("<script src='https://example.org/a.js'></script>", True),
        ("<script src='b/missing.js'></script>", True),
    ],
)
def test_links_that_lead_nowhere_are_found(tmp_path: Path, link: str, broken: bool) -> None:  # noqa: FBT001
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "other.html").write_text("<p id='here'></p>")
    (tmp_path / "index.html").write_text(f"<h1 id='top'></h1>{link}")
    assert len(check_links.broken_links(tmp_path)) == broken


@pytest.mark.parametrize(("output", "wrong"), [("<div class='output traceback'>", 0), ("<p>42</p>", 1)])
def test_errors_that_a_page_announces_must_occur(tmp_path: Path, output: str, wrong: int) -> None:
    site, sources = tmp_path / "site", tmp_path / "docs"
    site.mkdir()
    sources.mkdir()
    (sources / "page.md").write_text(":tags: [raises-exception]")
    (site / "page.html").write_text(output)
    assert len(check_links.missing_errors(site, sources)) == wrong
