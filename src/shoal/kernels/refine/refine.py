"""Local search: improves any partition into groups of at least k, and never makes it worse.

First a descent: records move and swap, groups split and dissolve, as long as that lowers the
within-group sum of squares. Then an iterated local search: the groups around a random record are
pooled and formed again around random members, the descent settles their neighborhood, and the
result is kept if it is better than before. Both can be stopped at any time.

After every change, the centers of the groups involved, the distances to them and the sums of
squares are recomputed from the members: nothing drifts, and a trade is kept only if the new
sums are lower than the old ones. Lists, queue and log are those of
:mod:`~shoal.kernels.refine.group_lists`.

A record looks for trades in the groups of its nearest neighbors: to move there, to fetch a
member from there, or to swap with one. Let c be a group's center and n its size. A member x that
leaves lowers the sum of squares by |x - c|^2 n / (n - 1), one that joins raises it by
|x - c|^2 n / (n + 1), and y in place of x changes it by |y - c|^2 - |x - c|^2 - |x - y|^2 / n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers, Rows, Words
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH
from shoal.kernels.refine.group_lists import (
    AFTER,
    CHANGE,
    HEAD,
    LABEL,
    LEAST,
    LOGGED,
    POOL,
    SIZE,
    STAMP,
    TICK,
    WAITING,
    WORDS_PER_KICK,
    WORK,
    attach,
    by_first_record,
    create,
    detach,
    dissolve,
    empty_lists,
    enqueue,
    enqueue_logged,
    let_none_wait,
    logged_group,
    neighbours_of_each,
    next_waiting,
    note,
    pool_around,
    start,
    take_back_number,
)
from shoal.kernels.space.mixed_records import MixedRecords, squared_euclidean
from shoal.kernels.space.mixed_tree import Tree, grow, list_nearest, rows_by_leaf

_RELATIVE = 1e-12  # a smaller relative gain may be rounding


_WORK = 3_000_000  # distances, computed in about 50 ms
_SMALLEST_GAIN = 1e-12  # times the mean squared distance of a record from its group's center


class Groups(NamedTuple):
    """A partition that can change; all arrays are modified in place."""

    points: Floats
    near: Rows  # record, neighbour
    rows: Integers
    own: Floats  # the squared distance of each record to its group's center
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
    """Recompute the center, the distances to it and the sum of squares."""
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
            # Remember the group from which the record is removed, to settle it below.
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
    """Move members to another, empty group: those above the center in the widest column."""
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
    """Move every member to the group that it can join at the least cost.

    Returns False, with the work half done, as soon as that costs more than the group does.
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
    """Settle all groups in the log; undo the changes if these did not lower the groups' sum."""
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

    Stops also if the log is full; ``forget`` empties it after every trade.
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


class LocalSearch:
    """A partition that improves with every call, for any loss of groups."""

    _searched: int  # records whose neighbors are found in about 50 ms

    def __init__(
        self, groups: Any, records: MixedRecords, labels: npt.NDArray[np.integer[Any]]
    ) -> None:
        self._groups, self._records = groups, records
        self._tree: Tree | None = grow(records, np.arange(len(labels)))
        self._leaf = 0
        start(groups, np.asarray(labels, np.int32), rows_by_leaf(self._tree))

    def _list_neighbours(self, tree: Tree) -> int:
        """About 50 ms of listing neighbors; returns the progress in records."""
        leaves = len(tree.values)
        end = min(leaves, self._leaf + 1 + self._searched // WIDTH)
        list_nearest(tree, self._records, self._leaf, end, self._groups.near)
        self._leaf = end
        if end == leaves:
            self._tree = None
        return len(self._groups.rows) * end // leaves

    @property
    def labels(self) -> Rows:
        """The group of each record, numbered by their first records."""
        return by_first_record(self._groups.rows[:, LABEL], len(self._groups.heads))


class Refinement(LocalSearch):
    """A partition of points into groups of at least k, which improves with every call.

    Distances are Euclidean on the given columns.
    """

    _searched = 3_000

    def __init__(self, points: Floats, labels: npt.NDArray[np.integer[Any]], k: int) -> None:
        self._k = k
        groups = _groups(points, k)
        super().__init__(groups, squared_euclidean(groups.points), labels)
        _settle_all(groups)

    def advance(self) -> int:
        """About 50 ms of work; returns the progress of the descent in records: all at its end.

        The search for neighbors comes first and is half of the way.
        """
        if self._tree is not None:
            return self._list_neighbours(self._tree) // 2
        descend(self._groups, self._k, _WORK, True)
        return (2 * len(self._groups.rows) - int(self._groups.counts[WAITING])) // 2

    def perturb(self, words: Words) -> int:
        """One attempt for every eight random words; returns how many of them gained something.

        Use it after the descent. An attempt takes about 30 µs for k = 3 and some milliseconds for
        k = 100.
        """
        return int(_perturb(self._groups, self._k, words))

    def sum_of_squares(self) -> float:
        """The within-group sum of squares, each group's computed from its members."""
        return float(self._groups.squares.sum())


def _groups(points: Floats, k: int) -> Groups:
    """Arrays for n records in at most n // k groups; no record is in a group yet."""
    count, columns = points.shape
    return Groups(
        **empty_lists(count, k)._asdict(),
        points=np.subtract(points, points.mean(axis=0), dtype=np.float64, order="C"),
        near=np.empty((count, neighbours_of_each(count, k)), np.int32),
        own=np.zeros(count),
        centres=np.zeros((count // k, columns)),
        squares=np.zeros(count // k),
    )


@njit(cache=True)
def _settle_all(groups: Groups) -> None:
    for group in range(len(groups.heads)):
        if groups.heads[group, SIZE] > 0:
            settle(groups, group)
    groups.sums[LEAST] = _SMALLEST_GAIN * groups.squares.sum() / len(groups.rows)


@njit(cache=True)
def _perturb(groups: Groups, k: int, words: Words) -> int:
    """Kick and descend, once for every eight words; undo what gains nothing."""
    kept = 0
    for first in range(0, len(words) - WORDS_PER_KICK + 1, WORDS_PER_KICK):
        groups.counts[LOGGED] = 0
        groups.sums[CHANGE] = 0.0
        _kick(groups, k, words[first : first + WORDS_PER_KICK])
        descend(groups, k, 2**62, False)
        if groups.sums[CHANGE] < -groups.sums[LEAST]:
            kept += 1
            continue
        take_back(groups, np.int64(0))
        let_none_wait(groups)  # some still wait only if the log was full
    return kept


@njit(cache=True)
def _kick(groups: Groups, k: int, words: Words) -> None:
    """Pool the groups around a record and form them again around random members."""
    formed = pool_around(groups, groups.near, k, words)
    left = formed[:, 1].sum()
    for place in range(left):
        detach(groups, groups.rows[place, POOL])
    for group, size, seed in formed:
        _form(groups, group, size, left, seed)
        left -= size


@njit(cache=True)
def _form(groups: Groups, group: int, size: int, left: int, seed: int) -> None:
    """Fill a group from the ``left`` records in the pool: the seed, then always the nearest."""
    points, rows, centre = groups.points, groups.rows, groups.centres[group]
    chosen = seed
    for members in range(1, size + 1):
        row = rows[chosen, POOL]
        left -= 1
        rows[chosen, POOL] = rows[left, POOL]
        attach(groups, row, group)
        for column in range(len(centre)):
            if members == 1:
                centre[column] = points[row, column]
            centre[column] += (points[row, column] - centre[column]) / members
        least = np.inf
        for place in range(left):
            away = distance(points[rows[place, POOL]], centre)
            if away < least:
                chosen, least = place, away
    settle(groups, group)
    enqueue(groups, group)
