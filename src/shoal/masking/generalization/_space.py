"""The space of levels of a full-domain recoding: the cost of each combination of levels."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError, did_you_mean
from shoal.masking.generalization._combinations import Problem
from shoal.masking.generalization._hierarchies import fixed_levels
from shoal.masking.generalization._lattice import lattice_of

if TYPE_CHECKING:
    from shoal.kernels.arrays import Integers
    from shoal.kernels.lattice.nodes import Visit


@dataclass(frozen=True)
class LevelNode:
    """One combination of levels: whether it may be released, what it suppresses, its loss."""

    levels: Mapping[str, int]
    allowed: bool
    suppressed: int
    loss: float


class LevelSpace:
    """The combinations of levels of some columns, evaluated on the distinct values and counts.

    ``heights`` has the most general level of each column. Several threads may use it at once.
    """

    def __init__(self, task: Problem, *, limit: float, loss: str) -> None:
        from shoal.kernels.lattice.nodes import Lattice

        self._coded = task.coded
        self.names = tuple(task.names)
        self.heights = {name: task.coded[name].levels - 1 for name in self.names}
        self.records = task.found.records
        self._lattice = Lattice(**lattice_of(task, limit=limit, loss=loss))
        self._lock = threading.Lock()  # a lattice has a single workspace

    @property
    def size(self) -> float:
        """The number of combinations, as a float because it may be astronomical."""
        return self._lattice.size()

    def values_at(self, name: str, level: int) -> int:
        """The number of distinct values of a column at a level."""
        return self._coded[name].nodes(level)

    def at(self, levels: Mapping[str, int]) -> LevelNode:
        """One combination."""
        at = self._levels(levels)
        with self._lock:
            return self._node(self._lattice.measured(self._lattice.at(at), at))

    def along(self, name: str, others: Mapping[str, int]) -> list[LevelNode]:
        """All levels of one column, with the others fixed."""
        return next(self._rows(None, self._known(name), others))

    def grid(self, down: str, across: str, others: Mapping[str, int]) -> list[list[LevelNode]]:
        """All levels of two columns: a row for each level of the first one."""
        return list(self.rows(down, across, others))

    def rows(self, down: str, across: str, others: Mapping[str, int]) -> Iterator[list[LevelNode]]:
        """The rows of the grid one by one, starting with the finest level."""
        return self._rows(self._known(down), self._known(across), others)

    def _rows(
        self, down: str | None, across: str, others: Mapping[str, int]
    ) -> Iterator[list[LevelNode]]:
        from shoal.kernels.lattice.roll_up import Line

        lattice, column = self._lattice, self.names.index(across)
        exact = lattice.conditions.persons.histories > 1
        height = self.heights[across]
        line = Line(lattice.code, column, height, lattice.slots, exact=exact)
        groups, below = lattice.bottom, np.zeros(len(self.names), np.int64)
        for level in range(1 if down is None else self.heights[down] + 1):
            raised = {} if down is None else {down: level}
            levels = self._levels({**others, **raised, across: 0})
            nodes = []
            with self._lock:
                groups = table = line.start(groups, below, levels)
                below = levels.copy()
                for place in range(height + 1):
                    if place:
                        table = line.roll_up(table, place - 1)
                    levels[column] = place
                    nodes.append(self._node(lattice.measured(table, levels)))
            yield nodes

    def _known(self, name: str) -> str:
        if name not in self.heights:
            raise InputError(
                f"'{name}' is not a column to generalize. {did_you_mean(name, self.names)}"
            )
        return name

    def _levels(self, levels: Mapping[str, int]) -> Integers:
        return np.array(fixed_levels(levels, self._coded, self.names), np.int64)

    def _node(self, visit: Visit) -> LevelNode:
        levels = dict(zip(self.names, visit.levels, strict=True))
        return LevelNode(levels, visit.feasible, visit.suppressed, visit.loss)
