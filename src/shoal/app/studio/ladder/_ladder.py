"""A ladder: the values of a column on the left, its levels to the right, people in each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.app.studio.ladder._edit import labels_of
from shoal.errors import InputError
from shoal.kernels.arrays import Integers
from shoal.table import Hierarchy, HierarchyCodes, Table
from shoal.table.hierarchy._alone import people_by_node

#: Nodes on a page.
SHOWN: Final = 50


@dataclass(frozen=True, repr=False)
class Node:
    """A node as a cell of the picture; it spans the lines of the nodes below it."""

    level: int
    number: int
    label: str | None
    people: int
    values: int
    lines: int
    continued: bool


@dataclass(frozen=True)
class Section:
    """A page of a ladder: lines of the finest shown level, each with the nodes that start there."""

    lines: list[list[Node]]
    page: int
    pages: int
    nodes: int


@dataclass(frozen=True, eq=False, repr=False)
class Ladder:
    """A hierarchy on a column.

    Parameters
    ----------
    nodes : numpy.ndarray
        ``[levels, values]``: the node of each value at each level. The values are those of the
        list, or of the column if the hierarchy is a function; missing comes last.
    labels : sequence
        The labels at each level, by node; None for a missing value.
    place : numpy.ndarray
        The value of each code of the column; -1 if the list lacks it.
    """

    table: Table
    column: str
    nodes: npt.NDArray[np.int32]
    labels: Sequence[Sequence[str | None]]
    place: Integers
    _people: dict[int, Integers] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, column: str, hierarchy: Hierarchy, codes: HierarchyCodes) -> Ladder:
        if hierarchy.is_function:
            return cls(table, column, codes.maps, codes.labels, np.arange(codes.column.count))
        rows = hierarchy.rows
        missing = codes.column.missing is not None
        nodes = np.zeros((hierarchy.levels, len(rows) + missing), np.int32)
        labels: list[list[str | None]] = []
        for level in range(hierarchy.levels):
            known = labels_of(rows, level)
            number = {label: at for at, label in enumerate(known)}
            nodes[level, : len(rows)] = [number[row[level]] for row in rows]
            own = missing and level < hierarchy.levels - 1
            if own:
                nodes[level, -1] = len(known)
            labels.append([*known, *([None] if own else [])])
        place = hierarchy.places(table, column)
        if missing:
            place = np.append(place, len(rows))
        return cls(table, column, nodes, labels, place)

    @property
    def levels(self) -> int:
        return len(self.nodes)

    def count(self, level: int) -> int:
        """The number of nodes of a level."""
        return len(self.labels[level])

    def people(self, level: int) -> Integers:
        """How many people are in each node of a level."""
        if level not in self._people:
            nodes = np.where(self.place < 0, -1, self.nodes[level][self.place])
            found = people_by_node(self.table, self.column, nodes, self.count(level))
            self._people[level] = found
        return self._people[level]

    @cached_property
    def _order(self) -> Integers:
        """The values, ordered so that those of a node are adjacent at every level."""
        return np.lexsort(self.nodes)  # by the last level first

    @cached_property
    def _values(self) -> list[Integers]:
        return [np.bincount(nodes, minlength=self.count(at)) for at, nodes in enumerate(self.nodes)]

    def section(self, finest: int, page: int, under: tuple[int, int] | None = None) -> Section:
        """A page of the ladder from a level up; all of it, or the part under one node."""
        order = self._order
        if under is not None:
            level, node = under
            if not (0 <= level < self.levels and 0 <= node < self.count(level)):
                raise InputError("There is no such group in the hierarchy. Reload the page.")
            order = order[self.nodes[level][order] == node]
        nodes = self.nodes[finest][order]
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))  # where a line begins
        pages = max(-(-len(starts) // SHOWN), 1)
        if not 1 <= page <= pages:
            raise InputError(f"The ladder has no page {page}. Choose one of its {pages} pages.")
        first = (page - 1) * SHOWN
        shown = order[starts[first : first + SHOWN]]
        before = order[starts[first - 1]] if first else None
        lines: list[list[Node]] = [[] for _ in shown]
        for level in range(finest, self.levels):
            for at, cell in self._cells(level, shown, before):
                lines[at].append(cell)
        return Section(lines, page, pages, len(starts))

    def _cells(self, level: int, shown: Integers, before: int | None) -> list[tuple[int, Node]]:
        """The nodes of a level on a page, each with the line where it starts."""
        nodes = self.nodes[level][shown]
        begins = np.flatnonzero(np.diff(nodes, prepend=-1))
        ends = np.append(begins[1:], len(nodes))
        people, values = self.people(level), self._values[level]
        cells = []
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            number = int(nodes[begin])
            cell = Node(
                level,
                number,
                self.labels[level][number],
                int(people[number]),
                int(values[number]),
                end - begin,
                begin == 0 and before is not None and self.nodes[level][before] == number,
            )
            cells.append((begin, cell))
        return cells
