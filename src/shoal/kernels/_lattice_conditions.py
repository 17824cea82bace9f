"""Which classes of a group table hold their conditions, and what that says of other nodes.

Two properties decide what may be concluded without looking:

* *upward closed*: a class that holds the condition still does with any other records added. Then
  the records to suppress only get fewer from a node to a more general one, whatever the limit.
  So are a smallest size (k-anonymity), distinct l-diversity and a smallest number in the
  population (k-map).
* *closed under union*: two classes that hold it do so together. That is enough where nothing may
  be suppressed: if all classes of a node hold, so do all of a more general one. It is true of
  every condition here: entropy is concave; in recursive (c, l)-diversity the l - 1 most frequent
  values of a union are at most as many as those of the parts; the distances of t-closeness, the
  largest share and the gains of β-likeness are convex in the distribution; δ-disclosure and
  δ-presence ask for shares in an interval.

With a limit above 0, all but the upward closed conditions can fail at a more general node: a
class that holds may be joined by one that does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels._compile import njit
from shoal.kernels._conditions import (
    DISTINCT,
    HAIR,
    IN_POPULATION,
    PRESENCE,
    Conditions,
    holds,
    only_kinds,
)
from shoal.kernels._roll_up import POPULATION, RECORDS, Groups

UPWARD_CLOSED = (DISTINCT, IN_POPULATION)
"""The kinds that hold with any records added; a smallest size does too."""


def upward_closed(conditions: Conditions) -> Conditions:
    """Only those conditions that a class keeps, whatever is added to it."""
    return only_kinds(conditions, np.isin(conditions.kinds, UPWARD_CLOSED))


def needs_everyone(conditions: Conditions) -> bool:
    """Whether people of the population whose class has no record break a condition.

    So it is where δ-presence has a lower bound: of them it is known that they are absent.
    """
    return bool(np.any((conditions.kinds == PRESENCE) & (conditions.extras > HAIR)))


@njit(cache=True)
def judged(
    groups: Groups, conditions: Any, everyone: bool
) -> tuple[npt.NDArray[np.bool_], int, bool]:
    """Which groups hold every condition, the records of those that do not, and if it can be.

    A group that only the population has is no class. It cannot be suppressed either: where
    ``everyone`` must be present it makes the node impossible.
    """
    count = len(groups.weights)
    kept = np.zeros(count, np.bool_)
    if len(conditions.kinds) == 0:
        return kept, _judged_by_size(groups.weights, conditions.smallest, kept), True
    starts, order = _by_group(groups.pair_group, count)
    histogram = np.zeros((len(conditions.values), conditions.shares.shape[1]), np.int64)
    values = max(1, histogram.shape[1])
    suppressed, possible = 0, True
    for group in range(count):
        size, population = groups.weights[group, RECORDS], groups.weights[group, POPULATION]
        if size == 0:
            possible &= not (everyone and population > 0)
            continue
        if size >= conditions.smallest:
            for i in range(starts[group], starts[group + 1]):
                value = groups.pair_value[order[i]]
                histogram[value // values, value % values] += groups.pair_counts[order[i]]
            kept[group] = holds(conditions, size, population, histogram)
            for i in range(starts[group], starts[group + 1]):
                value = groups.pair_value[order[i]]
                histogram[value // values, value % values] = 0
        if not kept[group]:
            suppressed += size
    return kept, suppressed, possible


@njit(cache=True)
def _judged_by_size(weights: Any, smallest: int, kept: Any) -> int:
    """The same where a class needs a size and nothing else."""
    suppressed = 0
    for group in range(len(weights)):
        size = weights[group, RECORDS]
        kept[group] = size > 0 and size >= smallest
        suppressed += 0 if kept[group] else size
    return suppressed


@njit(cache=True)
def _by_group(group: Any, count: int) -> tuple[Any, Any]:
    """The pairs of each group: group g has ``order[starts[g]:starts[g + 1]]``."""
    starts = np.zeros(count + 2, np.int64)
    if len(group) == 0:
        return starts, starts[:0]
    for i in range(len(group)):
        starts[group[i] + 2] += 1
    for g in range(count + 1):
        starts[g + 1] += starts[g]
    order = np.empty(len(group), np.int64)
    for i in range(len(group)):
        order[starts[group[i] + 1]] = i
        starts[group[i] + 1] += 1
    return starts, order
