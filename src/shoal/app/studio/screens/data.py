"""Data: which table, how it is read, and whose each row is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._dataset import Loaded
from shoal.app.studio._pages import Form, Mark, Room, Studio, action, page, set_in, show
from shoal.app.studio._project import DATABASE, NO_DATABASES
from shoal.errors import InputError, ReadError, ShoalError
from shoal.table import Roles, other_texts
from shoal.table.storage._formats import format_of
from shoal.table.storage.inference._missing import DEFAULT_MISSING

_PREVIEWED: Final = 20
_ROWS: Final = 50
_LARGE: Final = 20_000  # rows from which compiling is worthwhile
_COLUMNS: Final = 100
_TEXT: Final = ("delimiter", "encoding", "decimal", "sheet")
_FORMATS: Final = {
    "csv": "Text in lines",
    "tsv": "Text in lines",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "xlsx": "A workbook",
    "dta": "Stata",
    "sav": "SPSS",
    "zsav": "SPSS, compressed",
    "por": "SPSS, portable",
    "xpt": "SAS, transport",
    "sas7bdat": "SAS",
}
_DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}


def _mark(studio: Studio) -> Mark:
    if studio.dataset.source is None:
        return Mark("blocks", "choose a table")
    found = studio.dataset.if_loaded
    if found is None:
        studio.dataset.loaded(0.0)  # raises while it is being read, or if it cannot be
        return Mark("open", "being read")
    table, roles = found.table, studio.project.plan.roles
    if roles is None or not roles.unit:
        return Mark("attention", f"{len(table):,} rows; whose are they?")
    return Mark("done", f"{len(table):,} rows, {len(table.columns)} columns")


def _show(studio: Studio, request: Request) -> Response:
    facts: dict[str, Any] = {"source": None, "found": None, "rows": None, "unread": None}
    facts |= {
        "files": studio.dataset.files(_is_data),
        "exposure": studio.project.exposure,
        "options": {},
    }
    facts |= {"signs": DEFAULT_MISSING, "unit": (), "household": ()}
    if studio.project.problem is None:
        roles = studio.project.plan.roles or Roles()
        facts |= {"unit": roles.unit, "household": roles.household}
        facts |= _reading(studio)
    if facts["found"] is not None:
        facts |= _part(facts["found"], request)
    return show(request, "data.html.j2", ROOM, **facts)


def _reading(studio: Studio) -> dict[str, Any]:
    """The table, or why there is none."""
    named = studio.dataset.named
    if named is None:
        return {}
    facts: dict[str, Any] = {"source": named}
    try:
        facts |= {"options": studio.dataset.options}
        found = studio.dataset.loaded()
    except ShoalError as cause:
        return facts | {"unread": str(cause)}
    if len(found.table) >= _LARGE:
        studio.warm()
    return facts | {"found": found, "manner": _in_words(found)}


def _in_words(found: Loaded) -> str:
    """How the file is written."""
    manner, said, parts = found.manner, found.manner.options, []
    if said.delimiter is not None:
        between = _DELIMITERS.get(said.delimiter, f"'{said.delimiter}'")
        parts.append(f"with {between} between fields")
    if said.decimal is not None:
        parts.append(f"a decimal {'comma' if said.decimal == ',' else 'point'}")
    if manner.marked:
        parts.append("a byte order mark")
    if len(manner.sheets) > 1:
        parts.append(f"with {len(manner.sheets)} sheets")
    return f"{_FORMATS[str(said.format)]}{' ' if parts else ''}{', '.join(parts)}."


def _part(found: Loaded, request: Request) -> dict[str, Any]:
    """The columns to show, and the rows if they were requested."""
    total = len(found.table.columns)
    at = _offset(request, "columns", total, _COLUMNS)
    names = found.table.columns[at : at + _COLUMNS]
    facts: dict[str, Any] = {"column_at": at, "column_count": _COLUMNS, "names": names}
    facts |= {"texts": {}}
    asked = request.query_params.get("texts", "")
    for number, mixed in enumerate(found.mixed):
        if asked == str(number):
            facts["texts"] = {number: other_texts(found.table, mixed)}
    if request.query_params.get("show") != "values":
        return facts
    first = _offset(request, "from", len(found.table), _ROWS)
    is_preview = "from" not in request.query_params
    rows = found.table.texts(first, _PREVIEWED if is_preview else _ROWS, names)
    return facts | {"rows": rows, "first": first, "row_count": _ROWS, "is_preview": is_preview}


def _offset(request: Request, name: str, total: int, step: int) -> int:
    """Where a page of a table starts; the first page if the number is invalid."""
    given = request.query_params.get(name, "0")
    at = int(given) if given.isascii() and given.isdecimal() and len(given) < 12 else 0
    return at // step * step if at < total else 0


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
    with studio.project.changing(f"table chosen: {place.name}") as (plan, settings):
        if settings.get("source", {}).get("path") != named:
            was_there = "source" in settings
            settings["source"] = {"path": named}
            if was_there:  # another file may have another format
                set_in(plan, ["read"], None)


def _choose(studio: Studio, form: Form, request: Request) -> str:
    given = form.one("path").strip()
    if DATABASE.match(given):
        raise InputError(NO_DATABASES)
    if not given:
        raise InputError("Type the name of a file, or choose one of the list.")
    place = studio.dataset.allowed(given)
    if not os.path.isfile(place):  # a name that is too long is no file either
        raise ReadError(f"There is no file '{place.name}' there. Choose one from the list.")
    format_of(place.name)
    choose(studio, place)
    return "/data"


def _read(studio: Studio, form: Form, request: Request) -> str:
    """Read the table with other options."""
    given: dict[str, Any] = {name: form.one(name, "") or None for name in _TEXT}
    given["delimiter"] = {"tab": "\t"}.get(given["delimiter"], given["delimiter"])
    signs = [line.strip() for line in form.one("missing_values", "").splitlines()]
    given["missing_values"] = list(dict.fromkeys(filter(None, signs))) or None
    given["header"] = True if form.all("header") else None
    given["columns"] = None  # their kinds may change
    with studio.project.changing("reading options changed") as (plan, _):
        for name, value in given.items():
            set_in(plan, ["read", name], value)
    return "/data"


def _missing(studio: Studio, form: Form, request: Request) -> str:
    """Add texts to what stands for a missing value."""
    signs, found = list(dict.fromkeys(form.all("sign"))), studio.dataset.loaded()
    if not signs:
        raise InputError("Choose the texts that stand for a missing value.")
    if not {*signs} <= {text for one in found.mixed for text in other_texts(found.table, one)}:
        raise InputError("The table does not have these texts any more. Reload the page.")
    with studio.project.changing("more texts stand for a missing value") as (plan, _):
        now = plan.get("read", {}).get("missing_values", [])
        set_in(plan, ["read", "missing_values"], list(dict.fromkeys([*now, *signs])))
        set_in(plan, ["read", "columns"], None)  # their kinds may change
    return "/data"


def _whose(studio: Studio, form: Form, request: Request) -> str:
    """Declare whose each row is."""
    answer, columns = form.one("whose"), form.all("unit")
    if answer not in ("once", "several"):
        raise InputError("Choose whether each row is one person, or a person has several rows.")
    if answer == "several" and not columns:
        raise InputError("Choose the columns that identify whose row it is.")
    unit: Any = "row" if answer == "once" else columns
    household = form.all("household") or None
    known = studio.dataset.loaded().table.columns
    absent = [name for name in (*columns, *(household or ())) if name not in known]
    if absent:
        raise InputError("The table does not have this column any more. Reload the page.")
    with studio.project.changing("row ownership") as (plan, _):
        roles = plan.get("roles", {})
        if unit != "row":
            for role in ("identifiers", "quasi_identifiers", "sensitive", "insensitive", "drop"):
                left = [name for name in roles.get(role, []) if name not in columns]
                set_in(plan, ["roles", role], left or None)
        set_in(plan, ["roles", "unit"], unit)
        set_in(plan, ["roles", "household"], household)
    return "/data"


ROOM = Room(
    "data",
    "Data",
    "If a file is read wrongly, or nobody declares whose each row is, every later number is wrong. "
    "If a person has several rows, five rows of one person are not a crowd: Shoal counts persons.",
    "reading",
    _mark,
    [
        page("/data", _show),
        action("/data/choose", _choose),
        action("/data/read", _read),
        action("/data/missing", _missing),
        action("/data/whose", _whose),
    ],
)
