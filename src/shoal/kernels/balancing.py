"""Which records leave so that the values of a target come into balance."""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Flags, Integers
from shoal.kernels.compile import njit


@njit(cache=True)
def balanced_removals(
    order: Integers, offsets: Integers, removals: Integers, labels: Integers, values: int
) -> Flags:
    """Mark the records that are taken out, class by class.

    Each removal takes, of the values that are present in the class, the one that is most frequent
    among all records still left (ties: the lower value), and of its records the last in order.
    ``order`` has the records class after class, and class ``c`` starts at ``offsets[c]`` of it;
    ``labels`` are below ``values``.
    """
    left = np.zeros(values, np.int64)
    for label in labels:
        left[label] += 1
    removed = np.zeros(len(labels), np.bool_)
    last = np.full(values, -1)  # the last record of each value in the class, as a place in order
    before = np.full(len(order), -1)  # the one before it with the same value
    for group in range(len(removals)):
        start, end = offsets[group], offsets[group + 1]
        for place in range(start, end):
            label = labels[order[place]]
            before[place] = last[label]
            last[label] = place
        for _ in range(removals[group]):
            most = -1
            for value in range(values):
                if last[value] >= 0 and (most < 0 or left[value] > left[most]):
                    most = value
            removed[order[last[most]]] = True
            last[most] = before[last[most]]
            left[most] -= 1
        for place in range(start, end):
            last[labels[order[place]]] = -1
    return removed
