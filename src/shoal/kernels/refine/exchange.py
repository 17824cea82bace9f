"""Groups of points that trade members as long as that lowers their sum of squares.

After every change the centres of the groups concerned, the distances to them and the sums of
squares are computed anew from the members: nothing drifts, and a trade is kept only if the new
sums are lower than the old ones. Lists, queue and log are those of
:mod:`~shoal.kernels.refine.group_lists`.

A record looks for trades in the groups of its nearest neighbours: to move there, to fetch a
member from there, to swap with one. With c a group's centre and n its size, a member x that
leaves lowers the sum of squares by |x - c|^2 n / (n - 1), one that comes raises it by
|x - c|^2 n / (n + 1), and y in the place of x changes it by |y - c|^2 - |x - c|^2 - |x - y|^2 / n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows
from shoal.kernels.compile import njit
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

_RELATIVE = 1e-12  # a gain below this share of what it is measured on may be rounding


class Groups(NamedTuple):
    """A partition that can change; all arrays are written in place."""

    points: Floats
    near: Rows  # record, neighbour
    rows: Integers
    own: Floats  # the squared distance of each record to its group's centre
    heads: Integers
    centres: Floats
    squares: Floats  # the sum of squares of each group
    log: Integers
    counts: Integers
    sums: Floats


@njit(cache=True)
def relocate(groups: Groups, row: int, group: int) -> None:
    note(groups, row, groups.rows[row, LABEL])
    detach(groups, row)
    attach(groups, row, group)


@njit(cache=True)
def distance(one: Floats, two: Floats) -> float:
    total = 0.0
    for column in range(len(one)):
        gap = one[column] - two[column]
        total += gap * gap
    return total


@njit(cache=True)
def settle(groups: Groups, group: int) -> None:
    """Compute the centre, the distances to it and the sum of squares anew."""
    centre, points, rows = groups.centres[group], groups.points, groups.rows
    for column in range(len(centre)):
        total = 0.0
        row = groups.heads[group, HEAD]
        while row >= 0:
            total += points[row, column]
            row = rows[row, AFTER]
        centre[column] = total / max(groups.heads[group, SIZE], 1)
    total = 0.0
    row = groups.heads[group, HEAD]
    while row >= 0:
        groups.own[row] = distance(points[row], centre)
        total += groups.own[row]
        row = rows[row, AFTER]
    groups.sums[CHANGE] += total - groups.squares[group]
    groups.squares[group] = total


@njit(cache=True)
def take_back(groups: Groups, to: int) -> None:
    """Undo what was logged since there were ``to`` entries."""
    counts, rows, heads, log = groups.counts, groups.rows, groups.heads, groups.log
    for place in range(counts[LOGGED] - 1, to - 1, -1):
        row, group = log[place]
        if row >= 0:
            # Which group the record is taken from is written down, to be settled below.
            log[place, 1] = rows[row, LABEL]
            detach(groups, row)
            attach(groups, row, group)
        else:
            take_back_number(groups, row, group)
    counts[TICK] += 1
    for place in range(2 * to, 2 * counts[LOGGED]):
        group = logged_group(groups, place)
        if heads[group, STAMP] != counts[TICK]:
            heads[group, STAMP] = counts[TICK]
            settle(groups, group)
    counts[LOGGED] = to


@njit(cache=True)
def _best_trade(groups: Groups, row: int, k: int) -> tuple[int, int]:
    """The best trade of a record: the group to move to, or -1, and the member to fetch, or -1.

    Both: a swap. Neither: no trade promises a gain. Members beyond the first 2 k are not tried;
    only groups of equal records stay that large.
    """
    rows, heads, points, own = groups.rows, groups.heads, groups.points, groups.own
    here = rows[row, LABEL]
    size = heads[here, SIZE]
    point, centre = points[row], groups.centres[here]
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
        away = distance(point, groups.centres[there])
        if size > k:
            moved = own[row] * size / (size - 1.0) - away * other_size / (other_size + 1.0)
            if moved > gain:
                gain, to, fetched = moved, there, -1
        shares = 1.0 / size + 1.0 / other_size
        member, tried = heads[there, HEAD], 0
        while member >= 0 and tried < 2 * k:
            to_here = between = 0.0
            for column in range(len(point)):
                value = points[member, column]
                to_here += (value - centre[column]) * (value - centre[column])
                between += (value - point[column]) * (value - point[column])
            swapped = (own[row] - away) + (own[member] - to_here) + between * shares
            if swapped > gain:
                gain, to, fetched = swapped, there, member
            if other_size > k:
                got = own[member] * other_size / (other_size - 1.0) - to_here * size / (size + 1.0)
                if got > gain:
                    gain, to, fetched = got, -1, member
            member = rows[member, AFTER]
            tried += 1
        groups.counts[WORK] += tried + 1
    return to, fetched


@njit(cache=True)
def _gather(groups: Groups, group: int, other: int, k: int) -> None:
    """Move k members to another, empty group: the outermost, then always the nearest to them."""
    points, rows = groups.points, groups.rows
    centre = groups.centres[other]
    for size in range(1, k + 1):
        row = chosen = groups.heads[group, HEAD]
        least = np.inf
        while row >= 0:
            away = -groups.own[row] if size == 1 else distance(points[row], centre)
            if away < least:
                chosen, least = row, away
            row = rows[row, AFTER]
        relocate(groups, chosen, other)
        for column in range(len(centre)):
            if size == 1:
                centre[column] = points[chosen, column]
            centre[column] += (points[chosen, column] - centre[column]) / size


@njit(cache=True)
def _halve(groups: Groups, group: int, other: int) -> None:
    """Move members to another, empty group: those above the centre in the widest column."""
    points, rows, centre = groups.points, groups.rows, groups.centres[group]
    widest, most = 0, -1.0
    for column in range(len(centre)):
        total = 0.0
        row = groups.heads[group, HEAD]
        while row >= 0:
            total += (points[row, column] - centre[column]) ** 2
            row = rows[row, AFTER]
        if total > most:
            widest, most = column, total
    row = groups.heads[group, HEAD]
    while row >= 0:
        after = rows[row, AFTER]
        if points[row, widest] > centre[widest]:
            relocate(groups, row, other)
        row = after


@njit(cache=True)
def _scatter(groups: Groups, group: int) -> bool:
    """Give every member to the group that it joins at the least cost.

    Gives False, with the work half done, as soon as that costs more than the group does.
    """
    rows, heads = groups.rows, groups.heads
    total = 0.0
    row = heads[group, HEAD]
    while row >= 0:
        after = rows[row, AFTER]
        best, least = -1, np.inf
        for neighbour in groups.near[row]:
            other = rows[neighbour, LABEL]
            if other != group:
                size = heads[other, SIZE]
                cost = distance(groups.points[row], groups.centres[other]) * size / (size + 1.0)
                if cost < least:
                    best, least = other, cost
        groups.counts[WORK] += groups.near.shape[1]
        total += least
        if best < 0 or not total < groups.squares[group]:
            return False
        relocate(groups, row, best)
        row = after
    dissolve(groups, group)
    return True


@njit(cache=True)
def _gained(groups: Groups, start: int) -> bool:
    """Settle the groups of all that was logged; take it back if it did not lower their sum."""
    counts, heads = groups.counts, groups.heads
    counts[TICK] += 1
    before = after = 0.0
    for place in range(2 * start, 2 * counts[LOGGED]):
        group = logged_group(groups, place)
        if heads[group, STAMP] != counts[TICK]:
            heads[group, STAMP] = counts[TICK]
            before += groups.squares[group]
            settle(groups, group)
            after += groups.squares[group]
    if not after < before * (1.0 - _RELATIVE) - groups.sums[LEAST]:
        take_back(groups, start)
        return False
    enqueue_logged(groups, start)
    return True


@njit(cache=True)
def descend(groups: Groups, k: int, work: int, forget: bool) -> None:
    """Trade until no queued record finds a gain, or about ``work`` distances were computed.

    Stops as well where the log is full; ``forget`` empties it after every trade.
    """
    counts, rows, heads = groups.counts, groups.rows, groups.heads
    counts[WORK] = 0
    while counts[WAITING] > 0 and counts[WORK] < work and counts[LOGGED] < len(rows):
        row = next_waiting(groups)
        if forget:
            counts[LOGGED] = 0
        start = counts[LOGGED]
        group = rows[row, LABEL]
        if heads[group, SIZE] >= 2 * k and groups.squares[group] > groups.sums[LEAST]:
            other = create(groups)
            counts[WORK] += heads[group, SIZE] * k
            if heads[group, SIZE] >= 4 * k:
                _halve(groups, group, other)
            if heads[other, SIZE] < k or heads[group, SIZE] < k:
                take_back(groups, start)
                _gather(groups, group, create(groups), k)
        else:
            to, fetched = _best_trade(groups, row, k)
            if to >= 0:
                relocate(groups, row, to)
            if fetched >= 0:
                relocate(groups, fetched, group)
            if to < 0 and fetched < 0 and heads[group, HEAD] == row:
                if not _scatter(groups, group):
                    take_back(groups, start)
        if counts[LOGGED] > start:
            _gained(groups, start)
