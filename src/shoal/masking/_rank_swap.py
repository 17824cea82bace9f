"""Rank swapping: values are exchanged with values of a nearby rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.masking._base import Masker, StepLog
from shoal.parameters import ColumnNames, Real, Secret
from shoal.table import Table


@dataclass(kw_only=True)
class RankSwap(Masker):
    """Exchange each value with one whose rank is at most ``percent`` of the records away.

    The values of a column are ranked: numbers and dates by value, text alphabetically. Missing
    cells stay where they are. From the lowest rank up, each value that has no partner yet draws a
    rank at random from the window above it, and is exchanged with the value at or next to that
    rank. A value without a free partner stays. Columns are swapped one by one. Their
    distributions do not change.

    Parameters
    ----------
    percent : float
        The width of the window in percent of the records: 5 means 5 %, above 0 and at most 100.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.
    random_state : int, optional
        For tests only: anyone who learns the seed can undo every swap.

    References
    ----------
    Moore (1996), Controlled data-swapping techniques for masking public use microdata sets
    <https://www.census.gov/content/dam/Census/library/working-papers/1996/adrm/rr96-4.pdf>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> table = Table(pl.DataFrame({"age": [20, 30, 40, 50]}), Roles(quasi_identifiers=["age"]))
    >>> swapped = RankSwap(percent=25).fit_transform(table).frame["age"].to_list()
    >>> swapped
    [30, 20, 50, 40]
    """

    percent: Annotated[float, Real(above=0, maximum=100)]
    columns: Annotated[list[str] | None, ColumnNames()] = None
    random_state: Annotated[int | None, Secret()] = None

    method = "rank_swap"
    summary = "exchanges values with others of a nearby rank"
    reference = "Moore 1996"
    is_random = True

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        from shoal.kernels.shuffling import swap_near_ranks

        stream = self._stream(table, log)
        masked = table
        for name in columns:
            column = table.codes(name)
            present = np.flatnonzero(table.present(name))
            window = int(len(present) * self.percent / 100)
            if window == 0:
                log.skipped[name] = "the window holds no other record"
                continue
            own = stream.derive(self.method, name)
            # equal values in random order, otherwise their rows would reveal who swaps with whom
            shuffled = present[own.permutation(len(present))]
            order = shuffled[np.argsort(column.codes[shuffled], kind="stable")]
            source = np.arange(len(table))
            swap_near_ranks(order.astype(np.int64), window, own.words(len(order)), source)
            masked = masked.with_cells_of({name: source})
            log.compare([name], masked, table)
        return masked
