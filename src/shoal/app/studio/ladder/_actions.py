"""The changes of a hierarchy: each is an action that results in one version of the plan."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request

from shoal.app.studio._pages import Form, Studio, action, address
from shoal.app.studio.ladder._edit import WITH_LEVEL, WITH_NODES
from shoal.app.studio.ladder._ladders import Ladders
from shoal.app.studio.ladder._rules import rule_of
from shoal.app.studio.ladder._store import Shelf, put, read_file
from shoal.errors import InputError
from shoal.table import Hierarchy

LISTED: Final = 100_000  # the most values that someone may want to edit one by one
_LONGEST: Final = 9  # digits


def words_of(hierarchy: Hierarchy) -> str:
    """A hierarchy in words, without any value of the data."""
    return repr(hierarchy).partition(", ")[2]


def whole(text: str | None, default: int, called: str) -> int:
    """A number of an address or a form, such as that of a level."""
    if text is None:
        return default
    if not text.isdecimal() or len(text) > _LONGEST:
        raise InputError(f"There is no such {called} in this hierarchy. Go to Hierarchies.")
    return int(text)


def node_of(text: str | None) -> tuple[int, int] | None:
    """A level and the number of a node, with a point between them."""
    if not text:
        return None
    level, _, number = text.partition(".")
    return whole(level, 0, "group"), whole(number, 0, "group")


def named(ladders: Ladders, name: str) -> str:
    """A column that has a hierarchy."""
    ladders.shelf.check(name)
    if name not in ladders.columns:
        raise InputError("The plan names this column, but the table does not have it.")
    return name


def _keep(studio: Studio, form: Form, request: Request) -> str:
    """Save every proposal, so that it stays the same if the data change."""
    ladders = Ladders(studio)
    open_ = [name for name in ladders.columns if ladders.shelf.held(name).value is None]
    put(studio, "proposed hierarchies kept", {name: ladders.hierarchy(name) for name in open_})
    return "/hierarchies"


def _use(studio: Studio, form: Form, request: Request) -> str:
    """Move hierarchies that wait in the settings into the step that generalizes."""
    shelf = Shelf(studio)
    waiting = {name: shelf.held(name).value for name in shelf.columns if shelf.waits(name)}
    put(studio, "hierarchies put into the plan", waiting)
    return "/hierarchies"


def _rule(studio: Studio, form: Form, request: Request) -> str:
    ladders, name = _asked(studio, form)
    value = rule_of(form)
    made = Hierarchy.from_plan(value)
    made.codes(ladders.table, name)  # refuses a rule that does not fit the column
    put(studio, f"hierarchy of {name}: {words_of(made)}", {name: value})
    return _to_column(form, name)


def _propose(studio: Studio, form: Form, request: Request) -> str:
    ladders, name = _asked(studio, form)
    made = Hierarchy.propose(ladders.table, name, kind=form.one("kind"))
    put(studio, f"hierarchy of {name}: {words_of(made)}", {name: made})
    return _to_column(form, name)


def _reset(studio: Studio, form: Form, request: Request) -> str:
    _, name = _asked(studio, form)
    put(studio, f"hierarchy of {name} left to Shoal", {name: None})
    return _to_column(form, name)


def _list(studio: Studio, form: Form, request: Request) -> str:
    """Turn a rule into a list of values that can be edited one by one."""
    ladders, name = _asked(studio, form)
    if ladders.table.distinct(name) > LISTED:
        raise InputError(
            f"The column has more than {LISTED:,} different values, too many to edit one by one. "
            "Use a rule."
        )
    made = ladders.hierarchy(name).listed(ladders.table, name)
    put(studio, f"hierarchy of {name} as a list", {name: made})
    return _to_column(form, name)


def _import(studio: Studio, form: Form, request: Request) -> str:
    ladders, name = _asked(studio, form)
    place = studio.dataset.allowed(form.one("file"))
    if not place.is_file():
        raise InputError("There is no such file. Choose one from the list.")
    made = read_file(place)
    lacking, values = made.uncovered(ladders.table, name), len(ladders.codes(name).column.levels)
    if values and lacking == values:
        raise InputError(
            f"'{place.name}' lists none of the {values:,} values of the column. It is a hierarchy "
            "for another column."
        )
    put(studio, f"hierarchy of {name} imported", {name: made})
    return _to_column(form, name)


def _cover(studio: Studio, form: Form, request: Request) -> str:
    """Add the values that a list lacks, directly under the root."""
    ladders, name = _asked(studio, form)
    made = ladders.hierarchy(name).covering(ladders.table, name)
    put(studio, f"hierarchy of {name}: values added", {name: made})
    return _to_column(form, name)


def _edit(studio: Studio, form: Form, request: Request) -> str:
    """Change nodes or levels of a list."""
    ladders, name = _asked(studio, form)
    hierarchy = ladders.hierarchy(name)
    if hierarchy.is_function:
        raise InputError("This hierarchy is a rule. Turn it into a list to edit its groups.")
    what, _, level = form.one("do").partition(".")
    rows: Any
    if what in WITH_LEVEL:
        rows = WITH_LEVEL[what](hierarchy.rows, whole(level, 0, "level"))
    elif what in WITH_NODES:
        nodes = [node_of(each) or (0, 0) for each in form.all("node")]
        if len({at for at, _ in nodes}) > 1:
            raise InputError("The selection is on several levels. Select groups of one level.")
        at = nodes[0][0] if nodes else 0
        chosen = {number for _, number in nodes}
        rows = WITH_NODES[what](hierarchy.rows, at, chosen, form.one("label", ""))
    else:
        raise InputError("There is no such change. Reload the page.")
    words = {"add": "a level added", "drop": "a level removed", "join": "joined"}
    words |= {"move": "moved", "split": "split", "rename": "renamed"}
    made = Hierarchy.from_rows(rows)
    put(
        studio,
        f"hierarchy of {name}: {words[what]}",
        {name: made},
        based_on=form.whole("version"),
    )
    return _to_column(form, name)


def _asked(studio: Studio, form: Form) -> tuple[Ladders, str]:
    ladders = Ladders(studio)
    return ladders, named(ladders, form.one("name"))


def _to_column(form: Form, name: str) -> str:
    shown = {key: form.one(key, "") for key in ("levels", "show", "at")}
    return address("/hierarchies/column", name=name, **shown)


ACTIONS: Final = [
    action("/hierarchies/keep", _keep),
    action("/hierarchies/use", _use),
    action("/hierarchies/rule", _rule),
    action("/hierarchies/propose", _propose),
    action("/hierarchies/reset", _reset),
    action("/hierarchies/list", _list),
    action("/hierarchies/import", _import),
    action("/hierarchies/cover", _cover),
    action("/hierarchies/edit", _edit),
]
