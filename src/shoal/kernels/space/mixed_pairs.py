"""How unlike given pairs of records of mixed type are."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import njit
from shoal.kernels.space.mixed_distance import Codes, Floats, Integers, Measure
from shoal.kernels.space.mixed_records import MixedRecords


def pair_gaps(records: MixedRecords, rows: Integers, others: Integers) -> Floats:
    """The dissimilarity of each of ``rows`` and the one of ``others`` at its place.

    Added up in the order of :func:`.mixed_distance.distances`, so that it equals,
    to the last bit, what a search for the nearest record finds. For records without tables.

    Examples
    --------
    >>> from shoal.kernels.space.mixed_records import gower
    >>> records = gower(np.array([[1.0], [2.0], [5.0]]), np.array([[0], [1], [-1]]))
    >>> pair_gaps(records, np.array([0, 0]), np.array([1, 2])).tolist()
    [0.625, 1.0]
    """
    measure, numeric = records.measure, len(records.values)
    sums, differing, shared = (np.zeros(len(rows)) for _ in range(3))
    for column, at in enumerate(measure.presence):
        both = np.ones(len(rows), bool)
        if at >= 0:
            both = (records.codes[at, rows] != 0) & (records.codes[at, others] != 0)
        if column < numeric:
            values = records.values[column]
            gap = np.abs(values[others] - values[rows])
            gap = (gap * gap if measure.squared else gap) * measure.weights[column]
            sums += np.where(both, gap, 0.0)
        else:
            codes = records.codes[column - numeric]
            differing += both & (codes[rows] != codes[others])
        shared += both
    if not measure.mean:
        return sums + differing
    return np.where(shared > 0, (sums + differing) / np.maximum(shared, 1.0), 1.0)


@njit(cache=True)
def pair_gap(values: Floats, codes: Codes, measure: Measure, one: int, two: int) -> float:
    """The dissimilarity of two records, to the last bit that of a search.

    Unlike in ``MixedRecords``, ``values`` and ``codes`` are by record, then column: a pair is
    then in few places of the memory.
    """
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
