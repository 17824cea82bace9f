"""The nodes of the lattice: in which order they are walked, and which classes each finishes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.kernels.arrays import Codes, Flags, Floats, Integers, Keys
from shoal.kernels.compile import njit
from shoal.kernels.conditions import Conditions, code_width
from shoal.kernels.lattice.conditions import judged
from shoal.kernels.lattice.roll_up import Base, Groups, merge, recoded
from shoal.kernels.peel.classes import SIZE, Units, attach, fit, put_at
from shoal.kernels.persons import counted_once

NODES = 64  # of a walk, given at once


def has_pairs(conditions: Conditions) -> bool:
    """Whether conditions need to know which values, or persons, are beside each tuple."""
    return len(conditions.values) > 0 or bool(counted_once(conditions.persons))


def units_of(base: Base, conditions: Conditions) -> Units:
    """Tuples, or pairs where conditions need them; below pairs, tuples that no record has."""
    none = np.zeros((len(base.counts), 0), np.int32)
    if not has_pairs(conditions):
        codes, weights = np.ascontiguousarray(base.tuples), base.counts.astype(np.int64)
        return Units(codes, weights, none, base.population.astype(np.int64))
    only_people = np.flatnonzero((base.counts == 0) & (base.population > 0))
    tuples = np.concatenate([base.pair_tuple, only_people])
    weights, people = np.zeros((2, len(tuples)), np.int64)
    weights[: len(base.pair_counts)] = base.pair_counts
    _, first = np.unique(tuples, return_index=True)
    people[first] = base.population[tuples[first]]  # each person once
    values = np.zeros((len(tuples), len(base.pair_codes)), np.int32)
    values[: len(base.pair_counts)] = base.pair_codes.T
    return Units(np.ascontiguousarray(base.tuples[tuples]), weights, values, people)


@njit(cache=True)
def peel(
    nodes: Integers,
    keys: Keys,
    units: Any,
    conditions: Any,
    code: Any,
    left: Integers,
    remaining: Integers,
    slots: Keys,
    state: Integers,
    labels: Codes,
    made_at: Integers,
    salt: np.uint64,
) -> tuple[Integers, int]:
    """Finish classes at some nodes; give who is left, and at how many nodes there were some.

    Who has people of a population stays, without ``remaining`` records: they are covered by the
    cells of every other class that they lie in. ``made_at`` gets the node of each class, if it
    has room.
    """
    used = 0
    for node in range(len(nodes)):
        changed = np.flatnonzero(nodes[node])
        starts = np.empty(len(changed), np.int64)
        for i in range(len(changed)):
            starts[i] = code.to_level[changed[i], nodes[node, changed[i]]]
        here = recoded(keys[left], code, changed, starts)
        weights = np.zeros((len(left), 2), np.int64)
        weights[:, 0], weights[:, 1] = remaining[left], units.people[left]
        state[1] += 1
        merged, sums, group = merge(here, weights, slots, state[1], salt)
        kept = _holding(merged, sums, group, units, left, remaining, conditions)
        number = np.full(len(kept), -1, np.int64)
        still, before = 0, state[0]
        for i in range(len(left)):
            unit, label = left[i], group[i]
            if kept[label] and remaining[unit] > 0:
                if number[label] < 0:
                    number[label] = state[0]
                    if len(made_at) > 0:
                        made_at[state[0]] = nodes[node]
                    state[0] += 1
                labels[unit] = number[label]
                remaining[unit] = 0
            if remaining[unit] > 0 or units.people[unit] > 0:
                left[still] = unit
                still += 1
        used += state[0] > before
        left = left[:still]
        if still == 0:
            break
    return left, used


@njit(cache=True)
def _holding(
    merged: Keys,
    sums: Integers,
    group: Codes,
    units: Any,
    left: Integers,
    remaining: Integers,
    conditions: Any,
) -> Flags:
    """Which groups of the units that are left hold every condition."""
    columns = units.values.shape[1]
    values = code_width(conditions)
    pair_group = np.empty(len(left) * columns, np.int32)
    pair_value = np.empty(len(left) * columns, np.int32)
    pair_counts = np.empty(len(left) * columns, np.int64)
    at = 0
    for i in range(len(left)):
        for column in range(columns):
            pair_group[at] = group[i]
            pair_value[at] = column * values + units.values[left[i], column]
            pair_counts[at] = remaining[left[i]]
            at += 1
    groups = Groups(merged, sums, pair_group, pair_value, pair_counts)
    return judged(groups, conditions, False)[0]


@njit(cache=True)
def fill(units: Any, classes: Any, ground: Any, labels: Codes, made_at: Integers) -> None:
    """Put each unit into its class, and give the classes their levels.

    Those are the lowest that cover the members, or those of the node where a class was made.
    """
    for unit in range(len(labels)):
        if labels[unit] >= 0:
            attach(units, classes, unit, np.int64(labels[unit]))
    for label in range(len(classes.costs)):
        if classes.heads[label, SIZE] == 0:
            continue
        if len(made_at) > 0:
            put_at(units, classes, ground, label, made_at[label])
        else:
            fit(units, classes, ground, label)


def in_order_of_cost(costs: Floats, heights: Integers, most: int) -> Iterator[Integers]:
    """The nodes of the lattice, cheapest first, some at a time; at most ``most`` of them.

    A heap: a node is followed by those one level up in its last raised attribute or a later one,
    each reached from one node only. It takes no more nodes once it had ``most``.
    """
    queue = [(float(costs[:, 0].sum()), (0,) * len(heights), 0)]
    room = most - 1
    some: list[tuple[int, ...]] = []
    while queue:
        cost, levels, first = heapq.heappop(queue)
        some.append(levels)
        if len(some) == NODES:
            yield np.array(some, np.int64)
            some = []
        for j in range(first, len(heights)):
            if levels[j] < heights[j] and room > 0:
                higher = (*levels[:j], levels[j] + 1, *levels[j + 1 :])
                added = float(costs[j, levels[j] + 1] - costs[j, levels[j]])
                heapq.heappush(queue, (cost + max(0.0, added), higher, j))
                room -= 1
    if some:
        yield np.array(some, np.int64).reshape(len(some), len(heights))


def cheapest_path(costs: Floats, heights: Integers) -> Integers:
    """Nodes from the bottom to the top, each one level up where that costs least."""
    levels = np.zeros(len(heights), np.int64)
    path = [levels.copy()]
    rows = np.arange(len(heights))
    while np.any(levels < heights):
        above = np.minimum(levels + 1, heights)
        added = np.where(levels < heights, costs[rows, above] - costs[rows, levels], np.inf)
        levels[np.argmin(added)] += 1
        path.append(levels.copy())
    return np.array(path)
