"""How many people are unique by some columns, and which columns cause it: counts, never records.

Everything is counted on the distinct combinations of the columns. A person who is unique by some
columns is also unique by more columns. So adding or removing a column only needs to look at the
people who are not unique without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table import Classes, Table
from shoal.table._classes import (
    counting,
    form_classes,
    once_per_person,
    weights_by_class,
)
from shoal.table.columns._encode import Codes, Keys, Labels, combine
from shoal.table.suggestion._column_sets import distinction_and_separation

#: A column is chosen by looking at this many combinations, shared among the candidate columns.
_LOOKED_AT, _LOOKED_AT_EACH = 4_000_000, 50_000
_LARGEST_SET: Final = 12
_ENOUGH: Final = 0.99


@dataclass(frozen=True, eq=False)
class Crowds:
    """How many people are in crowds of each size, given what an intruder knows.

    A person with several rows counts in the smallest of their crowds.

    Parameters
    ----------
    columns : tuple of str
        What the intruder knows.
    sizes, people : numpy.ndarray
        The different sizes of crowds, ascending, and the number of people in each.
    population : tuple of numpy.ndarray, optional
        The same for the crowds in the population, by the sampling weights.
    """

    columns: tuple[str, ...]
    sizes: npt.NDArray[Any]
    people: Integers
    population: tuple[Floats, Integers] | None = None

    @property
    def total(self) -> int:
        return int(self.people.sum())

    @property
    def k(self) -> int:
        """The smallest crowd; 0 if there are no people."""
        return int(self.sizes[0]) if len(self.sizes) else 0

    @property
    def alone(self) -> int:
        return self.below(2)

    def below(self, size: float) -> int:
        """How many people are in a smaller crowd."""
        return int(self.people[self.sizes < size].sum())

    @property
    def right(self) -> float:
        """The share of people for whom an intruder who links everybody is right."""
        return float((self.people / self.sizes).sum() / self.total) if self.total else 0.0

    def in_population(self, fraction: float | None) -> Crowds | None:
        """The crowds in the population: by the weights, or from the share of it in the table."""
        if fraction is not None:
            return Crowds(self.columns, self.sizes / fraction, self.people)
        if self.population is None:
            return None
        return Crowds(self.columns, *self.population)


def crowds_by(
    table: Table, columns: Sequence[str], classes: Classes, weights: Floats | None = None
) -> Crowds:
    """The crowds by some columns with these classes; ``table`` knows whose its rows are."""
    sizes, people = _smallest(table, classes, classes.sizes)
    population = None
    if weights is not None:
        if table.has_persons:
            weights = once_per_person(weights, table.persons, classes)
        estimated = np.maximum(weights_by_class(classes, weights), classes.sizes)
        # crowds of the population are rounded to readable steps, so that few sizes are kept
        population = _smallest(table, classes, np.floor(estimated))
    return Crowds(tuple(columns), sizes, people, population)


def classes_by(table: Table, columns: Sequence[str]) -> Classes:
    """Like ``table.crowds``, but not kept: a label per row is too much for each set of columns."""
    rows = form_classes(map(table.codes, columns), len(table))
    return counting(rows, table.persons if table.has_persons else None)


def _smallest(
    table: Table, classes: Classes, sizes: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], Integers]:
    """The different sizes, and how many people have each as the smallest of theirs."""
    if not table.has_persons:
        different, places = np.unique(sizes, return_inverse=True)
        return different, np.bincount(places, classes.rows, len(different)).astype(np.int64)
    least = np.full(table.person_count, np.inf)
    np.minimum.at(least, table.persons, classes.spread(sizes.astype(np.float64)))
    different, people = np.unique(least, return_counts=True)
    return different, people.astype(np.int64)


@dataclass(frozen=True)
class GrownSet:
    """Columns in the order of their addition, and how many people are unique after each one."""

    columns: tuple[str, ...]
    alone: tuple[int, ...]

    @property
    def steps(self) -> list[tuple[str, int]]:
        return list(zip(self.columns, self.alone, strict=True))


@dataclass(frozen=True, eq=False)
class Combinations:
    """The distinct combinations of some columns: once for each person who has them.

    If each row is a person, ``times`` is the number of people with a combination, without naming
    them.
    """

    parts: dict[str, Codes]
    owners: npt.NDArray[Any]
    times: Integers | None

    @classmethod
    def of(cls, table: Table, columns: Sequence[str], classes: Classes) -> Combinations:
        if table.has_persons:
            from shoal.kernels.grouping import first_rows, group

            pairs = classes.labels.astype(np.uint64) * np.uint64(table.person_count)
            labels, sizes = group(pairs + table.persons.astype(np.uint64))
            rows = first_rows(labels, len(sizes))
            owners, times = table.persons[rows], None
        else:
            rows, times = classes.first_rows, classes.rows
            owners = np.arange(len(rows))
        codes = {name: table.codes(name) for name in columns}
        parts = {name: each.with_codes(each.codes[rows]) for name, each in codes.items()}
        return cls(parts, owners, times)

    def without_each(self) -> dict[str, int]:
        """How many people are unique if one of the columns is not known, for each of them."""
        found: dict[str, int] = {}
        telling = sorted(self.parts, key=lambda name: -self.parts[name].count)
        _leave_out(self._everybody(), [*telling[::2], *telling[1::2]], found)
        return {name: found[name] for name in self.parts}

    def grown_sets(self) -> list[GrownSet]:
        """The sets that distinguish most people: from all columns, and without the strongest."""
        everybody = self._everybody()
        all_alone = everybody.by(self.parts) if self.times is None else None
        most = int(np.sum(self.times == 1)) if all_alone is None else all_alone.count
        best = self._grown(list(self.parts), most)
        rest = [name for name in self.parts if name not in best.columns[:1]]
        return [best, self._grown(rest, everybody.by(rest).count)] if rest else [best]

    def _grown(self, columns: Sequence[str], most: int) -> GrownSet:
        """Add the most identifying column until nearly all people who can be unique are."""
        now, chosen, alone = self._everybody(), list[str](), list[int]()
        while len(chosen) < min(_LARGEST_SET, len(columns)):
            chosen.append(now.most_identifying([name for name in columns if name not in chosen]))
            now = now.by(chosen[-1:])
            alone.append(now.count)
            if most and now.count >= _ENOUGH * most:
                break
        return GrownSet(tuple(chosen), tuple(alone))

    def _everybody(self) -> _Undecided:
        rows = np.arange(len(self.owners))
        people = int(self.owners.max(initial=-1)) + 1
        nobody = np.zeros(people, np.bool_)
        everybody = _Undecided(self, rows, np.zeros(len(rows), np.int64), 1, nobody)
        return everybody.by(())


@dataclass(frozen=True, eq=False)
class _Undecided:
    """The combinations of people who are not unique by the columns so far, in groups."""

    of: Combinations
    rows: Integers
    labels: npt.NDArray[Any]
    groups: int
    alone: Flags  # by person

    @property
    def count(self) -> int:
        """How many people are unique."""
        return int(np.count_nonzero(self.alone))

    def by(self, columns: Iterable[str]) -> _Undecided:
        """The same when more columns are known."""
        from shoal.kernels.grouping import group

        if not len(self.rows):
            return self
        keys = self._keys(columns, self.rows, self.labels)
        labels, sizes = group(combine(keys, len(self.rows)))
        single = self._single(labels, sizes)
        alone = self.alone.copy()
        alone[self.of.owners[self.rows[single]]] = True
        return _Undecided(self.of, self.rows[~single], labels[~single], len(sizes), alone)

    def _keys(self, columns: Iterable[str], rows: Integers, labels: npt.NDArray[Any]) -> list[Keys]:
        parts = [self.of.parts[name] for name in columns]
        before = Labels("", labels, self.groups)
        return [before, *(part.with_codes(part.codes[rows]) for part in parts)]

    def _single(self, labels: npt.NDArray[Any], sizes: Integers) -> Flags:
        """Which combinations are in a group of one person."""
        from shoal.kernels.grouping import first_rows

        if self.of.times is not None:
            # two combinations are two people, but one may belong to several
            single: Flags = (sizes[labels] == 1) & (self.of.times[self.rows] == 1)
            return single
        owners = self.of.owners[self.rows]
        other = owners != owners[first_rows(labels, len(sizes))][labels]
        mixed = np.bincount(labels[other], minlength=len(sizes)) > 0
        return ~mixed[labels]

    def most_identifying(self, columns: Sequence[str]) -> str:
        """The column that splits the groups best, judged on some of them."""
        from shoal.kernels.grouping import count_sizes

        most = min(_LOOKED_AT_EACH, _LOOKED_AT // len(columns))
        ends = np.cumsum(np.bincount(self.labels, minlength=self.groups))
        whole = max(1, int(np.searchsorted(ends, most, "right")))
        some = np.flatnonzero(self.labels < whole)[:most]
        rows, labels = self.rows[some], self.labels[some]

        def strength(name: str) -> float:
            sizes = count_sizes(combine(self._keys([name], rows, labels), len(rows)))
            return sum(distinction_and_separation(sizes))

        return max(columns, key=strength) if len(rows) else columns[0]


def _leave_out(now: _Undecided, left: Sequence[str], found: dict[str, int]) -> None:
    """Halve the columns that may be left out, until one is left and all others are known."""
    if len(left) <= 1 or not len(now.rows):
        found.update(dict.fromkeys(left, now.count))
        return
    middle = len(left) // 2
    _leave_out(now.by(left[middle:]), left[:middle], found)
    _leave_out(now.by(left[:middle]), left[middle:], found)
