"""Classes of a local recoding: their members, the cells they release, and the cost of these.

A unit is all records with the same values (and, if conditions need them, the same sensitive
values); it is in one class. A class releases one cell per attribute: the code at ``levels`` of
any member. The cost of a class is, for each of its records, the sum over the cells of (values
under the cell - 1) / (values of the hierarchy - 1), times the weight of the attribute.

Every move between classes is tried on the classes themselves and undone if it gains nothing, so
that they satisfy their conditions at any time and the loss never rises.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, counted_once, holds, meet, next_tick
from shoal.kernels.lattice.roll_up import Coding

SIZE, HEAD, MEMBERS = 0, 1, 2  # columns of ``Classes.heads``


_FEW = 64  # the most members of a class to dissolve; a larger one gains little
_LEAST_GAIN = 1e-9


class Units(NamedTuple):
    """What is put into classes; ``values[u, s]`` is a unit's value of sensitive column s."""

    codes: Codes  # of each attribute
    weights: Integers  # records
    values: Codes
    people: Integers  # of a population


class Classes(NamedTuple):
    """All classes; those without members are dissolved."""

    of_unit: Codes  # -1 if a unit has none yet
    after: Codes  # the next member of the same class
    before: Codes
    heads: Integers
    levels: Integers
    origins: Integers  # for each attribute, some value under the cell
    cells: Integers  # the code of that value at the level
    costs: Floats
    histograms: Integers  # of each class: sensitive column by value


class Terrain(NamedTuple):
    """The hierarchies as classes use them; see :class:`shoal.kernels.lattice.roll_up.Coding`."""

    flat: Codes
    to_level: Integers
    at_level: Integers
    cell_costs: Floats  # of each code at each level
    heights: Integers


def terrain(code: Coding, heights: Integers, domains: Floats, weights: Floats) -> Terrain:
    """The cost of each cell: from 0 for a single value to the weight for all of the hierarchy."""
    costs = np.zeros(len(code.leaves))
    for j, (domain, weight) in enumerate(zip(domains, weights)):
        start, end = code.at_level[j, 0], code.at_level[j, -1]
        if domain > 1:
            costs[start:end] = (code.leaves[start:end] - 1.0) / (domain - 1.0) * weight
    return Terrain(code.flat, code.to_level, code.at_level, costs, heights)


def no_classes(units: int, most: int, attributes: int, conditions: Conditions) -> Classes:
    """Room for classes, none of which has members yet."""
    adds_up = len(conditions.kinds) > 0 and not counted_once(conditions.persons)
    wide = conditions.shares.shape if adds_up else (0, 0)
    return Classes(
        np.full(units, -1, np.int32),
        np.full(units, -1, np.int32),
        np.full(units, -1, np.int32),
        np.tile(np.array([0, -1, 0]), (most, 1)),
        np.zeros((most, attributes), np.int64),
        np.zeros((most, attributes), np.int64),
        np.zeros((most, attributes), np.int64),
        np.zeros(most),
        np.zeros((most, *wide), np.int64),
    )


@njit(cache=True)
def attach(units: Any, classes: Any, unit: int, label: int) -> None:
    """Put a unit into a class, whose cells must cover it."""
    heads = classes.heads
    first = heads[label, HEAD]
    classes.of_unit[unit] = label
    classes.after[unit], classes.before[unit] = first, -1
    if first >= 0:
        classes.before[first] = unit
    heads[label, HEAD] = unit
    heads[label, MEMBERS] += 1
    _count(units, classes, unit, label, units.weights[unit])


@njit(cache=True)
def detach(units: Any, classes: Any, unit: int) -> None:
    """Remove a unit from its class, whose cells stay unchanged."""
    label = np.int64(classes.of_unit[unit])
    before, after = classes.before[unit], classes.after[unit]
    if before >= 0:
        classes.after[before] = after
    else:
        classes.heads[label, HEAD] = after
    if after >= 0:
        classes.before[after] = before
    classes.of_unit[unit] = -1
    classes.heads[label, MEMBERS] -= 1
    _count(units, classes, unit, label, -units.weights[unit])


@njit(cache=True)
def _count(units: Any, classes: Any, unit: int, label: int, weight: int) -> None:
    classes.heads[label, SIZE] += weight
    for column in range(classes.histograms.shape[1]):
        classes.histograms[label, column, units.values[unit, column]] += weight


@njit(cache=True)
def holds_with(units: Any, classes: Any, conditions: Any, label: int, unit: int, sign: int) -> bool:
    """Whether a class satisfies every condition with a unit added (1) or removed (-1)."""
    size = classes.heads[label, SIZE] + sign * units.weights[unit]
    if size < conditions.smallest:
        return False
    if counted_once(conditions.persons):
        return holds_by_persons(units, classes, conditions, label, unit, sign)
    if len(conditions.kinds) == 0:
        return True
    _count(units, classes, unit, label, sign * units.weights[unit])
    held = holds(conditions, size, 0, classes.histograms[label])
    _count(units, classes, unit, label, -sign * units.weights[unit])
    return held


@njit(cache=True)
def holds_by_persons(
    units: Any, classes: Any, conditions: Any, label: int, unit: int, sign: int
) -> bool:
    """The same if persons are counted: of the members, with one more (1) or less (-1) or unchanged
    (0)."""
    counts = np.zeros(conditions.shares.shape, np.int64)
    tick = next_tick(conditions.persons)
    size = 0
    if sign > 0:
        size += _meet_all(units, conditions, unit, tick, counts)
    member = classes.heads[label, HEAD]
    while member >= 0:
        if sign >= 0 or member != unit:
            size += _meet_all(units, conditions, member, tick, counts)
        member = classes.after[member]
    return holds(conditions, size, 0, counts)


@njit(cache=True)
def _meet_all(units: Any, conditions: Any, unit: int, tick: int, counts: Any) -> int:
    new = 0
    for place in range(units.values.shape[1]):
        new += meet(conditions.persons, place, units.values[unit, place], tick, counts)
    return new


@njit(cache=True)
def cost_with(units: Any, classes: Any, ground: Any, unit: int, label: int, most: float) -> float:
    """The cost of each record of a class that also covers a unit; infinite above ``most``."""
    cost = classes.costs[label]
    for j in range(len(ground.heights)):
        value, level = units.codes[unit, j], classes.levels[label, j]
        cell = classes.cells[label, j]
        if ground.flat[ground.to_level[j, level] + value] == cell:
            continue
        cost -= ground.cell_costs[ground.at_level[j, level] + cell]
        level = meeting(ground, j, level, classes.origins[label, j], value)
        if level < 0:
            return np.inf
        cost += ground.cell_costs[
            ground.at_level[j, level] + ground.flat[ground.to_level[j, level] + value]
        ]
        if cost > most:
            return np.inf
    return cost


@njit(cache=True)
def meeting(ground: Any, j: int, level: int, one: int, other: int) -> int:
    """The lowest level, from ``level`` on, with one code for both values; -1 if there is none."""
    while level <= ground.heights[j]:
        start = ground.to_level[j, level]
        if ground.flat[start + one] == ground.flat[start + other]:
            return level
        level += 1
    return -1


@njit(cache=True)
def widen(units: Any, classes: Any, ground: Any, unit: int, label: int) -> None:
    """Raise the levels of a class until its cells cover a unit; there must be such levels."""
    for j in range(len(ground.heights)):
        classes.levels[label, j] = meeting(
            ground, j, classes.levels[label, j], classes.origins[label, j], units.codes[unit, j]
        )
    _release(classes, ground, label)


@njit(cache=True)
def fit(units: Any, classes: Any, ground: Any, label: int) -> bool:
    """Give a class the lowest levels that cover its members; false if there are none."""
    unit = classes.heads[label, HEAD]
    for j in range(len(ground.heights)):
        classes.levels[label, j] = 0
        classes.origins[label, j] = units.codes[unit, j]
    unit = classes.after[unit]
    while unit >= 0:
        for j in range(len(ground.heights)):
            level = meeting(
                ground, j, classes.levels[label, j], classes.origins[label, j], units.codes[unit, j]
            )
            if level < 0:
                return False
            classes.levels[label, j] = level
        unit = classes.after[unit]
    _release(classes, ground, label)
    return True


@njit(cache=True)
def put_at(units: Any, classes: Any, ground: Any, label: int, levels: Any) -> None:
    """Set the levels of a class, which must cover its members."""
    unit = classes.heads[label, HEAD]
    for j in range(len(ground.heights)):
        classes.levels[label, j] = levels[j]
        classes.origins[label, j] = units.codes[unit, j]
    _release(classes, ground, label)


@njit(cache=True)
def _release(classes: Any, ground: Any, label: int) -> None:
    """The cells of a class and their cost, from its levels."""
    classes.costs[label] = 0.0
    for j in range(len(ground.heights)):
        level = classes.levels[label, j]
        cell = ground.flat[ground.to_level[j, level] + classes.origins[label, j]]
        classes.cells[label, j] = cell
        classes.costs[label] += ground.cell_costs[ground.at_level[j, level] + cell]


@njit(cache=True)
def nearest(
    units: Any, classes: Any, ground: Any, conditions: Any, unit: int, but: int, most: float
) -> tuple[int, float]:
    """The class that a unit can join at least cost, and that cost; -1 if none is below ``most``.

    The cost is the additional cost of all records of the class, plus that of the unit's records.
    The class must satisfy every condition with the unit.
    """
    best, least, weight = -1, most, units.weights[unit]
    for label in range(len(classes.costs)):
        size = classes.heads[label, SIZE]
        if size == 0 or label == but or classes.costs[label] * weight >= least:
            continue
        bound = (least + classes.costs[label] * size) / (size + weight)
        cost = cost_with(units, classes, ground, unit, label, bound)
        added = cost * (size + weight) - classes.costs[label] * size
        if added < least and (
            len(conditions.kinds) == 0 or holds_with(units, classes, conditions, label, unit, 1)
        ):
            best, least = label, added
    return best, least


@njit(cache=True)
def join_nearest(
    units: Any, classes: Any, ground: Any, conditions: Any, left: Integers, look: bool
) -> None:
    """Let each unit join the class where it costs least.

    Units that break the conditions of every class go into the last one, which is empty so far; all
    do if there is no time to ``look``.
    """
    together = len(classes.costs) - 1
    for unit in left:
        label = -1
        if look:
            label, _ = nearest(units, classes, ground, conditions, unit, together, np.inf)
        if label >= 0:
            widen(units, classes, ground, unit, label)
        attach(units, classes, unit, label if label >= 0 else together)


@njit(cache=True)
def unite(units: Any, classes: Any, ground: Any, conditions: Any, counted: bool) -> bool:
    """Let the last class absorb the nearest others until it is valid; return if that was possible.

    If people are ``counted``, it absorbs at least one, which covers enough of them, and stays
    as coarse as that.
    """
    together = len(classes.costs) - 1
    if classes.heads[together, SIZE] == 0:
        return True
    if not fit(units, classes, ground, together):
        return False
    lacking = counted
    while lacking or not _holds(units, classes, conditions, together):
        other = _cheapest_union(classes, ground, together)
        if other < 0:
            return False
        lacking = False
        levels = np.maximum(classes.levels[together], classes.levels[other])
        for j in range(len(levels)):
            origin = classes.origins[other, j]
            levels[j] = meeting(ground, j, levels[j], classes.origins[together, j], origin)
        unit = classes.heads[other, HEAD]
        while unit >= 0:
            after = classes.after[unit]
            detach(units, classes, unit)
            attach(units, classes, unit, together)
            unit = after
        if counted:
            put_at(units, classes, ground, together, levels)
        else:
            fit(units, classes, ground, together)
    return True


@njit(cache=True)
def _holds(units: Any, classes: Any, conditions: Any, label: int) -> bool:
    """Whether a class satisfies every condition as it is."""
    if counted_once(conditions.persons):
        return holds_by_persons(units, classes, conditions, label, -1, 0)
    return holds(conditions, classes.heads[label, SIZE], 0, classes.histograms[label])


@njit(cache=True)
def _cheapest_union(classes: Any, ground: Any, label: int) -> int:
    """The class that is cheapest to absorb; -1 if there is none."""
    best, least = -1, np.inf
    size = classes.heads[label, SIZE]
    for other in range(len(classes.costs)):
        if other == label or classes.heads[other, SIZE] == 0:
            continue
        cost = 0.0
        for j in range(len(ground.heights)):
            level = max(classes.levels[label, j], classes.levels[other, j])
            origin = classes.origins[label, j]
            level = meeting(ground, j, level, origin, classes.origins[other, j])
            if level < 0:
                cost = np.inf
                break
            cell = ground.flat[ground.to_level[j, level] + origin]
            cost += ground.cell_costs[ground.at_level[j, level] + cell]
        if cost == np.inf:
            continue
        own = classes.heads[other, SIZE]
        added = cost * (size + own) - classes.costs[label] * size - classes.costs[other] * own
        if added < least:
            best, least = other, added
    return best


@njit(cache=True)
def dissolve_costly(
    units: Any, classes: Any, ground: Any, conditions: Any, labels: Integers, tight: bool
) -> float:
    """Let all members of a class join others if that costs less; return the gain.

    No class becomes finer by it, so it is the same whether they may be ``tight`` or not.
    """
    gain = 0.0
    for label in labels:
        count = classes.heads[label, MEMBERS]
        if count == 0 or count > _FEW:
            continue
        members = _members(classes, label)
        targets = np.empty(count, np.int64)
        saved = np.empty((count, 3, len(ground.heights)), np.int64)
        costs = np.empty(count)
        before = classes.costs[label] * classes.heads[label, SIZE]
        spent, joined = 0.0, 0
        while joined < count:
            unit = members[joined]
            detach(units, classes, unit)
            most = before - spent - _LEAST_GAIN
            target, added = nearest(units, classes, ground, conditions, unit, label, most)
            if target < 0:
                attach(units, classes, unit, label)
                break
            targets[joined], costs[joined] = target, classes.costs[target]
            _save(classes, target, saved[joined])
            widen(units, classes, ground, unit, target)
            attach(units, classes, unit, target)
            spent += added
            joined += 1
        if joined == count:
            gain += before - spent
            continue
        for i in range(joined - 1, -1, -1):
            detach(units, classes, members[i])
            _restore(classes, targets[i], saved[i], costs[i])
            attach(units, classes, members[i], label)
    return gain


@njit(cache=True)
def move_members(
    units: Any, classes: Any, ground: Any, conditions: Any, labels: Integers, tight: bool
) -> float:
    """Move members that their class can spare, if that costs less; return the gain.

    A class that may be ``tight`` becomes as fine as its other members allow.
    """
    gain = 0.0
    saved = np.empty((3, len(ground.heights)), np.int64)
    for label in labels:
        if classes.heads[label, MEMBERS] < 2 or classes.heads[label, MEMBERS] > _FEW:
            continue
        for unit in _members(classes, label):
            if not holds_with(units, classes, conditions, label, unit, -1):
                continue
            cost = classes.costs[label]
            before = cost * classes.heads[label, SIZE]
            _save(classes, label, saved)
            detach(units, classes, unit)
            if tight:
                fit(units, classes, ground, label)
            freed = before - classes.costs[label] * classes.heads[label, SIZE]
            most = freed - _LEAST_GAIN
            target, added = nearest(units, classes, ground, conditions, unit, label, most)
            if target < 0:
                _restore(classes, label, saved, cost)
                attach(units, classes, unit, label)
                continue
            widen(units, classes, ground, unit, target)
            attach(units, classes, unit, target)
            gain += freed - added
    return gain


@njit(cache=True)
def _members(classes: Any, label: int) -> Integers:
    members = np.empty(classes.heads[label, MEMBERS], np.int64)
    unit = classes.heads[label, HEAD]
    for i in range(len(members)):
        members[i] = unit
        unit = classes.after[unit]
    return members


@njit(cache=True)
def _save(classes: Any, label: int, saved: Any) -> None:
    saved[0], saved[1], saved[2] = (
        classes.levels[label],
        classes.origins[label],
        classes.cells[label],
    )


@njit(cache=True)
def _restore(classes: Any, label: int, saved: Any, cost: float) -> None:
    classes.levels[label], classes.origins[label] = saved[0], saved[1]
    classes.cells[label], classes.costs[label] = saved[2], cost
