"""Local recoding by peeling the lattice: nothing suppressed, every class at its own levels.

The nodes of the lattice are walked in order of their loss. At each of them, the classes among the
records still left that hold every condition are finished: they are released at the levels of that
node. So most records get fine levels and only the odd ones coarse ones. Who is left at the end
joins the class where that costs least, which is generalised to cover them.

Then the classes are refined: costly ones are dissolved into others, and members move to where
they cost less, as long as every class holds its conditions. No step makes the loss higher.

Classes are parted by their members, not by their cells: cells of two classes may cover each
other, and where all cells are equal the two are one class of the release. That class holds the
conditions as well, since all of them are closed under union.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.conditions import IN_POPULATION, PRESENCE, Conditions, only_kinds
from shoal.kernels.grouping import _SALT
from shoal.kernels.lattice.roll_up import Base, Slots, coding, packed_keys
from shoal.kernels.peel.classes import SIZE, Classes, no_classes, terrain
from shoal.kernels.peel.nodes import (
    NODES,
    cheapest_path,
    fill,
    has_pairs,
    in_order_of_cost,
    peel,
    units_of,
)
from shoal.kernels.peel.refine import dissolve_costly, join_nearest, move_members, unite

_PORTION = 0.05  # seconds
_RECORDS = 2_000_000  # grouped in one call, once for each node
_WALK = 2.0  # seconds that the walk may take whatever the limit; a small table needs fewer
_SOME = 64  # classes or units looked at in one call


class PeelLattice:
    """Classes of records, each generalised as little as it can be; nothing is suppressed.

    Parameters
    ----------
    base, maps, leaves, domains, conditions
        As for :class:`~shoal.kernels.lattice.lattice.FullDomainSearch`. A class has the people
        of the population whom its cells cover, in whatever other class they are, too. Shares of a
        population are refused: they would change with every other class.
    max_nodes : int
        The most nodes of the lattice that are walked, from the lowest loss on. For records that
        none of them puts into a class there is one path up to the top; who is left then joins
        the nearest.
    seconds : float
        The time for all; half of it (but 2 seconds in any case) for walking the lattice in the
        order of cost, and what is left for refining. With 0 the walk has no limit, and nothing
        is refined.

    Attributes
    ----------
    labels : array of int32
        The class of each unit: of each pair of ``base`` if there are pairs, else of each tuple.
        Equal records can be in different classes only where their sensitive values differ.
    levels : array of shape (classes, attributes)
        The level of each attribute in each class.
    loss : float
        The mean over all cells of (values under it - 1) / (values of the hierarchy - 1).
    feasible : bool
        False where not even one class of all records holds every condition, or where some
        records have no common level; ``labels`` are -1 then.

    Examples
    --------
    Three towns in two regions; the two of the first region are released as the region.

    >>> from shoal.kernels.conditions import only_size
    >>> none = np.empty(0, np.int32)
    >>> base = Base(
    ...     np.array([[0], [1], [2]], np.int32), np.array([1, 1, 2]), np.zeros(3, np.int64),
    ...     none, none.reshape(0, 0), none.astype(np.int64),
    ... )
    >>> maps = [np.array([[0, 1, 2], [0, 0, 1], [0, 0, 0]], np.int32)]
    >>> leaves = [np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 1.0], [3.0, 3.0, 3.0]])]
    >>> peeling = PeelLattice(base, maps, leaves, [3.0], only_size(2))
    >>> while peeling.advance() < 1:
    ...     pass
    >>> peeling.labels.tolist(), peeling.levels.tolist(), peeling.loss
    ([1, 1, 0], [[0], [1]], 0.25)
    """

    def __init__(
        self,
        base: Base,
        maps: Sequence[Codes],
        leaves: Sequence[Floats],
        domains: Sequence[float],
        conditions: Conditions,
        *,
        max_nodes: int = 50_000,
        seconds: float = 1.0,
    ) -> None:
        if np.isin(conditions.kinds, PRESENCE).any():
            raise ValueError("Local recoding has no shares of a population.")
        self._code = coding(maps, leaves)
        self._heights = np.array([len(steps) - 1 for steps in maps], np.int64)
        self._ground = terrain(self._code, self._heights, np.asarray(domains, np.float64))
        self._conditions = conditions
        counted = conditions.kinds == IN_POPULATION
        # Cells that cover enough people still do when they become coarser, and never become finer
        # where that matters; so only the peeling counts people.
        self._counted = bool(counted.any())
        self._later = only_kinds(conditions, ~counted)
        self._units = units_of(base, conditions)
        self._given = len(base.pair_counts) if has_pairs(conditions) else len(base.counts)
        self._max_nodes, self._seconds = max_nodes, seconds
        self._classes = no_classes(len(self._units.weights), 0, len(maps), self._later)
        self.nodes, self._spent = 0, 0.0
        self.feasible = True
        self.progress = 0.0
        self._steps = self._run()

    def advance(self) -> float:
        """Do about 50 ms of work; give how much is done, 1 at the end."""
        end = time.monotonic() + _PORTION
        for progress in self._steps:
            self.progress = max(self.progress, min(progress, 0.999))
            if time.monotonic() > end:
                return self.progress
        self.progress = 1.0
        return 1.0

    def _run(self) -> Iterator[float]:
        units = self._units
        labels = np.full(len(units.weights), -1, np.int32)
        room = len(labels) if self._counted else 0
        made_at = np.zeros((room, len(self._heights)), np.int64)
        for share in self._peel(labels, made_at):
            yield 0.5 * share
        self._classes = classes = self._formed(labels, made_at)
        left = np.flatnonzero((classes.of_unit < 0) & (units.weights > 0))
        until = time.monotonic() + max(_WALK, self._seconds)
        for first in range(0, len(left), _SOME):
            late = time.monotonic() > until  # the rest as one class, which takes in others
            some = left[first:] if late else left[first : first + _SOME]
            join_nearest(units, classes, self._ground, self._later, some, not late)
            if late:
                break
            yield 0.5
        self.feasible = bool(unite(units, classes, self._ground, self._later, self._counted))
        if self.feasible:
            spent = min(self._spent, self._seconds / 2) if self._spent > _WALK else 0.0
            yield from self._refine(time.monotonic() - spent)

    def _peel(self, labels: Codes, made_at: Integers) -> Iterator[float]:
        """Finish classes node by node; gives the share of records that are."""
        units, everyone = self._units, max(1, int(self._units.weights.sum()))
        left, remaining = np.flatnonzero(units.weights + units.people), units.weights.copy()
        slots, keys = Slots(len(left)).words, packed_keys(units.codes, self._code)
        state = np.zeros(2, np.int64)  # classes finished, and the turn of the slots
        for nodes in self._walk(left):
            left, used = peel(
                nodes,
                keys,
                units,
                self._conditions,
                self._code,
                left,
                remaining,
                slots,
                state,
                labels,
                made_at,
                _SALT,
            )
            self.nodes += int(used)
            if remaining.sum() < max(1, self._conditions.smallest):
                return
            yield 1.0 - remaining.sum() / everyone

    def _walk(self, left: Integers) -> Iterator[Integers]:
        """The nodes to peel, some at a time: all in order of cost or, where there are too many
        for that or the time is over, one path up to the top for the records that are left."""
        costs, start = self._node_costs(), math.inf
        portion = max(1, min(NODES, _RECORDS // max(1, len(left))))
        walked = 0
        for nodes in in_order_of_cost(costs, self._heights, self._max_nodes):
            for first in range(0, len(nodes), portion):
                yield nodes[first : first + portion]
                # the first portion may have been compiled, which is no search
                start = min(start, time.monotonic())
                self._spent = time.monotonic() - start
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
            self._spent = time.monotonic() - start

    def _formed(self, labels: Codes, made_at: Integers) -> Classes:
        """Classes of what was peeled, and room for one more."""
        most = int(labels.max(initial=-1)) + 2
        classes = no_classes(len(labels), most, len(self._heights), self._later)
        fill(self._units, classes, self._ground, labels, made_at)
        return classes

    def _node_costs(self) -> Floats:
        """What each attribute costs at each level, the mean over all records."""
        units, ground = self._units, self._ground
        costs = np.zeros((len(self._heights), int(self._heights.max(initial=0)) + 1))
        for j, height in enumerate(self._heights):
            for level in range(height + 1):
                cells = ground.flat[ground.to_level[j, level] + units.codes[:, j]]
                paid = ground.cell_costs[ground.at_level[j, level] + cells]
                costs[j, level] = paid @ units.weights / max(1, units.weights.sum())
        return costs

    def _refine(self, start: float) -> Iterator[float]:
        """Dissolve and move until nothing is gained, or the time is over."""
        gain = math.inf
        while gain > 0.0:
            gain = 0.0
            order = np.argsort(-self._classes.costs, kind="stable")
            for step in (dissolve_costly, move_members):
                for first in range(0, len(order), _SOME):
                    spent = time.monotonic() - start
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
        """The mean over all cells of what they cost, 0 to 1."""
        records, attributes = int(self._units.weights.sum()), len(self._heights)
        total = float(self._classes.costs @ self._classes.heads[:, SIZE])
        return total / max(1, records * attributes) if self.feasible else math.inf
