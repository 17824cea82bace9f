"""Pages of the documentation inside the studio: no network is needed to read why."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from shoal.app.studio._pages import Studio, page, render
from shoal.errors import InputError

_HERE: Final = Path(__file__).resolve()
#: In what is installed, and in the working tree.
_PLACES: Final = (_HERE.with_name("docs"), _HERE.parents[4] / "docs")
_NAME: Final = re.compile(r"(?:[a-z-]+/)?[a-z-]+")
_NOTE: Final = re.compile(r'^!!! \w+ "(.*)"\n((?:\n| {4}.*\n)+)', re.MULTILINE)
_IMAGE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")


def _show(studio: Studio, request: Request) -> Response:
    name = request.path_params["name"].removesuffix(".md")
    text = _text(name) if _NAME.fullmatch(name) else None
    if text is None:
        raise InputError("This page of the documentation is not a part of the studio.")
    title = text.partition("\n")[0].lstrip("# ")
    return HTMLResponse(render(request, "docs.html.j2", name=title, text=_as_html(text)))


def _text(name: str) -> str | None:
    for place in _PLACES:
        path = place / f"{name}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


def _as_html(text: str) -> str:
    from markdown_it import MarkdownIt

    noted = _NOTE.sub(lambda found: f"**{found[1]}.** {textwrap.dedent(found[2])}", text)
    plain = MarkdownIt("commonmark", {"html": False}).enable("table")
    return str(plain.render(_IMAGE.sub("", noted)))


ROUTE: Final = page("/docs/{name:path}", _show)
