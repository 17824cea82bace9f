"""What a group of records must satisfy in addition to its size: one answer for every search.

Numbers describe a group: how many records it has, how many records of a population match it, and
how often it has each value of each sensitive column. They add up when groups are joined. If
a person has several records, they count persons and do not add up. Every search that forms groups
(lattice, Mondrian, local recoding, microaggregation) keeps these numbers and calls ``holds``.

Persons who have several records are counted once, and each of their values once. A record
has one code per sensitive column, which represents a person with a value, and last the number of
its person. A group counts each code once, however many of its records have it. It has as many
persons as distinct codes of the last kind, and as many persons with a value as distinct codes that
represent the value. These numbers do not add up when groups are joined.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Flags, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.grouping import _mixed

DISTINCT, ENTROPY, RECURSIVE = 0, 1, 2
EQUAL, ORDERED, HIERARCHICAL = 3, 4, 5
LARGEST_SHARE, LIKENESS, ENHANCED_LIKENESS, DISCLOSURE = 6, 7, 8, 9
IN_POPULATION, PRESENCE = 10, 11

#: Sums of shares are rounded; a value that misses its bound by less than this still meets it.
TOLERANCE = 1e-9


class Persons(NamedTuple):
    """What the codes of records represent; without rows if each record is a person."""

    value: Codes  # by sensitive column and code, and a last row for the persons themselves
    rates: Floats  # by sensitive column and value: the share of all persons who have it
    owner: Codes  # of each code: the person or household removed together
    marks: Integers  # room: when a code was last met
    clock: Integers  # one number that never repeats
    owners: int
    histories: int  # the fewest persons that share a history; 1 if irrelevant
    whole: bool  # whether a person removed from one group leaves all
    crowd: int  # the least ratio of group size to one person's records; for merging


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

    ``values`` are the codes of each sensitive column, ``persons`` the person of each record,
    numbered from 0 without gaps, and ``together`` the person or household with which a record is
    removed.
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
    """Whether persons are counted instead of records."""
    return len(persons.value) > 0


@njit(cache=True)
def meet(persons: Any, place: int, code: int, tick: int, counts: Any) -> int:
    """Add a code to ``counts`` unless already met at this tick; 1 if it is a new person."""
    if persons.marks[place, code] == tick:
        return 0
    persons.marks[place, code] = tick
    if place == len(persons.value) - 1:
        return 1
    counts[place, persons.value[place, code]] += 1
    return 0


@njit(cache=True)
def next_tick(persons: Any) -> int:
    """A time at which no code has been met yet."""
    persons.clock[0] += 1
    return persons.clock[0]


@njit(cache=True)
def take_out_rare_histories(
    persons: Any, pair_group: Any, pair_code: Any, pair_counts: Any, gone: Any
) -> int:
    """Mark the persons whose history too few share as gone; return how many there are.

    A history is identified by the sum of the hashes of its groups with how often each occurs. Two
    histories are confused with a chance of 2 ** -64: anyone who claims k counts again.
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


class Conditions(NamedTuple):
    """What every group must satisfy, as arrays.

    ``shares`` has a row per sensitive column, padded with zeros, and ``values`` has the number of
    values of each column. ``trees[column, height, value]`` numbers the node above a value at each
    height of a hierarchy, with a single node at the top; only ``HIERARCHICAL`` reads it.
    """

    smallest: int  # the fewest records of a group
    kinds: Integers
    columns: Integers  # the sensitive column of each condition
    bounds: Floats
    extras: Floats  # the second number of a condition, if any
    shares: Floats
    values: Integers
    trees: Integers
    heights: Integers  # of each sensitive column's tree
    persons: Persons = each_record()


def only_size(smallest: int) -> Conditions:
    """Groups need a size and nothing else."""
    none, no = np.empty(0, np.int64), np.empty(0)
    return Conditions(
        smallest, none, none, no, no, np.empty((0, 0)), none, np.empty((0, 0, 0), np.int64), none
    )


def only_kinds(conditions: Conditions, kept: Flags) -> Conditions:
    """Some of the conditions; the columns and the smallest size stay the same."""
    return conditions._replace(
        kinds=conditions.kinds[kept],
        columns=conditions.columns[kept],
        bounds=conditions.bounds[kept],
        extras=conditions.extras[kept],
    )


@njit(cache=True)
def code_width(conditions: Any) -> int:
    """The most codes of a sensitive column: of values, or of persons with values."""
    if counted_once(conditions.persons):
        return conditions.persons.value.shape[1]
    return conditions.shares.shape[1]


@njit(cache=True)
def holds(conditions: Any, size: int, population: int, counts: Any) -> bool:
    """Whether a group satisfies every condition."""
    # One type for all callers: otherwise everything below is compiled once per type.
    if size < conditions.smallest:
        return False
    for i in range(len(conditions.kinds)):
        if shortfall(conditions, i, np.int64(size), np.int64(population), counts) > 0.0:
            return False
    return True


@njit(cache=True)
def total_shortfall(conditions: Any, size: int, population: int, counts: Any) -> float:
    """0 if a group satisfies every condition; the more it misses, the larger.

    Each condition counts relative to its bound, so that a search can weigh them.
    """
    missing = max(0.0, (conditions.smallest - size) / max(1, conditions.smallest))
    for i in range(len(conditions.kinds)):
        missing += shortfall(conditions, i, np.int64(size), np.int64(population), counts)
    return missing


@njit(cache=True)
def shortfall(conditions: Any, i: int, size: int, population: int, counts: Any) -> float:
    """By how much a group misses one condition, relative to its bound; 0 if it does not."""
    kind, bound, extra = conditions.kinds[i], conditions.bounds[i], conditions.extras[i]
    if size == 0:
        return 1.0
    if kind == IN_POPULATION:
        return max(0.0, (bound - population) / bound)
    if kind == PRESENCE:  # between ``extra`` and ``bound`` of the population are in the table
        share = size / population if population > 0 else np.inf
        return _above(share, bound) + max(0.0, extra - TOLERANCE - share)
    column = conditions.columns[i]
    own = counts[column]
    values = conditions.values[column]
    if kind == DISTINCT:
        return max(0.0, (bound - _distinct(own, values, size)) / bound)
    if kind == LARGEST_SHARE:
        return _above(_largest(own, values) / size, bound)
    if not counted_once(conditions.persons):
        return _distribution_shortfall(conditions, i, size, own, values, conditions.shares[column])
    if kind == ENTROPY or kind == RECURSIVE:
        if _largest(own, values) >= size:
            return 1.0  # a value that everyone has is certain, whatever else some have
    # a person may have several values: as shares of all values, and as shares of the persons
    return max(
        _distribution_shortfall(
            conditions, i, own[:values].sum(), own, values, conditions.shares[column]
        ),
        _rate_shortfall(conditions, i, size, own, values),
    )


@njit(cache=True)
def _rate_shortfall(conditions: Any, i: int, size: int, own: Any, values: int) -> float:
    """The same for the shares of persons with each value, which may add up to more than 1."""
    kind, bound, column = conditions.kinds[i], conditions.bounds[i], conditions.columns[i]
    rates = conditions.persons.rates[column]
    if kind == ENTROPY or kind == RECURSIVE:
        return 0.0
    if kind == EQUAL or kind == ORDERED or kind == HIERARCHICAL:
        gain = 0.0
        for value in range(values):
            gain = max(gain, own[value] / size - rates[value])
        if kind == ORDERED:
            gain = gain / (values - 1) if values > 1 else 0.0
        elif kind == HIERARCHICAL:
            gain /= max(1, conditions.heights[column])
        return _above(gain, bound)
    return _distribution_shortfall(conditions, i, size, own, values, rates)


@njit(cache=True)
def _distribution_shortfall(
    conditions: Any, i: int, size: int, own: Any, values: int, shares: Any
) -> float:
    """By how much a distribution of values misses its condition."""
    kind, bound, extra = conditions.kinds[i], conditions.bounds[i], conditions.extras[i]
    column = conditions.columns[i]
    if kind == ENTROPY:
        short = math.log(bound) - _entropy(own, values, size)
        return short / math.log(bound) if short > TOLERANCE else 0.0
    if kind == RECURSIVE:
        return _recursive_shortfall(own, values, size, bound, extra)
    if kind == EQUAL:
        return _above(_total_variation(own, shares, values, size), bound)
    if kind == ORDERED:
        return _above(_ordered_distance(own, shares, values, size), bound)
    if kind == HIERARCHICAL:
        tree, height = conditions.trees[column], conditions.heights[column]
        return _above(_tree_distance(own, shares, values, size, tree, height), bound)
    if kind == DISCLOSURE:  # strictly below its bound
        furthest = _largest_log_ratio(own, shares, values, size)
        if furthest == np.inf:
            return 1.0
        return (
            0.0
            if furthest < bound - TOLERANCE
            else (furthest - bound + TOLERANCE) / bound + TOLERANCE
        )
    return _likeness_shortfall(own, shares, values, size, bound, kind == ENHANCED_LIKENESS)


@njit(cache=True)
def _above(value: float, bound: float) -> float:
    return (value - bound) / max(bound, TOLERANCE) if value > bound + TOLERANCE else 0.0


@njit(cache=True)
def _distinct(own: Any, values: int, size: int) -> int:
    """The number of distinct values; 1 if everyone has the same one, whatever else some have."""
    found = 0
    for value in range(values):
        if own[value] >= size:
            return 1
        found += own[value] > 0
    return found


@njit(cache=True)
def _largest(own: Any, values: int) -> int:
    most = 0
    for value in range(values):
        most = max(most, own[value])
    return most


@njit(cache=True)
def _entropy(own: Any, values: int, size: int) -> float:
    total = 0.0
    for value in range(values):
        if own[value] > 0:
            total += own[value] * math.log(own[value])
    return math.log(size) - total / size


@njit(cache=True)
def _recursive_shortfall(own: Any, values: int, size: int, fewest: float, c: float) -> float:
    """(c, l)-diversity: the most frequent value is rarer than c times those from the l-th on."""
    ordered = np.sort(own[:values])[::-1]
    tail = size - ordered[: int(fewest) - 1].sum()
    return 0.0 if ordered[0] < c * tail - TOLERANCE else (ordered[0] - c * tail + 1.0) / size


@njit(cache=True)
def _total_variation(own: Any, shares: Any, values: int, size: int) -> float:
    total = 0.0
    for value in range(values):
        total += max(0.0, own[value] / size - shares[value])
    return total


@njit(cache=True)
def _ordered_distance(own: Any, shares: Any, values: int, size: int) -> float:
    if values < 2:
        return 0.0
    total, surplus = 0.0, 0.0
    for value in range(values):
        surplus += own[value] / size - shares[value]
        total += abs(surplus)
    return total / (values - 1)


@njit(cache=True)
def _tree_distance(own: Any, shares: Any, values: int, size: int, tree: Any, height: int) -> float:
    """Earth mover's distance where the lowest common node of two values is their distance.

    What does not balance out below a node travels through it: the smaller of the total surplus and
    total deficit of its children, at a cost of the node's height divided by that of the tree.
    """
    total = 0.0
    surplus = np.zeros(values)
    for value in range(values):
        surplus[value] = own[value] / size - shares[value]
    below = np.arange(values)
    for level in range(1, height + 1):
        gained, lost, net = np.zeros(values), np.zeros(values), np.zeros(values)
        seen = np.zeros(values, np.bool_)
        for value in range(values):
            child, node = below[value], tree[level, value]
            if not seen[child]:  # each child once
                seen[child] = True
                gained[node] += max(0.0, surplus[child])
                lost[node] += max(0.0, -surplus[child])
                net[node] += surplus[child]
        for node in range(values):
            total += min(gained[node], lost[node]) * level / height
        for value in range(values):
            below[value] = tree[level, value]
        surplus = net
    return total


@njit(cache=True)
def _likeness_shortfall(
    own: Any, shares: Any, values: int, size: int, beta: float, enhanced: bool
) -> float:
    missing = 0.0
    for value in range(values):
        if own[value] > 0 and shares[value] > 0.0:
            bound = min(beta, -math.log(shares[value])) if enhanced else beta
            gain = own[value] / size / shares[value] - 1.0
            missing = max(missing, _above(gain, bound))
    return missing


@njit(cache=True)
def _largest_log_ratio(own: Any, shares: Any, values: int, size: int) -> float:
    furthest = 0.0
    for value in range(values):
        if shares[value] > 0.0:
            if own[value] == 0:
                return np.inf
            furthest = max(furthest, abs(math.log(own[value] / size / shares[value])))
    return furthest
