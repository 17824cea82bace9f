"""Groups of records of any type that trade members as long as that lowers what they lose.

A group of n records loses the sum of the dissimilarities of its pairs over n. Under squared
Euclidean distance that is its sum of squares about the centre, so this is the same local search
as :mod:`.exchange`, for records that have no centre. Each record knows the sum of
its dissimilarities to the others of its group, which comes and goes with every member: a trade is
weighed by few sums, and kept only if all groups concerned satisfy the conditions and lose less.

Lists, queue and log are those of :mod:`~shoal.kernels.refine.group_lists`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, holds
from shoal.kernels.groups.diverse_group import count_in
from shoal.kernels.refine.group_lists import (
    AFTER,
    CHANGE,
    HEAD,
    LABEL,
    LEAST,
    LOGGED,
    SIZE,
    STAMP,
    TICK,
    WAITING,
    WORK,
    attach,
    create,
    detach,
    dissolve,
    enqueue_logged,
    logged_group,
    next_waiting,
    note,
    take_back_number,
)
from shoal.kernels.space.mixed_records import ByRecord, pair_gap


class MixedGroups(NamedTuple):
    """A partition that can change; lists, sums and rooms are written in place.

    What pairs are compared by comes first: with the lists before it, a search took 15 % longer.
    """

    records: ByRecord
    conditions: Conditions
    sensitive: Rows  # sensitive column, record
    near: Integers  # record, neighbour
    rows: Integers
    own: Floats  # the sum of the dissimilarities of each record to the others of its group
    heads: Integers
    totals: Floats  # the sum over the pairs of each group
    log: Integers
    counts: Integers
    sums: Floats
    tally: Integers  # room for the sensitive values of a group
    gaps: Floats  # room for a number per record


@njit(cache=True)
def loss(groups: MixedGroups, group: int) -> float:
    """What a group loses."""
    return groups.totals[group] / max(groups.heads[group, SIZE], 1)


@njit(cache=True)
def to_group(groups: MixedGroups, row: int, group: int, but: int) -> float:
    """The sum of the dissimilarities of a record to the members of a group, but one."""
    total = 0.0
    member = groups.heads[group, HEAD]
    while member >= 0:
        if member != but:
            total += pair_gap(groups.records, row, member)
        member = groups.rows[member, AFTER]
    groups.counts[WORK] += groups.heads[group, SIZE]
    return total


@njit(cache=True)
def join(groups: MixedGroups, row: int, group: int) -> None:
    """Put a record that is in no group into one."""
    before, total = loss(groups, group), 0.0
    member = groups.heads[group, HEAD]
    while member >= 0:
        gap = pair_gap(groups.records, row, member)
        groups.own[member] += gap
        total += gap
        member = groups.rows[member, AFTER]
    groups.counts[WORK] += groups.heads[group, SIZE]
    groups.own[row] = total
    groups.totals[group] += total
    attach(groups, row, group)
    groups.sums[CHANGE] += loss(groups, group) - before


@njit(cache=True)
def part(groups: MixedGroups, row: int) -> None:
    """Take a record out of its group."""
    group = groups.rows[row, LABEL]
    before = loss(groups, group)
    detach(groups, row)
    groups.totals[group] -= groups.own[row]
    member = groups.heads[group, HEAD]
    alone = groups.heads[group, SIZE] < 2  # then nothing is left of the sums, not even rounding
    while member >= 0:
        groups.own[member] -= pair_gap(groups.records, row, member)
        if alone:
            groups.own[member] = 0.0
        member = groups.rows[member, AFTER]
    if alone:
        groups.totals[group] = 0.0
    groups.counts[WORK] += groups.heads[group, SIZE]
    groups.sums[CHANGE] += loss(groups, group) - before


@njit(cache=True)
def relocate(groups: MixedGroups, row: int, group: int) -> None:
    note(groups, row, groups.rows[row, LABEL])
    part(groups, row)
    join(groups, row, group)


@njit(cache=True)
def take_back(groups: MixedGroups, to: int, change: float) -> None:
    """Undo what was logged since there were ``to`` entries and the change was what it was."""
    counts = groups.counts
    for place in range(counts[LOGGED] - 1, to - 1, -1):
        row, group = groups.log[place]
        if row >= 0:
            part(groups, row)
            join(groups, row, group)
        else:
            take_back_number(groups, row, group)
    counts[LOGGED] = to
    groups.sums[CHANGE] = change


@njit(cache=True)
def fits(groups: MixedGroups, group: int, gone: int, come: int) -> bool:
    """Whether a group would satisfy the conditions without one record and with another, if any."""
    size = groups.heads[group, SIZE] - (gone >= 0) + (come >= 0)
    if size < groups.conditions.smallest:
        return False
    if len(groups.conditions.kinds) == 0:
        return True
    member = groups.heads[group, HEAD]
    while member >= 0:
        if member != gone:
            count_in(groups.tally, groups.sensitive, member, 1)
        member = groups.rows[member, AFTER]
    if come >= 0:
        count_in(groups.tally, groups.sensitive, come, 1)
    held = holds(groups.conditions, size, size, groups.tally)
    groups.tally[:] = 0
    groups.counts[WORK] += size
    return held


@njit(cache=True)
def _best_trade(groups: MixedGroups, row: int) -> tuple[int, int]:
    """The best trade of a record: the group to move to, or -1, and the member to fetch, or -1.

    Both: a swap. Neither: no trade gains. Members beyond the first 2 k of a group are not tried.
    """
    rows, heads, own, totals = groups.rows, groups.heads, groups.own, groups.totals
    here, k = rows[row, LABEL], groups.conditions.smallest
    size = heads[here, SIZE]
    groups.counts[TICK] += 1
    tick = groups.counts[TICK]
    heads[here, STAMP] = tick
    gain, to, fetched = groups.sums[LEAST], -1, -1
    for neighbour in groups.near[row]:
        there = rows[neighbour, LABEL]
        if heads[there, STAMP] == tick:
            continue
        heads[there, STAMP] = tick
        other_size = heads[there, SIZE]
        before = loss(groups, here) + loss(groups, there)
        away = to_group(groups, row, there, -1)
        if size > k:
            after = (totals[here] - own[row]) / (size - 1) + (totals[there] + away) / (
                other_size + 1
            )
            if before - after > gain:
                if fits(groups, here, row, -1) and fits(groups, there, -1, row):
                    gain, to, fetched = before - after, there, -1
        member, tried = heads[there, HEAD], 0
        while member >= 0 and tried < 2 * k:
            between = pair_gap(groups.records, row, member)
            to_here = to_group(groups, member, here, row)
            after = (totals[here] - own[row] + to_here) / size
            after += (totals[there] - own[member] + away - between) / other_size
            if before - after > gain:
                if fits(groups, here, row, member) and fits(groups, there, member, row):
                    gain, to, fetched = before - after, there, member
            if other_size > k:
                after = (totals[here] + to_here + between) / (size + 1)
                after += (totals[there] - own[member]) / (other_size - 1)
                if before - after > gain:
                    if fits(groups, here, -1, member) and fits(groups, there, member, -1):
                        gain, to, fetched = before - after, -1, member
            member = rows[member, AFTER]
            tried += 1
    return to, fetched


@njit(cache=True)
def _split(groups: MixedGroups, group: int) -> None:
    """Move k members to a new group: the one that is most unlike the others, and its nearest."""
    rows, heads, gaps = groups.rows, groups.heads, groups.gaps
    seed = row = heads[group, HEAD]
    while row >= 0:
        if groups.own[row] > groups.own[seed]:
            seed = row
        row = rows[row, AFTER]
    row = heads[group, HEAD]
    while row >= 0:
        gaps[row] = pair_gap(groups.records, seed, row) if row != seed else -1.0
        row = rows[row, AFTER]
    other = create(groups)
    for _ in range(groups.conditions.smallest):
        chosen = row = heads[group, HEAD]
        while row >= 0:
            if gaps[row] < gaps[chosen]:
                chosen = row
            row = rows[row, AFTER]
        relocate(groups, chosen, other)


@njit(cache=True)
def _scatter(groups: MixedGroups, group: int) -> bool:
    """Give every member to the group that it joins at the least cost.

    Gives False, with the work half done, as soon as that costs more than the group does.
    """
    rows, heads, totals = groups.rows, groups.heads, groups.totals
    worth, cost = loss(groups, group), 0.0
    row = heads[group, HEAD]
    while row >= 0:
        after = rows[row, AFTER]
        groups.counts[TICK] += 1
        best, least = -1, np.inf
        for neighbour in groups.near[row]:
            other = rows[neighbour, LABEL]
            if other != group and heads[other, STAMP] != groups.counts[TICK]:
                heads[other, STAMP] = groups.counts[TICK]
                total = totals[other] + to_group(groups, row, other, -1)
                extra = total / (heads[other, SIZE] + 1) - loss(groups, other)
                if extra < least:
                    best, least = other, extra
        cost += least
        if best < 0 or not cost < worth:
            return False
        relocate(groups, row, best)
        row = after
    dissolve(groups, group)
    return True


@njit(cache=True)
def all_fit(groups: MixedGroups, start: int) -> bool:
    """Whether every group that was logged since then satisfies the conditions, or is no more."""
    groups.counts[TICK] += 1
    for place in range(2 * start, 2 * groups.counts[LOGGED]):
        group = logged_group(groups, place)
        if groups.heads[group, STAMP] != groups.counts[TICK]:
            groups.heads[group, STAMP] = groups.counts[TICK]
            if groups.heads[group, SIZE] > 0 and not fits(groups, group, -1, -1):
                return False
    return True


@njit(cache=True)
def _gained(groups: MixedGroups, start: int, change: float) -> bool:
    """Keep what was logged if it gains and all groups fit, else take it back."""
    if not groups.sums[CHANGE] < change - groups.sums[LEAST] or not all_fit(groups, start):
        take_back(groups, start, change)
        return False
    enqueue_logged(groups, start)
    return True


@njit(cache=True)
def descend(groups: MixedGroups, work: int, forget: bool) -> None:
    """Trade until no queued record finds a gain, or about ``work`` pairs were compared.

    Stops as well where the log is full; ``forget`` empties it after every trade.
    """
    counts, rows, heads = groups.counts, groups.rows, groups.heads
    counts[WORK] = 0
    while counts[WAITING] > 0 and counts[WORK] < work and counts[LOGGED] < len(rows):
        row = next_waiting(groups)
        start, change = counts[LOGGED], groups.sums[CHANGE]
        group = rows[row, LABEL]
        is_first = heads[group, HEAD] == row  # one member speaks for the group
        if is_first and heads[group, SIZE] >= 2 * groups.conditions.smallest:
            if loss(groups, group) > groups.sums[LEAST]:
                _split(groups, group)
                _gained(groups, start, change)
        if counts[LOGGED] == start:
            _trade(groups, row, group, is_first)
        if forget:
            counts[LOGGED] = 0


@njit(cache=True)
def _trade(groups: MixedGroups, row: int, group: int, may_scatter: bool) -> None:
    """Make the best trade of a record, or dissolve its group, if that gains."""
    start, change = groups.counts[LOGGED], groups.sums[CHANGE]
    to, fetched = _best_trade(groups, row)
    if to >= 0:
        relocate(groups, row, to)
    if fetched >= 0:
        relocate(groups, fetched, group)
    if to < 0 and fetched < 0 and may_scatter:
        if not _scatter(groups, group):
            take_back(groups, start, change)
    if groups.counts[LOGGED] > start:
        _gained(groups, start, change)
