"""Minimal sample uniques: the smallest sets of columns on which a record is alone.

A record is alone if no other person has its values. A record that is alone on a set of columns is
alone on every larger one. So the sets are processed by size, and the records that are alone on each
set are kept for the next size: a record is minimally unique on a set if it is alone there, and on
no set with one column less.

The sets of one size are visited depth first. Each step splits the groups of records that agree so
far by one more column, and leaves out records that are alone: no record meets them again. A record
that is alone on each column is in no set of several columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Flags, Floats, Integers, Words
from shoal.kernels.compile import njit, python_if_small


class MinimalUniques(NamedTuple):
    """The results: scores, and shares of the columns in them, by record; and sets by size."""

    scores: Floats
    contributions: Floats  # records × columns
    found: Integers  # how many sets of each size, over all records
    smallest: Integers  # the size of the record's smallest set; 0 if it has none

    @classmethod
    def nothing(cls, codes: Codes, size: int) -> MinimalUniques:
        """Before anything is found."""
        columns, tuples = codes.shape
        counts, sizes = np.zeros(size + 1, np.int64), np.zeros(tuples, np.int64)
        return cls(np.zeros(tuples), np.zeros((tuples, columns)), counts, sizes)


class Sets(NamedTuple):
    """All sets of one size: the records to examine, and those that are alone on them."""

    codes: Codes
    single: Flags
    owners: Codes
    size: int
    weight: float
    binomials: Integers  # number of ways to choose columns; it numbers the sets of a size
    rows: Codes  # the tuples that meet another one on some set of this size
    before: Words  # who is alone on the sets with one column less, by set, one bit each
    alone: Words  # the same for this size; one unused row for the last one
    result: MinimalUniques


def column_sets(columns: int, size: int) -> int:
    """The number of sets with at most so many columns."""
    return sum(math.comb(columns, k) for k in range(1, size + 1))


def by_size(
    codes: Codes, single: Flags, size: int, weights: Floats, owners: Codes, result: MinimalUniques
) -> Iterator[Sets]:
    """The sets of each size, the smallest first; the caller finds who is alone."""
    columns, tuples = codes.shape
    binomials = np.array(
        [[math.comb(n, k) for k in range(size + 1)] for n in range(columns + 1)], np.int64
    )
    before = np.zeros((1, tuples // 64 + 1), np.uint64)
    rows = np.arange(tuples, dtype=np.int32)
    for k in range(1, size + 1):
        count = binomials[columns, k] if k < size else 1
        alone = np.zeros((count, before.shape[1]), np.uint64)
        yield Sets(codes, single, owners, k, weights[k], binomials, rows, before, alone, result)
        if k == 1 < size:
            rows = _meeting(alone, tuples)
        before = alone


def _meeting(alone: Words, tuples: int) -> Codes:
    """The tuples that are not alone on every column."""
    everywhere = np.bitwise_and.reduce(alone, axis=0)
    apart = np.unpackbits(everywhere.view(np.uint8), count=tuples, bitorder="little")
    return np.flatnonzero(apart == 0).astype(np.int32)


def minimal_uniques(
    codes: Codes, single: Flags, size: int, weights: Floats, owners: Codes
) -> MinimalUniques:
    """Find all minimal sets of up to ``size`` columns on which a tuple is alone.

    ``codes`` are distinct tuples, by column. A tuple is never alone unless it is ``single``, that
    is, only one person has it; others can still meet it. ``weights[k]`` is what a set of k columns
    adds to the score. Tuples with the same value in ``owners`` belong to only one person, and do
    not meet.
    """
    result = MinimalUniques.nothing(codes, size)
    if not single.any():
        return result
    values = int(codes.max(initial=0)) + 1
    for sets in by_size(codes, single, size, weights, owners, result):
        if len(sets.rows):
            _look_at(sets, values)
    return result


def _steps(sets: Sets, values: int) -> int:
    """Every tuple in every set of columns."""
    return 2 * len(sets.rows) * math.comb(len(sets.codes), sets.size)


class _Groups(NamedTuple):
    """The records that agree so far, group after group."""

    rows: Codes
    starts: Codes
    stamps: Integers  # by value: the turn in which it was counted
    counts: Codes  # by value: how often it occurs, and its owner, -1 if several


@python_if_small(_steps)
@njit(cache=True)
def _look_at(sets: Any, values: int) -> None:
    """All sets of one size.

    Records that are alone on all columns of a set but the last are not marked: any larger set that
    contains this set has already left them out.
    """
    codes, owners, size = sets.codes, sets.owners, sets.size
    columns, tuples = len(codes), len(sets.rows)
    rows = np.empty((size, tuples), np.int32)  # at each depth, group after group
    starts = np.empty((size, tuples + 1), np.int32)
    groups = np.zeros(size, np.int64)
    rows[0] = sets.rows
    starts[0, 0], starts[0, 1], groups[0] = 0, tuples, 1
    stamps, counts = np.zeros(values, np.int64), np.zeros((2, values), np.int32)
    path = np.empty(size, np.int64)
    turn, depth = np.int64(0), 0
    path[0] = -1
    while depth >= 0:
        path[depth] += 1
        if path[depth] > columns - size + depth:
            depth -= 1
            continue
        here = _Groups(rows[depth], starts[depth, : groups[depth] + 1], stamps, counts)
        if depth == size - 1:
            _last_column(sets, path, here, turn)
        else:
            column = codes[path[depth]]
            groups[depth + 1] = _split(
                column, owners, here, rows[depth + 1], starts[depth + 1], turn
            )
            path[depth + 1] = path[depth]
            depth += 1
        turn += len(here.starts) - 1


@njit(cache=True)
def _count(column: Any, owners: Any, members: Any, stamps: Any, counts: Any, turn: int) -> None:
    """How often each value occurs among the members, and its owner: -1 if there are several.

    A count belongs to this turn if it is stamped so.
    """
    for row in members:
        value = column[row]
        if stamps[value] != turn:
            stamps[value] = turn
            counts[0, value] = 0
            counts[1, value] = owners[row]
        counts[0, value] += 1
        if counts[1, value] != owners[row]:
            counts[1, value] = -1


@njit(cache=True)
def _split(column: Any, owners: Any, groups: Any, into: Any, into_starts: Any, turn: int) -> int:
    """Split each group by a column, without records then alone; returns the new groups' number."""
    rows, starts, stamps, counts = groups
    made, end = 0, 0
    into_starts[0] = 0
    for group in range(len(starts) - 1):
        turn += 1
        members = rows[starts[group] : starts[group + 1]]
        _count(column, owners, members, stamps, counts, turn)
        for row in members:  # a count becomes, below 0, the place of the next member
            value = column[row]
            if counts[1, value] >= 0:
                continue
            if counts[0, value] > 0:
                size = counts[0, value]
                counts[0, value] = -end - 1
                end += size
                made += 1
                into_starts[made] = end
            into[-counts[0, value] - 1] = row
            counts[0, value] -= 1
    return made


@njit(cache=True)
def _last_column(sets: Any, path: Any, groups: Any, turn: int) -> None:
    """Find who is alone on a set, and who minimally so."""
    rows, starts, stamps, counts = groups
    column, single, owners = sets.codes[path[-1]], sets.single, sets.owners
    before, alone = sets.before, sets.alone
    parts = np.empty(len(path) - 1, np.int64)  # without the last column nobody here is alone
    own = place_of(sets, path, parts)
    for group in range(len(starts) - 1):
        turn += 1
        members = rows[starts[group] : starts[group + 1]]
        _count(column, owners, members, stamps, counts, turn)
        for row in members:
            if counts[1, column[row]] < 0 or not single[row]:
                continue
            word, bit = row >> 6, np.uint64(1) << np.uint64(row & 63)
            alone[own, word] |= bit
            minimal = True
            for part in parts:
                minimal &= before[part, word] & bit == 0
            if minimal:
                note_minimal(sets, path, row)


@njit(cache=True)
def place_of(sets: Any, path: Any, parts: Any) -> int:
    """The number of a set among those of its size, and of the sets without one of its columns."""
    for left_out in range(len(parts)):
        place, rank = 0, 0
        for at in range(len(path)):
            if at != left_out:
                rank += 1
                place += sets.binomials[path[at], rank]
        parts[left_out] = place
    own = 0
    if len(sets.alone) > 1:
        for at in range(len(path)):
            own += sets.binomials[path[at], at + 1]
    return own


@njit(cache=True)
def note_minimal(sets: Any, path: Any, row: int) -> None:
    """A record is alone on a set, and on none with one column less."""
    result = sets.result
    result.found[sets.size] += 1
    result.scores[row] += sets.weight
    if result.smallest[row] == 0:
        result.smallest[row] = sets.size
    for column in path:
        result.contributions[row, column] += sets.weight
