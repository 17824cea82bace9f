"""The application behind the gate: the rooms, what every page shares, and events."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from shoal.app.studio._dataset import Dataset
from shoal.app.studio._docs import ROUTES as DOCS
from shoal.app.studio._jobs import Jobs
from shoal.app.studio._pages import Form, Studio, action, mark_of, page, render, studio_of
from shoal.app.studio._project import Project
from shoal.app.studio._security import Gate
from shoal.app.studio.screens import ROOMS
from shoal.errors import InputError, ShoalError
from shoal.workflow.report._render import environment

_STATIC: Final = Path(__file__).with_name("static")
#: A path of the studio and never an address: the first part is the name of a room.
_PLACE: Final = re.compile(r"/(?:([a-z]+)(?:/[!-\[\]-~]*)?)?(?:\?[!-\[\]-~]*)?")
_LATEST: Final = 20  # jobs that a page hears about
_LOOK: Final = 0.4  # seconds between two looks at the jobs and the plan


def make_studio(project: Project, roots: tuple[Path, ...]) -> Studio:
    """The studio of a project; it reads files only below the roots.

    It may also read the table that the project names when it is opened: that was chosen before.
    """
    allowed = tuple(dict.fromkeys((project.folder, *roots)))
    dataset = Dataset(project, allowed)
    with suppress(ShoalError):
        if dataset.named is not None:
            dataset.roots += (Path(os.path.realpath(project.folder / dataset.named)),)
    project.may_read = dataset.allowed
    return Studio(project, dataset, Jobs(project.folder / "runs"), ROOMS)


def make_app(
    studio: Studio, *, port: int, token: str, entered: Callable[[], None] | None = None
) -> ASGIApp:
    """The whole application, gate included."""
    routes = [
        page("/", _home),
        Route("/events", _events),
        Route("/static/studio.css", _style),
        Route("/static/theme.js", _theme),
        Mount("/static", StaticFiles(directory=_STATIC)),
        page("/history", _history),
        _then_back("/history/go", lambda s, form, _: s.project.go_to(form.whole("version"))),
        _then_back("/plan/text", _replace_text),
        _then_back("/notes", lambda s, form, _: s.project.write_notes(form.one("notes"))),
        _then_back("/jobs/{id}/cancel", lambda s, _, job: s.jobs.cancel(job)),
        _then_back("/jobs/{id}/go-on", lambda s, _, job: s.jobs.go_on(job)),
        _then_back("/jobs/{id}/remove", lambda s, _, job: s.jobs.remove(job)),
        *DOCS,
        *(route for room in studio.rooms for route in room.routes),
    ]
    inside = Starlette(routes=routes, exception_handlers={404: _nowhere, 500: _unexpected})
    inside.state.studio = studio
    return Gate(inside, port=port, token=token, entered=entered)


def _home(studio: Studio, request: Request) -> Response:
    """The first room that is not done."""
    if studio.project.problem or studio.dataset.named is None:
        return RedirectResponse("/data", 303)
    for room in studio.rooms:
        if mark_of(room, studio).standing != "done":
            return RedirectResponse(f"/{room.name}", 303)
    return RedirectResponse(f"/{studio.rooms[-1].name}", 303)


# -- what every page has


def _history(studio: Studio, request: Request) -> Response:
    return HTMLResponse(render(request, "history.html.j2", versions=studio.project.versions))


def _then_back(path: str, change: Callable[[Studio, Form, str], object]) -> Route:
    """A change of a project or of a job, which goes back to the screen it came from."""

    def act(studio: Studio, form: Form, request: Request) -> str:
        change(studio, form, request.path_params.get("id", ""))
        return _back(request, form)

    return action(path, act)


def _replace_text(studio: Studio, form: Form, job: str) -> None:
    studio.project.replace_plan(form.one("text"), based_on=form.whole("version"))


def _back(request: Request, form: Form) -> str:
    """The screen that an action came from."""
    place = form.one("back", "/")
    found = _PLACE.fullmatch(place)
    rooms = {None, "docs", "history", *(room.name for room in studio_of(request).rooms)}
    if found is None or found[1] not in rooms:
        raise InputError("The form does not say which screen it comes from. Reload the page.")
    return place


# -- events


async def _events(request: Request) -> Response:
    headers = {"x-accel-buffering": "no"}
    stream = _news(studio_of(request), request)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _news(studio: Studio, request: Request) -> AsyncIterator[str]:
    """An event for every change of the plan and every step of a job, until the page is left."""
    known: dict[str, str] = {}
    while not await request.is_disconnected():
        news = await run_in_threadpool(_states, studio)
        for name, text in news.items():
            if known.get(name) != text:
                kind = "version" if name == "version" else "job"
                yield f"event: {kind}\ndata: {text}\n\n"
        known |= news
        await asyncio.sleep(_LOOK)


def _states(studio: Studio) -> dict[str, str]:
    """The version of the plan, and the state of each of the latest jobs."""
    jobs = {job.id: json.dumps(job.to_dict()) for job in studio.jobs.all()[:_LATEST]}
    return {"version": str(studio.project.version.number), **jobs}


# -- files and failures


@cache
def _style_text() -> str:
    return environment("shoal.app.studio").get_template("studio.css.j2").render()


def _style(request: Request) -> Response:
    return Response(_style_text(), media_type="text/css")


def _theme(request: Request) -> Response:
    script, *_ = environment().loader.get_source(environment(), "theme.js")  # type: ignore[union-attr]
    return Response(script, media_type="text/javascript")


def _nowhere(request: Request, cause: Exception) -> Response:
    sentence = "The studio has no such page. The rooms are listed on the left."
    return HTMLResponse(render(request, "refusal.html.j2", sentence=sentence), 404)


def _unexpected(request: Request, cause: Exception) -> Response:
    """Does not show the text of the exception, which may quote the data."""
    sentence = (
        f"An unexpected error occurred ({type(cause).__name__}). Nothing was lost: the plan is "
        "saved. Please report the error and what you did."
    )
    return HTMLResponse(f'<p id="sentence" role="alert">{sentence}</p>', 500)
