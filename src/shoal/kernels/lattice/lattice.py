"""Optimal full-domain generalization: the best level of every attribute, and its proof.

All values of an attribute are generalized to one level of its hierarchy. Classes that violate a
condition are suppressed with all their records; a node of the lattice is feasible if these are at
most a limit. Conditions that compare with the whole table use all its records.

The search works only on the distinct combinations of values, so its cost does not grow with the
records. A node's floor, the least it can cost, rules out all nodes above; what it suppresses rules
out all below. If the levels alone give the floor, nodes are eliminated from above. Otherwise each
group table is rolled up from a parent's. If nothing may be suppressed, pairs of attributes rule out
nearly all nodes beforehand.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.conditions import Conditions
from shoal.kernels.lattice.nodes import Lattice, NodeCheck, Visit, explored
from shoal.kernels.lattice.roll_up import Base, Groups, roll_up
from shoal.kernels.lattice.searches import Projections, by_depth, descend, from_above

_BEAMS = (1, 4)
_MOST_OPEN = 200_000  # waiting nodes; more would fill the memory


_PORTION = 0.05  # seconds


_Open = tuple[float, tuple[int, ...], int]  # a waiting node: its floor, levels and position


class Anytime:
    """The search of lattices too large for a proof: good nodes soon, and a bound on the best.

    First each attribute in turn comes down from the top as far as that helps. Then a beam climbs
    from below, raising one attribute at a time, and each climb ends with the same descent from the
    best node. The remaining time goes into raising the bound: nodes are taken in the order of their
    floor, and the lowest floor not yet taken bounds every node. If that meets the best node, it is
    proven optimal after all. ``bound`` and ``optimal`` are valid at any moment.
    """

    def __init__(self, lattice: Lattice, projections: Projections) -> None:
        self._lattice, self._projections = lattice, projections
        self.bound = projections.least() if lattice.loss.by_level else -math.inf
        self.optimal = False

    def steps(self) -> Iterator[None]:
        """Each step examines one node."""
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
        """Best first: the floor of the first node in the queue bounds all open nodes."""
        lattice, heights = self._lattice, self._lattice.heights
        start = self._projections.lowest
        queue: list[_Open] = [(self.bound, tuple(start.tolist()), 0)]
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

    def _push(self, queue: list[_Open], floor: float, levels: Integers, position: int) -> None:
        """Queue a node, unless neither it nor one above it can be the best."""
        lattice = self._lattice
        if lattice.loss.by_level:
            floor = max(floor, lattice.loss.floor(levels))
        highest = np.append(levels[:position], lattice.heights[position:])
        if not lattice.settled(floor, levels) and not self._projections.rules_out(highest):
            heapq.heappush(queue, (floor, tuple(levels.tolist()), position))


class FullDomainSearch:
    """The node of least loss among all that satisfy the conditions within the suppression limit.

    Among nodes of equal loss (to 12 digits) it is the one with the lowest sum of levels, and among
    these the first in lexicographic order.

    ``maps[j]`` and ``leaves[j]`` have a row per level, with the values themselves at level 0: the
    code of each value of attribute j, and how many of the ``domains[j]`` values of its hierarchy
    are under that code. ``weights`` are what each attribute counts in the loss, 1 on average and
    all 1 by default. At most ``limit`` records may be suppressed. ``node_check`` gets the sizes
    of the classes to release and, if persons are counted, the class and the person of each pair
    (else None); False rejects the node. It is called only for nodes that are otherwise feasible
    and better than the best so far. A lattice of more than ``max_nodes`` is searched for
    ``seconds`` seconds, and ``optimal`` says whether the node was proven to be the best.
    """

    def __init__(
        self,
        base: Base,
        maps: Sequence[Codes],
        leaves: Sequence[Floats],
        domains: Sequence[float],
        conditions: Conditions,
        *,
        limit: int,
        loss: str = "loss",
        weights: Floats | None = None,
        node_check: NodeCheck | None = None,
        max_nodes: int = 200_000,
        seconds: float = 10.0,
    ) -> None:
        self._lattice = Lattice(
            base, maps, leaves, domains, conditions, limit, loss, node_check, weights
        )
        self._seconds = seconds
        self._anytime: Anytime | None = None
        self._finished = False
        self.progress = 0.0
        self._steps = self._exactly() if self._lattice.size() <= max_nodes else self._in_time()

    def advance(self) -> float:
        """Do about 50 ms of work; return the share that is done, 1 at the end."""
        end = time.monotonic() + _PORTION
        for progress in self._steps:
            self.progress = max(self.progress, min(progress, 0.999))
            if time.monotonic() > end:
                return self.progress
        self._finished = True
        self.progress = 1.0
        return 1.0

    def _exactly(self) -> Iterator[float]:
        lattice = self._lattice
        projections = None if lattice.limit > 0 else Projections(lattice)
        yield 0.0
        told = lattice.limit < lattice.loss.records or lattice.loss.charges_suppression
        search = from_above if lattice.loss.by_level and told else by_depth
        yield from search(lattice, projections)

    def _in_time(self) -> Iterator[float]:
        start = time.monotonic()
        projections = Projections(self._lattice)
        self._anytime = Anytime(self._lattice, projections)
        for _ in self._anytime.steps():
            spent = time.monotonic() - start
            yield spent / max(self._seconds, 1e-9)
            if spent > self._seconds:
                return

    @property
    def levels(self) -> tuple[int, ...] | None:
        """The level of each attribute; None if no feasible node was found."""
        return None if self._lattice.best is None else self._lattice.best.levels

    @property
    def loss(self) -> float:
        """The cost of the node; infinite if there is none."""
        return math.inf if self._lattice.best is None else self._lattice.best.loss

    @property
    def suppressed(self) -> int:
        """The records that the node suppresses; 0 if there is none."""
        return 0 if self._lattice.best is None else self._lattice.best.suppressed

    @property
    def optimal(self) -> bool:
        """Whether no node is better, or, without a node, none is feasible."""
        if self._anytime is not None:
            return self._anytime.optimal
        return self._finished

    @property
    def bound(self) -> float:
        """A lower bound: no feasible node costs less."""
        if self.optimal:
            return self.loss
        return -math.inf if self._anytime is None else self._anytime.bound

    @property
    def closest(self) -> tuple[tuple[int, ...], int] | None:
        """The levels of the visited node that suppresses least, and its number of records."""
        visit = self._lattice.closest
        return None if visit is None else (visit.levels, visit.suppressed)

    @property
    def nodes(self) -> npt.NDArray[np.void]:
        """Visited nodes with their levels, feasibility, suppressed records and loss.

        The first 5,000, and the best one among them or after them.
        """
        lattice = self._lattice
        visits = lattice.visits
        if lattice.best is not None and lattice.best not in visits:
            visits = [*visits, lattice.best]
        return explored(visits, len(lattice.heights))

    @property
    def counters(self) -> dict[str, float]:
        """The size of the lattice, the visited nodes, and the rows read for them."""
        lattice = self._lattice
        return {"lattice": lattice.size(), "visited": lattice.visited, "rows": lattice.rows}
