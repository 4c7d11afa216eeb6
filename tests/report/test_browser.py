"""The page in a real browser. Screenshots go to report-screenshots/, for a person to look at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from helpers.releases import AWKWARD, small_release, wide_release
from playwright.sync_api import Browser, Page, sync_playwright

from dpcov.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = Path(__file__).parents[2] / "report-screenshots"

if CHROMIUM is None and not os.environ.get("DPCOV_NEEDS_BROWSER"):
    pytest.skip("no Chromium is installed: apt-get install chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("pages")
    SCREENSHOTS.mkdir(exist_ok=True)
    made = {5: folder / "5.html", 500: folder / "500.html"}
    write_report(small_release(), made[5], name="people.dpcov")
    write_report(wide_release(), made[500], name="wide.dpcov")
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "the report must be tested in Chromium: apt-get install chromium"
    # In a container there is no user namespace for the sandbox, and the pages are our own.
    options: dict[str, Any] = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as running:
        yield running


class Visit:
    """A page as opened, and everything that went wrong or out of it."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.noise: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1000, "height": 900}, **options)
        self.page.on("console", lambda message: self.noise.append(message.text))
        self.page.on("pageerror", lambda error: self.noise.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def outside(self) -> list[str]:
        """Requests for anything but the page and what it carries."""
        return [url for url in self.requests if url != self.page.url and not url.startswith("data:")]

    def background(self) -> str:
        """The colour behind the text."""
        colour: str = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("columns", [5, 500])
def test_the_page_shows_its_figures_and_asks_for_nothing(
    browser: Browser, pages: dict[int, Path], columns: int, scheme: str
) -> None:
    visit = Visit(browser, pages[columns], color_scheme=scheme)
    for name in ("spectrum", "heatmap"):
        box = visit.page.locator(f"#{name}").bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 150
    assert visit.page.locator("#heatmap-cells").evaluate("picture => picture.href.baseVal.length") > 100
    assert visit.page.locator("#column-table tbody tr").count() == columns
    # No part of the page is wider than the window.
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visit.background() == ("rgb(15, 19, 24)" if scheme == "dark" else "rgb(255, 255, 255)")
    visit.page.screenshot(path=SCREENSHOTS / f"report-{columns}-{scheme}.png", full_page=True)
    assert not visit.noise
    assert not visit.outside()
    visit.page.close()


def test_the_heatmap_is_drawn_in_the_right_places(browser: Browser, pages: dict[int, Path]) -> None:
    visit = Visit(browser, pages[500], color_scheme="light")
    box = visit.page.locator("#heatmap-cells").bounding_box()
    assert box is not None
    reading = visit.page.locator("#reading")
    step = box["width"] / 500
    visit.page.locator("#heatmap").scroll_into_view_if_needed()
    box = visit.page.locator("#heatmap-cells").bounding_box()
    assert box is not None
    visit.page.mouse.move(box["x"] + step * 20.5, box["y"] + step * 7.5)
    assert "column 007 and column 020: 0." in reading.inner_text()
    assert "below the noise" not in reading.inner_text()
    # The picture itself, pixel by pixel: inside a block the cells are red.
    visit.page.evaluate(
        """async () => {
            const picture = new Image();
            picture.src = document.getElementById("heatmap-cells").href.baseVal;
            await picture.decode();
            const canvas = document.createElement("canvas");
            canvas.width = picture.width; canvas.height = picture.height;
            const drawing = canvas.getContext("2d");
            drawing.drawImage(picture, 0, 0);
            window.pixel = (x, y) => [...drawing.getImageData(x, y, 1, 1).data];
        }"""
    )
    inside: list[int] = visit.page.evaluate("pixel(20, 7)")
    assert inside[0] > inside[2] + 50
    assert inside[3] > visit.page.evaluate("pixel(220, 7)")[3]
    assert visit.page.evaluate("pixel(499, 499)") == [196, 60, 40, 255]
    visit.page.close()


def test_search_sort_and_theme(browser: Browser, pages: dict[int, Path]) -> None:
    visit = Visit(browser, pages[500], color_scheme="light")
    page = visit.page
    page.fill("#search", "column 42")
    assert page.locator("#column-table tbody tr:visible").count() == 10
    assert page.locator("#found").inner_text() == "10 of 500"
    page.fill("#search", "")
    page.click("th button[data-key=mean]")
    cells = page.locator("#column-table tbody td:nth-of-type(1)").all_inner_texts()
    means = [float(cell.replace(",", "")) for cell in cells]
    assert means == sorted(means)
    assert page.locator("th[aria-sort=ascending]").inner_text() == "mean"
    page.click("#theme")
    assert visit.background() == "rgb(15, 19, 24)"
    page.click("#theme")
    assert visit.background() == "rgb(255, 255, 255)"
    assert not visit.noise
    page.close()


def test_a_name_cannot_become_markup(browser: Browser, pages: dict[int, Path]) -> None:
    visit = Visit(browser, pages[5])
    assert visit.page.locator("img").count() == 0
    assert AWKWARD in visit.page.locator("#column-table").inner_text()
    assert not visit.noise
    visit.page.close()


class Listener(BaseHTTPRequestHandler):
    """Counts who calls."""

    calls: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.calls.append(self.path)
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture
def listening() -> Iterator[str]:
    Listener.calls.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_policy_lets_nothing_out(
    browser: Browser, pages: dict[int, Path], tmp_path: Path, listening: str
) -> None:
    sent = f'<img src="{listening}/a.png"><script>document.title = "ran"</script>'
    broken = tmp_path / "broken.html"
    broken.write_text(pages[5].read_text().replace("<footer>", f"{sent}<footer>"))
    visit = Visit(browser, broken)
    assert len(visit.noise) >= 2
    assert all("Content Security Policy" in line for line in visit.noise)
    assert visit.page.title() == "people.dpcov: a private release"
    assert not Listener.calls
    visit.page.close()
    # Without the policy the same page does call, and does run what was put into it.
    broken.write_text(broken.read_text().replace("Content-Security-Policy", "no-policy"))
    visit = Visit(browser, broken)
    assert Listener.calls == ["/a.png"]
    assert visit.page.title() == "ran"
    visit.page.close()
