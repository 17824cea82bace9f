"""The plain shape of a study's file: which part is a text, a number, or a list of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.errors import PlanError


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _are_texts(value: Any) -> bool:
    return _is_list(value) and all(isinstance(each, str) for each in value)


def _are_tables(value: Any) -> bool:
    return _is_list(value) and len(value) > 0 and all(isinstance(v, Mapping) for v in value)


_Kind = tuple[str, Callable[[Any], bool]]
_TEXT: _Kind = ("a text that is not empty", _is_text)
_COUNT: _Kind = ("a whole number ≥ 1", _is_count)
_FLAG: _Kind = ("true or false", lambda value: isinstance(value, bool))
_TEXTS: _Kind = ("a list of texts", _are_texts)
_STEPS: _Kind = ('a list of one or more tables such as { method = "round" }', _are_tables)
_ROLES: _Kind = ('a table of roles, or a rule such as "all"', lambda value: not _is_list(value))
_VALUES: _Kind = ("a table with a list of values by parameter", lambda v: isinstance(v, Mapping))

_STUDY: Mapping[str, _Kind] = {"name": _TEXT, "baseline": _FLAG}
_ENTRIES: Mapping[str, tuple[str, Mapping[str, _Kind]]] = {
    "tables": (
        "table",
        {
            **dict.fromkeys(("name", "path", "folder", "scikit_learn", "target"), _TEXT),
            **dict.fromkeys(("hierarchies", "openml_target"), _TEXT),
            **dict.fromkeys(("openml", "rows"), _COUNT),
            **dict.fromkeys(("only", "without"), _TEXTS),
            "floats": _FLAG,
            "roles": _ROLES,
        },
    ),
    "variants": (
        "variant",
        {
            **dict.fromkeys(("name", "family"), _TEXT),
            **dict.fromkeys(("steps", "combine"), _STEPS),
            **dict.fromkeys(("tables", "measures"), _TEXTS),
            "grid": _VALUES,
            "seeds": _COUNT,
        },
    ),
    "measures": ("measure", {"measure": _TEXT, "name": _TEXT, "families": _TEXTS}),
    "statistics": ("statistic", {"kind": _TEXT, "name": _TEXT}),
    "figures": ("figure", {"kind": _TEXT, "name": _TEXT}),
}


def check_shape(given: Mapping[str, Any]) -> None:
    """Raise PlanError for the first part of a study that is not of the kind it must be."""
    _check(given, _STUDY, "a study")
    for part, (what, kinds) in _ENTRIES.items():
        entries = given.get(part, ())
        if not _is_list(entries):
            raise PlanError(f"The '{part}' of a study are a list: write [[{part}]] above each.")
        for entry in entries:
            if isinstance(entry, Mapping):
                _check(entry, kinds, f"a {what} of a study")
            elif part != "measures" or not isinstance(entry, str):
                raise PlanError(f"A {what} of a study is a table: write [[{part}]] above it.")


def _check(entry: Mapping[str, Any], kinds: Mapping[str, _Kind], of: str) -> None:
    for part, (words, accepts) in kinds.items():
        if part in entry and not accepts(entry[part]):
            raise PlanError(f"The part '{part}' of {of} is {words}.")
