"""Partners of near rank, each taken once."""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Integers, Words
from shoal.kernels.compile import njit


@njit(cache=True)
def _next_free(leads: Integers, rank: int) -> int:
    """The first free rank from here on; the path to it is halved on the way."""
    while leads[rank] != rank:
        leads[rank] = leads[leads[rank]]
        rank = leads[rank]
    return rank


@njit(cache=True)
def swap_near_ranks(order: Integers, window: int, words: Words, source: Integers) -> None:
    """Pair ranks that are at most ``window`` apart and write the pairs into ``source``.

    From the lowest rank up, a rank without a partner draws one of the next ``window`` ranks and
    takes the first free one from there on, or, where there is none left in the window, the first
    free one of the window. ``source[row]`` becomes the row of the partner.
    """
    ranks = len(order)
    leads = np.arange(ranks + 1)  # a taken rank leads to the next one; the last one is the end
    rank = 0
    while rank < ranks:
        leads[rank] = rank + 1
        last = min(rank + window, ranks - 1)
        if last > rank:
            drawn = rank + 1 + int(words[rank] % np.uint64(last - rank))
            partner = _next_free(leads, drawn)
            if partner > last:
                partner = _next_free(leads, rank + 1)
            if partner <= last:
                leads[partner] = partner + 1
                source[order[rank]] = order[partner]
                source[order[partner]] = order[rank]
        rank = _next_free(leads, rank + 1)
