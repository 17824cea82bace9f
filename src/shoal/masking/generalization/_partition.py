"""What is asked of a partition as a whole: larger classes until it is granted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from shoal.errors import RequirementNotMet
from shoal.masking.generalization._combinations import Combinations
from shoal.masking.generalization._demand import Demand
from shoal.masking.generalization._recoding import Recoding

Sizes = npt.NDArray[np.int64]


def coarse_enough(
    run: Callable[[Demand], Recoding], demand: Demand, accepts: Callable[[Recoding], bool]
) -> Recoding:
    """The result of a search whose classes, taken together, are accepted.

    Where they are not, the search is run again for larger and larger classes, and then for the
    smallest size between the last one that failed and the first one that did not.
    """
    best = run(demand)
    if accepts(best):
        return best
    low = high = demand.conditions.smallest
    while True:
        high = min(2 * high, demand.records)
        best = run(_at_least(demand, high))
        if accepts(best):
            break
        if high == demand.records:
            raise RequirementNotMet(
                "No partition satisfies the models that speak of all classes together or of a "
                f"population, not even one class of all {demand.records} records; relax them. "
                "Nothing was written."
            )
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        found = run(_at_least(demand, middle))
        if accepts(found):
            high, best = middle, found
        else:
            low = middle
    return best


def _at_least(demand: Demand, smallest: int) -> Demand:
    return replace(demand, conditions=demand.conditions._replace(smallest=smallest))


def class_sizes(recoding: Recoding, names: Sequence[str], found: Combinations) -> Sizes:
    """The sizes of the classes of released texts."""
    from shoal.kernels._grouping import dense_labels

    labels: npt.NDArray[np.signedinteger] = np.zeros(len(found.of_row), np.int64)
    count = 1
    for place, name in enumerate(names):
        if name in recoding.columns:
            column = recoding.columns[name]
            # two stretches of a column may be released as one text
            _, same = np.unique([str(text) for text in column.texts], return_inverse=True)
            codes = same.ravel()[column.of_row]
        else:
            codes = found.codes[found.of_row, place]
        width = np.uint64(int(codes.max(initial=0)) + 1)
        labels, count = dense_labels(labels.astype(np.uint64) * width + codes.astype(np.uint64))
    return np.bincount(labels, minlength=count).astype(np.int64)
