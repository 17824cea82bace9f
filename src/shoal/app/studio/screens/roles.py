"""Roles: the role of each column, its reason, and which columns together single people out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import tomlkit
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from shoal.app.studio._dataset import Loaded
from shoal.app.studio._pages import Form, Mark, Room, Studio, action, address, page, set_in, show
from shoal.app.studio.exposure._counts import Spark
from shoal.app.studio.planning._levels import count_ahead
from shoal.app.studio.screens.plan import place_of
from shoal.errors import InputError
from shoal.table import Roles
from shoal.table.suggestion._role_suggestion import ColumnFacts

_LISTS: Final = ("identifiers", "quasi_identifiers", "sensitive", "insensitive", "drop")
_SINGLES: Final = ("weight", "target")
_BOTH: Final = "sensitive_target"
_PARTS: Final = {_BOTH: ("sensitive", "target")}
#: The choices for a column, with their meanings.
CHOICES: Final = {
    "": ("not decided", ""),
    "identifiers": ("identifier", "identifies a person directly; it is never released"),
    "quasi_identifiers": ("quasi-identifier", "others may know it; it is masked"),
    "sensitive": ("sensitive", "what nobody may learn about a person"),
    "insensitive": ("release unchanged", "does not help to find a person"),
    "drop": ("leave out", "it is never released, whatever it holds"),
    "weight": ("sampling weight", "how many people a row stands for; one column"),
    "target": ("target", "what models predict; one column"),
    _BOTH: ("target and sensitive", "what models predict and nobody may learn"),
}
_OWNERS: Final = {"unit": "whose row it is", "household": "who lives together"}
_A_PAGE: Final = 50
_LONGEST_REASON: Final = 2_000
_SUGGESTED: Final = "As suggested: "


@dataclass(frozen=True)
class Line:
    """A column as its line shows it."""

    number: int
    facts: ColumnFacts
    role: str
    owner: str | None
    reason: str
    spark: Spark

    @property
    def takes(self) -> bool:
        """Whether there is a suggestion that is not already the role."""
        role = self.facts.role
        return self.owner is None and role is not None and role != self.role.removesuffix("_target")


@dataclass(frozen=True)
class View:
    """Which columns a page shows: one page of those that match a filter."""

    text: str = ""
    undecided: bool = False
    page: int = 1
    keep: str = ""

    @classmethod
    def of(cls, given: QueryParams | Mapping[str, str]) -> View:
        number = given.get("page", "1")
        page = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1
        text = given.get("q", "")[:200].strip()
        return cls(text, given.get("only") == "open", max(1, page), given.get("keep", ""))

    def address(self, **other: Any) -> str:
        """The address of such a page."""
        given = {"q": self.text, "only": "open" if self.undecided else "", "page": self.page}
        given |= {"keep": self.keep, **other}
        return address("/roles", **given | ({"page": None} if given["page"] == 1 else {}))

    def shows(self, number: int, name: str, role: str) -> bool:
        """Whether the filter matches a column; one that was just decided stays visible."""
        if self.text.casefold() not in name.casefold():
            return False
        return not (self.undecided and role) or str(number) == self.keep


def roles_in(studio: Studio, loaded: Loaded) -> tuple[Roles, list[str]]:
    """The plan's roles of the table's columns, and the columns that the table does not have."""
    roles = studio.project.plan.roles or Roles()
    known = set(loaded.table.columns)
    absent = list(dict.fromkeys(name for _, name in roles.items() if name not in known))
    return (roles.without(absent) if absent else roles), absent


def choice_of(roles: Roles, name: str) -> str:
    """The current choice of a column; empty if it is not decided."""
    if name == roles.target:
        return _BOTH if name in roles.sensitive else "target"
    role = roles.of(name)
    return role if role is not None and role not in _OWNERS else ""


def undecided(roles: Roles, columns: Iterable[str]) -> list[str]:
    """The columns without any role."""
    return [name for name in columns if roles.of(name) is None]


def _mark(studio: Studio) -> Mark:
    loaded = studio.dataset.if_loaded
    if loaded is None:
        return Mark("open", "")
    roles, absent = roles_in(studio, loaded)
    left = len(undecided(roles, loaded.table.columns))
    if left:
        return Mark("blocks", f"{left:,} {'column' if left == 1 else 'columns'} not decided")
    if absent:
        return Mark("blocks", f"{len(absent):,} in the plan, not in the table")
    quasi = len(roles.quasi_identifiers)
    if not quasi:
        return Mark("attention", "no quasi-identifier")
    return Mark("done", f"{quasi:,} quasi-identifier{'' if quasi == 1 else 's'}")


def _show(studio: Studio, request: Request) -> Response:
    loaded = studio.dataset.loaded()
    roles, absent = roles_in(studio, loaded)
    view = View.of(request.query_params)
    columns = loaded.table.columns
    shown = [
        (number, name)
        for number, name in enumerate(columns)
        if view.shows(number, name, roles.of(name) or "")
    ]
    pages = max(1, -(-len(shown) // _A_PAGE))
    first = (min(view.page, pages) - 1) * _A_PAGE
    lines = _lines(studio, loaded, roles, shown[first : first + _A_PAGE])
    exposure, left = _exposure(loaded, roles), len(undecided(roles, columns))
    if not left and not absent and exposure["crowds"] and not exposure["counting"]:
        count_ahead(studio, place_of(studio))
    return show(
        request,
        "roles.html.j2",
        ROOM,
        lines=lines,
        view=view,
        found=len(shown),
        pages=pages,
        at=min(view.page, pages),
        columns=len(columns),
        left=left,
        suggested=len(_suggestions(loaded, roles)),
        absent=absent,
        roles=roles,
        choices=CHOICES,
        **exposure,
    )


def _lines(
    studio: Studio, loaded: Loaded, roles: Roles, shown: Sequence[tuple[int, str]]
) -> list[Line]:
    reasons = studio.project.settings.get("reasons", {})
    facts, counts = loaded.suggestion.columns, loaded.counts
    owners = {name: _OWNERS[role] for role, name in reversed(roles.items()) if role in _OWNERS}
    return [
        Line(
            number,
            facts[number],
            choice_of(roles, name),
            owners.get(name),
            str(reasons.get(name, "")),
            counts.spark(name),
        )
        for number, name in shown
    ]


def _exposure(loaded: Loaded, roles: Roles) -> dict[str, Any]:
    """How many people are unique, and the smallest sets of columns that single them out."""
    candidates = _may_be_known(loaded, roles)
    facts = loaded.counts.exposure(roles.quasi_identifiers, candidates, roles)
    total = 0 if facts["problem_of_unit"] else loaded.counts.people(roles)
    return facts | {"crowds_total": total, "candidates": candidates}


def _may_be_known(loaded: Loaded, roles: Roles) -> tuple[str, ...]:
    """The quasi-identifiers, and undecided columns that look like one."""
    quasi = "quasi_identifiers"
    return tuple(
        facts.name
        for facts in loaded.suggestion.columns
        if (roles.of(facts.name) or facts.role) == quasi
    )


def _suggestions(loaded: Loaded, roles: Roles) -> dict[str, ColumnFacts]:
    """The undecided columns that have a usable suggestion."""
    taken = {role for role in _SINGLES if getattr(roles, role)}
    return {
        facts.name: facts
        for facts in loaded.suggestion.columns
        if facts.role and facts.role not in taken and roles.of(facts.name) is None
    }


# -- changes


@contextmanager
def _changing(studio: Studio, loaded: Loaded, what: str) -> Iterator[tuple[Any, Any]]:
    """The roles in the plan, and the settings; roles that do not fit the table are refused."""
    with studio.project.changing(what) as (plan, settings):
        if "roles" not in plan:
            plan["roles"] = tomlkit.table()
        yield plan["roles"], settings
        roles = Roles.from_dict(plan["roles"].unwrap())
        known = set(loaded.table.columns)
        gone = [name for _, name in roles.items() if name not in known]
        loaded.table.with_roles(roles.without(gone))


def _set_roles(roles: Any, settings: Any, choices: Mapping[str, str]) -> None:
    """Change the roles of columns in the text of the plan, and drop suggested reasons."""
    parts = {name: _PARTS.get(choice, (choice,)) for name, choice in choices.items()}
    for role in _LISTS:
        before = list(roles.get(role, ()))
        now = [name for name in before if name not in choices]
        now += [name for name, chosen in parts.items() if role in chosen]
        if now != before:
            set_in(roles, [role], now or None)
    for role in _SINGLES:
        chosen = [name for name, each in parts.items() if role in each]
        if chosen or roles.get(role) in choices:
            set_in(roles, [role], chosen[-1] if chosen else None)
    said = settings.get("reasons", {})
    for name in choices:
        if str(said.get(name, "")).startswith(_SUGGESTED):
            set_in(settings, ["reasons", name], None)


def _named(loaded: Loaded, form: Form) -> tuple[int, str]:
    """The column of a form; browsers change line ends."""
    given = _one_way(form.one("column"))
    for number, name in enumerate(loaded.table.columns):
        if _one_way(name) == given:
            return number, name
    raise InputError("The table has no such column any more. Reload the page.")


def _one_way(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refuse_owner(roles: Roles, name: str) -> None:
    if name in roles.unit_columns or name in roles.household:
        raise InputError("This column says whose row it is or who lives together. Go to Data.")


def _choice(form: Form) -> str:
    choice = form.one("role")
    if choice not in CHOICES:
        raise InputError("There is no such role. Choose one from the list.")
    return choice


def _back(form: Form, **other: Any) -> str:
    return View.of(dict(form.items())).address(**other)


def _decide(studio: Studio, form: Form, request: Request) -> str:
    """The role of one column, and why."""
    loaded = studio.dataset.loaded()
    roles, _ = roles_in(studio, loaded)
    number, name = _named(loaded, form)
    choice, reason = _choice(form), _one_way(form.one("why", "")).strip()
    if len(reason) > _LONGEST_REASON:
        raise InputError(f"A reason is limited to {_LONGEST_REASON:,} characters. Shorten it.")
    before = choice_of(roles, name)
    if choice != before:
        _refuse_owner(roles, name)
    what = f"{name}: {CHOICES[choice][0]}" if choice != before else f"{name}: why"
    with _changing(studio, loaded, what) as (given, settings):
        said = str(settings.get("reasons", {}).get(name, ""))
        if choice != before:
            _set_roles(given, settings, {name: choice})
        if reason != said:
            set_in(settings, ["reasons", name], reason or None)
    return _back(form, keep=number)


def _take(studio: Studio, form: Form, request: Request) -> str:
    """The suggested role of one column."""
    loaded = studio.dataset.loaded()
    roles, _ = roles_in(studio, loaded)
    number, name = _named(loaded, form)
    facts = loaded.suggestion.columns[number]
    if facts.role is None:
        raise InputError("There is no suggestion for this column. Choose a role.")
    _refuse_owner(roles, name)
    with _changing(studio, loaded, f"{name}: {CHOICES[facts.role][0]}, as suggested") as texts:
        _take_all({name: facts}, *texts)
    return _back(form, keep=number)


def _take_suggestions(studio: Studio, form: Form, request: Request) -> str:
    """The suggested roles of all undecided columns, as one version."""
    loaded = studio.dataset.loaded()
    roles, _ = roles_in(studio, loaded)
    taken = _suggestions(loaded, roles)
    with _changing(studio, loaded, f"suggested roles taken for {len(taken):,} columns") as texts:
        _take_all(taken, *texts)
    return _back(form, keep="")


def _take_all(taken: Mapping[str, ColumnFacts], roles: Any, settings: Any) -> None:
    _set_roles(roles, settings, {name: str(facts.role) for name, facts in taken.items()})
    said = settings.get("reasons", {})
    for name, facts in taken.items():
        if not said.get(name):
            set_in(settings, ["reasons", name], f"{_SUGGESTED}{facts.reason}")


def _decide_many(studio: Studio, form: Form, request: Request) -> str:
    """One role for all undecided columns that match a filter."""
    loaded = studio.dataset.loaded()
    roles, _ = roles_in(studio, loaded)
    choice, view = _choice(form), View.of(dict(form.items()))
    if choice not in _LISTS:
        raise InputError("Choose a role that several columns may have.")
    reason = _one_way(form.one("why", "")).strip()[:_LONGEST_REASON]
    names = [name for name in undecided(roles, loaded.table.columns) if view.shows(-1, name, "")]
    what = f"{len(names):,} columns: {CHOICES[choice][0]}"
    with _changing(studio, loaded, what) as (given, settings):
        _set_roles(given, settings, dict.fromkeys(names, choice))
        for name in names if reason else ():
            set_in(settings, ["reasons", name], reason)
    return _back(form, keep="", page=1)


def _drop_absent(studio: Studio, form: Form, request: Request) -> str:
    """Remove the roles of columns that the table does not have from the plan."""
    loaded = studio.dataset.loaded()
    roles, absent = roles_in(studio, loaded)
    what = f"{len(absent):,} missing columns removed"
    with _changing(studio, loaded, what) as (given, settings):
        kept = roles.to_dict()
        for role in [*given]:
            set_in(given, [role], kept.get(role))
        for name in absent:
            set_in(settings, ["reasons", name], None)
    return _back(form)


ROOM = Room(
    "roles",
    "Roles",
    "An intruder starts with what others know: age, sex, a place. These are the "
    "quasi-identifiers, and everything that protects people works on them. A column that is "
    "forgotten here would be released unchanged, so nothing is released until each one is decided.",
    "roles",
    _mark,
    [
        page("/roles", _show),
        action("/roles/decide", _decide),
        action("/roles/take", _take),
        action("/roles/take-all", _take_suggestions),
        action("/roles/decide-many", _decide_many),
        action("/roles/drop-absent", _drop_absent),
    ],
)
