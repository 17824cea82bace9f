"""Groups as linked lists, a queue of records to examine, and a log of changes.

This module knows who is in which group, not how records are compared: see ``refine`` for points
and ``mixed_refine`` for records of mixed type. The members of a group are a doubly linked list, so
adding or removing one takes O(1). Changes are logged so that they can be undone.

All state is in few arrays, and integers have 64 bits: numba compiles a call faster
with fewer arrays, and again for every other type.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers, Rows, Words
from shoal.kernels.compile import njit

# Columns of ``rows``: a record's group, the members after and before it, whether it waits in the
# queue; and, unrelated to that record, places of the queue (a ring) and of a pool of records.
LABEL, AFTER, BEFORE, QUEUED, QUEUE, POOL = range(6)
# Columns of ``heads``: a group's first member, its size, the tick at which it was last seen; and
# places of the list of numbers that no group has.
HEAD, SIZE, STAMP, FREE = range(4)
# Places in ``counts``.
FIRST, WAITING, TICK, LOGGED, UNUSED, WORK = range(6)
# Places in ``sums``: the change of the loss since it was set to 0; the least gain.
CHANGE, LEAST = range(2)

WORDS_PER_KICK = 8
"""How many random words a refinement's ``perturb`` uses for one attempt."""

_CREATED, _DISSOLVED = np.int64(-1), np.int64(-2)
_FEW, _MANY = 16, 64  # neighbors; more than a group has, but no more than memory allows
_POOLED = 5  # the most groups that are formed again together; at least two


class Lists(NamedTuple):
    """Who is in which group, and the changes; all arrays are modified in place.

    A named tuple that has these fields among others works as well.
    """

    rows: Integers
    heads: Integers
    log: Integers  # record and the group it left; or a mark and a group created or dissolved
    counts: Integers
    sums: Floats


def empty_lists(count: int, k: int) -> Lists:
    """Lists for n records in at most n // k groups; no record is in a group yet."""
    lists = Lists(
        rows=np.zeros((count, 6), np.int64),
        heads=np.zeros((count // k, 4), np.int64),
        log=np.empty((2 * count + 2 * k + 64, 2), np.int64),
        counts=np.zeros(6, np.int64),
        sums=np.zeros(2),
    )
    lists.heads[:, HEAD] = -1
    return lists


def neighbours_of_each(count: int, k: int) -> int:
    """The number of neighbors among which a record looks for groups to trade with."""
    return min(count - 1, max(_FEW, min(3 * k // 2, _MANY)))


@njit(cache=True)
def attach(lists: Lists, row: int, group: int) -> None:
    rows, heads = lists.rows, lists.heads
    first = heads[group, HEAD]
    rows[row, AFTER], rows[row, BEFORE] = first, -1
    if first >= 0:
        rows[first, BEFORE] = row
    heads[group, HEAD] = row
    heads[group, SIZE] += 1
    rows[row, LABEL] = group


@njit(cache=True)
def detach(lists: Lists, row: int) -> None:
    rows, heads = lists.rows, lists.heads
    after, before = rows[row, AFTER], rows[row, BEFORE]
    if before >= 0:
        rows[before, AFTER] = after
    else:
        heads[rows[row, LABEL], HEAD] = after
    if after >= 0:
        rows[after, BEFORE] = before
    heads[rows[row, LABEL], SIZE] -= 1


@njit(cache=True)
def start(lists: Lists, labels: Rows, order: Integers) -> None:
    """Form the groups of a partition, list the numbers that are free, and queue all records.

    They wait in the given order, in which neighbors are close to each other.
    """
    for row in range(len(labels) - 1, -1, -1):
        attach(lists, row, np.int64(labels[row]))
    for group in range(len(lists.heads) - 1, -1, -1):
        if lists.heads[group, SIZE] == 0:
            _give_back(lists, group)
    for row in order:
        wait(lists, row)


@njit(cache=True)
def _give_back(lists: Lists, group: int) -> None:
    """Make a number available for another group."""
    lists.heads[lists.counts[UNUSED], FREE] = group
    lists.counts[UNUSED] += 1


@njit(cache=True)
def note(lists: Lists, row: int, group: int) -> None:
    place = lists.counts[LOGGED]
    lists.log[place, 0], lists.log[place, 1] = row, group
    lists.counts[LOGGED] = place + 1


@njit(cache=True)
def create(lists: Lists) -> int:
    """The number of a new group, which has no members yet."""
    lists.counts[UNUSED] -= 1
    group = lists.heads[lists.counts[UNUSED], FREE]
    note(lists, _CREATED, group)
    return group


@njit(cache=True)
def dissolve(lists: Lists, group: int) -> None:
    """Return the number of a group that has no more members."""
    note(lists, _DISSOLVED, group)
    _give_back(lists, group)


@njit(cache=True)
def take_back_number(lists: Lists, mark: int, group: int) -> None:
    """Undo that a group was created or dissolved, according to its mark in the log."""
    if mark == _CREATED:
        _give_back(lists, group)
    else:
        lists.counts[UNUSED] -= 1


@njit(cache=True)
def logged_group(lists: Lists, place: int) -> int:
    """The two groups of each entry in turn: the one noted, and the record's present group."""
    row, group = lists.log[place // 2]
    return lists.rows[row, LABEL] if place % 2 == 1 and row >= 0 else group


@njit(cache=True)
def wait(lists: Lists, row: int) -> None:
    """Put a record at the end of the queue, unless it is already in it."""
    rows, counts = lists.rows, lists.counts
    if rows[row, QUEUED] == 0:
        rows[row, QUEUED] = 1
        rows[(counts[FIRST] + counts[WAITING]) % len(rows), QUEUE] = row
        counts[WAITING] += 1


@njit(cache=True)
def next_waiting(lists: Lists) -> int:
    """Take the first record out of the queue."""
    rows, counts = lists.rows, lists.counts
    row = rows[counts[FIRST], QUEUE]
    counts[FIRST] = (counts[FIRST] + 1) % len(rows)
    counts[WAITING] -= 1
    rows[row, QUEUED] = 0
    return row


@njit(cache=True)
def let_none_wait(lists: Lists) -> None:
    """Empty the queue."""
    while lists.counts[WAITING] > 0:
        next_waiting(lists)


@njit(cache=True)
def enqueue(lists: Lists, group: int) -> None:
    """Queue all members of a group to be examined again."""
    row = lists.heads[group, HEAD]
    while row >= 0:
        wait(lists, row)
        row = lists.rows[row, AFTER]


@njit(cache=True)
def enqueue_logged(lists: Lists, start: int) -> None:
    """Queue all members of the groups logged since then to be examined again."""
    lists.counts[TICK] += 1
    for place in range(2 * start, 2 * lists.counts[LOGGED]):
        group = logged_group(lists, place)
        if lists.heads[group, STAMP] != lists.counts[TICK]:
            lists.heads[group, STAMP] = lists.counts[TICK]
            enqueue(lists, group)


@njit(cache=True)
def pool_around(lists: Lists, near: npt.NDArray[Any], k: int, words: Words) -> Integers:
    """Pool the records of the groups around a random one, and plan the groups to form from them.

    The pooled records are still in their groups. Each group to form has a row: its number, its
    size, and the place of a random member in the pool from which the groups before it have taken
    their members. Groups that disappear have size 0. No rows if the groups are too large.
    """
    rows, heads, counts = lists.rows, lists.heads, lists.counts
    row = np.int64(words[0] % np.uint64(len(rows)))
    wanted = 2 + np.int64(words[1] % np.uint64(_POOLED - 1))
    around = np.empty(_POOLED, np.int64)
    around[0] = rows[row, LABEL]
    found, left = 1, heads[around[0], SIZE]
    counts[TICK] += 1
    heads[around[0], STAMP] = counts[TICK]
    for neighbour in near[row]:
        group = rows[neighbour, LABEL]
        if heads[group, STAMP] != counts[TICK] and found < wanted:
            heads[group, STAMP] = counts[TICK]
            around[found] = group
            found += 1
            left += heads[group, SIZE]
    if left > 2 * k * found:
        return np.empty((0, 3), np.int64)  # groups of equal records, or held together by conditions
    _pool(lists, around[:found])
    formed = np.zeros((max(found, left // k), 3), np.int64)
    for made in range(len(formed)):
        if left == 0:
            formed[made, 0] = around[made]
            dissolve(lists, around[made])
            continue
        word = words[2 + made % (WORDS_PER_KICK - 2)] >> np.uint64(made // (WORDS_PER_KICK - 2))
        formed[made, 0] = around[made] if made < found else create(lists)
        formed[made, 1] = k if left >= 2 * k else left
        formed[made, 2] = np.int64(word % np.uint64(left))
        left -= formed[made, 1]
    return formed


@njit(cache=True)
def _pool(lists: Lists, around: Integers) -> None:
    """List the members of some groups, and log that they leave."""
    pooled = 0
    for group in around:
        row = lists.heads[group, HEAD]
        while row >= 0:
            lists.rows[pooled, POOL] = row
            pooled += 1
            note(lists, row, group)
            row = lists.rows[row, AFTER]


@njit(cache=True)
def by_first_record(labels: Integers, groups: int) -> Rows:
    """The groups numbered by their first records."""
    number = np.full(groups, -1, np.int32)
    renamed = np.empty(len(labels), np.int32)
    found = 0
    for row in range(len(labels)):
        if number[labels[row]] < 0:
            number[labels[row]] = found
            found += 1
        renamed[row] = number[labels[row]]
    return renamed
