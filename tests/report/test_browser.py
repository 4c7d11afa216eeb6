"""The page in a real browser. Screenshots go to report-screenshots/, for a person to look at."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from helpers.releases import (
    AWKWARD,
    empty_release,
    hidden_release,
    hundred_release,
    small_release,
    wide_release,
)
from playwright.sync_api import Browser, Page, sync_playwright

import dpcov
from dpcov.core import PrivacyCost
from dpcov.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = Path(__file__).parents[2] / "report-screenshots"

if CHROMIUM is None and not os.environ.get("DPCOV_NEEDS_BROWSER"):
    pytest.skip("no Chromium is installed: apt-get install chromium", allow_module_level=True)


RELEASES: dict[str, Callable[[], dpcov.Release]] = {
    "normal": small_release,
    "empty": empty_release,
    "hidden": hidden_release,
    "hundred": hundred_release,
    "wide": wide_release,
}


class Pages(dict[str, Path]):
    """Reports by name, each written when it is first asked for: some take seconds."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._ledger = dpcov.Ledger.create(folder / "budget.db")
        self._ledger.add_dataset("people", epsilon=3, delta=1e-6)
        cost = PrivacyCost(Fraction(1, 100), gaussian=True)
        self._ledger.charge("people", cost, method="whitening", purpose="wages by age and region")

    def __missing__(self, name: str) -> Path:
        account, history = self._ledger.account("people"), self._ledger.history("people")
        paid = {"account": account, "history": history} if name == "normal" else {}
        path = self._folder / f"{name}.html"
        write_report(RELEASES[name](), path, name=f"{name}.dpcov", **paid)  # type: ignore[arg-type]
        self[name] = path
        return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    SCREENSHOTS.mkdir(exist_ok=True)
    return Pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "the report must be tested in Chromium: apt-get install chromium"
    # In a container there is no user namespace for the sandbox, and the pages are our own.
    options: dict[str, Any] = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as running:
        yield running


class Visit:
    """A page as opened, and everything that went wrong or out of it."""

    def __init__(self, browser: Browser, path: Path, width: int = 1000, **options: Any) -> None:
        self.noise: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, **options)
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


@pytest.fixture(scope="module")
def visits(browser: Browser, pages: dict[str, Path]) -> Callable[[str], Visit]:
    """Pages that are opened once, for tests that change nothing of them."""
    return cache(lambda name: Visit(browser, pages[name], color_scheme="light"))


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        *itertools.product(["normal"], [390, 1280], ["light", "dark"]),
        # Colours do not depend on what is shown.
        *itertools.product(["empty", "hidden", "hundred"], [390], ["dark"]),
        *itertools.product(["empty", "hidden", "hundred"], [1280], ["light"]),
    ],
)
def test_the_page_fits_its_window_and_asks_for_nothing(
    browser: Browser, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    visit = Visit(browser, pages[name], width, color_scheme=scheme)
    page = visit.page
    # No part of the page is wider than the window.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # No name of a column is broken: a line of the table is one line of text.
    heights = page.locator("table:not(.words) tbody th").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    # On a phone the interval stands below its number.
    assert all(height < (45 if width > 480 else 60) for height in heights if height)
    if name != "empty":
        assert page.locator("#column-table td.interval").first.is_visible() == (width > 480)
        shown = page.locator("#column-table td[data-interval]").first
        below = shown.evaluate("cell => getComputedStyle(cell, '::after').content")
        assert (below == f'"{shown.get_attribute("data-interval")}"') == (width <= 480)
    assert visit.background() == ("rgb(15, 19, 24)" if scheme == "dark" else "rgb(255, 255, 255)")
    assert "e+0" not in page.locator("main").inner_text()
    page.screenshot(path=SCREENSHOTS / f"report-{name}-{width}-{scheme}.png", full_page=True)
    assert not visit.noise
    assert not visit.outside()
    page.close()


def test_a_first_column_stays_while_a_table_is_moved(browser: Browser, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["normal"], 390)
    table = visit.page.get_by_label("History of the ledger")
    name = table.locator("tbody th").first
    before = name.bounding_box()
    table.evaluate("table => { table.scrollLeft = 150 }")
    assert table.evaluate("table => table.scrollLeft") > 50
    after = name.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] == pytest.approx(before["x"], abs=1.5)
    visit.page.close()


@pytest.mark.parametrize("name", ["normal", "hidden", "hundred", "wide"])
def test_figures_are_drawn(visits: Callable[[str], Visit], name: str) -> None:
    visit = visits(name)
    for figure in ("spectrum", "heatmap"):
        box = visit.page.locator(f"#{figure}").bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 150
    assert visit.page.locator("#heatmap-cells").evaluate("picture => picture.href.baseVal.length") > 100
    assert visit.page.locator("#column-table tbody tr").count() == {"normal": 5, "hidden": 8}.get(
        name, 100 if name == "hundred" else 500
    )


def test_a_release_of_nothing_promises_nothing(browser: Browser, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["empty"])
    text = visit.page.locator("main").inner_text()
    assert "Nothing that can be used" in text
    for promise in ("can be computed from them", "at most", "up to", "resolved"):
        assert promise not in text.split("What is guaranteed", maxsplit=1)[0]
    assert visit.page.locator("#heatmap").count() == 0
    advice = " ".join(visit.page.locator("pre").all_inner_texts())
    assert "dpcov plan --columns 3" in advice
    for refused in ("correlation", "regress", "means"):
        assert refused not in advice
    visit.page.close()


def test_a_hundred_columns_can_be_read(browser: Browser, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["hundred"])
    page = visit.page
    # Items of one question stand beside each other.
    order = page.evaluate("JSON.parse(document.getElementById('data').textContent).correlation.order")
    names = page.locator("#column-table tbody th").all_inner_texts()
    kinds = [names[i][:11] for i in order]
    assert sum(first != second for first, second in itertools.pairwise(kinds)) == 9
    page.select_option("#relations-of", label="question_03_item_4")
    related = page.locator("#relations tbody td.text").all_inner_texts()
    assert {name[:11] for name in related[:9]} == {"question_03"}
    assert "of 99 are told from zero" in page.locator("#relations-note").inner_text()
    page.select_option("#relations-of", value="")
    assert page.locator("#relations tbody tr").count() == 20
    box = page.locator("#heatmap-cells").bounding_box()
    assert box is not None
    page.locator("#heatmap-cells").click(position={"x": box["width"] * 0.505, "y": box["height"] * 0.505})
    assert page.locator("#closer-table tbody tr").count() == 13
    assert page.locator("#closer-table thead th").nth(7).inner_text() == names[order[50]]
    assert not visit.noise
    page.close()


def test_the_heatmap_is_drawn_in_the_right_places(visits: Callable[[str], Visit]) -> None:
    visit = visits("wide")
    box = visit.page.locator("#heatmap-cells").bounding_box()
    assert box is not None
    reading = visit.page.locator("#reading")
    step = box["width"] / 500
    visit.page.locator("#heatmap").scroll_into_view_if_needed()
    box = visit.page.locator("#heatmap-cells").bounding_box()
    assert box is not None
    order = visit.page.evaluate("JSON.parse(document.getElementById('data').textContent).correlation.order")
    visit.page.mouse.move(box["x"] + step * 20.5, box["y"] + step * 7.5)
    assert f"column {order[7]:03} and column {order[20]:03}: 0." in reading.inner_text()
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


def test_search_sort_and_theme(browser: Browser, pages: dict[str, Path]) -> None:
    visit = Visit(browser, pages["wide"], color_scheme="light")
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


def test_a_name_cannot_become_markup(visits: Callable[[str], Visit]) -> None:
    visit = visits("normal")
    assert visit.page.locator("img").count() == 0
    assert AWKWARD in visit.page.locator("#column-table").inner_text()
    assert not visit.noise


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
    browser: Browser, pages: dict[str, Path], tmp_path: Path, listening: str
) -> None:
    sent = f'<img src="{listening}/a.png"><script>document.title = "ran"</script>'
    broken = tmp_path / "broken.html"
    broken.write_text(pages["normal"].read_text().replace("<footer>", f"{sent}<footer>"))
    visit = Visit(browser, broken)
    assert len(visit.noise) >= 2
    assert all("Content Security Policy" in line for line in visit.noise)
    assert visit.page.title() == "people: a private release"
    assert not Listener.calls
    visit.page.close()
    # Without the policy the same page does call, and does run what was put into it.
    broken.write_text(broken.read_text().replace("Content-Security-Policy", "no-policy"))
    visit = Visit(browser, broken)
    assert Listener.calls == ["/a.png"]
    assert visit.page.title() == "ran"
    visit.page.close()
