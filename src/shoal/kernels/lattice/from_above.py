"""The exact search for losses whose floor is known from the levels: elimination from above.

The floor of the loss grows on the way up, and the records that fail an upward closed condition
grow on the way down. So the nodes below one that suppresses many records suppress as many, and
most of them can neither be feasible nor cost less than the best node so far, which a quick descent
has found. A node is visited after all that are above it, and only if none of them rules it out.
High up the group tables are small as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shoal.kernels.compile import njit
from shoal.kernels.lattice.nodes import Lattice
from shoal.kernels.lattice.projections import Projections
from shoal.kernels.lattice.roll_up import Floats, Integers
from shoal.kernels.lattice.searches import descend


def from_above(lattice: Lattice, projections: Projections | None) -> Iterator[float]:
    """Visit what is neither too dear by its levels nor ruled out by a node above it.

    Projections are for a limit of 0, where they rule out most nodes at once. Yields the share of
    the lattice that is settled.
    """
    top = lattice.visit(lattice.at(lattice.top), lattice.top)
    if len(lattice.heights) == 0 or (lattice.monotone and top.suppressed > lattice.limit):
        return
    lowest = 0 * lattice.heights if projections is None else projections.lowest
    for _ in descend(lattice, lattice.top, lowest):
        yield 0.0
    nodes = _affordable(lattice)
    if projections is not None:
        nodes = nodes[projections.possible(nodes)]
    best, most = lattice.best, _most_suppressed(lattice, nodes)
    left = np.arange(len(nodes))
    for visit in lattice.visits if lattice.monotone else ():
        above = np.array(visit.levels, np.int64)
        left = _not_ruled_out(left, nodes, most, above, visit.suppressed)
    while len(left):
        levels, left = nodes[left[0]], left[1:]
        if lattice.settled(lattice.loss.floor(levels), levels):
            continue
        table = lattice.near(levels)
        visit = lattice.visit(table, levels)
        if lattice.best is not best:
            best, most[left] = lattice.best, _most_suppressed(lattice, nodes[left])
        left = _not_ruled_out(left, nodes, most, levels, lattice.fewest_below(table, visit))
        yield 1.0 - len(left) / lattice.size()


def _affordable(lattice: Lattice) -> Integers:
    """The nodes whose floor is not above the best loss, each after all that are above it.

    They come in lexicographic order of their levels, from the top, so that neighbours share tables.
    """
    order = lattice.by_entropy
    floors = lattice.loss.all_floors(order)
    cost = math.inf if lattice.best is None else lattice.best.loss * (1 + 1e-9)
    chosen = np.flatnonzero(floors <= cost)[::-1]
    nodes = np.empty((len(chosen), len(order)), np.int64)
    for j in order[::-1]:
        chosen, nodes[:, j] = np.divmod(chosen, lattice.heights[j] + 1)
    return nodes


def _most_suppressed(lattice: Lattice, nodes: Integers) -> Floats:
    """How many records each node can suppress and still be the best."""
    cost = math.inf if lattice.best is None else lattice.best.loss
    return lattice.loss.most_suppressed(nodes, cost, lattice.limit)


@njit(cache=True)
def _not_ruled_out(
    left: Integers, nodes: Integers, most: Floats, above: Integers, suppressed: int
) -> Integers:
    """Those of ``left`` that are not below a node or can suppress as many records as it does."""
    kept, count = np.empty_like(left), 0
    for node in left:
        below = suppressed > most[node]
        for j in range(len(above)):
            below = below and nodes[node, j] <= above[j]
        if not below:
            kept[count] = node
            count += 1
    return kept[:count]
