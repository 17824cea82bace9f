"""All boxes that a record lies in; boxes may overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit

Integers = npt.NDArray[np.int64]


def covering_boxes(
    codes: Integers,
    boxes: npt.NDArray[np.int32],
    inside: npt.NDArray[np.bool_],
    starts: Integers,
    widths: Integers,
) -> tuple[Integers, Integers]:
    """Every pair of a record and a box that covers it, in the order of the records.

    Parameters
    ----------
    codes : numpy.ndarray
        The code of each record in each column.
    boxes : numpy.ndarray
        The stretch of each box in each column.
    inside : numpy.ndarray
        Column after column, whether each code lies in each stretch; ``starts`` says where a
        column begins, ``widths`` how many stretches it has.

    Examples
    --------
    Two stretches of one column; the second code lies in both.

    >>> inside = np.array([True, False, True, True])
    >>> one = np.zeros(1, np.int64)
    >>> records, found = covering_boxes(
    ...     np.array([[0], [1]]), np.array([[0], [1]], np.int32), inside, one, one + 2
    ... )
    >>> records.tolist(), found.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    counts = np.zeros(len(codes), np.int64)
    _pairs(codes, boxes, inside, starts, widths, counts, np.empty(0, np.int64), False)
    records = np.repeat(np.arange(len(codes)), counts)
    found = np.empty(len(records), np.int64)
    _pairs(codes, boxes, inside, starts, widths, counts, found, True)
    return records, found


@njit(cache=True)
def _pairs(
    codes: Any,
    boxes: Any,
    inside: Any,
    starts: Any,
    widths: Any,
    counts: Any,
    found: Any,
    write: bool,
) -> None:
    """Count the boxes of each record or, once there is room for them, write them down."""
    at = 0
    for row in range(len(codes)):
        for box in range(len(boxes)):
            covered = True
            for column in range(codes.shape[1]):
                place = starts[column] + codes[row, column] * widths[column] + boxes[box, column]
                if not inside[place]:
                    covered = False
                    break
            if covered and write:
                found[at] = box
                at += 1
            elif covered:
                counts[row] += 1
