"""Hierarchies: how each quasi-identifier becomes coarser, and how that protects people."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from shoal.app.studio._pages import Mark, Room, Studio, address, page, show
from shoal.app.studio.ladder._actions import (
    ACTIONS,
    LISTED,
    named,
    node_of,
    whole,
    words_of,
)
from shoal.app.studio.ladder._ladder import SHOWN, Ladder
from shoal.app.studio.ladder._ladders import Ladders
from shoal.app.studio.ladder._rules import RULES_FOR, proposals_for
from shoal.app.studio.ladder._store import Held, Shelf
from shoal.errors import InputError, ShoalError
from shoal.table.hierarchy._rule import UNITS

#: How many seconds a page makes ladders before it is shown; the rest follows when it asks again.
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
    return Mark("attention", f"{len(shelf.columns) - decided} only proposed; review them")


@dataclass(frozen=True)
class Line:
    """A column on the overview; counts that are not ready are None."""

    held: Held
    levels: int = 0
    words: str = ""
    chosen: int = 0
    alone: list[int] | None = None
    lacking: int = 0
    problem: str = ""


def _overview(studio: Studio, request: Request) -> Response:
    ladders = Ladders(studio)
    shelf, deadline = ladders.shelf, time.monotonic() + _PATIENCE
    lines = [_line(ladders, column, deadline) for column in ladders.columns]
    broken = any(line.problem for line in lines)
    facts: dict[str, Any] = {
        "absent": [name for name in shelf.columns if name not in ladders.columns],
        "kept": [name for name in ladders.columns if shelf.waits(name)],
        "generalizes": shelf.generalizes,
        "people": ladders.table.person_count,
        "again": f"/hierarchies?{request.url.query}",
        "lines": lines,
        "broken": broken,
        "pending": not broken and not all(line.levels for line in lines),
        "alone": None,
    }
    if lines and not broken and not facts["pending"]:
        levels = _levels(request, ladders)
        facts["alone"] = ladders.alone_at(levels)
        facts["lines"] = [_counted(each, ladders, levels, deadline) for each in lines]
        facts["pending"] = any(each.alone is None for each in facts["lines"])
        facts["links"] = _level_links(levels, lines)
        facts["raised"] = {name: level for name, level in levels.items() if level}
        facts["along"] = _along(levels)
    return show(request, "hierarchies/overview.html.j2", ROOM, **facts)


def _line(ladders: Ladders, column: str, deadline: float) -> Line:
    """A column with its hierarchy, if there is time to make it."""
    held = ladders.shelf.held(column)
    if time.monotonic() > deadline:
        return Line(held)
    try:
        found = ladders.hierarchy(column)
        ladders.codes(column)
    except ShoalError as cause:
        return Line(held, problem=str(cause))
    lacking = found.uncovered(ladders.table, column)
    return Line(held, found.levels, words_of(found), lacking=lacking)


def _counted(line: Line, ladders: Ladders, levels: Mapping[str, int], deadline: float) -> Line:
    column = line.held.column
    alone = ladders.alone(column, levels) if time.monotonic() < deadline else None
    return replace(line, chosen=levels[column], alone=alone)


# -- the levels of the columns


def _levels(request: Request, ladders: Ladders) -> dict[str, int]:
    """The level of each column, from the address or the plan; by default 0, the values."""
    given = request.query_params.get("levels", "")
    if not given:
        return ladders.planned()
    words = given.split(".")
    if len(words) != len(ladders.columns) or not all(word.isdecimal() for word in words):
        raise InputError("The address does not fit the columns of the plan. Go to Hierarchies.")
    found = dict(zip(ladders.columns, map(int, words), strict=True))
    for name, level in found.items():
        if level >= ladders.hierarchy(name).levels:
            found[name] = ladders.hierarchy(name).levels - 1  # it was edited in the meantime
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
    ladders = Ladders(studio)
    name = named(ladders, asked["name"])
    held = ladders.shelf.held(name)
    facts: dict[str, Any] = {"name": name, "held": held, "files": _files(studio)}
    facts |= _forms(ladders, name, held)
    try:
        hierarchy, ladder = ladders.hierarchy(name), ladders.ladder(name)
    except ShoalError as cause:
        facts["problem"] = str(cause)
        return show(request, "hierarchies/broken.html.j2", ROOM, **facts)
    ladders.check()
    levels = _levels(request, ladders)
    finest = min(whole(asked.get("at"), _readable(ladder), "level"), ladder.levels - 1)
    under = node_of(asked.get("under"))
    section = ladder.section(finest, whole(asked.get("page"), 1, "page"), under)
    shown = asked.get("show") == "values"
    others = {other: level for other, level in levels.items() if other != name}
    planned = ladders.shelf.level_of(name)
    facts |= {
        "hierarchy": hierarchy,
        "words": words_of(hierarchy),
        "alone": ladders.alone(name, levels),
        "people": ladders.table.person_count,
        "by_itself": ladders.alone_by_itself(name),
        "raised": {other: level for other, level in others.items() if level},
        "others": len(others),
        "nodes": [ladder.count(level) for level in range(hierarchy.levels)],
        "at": finest,
        "under": under,
        "section": section,
        "shown": shown,
        "named_from": 1 if hierarchy.is_function and _is_numeric(ladders, name) else 99,
        "lacking": hierarchy.uncovered(ladders.table, name),
        "too_high": planned is not None and planned >= hierarchy.levels,
        "planned": planned,
        "listable": ladders.table.distinct(name) <= LISTED,
    }
    link = _linker(name, finest, levels, under, shown)
    rungs = [link(at=level, under=None) for level in range(ladder.levels)]
    facts |= {"link": link, "rung_links": rungs, "along": _along(levels)}
    facts["path"] = link(show=None, under=None)  # where undo returns to
    return show(request, "hierarchies/column.html.j2", ROOM, **facts)


def _readable(ladder: Ladder) -> int:
    """The finest level that fits on a page; the coarsest between the ends if none does."""
    inner = range(max(ladder.levels - 1, 1))
    return next((level for level in inner if ladder.count(level) <= SHOWN), inner[-1])


def _is_numeric(ladders: Ladders, column: str) -> bool:
    """Whether the labels of a function are not parts of values: intervals, calendar units."""
    return ladders.codes(column).bounds(0) is not None and "prefixes" not in words_of(
        ladders.hierarchy(column)
    )


def _forms(ladders: Ladders, name: str, held: Held) -> dict[str, Any]:
    """The forms of a column, filled with the current hierarchy."""
    kind = ladders.table.kind(name)
    rule = held.value if isinstance(held.value, dict) else {}
    if held.value is None:
        proposed = ladders.hierarchy(name)
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
    """Makes addresses of this page with some parameters changed."""
    now: dict[str, Any] = {"name": name, "at": at, "levels": _along(levels)}
    now |= {"under": None if under is None else f"{under[0]}.{under[1]}"}
    now |= {"show": "values" if shown else None, "page": None}

    return lambda **changed: address("/hierarchies/column", **now | changed)


def _files(studio: Studio) -> list[tuple[str, str]]:
    """The files that may be hierarchies."""
    source = studio.dataset.source

    def fits(path: Path) -> bool:
        return path.suffix == ".csv" and path != source

    return studio.dataset.files(fits, "hierarchies")


ROOM = Room(
    "hierarchies",
    "Hierarchies",
    "A hierarchy defines how a value becomes coarser, step by step, until nothing is left. "
    "Generalization takes the finest level that hides everybody in a crowd, so good levels keep a "
    "table useful. "
    "Shoal proposes them from the values alone: if you know meaningful groups, make "
    "them here.",
    "hierarchies",
    _mark,
    [
        page("/hierarchies", _overview),
        page("/hierarchies/column", _column),
        *ACTIONS,
    ],
)
