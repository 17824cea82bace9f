"""Local recoding by peeling the lattice: nothing is suppressed, and every class has its own levels.

The nodes of the lattice are walked in order of their loss. At each node, the classes among the
remaining records that satisfy every condition are finished: they are released at the levels of that
node. So most records get fine levels and only the unusual ones coarse levels. The last remaining
records join the class where that costs least, which is generalized to cover them.

Then the classes are refined: costly ones are dissolved into others, and members move to where
they cost less, as long as every class satisfies its conditions. No step makes the loss higher.

Classes are separated by their members, not by their cells: cells of two classes may cover each
other, and if all cells are equal, the two are one class of the release. That class satisfies the
conditions as well, since all of them are closed under union.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Flags, Floats, Integers, Keys
from shoal.kernels.compile import Compiling, njit
from shoal.kernels.conditions import (
    IN_POPULATION,
    PRESENCE,
    Conditions,
    code_width,
    counted_once,
    only_kinds,
)
from shoal.kernels.grouping import _SALT
from shoal.kernels.lattice.conditions import judged
from shoal.kernels.lattice.roll_up import (
    Base,
    Coding,
    Groups,
    Slots,
    coding,
    merge,
    packed_keys,
    recoded,
)
from shoal.kernels.peel.classes import (
    SIZE,
    Classes,
    Units,
    attach,
    dissolve_costly,
    fit,
    join_nearest,
    move_members,
    no_classes,
    put_at,
    terrain,
    unite,
)

NODES = 64  # of a walk, returned at once


_PORTION = 0.05  # seconds
_RECORDS = 2_000_000  # grouped in one call, once for each node
_WALK = 2.0  # seconds that the walk may take whatever the limit; small tables need less
_SOME = 64  # classes or units processed in one call


def has_pairs(conditions: Conditions) -> bool:
    """Whether conditions need the values, or persons, of each tuple."""
    return len(conditions.values) > 0 or bool(counted_once(conditions.persons))


def units_of(base: Base, conditions: Conditions) -> Units:
    """Tuples, or pairs if conditions need them; below pairs, tuples that no record has."""
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


class Peeling(NamedTuple):
    """What is peeled, by which conditions, and the classes finished so far."""

    units: Units
    keys: Keys  # of each unit
    code: Coding
    conditions: Conditions
    slots: Keys
    state: Integers  # classes finished, and the turn of the slots
    remaining: Integers  # records of each unit that are not yet in a class
    labels: Codes  # the class of each unit
    made_at: Integers  # the node of each class, if there is room


@njit(cache=True)
def peel(
    peeling: Peeling, nodes: Integers, left: Integers, salt: np.uint64
) -> tuple[Integers, int]:
    """Finish classes at some nodes; return the remaining units, and how many nodes had some.

    Units with people of a population stay, without ``remaining`` records: the cells of every other
    class in which they lie cover them.
    """
    units, code, remaining, made_at = (
        peeling.units,
        peeling.code,
        peeling.remaining,
        peeling.made_at,
    )
    state, used = peeling.state, 0
    for node in range(len(nodes)):
        changed = np.flatnonzero(nodes[node])
        starts = np.empty(len(changed), np.int64)
        for i in range(len(changed)):
            starts[i] = code.to_level[changed[i], nodes[node, changed[i]]]
        here = recoded(peeling.keys[left], code, changed, starts)
        weights = np.zeros((len(left), 2), np.int64)
        weights[:, 0], weights[:, 1] = remaining[left], units.people[left]
        state[1] += 1
        merged, sums, group = merge(here, weights, peeling.slots, state[1], salt)
        kept = _holding(peeling, left, merged, sums, group)
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
                peeling.labels[unit] = number[label]
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
def _holding(peeling: Peeling, left: Integers, merged: Keys, sums: Integers, group: Codes) -> Flags:
    """Which groups of the remaining units satisfy every condition."""
    of_units, columns = peeling.units.values, peeling.units.values.shape[1]
    values = code_width(peeling.conditions)
    pair_group = np.empty(len(left) * columns, np.int32)
    pair_value = np.empty(len(left) * columns, np.int32)
    pair_counts = np.empty(len(left) * columns, np.int64)
    at = 0
    for i in range(len(left)):
        for column in range(columns):
            pair_group[at] = group[i]
            pair_value[at] = column * values + of_units[left[i], column]
            pair_counts[at] = peeling.remaining[left[i]]
            at += 1
    groups = Groups(merged, sums, pair_group, pair_value, pair_counts)
    return judged(groups, peeling.conditions, False)[0]


@njit(cache=True)
def fill(units: Any, classes: Any, ground: Any, labels: Codes, made_at: Integers) -> None:
    """Put each unit into its class, and set the levels of the classes.

    These are the lowest that cover the members, or those of the node where a class was made.
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

    This uses a heap: a node is followed by those one level up in its last raised attribute or a
    later one, so each is reached from only one node. It takes no more nodes after ``most``.
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


class PeelLattice:
    """Classes of records, each generalized as little as possible; nothing is suppressed.

    The input is as for :class:`~shoal.kernels.lattice.lattice.FullDomainSearch`. A class has the
    people of the population whom its cells cover, even if they are also in another class. Shares of
    a population are refused: they would change with every other class.

    At most ``max_nodes`` of the lattice are walked, from the lowest loss on. Records that none of
    them puts into a class follow one path up to the top; those that remain join the nearest class.
    Half of the ``seconds`` (but at least 2 s) are for walking the lattice in the order of cost,
    and the rest for refining. With 0 the walk has no limit, and nothing is refined. ``weights`` are
    what each attribute counts in the loss, 1 on average and all 1 by default.

    ``feasible`` is false if not even one class of all records satisfies every condition, or if
    some records have no common level.
    """

    def __init__(
        self,
        base: Base,
        maps: Sequence[Codes],
        leaves: Sequence[Floats],
        domains: Sequence[float],
        conditions: Conditions,
        *,
        weights: Floats | None = None,
        max_nodes: int = 50_000,
        seconds: float = 1.0,
    ) -> None:
        if np.isin(conditions.kinds, PRESENCE).any():
            raise ValueError("Local recoding has no shares of a population.")
        self._code = coding(maps, leaves)
        self._heights = np.array([len(steps) - 1 for steps in maps], np.int64)
        weights = np.ones(len(maps)) if weights is None else weights
        self._ground = terrain(self._code, self._heights, np.asarray(domains, np.float64), weights)
        self._conditions = conditions
        counted = conditions.kinds == IN_POPULATION
        # Cells that cover enough people still do so when they become coarser, and never become
        # finer if that matters; so only the peeling counts people.
        self._counted = bool(counted.any())
        self._later = only_kinds(conditions, ~counted)
        self._units = units_of(base, conditions)
        self._given = len(base.pair_counts) if has_pairs(conditions) else len(base.counts)
        self._max_nodes, self._seconds = max_nodes, seconds
        self._classes = no_classes(len(self._units.weights), 0, len(maps), self._later)
        self.nodes, self._spent = 0, 0.0
        self._compiling = Compiling()
        self.feasible = True
        self.progress = 0.0
        self._steps = self._run()

    def _now(self) -> float:
        """A clock that stands still while a kernel is compiled, which is not search."""
        return time.monotonic() - self._compiling.seconds

    def advance(self) -> float:
        """Do about 50 ms of work; return the share that is done, 1 at the end."""
        end = time.monotonic() + _PORTION
        for progress in self._steps:
            self.progress = max(self.progress, min(progress, 0.999))
            if time.monotonic() > end:
                return self.progress
        self.progress = 1.0
        return 1.0

    def _run(self) -> Iterator[float]:
        with self._compiling:
            yield from self._search()

    def _search(self) -> Iterator[float]:
        units = self._units
        labels = np.full(len(units.weights), -1, np.int32)
        room = len(labels) if self._counted else 0
        made_at = np.zeros((room, len(self._heights)), np.int64)
        for share in self._peel(labels, made_at):
            yield 0.5 * share
        self._classes = classes = self._formed(labels, made_at)
        left = np.flatnonzero((classes.of_unit < 0) & (units.weights > 0))
        until = self._now() + max(_WALK, self._seconds)
        for first in range(0, len(left), _SOME):
            late = self._now() > until  # the rest as one class, which absorbs others
            some = left[first:] if late else left[first : first + _SOME]
            join_nearest(units, classes, self._ground, self._later, some, not late)
            if late:
                break
            yield 0.5
        self.feasible = bool(unite(units, classes, self._ground, self._later, self._counted))
        if self.feasible:
            spent = min(self._spent, self._seconds / 2) if self._spent > _WALK else 0.0
            yield from self._refine(self._now() - spent)

    def _peel(self, labels: Codes, made_at: Integers) -> Iterator[float]:
        """Finish classes node by node; yields the share of finished records."""
        units, everyone = self._units, max(1, int(self._units.weights.sum()))
        left, remaining = np.flatnonzero(units.weights + units.people), units.weights.copy()
        peeling = Peeling(
            units=units,
            keys=packed_keys(units.codes, self._code),
            code=self._code,
            conditions=self._conditions,
            slots=Slots(len(left)).words,
            state=np.zeros(2, np.int64),
            remaining=remaining,
            labels=labels,
            made_at=made_at,
        )
        for nodes in self._walk(left):
            left, used = peel(peeling, nodes, left, _SALT)
            self.nodes += int(used)
            if remaining.sum() < max(1, self._conditions.smallest):
                return
            yield 1.0 - remaining.sum() / everyone

    def _walk(self, left: Integers) -> Iterator[Integers]:
        """The nodes to peel, some at a time: all in order of cost or, if there are too many
        for that or the time is up, one path to the top for the remaining records."""
        costs, start = self._node_costs(), self._now()
        portion = max(1, min(NODES, _RECORDS // max(1, len(left))))
        walked = 0
        for nodes in in_order_of_cost(costs, self._heights, self._max_nodes):
            for first in range(0, len(nodes), portion):
                yield nodes[first : first + portion]
                self._spent = self._now() - start
                if self._seconds and self._spent > max(_WALK, self._seconds / 2):
                    break
            else:
                walked += len(nodes)
                continue
            break
        if walked < math.prod((self._heights + 1).tolist()):
            path = cheapest_path(costs, self._heights)
            for first in range(0, len(path), portion):
                yield path[first : first + portion]
            self._spent = self._now() - start

    def _formed(self, labels: Codes, made_at: Integers) -> Classes:
        """Classes of what was peeled, and room for one more."""
        most = int(labels.max(initial=-1)) + 2
        classes = no_classes(len(labels), most, len(self._heights), self._later)
        fill(self._units, classes, self._ground, labels, made_at)
        return classes

    def _node_costs(self) -> Floats:
        """The cost of each attribute at each level, as the mean over all records."""
        units, ground = self._units, self._ground
        costs = np.zeros((len(self._heights), int(self._heights.max(initial=0)) + 1))
        for j, height in enumerate(self._heights):
            for level in range(height + 1):
                cells = ground.flat[ground.to_level[j, level] + units.codes[:, j]]
                paid = ground.cell_costs[ground.at_level[j, level] + cells]
                costs[j, level] = paid @ units.weights / max(1, units.weights.sum())
        return costs

    def _refine(self, start: float) -> Iterator[float]:
        """Dissolve and move until nothing is gained, or the time is up."""
        gain = math.inf
        while gain > 0.0:
            gain = 0.0
            order = np.argsort(-self._classes.costs, kind="stable")
            for step in (dissolve_costly, move_members):
                for first in range(0, len(order), _SOME):
                    spent = self._now() - start
                    if spent >= self._seconds:
                        return
                    some = order[first : first + _SOME]
                    gain += step(
                        self._units,
                        self._classes,
                        self._ground,
                        self._later,
                        some,
                        not self._counted,
                    )
                    yield 0.5 + 0.5 * spent / self._seconds

    @property
    def labels(self) -> Codes:
        """The class of each unit, numbered from 0; -1 without records or without a solution."""
        of_unit = self._classes.of_unit[: self._given]
        if not self.feasible:
            return np.full(len(of_unit), -1, np.int32)
        number = np.cumsum(self._classes.heads[:, SIZE] > 0) - 1
        return np.where(of_unit < 0, -1, number[of_unit]).astype(np.int32)

    @property
    def levels(self) -> Integers:
        """The level of each attribute in each class."""
        return self._classes.levels[self._classes.heads[:, SIZE] > 0]

    @property
    def loss(self) -> float:
        """The mean cost of all cells, 0 to 1."""
        records, attributes = int(self._units.weights.sum()), len(self._heights)
        total = float(self._classes.costs @ self._classes.heads[:, SIZE])
        return total / max(1, records * attributes) if self.feasible else math.inf
