"""How many records to remove so that the values of a target become balanced."""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.kernels.compile import njit


@njit(cache=True)
def balanced_counts(
    counts: Integers, labels: Integers, offsets: Integers, removals: Integers, values: int
) -> Integers:
    """How many records of each cell to keep; a cell has the records of a class with one value.

    Each removal takes the value that, among those present in the class, is most frequent
    among all remaining records (ties: the lower value). The cells of class ``c`` start at
    ``offsets[c]``, in the order of their ``labels``, which are below ``values``.
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
