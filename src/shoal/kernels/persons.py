"""Persons who have several records: groups count them once, and each of their values once.

A record carries a code per sensitive column that stands for a person with a value, and last the
number of its person. A group meets each code once, whatever the number of records that carry it:
it has as many persons as different codes of the last kind, and as many persons with a value as
different codes that stand for it. These numbers do not add up when groups are joined.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.grouping import _mixed


class Persons(NamedTuple):
    """What the codes of records stand for; without rows where each record is a person."""

    value: Codes  # by sensitive column and code, and a last row for the persons themselves
    rates: Floats  # by sensitive column and value: the share of all persons who have it
    owner: Codes  # who goes together, as a person or a household, of each code
    marks: Integers  # room: when a code was last met
    clock: Integers  # of one number, which never comes again
    owners: int
    histories: int  # how many persons share a history at least; 1 where nobody asks
    whole: bool  # whether who is taken out in one group is taken out of all
    crowd: int  # how many times the records of a person a group has at least; only merging asks


def each_record() -> Persons:
    """Each record is a person."""
    none = np.empty((0, 0), np.int32)
    room, clock = np.empty((0, 0), np.int64), np.zeros(1, np.int64)
    return Persons(none, np.empty((0, 0)), none, room, clock, 0, 1, False, 1)


def persons_of(
    values: list[npt.NDArray[np.integer[Any]]],
    persons: npt.NDArray[np.integer[Any]],
    together: npt.NDArray[np.integer[Any]],
    rates: Floats,
    *,
    histories: int,
    whole: bool,
) -> tuple[Persons, Codes]:
    """Persons with their sensitive values, and the codes of each record.

    Parameters
    ----------
    values : list of arrays
        Each sensitive column, as codes of its values.
    persons : array
        The person of each record, numbered from 0 without gaps.
    together : array
        What each record is taken out with: a number for a person or a household.
    rates : array
        By sensitive column and value, the share of all persons who have it.

    Examples
    --------
    >>> ill, who = np.array([0, 1, 1]), np.array([0, 0, 1])
    >>> persons, codes = persons_of([ill], who, who, np.ones((1, 2)), histories=1, whole=True)
    >>> codes.tolist(), persons.value[0].tolist(), persons.owner[0].tolist()
    ([[0, 1, 2], [0, 0, 1]], [0, 1, 1], [0, 0, 1])
    """
    count = int(persons.max(initial=-1)) + 1
    codes = np.zeros((len(values) + 1, len(persons)), np.int32)
    known = []
    for place, column in enumerate(values):
        width = int(column.max(initial=0)) + 1
        pairs, codes[place] = np.unique(
            persons.astype(np.int64) * width + column, return_inverse=True
        )
        known.append((pairs % width, pairs // width))
    codes[-1] = persons
    known.append((np.zeros(count, np.int64), np.arange(count)))
    group = np.zeros(count, np.int64)
    group[persons] = np.unique(together, return_inverse=True)[1]
    most = max(len(owner) for _, owner in known)
    value, owner = np.zeros((2, len(known), most), np.int32)
    for place, (meant, whose) in enumerate(known):
        value[place, : len(meant)], owner[place, : len(whose)] = meant, group[whose]
    room = np.zeros(value.shape, np.int64)
    clock = np.zeros(1, np.int64)
    owners = int(group.max(initial=-1)) + 1
    return Persons(value, rates, owner, room, clock, owners, histories, whole, 1), codes


@njit(cache=True)
def counted_once(persons: Any) -> bool:
    """Whether persons are counted, and not records."""
    return len(persons.value) > 0


@njit(cache=True)
def meet(persons: Any, place: int, code: int, tick: int, counts: Any) -> int:
    """Count a code into ``counts`` unless it was met at this tick; 1 if it is a new person."""
    if persons.marks[place, code] == tick:
        return 0
    persons.marks[place, code] = tick
    if place == len(persons.value) - 1:
        return 1
    counts[place, persons.value[place, code]] += 1
    return 0


@njit(cache=True)
def next_tick(persons: Any) -> int:
    """A time at which no code was met yet."""
    persons.clock[0] += 1
    return persons.clock[0]


@njit(cache=True)
def take_out_rare_histories(
    persons: Any, pair_group: Any, pair_code: Any, pair_counts: Any, gone: Any
) -> int:
    """Mark the persons whose history is shared by too few as gone; give how many they are.

    A history is told by the sum of the hashes of its groups with how often each occurs. Two
    different ones may be taken for one with a chance of 2 ** -64: whoever claims k counts again.
    """
    sums = np.zeros(persons.value.shape[1], np.uint64)
    for i in range(len(pair_group)):
        event = np.uint64(pair_group[i]) << np.uint64(32) | np.uint64(pair_counts[i])
        sums[pair_code[i]] += _mixed(event + np.uint64(1))
    left = np.unique(pair_code)
    left = left[~gone[persons.owner[-1][left]]]
    order = left[np.argsort(sums[left])]
    taken, first = 0, 0
    for last in range(1, len(order) + 1):
        if last < len(order) and sums[order[last]] == sums[order[first]]:
            continue
        if last - first < persons.histories:
            for person in order[first:last]:
                gone[persons.owner[-1, person]] = True
            taken += last - first
        first = last
    return taken
