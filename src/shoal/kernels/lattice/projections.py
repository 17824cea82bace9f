"""What one or two attributes alone already rule out.

LeFevre, DeWitt and Ramakrishnan (2005), the subset property: a class of a projection is a union of
classes of the table. So records that fail an upward closed condition in a projection fail it in
the table, and where nothing may be suppressed any failure does. The tables of one or two
attributes are tiny, and they rule out most of the lattice where the limit is 0.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from shoal.kernels.arrays import Flags, Integers
from shoal.kernels.lattice.conditions import judged
from shoal.kernels.lattice.nodes import Lattice
from shoal.kernels.lattice.roll_up import Groups, generalized, projected, roll_up

_PAIRED = 24  # attributes whose pairs are looked at: those with most values
_PARTS = 3  # two attributes are in at most two of them, so a table without the third has both


class Projections:
    """Which levels of single attributes and of pairs are ruled out.

    ``lowest`` has the lowest level of each attribute that is not ruled out by itself (its
    highest one where all are).
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
        """Which of many nodes, a row each, are not ruled out."""
        left: Flags = np.all(nodes >= self.lowest, axis=1)
        for (first, second), start in zip(self._pairs, self._starts):
            left &= ~self._failing_flat[
                start + nodes[:, first] * self._shape[second] + nodes[:, second]
            ]
        return left

    def least(self) -> float:
        """A lower bound on the loss of every feasible node, where levels alone give a floor."""
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
        """For all levels of two attributes whether they fail; where they do not, none above do."""
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
