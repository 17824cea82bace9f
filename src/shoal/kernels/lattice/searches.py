"""The exact searches of a lattice, and the descent to a good node before them.

Depth first, with roll-up, works for every loss. From above works for losses whose floor is known
from the levels: the floor of the loss grows on the way up, and the records that fail an upward
closed condition grow on the way down. So the nodes below one that suppresses many records suppress
at least as many, and most of them can neither be feasible nor cost less than the best node so far,
which a quick descent found. A node is visited after all that are above it, and only if none of them
rules it out. The group tables high up are also small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.lattice.conditions import judged
from shoal.kernels.lattice.nodes import Lattice
from shoal.kernels.lattice.roll_up import Groups, generalized, projected, roll_up

_PAIRED = 24  # attributes whose pairs are examined: those with most values
_PARTS = 3  # two attributes are in at most two parts: a table without the third has both


_WORTH_A_LOOK = 6  # so many nodes above cost more than testing if they are hopeless


class Projections:
    """Which levels of single attributes and of pairs are ruled out.

    LeFevre, DeWitt and Ramakrishnan (2005), the subset property: a class of a projection is a union
    of classes of the table. So records that fail an upward closed condition in a projection fail it
    in the table, and if nothing may be suppressed, any failure does. The tables of one or two
    attributes are tiny, and they rule out most of the lattice if the limit is 0. ``lowest`` has
    the lowest level of each attribute that is not ruled out by itself (its highest if all are).
    """

    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        count = len(lattice.heights)
        values = lattice.code.at_level[:, 1] - lattice.code.at_level[:, 0]
        paired = np.sort(np.argsort(-values, kind="stable")[:_PAIRED])
        self._shape = lattice.heights + 1
        self._part = np.argsort(lattice.by_entropy, kind="stable") % _PARTS
        self._without = [
            projected(
                lattice.bottom, lattice.code, np.flatnonzero(self._part != part), lattice.slots
            )
            for part in range(_PARTS)
        ]
        self.lowest = np.array([self._lowest(j) for j in range(count)], np.int64)
        self._pairs = np.array(list(combinations(paired.tolist(), 2)), np.int64).reshape(-1, 2)
        tables = [self._failing(first, second).ravel() for first, second in self._pairs.tolist()]
        self._starts = np.cumsum([0, *(len(table) for table in tables)])[:-1].astype(np.int64)
        self._failing_flat = np.concatenate([np.empty(0, np.bool_), *tables])
        self._without.clear()

    def rules_out(self, levels: Integers) -> bool:
        """Whether the node cannot be feasible."""
        if np.any(levels < self.lowest):
            return True
        first, second = self._pairs[:, 0], self._pairs[:, 1]
        at = self._starts + levels[first] * self._shape[second] + levels[second]
        return bool(self._failing_flat[at].any())

    def possible(self, nodes: Integers) -> Flags:
        """Which of many nodes, one per row, are not ruled out."""
        left: Flags = np.all(nodes >= self.lowest, axis=1)
        for (first, second), start in zip(self._pairs, self._starts):
            left &= ~self._failing_flat[
                start + nodes[:, first] * self._shape[second] + nodes[:, second]
            ]
        return left

    def least(self) -> float:
        """A lower bound on the loss of every feasible node, if levels alone give a floor."""
        loss, lowest = self._lattice.loss, self.lowest
        bound = loss.floor(lowest)
        for (first, second), start in zip(self._pairs, self._starts):
            grid = np.tile(lowest, (int(self._shape[first] * self._shape[second]), 1))
            pair = np.indices((self._shape[first], self._shape[second])).reshape(2, -1)
            grid[:, first], grid[:, second] = pair[0], pair[1]
            able = ~self._failing_flat[start : start + len(grid)] & (grid >= lowest).all(axis=1)
            bound = max(bound, float(loss.floors(grid[able]).min(initial=np.inf)))
        return bound

    def _lowest(self, attribute: int) -> int:
        """The first level that does not fail, or the last one."""
        table = self._projected(attribute)
        for level in range(self._lattice.heights[attribute]):
            if not self._fails(table):
                return level
            table = self._raised(table, attribute, level)
        return int(self._lattice.heights[attribute])

    def _failing(self, first: int, second: int) -> Flags:
        """Whether all levels of two attributes fail; above those that do not, none fail."""
        lattice, lowest = self._lattice, self.lowest
        failing = np.ones((self._shape[first], self._shape[second]), np.bool_)
        start = np.zeros_like(lowest)
        start[[first, second]] = lowest[[first, second]]
        table = self._projected(first, second)
        table = generalized(table, lattice.code, 0 * start, start, lattice.slots)
        for level in range(lowest[first], len(failing)):
            inner = table
            for other in range(lowest[second], failing.shape[1]):
                if not failing[level, other]:
                    break
                if not self._fails(inner):
                    failing[level:, other:] = False
                elif other < lattice.heights[second]:
                    inner = self._raised(inner, second, other)
            if level < lattice.heights[first] and failing[level, lowest[second]]:
                table = self._raised(table, first, level)
        return failing

    def _projected(self, *attributes: int) -> Groups:
        lattice, chosen = self._lattice, np.array(attributes)
        spare = min(set(range(_PARTS)) - set(self._part[chosen].tolist()))
        return projected(self._without[spare], lattice.code, chosen, lattice.slots)

    def _raised(self, table: Groups, attribute: int, level: int) -> Groups:
        return roll_up(table, self._lattice.code, attribute, level, self._lattice.slots)

    def _fails(self, table: Groups) -> bool:
        lattice = self._lattice
        _, suppressed, possible = judged(table, lattice.projectable, lattice.everyone)
        return bool(suppressed > lattice.limit or not possible)


def by_depth(lattice: Lattice, projections: Projections | None) -> Iterator[float]:
    """Visit every node that can be the best, each table rolled up from a parent's.

    Attributes with many values are raised in the outer loops, so that the inner ones work on
    small tables. A node is skipped, with all that the walk would reach from it, if its floor
    is no better than the best node or projections rule out the most general one of them. Yields
    the share of the lattice that is settled.
    """
    heights = lattice.heights
    order = lattice.by_values
    inner = np.append(np.cumprod((heights[order] + 1.0)[::-1])[::-1], 1.0)  # nodes by position
    lattice.visit(lattice.at(lattice.heights), lattice.heights)
    levels = np.zeros(len(order), np.int64)
    for _ in descend(lattice, lattice.heights, levels):
        yield 0.0
    lattice.visit(lattice.bottom, levels)
    settled = 1.0
    frames = [lattice.bottom] * len(order)  # the table at the current level of each position
    by_level = lattice.loss.by_level
    while frames:
        position = len(frames) - 1
        attribute = order[position]
        remaining = heights[attribute] - levels[attribute]
        levels[attribute] += 1
        if (
            remaining == 0
            or (by_level and lattice.settled(lattice.loss.floor(levels), levels))
            or (projections and projections.rules_out(_highest(levels, heights, order, position)))
        ):
            settled += remaining * inner[position + 1]
            levels[attribute] = 0
            frames.pop()
            continue
        table = frames[position]
        lattice.rows += len(table.weights)
        frames[position] = roll_up(
            table, lattice.code, int(attribute), int(levels[attribute]) - 1, lattice.slots
        )
        visit = lattice.visit(frames[position], levels)
        settled += 1
        if lattice.settled(visit.floor, levels):
            settled += remaining * inner[position + 1] - 1
            levels[attribute] = 0
            frames.pop()
        elif inner[position + 1] > _WORTH_A_LOOK and lattice.hopeless(
            frames[position], order[: position + 1]
        ):
            settled += inner[position + 1] - 1
        else:
            frames += [frames[position]] * (len(order) - position - 1)
        yield settled / inner[0]


def descend(lattice: Lattice, start: Integers, lowest: Integers) -> Iterator[None]:
    """Lower one attribute after the other, each as far as every step finds a better node.

    The attribute with most to gain comes first. Then any attribute may go up again if another
    comes down. This does not give the optimum, but quickly gives a good node.
    """
    levels, terms = start.copy(), lattice.loss.terms
    rows = np.arange(len(levels))
    tried = set()
    moved = True
    while moved:
        moved = False
        gains = terms[rows, levels] - terms[rows, np.maximum(0, levels - 1)]
        falling = np.argsort(-gains, kind="stable")
        for up in (-1, *falling[::-1]):
            for down in falling:
                step = (rows == up).astype(np.int64) - (rows == down)
                while True:
                    node = levels + step
                    key = tuple(node.tolist())
                    if key in tried or np.any((node < lowest) | (node > lattice.heights)):
                        break
                    tried.add(key)
                    if lattice.loss.by_level and lattice.settled(lattice.loss.floor(node), node):
                        break
                    before = lattice.best
                    lattice.visit(lattice.near(node), node)
                    yield
                    if lattice.best is before:
                        break
                    levels, moved = node, True


def _highest(levels: Integers, heights: Integers, order: Integers, position: int) -> Integers:
    """The most general node that the walk reaches from here."""
    top = levels.copy()
    top[order[position:]] = heights[order[position:]]
    return top


def from_above(lattice: Lattice, projections: Projections | None) -> Iterator[float]:
    """Visit the nodes that are neither too expensive by level nor ruled out by a node above.

    Projections are for a limit of 0; they then rule out most nodes at once. Yields the share of
    the lattice that is settled.
    """
    top = lattice.visit(lattice.at(lattice.heights), lattice.heights)
    if len(lattice.heights) == 0 or (lattice.monotone and top.suppressed > lattice.limit):
        return
    lowest = 0 * lattice.heights if projections is None else projections.lowest
    for _ in descend(lattice, lattice.heights, lowest):
        yield 0.0
    nodes = _affordable(lattice)
    if projections is not None:
        nodes = nodes[projections.possible(nodes)]
    best, most = lattice.best, _most_suppressed(lattice, nodes)
    left = np.arange(len(nodes))
    for visit in lattice.visits if lattice.monotone else ():
        above = np.array(visit.levels, np.int64)
        left = _not_ruled_out(left, nodes, most, above, visit.suppressed)
    while len(left):
        levels, left = nodes[left[0]], left[1:]
        if lattice.settled(lattice.loss.floor(levels), levels):
            continue
        table = lattice.near(levels)
        visit = lattice.visit(table, levels)
        if lattice.best is not best:
            best, most[left] = lattice.best, _most_suppressed(lattice, nodes[left])
        left = _not_ruled_out(left, nodes, most, levels, lattice.fewest_below(table, visit))
        yield 1.0 - len(left) / lattice.size()


def _affordable(lattice: Lattice) -> Integers:
    """The nodes whose floor is not above the best loss, each after all that are above it.

    They come in lexicographic order of their levels, from the top, so that neighbors share tables.
    """
    order = lattice.by_entropy
    floors = lattice.loss.all_floors(order)
    cost = math.inf if lattice.best is None else lattice.best.loss * (1 + 1e-9)
    chosen = np.flatnonzero(floors <= cost)[::-1]
    nodes = np.empty((len(chosen), len(order)), np.int64)
    for j in order[::-1]:
        chosen, nodes[:, j] = np.divmod(chosen, lattice.heights[j] + 1)
    return nodes


def _most_suppressed(lattice: Lattice, nodes: Integers) -> Floats:
    """How many records each node can suppress and still be the best."""
    cost = math.inf if lattice.best is None else lattice.best.loss
    return lattice.loss.most_suppressed(nodes, cost, lattice.limit)


@njit(cache=True)
def _not_ruled_out(
    left: Integers, nodes: Integers, most: Floats, above: Integers, suppressed: int
) -> Integers:
    """Those of ``left`` that are not below a node or can suppress as many records as it does."""
    kept, count = np.empty_like(left), 0
    for node in left:
        below = suppressed > most[node]
        for j in range(len(above)):
            below = below and nodes[node, j] <= above[j]
        if not below:
            kept[count] = node
            count += 1
    return kept[:count]
