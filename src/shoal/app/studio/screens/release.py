"""Release: to be built."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._pages import Mark, Room, Studio, page, show


def _mark(studio: Studio) -> Mark:
    return Mark("open", "")


def _show(studio: Studio, request: Request) -> Response:
    return show(request, "release_screen.html.j2", ROOM)


ROOM = Room("release", "Release", "", "concepts", _mark, [page("/release", _show)])
