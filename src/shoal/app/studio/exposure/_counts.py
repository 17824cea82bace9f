"""Counts of a table that are kept: requested by a page, made in a thread, never made twice.

A page of a large table waits for them only as long as a click may take. If a count is not there
yet, the page asks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from shoal.app.studio.exposure._exposure import (
    Combinations,
    Crowds,
    GrownSet,
    classes_by,
    crowds_by,
)
from shoal.errors import RolesError
from shoal.kernels.arrays import Floats
from shoal.table import Classes, Roles, Table

#: With at most this many cells a page waits for its counts, since they take no time.
SMALL: Final = 500_000
#: How many seconds a page of a larger table waits for all its counts together.
PATIENCE: Final = 0.25
_MOST_KEPT: Final = 500
_BARS: Final = 24

T = TypeVar("T")


@dataclass(frozen=True)
class Spark:
    """The values of a column as bars without labels, and a description of the bars."""

    heights: tuple[float, ...]
    #: The percent of the rows that each bar holds.
    percents: tuple[float, ...]
    sentence: str


class Counts:
    """The counts of a table; the newest requests are answered first."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._thread = ThreadPoolExecutor(1, "shoal-counting")
        self._lock = threading.Lock()
        self._kept: dict[tuple[Any, ...], Future[Any]] = {}
        self._classes: tuple[tuple[Any, ...], Classes] | None = None
        self._combinations: tuple[tuple[Any, ...], Combinations] | None = None
        self._by_unit: dict[tuple[str, ...], Table] = {(): table}
        self._sparks: dict[str, Spark] = {}

    def exposure(
        self, known: Sequence[str], candidates: Sequence[str], roles: Roles
    ) -> dict[str, Any]:
        """What a page shows about unique people, waiting for it as long as a click may take.

        What takes longer is None, and ``counting`` is true, so that the page asks again.
        """
        facts: dict[str, Any] = {"crowds": None, "without": None, "sets": None, "counting": False}
        facts |= {"problem_of_unit": ""}
        asked: dict[str, Future[Any]] = {}
        small = len(self._table) * len(candidates) <= SMALL
        end = None if small else time.monotonic() + PATIENCE
        self._forget_waiting()
        try:
            asked["crowds"] = self.crowds(known, roles)
            if known:
                asked["without"] = self.without_each(known, roles)
            if candidates:
                asked["sets"] = self.grown_sets(candidates, roles)
        except RolesError as cause:
            return facts | {"problem_of_unit": str(cause)}
        for name, count in asked.items():
            try:
                facts[name] = count.result(None if end is None else max(0, end - time.monotonic()))
            except TimeoutError:
                facts["counting"] = True
        return facts

    def crowds(self, columns: Sequence[str], roles: Roles) -> Future[Crowds]:
        """How large the crowds are, given what an intruder knows."""
        owned, weight = self._owned(roles), roles.weight
        key = (tuple(columns), roles.unit_columns)

        def make() -> Crowds:
            classes = self._last_classes(key, owned)
            return crowds_by(owned, columns, classes, self._weights(weight))

        return self._ask(make, "crowds", *key, weight)

    def people(self, roles: Roles) -> int:
        """How many people there are."""
        return self._owned(roles).person_count

    def without_each(self, columns: Sequence[str], roles: Roles) -> Future[dict[str, int]]:
        """How many people are unique if one of the columns is not known."""
        return self._ask_combinations(Combinations.without_each, "without", columns, roles)

    def grown_sets(self, columns: Sequence[str], roles: Roles) -> Future[list[GrownSet]]:
        """The smallest sets of columns that single out most people."""
        return self._ask_combinations(Combinations.grown_sets, "grown", columns, roles)

    def known(self, columns: Sequence[str], roles: Roles) -> Crowds | None:
        """The crowds if they are already counted, for marks that must not wait."""
        key = ("crowds", tuple(columns), roles.unit_columns, roles.weight)
        found = self._kept.get(key)
        ready = found is not None and found.done() and not found.cancelled()
        return found.result() if ready and found is not None and not found.exception() else None

    def _ask_combinations(
        self, count: Callable[[Combinations], T], what: str, columns: Sequence[str], roles: Roles
    ) -> Future[T]:
        owned, key = self._owned(roles), (tuple(columns), roles.unit_columns)

        def make() -> T:
            if self._combinations is None or self._combinations[0] != key:
                self._combinations = None  # frees the memory of the previous ones
                classes = self._last_classes(key, owned)
                self._combinations = key, Combinations.of(owned, columns, classes)
            return count(self._combinations[1])

        return self._ask(make, what, *key)

    def _last_classes(self, key: tuple[tuple[str, ...], tuple[str, ...]], owned: Table) -> Classes:
        """The classes by some columns; only the latest are kept, since they are large."""
        if self._classes is None or self._classes[0] != key:
            self._classes = None
            self._classes = key, classes_by(owned, key[0])
        return self._classes[1]

    def _ask(self, make: Callable[[], T], *key: Any) -> Future[T]:
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None or found.cancelled():
                found = self._thread.submit(make)
            self._kept[key] = found  # the most recent request
            for old in list(self._kept)[:-_MOST_KEPT]:
                self._kept.pop(old).cancel()
        return found

    def _forget_waiting(self) -> None:
        """Cancel requests that have not started: a new page makes its own."""
        with self._lock:
            for key, asked in list(self._kept.items()):
                if asked.cancel():
                    del self._kept[key]

    def _owned(self, roles: Roles) -> Table:
        """The table with its persons and no other roles, so that it stays the same table."""
        unit = roles.unit_columns
        if unit not in self._by_unit:
            self._by_unit[unit] = self._table.with_roles(Roles(unit=unit))
        return self._by_unit[unit]

    def _weights(self, name: str | None) -> Floats | None:
        if name is None:
            return None
        codes = self._table.codes(name)
        weights: Floats = codes.numbers[codes.codes]
        return weights

    def spark(self, name: str) -> Spark:
        """A column as a small picture."""
        if name not in self._sparks:
            self._sparks[name] = _spark_of(self._table, name)
        return self._sparks[name]


def _spark_of(table: Table, name: str) -> Spark:
    codes = table.codes(name)
    counts = codes.counts[: len(codes.levels)]
    if not len(counts):
        return Spark((), (), "No value.")
    if table.kind(name) in ("text", "boolean") or len(counts) <= 2:
        shown = np.sort(np.partition(counts, -min(_BARS, len(counts)))[-_BARS:])[::-1]
        what = f"The {len(shown)} most frequent values"
        if len(shown) == len(counts):
            what = "Its only value" if len(shown) == 1 else f"Its {len(shown)} values"
        what += ", by frequency"
    else:
        places = np.nan_to_num(codes.positions[: len(counts)])
        bars = min(_BARS, len(counts))
        at = np.minimum((places * bars).astype(np.int64), bars - 1)
        shown = np.bincount(at, counts, bars)
        what = f"{bars} ranges of equal width from the smallest value to the largest"
    percents = 100 * shown / len(table)
    return Spark(
        tuple((shown / shown.max()).tolist()),
        tuple(percents.tolist()),
        f"{what}; the highest bar holds {percents.max():.0f} % of the rows.",
    )
