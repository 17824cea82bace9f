"""Fewest blanks if a missing value equals every value, as statistics offices count.

Every short combination is blanked itself. Without that rule, a few records without any value would
make all others k-anonymous, and each of these would still be in the table as it was. Beyond that,
a blank in one record counts for all others, so what has been blanked is counted again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.masking.suppression._cells import ENOUGH, Blanks, Cells

_ROUNDS = 150  # of assigning some combinations again
_WORK = 200_000  # combinations, over all rounds
_AGAIN = 0.2  # the share of combinations that are assigned again, besides the costly ones
_AHEAD = 0.4  # the largest share of them that go ahead, at other costs
_JITTER = 0.9  # of these costs
_MENDING = 4
_AT_ONCE = 50_000_000  # combinations × patterns × columns
_MOST_MEETINGS = 1_000_000_000  # sought tuples × patterns of blanks × columns: some seconds


def blanks_by_agreement(cells: Cells) -> Iterator[Blanks]:
    """Blanks, each no dearer than those before; nothing if there are too few records."""
    short = cells.short
    search = _Search(cells, short)
    if not search.run(np.arange(len(short))):
        return
    least = np.where(cells.missing[short], np.inf, cells.costs).min(axis=1, initial=np.inf)
    floor = float(least @ cells.counts[short])
    found, best = search.blanks(floor), search.patterns.copy()
    yield found
    for _ in range(min(_ROUNDS, _WORK // max(1, len(short)))):
        if found.proved or search.meetings > _MOST_MEETINGS:
            break
        again = search.costs() > least + ENOUGH
        again |= search.random.random(len(short)) < _AGAIN
        # a few that pay more may help others to pay less
        search.patterns[again] = False
        ahead = again & (search.random.random(len(short)) < search.random.random() * _AHEAD)
        search.run(np.flatnonzero(ahead), _JITTER)
        again &= ~ahead
        # what lost a match is assigned again as well
        for _ in range(_MENDING):
            search.patterns[again] = False
            if not search.run(np.flatnonzero(again)) or not (again := search.lacking()).any():
                break
        if not again.any() and (other := search.blanks(floor)).cost <= found.cost:
            found, best = other, search.patterns.copy()
            yield found
        search.patterns = best.copy()


class _Search:
    """Patterns of the short combinations, assigned from the cheapest on."""

    def __init__(self, cells: Cells, short: Integers) -> None:
        from shoal.kernels.grouping import WILDCARD

        self._cells, self._short = cells, short
        tuples = np.where(cells.missing, np.uint32(WILDCARD), cells.codes).astype(np.uint32)
        others = np.ones(len(tuples), np.bool_)
        others[short] = False
        self._own, self._rest = tuples[short], tuples[others]
        self._counts = cells.counts[short].astype(np.float64)
        self._rest_counts = cells.counts[others].astype(np.float64)
        self.patterns: Flags = np.zeros(self._own.shape, np.bool_)
        self.meetings = 0
        self.random = np.random.default_rng(0)  # of a search that looks at counts only

    def costs(self) -> Floats:
        """What each short combination pays for each of its records."""
        return (self.patterns & ~self._cells.missing[self._short]) @ self._cells.costs

    def blanks(self, floor: float) -> Blanks:
        """The result so far."""
        records = self._counts.astype(np.int64)
        return self._cells.blanks(self._short, self.patterns.copy(), records, floor)

    def lacking(self) -> Flags:
        """Which short combinations still agree with too few records."""
        held = self._held
        totals = self._matching(held, self._rest, self._rest_counts)
        totals += self._matching(held, held, self._counts)
        return totals < self._cells.need[self._short] - ENOUGH

    def run(self, open_: Integers, jitter: float = 0.0) -> bool:
        """Give each open combination its cheapest pattern; false if some have none.

        With ``jitter``, costs are a little different, so that other patterns come first.
        """
        costs = self._cells.costs * self.random.uniform(1 - jitter, 1 + jitter, len(self._own.T))
        for _, layer in replace(self._cells, costs=costs).layers(len(open_)):
            if not len(open_):
                return True
            some = max(1, _AT_ONCE // max(1, len(open_) * self._own.shape[1]))
            for first in range(0, len(layer), some):
                if self.meetings > _MOST_MEETINGS:
                    break
                open_ = self._settle(open_, np.array(layer[first : first + some]))
        for _, pattern in self._cells.path():
            open_ = self._settle(open_, pattern[None, :])
        return not len(open_)

    def _settle(self, open_: Integers, layer: Flags) -> Integers:
        """Assign patterns of one cost as long as they are enough; return what is still open."""
        which, place = np.nonzero(
            ~(self._cells.missing[self._short[open_]][:, None, :] & layer).any(axis=2)
        )
        sought = self._blanked(open_[which], layer[place])
        fixed = self._matching(sought, self._rest, self._rest_counts)
        while len(which):
            totals = fixed + self._matching(sought, self._held, self._counts)
            enough = totals >= self._cells.need[self._short[open_[which]]] - ENOUGH
            if not enough.any():
                break
            # nearly the pattern with most matches, which is last
            order = np.lexsort((totals * self.random.random(len(totals)), which))
            order = order[enough[order]]
            last = np.append(np.diff(which[order]) != 0, True)
            chosen = order[last]
            self.patterns[open_[which[chosen]]] = layer[place[chosen]]
            left = ~np.isin(which, which[chosen])
            which, place, sought, fixed = which[left], place[left], sought[left], fixed[left]
        return open_[~self.patterns[open_].any(axis=1)]

    @property
    def _held(self) -> npt.NDArray[np.uint32]:
        """The short combinations as they are blanked so far."""
        return self._blanked(np.arange(len(self._short)), self.patterns)

    def _blanked(self, rows: Integers, patterns: Flags) -> npt.NDArray[np.uint32]:
        from shoal.kernels.grouping import WILDCARD

        return np.where(patterns, np.uint32(WILDCARD), self._own[rows])

    def _matching(
        self, sought: npt.NDArray[np.uint32], held: npt.NDArray[np.uint32], counts: Floats
    ) -> Floats:
        """For each sought tuple, how many records of the held ones agree with it."""
        from shoal.kernels.grouping import WILDCARD, dense_labels, wildcard_matches

        if not len(sought) or not len(held):
            return np.zeros(len(sought))
        tuples = np.concatenate([sought, held])
        seeks = np.arange(len(tuples)) < len(sought)
        gaps = tuples == WILDCARD
        words = np.packbits(gaps, axis=1).astype(np.uint64)
        bits = np.zeros(len(tuples), np.uint64)
        for word in words.T:
            bits = dense_labels(bits << np.uint64(8) | word)[0].astype(np.uint64)
        order = np.lexsort((bits, ~seeks))
        runs = (
            np.flatnonzero((np.diff(bits[order]) != 0) | (np.diff(seeks[order].view(np.int8)) != 0))
            + 1
        )
        starts = np.concatenate(([0], runs, [len(tuples)]))
        weights = np.concatenate([np.zeros(len(sought)), counts])
        totals = np.empty(len(tuples))
        totals[order] = wildcard_matches(
            np.ascontiguousarray(tuples[order]), starts, seeks[order][starts[:-1]], weights[order]
        )
        self.meetings += len(sought) * int((~seeks[order][starts[:-1]]).sum()) * tuples.shape[1]
        return totals[: len(sought)]
