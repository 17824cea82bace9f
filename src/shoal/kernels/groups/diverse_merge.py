"""Make groups satisfy conditions: records join them, and groups join other groups.

A record without a group joins the nearest group that satisfies the conditions with it, or the
nearest if no nearby one does. A group that misses a condition then joins the nearest other one,
until none misses any (the merging of Soria-Comas, Domingo-Ferrer, Sánchez and Martínez 2015,
Algorithm 1). The distance of groups is that of their centers: means of numbers, modes of
categories.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers, Labels
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, counted_once, holds, meet, next_tick
from shoal.kernels.groups.diverse_group import Sensitive, count_in, table_shape
from shoal.kernels.lanes import WIDTH
from shoal.kernels.space.mixed_distance import set_query
from shoal.kernels.space.mixed_records import MixedRecords
from shoal.kernels.space.mixed_tree import Tree, compare_all, grow

_TRIES = 64  # groups that a record without a group may try to join


class Lists(NamedTuple):
    """The members of each group as a list."""

    heads: Integers  # the first member of each group, -1 if the group is gone
    after: Integers  # the member after each record, or -1
    sizes: Integers
    counts: Integers  # room for the counts of one group
    tally: Integers  # room for the codes of one column


class _Search(NamedTuple):
    """The groups, and what is searched for among them."""

    tree: Tree  # of the centers
    lists: Lists
    records: MixedRecords
    centres: MixedRecords
    conditions: Conditions
    codes: Codes  # the sensitive values by column and record
    gaps: Floats  # room for the distances of all centers


def settled(
    records: MixedRecords, labels: Labels, conditions: Conditions, sensitive: Sensitive
) -> Labels:
    """The groups of all records after merging; each satisfies the conditions, if the table does.

    ``labels`` contain at least one group; -1 is a record without a group.
    """
    groups = int(labels.max()) + 1
    nominal, numeric = len(records.codes), len(records.values)
    lists = Lists(
        np.full(groups, -1),
        np.full(len(labels), -1),
        np.zeros(groups, np.int64),
        np.zeros(table_shape(conditions), np.int64),
        np.zeros(int(records.measure.levels.max(initial=1)), np.int64),
    )
    centres = records._replace(
        values=np.zeros((numeric, groups)),
        codes=np.zeros((nominal, groups), records.codes.dtype),
        patterns=np.zeros(groups, np.int64),
    )
    found = labels.copy()
    _list(lists, records, centres, found)
    tree = grow(centres, np.arange(groups))
    gaps = np.empty(groups)
    search = _Search(tree, lists, records, centres, conditions, sensitive.codes, gaps)
    _join(search, found)
    _merge(search)
    return _numbered(lists, found)


@njit(cache=True)
def _list(lists: Lists, records: MixedRecords, centres: MixedRecords, labels: Labels) -> None:
    for row in range(len(labels) - 1, -1, -1):
        if labels[row] >= 0:
            _prepend(lists, row, labels[row])
    for group in range(len(lists.heads)):
        _set_centre(lists, records, centres, group)


@njit(cache=True)
def _prepend(lists: Lists, row: int, group: int) -> None:
    lists.after[row] = lists.heads[group]
    lists.heads[group] = row
    lists.sizes[group] += 1


@njit(cache=True)
def _set_centre(lists: Lists, records: MixedRecords, centres: MixedRecords, group: int) -> None:
    """Mean of numbers and mode of categories over the members that have a value."""
    values, codes = centres.values, centres.codes
    numeric, measure, tally = len(records.values), records.measure, lists.tally
    for column in range(len(measure.presence)):
        at, have, total, mode = measure.presence[column], 0, 0.0, np.int64(0)
        row = lists.heads[group]
        while row >= 0:
            if at < 0 or records.codes[at, row] != 0:
                have += 1
                if column < numeric:
                    total += records.values[column, row]
                else:
                    code = np.int64(records.codes[column - numeric, row])
                    tally[code] += 1
                    if tally[code] > tally[mode] or (tally[code] == tally[mode] and code < mode):
                        mode = code
            row = lists.after[row]
        if at >= 0:
            codes[at, group] = have > 0
        if column < numeric:
            values[column, group] = total / max(have, 1)
        else:
            codes[column - numeric, group] = mode
            row = lists.heads[group]
            while row >= 0:
                tally[records.codes[column - numeric, row]] = 0
                row = lists.after[row]


@njit(cache=True)
def _holds(lists: Lists, conditions: Conditions, codes: Any, group: int, with_row: int) -> bool:
    """Whether a group satisfies the conditions, together with a record if it is not -1."""
    if counted_once(conditions.persons):
        return _holds_by_persons(lists, conditions, codes, group, with_row)
    size = lists.sizes[group]
    row = lists.heads[group]
    while row >= 0:
        count_in(lists.counts, codes, row, 1)
        row = lists.after[row]
    if with_row >= 0:
        count_in(lists.counts, codes, with_row, 1)
        size += 1
    held = holds(conditions, size, size, lists.counts)
    lists.counts[:] = 0
    return held


@njit(cache=True)
def _holds_by_persons(
    lists: Lists, conditions: Conditions, codes: Any, group: int, with_row: int
) -> bool:
    """The same if persons are counted; none may have too large a share of the records."""
    persons, last = conditions.persons, len(codes) - 1
    lists.counts[:] = 0
    tick, size, records, most = next_tick(persons), 0, 0, 0
    row = with_row if with_row >= 0 else lists.heads[group]
    while row >= 0:
        for place in range(len(codes)):
            size += meet(persons, place, codes[place, row], tick, lists.counts)
        records += 1
        if persons.crowd > 1:
            most = max(most, _records_of(lists, codes[last], group, with_row, codes[last, row]))
        row = lists.heads[group] if row == with_row else lists.after[row]
    held = holds(conditions, size, size, lists.counts)
    lists.counts[:] = 0
    return held and records >= most * persons.crowd


@njit(cache=True)
def _records_of(lists: Lists, persons: Any, group: int, with_row: int, person: int) -> int:
    """The number of records in a group that belong to a person."""
    found = 1 if with_row >= 0 and persons[with_row] == person else 0
    row = lists.heads[group]
    while row >= 0:
        found += persons[row] == person
        row = lists.after[row]
    return found


@njit(cache=True)
def _join(search: _Search, labels: Labels) -> None:
    """Put every record without a group into one."""
    tree, lists, records, _, conditions, codes, gaps = search
    for row in range(len(labels)):
        if labels[row] >= 0:
            continue
        set_query(tree.query, records, row)
        compare_all(tree, records.measure, gaps)
        nearest = chosen = np.argmin(gaps)
        for _ in range(min(_TRIES, len(gaps))):
            if _holds(lists, conditions, codes, chosen, row):
                nearest = chosen
                break
            gaps[chosen] = np.inf
            chosen = np.argmin(gaps)
        labels[row] = nearest
        _prepend(lists, row, nearest)


@njit(cache=True)
def _merge(search: _Search) -> None:
    """Let every group that misses a condition absorb the nearest other one until it does not."""
    tree, lists, records, centres, conditions, codes, gaps = search
    alive = len(lists.heads)
    for group in range(alive):
        _move_centre(search, group)
    for group in range(len(lists.heads)):
        while (
            lists.heads[group] >= 0
            and alive > 1
            and not _holds(lists, conditions, codes, group, -1)
        ):
            set_query(tree.query, centres, group)
            compare_all(tree, records.measure, gaps)
            nearest = -1
            for other in range(len(gaps)):
                if other != group and lists.heads[other] >= 0:
                    if nearest < 0 or gaps[other] < gaps[nearest]:
                        nearest = other
            row = lists.heads[nearest]
            while row >= 0:
                after = lists.after[row]
                _prepend(lists, row, group)
                row = after
            lists.heads[nearest] = -1
            alive -= 1
            _move_centre(search, group)


@njit(cache=True)
def _move_centre(search: _Search, group: int) -> None:
    """Recompute a center, also in its leaf; boxes stay, because nothing uses them."""
    tree, centres = search.tree, search.centres
    _set_centre(search.lists, search.records, centres, group)
    leaf, lane = tree.places[group] // WIDTH, tree.places[group] % WIDTH
    for column in range(len(centres.values)):
        tree.values[leaf, column, lane] = centres.values[column, group]
    for column in range(len(centres.codes)):
        tree.codes[leaf, column, lane] = centres.codes[column, group]


@njit(cache=True)
def _numbered(lists: Lists, labels: Labels) -> Labels:
    """Groups numbered without gaps, in their order."""
    number = 0
    for group in range(len(lists.heads)):
        row = lists.heads[group]
        while row >= 0:
            labels[row] = number
            row = lists.after[row]
        number += lists.heads[group] >= 0
    return labels
