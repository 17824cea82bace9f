"""Local search on records of any type: improves a partition, and never makes it worse.

The search is that of :mod:`.refine`, on the loss of groups of records of mixed type; it also
maintains the conditions that the groups satisfy.

A group of n records loses the sum of the dissimilarities of its pairs divided by n. With squared
Euclidean distance that is its sum of squares about the center, so this is the same local search
as :mod:`.refine`, for records that have no center. Each record knows the sum of
its dissimilarities to the others of its group, updated with every member that joins or leaves. A
trade is evaluated by few sums, and kept only if all groups involved satisfy the conditions and the
loss falls.

Lists, queue and log are those of :mod:`~shoal.kernels.refine.group_lists`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers, Labels, Rows, Words
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, holds, only_size
from shoal.kernels.groups.diverse_group import count_in, table_shape
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
    take_back_number,
)
from shoal.kernels.refine.refine import LocalSearch
from shoal.kernels.space.mixed_records import (
    ByRecord,
    MixedRecords,
    by_record,
    pair_gap,
    with_unshared_codes,
)

_WORK = 1_000_000  # pairs, compared in about 50 ms
_SMALLEST_GAIN = 1e-9  # of the mean loss of a record: far above the rounding of sums

_RESIDUE = 1e-14  # of the largest dissimilarity: residue of it after subtraction


class MixedGroups(NamedTuple):
    """A partition that can change; lists, sums and rooms are modified in place.

    The data for comparing pairs come first: with the lists before them, a search took 15 % longer.
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
    """The loss of a group."""
    return groups.totals[group] / max(groups.heads[group, SIZE], 1)


@njit(cache=True)
def to_group(groups: MixedGroups, row: int, group: int, but: int) -> float:
    """The sum of the dissimilarities of a record to the members of a group, except one."""
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
    """Remove a record from its group."""
    group = groups.rows[row, LABEL]
    before = loss(groups, group)
    detach(groups, row)
    groups.totals[group] -= groups.own[row]
    member = groups.heads[group, HEAD]
    alone = groups.heads[group, SIZE] < 2  # then set the sums to exactly 0, without rounding errors
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
    """Undo what was logged since there were ``to`` entries and the change had this value."""
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
    """Move k members to a new group: the one most dissimilar to the others, and its nearest."""
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
    """Move every member to the group that it can join at the least cost.

    Returns False, with the work half done, as soon as that costs more than the group does.
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
    """Whether every group logged since then satisfies the conditions, or no longer exists."""
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
    """Keep what was logged if it gains and all groups fit; otherwise undo it."""
    if not groups.sums[CHANGE] < change - groups.sums[LEAST] or not all_fit(groups, start):
        take_back(groups, start, change)
        return False
    enqueue_logged(groups, start)
    return True


@njit(cache=True)
def descend(groups: MixedGroups, work: int, forget: bool) -> None:
    """Trade until no queued record finds a gain, or about ``work`` pairs were compared.

    Stops also if the log is full; ``forget`` empties it after every trade.
    """
    counts, rows, heads = groups.counts, groups.rows, groups.heads
    counts[WORK] = 0
    while counts[WAITING] > 0 and counts[WORK] < work and counts[LOGGED] < len(rows):
        row = next_waiting(groups)
        start, change = counts[LOGGED], groups.sums[CHANGE]
        group = rows[row, LABEL]
        is_first = heads[group, HEAD] == row  # one member represents the group
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


class MixedRefinement(LocalSearch):
    """A partition into groups that satisfy conditions, which improves with every call.

    ``codes`` are the sensitive values that the conditions concern, by column and record.
    """

    _searched = 2_000

    def __init__(
        self,
        records: MixedRecords,
        labels: npt.NDArray[np.integer[Any]],
        k: int,
        conditions: Conditions | None = None,
        codes: npt.NDArray[np.integer[Any]] | None = None,
    ) -> None:
        conditions = only_size(k) if conditions is None else conditions
        conditions = conditions._replace(smallest=max(k, conditions.smallest))
        sensitive = np.empty((0, len(labels)), np.int32) if codes is None else codes
        groups = _groups(records, conditions, np.ascontiguousarray(sensitive, np.int32))
        super().__init__(groups, with_unshared_codes(records), labels)
        self._settled = 0

    def advance(self) -> int:
        """About 50 ms of work; returns the progress of the descent in records: all at its end.

        The search for neighbors comes first and is half of the way.
        """
        groups, count = self._groups, len(self._groups.rows)
        if self._tree is not None:
            return self._list_neighbours(self._tree) // 4
        if self._settled < count:
            self._settled = _settle(groups, self._settled, _WORK)
            return (count + self._settled) // 4
        descend(groups, _WORK, True)
        return (2 * count - int(groups.counts[WAITING])) // 2

    def perturb(self, words: Words) -> int:
        """One attempt for every eight random words; returns how many of them gained something.

        Use it after the descent.
        """
        return int(_perturb(self._groups, words))

    def total_loss(self) -> float:
        """The sum over groups of the dissimilarities of their pairs divided by their size."""
        sizes = np.maximum(self._groups.heads[:, SIZE], 1)
        return float((self._groups.totals / sizes).sum())


def _groups(records: MixedRecords, conditions: Conditions, sensitive: Labels) -> MixedGroups:
    """Arrays for n records in at most n // k groups; no record is in a group yet."""
    count, k = records.values.shape[1], conditions.smallest
    return MixedGroups(
        **empty_lists(count, k)._asdict(),
        records=by_record(records),
        conditions=conditions,
        sensitive=sensitive,
        near=np.empty((count, neighbours_of_each(count, k)), np.int64),
        own=np.zeros(count),
        totals=np.zeros(count // k),
        tally=np.zeros(table_shape(conditions), np.int64),
        gaps=np.empty(count),
    )


@njit(cache=True)
def _settle(groups: MixedGroups, first: int, work: int) -> int:
    """Add up the dissimilarities of records to their groups, from one on; returns where it ends."""
    row = first
    while row < len(groups.own) and work > 0:
        group = groups.rows[row, LABEL]
        groups.own[row] = to_group(groups, row, group, row)
        groups.totals[group] += groups.own[row] / 2
        work -= groups.heads[group, SIZE]
        row += 1
    if row == len(groups.own):
        total = 0.0
        for group in range(len(groups.heads)):
            total += groups.totals[group] / max(groups.heads[group, SIZE], 1)
        largest = groups.records.measure.largest * len(groups.records.measure.presence)
        groups.sums[LEAST] = max(_SMALLEST_GAIN * total / row, _RESIDUE * largest)
    return row


@njit(cache=True)
def _perturb(groups: MixedGroups, words: Words) -> int:
    """Kick and descend, once for every eight words; undo what gains nothing."""
    kept = 0
    for first in range(0, len(words) - WORDS_PER_KICK + 1, WORDS_PER_KICK):
        groups.counts[LOGGED] = 0
        groups.sums[CHANGE] = 0.0
        _kick(groups, words[first : first + WORDS_PER_KICK])
        if all_fit(groups, 0):
            descend(groups, 2**62, False)
        if groups.sums[CHANGE] < -groups.sums[LEAST] and all_fit(groups, 0):
            kept += 1
        else:
            take_back(groups, np.int64(0), 0.0)
        let_none_wait(groups)  # some still wait if nothing fitted or the log was full
    return kept


@njit(cache=True)
def _kick(groups: MixedGroups, words: Words) -> None:
    """Pool the groups around a record and form them again around random members."""
    formed = pool_around(groups, groups.near, groups.conditions.smallest, words)
    left = formed[:, 1].sum()
    for place in range(left):
        part(groups, groups.rows[place, POOL])
    for group, size, seed in formed:
        _form(groups, group, size, left, seed)
        left -= size


@njit(cache=True)
def _form(groups: MixedGroups, group: int, size: int, left: int, seed: int) -> None:
    """Fill a group from the ``left`` records in the pool: the seed, and the nearest to it."""
    rows, gaps = groups.rows, groups.gaps
    first = rows[seed, POOL]
    for place in range(left):
        row = rows[place, POOL]
        gaps[row] = pair_gap(groups.records, first, row) if row != first else -1.0
    for _ in range(size):
        chosen = 0
        for place in range(1, left):
            if gaps[rows[place, POOL]] < gaps[rows[chosen, POOL]]:
                chosen = place
        row = rows[chosen, POOL]
        left -= 1
        rows[chosen, POOL] = rows[left, POOL]
        join(groups, row, group)
    enqueue(groups, group)
