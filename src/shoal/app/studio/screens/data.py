"""Data: which table, how it is read, and whose a row is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import tomlkit
from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._dataset import READING
from shoal.app.studio._pages import Form, Mark, Room, Studio, action, page, set_in, show
from shoal.errors import InputError, ReadError
from shoal.table.storage._formats import format_of

_MOST_FILES: Final = 200
_PREVIEWED: Final = 20
_TEXT: Final = ("delimiter", "encoding", "decimal", "sheet")


def _mark(studio: Studio) -> Mark:
    if studio.dataset.source is None:
        return Mark("blocks", "choose a table")
    found = studio.dataset.if_loaded
    if found is None:
        studio.dataset.loaded(0.0)  # says that it is being read, or why it cannot be
        return Mark("open", "being read")
    table, roles = found.table, studio.project.plan.roles
    if roles is None or roles.unit is None:
        return Mark("attention", f"{len(table):,} rows; whose is a row?")
    return Mark("done", f"{len(table):,} rows, {len(table.columns)} columns")


def _show(studio: Studio, request: Request) -> Response:
    facts: dict[str, Any] = {"files": _files(studio), "found": None, "rows": None, "unread": None}
    facts |= {"source": None, "options": studio.dataset.options}
    if studio.dataset.source is not None:
        facts["source"] = studio.dataset.source
        try:
            found = studio.dataset.loaded()
        except ReadError as cause:
            facts["unread"] = str(cause)
        else:
            facts["found"] = found
            if request.query_params.get("show") == "values":
                facts["rows"] = found.table.texts(0, _PREVIEWED)
    roles = studio.project.plan.roles
    facts |= {"unit": None if roles is None else roles.unit}
    facts |= {"household": [] if roles is None else list(roles.household or ())}
    return show(request, "data.html.j2", ROOM, **facts)


def _files(studio: Studio) -> list[tuple[str, str]]:
    """The files of data below the folders that may be read, with how they are named in a form."""
    found: list[tuple[str, str]] = []
    for root in studio.dataset.roots:
        for path in sorted(root.glob("*")):
            if path.is_file() and _is_data(path) and len(found) < _MOST_FILES:
                found.append((str(path), path.name))
    return list(dict.fromkeys(found))


def _is_data(path: Path) -> bool:
    try:
        format_of(path)
    except ReadError:
        return False
    return True


def choose(studio: Studio, source: Path) -> None:
    """Make a file the table of the project."""
    place = studio.dataset.allowed(str(source))
    inside = place.is_relative_to(studio.project.folder)
    named = str(place.relative_to(studio.project.folder) if inside else place)

    def edit(plan: Any, settings: Any) -> None:
        if settings.get("source", {}).get("path") != named:
            settings["source"] = {"path": named}

    studio.project.change(f"table chosen: {place.name}", edit)


def _choose(studio: Studio, form: Form, request: Request) -> str:
    place = studio.dataset.allowed(form.one("path"))
    if not os.path.isfile(place):  # a name that is too long is no file either
        raise ReadError(f"There is no file '{place.name}' there; choose one of the list.")
    choose(studio, place)
    return "/data"


def _read(studio: Studio, form: Form, request: Request) -> str:
    """Read the table in another way."""
    given: dict[str, Any] = {name: form.one(name, "") or None for name in _TEXT}
    given["delimiter"] = {"tab": "\t"}.get(given["delimiter"], given["delimiter"])
    signs = [line for line in form.one("missing_values", "").splitlines() if line]
    given["missing_values"] = signs or None
    given["header"] = True if form.all("header") else None

    def edit(plan: Any, settings: Any) -> None:
        for name in READING:
            if name in given:
                set_in(settings, ["source", name], given[name])

    studio.project.change("the way of reading changed", edit)
    return "/data"


def _whose(studio: Studio, form: Form, request: Request) -> str:
    """Say whose a row is."""
    answer, columns = form.one("whose"), form.all("unit")
    if answer == "several" and not columns:
        raise InputError("Choose the columns that say whose row it is.")
    unit: Any = "row" if answer == "once" else columns
    household = form.all("household") or None

    def edit(plan: Any, settings: Any) -> None:
        if "roles" not in plan:
            plan["roles"] = tomlkit.table()
        roles = plan["roles"]
        if unit != "row":
            for role in ("identifiers", "quasi_identifiers", "sensitive", "insensitive"):
                left = [name for name in roles.get(role, []) if name not in columns]
                set_in(roles, [role], left or None)
        set_in(roles, ["unit"], unit)
        set_in(roles, ["household"], household)

    studio.project.change("whose a row is", edit)
    return "/data"


ROOM = Room(
    "data",
    "Data",
    "A wrong guess about how a file is read, or whose a row is, spoils every number after it. "
    "Where a person has several rows, five rows of one person are no crowd: Shoal counts persons.",
    "roles",
    _mark,
    [
        page("/data", _show),
        action("/data/choose", _choose),
        action("/data/read", _read),
        action("/data/whose", _whose),
    ],
)
