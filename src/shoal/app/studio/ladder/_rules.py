"""Rules from the fields of a form, as a plan writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from shoal.app.studio._pages import Form
from shoal.errors import InputError
from shoal.table.hierarchy._rule import UNITS

_MOST_LEVELS: Final = 20
_MOST_EDGES: Final = 1000

#: The rules that fit each kind of column, the most natural first.
RULES_FOR: Final = {
    "integer": ("intervals", "edges", "rounding", "prefixes"),
    "float": ("intervals", "edges", "rounding"),
    "date": ("dates",),
    "datetime": ("dates",),
    "time": ("dates",),
    "text": ("prefixes",),
}
#: The proposals for each kind of column, with their names.
PROPOSALS: Final = {
    "number": {
        "intervals": "equal widths",
        "sizes": "1, 2 and 5 times powers of ten",
        "quantiles": "about the same number of people in each",
        "rounding": "rounded numbers",
    },
    "date": {"dates": "calendar units"},
    "code": {"prefixes": "the first characters"},
    "any": {
        "ordered": "a list of neighbors, in the order of the values",
        "frequency": "a list in which rare values are joined",
        "suppression": "the value or nothing",
    },
}


def proposals_for(kind: str) -> dict[str, str]:
    """The kinds of hierarchy that can be proposed for a kind of column."""
    rules = RULES_FOR.get(kind, ())
    shelves = ["number"] * ("intervals" in rules) + ["date"] * ("dates" in rules)
    shelves += ["code"] * ("prefixes" in rules) + ["any"]
    return {name: words for shelf in shelves for name, words in PROPOSALS[shelf].items()}


def rule_of(form: Form) -> dict[str, Any]:
    """The rule that a form asks for."""
    kind = form.one("kind")
    if kind not in _READERS:
        raise InputError("There is no such kind of rule. Reload the page.")
    return _READERS[kind](form)


def _intervals(form: Form) -> dict[str, Any]:
    rule: dict[str, Any] = {"intervals": _numbers(form.one("widths"), "Widths")}
    origin = _numbers(form.one("origin", "") or "0", "Where intervals begin")
    if len(origin) != 1:
        raise InputError("Intervals start at one number. Type one, such as 0.")
    rule |= {"origin": origin[0]} if origin[0] else {}
    return rule | ({"whole": True} if form.one("whole", "") else {})


def _edges(form: Form) -> dict[str, Any]:
    lines = [line for line in form.one("edges").splitlines() if line.strip()]
    levels = [_numbers(line, "Edges", _MOST_EDGES) for line in lines[: _MOST_LEVELS + 1]]
    return {"edges": _not_too_many(levels, "Edges")}


def _rounding(form: Form) -> dict[str, Any]:
    return {"rounding": _numbers(form.one("bases"), "Bases")}


def _prefixes(form: Form) -> dict[str, Any]:
    rule: dict[str, Any] = {"prefixes": _numbers(form.one("lengths"), "Lengths")}
    pad = _numbers(form.one("pad", "") or "0", "The digits of a full code")
    rule |= {"any_length": True} if form.one("any_length", "") else {}
    return rule | ({"pad": pad[0]} if pad[0] else {})


def _dates(form: Form) -> dict[str, Any]:
    chosen = set(form.all("unit"))
    if not chosen:
        raise InputError("Choose at least one calendar unit.")
    known = [unit for unit in UNITS if unit in chosen]
    return {"dates": known}


_READERS: Final[dict[str, Callable[[Form], dict[str, Any]]]] = {
    "intervals": _intervals,
    "edges": _edges,
    "rounding": _rounding,
    "prefixes": _prefixes,
    "dates": _dates,
}


def _numbers(text: str, called: str, most: int = _MOST_LEVELS) -> list[int | float]:
    """Numbers separated by commas, semicolons or spaces."""
    words = [word for word in re.split(r"[,;\s]+", text.strip()) if word]
    try:
        numbers = [int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word) for word in words]
    except ValueError:
        raise InputError(
            f"{called} must be numbers separated by commas, such as 5, 10, 20, with a decimal "
            "point."
        ) from None
    return _not_too_many(numbers, called, most)


def _not_too_many(items: list[Any], called: str, most: int = _MOST_LEVELS) -> list[Any]:
    if not items or len(items) > most:
        raise InputError(f"{called} must be 1 to {most} numbers; got {len(items)}.")
    return items
