"""Check the built site: links lead somewhere, nothing comes from the network, announced errors occur.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places in it that a link may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag links to, and its name."""
        for name, value in attrs:
            if value is None:
                continue
            if name in {"href", "src"}:
                self.links.add(value)
                if tag != "a":
                    self.loaded.add(value)
            elif name == "id":
                self.places.add(value)


def broken_links(site: Path) -> list[str]:
    """Return every link that leads to no file or place of the site, or loads a part of a page from elsewhere.

    Parameters
    ----------
    site : path
        The folder of the built site.
    """
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in paths}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    broken.append(f"{path.relative_to(site.resolve())}: {link}, from the network")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            lost = parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places
            if not target.exists() or lost:
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken


def missing_errors(site: Path, sources: Path) -> list[str]:
    """Return every page with a cell that is to raise an error and did not.

    A cell tagged ``raises-exception`` may also succeed, without a warning: the text around it would be wrong.

    Parameters
    ----------
    site : path
        The folder of the built site.
    sources : path
        The folder of its pages.
    """
    wrong = []
    for page in sorted(sources.rglob("*.md")):
        built = site / page.relative_to(sources).with_suffix(".html")
        announced = page.read_text().count("raises-exception")
        if announced and built.exists() and built.read_text().count("output traceback") != announced:
            wrong.append(f"{page.relative_to(sources)}: a cell that is to raise an error does not")
    return wrong


if __name__ == "__main__":
    built_site = Path(sys.argv[1])
    found = broken_links(built_site) + missing_errors(built_site, Path(__file__).parent)
    sys.exit("\n".join(["These links lead nowhere, or errors are missing:", *found]) if found else 0)
