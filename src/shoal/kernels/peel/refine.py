"""Moves between the classes of a local recoding: where the last records go, and what lowers cost.

Every move is tried on the classes themselves and taken back if it gains nothing, so that they
hold their conditions at any time and the loss never rises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.kernels.compile import njit
from shoal.kernels.conditions import holds
from shoal.kernels.peel.classes import (
    HEAD,
    MEMBERS,
    SIZE,
    attach,
    detach,
    fit,
    holds_by_persons,
    holds_with,
    meeting,
    nearest,
    put_at,
    widen,
)
from shoal.kernels.persons import counted_once

_FEW = 64  # members of a class that is taken apart; a larger one gains little from it
_LEAST_GAIN = 1e-9


@njit(cache=True)
def join_nearest(
    units: Any, classes: Any, ground: Any, conditions: Any, left: Integers, look: bool
) -> None:
    """Let each unit join the class where it costs least.

    Those that break the conditions of every class go into the last one, which is nobody's; all
    do where there is no time to ``look``.
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
    """Let the last class take in the nearest others until it holds; whether that was possible.

    Where people are ``counted``, it takes in one at least, which covers enough of them, and stays
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
    """Whether a class holds every condition as it is."""
    if counted_once(conditions.persons):
        return holds_by_persons(units, classes, conditions, label, -1, 0)
    return holds(conditions, classes.heads[label, SIZE], 0, classes.histograms[label])


@njit(cache=True)
def _cheapest_union(classes: Any, ground: Any, label: int) -> int:
    """The class that costs least to take in; -1 if there is none."""
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
    """Let all members of a class join others, if that costs less; give what it gained.

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
    """Move members that their class can spare, where that costs less; give what it gained.

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
