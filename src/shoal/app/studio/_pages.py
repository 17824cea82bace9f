"""The parts of every screen: pages, actions, rooms, and the state of each room.

A *page* answers a GET with a screen. An *action* answers a POST: it changes something and sends the
browser back to a page, so that every screen can be reloaded. Both run in a thread and never block
the server. An error of Shoal is shown as its one sentence.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol
from urllib.parse import parse_qsl, quote, urlencode

import tomlkit
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from shoal.app.studio._code import python_of
from shoal.app.studio._dataset import Dataset, StillReading
from shoal.app.studio._jobs import Job, Jobs
from shoal.app.studio._project import Conflict, Project, Version
from shoal.errors import InputError, ShoalError
from shoal.workflow.report._render import environment

_LONGEST_FORM: Final = 2_000_000
_MOST_FIELDS: Final = 20_000
_SLOWEST_FORM: Final = 30.0  # seconds
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")

Standing = Literal["done", "attention", "blocks", "open"]


@dataclass(frozen=True)
class Mark:
    """The state of a room, in a word and a sentence."""

    standing: Standing
    sentence: str


@dataclass(frozen=True)
class Room:
    """A screen: its name in addresses, its title, and its purpose.

    ``why`` has two or three sentences for the drawer; ``docs`` is the page of the documentation.
    ``mark`` must not wait, since every page shows it.
    """

    name: str
    title: str
    why: str
    docs: str
    mark: Callable[[Studio], Mark]
    routes: Sequence[Route] = field(default=())


@dataclass
class Studio:
    """What the screens work with."""

    project: Project
    dataset: Dataset
    jobs: Jobs
    rooms: tuple[Room, ...] = ()
    warm: Callable[[], None] = field(default=lambda: None)

    def start(self, kind: str, title: str, *, of: Version | None = None, **options: Any) -> Job:
        """Start a job on the table with the current plan, or with another version of it."""
        source, version = self.dataset.source, of or self.project.version
        if source is None:
            raise InputError("No table is chosen yet. Choose one under Data.")
        self.project.understand(version.plan)  # raises if Shoal cannot use the plan
        return self.jobs.start(
            kind,
            title,
            source=source,
            reading=self.dataset.options,
            plan=version.plan,
            version=version.number,
            options=options,
        )


class Form:
    """The fields of a form."""

    def __init__(self, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        try:
            self._fields = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise InputError("The form has too many fields. Reload the page.") from None

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._fields if key == name]

    def one(self, name: str, default: str | None = None) -> str:
        """A field that is required unless there is a default."""
        found = self.all(name)
        if found:
            return found[-1]
        if default is None:
            raise InputError(f"The form lacks the field '{name}'. Reload the page.")
        return default

    def whole(self, name: str) -> int:
        """A field with a whole number."""
        given = self.one(name)
        if not _WHOLE.fullmatch(given):
            raise InputError(f"'{name}' must be a whole number.")
        return int(given)

    def items(self) -> list[tuple[str, str]]:
        return list(self._fields)


class _Show(Protocol):
    def __call__(self, studio: Studio, request: Request) -> Response: ...


class _Act(Protocol):
    def __call__(self, studio: Studio, form: Form, request: Request) -> str | Response: ...


def page(path: str, show: _Show) -> Route:
    """A page at a path."""

    @functools.wraps(show)
    async def endpoint(request: Request) -> Response:
        try:
            return await run_in_threadpool(show, studio_of(request), request)
        except StillReading:
            return HTMLResponse(render(request, "reading.html.j2"))
        except ShoalError as cause:
            return _refusal(request, cause)

    return Route(path, endpoint, methods=["GET"])


def action(path: str, act: _Act) -> Route:
    """A change at a path; it returns the address where the browser goes next."""

    @functools.wraps(act)
    async def endpoint(request: Request) -> Response:
        try:
            form = Form(await _body(request))
            going = await run_in_threadpool(act, studio_of(request), form, request)
        except StillReading:
            return _refusal(request, InputError("The table is still being read. Try again soon."))
        except ShoalError as cause:
            return _refusal(request, cause)
        return going if isinstance(going, Response) else RedirectResponse(going, 303)

    return Route(path, endpoint, methods=["POST"])


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_SLOWEST_FORM):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _LONGEST_FORM:
                    raise InputError("The form is too large. Send less text.")
    except TimeoutError:
        raise InputError("The form took too long to arrive. Send it again.") from None
    except ClientDisconnect:  # nobody is left to read this
        raise InputError("The form did not arrive completely.") from None
    return bytes(body)


def studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


def show(request: Request, template: str, room: Room, **facts: Any) -> HTMLResponse:
    """A screen."""
    return HTMLResponse(render(request, template, room=room, **facts))


def render(request: Request, template: str, **facts: Any) -> str:
    """Fill a template with the facts and with what every page shows."""
    studio = studio_of(request)
    filled = environment("shoal.app.studio").get_template(template)
    return filled.render({"room": None, **_shared(studio, request), **facts})


def _shared(studio: Studio, request: Request) -> dict[str, Any]:
    project = studio.project
    problem = project.problem
    return {
        "project": project,
        "version": project.version,
        "rooms": [(room, mark_of(room, studio)) for room in studio.rooms],
        "problem": problem,
        "undoable": project.undoable,
        "redoable": project.redoable,
        "toml": project.version.plan,
        "python": "" if problem else _python(studio),
        "running": [job for job in studio.jobs.all() if job.is_running],
        "path": _path(request),
        "here": _path(request) + (f"?{request.url.query}" if request.url.query else ""),
    }


def _python(studio: Studio) -> str:
    try:
        reading = studio.dataset.options
    except ShoalError:  # the Data screen shows the error
        reading = {}
    return python_of(studio.project.plan, studio.dataset.named, reading)


def _path(request: Request) -> str:
    """The page that is shown; after an action, the page that follows it."""
    return quote(request.url.path) if request.method == "GET" else "/"


def mark_of(room: Room, studio: Studio) -> Mark:
    """The state of a room, or why it is unknown."""
    try:
        return room.mark(studio)
    except StillReading:
        return Mark("open", "the table is being read")
    except ShoalError as cause:
        return Mark("blocks", str(cause))


def _refusal(request: Request, cause: ShoalError) -> Response:
    """The sentence of an error: in its place on the page, or as a page of its own."""
    code = 409 if isinstance(cause, Conflict) else 422
    text = render(request, "refusal.html.j2", sentence=str(cause))
    to = {"hx-retarget": "#problem", "hx-reswap": "innerHTML show:#problem:top"}
    # the address stays that of the page, since an action cannot be reloaded
    return HTMLResponse(
        text, code, headers=to | {"hx-reselect": "#sentence", "hx-push-url": "false"}
    )


def address(path: str, **query: Any) -> str:
    """The address of a page; parameters without a value are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def set_in(document: Any, path: Sequence[str], value: Any) -> None:
    """Set an entry of a TOML document by its path; None removes it, with tables left empty."""
    *tables, last = path
    place = document
    for name in tables:
        if name not in place:
            if value is None:
                return
            place[name] = tomlkit.table()
        place = place[name]
    if value is None:
        if last in place:
            del place[last]
    else:
        place[last] = value
