"""One group that satisfies conditions: similar records, some exchanged for more distant ones.

The k nearest records of a seed come first. While a condition is missed, a record from outside
joins, in exchange for a member or in addition: the one that lowers ``total_shortfall`` most per
distance from the seed. An exchange must lower it by more than adding the same record would,
because another group has to find company for the member that leaves. Exchanges are those of the
k-anonymity-first algorithm of Soria-Comas, Domingo-Ferrer, Sánchez and Martínez (2015,
"t-closeness through microaggregation: strict privacy with enhanced utility preservation"), which
takes the nearest record that helps and does not grow.

Records with the same sensitive values have one profile. Only the nearest record of a profile can
be the best to join, and only the furthest the best to leave.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Flags, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, total_shortfall

_LEAVERS = 16  # members that may be exchanged, of distinct profiles
_COMERS = 1024  # the most profiles that may join; and the fewest:
_FEWEST = 8
_CELLS = 1 << 19  # counts that a step may read before it tries fewer profiles
_WORTHWHILE = 0.02  # an exchange must remove this share of the shortfall, so that they end
_ROUNDING = 1e-12
_ROUGHLY = 1e-9  # rates that differ by less are equal: rounding must not decide

SIZE, TICK = 0, 1
"""What ``Group.state`` has: the number of members, and a number that marks profiles."""


class Sensitive(NamedTuple):
    """The sensitive data of the records."""

    codes: Codes  # by column and record
    profiles: Integers  # the number of each record's combination of codes


class Group(NamedTuple):
    """A group, and room to form it; only the first ``state[SIZE]`` members count."""

    members: Integers  # the seed first
    gaps: Floats  # distance of each member from the seed
    counts: Integers  # members by sensitive column and code
    taken: Integers  # members by profile
    inside: Flags  # by record
    marks: Integers  # the tick at which a profile was last met
    places: Integers  # where it was met
    comers: Integers  # the records that may join
    comer_gaps: Floats
    leavers: Integers  # the places of members that may leave
    state: Integers


def sensitive_of(codes: npt.NDArray[np.integer[Any]]) -> Sensitive:
    """The profiles of records, from their codes of one or more sensitive columns."""
    profiles = np.zeros(codes.shape[1], np.int64)
    for column in codes:
        keys = profiles * (int(column.max(initial=0)) + 1) + column
        profiles = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return Sensitive(np.ascontiguousarray(codes, np.int32), profiles)


def empty_group(sensitive: Sensitive, conditions: Conditions) -> Group:
    """Room for a group of up to all records."""
    rows, profiles = len(sensitive.profiles), int(sensitive.profiles.max(initial=0)) + 1
    return Group(
        members=np.empty(rows, np.int64),
        gaps=np.empty(rows),
        counts=np.zeros(table_shape(conditions), np.int64),
        taken=np.zeros(profiles, np.int64),
        inside=np.zeros(rows, np.bool_),
        marks=np.zeros(profiles, np.int64),
        places=np.empty(profiles, np.int64),
        comers=np.empty(_COMERS, np.int64),
        comer_gaps=np.empty(_COMERS),
        leavers=np.empty(_LEAVERS, np.int64),
        state=np.zeros(2, np.int64),
    )


def table_shape(conditions: Conditions) -> tuple[int, int]:
    """The number of sensitive columns, and of codes of the one that has most."""
    return len(conditions.values), int(conditions.values.max(initial=1))


@njit(cache=True)
def count_in(counts: Integers, codes: Any, row: int, sign: int) -> None:
    """Add a record to the counts of a group, or remove it."""
    for column in range(len(codes)):
        counts[column, codes[column, row]] += sign


@njit(cache=True)
def put_in(group: Group, sensitive: Sensitive, row: int, gap: float) -> None:
    size = group.state[SIZE]
    group.members[size], group.gaps[size] = row, gap
    group.inside[row] = True
    group.taken[sensitive.profiles[row]] += 1
    count_in(group.counts, sensitive.codes, row, 1)
    group.state[SIZE] = size + 1


@njit(cache=True)
def take_out(group: Group, sensitive: Sensitive, place: int) -> None:
    """Remove the member at a place; the last member moves there."""
    last, row = group.state[SIZE] - 1, group.members[place]
    group.members[place], group.gaps[place] = group.members[last], group.gaps[last]
    group.inside[row] = False
    group.taken[sensitive.profiles[row]] -= 1
    count_in(group.counts, sensitive.codes, row, -1)
    group.state[SIZE] = last


@njit(cache=True)
def nearest_comers(
    group: Group, sensitive: Sensitive, rows: Integers, gaps: Floats, is_sorted: bool
) -> int:
    """Set the comers: for each profile the nearest row outside the group, nearest first.

    ``gaps`` belongs to ``rows``, or to all records if there are no rows. An infinite gap belongs
    to a record that is in another group.
    """
    room = max(_FEWEST, min(_COMERS, _CELLS // max(1, group.counts.size * (1 + _LEAVERS))))
    group.state[TICK] += 1
    tick, found = group.state[TICK], 0
    for place in range(len(gaps)):
        row = rows[place] if len(rows) > 0 else place
        if group.inside[row] or gaps[place] == np.inf:
            continue
        profile = sensitive.profiles[row]
        if group.marks[profile] != tick:
            group.marks[profile], group.places[profile] = tick, place
            if is_sorted:
                group.comers[found], group.comer_gaps[found] = row, gaps[place]
                found += 1
                if found == room:
                    return found
        elif gaps[place] < gaps[group.places[profile]]:
            group.places[profile] = place
    if is_sorted:
        return found
    for profile in range(len(group.marks)):
        if group.marks[profile] == tick:
            place = group.places[profile]
            row = rows[place] if len(rows) > 0 else place
            found = _insert(group.comers, group.comer_gaps, found, room, row, gaps[place])
    return found


@njit(cache=True)
def _insert(rows: Integers, gaps: Floats, found: int, room: int, row: int, gap: float) -> int:
    """Insert a row into a list by distance and then row; a full list loses its last row."""
    at = found if found < room else room - 1
    if found == room and not (gap < gaps[at] or (gap == gaps[at] and row < rows[at])):
        return found
    while at > 0 and (gap < gaps[at - 1] or (gap == gaps[at - 1] and row < rows[at - 1])):
        rows[at], gaps[at] = rows[at - 1], gaps[at - 1]
        at -= 1
    rows[at], gaps[at] = row, gap
    return found + 1 if found < room else found


@njit(cache=True)
def _furthest_leavers(group: Group, sensitive: Sensitive) -> int:
    """Set the leavers: for each profile the furthest member except the seed, furthest first."""
    group.state[TICK] += 1
    tick, found = group.state[TICK], 0
    members, gaps, leavers = group.members, group.gaps, group.leavers
    for place in range(1, group.state[SIZE]):
        profile = sensitive.profiles[members[place]]
        if group.marks[profile] != tick:
            group.marks[profile], group.places[profile] = tick, place
        elif _further(gaps, members, place, group.places[profile]):
            group.places[profile] = place
    for place in range(1, group.state[SIZE]):
        if group.places[sensitive.profiles[members[place]]] != place:
            continue
        at = min(found, _LEAVERS - 1)
        if found == _LEAVERS and not _further(gaps, members, place, leavers[at]):
            continue
        while at > 0 and _further(gaps, members, place, leavers[at - 1]):
            leavers[at] = leavers[at - 1]
            at -= 1
        leavers[at] = place
        found = min(found + 1, _LEAVERS)
    return found


@njit(cache=True)
def _further(gaps: Floats, members: Integers, place: int, other: int) -> bool:
    return gaps[place] > gaps[other] or (
        gaps[place] == gaps[other] and members[place] > members[other]
    )


@njit(cache=True)
def improve(
    conditions: Conditions, sensitive: Sensitive, group: Group, comers: int, must_grow: bool
) -> bool:
    """Exchange or add a member if that lowers the shortfall; return whether it did.

    If nothing lowers it and the group must grow, the record that leaves it lowest joins.
    """
    size, counts, codes = group.state[SIZE], group.counts, sensitive.codes
    before = total_shortfall(conditions, size, size, counts)
    leavers = _furthest_leavers(group, sensitive)
    drop, cost, coming, going = 0.0, 1.0, -1, -1
    least, kindest = np.inf, -1
    for comer in range(comers):
        row, gap = group.comers[comer], group.comer_gaps[comer]
        count_in(counts, codes, row, 1)
        after = total_shortfall(conditions, size + 1, size + 1, counts)
        if after < least - _ROUNDING:
            least, kindest = after, comer
        if before - after > _ROUNDING and _is_better(before - after, gap, drop, cost):
            drop, cost, coming, going = before - after, gap, comer, -1
        for place in group.leavers[:leavers]:
            member = group.members[place]
            if sensitive.profiles[member] == sensitive.profiles[row]:
                continue
            count_in(counts, codes, member, -1)
            gain = before - total_shortfall(conditions, size, size, counts)
            count_in(counts, codes, member, 1)
            if gain > _WORTHWHILE * before and _is_better(gain, gap, drop, cost):
                drop, cost, coming, going = gain, gap, comer, place
        count_in(counts, codes, row, -1)
    if coming < 0 and must_grow:
        coming = kindest
    if coming < 0:
        return False
    if going >= 0:
        take_out(group, sensitive, going)
    put_in(group, sensitive, group.comers[coming], group.comer_gaps[coming])
    return True


@njit(cache=True)
def _is_better(gain: float, cost: float, other_gain: float, other_cost: float) -> bool:
    """Whether a gain is larger per cost, or equal per cost and larger, by more than rounding."""
    one, two = gain * other_cost, other_gain * cost
    if abs(one - two) > _ROUGHLY * max(one, two):
        return one > two
    return gain > other_gain * (1.0 + _ROUGHLY)
