"""Among how many records each one exchanged its values: what the record of a swap proves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.table._provenance import Exchange

if TYPE_CHECKING:
    from shoal.table._table import Table


def swapped_blocks(table: Table, protected: Sequence[str]) -> list[Exchange]:
    """The exchanges of some columns, if they cover all of them; none of them otherwise."""
    blocks = [e for e in table.exchanges if set(e.columns) & set(protected)]
    covered = {name for exchange in blocks for name in exchange.columns}
    return blocks if set(protected) <= covered else []


def swapped_crowds(table: Table, protected: Sequence[str]) -> npt.NDArray[np.int64]:
    """The smallest group in which each record exchanged some of the columns; 1 where none did.

    Of a person who has several records in a group each counts: a value of the group comes back to
    the person so much more often.
    """
    blocks = swapped_blocks(table, protected)
    sizes = [_crowd_of(exchange, table) for exchange in blocks]
    return np.min(sizes, axis=0) if sizes else np.ones(len(table), np.int64)


def shared_crowds(groups: npt.NDArray[Any], table: Table) -> npt.NDArray[np.int64]:
    """Whoever takes any record of a group finds the person of a record with 1 in so many.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal.table import Roles, Table
    >>> table = Table(pl.DataFrame({"who": [1, 1, 2, 3, 4]}), Roles(unit="who"))
    >>> shared_crowds(np.zeros(5, np.int64), table).tolist()
    [2, 2, 5, 5, 5]
    """
    from shoal.kernels.grouping import group

    labels, sizes = group(groups.astype(np.int64).view(np.uint64))
    crowds: npt.NDArray[np.int64] = sizes[labels]
    if table.has_persons:
        keys = labels.astype(np.int64) * table.person_count + table.persons
        _, own, counts = np.unique(keys, return_inverse=True, return_counts=True)
        crowds //= counts[own]
    return crowds


def _crowd_of(exchange: Exchange, table: Table) -> npt.NDArray[np.int64]:
    """The size of each record's group; 1 where the exchange is no permutation within it.

    Only records that are still in the table count: an intruder knows that the others are gone.
    """
    groups = exchange.groups
    carried = np.lexsort((exchange.source, groups))
    present = np.lexsort((table.row_key, groups))
    wrong = exchange.source[carried] != table.row_key[present]
    broken = np.isin(groups, groups[carried][wrong])
    return np.where(broken, 1, shared_crowds(groups, table))
