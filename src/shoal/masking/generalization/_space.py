"""The space of levels of a full-domain recoding: what each combination of levels would cost."""

from __future__ import annotations

import threading
from collections.abc import Mapping
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
    from shoal.kernels.lattice.roll_up import Groups


@dataclass(frozen=True)
class LevelNode:
    """One combination of levels: whether it may be released, what it suppresses and loses."""

    levels: Mapping[str, int]
    allowed: bool
    suppressed: int
    loss: float


class LevelSpace:
    """The combinations of levels of some columns, judged on the distinct values with their counts.

    ``heights`` has the most general level of each column. Threads may ask at the same time.
    """

    def __init__(self, task: Problem, *, limit: float, loss: str) -> None:
        from shoal.kernels.lattice.nodes import Lattice

        self._coded = task.coded
        self.names = tuple(task.names)
        self.heights = {name: task.coded[name].levels - 1 for name in self.names}
        self.records = task.found.records
        self._lattice = Lattice(**lattice_of(task, limit=limit, loss=loss))
        self._lock = threading.Lock()  # a lattice has one place to work in

    @property
    def size(self) -> float:
        """How many combinations there are, as a float: it may be astronomic."""
        return self._lattice.size()

    def values_at(self, name: str, level: int) -> int:
        """How many different values a column has at a level."""
        return self._coded[name].nodes(level)

    def at(self, levels: Mapping[str, int]) -> LevelNode:
        """One combination."""
        at = np.array(fixed_levels(levels, self._coded, self.names), np.int64)
        with self._lock:
            return self._node(self._lattice.measured(self._lattice.at(at), at))

    def along(self, name: str, others: Mapping[str, int]) -> list[LevelNode]:
        """All levels of one column, the others where they are."""
        start = self._start({**others, self._known(name): 0})
        with self._lock:
            return self._line(self._lattice.at(start), start, self.names.index(name))

    def grid(self, down: str, across: str, others: Mapping[str, int]) -> list[list[LevelNode]]:
        """All levels of two columns: a row for each level of the first one."""
        from shoal.kernels.lattice.roll_up import roll_up

        start = self._start({**others, self._known(down): 0, self._known(across): 0})
        row, column = self.names.index(down), self.names.index(across)
        lattice, rows = self._lattice, []
        with self._lock:
            groups = lattice.at(start)
            while True:
                rows.append(self._line(groups, start.copy(), column))
                level = int(start[row])
                if level == lattice.heights[row]:
                    return rows
                groups = roll_up(groups, lattice.code, row, level, lattice.slots)
                start[row] += 1

    def _known(self, name: str) -> str:
        if name not in self.heights:
            raise InputError(
                f"'{name}' is none of the columns to generalize. {did_you_mean(name, self.names)}"
            )
        return name

    def _start(self, levels: Mapping[str, int]) -> Integers:
        return np.array(fixed_levels(levels, self._coded, self.names), np.int64)

    def _line(self, groups: Groups, levels: Integers, attribute: int) -> list[LevelNode]:
        """The nodes above one by one attribute, each rolled up from the one before it."""
        from shoal.kernels.lattice.roll_up import roll_up

        lattice, line = self._lattice, []
        while True:
            line.append(self._node(lattice.measured(groups, levels)))
            level = int(levels[attribute])
            if level == lattice.heights[attribute]:
                return line
            groups = roll_up(groups, lattice.code, attribute, level, lattice.slots)
            levels[attribute] += 1

    def _node(self, visit: Visit) -> LevelNode:
        levels = dict(zip(self.names, visit.levels, strict=True))
        return LevelNode(levels, visit.feasible, visit.suppressed, visit.loss)
