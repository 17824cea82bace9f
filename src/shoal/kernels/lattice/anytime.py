"""The search of lattices too large to be settled: good nodes soon, and a bound on how good.

First each attribute in turn comes down from the top of the lattice as far as that helps. Then a
beam climbs from below, raising one attribute at a time, and each climb ends with the same descent
from the best node. What time is left goes into raising the bound: nodes are taken from the lowest
floor on, and the lowest floor not taken yet bounds every node. If that meets the best node, it is
proven optimal after all.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.kernels.lattice.nodes import Lattice, Visit
from shoal.kernels.lattice.projections import Projections
from shoal.kernels.lattice.roll_up import Groups, roll_up
from shoal.kernels.lattice.searches import descend

_BEAMS = (1, 4)
_MOST_OPEN = 200_000  # nodes that wait; more would fill the memory


class Anytime:
    """Run :meth:`steps` as long as there is time; ``bound`` and ``optimal`` hold at any moment."""

    def __init__(self, lattice: Lattice, projections: Projections) -> None:
        self._lattice, self._projections = lattice, projections
        self.bound = projections.least() if lattice.loss.by_level else -math.inf
        self.optimal = False

    def steps(self) -> Iterator[None]:
        """Each step looks at one node."""
        lattice = self._lattice
        top = lattice.visit(lattice.at(lattice.heights), lattice.heights)
        lowest = lattice.visit(lattice.at(self._projections.lowest), self._projections.lowest)
        if lattice.monotone and top.suppressed > lattice.limit:
            self.bound, self.optimal = math.inf, True
            return
        self.bound = max(self.bound, lowest.floor)
        yield from descend(lattice, lattice.heights, self._projections.lowest)
        for width in _BEAMS:
            yield from self._climb(width, lowest, top)
            if lattice.best is not None:
                start = np.array(lattice.best.levels, np.int64)
                yield from descend(lattice, start, self._projections.lowest)
        yield from self._raise_bound()

    def _climb(self, width: int, lowest: Visit, top: Visit) -> Iterator[None]:
        """Raise one attribute at a time, keeping the most promising nodes."""
        lattice = self._lattice
        span = max(top.floor - lowest.floor, 1e-300)
        records = max(1, lattice.loss.records)
        start = self._projections.lowest
        beam: list[tuple[Integers, Groups]] = [(start, lattice.at(start))]
        while beam:
            found: list[tuple[float, tuple[int, ...], Groups]] = []
            seen = set()
            for levels, table in beam:
                for j in np.flatnonzero(levels < lattice.heights):
                    higher = levels.copy()
                    higher[j] += 1
                    if tuple(higher.tolist()) in seen:
                        continue
                    seen.add(tuple(higher.tolist()))
                    raised = roll_up(table, lattice.code, int(j), int(levels[j]), lattice.slots)
                    lattice.rows += len(table.weights)
                    visit = lattice.visit(raised, higher)
                    yield
                    if not lattice.settled(visit.floor, higher):
                        excess = max(0, visit.suppressed - lattice.limit) / records
                        score = (visit.floor - lowest.floor) / span + excess
                        found.append((score, visit.levels, raised))
                        found.sort(key=lambda each: each[:2])
                        del found[width:]
            beam = [(np.array(levels, np.int64), table) for _, levels, table in found]

    def _raise_bound(self) -> Iterator[None]:
        """Best first: the floor of the first node in the queue bounds all that are open."""
        lattice, heights = self._lattice, self._lattice.heights
        start = self._projections.lowest
        queue = [(self.bound, tuple(start.tolist()), 0)]
        while queue and len(queue) < _MOST_OPEN:
            floor, node, position = queue[0]
            self.bound = max(self.bound, floor)
            levels = np.array(node, np.int64)
            if lattice.best is not None and floor > lattice.best.loss * (1 + 1e-9):
                break
            heapq.heappop(queue)
            if not lattice.settled(floor, levels):
                if not self._projections.rules_out(levels):
                    floor = max(floor, lattice.visit(lattice.at(levels), levels).floor)
                    yield
                for j in range(position, len(levels)):
                    if levels[j] < heights[j]:
                        levels[j] += 1
                        self._push(queue, floor, levels, j)
                        levels[j] -= 1
        if not queue or len(queue) < _MOST_OPEN:
            self.optimal = True
            self.bound = lattice.best.loss if lattice.best is not None else math.inf

    def _push(
        self,
        queue: list[tuple[float, tuple[int, ...], int]],
        floor: float,
        levels: Integers,
        position: int,
    ) -> None:
        """Let a node wait, unless neither it nor one above it can be the best."""
        lattice = self._lattice
        if lattice.loss.by_level:
            floor = max(floor, lattice.loss.floor(levels))
        highest = np.append(levels[:position], lattice.heights[position:])
        if not lattice.settled(floor, levels) and not self._projections.rules_out(highest):
            heapq.heappush(queue, (floor, tuple(levels.tolist()), position))
