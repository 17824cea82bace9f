"""Search: the space of levels to explore, and the plans that tuning tries."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import tomlkit
from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._dataset import PATIENCE
from shoal.app.studio._jobs import Job
from shoal.app.studio._pages import Form, Mark, Room, Studio, action, address, page, show
from shoal.app.studio._tasks import TRIED
from shoal.app.studio.planning import _edits as edits
from shoal.app.studio.planning._beginnings import hierarchies_in_plan
from shoal.app.studio.planning._fields import number_in
from shoal.app.studio.planning._levels import (
    ask_of,
    cells_of,
    found_by,
    space_of,
    view_of,
)
from shoal.app.studio.screens.plan import place_of
from shoal.errors import InputError, MissingExtra, ShoalError
from shoal.parameters import Constraint, Integer, Real
from shoal.study.figures import front_of
from shoal.study.tuning import utility_title
from shoal.workflow import discover_all_measures

_RISK: Final = "distance_linkage"
_TESTED, _KEPT = "predictive_performance", "nonuniform_entropy"
_MOST_TRIED: Final = 2_000


def _mark(studio: Studio) -> Mark:
    jobs = studio.jobs.all("search", "tune")
    running = [job for job in jobs if job.is_running]
    if running:
        return Mark("open", f"{len(running)} running")
    done = sum(job.state == "done" for job in jobs)
    return Mark("done", f"{done} done") if done else Mark("open", "optional")


# -- levels


def _show(studio: Studio, request: Request) -> Response:
    place, query = place_of(studio), request.query_params
    ask = ask_of(studio, place, query)
    job = found_by(studio.jobs.all("search"), ask)
    found = None if job is None else job.result()
    facts: dict[str, Any] = {"ask": ask, "job": job, "found": found, "place": place}
    facts |= {"earlier": ask.at or 0, "query": dict(query), "space": None, "refused": None}
    end = time.monotonic() + PATIENCE
    try:
        counted = space_of(studio, place, ask)
        if not counted.is_whole(end):
            return show(request, "search.html.j2", ROOM, **facts)
    except ShoalError as cause:
        return show(request, "search.html.j2", ROOM, **facts | {"refused": str(cause)})
    (space,) = counted.found
    best = None if found is None else found["levels"]
    view = view_of(space, query, best)
    cells = cells_of(studio, ask, space, view)
    cells.is_whole(end)
    rows = list(cells.found)
    nodes = [node for row in rows for node in row]
    chosen = next((node for node in nodes if node.levels == view.levels), None)
    worst = max((node.loss for node in nodes), default=1.0) or 1.0
    facts |= {"space": space, "view": view, "best": best, "worst": worst}
    facts |= {"chosen": chosen or space.at(view.levels), "to": _address(space, view, ask)}
    facts |= {"rows": rows, "left": range(len(rows), space.heights[view.down] + 1)}
    return show(request, "search.html.j2", ROOM, **facts)


def _address(space: Any, view: Any, ask: Any) -> Any:
    """Addresses of other levels in the same view."""
    fixed = {
        "k": ask.k,
        "limit": ask.limit,
        "down": space.names.index(view.down),
        "across": space.names.index(view.across),
    }

    def to(levels: Mapping[str, int]) -> str:
        at = {f"l{place}": levels[name] for place, name in enumerate(space.names)}
        return address("/search", **fixed, **at)

    return to


def _start(studio: Studio, form: Form, request: Request) -> str:
    place = place_of(studio)
    ask = ask_of(studio, place, {"k": form.one("k", ""), "limit": form.one("limit", "")})
    ask.made(studio.project)
    seconds = _number(form, "seconds", Real(above=0)) or 60.0
    studio.start("search", "Best levels", step=ask.step, digest=ask.digest, seconds=seconds)
    return address("/search", k=ask.k, limit=ask.limit)


def _use_levels(studio: Studio, form: Form, request: Request) -> str:
    """Write the levels into the plan, together with their hierarchies."""
    place = place_of(studio)
    ask = ask_of(studio, place, {"k": form.one("k", ""), "limit": form.one("limit", "")})
    names = list(ask.step.get("columns") or place.table.roles.quasi_identifiers)
    levels = {name: form.whole(f"l{number}") for number, name in enumerate(names)}
    given = {**place.made, **ask.step.get("hierarchies", {})}
    found = hierarchies_in_plan(place.table, names, studio.project, given)
    step = {**ask.step, "levels": levels, "hierarchies": found}
    made = replace(ask, step=step).made(studio.project)
    node = made.space(place.table).at(levels)
    if not node.allowed:
        raise InputError(
            f"At these levels {node.suppressed:,} records are in crowds that fail, more than may "
            "be suppressed. Choose a cell that is allowed, or raise the limit."
        )
    with studio.project.changing("levels chosen") as (plan, _):
        now = edits.steps_in(plan.unwrap())
        if ask.at is None or ask.at >= len(now) or now[ask.at].get("method") != "generalize":
            edits.add_step(plan, step)
        else:
            edits.remove_step(plan, ask.at)
            edits.add_step(plan, step, ask.at)
    return "/plan"


# -- plans


def _show_tune(studio: Studio, request: Request) -> Response:
    return show(request, "searchtune.html.j2", ROOM, **_tuning_facts(studio, request))


def _show_front(studio: Studio, request: Request) -> Response:
    """Only the picture, which a page requests again while it grows."""
    return show(request, "parts/searchfront.html.j2", ROOM, **_tuning_facts(studio, request))


def _tuning_facts(studio: Studio, request: Request) -> dict[str, Any]:
    query = request.query_params
    table = place_of(studio).table
    jobs = studio.jobs.all("tune")
    job = next((one for one in jobs if one.id == query.get("job")), jobs[0] if jobs else None)
    tried = _tried(job)
    options: Mapping[str, Any] = {} if job is None else job.options
    limits = [_asked_limit(query, options, name) for name in ("max_risk", "min_utility")]
    chosen, result = None, None if job is None else job.result()
    number = query.get("plan", "")
    if number.isdecimal() and int(number[:9]) < len(tried):
        chosen = {"number": int(number), **tried[int(number)]}
        chosen["toml"] = _toml(_steps_of(chosen, job))
    installed = importlib.util.find_spec("optuna") is not None
    return {
        "jobs": jobs,
        "job": job,
        "tried": tried,
        "front": front_of(tried, *limits) if tried else None,
        "chosen": chosen,
        "result": result,
        "options": options,
        "utilities": _utilities(),
        "utility": options.get("utility", _TESTED if table.roles.target else _KEPT),
        "risk_title": discover_all_measures()[_RISK].title,
        "table": table,
        "missing": None if installed else str(MissingExtra("Tuning over many plans", "study")),
    }


def _utilities() -> dict[str, tuple[str, bool]]:
    """The utilities for tuning: their titles, and whether they test models."""
    return {
        name: (utility_title(name), info.target)
        for name, info in discover_all_measures().items()
        if info.about == "utility" and not info.on_request and math.isfinite(info.limits[1])
    }


def _tried(job: Job | None) -> list[dict[str, Any]]:
    found = None if job is None else job.result(TRIED)
    return found if isinstance(found, list) else []


def _asked_limit(query: Mapping[str, str], options: Mapping[str, Any], name: str) -> float | None:
    value: Any = number_in(query[name]) if query.get(name) else options.get(name)
    return float(value) if Real(minimum=0, maximum=1).accepts(value) else None


def _steps_of(one: Mapping[str, Any], job: Job | None) -> list[dict[str, Any]]:
    """The steps of a tried plan; for the plan itself, as they are written."""
    if one["family"] == "given plan" and job is not None:
        return edits.steps_in(edits.raw_plan(job.plan))
    return [dict(step) for step in one["steps"]]


def _toml(steps: list[dict[str, Any]]) -> str:
    document = tomlkit.document()
    edits.replace_all(document, steps)
    return tomlkit.dumps(document)


def _start_tune(studio: Studio, form: Form, request: Request) -> str:
    table = place_of(studio).table
    options = {
        "max_risk": _number(form, "max_risk", Real(above=0, below=1)),
        "min_utility": _number(form, "min_utility", Real(above=0, below=1)),
        "trials": _number(form, "trials", Integer(minimum=1)) or 60,
        "search_rows": _number(form, "search_rows", Integer(minimum=20)) or 5_000,
        "utility": form.one("utility", _TESTED),
        "target": form.one("target", "") or None,
    }
    if options["max_risk"] is None and options["min_utility"] is None:
        raise InputError("Enter the highest risk or the lowest utility that you accept, or both.")
    if options["trials"] > _MOST_TRIED:
        raise InputError(f"Enter at most {_MOST_TRIED:,} plans to try.")
    if options["utility"] not in _utilities():
        raise InputError("There is no such measure of utility. Choose one from the list.")
    _, tests_models = _utilities()[options["utility"]]
    target = options["target"] or table.roles.target
    if not tests_models:
        options["target"] = None
    elif target is None:
        raise InputError("Choose the column that models predict, or a utility that needs none.")
    else:  # a column that cannot be one is refused
        table.with_roles(table.roles.replacing(target=target))
    job = studio.start("tune", "Plans tried", **options)
    return f"/search/tune?job={job.id}"


def _number(form: Form, name: str, constraint: Constraint) -> Any:
    text = form.one(name, "").strip()
    if not text:
        return None
    value = number_in(text)
    if not constraint.accepts(value):
        raise InputError(f"'{name.replace('_', ' ')}' must be {constraint.describe()}.")
    return value


def _use_plan(studio: Studio, form: Form, request: Request) -> str:
    """Replace the plan's steps with those of a tried plan, as one version."""
    job = studio.jobs.get(form.one("job"))
    tried, number = _tried(job), form.whole("plan")
    if job.kind != "tune" or not 0 <= number < len(tried):
        raise InputError("There is no such plan in this search. Reload the page.")
    one = tried[number]
    steps = _steps_of(one, job)
    limit, target = job.options.get("max_risk"), job.options.get("target")
    held = limit is not None and one["risk"] is not None and one["risk"] <= limit

    what = f"plan taken from the search: {one['plan']}"
    with studio.project.changing(what) as (plan, _):
        edits.replace_all(plan, steps)
        if held:
            edits.set_requirement(plan, "max_linkage_rate", 0, limit)
        if target and "roles" in plan and "target" not in plan["roles"]:
            plan["roles"]["target"] = target
    return "/plan"


ROOM = Room(
    "search",
    "Search",
    "There are more plans than anyone can try by hand, and the first one that holds seldom loses "
    "the least. Here you see the cost of each before you choose, and whether a better one can "
    "exist.",
    "tune",
    _mark,
    [
        page("/search", _show),
        action("/search/start", _start),
        action("/search/use-levels", _use_levels),
        page("/search/tune", _show_tune),
        page("/search/front", _show_front),
        action("/search/tune/start", _start_tune),
        action("/search/use-plan", _use_plan),
    ],
)
