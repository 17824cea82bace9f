"""The documentation in the studio: every page, its links and pictures, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.app.studio import _docs
from shoal.app.studio._docs import Library, html_of, library
from shoal.app.studio.screens import ROOMS

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def reader(open_studio):
    return open_studio()


def library_of(folder: Path, **pages: str) -> Library:
    (folder / "index.md").write_text("# Home\n")
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    return Library(folder)


def test_every_page_is_shown_and_every_link_leads_somewhere():
    known = library()
    assert len(known.pages) > 80
    dead = []
    for one in known.pages.values():
        html = html_of(one, known)
        assert f">{one.title.split('(')[0].split('`')[0].strip()[:8]}" in html
        assert "style=" not in html
        assert not re.search(r"^(:::|===|!!!)", html, re.MULTILINE)
        targets = re.findall(r'(?:href|src)="/docs/([^"#]*)', html)
        dead += [to for to in targets if to not in known.pages and to not in known.pictures]
        dead += re.findall(r'(?:href|src)="(?!/docs/|https?://|#)([^"]*)"', html)
    assert dead == []


def test_anchors_of_links_are_headings():
    known = library()
    html = {name: html_of(one, known) for name, one in known.pages.items()}
    ids = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in html.items()}
    links = [
        pair for text in html.values() for pair in re.findall(r'"/docs/([^"#]+)#([^"]+)"', text)
    ]
    assert len(links) > 5
    assert [(to, at) for to, at in links if to in ids and at not in ids[to]] == []


def test_the_page_of_every_room_is_there(reader):
    for room in ROOMS:
        assert "<article" in reader.get(f"/docs/{room.docs}").text
    assert "<article" in reader.get("/docs").text
    assert "<article" in reader.get("/docs/methods/").text


def test_a_picture_is_served(reader):
    text = reader.get("/docs/index").text
    place = re.search(r'src="(/docs/images/[^"]+)"', text)[1]
    answer = reader.get(place)
    assert answer.headers["content-type"] == "image/png"
    assert answer.content[1:4] == b"PNG"


@pytest.mark.parametrize(
    "path",
    [
        "/docs/nowhere",
        "/docs/../pyproject",
        "/docs/%2e%2e/pyproject.toml",
        "/docs/..%2f..%2fREADME",
        "/docs//etc/passwd",
        "/docs/index.md",
        "/docs/images",
        "/docs/index%00",
    ],
)
def test_nothing_else_is_served(reader, path):
    assert reader.client.get(path).status_code in (404, 422)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret.md").write_text("# Secret\n")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    assert set(library_of(folder).pages) == {"index"}


PAGE = """\
# Page

=== "One"

    ```sh
    run --it
    ```

::: shoal.Plan
    options:
      members: false

[code](../src/x.py) and [home](index.md#top)

```
::: kept
```
"""


def test_tabs_and_the_reference_are_made_plain(tmp_path):
    known = library_of(tmp_path, page=PAGE)
    html = html_of(known.pages["page"], known)
    assert "<strong>One</strong>" in html
    assert "run --it" in html
    assert "help(shoal.Plan)" in html
    assert "members" not in html
    assert "::: kept" in html
    assert "<span>code</span>" in html
    assert 'href="/docs/index#top"' in html


def test_a_search_finds_headings_first_and_shows_the_words(reader):
    text = reader.get("/docs/?q=L-Diversity").text
    assert "<mark>l-diversity</mark>" in text
    first, anchor = re.search(
        r'"hits"><li class="card"><h2><a href="([^"#]+)#([^"]+)"', text
    ).groups()
    assert first == "/docs/models/l-diversity"
    assert f'id="{anchor}"' in reader.get(first).text


def test_a_search_for_anything_is_answered(reader):
    assert "No section has all of these words" in reader.get("/docs/?q=zzqqxx").text
    text = reader.get("/docs/", params={"q": SCRIPT}).text
    assert SCRIPT not in text
    assert reader.get("/docs/", params={"q": "(((" * 500}).status_code == 200
    assert "<article" in reader.get("/docs/?q=%20").text


def test_an_installation_without_the_pages_says_so(reader, monkeypatch):
    monkeypatch.setattr(_docs, "library", lambda: None)
    answer = reader.client.get("/docs/index")
    assert answer.status_code == 422
    assert "not part of this installation" in answer.text


def test_undo_on_a_page_of_the_documentation_comes_back_to_it(reader):
    project = reader.studio.project
    number = project.version.number
    project.replace_plan("[require]\nk_anonymity = 3\n", based_on=number)
    answer = reader.post("/history/go", version=number, back="/docs/plan")
    assert "<article" in answer.text
    assert project.version.number == number
