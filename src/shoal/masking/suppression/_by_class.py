"""Fewest blanks if a missing value is a value of its own.

The records of a released class then have blanks in the same columns and equal values in the others.
Short combinations are put into such classes, the cheapest first; a class that lacks records
recruits some from combinations that can spare them. Then a part of the classes is dissolved and
filled again, as long as that is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Flags, Integers, Words
from shoal.masking.suppression._cells import ENOUGH, Blanks, Cells

_DEARER = 1.25  # from one price to the next
_ROUNDS = 100  # of dissolving classes
_WORK = 400_000  # combinations, over all rounds
_STEPS = 100_000  # patterns × prices × places of missing values, over all rounds


def blanks_by_class(cells: Cells) -> Iterator[Blanks]:
    """Blanks, each no dearer than those before; nothing if there are too few records."""
    search = _Search(cells)
    if not search.run():
        return
    floor = search.floor()
    found = cells.blanks(*search.placed[:3], floor)
    yield found
    for _ in range(min(_ROUNDS, _WORK // max(1, len(cells.short)))):
        if found.proved or search.steps > _STEPS:
            break
        kept = search.placed
        search.dissolve()
        if search.run() and (other := cells.blanks(*search.placed[:3], floor)).cost <= found.cost:
            found = other
            yield found
        else:
            search.placed = kept


class _Placed(NamedTuple):
    """Records put into classes of blanked ones: whole short combinations, and recruits."""

    combinations: Integers
    patterns: Flags
    records: Integers
    keys: Words  # of their class


class _Search:
    """Classes of blanked records.

    The key of a class is a sum of one random word per cell, so blanking a cell changes it by a
    difference. Keys of different classes that happen to be equal are noticed when the masked
    table is counted.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells, self._short = cells, cells.short
        self._random = np.random.default_rng(0)  # of a search that looks at counts only
        self._patterns = [each for _, layer in cells.layers(len(self._short)) for each in layer]
        self._keys = np.zeros(len(cells.codes), np.uint64)
        self._changes = np.zeros(cells.codes.shape, np.uint64)
        for place, codes in enumerate(cells.codes.T):
            words = self._random.integers(0, 2**64, int(codes.max(initial=0)) + 2, np.uint64)
            own = words[np.where(cells.missing[:, place], len(words) - 1, codes)]
            self._keys += own
            self._changes[:, place] = words[-1] - own
        self._nothing = np.zeros(len(cells.costs), np.bool_)
        self._gaps, gap = np.unique(cells.missing, axis=0, return_inverse=True)
        self._gap, self.steps = gap.ravel(), 0
        self._spare = np.maximum(cells.sizes - cells.need, 0)
        none = np.zeros(0, np.int64)
        nothing = np.zeros((0, len(cells.costs)), np.bool_)
        self.placed = _Placed(none, nothing, none, none.astype(np.uint64))

    def dissolve(self) -> None:
        """Forget a random part of the classes, with those whose records could not stand alone."""
        keys = np.unique(self.placed.keys)
        gone = keys[self._random.random(len(keys)) < self._random.random()]
        while len(gone):
            kept = ~np.isin(self.placed.keys, gone)
            self.placed = _Placed._make(part[kept] for part in self.placed)
            alone = self._cells.counts.copy()
            np.subtract.at(alone, self.placed.combinations, self.placed.records)
            few = np.flatnonzero((alone > 0) & (alone < self._cells.need))
            gone = self.placed.keys[np.isin(self.placed.combinations, few)]

    def floor(self) -> float:
        """What no solution falls below: what each short combination would pay by itself."""
        open_, started = self._short, self.steps
        least = np.zeros(len(open_))
        left = np.ones(len(open_), np.bool_)
        for pattern in [self._nothing, *self._patterns]:
            rows = np.flatnonzero(left)
            if not len(rows) or self.steps > started + _STEPS:
                break
            for some, blanked in self._by_blanks(open_[rows], pattern, anew=True):
                keys, of = np.unique(self._under(open_[rows[some]], blanked), return_inverse=True)
                enough = self._sums(blanked, keys, self._cells.counts)[of]
                left[rows[some][enough >= self._cells.need[open_[rows[some]]]]] = False
                least[rows[some]] = pattern @ self._cells.costs
        self.steps = started
        return float(least @ self._cells.counts[open_])

    def run(self) -> bool:
        """Place every open combination, from the lowest price on; false if some cannot be."""
        open_ = self._short[~np.isin(self._short, self.placed.combinations)]
        spare = self._spare.copy()
        np.subtract.at(spare, self.placed.combinations, self.placed.records)
        self._left = np.maximum(spare, 0)
        # classes that are there: of blanked records, and of records with missing values
        gappy = (self._cells.sizes >= self._cells.need) & self._cells.missing.any(axis=1)
        self._known, self._sizes = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._know(self._keys[gappy], self._cells.sizes[gappy])
        self._know(self.placed.keys, self.placed.records)
        price = float(self._cells.costs.min())
        most = float(self._cells.costs.sum()) * (int(self._cells.need.max(initial=1)) + 1)
        order = self._random.permutation(len(self._patterns))  # other classes in every round
        while len(open_) and price <= most and self.steps <= _STEPS:
            for pattern in [self._nothing, *(self._patterns[at] for at in order)]:
                if float(self._cells.costs[pattern].sum()) <= price + ENOUGH and len(open_):
                    open_ = self._place(open_, pattern, price, anew=True)
            price *= _DEARER
        for _, pattern in self._cells.path():
            if len(open_):
                open_ = self._place(open_, pattern, np.inf)
        if len(open_):
            open_ = self._draft(open_)
        return not len(open_)

    def _place(
        self, open_: Integers, pattern: Flags, price: float, *, anew: bool = False
    ) -> Integers:
        """Form the classes of a pattern that cost at most ``price`` for each record of a short
        combination; return what is still open."""
        cells, still = self._cells, np.ones(len(open_), np.bool_)
        for some, blanked in self._by_blanks(open_, pattern, anew=anew):
            rows = open_[some]
            keys, of = np.unique(self._under(rows, blanked), return_inverse=True)
            counts = cells.counts[rows]
            members = np.bincount(of, counts)
            paid = np.bincount(of, counts * ((blanked & ~cells.missing[rows]) @ self._cells.costs))
            need = np.zeros(len(keys), np.int64)
            np.maximum.at(need, of, cells.need[rows])
            lacking = np.maximum(need - members - self._held(keys), 0).astype(np.int64)
            price_here = (paid + lacking * (blanked @ self._cells.costs)) / members
            taken = price_here <= price + ENOUGH
            if (hungry := taken & (lacking > 0)).any():
                spare = self._sums(blanked, keys[hungry], self._left)
                taken[hungry] = spare >= lacking[hungry]
                hungry &= taken
                if hungry.any():
                    self._recruit(blanked, keys[hungry], lacking[hungry])
            chosen = taken[of]
            self._put(rows[chosen], blanked, counts[chosen], keys[of[chosen]])
            still[some[chosen]] = False
        return open_[still]

    def _recruit(self, blanked: Flags, keys: Words, lacking: Integers) -> None:
        """Take what classes lack from combinations that can spare it."""
        rows, of = self._matching(blanked, keys, self._left > 0)
        order = np.argsort(of, kind="stable")
        rows, of, spare = rows[order], of[order], self._left[rows[order]]
        before = np.cumsum(spare) - spare
        first = np.searchsorted(of, np.arange(len(keys)))
        taken = np.clip(lacking[of] - (before - before[first[of]]), 0, spare)
        used = taken > 0
        self._left[rows[used]] -= taken[used]
        self._put(rows[used], blanked, taken[used], keys[of[used]])

    def _draft(self, open_: Integers) -> Integers:
        """Blank all columns of the rest and, until that is enough, of the smallest others."""
        cells, still = self._cells, np.ones(len(open_), np.bool_)
        for some, blanked in self._by_blanks(open_, np.ones(len(cells.costs), np.bool_)):
            under = self._under(open_[some], blanked)
            for key in np.unique(under):
                rows = open_[some[under == key]]
                lacking = int(cells.need[rows].max() - cells.counts[rows].sum())
                if self._move(blanked, key, lacking, ~np.isin(np.arange(len(cells.codes)), open_)):
                    self._put(rows, blanked, cells.counts[rows], np.full(len(rows), key))
                    still[some[under == key]] = False
        return open_[still]

    def _move(self, blanked: Flags, key: np.uint64, lacking: int, others: Flags) -> bool:
        """Put whole combinations and classes into a class, the smallest first."""
        rows, _ = self._matching(blanked, np.array([key]), others)
        matched = np.isin(self.placed.combinations, rows)
        lacking -= int(self.placed.records[matched & (self.placed.keys == key)].sum())
        records = self._cells.counts.copy()
        np.subtract.at(records, self.placed.combinations, self.placed.records)
        rows = rows[records[rows] > 0]
        matched &= self.placed.keys != key
        classes, of = np.unique(self.placed.keys[matched], return_inverse=True)
        sizes = np.concatenate([records[rows], np.bincount(of, self.placed.records[matched])])
        order = np.argsort(sizes, kind="stable")
        taken = order[: 1 + np.searchsorted(np.cumsum(sizes[order]), lacking)]
        if sizes[taken].sum() < lacking:
            return False
        if lacking > 0:
            moved = np.isin(self.placed.keys, classes[taken[taken >= len(rows)] - len(rows)])
            self.placed.patterns[moved], self.placed.keys[moved] = blanked, key
            rows = rows[taken[taken < len(rows)]]
            self._left[rows] = 0
            self._put(rows, blanked, records[rows], np.full(len(rows), key))
        return True

    def _put(self, rows: Integers, pattern: Flags, records: Integers, keys: Words) -> None:
        """Put records into classes."""
        if len(rows):
            added = _Placed(rows, np.tile(pattern, (len(rows), 1)), records, keys)
            both = zip(self.placed, added, strict=True)
            self.placed = _Placed._make(map(np.concatenate, both))
            self._know(keys, records)

    def _know(self, keys: Words, records: Integers) -> None:
        """Remember how many records classes have."""
        keys, records = np.append(self._known, keys), np.append(self._sizes, records)
        self._known, of = np.unique(keys, return_inverse=True)
        self._sizes = np.bincount(of, records).astype(np.int64)

    def _held(self, keys: Words) -> Integers:
        """How many records classes of these keys have already."""
        held, found = np.zeros(len(keys), np.int64), _places(self._known, keys)
        held[found >= 0] = self._sizes[found[found >= 0]]
        return held

    def _under(self, rows: Integers, blanked: Flags) -> Words:
        """The keys of combinations if some of their cells are blanked."""
        return self._keys[rows] + self._changes[np.ix_(rows, np.flatnonzero(blanked))].sum(
            axis=1, dtype=np.uint64
        )

    def _matching(self, blanked: Flags, keys: Words, where: Flags) -> tuple[Integers, Integers]:
        """The combinations that can have one of the ascending keys, and the place of that key."""
        rows = np.flatnonzero(where)
        of = _places(keys, self._under(rows, blanked))
        return rows[of >= 0], of[of >= 0]

    def _sums(self, blanked: Flags, keys: Words, values: Integers) -> Integers:
        """The sum of the values of all combinations that can have each of the ascending keys."""
        rows, of = self._matching(blanked, keys, values > 0)
        return np.bincount(of, values[rows], len(keys)).astype(np.int64)

    def _by_blanks(
        self, rows: Integers, pattern: Flags, *, anew: bool = False
    ) -> Iterator[tuple[Integers, Flags]]:
        """Which rows have which blanks under a pattern, with those that were there before.

        With ``anew``, without the rows that would lose fewer cells than the pattern has.
        """
        if anew:
            gaps = np.flatnonzero(~(self._gaps & pattern).any(axis=1))
            blanked, label = self._gaps[gaps] | pattern, np.full(len(self._gaps), -1)
            label[gaps] = np.arange(len(gaps))
        else:
            blanked, label = np.unique(self._gaps | pattern, axis=0, return_inverse=True)
        of = label.ravel()[self._gap[rows]]
        for place in np.unique(of[of >= 0]).tolist():
            self.steps += 1
            yield np.flatnonzero(of == place), blanked[place]


def _places(sorted_: Words, keys: Words) -> Integers:
    """Where each key is among the sorted ones; -1 if it is not."""
    if not len(sorted_):
        return np.full(len(keys), -1)
    places = np.minimum(np.searchsorted(sorted_, keys), len(sorted_) - 1)
    return np.where(sorted_[places] == keys, places, -1)
