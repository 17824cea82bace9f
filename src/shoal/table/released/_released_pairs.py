"""What released labels mean, learned from records of which both sides are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Floats, Integers


def usual_partners(source: Integers, target: Integers) -> tuple[Integers, Integers]:
    """For each different source, in ascending order, the target that most pairs have with it.

    Of equally many the smallest.
    """
    if not len(source):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    least, span = int(target.min()), int(np.ptp(target)) + 1
    pairs, counts = np.unique(source * span + (target - least), return_counts=True)
    sources, targets = np.divmod(pairs, span)
    order = np.lexsort((targets, -counts, sources))
    found, first = np.unique(sources[order], return_index=True)
    return found, targets[order[first]] + least


def ends_of_members(
    labels: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], count: int
) -> Floats:
    """The lowest and the highest value of the records with each label, of ``count`` labels.

    A label that no record has goes from infinite to minus infinite.
    """
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, labels, values)
    np.maximum.at(high, labels, values)
    return np.column_stack([low, high])
