"""How unlike given pairs of records of mixed type are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats
from shoal.kernels.compile import njit
from shoal.kernels.space.mixed_distance import Codes, Measure
from shoal.kernels.space.mixed_records import MixedRecords


class ByRecord(NamedTuple):
    """Records as ``MixedRecords`` has them, but by record, then column.

    A pair is then in few places of the memory.
    """

    values: Floats
    codes: Codes
    measure: Measure


def by_record(records: MixedRecords) -> ByRecord:
    """The same records, to be compared in pairs."""
    values, codes = np.ascontiguousarray(records.values.T), np.ascontiguousarray(records.codes.T)
    return ByRecord(values, codes, records.measure)


@njit(cache=True)
def pair_gap(records: ByRecord, one: int, two: int) -> float:
    """The dissimilarity of two records, to the last bit that of a search."""
    values, codes, measure = records
    numeric, sums, differing, shared = values.shape[1], 0.0, 0.0, 0
    for column in range(len(measure.presence)):
        at = measure.presence[column]
        if at >= 0 and (codes[one, at] == 0 or codes[two, at] == 0):
            continue
        shared += 1
        if column < numeric:
            gap = abs(values[one, column] - values[two, column])
            sums += measure.weights[column] * (gap * gap if measure.squared else gap)
        else:
            nominal = column - numeric
            a, b = np.int64(codes[one, nominal]), np.int64(codes[two, nominal])
            if len(measure.tables) > 0:
                row = measure.starts[nominal] + a * measure.levels[nominal]
                differing += measure.tables[row + b]
            else:
                differing += a != b
    if measure.mean:
        return (sums + differing) / shared if shared > 0 else 1.0
    return sums + differing
