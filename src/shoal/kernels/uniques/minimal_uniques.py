"""Minimal sample uniques: the smallest sets of columns on which a record is alone.

Alone is a record whose values no other person has. One that is alone on a set of columns is alone
on every larger one. So the sets are gone
through by size, and which records are alone on each set is kept for the next size: a record is
minimally unique on a set where it is alone, and on no set with one column less.

The sets of one size are visited depth first. Each step splits the groups of records that agree so
far by one more column, and leaves out whoever is alone: nobody meets such a record again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit, python_if_small

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


class MinimalUniques(NamedTuple):
    """What was found: scores and shares of the columns in them by record, and sets by size."""

    scores: Floats
    contributions: Floats  # records × columns
    found: Integers  # how many sets of each size, over all records
    smallest: Integers  # the size of the record's smallest set; 0 where it has none

    @classmethod
    def nothing(cls, columns: int, tuples: int, size: int) -> MinimalUniques:
        """Before anything is found."""
        counts, sizes = np.zeros(size + 1, np.int64), np.zeros(tuples, np.int64)
        return cls(np.zeros(tuples), np.zeros((tuples, columns)), counts, sizes)


def column_sets(columns: int, size: int) -> int:
    """How many sets of at most so many columns there are."""
    return sum(math.comb(columns, k) for k in range(1, size + 1))


def binomials_of(columns: int, size: int) -> Integers:
    """In how many ways up to so many columns are chosen; they number the sets of each size."""
    return np.array(
        [[math.comb(n, k) for k in range(size + 1)] for n in range(columns + 1)], np.int64
    )


def minimal_uniques(
    codes: Codes,
    single: npt.NDArray[np.bool_],
    size: int,
    weights: Floats,
    owners: Codes | None = None,
) -> MinimalUniques:
    """Find all minimal sets of up to ``size`` columns on which a tuple is alone.

    Parameters
    ----------
    codes : array of shape (columns, tuples)
        Different tuples of codes.
    single : array of shape (tuples,)
        Whether only one person has the tuple; else it is never alone, but others meet it.
    size : int
        The largest sets to look at, at most as many as there are columns.
    weights : array of shape (size + 1,)
        What a set of each size adds to the score.
    owners : array of shape (tuples,), optional
        A number from 0 on: tuples with the same one are of one person only, and do not meet.
    """
    columns, tuples = codes.shape
    if owners is None:
        owners = np.arange(tuples, dtype=np.int32)
    binomials = binomials_of(columns, size)
    result = MinimalUniques.nothing(columns, tuples, size)
    values = int(codes.max(initial=0)) + 1
    alone = np.zeros((1, tuples // 64 + 1), np.uint64)
    for k in range(1, size + 1):
        sets = binomials[columns, k] if k < size else 1  # nobody asks for the last ones
        now_alone = np.zeros((sets, alone.shape[1]), np.uint64)
        _sets_of_size(
            codes, single, owners, values, k, weights[k], binomials, alone, now_alone, result
        )
        alone = now_alone
    return result


def _steps(codes: Any, *given: Any) -> int:
    """Every tuple in every set of columns."""
    size = given[3]
    return 2 * codes.shape[1] * math.comb(len(codes), size)


@python_if_small(_steps)
@njit(cache=True)
def _sets_of_size(
    codes: Any,
    single: Any,
    owners: Any,
    values: int,
    size: int,
    weight: float,
    binomials: Any,
    before: Any,
    alone: Any,
    result: Any,
) -> None:
    """All sets of one size; ``before`` marks who is alone on the sets of one column less.

    ``alone`` gets the same for this size, without those who are alone on all columns of a set but
    the last: whoever meets the set as a part of a larger one has left them out by then.
    """
    columns, tuples = codes.shape
    rows = np.empty((size, tuples), np.int32)  # at each depth, group after group
    starts = np.empty((size, tuples + 1), np.int32)
    groups = np.zeros(size, np.int64)
    rows[0] = np.arange(tuples)
    starts[0, 0], starts[0, 1], groups[0] = 0, tuples, 1
    stamps, counts = np.zeros(values, np.int64), np.zeros((2, values), np.int32)
    path = np.empty(size, np.int64)
    turn, depth = np.int64(0), 0
    path[0] = -1
    while depth >= 0:
        path[depth] += 1
        if path[depth] > columns - size + depth:
            depth -= 1
        elif depth == size - 1:
            turn = _last_column(
                codes, single, owners, weight, binomials, before, alone, result,
                path, rows[depth], starts[depth], groups[depth], stamps, counts, turn,
            )  # fmt: skip
        else:
            groups[depth + 1] = _split(
                codes[path[depth]], owners, rows[depth], starts[depth], groups[depth],
                rows[depth + 1], starts[depth + 1], stamps, counts, turn,
            )  # fmt: skip
            turn += groups[depth]
            path[depth + 1] = path[depth]
            depth += 1


@njit(cache=True)
def _count(column: Any, owners: Any, members: Any, stamps: Any, counts: Any, turn: int) -> None:
    """How often each value occurs among the members, and whose it is: -1 where of several.

    A count is of this turn if stamped so.
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
def _split(
    column: Any,
    owners: Any,
    rows: Any,
    starts: Any,
    groups: int,
    into: Any,
    into_starts: Any,
    stamps: Any,
    counts: Any,
    turn: int,
) -> int:
    """Split each group by a column, without whoever is alone then; the number of new groups."""
    made, end = 0, 0
    into_starts[0] = 0
    for group in range(groups):
        turn += 1
        members = rows[starts[group] : starts[group + 1]]
        _count(column, owners, members, stamps, counts, turn)
        for row in members:  # a count becomes, as less than 0, the place of the next member
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
def _last_column(
    codes: Any,
    single: Any,
    owners: Any,
    weight: float,
    binomials: Any,
    before: Any,
    alone: Any,
    result: Any,
    path: Any,
    rows: Any,
    starts: Any,
    groups: int,
    stamps: Any,
    counts: Any,
    turn: int,
) -> int:
    """Who is alone on a set, and who minimally so."""
    size = len(path)
    column = codes[path[-1]]
    # the places of the sets without one of the columns; without the last nobody here is alone
    parts = np.empty(size - 1, np.int64)
    for left_out in range(size - 1):
        place, rank = 0, 0
        for at in range(size):
            if at != left_out:
                rank += 1
                place += binomials[path[at], rank]
        parts[left_out] = place
    own = 0
    if len(alone) > 1:
        for at in range(size):
            own += binomials[path[at], at + 1]
    for group in range(groups):
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
                result.found[size] += 1
                result.scores[row] += weight
                if result.smallest[row] == 0:
                    result.smallest[row] = size
                for at in range(size):
                    result.contributions[row, path[at]] += weight
    return turn
