"""How many records leave so that the values of a target come into balance."""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.kernels.compile import njit


@njit(cache=True)
def balanced_counts(
    counts: Integers, labels: Integers, offsets: Integers, removals: Integers, values: int
) -> Integers:
    """How many records of each cell stay; a cell has the records of a class with one value.

    Each removal takes, of the values that are present in the class, the one that is most frequent
    among all records still left (ties: the lower value). Class ``c`` has the cells from
    ``offsets[c]`` on, in the order of their ``labels``, which are below ``values``.
    """
    left = np.zeros(values, np.int64)
    for cell in range(len(counts)):
        left[labels[cell]] += counts[cell]
    kept = counts.copy()
    for group in range(len(removals)):
        for _ in range(removals[group]):
            most = -1
            for cell in range(offsets[group], offsets[group + 1]):
                if kept[cell] > 0 and (most < 0 or left[labels[cell]] > left[labels[most]]):
                    most = cell
            kept[most] -= 1
            left[labels[most]] -= 1
    return kept
