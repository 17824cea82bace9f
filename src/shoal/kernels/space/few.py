"""Distances of a record to a few others with numpy: as by a tree, without compiling one."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Floats, Integers
from shoal.kernels.compile import as_python, is_small
from shoal.kernels.space.mixed_distance import Query, empty_query, set_query
from shoal.kernels.space.mixed_records import MixedRecords

_COST = 200  # comparisons of two values that numpy makes per step of Python


class Few:
    """Records with which a query is compared, one after the other, in the order of their rows.

    Distances are added up in the same order as in
    :func:`~shoal.kernels.space.mixed_distance.distances`, and are equal to the last bit.
    """

    def __init__(self, records: MixedRecords) -> None:
        self._records = records
        self.query: Query = empty_query(records.measure, records.codes.dtype)
        self._set_query: Any = as_python(set_query)

    def ask(self, row: int) -> None:
        """Make a record the query."""
        records = self._records
        self._set_query(self.query, records, row)

    def distances(self, rows: Integers) -> Floats:
        """The dissimilarity of the query to some rows."""
        query, measure = self.query, self._records.measure
        values, codes = self._records.values, self._records.codes
        numeric, shared = len(values), np.zeros(len(rows), np.int64)
        sums, differing, misses = np.zeros(len(rows)), np.zeros(len(rows)), shared.copy()
        for column in np.flatnonzero(query.has):
            at, nominal = measure.presence[column], column - numeric
            there = codes[at, rows] != 0 if at >= 0 else True
            shared += there
            if nominal < 0:
                gaps = np.abs(values[column, rows] - query.values[column])
                gaps = (gaps * gaps if measure.squared else gaps) * measure.weights[column]
                sums += gaps if at < 0 else np.where(there, gaps, 0.0)
            elif len(measure.tables) == 0:
                misses += (codes[nominal, rows] != query.codes[nominal]) & there
            else:
                start = measure.starts[nominal] + query.codes[nominal] * measure.levels[nominal]
                entries = measure.tables[start + codes[nominal, rows].astype(np.int64)]
                differing += np.where(there, entries, 0.0)
        sums += differing + misses
        if not measure.mean:
            return sums
        return np.where(shared == 0, 1.0, sums / np.maximum(shared, 1))


def are_few(columns: int, queries: float, candidates: float) -> bool:
    """Whether so many queries with so many candidates are not worth compiling a tree."""
    return is_small(queries * (columns + 2) * (candidates / _COST + 10))
