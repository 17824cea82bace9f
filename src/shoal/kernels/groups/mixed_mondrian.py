"""Strict Mondrian on records of mixed type: numbers and categories cut beside their median.

Categories lie in the order of their frequency, the most frequent first, and are cut beside the
median like numbers: the ordinary ones part from the rare ones. A column is as wide in a part of the
table as the dissimilarity says: what its lowest and its highest number add, or the two categories
that add most. A missing number lies with the lowest, a missing category with the most frequent.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit
from shoal.kernels.groups.mondrian_groups import cut
from shoal.kernels.space.mixed_distance import Floats, Integers, Measure
from shoal.kernels.space.mixed_records import MixedRecords

Labels = npt.NDArray[np.int32]

_CELLS = 10_000_000  # looked at in about 50 ms
_WAITING, _GROUPS, _DONE = 0, 1, 2


class MixedMondrian:
    """The partition of records into boxes of at least k; call ``advance`` until all have one.

    Groups are numbered in the order of the cuts, lower values first.

    Examples
    --------
    >>> from shoal.kernels.space.mixed_records import gower
    >>> records = gower(np.array([[1.0], [2], [1], [2]]), np.array([[0], [1], [0], [1]]))
    >>> partition = MixedMondrian(records, 2)
    >>> partition.advance()
    4
    >>> partition.labels.tolist()
    [0, 1, 0, 1]
    """

    def __init__(self, records: MixedRecords, k: int) -> None:
        nominal, count = len(records.measure.levels), records.values.shape[1]
        self._columns = np.vstack([records.values, records.codes[:nominal]]).astype(np.float64)
        self._k, self._measure = k, records.measure
        self._rows = np.arange(count, dtype=np.int32)
        self._stack = np.empty((count // k + 2, 2), np.int64)
        self._stack[0] = 0, count
        self._values = np.empty((3, count))
        self._places = np.empty((2, count), np.int32)
        self._present = np.zeros(int(records.measure.levels.max(initial=1)), np.bool_)
        self._state = np.array([1, 0, 0], np.int64)
        self.labels: Labels = np.full(count, -1, np.int32)

    def advance(self) -> int:
        """Do about 50 ms of work; give how many records have their group."""
        _advance(
            self._columns,
            self._measure,
            self._rows,
            self._k,
            self._stack,
            self._values,
            self._places,
            self._present,
            self._state,
            self.labels,
            _CELLS,
        )
        return int(self._state[_DONE])


@njit(cache=True)
def _advance(
    columns: Floats,
    measure: Measure,
    rows: Labels,
    k: int,
    stack: Integers,
    values: Floats,
    places: Labels,
    present: npt.NDArray[np.bool_],
    state: Integers,
    labels: Labels,
    cells: int,
) -> None:
    """Cut parts until the stack is empty or about ``cells`` cells were looked at."""
    widths = np.zeros(len(columns) + 1)[:-1]  # a table without columns has one part
    while state[_WAITING] > 0 and cells > 0:
        state[_WAITING] -= 1
        top = state[_WAITING]
        start, end = stack[top]
        cells -= (end - start) * (len(columns) + 4)
        lower = 0
        if end - start >= 2 * k and len(columns) > 0:
            for column in range(len(columns)):
                widths[column] = _width(columns[column, start:end], measure, column, present)
            lower = cut(columns, rows, start, end, k, widths, values, places)
        if lower > 0:
            stack[top, 0], stack[top, 1] = start + lower, end
            stack[top + 1, 0], stack[top + 1, 1] = start, start + lower
            state[_WAITING] += 2
            continue
        for place in range(start, end):
            labels[rows[place]] = state[_GROUPS]
        state[_GROUPS] += 1
        state[_DONE] += end - start


@njit(cache=True)
def _width(part: Floats, measure: Measure, column: int, present: npt.NDArray[np.bool_]) -> float:
    """What two records of a part can differ by in a column."""
    low, high = part.min(), part.max()
    numeric = len(measure.weights)
    if column < numeric:
        gap = high - low
        return measure.weights[column] * (gap * gap if measure.squared else gap)
    if len(measure.tables) == 0:
        return 1.0 if high > low else 0.0
    start, levels = measure.starts[column - numeric], measure.levels[column - numeric]
    for code in part:
        present[int(code)] = True
    held = np.flatnonzero(present[:levels])
    widest = 0.0
    for one in held:
        for two in held:
            widest = max(widest, measure.tables[start + one * levels + two])
    present[held] = False
    return widest
