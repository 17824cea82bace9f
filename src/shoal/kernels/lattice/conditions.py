"""Which classes of a group table satisfy their conditions, and what follows for other nodes.

Two properties decide what may be concluded without looking:

* *upward closed*: a class that satisfies the condition still does with any other records added.
  Then, from a node to a more general one, the number of records to suppress only decreases,
  whatever the limit. Upward closed are a smallest size (k-anonymity), distinct l-diversity and a
  smallest number in the population (k-map).
* *closed under union*: if two classes satisfy it, so does their union. That is enough if nothing
  may be suppressed: if all classes of a node satisfy it, so do all of a more general one. It is
  true of every condition here: entropy is concave; in recursive (c, l)-diversity the l - 1 most
  frequent values of a union are at most as many as those of the parts; the distances of
  t-closeness, the largest share and the gains of β-likeness are convex in the distribution;
  δ-disclosure and δ-presence require shares in an interval.

With a limit above 0, all but the upward closed conditions can fail at a more general node: a
class that fails may join one that satisfies them.

If a person has several records, only three conditions are closed in either way: the smallest
number of persons, of people in the population and of persons with the same history. For others, a
value that everyone has can arise when two classes of the same persons are joined. A removed person
leaves every class, which may make another one too small. At a more general node the same persons
can stay, so the number of records to suppress still only decreases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Flags
from shoal.kernels.compile import njit
from shoal.kernels.conditions import (
    DISTINCT,
    IN_POPULATION,
    PRESENCE,
    TOLERANCE,
    Conditions,
    code_width,
    counted_once,
    holds,
    meet,
    next_tick,
    only_kinds,
    take_out_rare_histories,
)
from shoal.kernels.lattice.roll_up import POPULATION, RECORDS, Groups

UPWARD_CLOSED = (DISTINCT, IN_POPULATION)
"""The kinds that still hold with any records added; so does a smallest size."""


def upward_closed(conditions: Conditions) -> Conditions:
    """Only those conditions that a class keeps, whatever is added to it."""
    closed = (IN_POPULATION,) if counted_once(conditions.persons) else UPWARD_CLOSED
    return only_kinds(conditions, np.isin(conditions.kinds, closed))


def needs_everyone(conditions: Conditions) -> bool:
    """Whether a condition fails if people of the population are in a class without a record.

    This is so if δ-presence has a lower bound: such people are known to be absent.
    """
    return bool(np.any((conditions.kinds == PRESENCE) & (conditions.extras > TOLERANCE)))


@njit(cache=True)
def judged(groups: Groups, conditions: Any, everyone: bool) -> tuple[Flags, int, bool]:
    """Which groups satisfy every condition, the records of the others, whether it is possible.

    A group that only the population has is not a class. It cannot be suppressed either: if
    ``everyone`` must be present, it makes the node impossible.
    """
    count = len(groups.weights)
    kept = np.zeros(count, np.bool_)
    if counted_once(conditions.persons):
        kept, _, weights, possible = judged_persons(groups, conditions, everyone)
        return kept, groups.weights[:, RECORDS].sum() - weights[kept, RECORDS].sum(), possible
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
def judged_persons(groups: Groups, conditions: Any, everyone: bool) -> tuple[Any, Any, Any, bool]:
    """Which groups satisfy every condition, who is gone, the remaining weights, if it is possible.

    If persons are removed as a whole, everyone in a failing group is gone, and the
    groups are checked again without them, until all that remain satisfy the conditions.
    """
    persons, count, width = conditions.persons, len(groups.weights), code_width(conditions)
    last = len(persons.value) - 1
    starts, order = _by_group(groups.pair_group, count)
    histogram = np.zeros((len(conditions.values), conditions.shares.shape[1]), np.int64)
    kept, gone = np.zeros(count, np.bool_), np.zeros(persons.owners, np.bool_)
    whose = np.flatnonzero(groups.pair_value >= last * width)  # pairs of a group and a person
    possible, again = True, True
    while again:
        again = False
        for group in range(count):
            tick, size = next_tick(persons), 0
            for i in range(starts[group], starts[group + 1]):
                place, code = divmod(groups.pair_value[order[i]], width)
                if not gone[persons.owner[place, code]]:
                    size += meet(persons, place, code, tick, histogram)
            population = groups.weights[group, POPULATION]
            possible &= not (everyone and population > 0 and size == 0)
            kept[group] = size > 0 and holds(conditions, size, population, histogram)
            histogram[:] = 0
            if persons.whole and size > 0 and not kept[group]:
                again = True
                for i in range(starts[group], starts[group + 1]):
                    place, code = divmod(groups.pair_value[order[i]], width)
                    gone[persons.owner[place, code]] = True
        if persons.histories > 1 and not again:
            again = 0 < take_out_rare_histories(
                persons,
                groups.pair_group[whose],
                groups.pair_value[whose] - last * width,
                groups.pair_counts[whose],
                gone,
            )
    weights = groups.weights.copy()
    for i in whose:  # type: ignore[assignment]
        if gone[persons.owner[last, groups.pair_value[i] - last * width]]:
            weights[groups.pair_group[i], RECORDS] -= groups.pair_counts[i]
    return kept, gone, weights, possible


@njit(cache=True)
def _judged_by_size(weights: Any, smallest: int, kept: Any) -> int:
    """The same if a class only needs a size."""
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
