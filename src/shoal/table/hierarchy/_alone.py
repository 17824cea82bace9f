"""How many people are unique when columns are released at levels of their hierarchies.

The count runs over the distinct combinations of the columns. Sorted by the path down a hierarchy,
the first record that another one merges with on the way up is next to it, so that one sort counts
all levels of a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Integers, Keys
from shoal.table.columns._encode import Labels, combine
from shoal.table.hierarchy._codes import HierarchyCodes

if TYPE_CHECKING:
    from shoal.table._table import Table

_Levels = npt.NDArray[np.int16]


class LevelCombinations:
    """The distinct combinations of some columns, each with the people who have it.

    Parameters
    ----------
    table : Table
        The table to count in. Persons are counted if a person may have several rows.
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
        self._owners = table.persons if table.has_persons else None
        rows: Any = slice(None)
        if self._owners is None:
            classes = table.group(list(columns))
            rows, self._shared = classes.first_rows, classes.sizes > 1
        self._codes = {name: coded.column.codes[rows] for name, coded in columns.items()}
        self._known: dict[tuple[str, tuple[int, ...]], list[int]] = {}

    def alone(self, levels: Mapping[str, int]) -> int:
        """How many people are unique; a column without a level stays at level 0."""
        column = next(iter(self._columns))
        return self.alone_by_level(column, levels)[levels.get(column, 0)]

    def alone_by_level(self, column: str, levels: Mapping[str, int]) -> list[int]:
        """How many people are unique with a column at each of its levels.

        ``levels`` are the levels of the other columns.
        """
        key = column, tuple(levels.get(name, 0) for name in self._columns if name != column)
        if key not in self._known:
            self._known[key] = self._alone_by_level(column, levels)
        return self._known[key]

    def _alone_by_level(self, column: str, levels: Mapping[str, int]) -> list[int]:
        coded, count = self._columns[column], len(self._codes[column])
        others = combine(
            (self._at(name, levels.get(name, 0)) for name in self._columns if name != column),
            count,
        )
        order, merges = _neighbours(others, self._codes[column], coded)
        if self._owners is None:
            merges = np.minimum(merges[:-1], merges[1:])
            merges[self._shared[order]] = 0
        else:
            merges = _of_persons(merges, self._owners[order], coded.levels)
        not_alone = np.cumsum(np.bincount(merges, minlength=coded.levels))
        return [len(merges) - int(not_alone[level]) for level in range(coded.levels)]

    def _at(self, name: str, level: int) -> Labels:
        coded, codes = self._columns[name], self._codes[name]
        if level:
            codes = coded.maps[level].astype(np.uint32)[codes]
        return Labels("", codes, coded.nodes(level))


def _neighbours(
    others: Keys, codes: npt.NDArray[Any], coded: HierarchyCodes
) -> tuple[npt.NDArray[np.intp], _Levels]:
    """An order in which records that can merge are neighbors, and the level at which they merge.

    Records that agree in the ``others`` are sorted by the path down the hierarchy. Entry ``i`` is
    the lowest level at which record ``i`` has the same value as the record before it, or the number
    of levels if there is none. There is one extra entry for the end.
    """
    from shoal.kernels.grouping import dense_labels

    down = np.lexsort(coded.maps)  # the last level counts first
    place = np.empty(len(down), np.uint64)
    place[down] = np.arange(len(down))
    bits = max(len(down) - 1, 1).bit_length()
    if int(others.max(initial=0)) >> (64 - bits):
        others = dense_labels(others)[0].astype(np.uint64)
    keys = others << np.uint64(bits) | place[codes]
    order = np.argsort(keys)
    keys = keys[order]
    places = (keys & np.uint64(2**bits - 1)).astype(np.int32)
    keys >>= np.uint64(bits)
    merges = np.full(len(keys) + 1, coded.levels, np.int16)
    same = np.flatnonzero(keys[1:] == keys[:-1])
    for level in reversed(range(coded.levels)):
        nodes = coded.maps[level][down]
        same = same[nodes[places[same]] == nodes[places[same + 1]]]
        merges[same + 1] = level
    return order, merges


def _of_persons(merges: _Levels, owners: Integers, levels: int) -> _Levels:
    """The lowest level at which every row of a person is shared with somebody else."""
    last = np.ones(len(owners), np.bool_)  # the last of adjacent rows of one person
    last[:-1] = owners[1:] != owners[:-1]
    first = np.roll(last, 1)
    before = _largest_so_far(merges[:-1], first, levels)
    after = _largest_so_far(merges[:0:-1], last[::-1], levels)[::-1]
    found = np.zeros(int(owners.max(initial=-1)) + 1, np.int16)
    np.maximum.at(found, owners, np.minimum(before, after))
    return found


def _largest_so_far(values: _Levels, starts: Flags, levels: int) -> _Levels:
    """The largest value since the last start."""
    raised = np.cumsum(starts) * (levels + 1)
    return (np.maximum.accumulate(raised + values) - raised).astype(np.int16)


def people_by_node(table: Table, column: str, nodes: Integers, count: int) -> Integers:
    """How many people are in each node; ``nodes`` has the node of each code of a column, or -1."""
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
