"""Hierarchies on the table: codes, ladders and counts of unique people, all kept."""

from __future__ import annotations

import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from shoal.app.studio._pages import Studio
from shoal.app.studio.ladder._ladder import Ladder
from shoal.app.studio.ladder._store import Held, Shelf, place_of, read_file
from shoal.errors import InputError, ShoalError
from shoal.table import Hierarchy, HierarchyCodes, Table
from shoal.table.hierarchy._alone import LevelCombinations

T = TypeVar("T")
_MOST: Final = 600  # more than a page of all columns needs


class _Memory:
    """The latest results for one table."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        with self._lock:  # a second request waits for the answer to the first
            if key not in self._found:
                self._found[key] = make()
            self._found.move_to_end(key)
            while len(self._found) > _MOST:
                self._found.popitem(last=False)
            return self._found[key]

    def last(self, what: str, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The same for large results: only the latest is kept."""
        with self._lock:
            found = self._found.pop((what,), None)
            if found is None or found[0] != key:
                found = key, make()
            self._found[what,] = found
            made: T = found[1]
            return made


_memories: weakref.WeakKeyDictionary[Table, _Memory] = weakref.WeakKeyDictionary()


class Ladders:
    """The hierarchies of the columns on the table of a project."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self.shelf = Shelf(studio)
        found = studio.dataset.loaded()
        self.table = found.with_roles(self.shelf.plan.roles)
        self._memory = _memories.setdefault(found.table, _Memory())

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the table that have a hierarchy."""
        return [name for name in self.shelf.columns if name in self.table.columns]

    def hierarchy(self, column: str) -> Hierarchy:
        held = self.shelf.held(column)

        def make() -> Hierarchy:
            place = place_of(self._studio, held.value)
            if place is not None:
                return read_file(place)
            if held.value is None:
                return Hierarchy.propose(self.table, column)
            return Hierarchy.from_plan(held.value)

        return self._memory.get(("hierarchy", *self._key(held)), make)

    def codes(self, column: str) -> HierarchyCodes:
        """The column at every level; a value that a list lacks is ``*`` above level 0."""
        hierarchy = self.hierarchy(column)
        return self._memory.get(
            ("codes", *self._key(self.shelf.held(column))),
            lambda: hierarchy.codes(self.table, column, unseen="top"),
        )

    def check(self) -> None:
        """Refuse to count people if the hierarchy of a column cannot be read."""
        for other in self.columns:
            try:
                self.codes(other)
            except ShoalError:
                raise InputError(
                    f"The hierarchy of column '{other}' cannot be read, so nobody can be counted. "
                    "Fix it under Hierarchies first."
                ) from None

    def planned(self) -> dict[str, int]:
        """The level that the plan gives to each column; 0 if it gives none."""
        return {
            name: min(self.shelf.level_of(name) or 0, self.hierarchy(name).levels - 1)
            for name in self.columns
        }

    def ladder(self, column: str) -> Ladder:
        codes, hierarchy = self.codes(column), self.hierarchy(column)
        roles = self.table.roles
        return self._memory.get(
            ("ladder", roles.unit, *self._key(self.shelf.held(column))),
            lambda: Ladder.of(self.table, column, hierarchy, codes),
        )

    def alone(self, column: str, levels: Mapping[str, int]) -> list[int]:
        """How many people are unique with a column at each level and the others as given."""
        others = {name: level for name, level in levels.items() if name != column}
        return self._combinations.alone_by_level(column, others)

    def alone_by_itself(self, column: str) -> list[int]:
        """The same for an intruder who knows only this column."""
        key = ("by itself", self.table.roles.unit, *self._key(self.shelf.held(column)))
        codes = {column: self.codes(column)}
        return self._memory.get(
            key, lambda: LevelCombinations(self.table, codes).alone_by_level(column, {})
        )

    def alone_at(self, levels: Mapping[str, int]) -> int:
        return self._combinations.alone(levels)

    @cached_property
    def _combinations(self) -> LevelCombinations:
        keys = [self._key(self.shelf.held(column)) for column in self.columns]
        codes = {name: self.codes(name) for name in self.columns}
        key = (self.table.roles.unit, *keys)
        return self._memory.last("combinations", key, lambda: LevelCombinations(self.table, codes))

    def _key(self, held: Held) -> tuple[Any, ...]:
        """What a hierarchy depends on: its notation, and the current state of its file."""
        place = place_of(self._studio, held.value)
        if place is None:
            return held.column, json.dumps(held.value, default=str)
        state = place.stat() if place.is_file() else None
        return held.column, str(place), state and (state.st_mtime_ns, state.st_size)
