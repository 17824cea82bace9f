"""The common members of several sets, for many choices of one set from each of some families."""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.kernels.compile import njit


@njit(cache=True)
def common_members(
    chosen: Integers, starts: Integers, members: Integers, most: int
) -> tuple[Integers, Integers]:
    """The number of common members of chosen sets, at most ``most``, and the first of them.

    ``chosen[i, family]`` is the set that choice ``i`` takes from each family. Set ``s`` has the
    members from ``starts[s]`` to below ``starts[s + 1]``, ascending.
    """
    counts = np.zeros(len(chosen), np.int64)
    first = np.full(len(chosen), -1, np.int64)
    for i in range(len(chosen)):
        smallest = chosen[i, 0]
        for one in chosen[i]:
            if starts[one + 1] - starts[one] < starts[smallest + 1] - starts[smallest]:
                smallest = one
        for at in range(starts[smallest], starts[smallest + 1]):
            everywhere = True
            for one in chosen[i]:
                inside = members[starts[one] : starts[one + 1]]
                place = np.searchsorted(inside, members[at])
                if place == len(inside) or inside[place] != members[at]:
                    everywhere = False
                    break
            if everywhere:
                if counts[i] == 0:
                    first[i] = members[at]
                counts[i] += 1
                if counts[i] == most:
                    break
    return counts, first
