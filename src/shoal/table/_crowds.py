"""Among how many records each one exchanged its values: what the record of a swap proves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.table._exchange import Exchange

if TYPE_CHECKING:
    from shoal.table._table import Table


def swapped_blocks(table: Table, protected: Sequence[str]) -> list[Exchange]:
    """The exchanges of some columns, if they cover all of them; none of them otherwise."""
    blocks = [e for e in table.exchanges if set(e.columns) & set(protected)]
    covered = {name for exchange in blocks for name in exchange.columns}
    return blocks if set(protected) <= covered else []


def swapped_crowds(table: Table, protected: Sequence[str]) -> npt.NDArray[np.int64]:
    """The smallest group in which each record exchanged some of the columns; 1 where none did."""
    blocks = swapped_blocks(table, protected)
    sizes = [_crowd_of(exchange, table.row_key) for exchange in blocks]
    return np.min(sizes, axis=0) if sizes else np.ones(len(table), np.int64)


def _crowd_of(exchange: Exchange, row_key: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The size of each record's group; 1 where the exchange is no permutation within it.

    Only records that are still in the table count: an intruder knows that the others are gone.
    """
    _, groups, sizes = np.unique(exchange.groups, return_inverse=True, return_counts=True)
    carried = np.lexsort((exchange.source, groups))
    present = np.lexsort((row_key, groups))
    wrong = exchange.source[carried] != row_key[present]
    broken = np.unique(groups[carried][wrong])
    sizes = sizes.astype(np.int64)
    sizes[broken] = 1
    return sizes[groups]
