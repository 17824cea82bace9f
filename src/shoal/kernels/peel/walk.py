"""In which order local recoding walks the lattice."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from shoal.kernels.lattice.roll_up import Floats, Integers

NODES = 64  # given at once


def in_order_of_cost(costs: Floats, heights: Integers, most: int) -> Iterator[Integers]:
    """The nodes of the lattice, cheapest first, some at a time; at most ``most`` of them.

    A heap: a node is followed by those one level up in its last raised attribute or a later one,
    each reached from one node only. It takes no more nodes once it had ``most``.
    """
    queue = [(float(costs[:, 0].sum()), (0,) * len(heights), 0)]
    room = most - 1
    some: list[tuple[int, ...]] = []
    while queue:
        cost, levels, first = heapq.heappop(queue)
        some.append(levels)
        if len(some) == NODES:
            yield np.array(some, np.int64)
            some = []
        for j in range(first, len(heights)):
            if levels[j] < heights[j] and room > 0:
                higher = (*levels[:j], levels[j] + 1, *levels[j + 1 :])
                added = float(costs[j, levels[j] + 1] - costs[j, levels[j]])
                heapq.heappush(queue, (cost + max(0.0, added), higher, j))
                room -= 1
    if some:
        yield np.array(some, np.int64).reshape(len(some), len(heights))


def cheapest_path(costs: Floats, heights: Integers) -> Integers:
    """Nodes from the bottom to the top, each one level up where that costs least."""
    levels = np.zeros(len(heights), np.int64)
    path = [levels.copy()]
    rows = np.arange(len(heights))
    while np.any(levels < heights):
        above = np.minimum(levels + 1, heights)
        added = np.where(levels < heights, costs[rows, above] - costs[rows, levels], np.inf)
        levels[np.argmin(added)] += 1
        path.append(levels.copy())
    return np.array(path)
