"""What one or two attributes alone already rule out.

LeFevre, DeWitt and Ramakrishnan (2005), the subset property: a class of a projection is a union of
classes of the table. So records that fail an upward closed condition in a projection fail it in
the table, and where nothing may be suppressed any failure does. The tables of one or two
attributes are tiny, and they rule out most of the lattice where the limit is 0.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from shoal.kernels._lattice_conditions import judged
from shoal.kernels._lattice_nodes import Lattice
from shoal.kernels._roll_up import Groups, Integers, Slots, projected, roll_up

_PAIRED = 24  # attributes whose pairs are looked at: those with most values


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
        singles = [self._failing(np.array([j])) for j in range(count)]
        self.lowest = np.array(
            [min(int(failing.sum()), len(failing) - 1) for failing in singles], np.int64
        )
        self._pairs = np.array(list(combinations(paired.tolist(), 2)), np.int64).reshape(-1, 2)
        tables = [self._failing(pair) for pair in self._pairs]
        self._starts = np.cumsum([0, *(len(table) for table in tables)])[:-1].astype(np.int64)
        self._failing_flat = np.concatenate([np.empty(0, np.bool_), *tables])

    def rules_out(self, levels: Integers) -> bool:
        """Whether the node cannot be feasible."""
        if np.any(levels < self.lowest):
            return True
        first, second = self._pairs[:, 0], self._pairs[:, 1]
        at = self._starts + levels[first] * self._shape[second] + levels[second]
        return bool(self._failing_flat[at].any())

    def possible(self, nodes: Integers) -> npt.NDArray[np.bool_]:
        """Which of many nodes, a row each, are not ruled out."""
        left: npt.NDArray[np.bool_] = np.all(nodes >= self.lowest, axis=1)
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

    def _failing(self, attributes: Integers) -> npt.NDArray[np.bool_]:
        """For all levels of one or two attributes, the last one fastest: whether they fail."""
        lattice = self._lattice
        table = projected(lattice.bottom, lattice.code, attributes, lattice.slots)
        slots = Slots(max(len(table.weights), len(table.pair_group)))
        failing = []
        for level in range(lattice.heights[attributes[0]] + 1):
            if level:
                table = roll_up(table, lattice.code, int(attributes[0]), level - 1, slots)
            if len(attributes) == 1:
                failing.append(self._fails(table))
                continue
            inner = table
            for second in range(lattice.heights[attributes[1]] + 1):
                if second:
                    inner = roll_up(inner, lattice.code, int(attributes[1]), second - 1, slots)
                failing.append(self._fails(inner))
        return np.array(failing)

    def _fails(self, table: Groups) -> bool:
        lattice = self._lattice
        _, suppressed, possible = judged(table, lattice.projectable, lattice.everyone)
        return bool(suppressed > lattice.limit or not possible)
