"""The box that a record falls into, or else the nearest one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit

Integers = npt.NDArray[np.int64]


@njit(cache=True)
def nearest_boxes(
    codes: Integers,
    boxes: npt.NDArray[np.int32],
    distances: npt.NDArray[np.float64],
    starts: Integers,
    widths: Integers,
) -> Integers:
    """For each record the box with the least sum of distances; the first of equals.

    Parameters
    ----------
    codes : numpy.ndarray
        The code of each record in each column.
    boxes : numpy.ndarray
        The stretch of each box in each column.
    distances : numpy.ndarray
        Column after column, from each code to each stretch; ``starts`` says where a column
        begins, ``widths`` how many stretches it has.
    """
    chosen = np.empty(len(codes), np.int64)
    for row in range(len(codes)):
        best, least = 0, np.inf
        for box in range(len(boxes)):
            total = 0.0
            for column in range(codes.shape[1]):
                at = starts[column] + codes[row, column] * widths[column] + boxes[box, column]
                total += distances[at]
                if total >= least:
                    break
            if total < least:
                best, least = box, total
                if total == 0.0:
                    break
        chosen[row] = best
    return chosen
