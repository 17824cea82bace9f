"""How many people stand alone when columns are released at levels of their hierarchies.

Counted on the distinct combinations of the columns. Nobody stands alone at a level who does not
stand alone at all finer ones: where two levels agree, so do all levels between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Integers
from shoal.table.columns._encode import Labels, combine
from shoal.table.hierarchy._codes import HierarchyCodes

if TYPE_CHECKING:
    from shoal.table._table import Table


class LevelCombinations:
    """The distinct combinations of some columns, each with the people who have it.

    Parameters
    ----------
    table : Table
        Whose rows are counted: as persons, where a person may have several.
    columns : dict
        The columns, each with its codes at every level.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [23, 25, 38, 31]}), Roles(quasi_identifiers=["age"]))
    >>> ages = Hierarchy.intervals([5, 10]).codes(table, "age")
    >>> LevelCombinations(table, {"age": ages}).alone_by_level("age", {})
    [4, 4, 0, 0]
    """

    def __init__(self, table: Table, columns: Mapping[str, HierarchyCodes]) -> None:
        self._columns = dict(columns)
        classes = table.group(list(columns))
        self._people = classes.sizes
        self._first = classes.first_rows
        self._persons = self._combination = None
        if table.has_persons:
            self._persons, self._combination = table.persons, classes.labels
        self._known: dict[tuple[int, ...], int] = {}

    def alone(self, levels: Mapping[str, int]) -> int:
        """How many people nobody else is like; a column that is not named is as it is."""
        key = tuple(levels.get(name, 0) for name in self._columns)
        if key not in self._known:
            self._known[key] = self._alone(key)
        return self._known[key]

    def alone_by_level(self, column: str, levels: Mapping[str, int]) -> list[int]:
        """How many people nobody else is like, with a column at each of its levels.

        ``levels`` are those of the other columns.
        """
        last = self._columns[column].levels - 1
        found = [0] * (last + 1)

        def fill(low: int, high: int) -> None:
            if found[low] == found[high]:
                found[low:high] = [found[low]] * (high - low)
            elif high - low > 1:
                middle = (low + high) // 2
                found[middle] = self.alone({**levels, column: middle})
                fill(low, middle)
                fill(middle, high)

        for end in (0, last):
            found[end] = self.alone({**levels, column: end})
        fill(0, last)
        return found

    def _alone(self, levels: tuple[int, ...]) -> int:
        from shoal.kernels.grouping import dense_labels, first_rows

        keys = (
            _at_level(coded, level, self._first)
            for coded, level in zip(self._columns.values(), levels, strict=True)
        )
        labels, count = dense_labels(combine(keys, len(self._first)))
        if self._persons is None:
            return int((np.bincount(labels, self._people, count) == 1).sum())
        crowd = labels[self._combination]
        owner = self._persons[first_rows(crowd, count)]
        lonely = np.ones(count, np.bool_)
        lonely[crowd[self._persons != owner[crowd]]] = False  # somebody else is there as well
        alone = np.zeros(int(self._persons.max(initial=-1)) + 1, np.bool_)
        alone[owner[lonely]] = True
        return int(alone.sum())


def _at_level(coded: HierarchyCodes, level: int, rows: Integers) -> Labels:
    codes: npt.NDArray[Any] = coded.column.codes[rows]
    if level:
        codes = coded.maps[level].astype(np.uint32)[codes]
    return Labels("", codes, coded.nodes(level))


def people_by_node(table: Table, column: str, nodes: Integers, count: int) -> Integers:
    """How many people are in each node, where ``nodes`` has that of each code of a column.

    A code whose node is -1 is in none.
    """
    from shoal.kernels.grouping import dense_labels, first_rows

    coded = table.codes(column)
    if not table.has_persons:
        inside = nodes >= 0
        return np.bincount(nodes[inside], coded.counts[inside], count).astype(np.int64)
    node_of_row = nodes[coded.codes]
    inside = node_of_row >= 0
    node_of_row = node_of_row[inside].astype(np.uint64)
    pairs, different = dense_labels(
        node_of_row * np.uint64(table.person_count) + table.persons[inside].astype(np.uint64)
    )
    return np.bincount(node_of_row[first_rows(pairs, different)].astype(np.int64), minlength=count)
