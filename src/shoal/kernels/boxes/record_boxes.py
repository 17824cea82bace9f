"""The boxes of records: the nearest one of each, or all that cover it.

A box has a stretch in every column. For each code and stretch there is a known value: a distance,
or whether the code lies in the stretch. The values are stored column after column: ``starts`` has
the start of each column, ``widths`` its number of stretches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Codes, Flags, Floats, Integers
from shoal.kernels.compile import njit


@njit(cache=True)
def nearest_boxes(
    codes: Integers, boxes: Codes, distances: Floats, starts: Integers, widths: Integers
) -> Integers:
    """For each record, the box with the least sum of distances; in a tie, the first."""
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


def covering_boxes(
    codes: Integers, boxes: Codes, inside: Flags, starts: Integers, widths: Integers
) -> tuple[Integers, Integers]:
    """Every pair of a record and a box that covers it, in the order of the records."""
    counts = np.zeros(len(codes), np.int64)
    _pairs(codes, boxes, (inside, starts, widths), counts, np.empty(0, np.int64), False)
    records = np.repeat(np.arange(len(codes)), counts)
    found = np.empty(len(records), np.int64)
    _pairs(codes, boxes, (inside, starts, widths), counts, found, True)
    return records, found


@njit(cache=True)
def _pairs(codes: Any, boxes: Any, known: Any, counts: Any, found: Any, write: bool) -> None:
    """Count the boxes of each record or, once there is room for them, write them down."""
    inside, starts, widths = known
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
