"""How many rows the labels of a box cover, and what falls on a row of the boxes that cover it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.boxes.predicates import Indexed, fewest, holds
from shoal.kernels.compile import njit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Boxes(NamedTuple):
    """Boxes, each a label in every column.

    ``labels[b, c]`` is that of box ``b`` in column ``c``. Label ``l`` covers the codes from
    ``low[i]`` to ``high[i]`` for every ``i`` from ``starts[l]`` to below ``starts[l + 1]``.
    """

    labels: Integers
    starts: Integers
    low: Integers
    high: Integers


def covered_rows(rows: Indexed, boxes: Boxes, weights: Floats) -> Floats:
    """For each box the weight of the rows that it covers.

    Examples
    --------
    Two boxes of one column, with the codes 0 to 1 and 1; the row of code 1 weighs 3.

    >>> from shoal.kernels.boxes.predicates import indexed
    >>> rows = indexed(np.array([[0, 1]]), np.array([2]))
    >>> ends = np.array([0, 1]), np.array([1, 1])
    >>> boxes = Boxes(np.array([[0], [1]]), np.array([0, 1, 2]), *ends)
    >>> covered_rows(rows, boxes, np.array([1.0, 3.0])).tolist()
    [4.0, 3.0]
    >>> shared_out(rows, boxes, np.array([0.25, 0.5])).tolist()
    [0.25, 0.75]
    """
    totals = np.zeros(len(boxes.labels))
    _add_up(rows, boxes, weights, totals, False)
    return totals


def shared_out(rows: Indexed, boxes: Boxes, shares: Floats) -> Floats:
    """For each row the sum of the shares of the boxes that cover it."""
    received = np.zeros(len(rows.values))
    _add_up(rows, boxes, shares, received, True)
    return received


@njit(cache=True)
def _add_up(rows: Indexed, boxes: Boxes, given: Floats, sums: Floats, by_row: bool) -> None:
    """Add up what rows give to the boxes that cover them or, ``by_row``, boxes to their rows.

    Only rows that the label which covers the fewest covers are looked at.
    """
    columns = np.arange(boxes.labels.shape[1])
    starts, low, high = boxes.starts, boxes.low, boxes.high
    for box in range(len(boxes.labels)):
        labels = boxes.labels[box]
        column = fewest(rows, columns, labels, starts, low, high)[0]
        first = rows.offsets[column]
        for run in range(starts[labels[column]], starts[labels[column] + 1]):
            begin, end = rows.firsts[first + low[run]], rows.firsts[first + high[run] + 1]
            for spot in range(begin, end):
                row = rows.order[column, spot]
                if holds(rows, row, columns, labels, starts, low, high):
                    if by_row:
                        sums[row] += given[box]
                    else:
                        sums[box] += given[row]
