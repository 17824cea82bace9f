"""On paper the report has everything that the screen can show, and nothing is cut off."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from tests.app.studio.parts.browser import chromium

from shoal import Generalize, KAnonymity, Plan, Roles, Table, protect

#: The width of a page of A4 between its margins, in CSS pixels.
PAPER = round((210 - 2 * 14) / 25.4 * 96)

SEEN = """() => [...document.querySelectorAll("th, td, dt, dd, h4, p, svg.chart, .card")]
  .map(one => {
    const box = one.getBoundingClientRect();
    return {text: one.textContent.trim(), height: box.height, right: box.right,
            nav: one.closest("nav") !== null};
  })"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    rows = range(640)
    frame = pl.DataFrame(
        {
            "born": [dt.date(1940, 1, 1) + dt.timedelta(days=41 * n) for n in rows],
            "age": [20 + n % 60 for n in rows],
            "diagnosis": [f"diagnosis {n % 16:02d}" for n in rows],
        }
    )
    roles = Roles(quasi_identifiers=["born", "age"], sensitive=["diagnosis"])
    release = protect(Table(frame, roles), Plan([Generalize(k=5)], require=[KAnonymity(5)]))
    path = tmp_path_factory.mktemp("print") / "report.html"
    path.write_text(release.to_html(), encoding="utf-8")
    return path


def test_everything_is_printed_and_inside_the_paper(page_file):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": PAPER, "height": 1000})
        page.goto(page_file.as_uri())
        page.emulate_media(media="print")
        seen = [one for one in page.evaluate(SEEN) if not one["nav"]]
        folded = page.evaluate("document.querySelectorAll('details:not([open])').length")
    assert folded > 3  # or the test would show nothing
    cells = {one["text"] for one in seen if one["height"] > 0}
    assert {f"diagnosis {n:02d}" for n in range(16)} <= cells
    assert [one["text"] for one in seen if one["text"] and one["height"] == 0] == []
    assert max(one["right"] for one in seen) <= PAPER


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_does_not_scroll_sideways(page_file, scheme):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        page.goto(page_file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390
