"""The documentation inside the studio: every screen's page is there, and nothing else."""

from __future__ import annotations

import tomllib

import pytest

from shoal.app.studio.screens import ROOMS


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_screen_links_to_a_page_that_is_there_and_is_shipped(browser, repository, room):
    assert f'href="/docs/{room.docs}"' in browser.get(f"/{room.name}").text
    text = browser.get(f"/docs/{room.docs}").text
    assert "<article" in text
    assert "<h1>" in text.partition("<article")[2]
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    shipped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    names = [name.removeprefix("docs/").removesuffix(".md") for name in shipped]
    assert any(room.docs == name or room.docs.startswith(f"{name}/") for name in names)


def test_links_between_pages_lead_on(browser):
    assert 'href="measures/journalist-risk.md"' in browser.get("/docs/roles").text
    assert "Journalist" in browser.get("/docs/measures/journalist-risk.md").text


def test_a_warning_is_a_paragraph(browser):
    text = browser.get("/docs/methods/swap").text
    assert "<strong>What 1/k covers.</strong>" in text
    assert "!!!" not in text


@pytest.mark.parametrize(
    "name", ["nothing", "../pyproject", "..%2fREADME", "a/b/c", "images/x", ""]
)
def test_nothing_else_is_read(browser, name):
    assert browser.client.get(f"/docs/{name}").status_code in (404, 422)
