"""Hierarchies: how each quasi-identifier becomes coarser, and what that does for its people."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from shoal.app.studio._pages import Form, Mark, Room, Studio, action, page, show
from shoal.app.studio.ladder._counts import Counts
from shoal.app.studio.ladder._edit import WITH_LEVEL, WITH_NODES
from shoal.app.studio.ladder._ladder import SHOWN, Ladder
from shoal.app.studio.ladder._rules import RULES_FOR, proposals_for, rule_of
from shoal.app.studio.ladder._store import Held, Shelf, put, read_file
from shoal.errors import InputError, ShoalError
from shoal.table import Hierarchy
from shoal.table.hierarchy._rule import UNITS

_LISTED: Final = 100_000  # values that somebody may still want to edit one by one
_MOST_FILES: Final = 200
_MOST: Final = 10**9  # a number of a level, group or page that is looked at at all
#: What a page counts before it is shown; the rest comes when it asks again.
_PATIENCE: Final = 0.6


def _mark(studio: Studio) -> Mark:
    shelf = Shelf(studio)
    if not shelf.columns:
        return Mark("open", "no quasi-identifier yet")
    decided = sum(shelf.held(column).value is not None for column in shelf.columns)
    if decided == len(shelf.columns):
        return Mark("done", f"{decided} of {decided} columns decided")
    if shelf.plan.steps and not shelf.generalizes:
        return Mark("done", "no step of the plan needs them")
    return Mark("attention", f"{len(shelf.columns) - decided} only proposed; look at them")


@dataclass(frozen=True)
class Line:
    """A column on the overview; what is not counted yet is None."""

    held: Held
    levels: int = 0
    words: str = ""
    chosen: int = 0
    alone: list[int] | None = None
    lacking: int = 0
    problem: str = ""


def _overview(studio: Studio, request: Request) -> Response:
    counts = Counts(studio)
    people = counts.table.person_count
    shelf, deadline = counts.shelf, time.monotonic() + _PATIENCE
    facts: dict[str, Any] = {
        "absent": [name for name in shelf.columns if name not in counts.columns],
        "kept": [name for name in counts.columns if _waits(shelf, name)],
        "generalizes": shelf.generalizes,
        "people": people,
        "again": f"/hierarchies?{request.url.query}",
    }
    lines: list[Line] = []
    broken = False
    for column in counts.columns:
        held = shelf.held(column)
        if time.monotonic() > deadline:
            lines.append(Line(held))
            continue
        try:
            found = counts.hierarchy(column)
            counts.codes(column)
        except ShoalError as cause:
            lines.append(Line(held, problem=str(cause)))
            broken = True
            continue
        lacking = found.uncovered(counts.table, column)
        lines.append(Line(held, found.levels, _words(found), lacking=lacking))
    facts |= {"lines": lines, "alone": None, "pending": any(not each.levels for each in lines)}
    facts |= {"pending": facts["pending"] and not broken, "broken": broken}
    if not broken and not facts["pending"] and lines:
        levels = _levels(request, counts)
        facts["alone"] = counts.alone_at(levels)
        facts["lines"] = [_counted(each, counts, levels, deadline) for each in lines]
        facts["pending"] = any(each.alone is None for each in facts["lines"])
        facts |= {"links": _level_links(levels, facts["lines"]), "levels": levels}
        facts["raised"] = {name: level for name, level in levels.items() if level}
        facts["along"] = _along(levels)
    return show(request, "hierarchies/overview.html.j2", ROOM, **facts)


def _counted(line: Line, counts: Counts, levels: Mapping[str, int], deadline: float) -> Line:
    column = line.held.column
    in_time = time.monotonic() < deadline
    alone = counts.alone(column, levels) if in_time else None
    return Line(line.held, line.levels, line.words, levels[column], alone, line.lacking)


def _waits(shelf: Shelf, column: str) -> bool:
    """Whether a hierarchy is kept beside a plan that could have it."""
    return shelf.held(column).where == "kept" and shelf.step_of(column) is not None


def _words(hierarchy: Hierarchy) -> str:
    return repr(hierarchy).partition(", ")[2]


# -- at which levels the columns are looked at


def _levels(request: Request, counts: Counts) -> dict[str, int]:
    """The level of each column: as the address says, or the plan; else the values themselves."""
    given = request.query_params.get("levels", "")
    if not given:
        planned = {name: counts.shelf.level_of(name) or 0 for name in counts.columns}
        return {
            name: min(level, counts.hierarchy(name).levels - 1) for name, level in planned.items()
        }
    words = given.split(".")
    if len(words) != len(counts.columns) or not all(word.isdecimal() for word in words):
        raise InputError("The address does not fit the columns of the plan; go to Hierarchies.")
    found = dict(zip(counts.columns, map(int, words), strict=True))
    for name, level in found.items():
        if level >= counts.hierarchy(name).levels:
            found[name] = counts.hierarchy(name).levels - 1  # it was edited meanwhile
    return found


def _along(levels: Mapping[str, int]) -> str:
    """The levels for an address."""
    return ".".join(map(str, levels.values()))


def _level_links(levels: Mapping[str, int], lines: list[Line]) -> dict[str, list[str]]:
    return {
        line.held.column: [
            f"/hierarchies?levels={_along({**levels, line.held.column: level})}"
            for level in range(line.levels)
        ]
        for line in lines
    }


# -- one column


def _column(studio: Studio, request: Request) -> Response:
    asked = request.query_params
    if "name" not in asked:
        return RedirectResponse("/hierarchies", 303)
    counts = Counts(studio)
    name = _named(counts, asked["name"])
    held = counts.shelf.held(name)
    facts: dict[str, Any] = {"name": name, "held": held, "files": _files(studio)}
    facts |= _forms(counts, name, held)
    try:
        hierarchy, ladder = counts.hierarchy(name), counts.ladder(name)
    except ShoalError as cause:
        facts["problem"] = str(cause)
        return show(request, "hierarchies/broken.html.j2", ROOM, **facts)
    counts.check()
    levels = _levels(request, counts)
    finest = min(_whole(asked.get("at"), _readable(ladder), _MOST, "level"), ladder.levels - 1)
    under = _node(asked.get("under"))
    section = ladder.section(finest, _whole(asked.get("page"), 1, _MOST, "page"), under)
    shown = asked.get("show") == "values"
    others = {other: level for other, level in levels.items() if other != name}
    planned = counts.shelf.level_of(name)
    facts |= {
        "hierarchy": hierarchy,
        "words": _words(hierarchy),
        "alone": counts.alone(name, levels),
        "people": counts.table.person_count,
        "by_itself": counts.alone_by_itself(name),
        "raised": {other: level for other, level in others.items() if level},
        "others": len(others),
        "nodes": [ladder.count(level) for level in range(hierarchy.levels)],
        "at": finest,
        "under": under,
        "section": section,
        "shown": shown,
        "named_from": 1 if hierarchy.is_function and _is_numeric(counts, name) else 99,
        "lacking": hierarchy.uncovered(counts.table, name),
        "too_high": planned is not None and planned >= hierarchy.levels,
        "planned": planned,
        "listable": counts.table.distinct(name) <= _LISTED,
    }
    link = _linker(name, finest, levels, under, shown)
    rungs = [link(at=level, under=None) for level in range(ladder.levels)]
    facts |= {"link": link, "rung_links": rungs, "along": _along(levels)}
    return show(request, "hierarchies/column.html.j2", ROOM, **facts)


def _readable(ladder: Ladder) -> int:
    """The finest level that fits a page; the coarsest between the ends where none does."""
    inner = range(max(ladder.levels - 1, 1))
    return next((level for level in inner if ladder.count(level) <= SHOWN), inner[-1])


def _is_numeric(counts: Counts, column: str) -> bool:
    """Whether the labels of a function are no parts of values: intervals, calendar units."""
    return counts.codes(column).bounds(0) is not None and "prefixes" not in _words(
        counts.hierarchy(column)
    )


def _forms(counts: Counts, name: str, held: Held) -> dict[str, Any]:
    """What the forms of a column offer, filled with what is in force."""
    kind = counts.table.kind(name)
    rule = held.value if isinstance(held.value, dict) else {}
    if held.value is None:
        proposed = counts.hierarchy(name)
        rule = proposed.to_plan() if proposed.is_function else {}  # type: ignore[assignment]
    return {
        "kind": kind,
        "rules": RULES_FOR.get(kind, ()),
        "rule": rule,
        "units": ("minute", "hour") if kind == "time" else UNITS[kind == "date" and 3 :],
        "proposals": proposals_for(kind),
    }


def _linker(
    name: str, at: int, levels: Mapping[str, int], under: tuple[int, int] | None, shown: bool
) -> Any:
    """Makes addresses of this page with something changed."""
    now: dict[str, Any] = {"name": name, "at": at, "levels": _along(levels)}
    now |= {"under": None if under is None else f"{under[0]}.{under[1]}"}
    now |= {"show": "values" if shown else None, "page": None}

    def link(**changed: Any) -> str:
        wanted = {key: value for key, value in (now | changed).items() if value is not None}
        return f"/hierarchies/column?{urlencode(wanted)}"

    return link


def _whole(text: str | None, default: int, most: int, called: str) -> int:
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 9 or int(text) > most:
        raise InputError(f"There is no such {called} in this hierarchy; go to Hierarchies.")
    return int(text)


def _node(text: str | None) -> tuple[int, int] | None:
    if not text:
        return None
    level, _, number = text.partition(".")
    return _whole(level, 0, _MOST, "group"), _whole(number, 0, _MOST, "group")


def _named(counts: Counts, name: str) -> str:
    counts.shelf.check(name)
    if name not in counts.columns:
        raise InputError("The plan names this column, and the table does not have it.")
    return name


def _files(studio: Studio) -> list[tuple[str, str]]:
    """The files that may be hierarchies, below the folders that may be read."""
    found: list[Path] = []
    for root in studio.dataset.roots:
        for folder in (root, root / "hierarchies"):
            found += [path for path in sorted(folder.glob("*.csv")) if path.is_file()]
    source = studio.dataset.source
    return [(str(path), path.name) for path in dict.fromkeys(found) if path != source][:_MOST_FILES]


# -- changes


def _keep(studio: Studio, form: Form, request: Request) -> str:
    """Write every proposal down, so that it stays whatever the data become."""
    counts = Counts(studio)
    open_ = [name for name in counts.columns if counts.shelf.held(name).value is None]
    put(studio, "proposed hierarchies kept", {name: counts.hierarchy(name) for name in open_})
    return "/hierarchies"


def _use(studio: Studio, form: Form, request: Request) -> str:
    """Hand what is kept beside the plan to the step that generalizes."""
    shelf = Shelf(studio)
    waiting = {name: shelf.held(name).value for name in shelf.columns if _waits(shelf, name)}
    put(studio, "hierarchies put into the plan", waiting)
    return "/hierarchies"


def _rule(studio: Studio, form: Form, request: Request) -> str:
    counts, name = _asked(studio, form)
    value = rule_of(form)
    made = Hierarchy.from_plan(value)
    made.codes(counts.table, name)  # refuses a rule that does not fit the column
    put(studio, f"hierarchy of {name}: {_words(made)}", {name: value})
    return _to_column(form, name)


def _propose(studio: Studio, form: Form, request: Request) -> str:
    counts, name = _asked(studio, form)
    made = Hierarchy.propose(counts.table, name, kind=form.one("kind"))
    put(studio, f"hierarchy of {name}: {_words(made)}", {name: made})
    return _to_column(form, name)


def _reset(studio: Studio, form: Form, request: Request) -> str:
    _, name = _asked(studio, form)
    put(studio, f"hierarchy of {name} left to Shoal", {name: None})
    return _to_column(form, name)


def _list(studio: Studio, form: Form, request: Request) -> str:
    """Turn a rule into a list of the values, to be edited one by one."""
    counts, name = _asked(studio, form)
    if counts.table.distinct(name) > _LISTED:
        raise InputError(
            f"The column has more than {_LISTED:,} different values, too many to edit one by one; "
            "take a rule."
        )
    made = counts.hierarchy(name).listed(counts.table, name)
    put(studio, f"hierarchy of {name} as a list", {name: made})
    return _to_column(form, name)


def _import(studio: Studio, form: Form, request: Request) -> str:
    counts, name = _asked(studio, form)
    place = studio.dataset.allowed(form.one("file"))
    if not place.is_file():
        raise InputError("There is no such file; choose one of the list.")
    made = read_file(place)
    lacking, values = made.uncovered(counts.table, name), len(counts.codes(name).column.levels)
    if values and lacking == values:
        raise InputError(
            f"'{place.name}' lists none of the {values:,} values of the column; it is a hierarchy "
            "of another one."
        )
    put(studio, f"hierarchy of {name} imported", {name: made})
    return _to_column(form, name)


def _cover(studio: Studio, form: Form, request: Request) -> str:
    """Add the values that a list lacks, directly under the root."""
    counts, name = _asked(studio, form)
    made = counts.hierarchy(name).covering(counts.table, name)
    put(studio, f"hierarchy of {name}: values added", {name: made})
    return _to_column(form, name)


def _edit(studio: Studio, form: Form, request: Request) -> str:
    """Change nodes or levels of a list."""
    counts, name = _asked(studio, form)
    hierarchy = counts.hierarchy(name)
    if hierarchy.is_function:
        raise InputError("This hierarchy is a rule; turn it into a list to edit its groups.")
    what, _, level = form.one("do").partition(".")
    rows: Any
    if what in WITH_LEVEL:
        rows = WITH_LEVEL[what](hierarchy.rows, _whole(level, 0, _MOST, "level"))
    elif what in WITH_NODES:
        nodes = [_node(each) or (0, 0) for each in form.all("node")]
        if len({at for at, _ in nodes}) > 1:
            raise InputError("What is selected is on several levels; select on one level.")
        at = nodes[0][0] if nodes else 0
        chosen = {number for _, number in nodes}
        rows = WITH_NODES[what](hierarchy.rows, at, chosen, form.one("label", ""))
    else:
        raise InputError("There is no such change; reload the page.")
    words = {"add": "a level added", "drop": "a level taken out", "join": "joined"}
    words |= {"move": "moved", "split": "split", "rename": "renamed"}
    made = Hierarchy.from_rows(rows)
    put(
        studio,
        f"hierarchy of {name}: {words[what]}",
        {name: made},
        based_on=form.whole("version"),
    )
    return _to_column(form, name)


def _asked(studio: Studio, form: Form) -> tuple[Counts, str]:
    counts = Counts(studio)
    return counts, _named(counts, form.one("name"))


def _to_column(form: Form, name: str) -> str:
    wanted = {"name": name}
    for key in ("levels", "show", "at"):
        if form.one(key, ""):
            wanted[key] = form.one(key)
    return f"/hierarchies/column?{urlencode(wanted)}"


ROOM = Room(
    "hierarchies",
    "Hierarchies",
    "A hierarchy says how a value becomes coarser, step by step, until it says nothing. "
    "Generalizing takes the finest level that hides everybody in a crowd, so good levels keep a "
    "table useful. "
    "Shoal proposes them from the values alone: where you know groups that mean something, make "
    "them here.",
    "hierarchies",
    _mark,
    [
        page("/hierarchies", _overview),
        page("/hierarchies/column", _column),
        action("/hierarchies/keep", _keep),
        action("/hierarchies/use", _use),
        action("/hierarchies/rule", _rule),
        action("/hierarchies/propose", _propose),
        action("/hierarchies/reset", _reset),
        action("/hierarchies/list", _list),
        action("/hierarchies/import", _import),
        action("/hierarchies/cover", _cover),
        action("/hierarchies/edit", _edit),
    ],
)
