"""How much work a call does, by counting: what cost is tested by, since times differ and lie.

>>> from shoal import Roles, Table
>>> import polars as pl
>>> table = Table(pl.DataFrame({"age": [1, 1, 2]}), Roles(quasi_identifiers=["age"]))
>>> with counted() as work:
...     codes = table.codes("age"), table.codes("age")
...     classes = table.classes
>>> work.encodes, work.repeated_encodes, work.groupings
(1, 0, 1)
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

#: The functions that are counted, by what they are counted as: module and name.
WATCHED: dict[str, tuple[tuple[str, str], ...]] = {
    "encode": (("shoal.table.columns._encode", "encode"),),
    "group": (("shoal.table._classes", "form_classes"),),
    "pass": (
        ("shoal.kernels.grouping", "group"),
        ("shoal.kernels.grouping", "dense_labels"),
        ("shoal.kernels.grouping", "count_sizes"),
    ),
    "parse": (
        ("shoal.table.columns._domain", "interval_of"),
        ("shoal.table.columns._domain", "number_of"),
        ("shoal.table.columns._domain", "end_of"),
        ("shoal.table.columns._domain", "moment_of"),
        ("shoal.table.columns._domain", "members_of"),
    ),
    "read labels": (("shoal.table.columns._domain", "read_domain"),),
    "read": (
        ("shoal.table.storage._read", "read_source"),
        ("shoal.table.storage._read", "read_columnar"),
        ("shoal.table.storage._records", "shape_of"),
    ),
}
#: The methods that are counted.
WATCHED_METHODS: tuple[tuple[str, str, str, str], ...] = (
    ("table", "shoal.table._table", "Table", "__init__"),
    ("table", "shoal.table._table", "Table", "_derive"),
    ("search", "shoal.table._provenance", "KeyPositions", "_searched"),
)


@dataclass
class Work:
    """What was done inside a block of :func:`counted`.

    A column is known by its name and its cells, and classes by the columns that they are formed
    of: so a column that several tables share is one, and what is done to it twice is repeated.
    """

    calls: Counter[str] = field(default_factory=Counter)
    columns: Counter[tuple[str, str]] = field(default_factory=Counter)
    classes: Counter[tuple[tuple[str, str], ...]] = field(default_factory=Counter)

    @property
    def encodes(self) -> int:
        """How often a column was encoded."""
        return self.columns.total()

    @property
    def repeated_encodes(self) -> int:
        """How often a column was encoded that had been before."""
        return self.columns.total() - len(self.columns)

    @property
    def groupings(self) -> int:
        """How often classes were formed."""
        return self.classes.total()

    @property
    def repeated_groupings(self) -> int:
        """How often classes were formed of columns that they had been formed of before."""
        return self.classes.total() - len(self.classes)

    @property
    def passes(self) -> int:
        """How often a kernel went over all rows to label equal keys, for whatever reason."""
        return self.calls["pass"]

    @property
    def parses(self) -> int:
        """How many texts were parsed into a number, a moment, an interval or a set."""
        return self.calls["parse"]

    @property
    def label_readings(self) -> int:
        """How often a list of released labels was read for what the labels stand for."""
        return self.calls["read labels"]

    @property
    def tables(self) -> int:
        """How many Table objects were made."""
        return self.calls["table"]

    @property
    def searches(self) -> int:
        """How often the rows of one table were searched for in another."""
        return self.calls["search"]

    @property
    def reads(self) -> int:
        """How many files of data were read."""
        return self.calls["read"]

    def to_dict(self) -> dict[str, int]:
        """All counts by name."""
        return {name: getattr(self, name) for name in COUNTS}


#: The names of all counts.
COUNTS = tuple(name for name, thing in vars(Work).items() if isinstance(thing, property))


def _column_identity(series: pl.Series) -> tuple[str, str]:
    """The name of a column, and a checksum of its type and cells."""
    content = hashlib.sha256(f"{series.dtype} {len(series)} {series.null_count()}".encode())
    content.update(series.hash(seed=1).to_numpy().tobytes())
    return series.name, content.hexdigest()


def _codes_identity(codes: Any) -> tuple[str, str]:
    """The name of an encoded column, and a checksum of its codes."""
    found = hashlib.sha256(np.ascontiguousarray(codes.codes, np.uint64).tobytes())
    return codes.name, found.hexdigest()


def _watching(what: str, function: Callable[..., Any], work: Work, deep: list[str]) -> Any:
    """The function, counting; a function that one of the same kind calls is not counted."""

    @functools.wraps(function)
    def counting(*given: Any, **named: Any) -> Any:
        if what == "encode":
            series = given[0] if given else named["series"]
            work.columns[_column_identity(series)] += 1
        if what == "group":
            parts, *others = given
            listed = list(parts)  # it may be a generator
            given = (listed, *others)
            if not listed:  # everybody is in one class: there is nothing to form
                return function(*given, **named)
            work.classes[tuple(_codes_identity(part) for part in listed)] += 1
        if what not in deep:
            work.calls[what] += 1
        deep.append(what)
        try:
            return function(*given, **named)
        finally:
            deep.pop()

    return counting


def _namespaces() -> list[dict[str, Any]]:
    """The names of all modules of Shoal.

    A module that pytest imported a second time, for its examples, is not in ``sys.modules`` as its
    functions know it: they are asked for theirs.
    """
    found: dict[int, dict[str, Any]] = {}
    for called, module in list(sys.modules.items()):
        if called.partition(".")[0] != "shoal" or not isinstance(module, ModuleType):
            continue
        found[id(vars(module))] = vars(module)
        for thing in list(vars(module).values()):
            for one in (thing, *vars(thing).values()) if isinstance(thing, type) else (thing,):
                names = getattr(one, "__globals__", {})
                if isinstance(names, dict) and str(names.get("__name__")).startswith("shoal."):
                    found[id(names)] = names
    return list(found.values())


def _replace(pairs: Iterable[tuple[Any, Any]]) -> None:
    """Put something in the place of functions wherever a module of Shoal has them by a name."""
    new = {id(old): other for old, other in pairs}
    for names in _namespaces():
        for name, thing in list(names.items()):
            if id(thing) in new:
                names[name] = new[id(thing)]


@contextmanager
def counted() -> Iterator[Work]:
    """Count the work that is done inside the block, whoever does it.

    A module that is first imported inside the block gets the counting function too, so that all
    modules are looked through again at the end.
    """
    work, deep = Work(), []
    functions = [
        (getattr(importlib.import_module(module), name), what)
        for what, named in WATCHED.items()
        for module, name in named
    ]
    owners = [
        (what, getattr(importlib.import_module(module), owner), name)
        for what, module, owner, name in WATCHED_METHODS
    ]
    methods = [
        (owner, name, vars(owner)[name], _watching(what, vars(owner)[name], work, deep))
        for what, owner, name in owners
    ]
    pairs = [(function, _watching(what, function, work, deep)) for function, what in functions]
    try:
        _replace(pairs)
        for owner, name, _, counting in methods:
            setattr(owner, name, counting)
        yield work
    finally:
        _replace((counting, function) for function, counting in pairs)
        for owner, name, method, _ in methods:
            setattr(owner, name, method)
