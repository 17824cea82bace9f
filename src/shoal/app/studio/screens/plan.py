"""Plan: the steps in their order, and what must hold after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shoal.app.studio._pages import Form, Mark, Room, Studio, action, page, show
from shoal.app.studio._project import Conflict
from shoal.app.studio.planning import _edits as edits
from shoal.app.studio.planning._beginnings import (
    BEGINNINGS,
    beginning_called,
    hierarchies_in_plan,
    plan_for,
)
from shoal.app.studio.planning._fields import Field, Place, fields_of, shown_first, values_of
from shoal.app.studio.planning._methods import methods_for, said_of, touched_by
from shoal.app.studio.planning._requirements import (
    asked_of,
    in_words,
    offers_for,
    requirements_in,
    usual_of,
    value_from,
)
from shoal.errors import InputError, PlanError, ShoalError
from shoal.masking import discover_maskers
from shoal.table import Roles
from shoal.workflow.report._words import step_title


@dataclass(frozen=True)
class Card:
    """A step as the page shows it."""

    number: int
    method: str
    title: str
    summary: str
    traps: str
    first: list[Field]
    more: list[Field]
    columns: list[str]
    note: str
    problem: str | None


def _mark(studio: Studio) -> Mark:
    plan = studio.project.plan
    steps, asked = len(plan.steps), len(plan.require)
    if not steps:
        return Mark("attention", "no step yet")
    counted = f"{steps} step{'s' * (steps != 1)}"
    if not asked:
        return Mark("attention", f"{counted}; nothing is required")
    return Mark("done", f"{counted}, {asked} requirement{'s' * (asked != 1)}")


# -- looking


def place_of(studio: Studio) -> Place:
    """The table with the roles of the plan, as far as it can be read, and hierarchies."""
    found = studio.dataset.loaded()
    try:
        roles = studio.project.plan.roles
    except ShoalError:
        raw = edits.raw_plan(studio.project.version.plan).get("roles")
        roles = _roles_in(raw)
    made = studio.project.settings.get("hierarchies", {})
    return Place(found.with_roles(roles), made if isinstance(made, Mapping) else {})


def _roles_in(raw: Any) -> Roles | None:
    try:
        return Roles.from_dict(raw) if isinstance(raw, Mapping) else None
    except ShoalError:
        return None


def _show(studio: Studio, request: Request) -> Response:
    return _page(studio, request, request.query_params.get("require", ""))


def _page(
    studio: Studio, request: Request, new: str = "", wrong: Mapping[str, str] | None = None
) -> Response:
    place = place_of(studio)
    raw = edits.raw_plan(studio.project.version.plan)
    steps = edits.steps_in(raw)
    return show(
        request,
        "plan.html.j2",
        ROOM,
        cards=[_card(number, step, place, studio) for number, step in enumerate(steps)],
        asked=requirements_in(raw.get("require"), place),
        new=asked_of(new, usual_of(new), place) if new else None,
        methods=methods_for(place.table),
        offers=offers_for(place.table),
        beginnings=BEGINNINGS,
        roles=place.table.roles,
        wrong=dict(wrong or {}),
    )


def _card(number: int, raw: Mapping[str, Any], place: Place, studio: Studio) -> Card:
    method = str(raw.get("method", ""))
    cls = discover_maskers().get(method)
    columns: list[str] = []
    problem, note = None, ""
    try:
        columns, note = touched_by(studio.project.step(raw), place.table)
    except ShoalError as cause:
        problem = str(cause)
    if cls is None:
        title = method or "a step without a method"
        return Card(number, method, title, "", "", [], [], [], "", problem)
    said = said_of(method)
    given = edits.parameters_in(raw, cls)
    first, more = shown_first(fields_of(cls, given, place), said["matter"])
    summary = f"{cls.summary[0].upper()}{cls.summary[1:]}."
    title, traps = step_title(method), said["traps"]
    return Card(number, method, title, summary, traps, first, more, columns, note, problem)


# -- changing

_Change = Callable[[Studio, Form], None]


def _beside(path: str, change: _Change) -> Route:
    """An action whose error is shown next to its card."""

    def act(studio: Studio, form: Form, request: Request) -> str | Response:
        try:
            change(studio, form)
        except Conflict:
            raise
        except ShoalError as cause:
            card = form.one("card", "")
            if not card:
                raise
            new = form.one("key", "") if card == "new" else ""
            answer = _page(studio, request, new, {card: str(cause)})
            answer.status_code = 422
            answer.headers["hx-push-url"] = "false"
            return answer
        return "/plan"

    return action(path, act)


def _begin(studio: Studio, form: Form) -> None:
    beginning = beginning_called(form.one("name"))
    place = place_of(studio)
    steps, require = plan_for(beginning, place.table, studio.project, place.made)
    with studio.project.changing(f"started as: {beginning.title}") as (plan, _):
        edits.replace_all(plan, steps, require)


def _add_step(studio: Studio, form: Form) -> None:
    place, name = place_of(studio), form.one("method")
    method = next((one for one in methods_for(place.table) if one.name == name), None)
    if method is None:
        raise InputError("There is no such method. Choose one from the list.")
    if method.unfit is not None:
        raise InputError(f"{method.title} does not fit this table. {method.unfit}")
    step: dict[str, Any] = {"method": method.name, **method.usual}
    if method.name == "generalize" and place.table.roles.quasi_identifiers:
        names = place.table.roles.quasi_identifiers
        found = hierarchies_in_plan(place.table, names, studio.project, place.made, ordered=True)
        # a hierarchy that was made by hand is also used for numbers
        step["hierarchies"] = {n: place.made[n] for n in names if n in place.made} | found
    with studio.project.changing(f"step added: {method.title}") as (plan, _):
        edits.add_step(plan, step)


@contextmanager
def _changing_step(studio: Studio, form: Form, what: str) -> Iterator[tuple[Any, int]]:
    """The plan, and the number of the step in it that the page shows."""
    number, version = form.whole("step"), form.whole("version")
    with studio.project.changing(f"step {number + 1} {what}") as (plan, _):
        edits.check_step(studio.project, version, plan, number)
        yield plan, number


def _change_step(studio: Studio, form: Form) -> None:
    place = place_of(studio)
    with _changing_step(studio, form, "changed") as (plan, number):
        raw = edits.steps_in(plan.unwrap())[number]
        cls = discover_maskers().get(str(raw.get("method")))
        if cls is None:
            raise PlanError("This step has no method that Shoal knows. Remove it.")
        given = edits.parameters_in(raw, cls)
        values = values_of(cls, form, given, place)
        studio.project.step({"method": cls.method, **values})  # raises if it is wrong
        edits.change_step(plan, number, values)


def _move_step(studio: Studio, form: Form) -> None:
    by = form.whole("by")
    with _changing_step(studio, form, f"moved {'up' if by < 0 else 'down'}") as (plan, number):
        edits.move_step(plan, number, by)


def _remove_step(studio: Studio, form: Form) -> None:
    with _changing_step(studio, form, "removed") as (plan, number):
        edits.remove_step(plan, number)


def _add_requirement(studio: Studio, form: Form) -> None:
    key = form.one("key")
    value = value_from(key, form, usual_of(key), place_of(studio))
    with studio.project.changing(f"required: {_said(key, value)}") as (plan, _):
        edits.set_requirement(plan, key, None, value)


def _change_requirement(studio: Studio, form: Form) -> None:
    key = form.one("key")
    value = value_from(key, form, {}, place_of(studio))
    _set_requirement(studio, form, f"required: {_said(key, value)}", value)


def _said(key: str, value: Any) -> str:
    """A requirement as the history shows it."""
    given = value if isinstance(value, Mapping) else {next(iter(usual_of(key))): value}
    return in_words(key, given).rstrip(".")


def _remove_requirement(studio: Studio, form: Form) -> None:
    _set_requirement(studio, form, f"no longer required: {form.one('key')}", None)


def _set_requirement(studio: Studio, form: Form, what: str, value: Any) -> None:
    """Set the requirement that the page shows; None removes it."""
    key, number, version = form.one("key"), form.whole("place"), form.whole("version")
    with studio.project.changing(what) as (plan, _):
        edits.check_requirement(studio.project, version, plan, key, number)
        edits.set_requirement(plan, key, number, value)


ROOM = Room(
    "plan",
    "Plan",
    "Steps run one after the other, each on the result of the one before. Requirements are checked "
    "after the last step, by code that takes no part in masking. If one does not hold, nothing is "
    "released. So a wrong step costs time, but a missing requirement exposes people.",
    "plan",
    _mark,
    [
        page("/plan", _show),
        _beside("/plan/begin", _begin),
        _beside("/plan/steps/add", _add_step),
        _beside("/plan/steps/change", _change_step),
        _beside("/plan/steps/move", _move_step),
        _beside("/plan/steps/remove", _remove_step),
        _beside("/plan/require/add", _add_requirement),
        _beside("/plan/require/change", _change_requirement),
        _beside("/plan/require/remove", _remove_requirement),
    ],
)
