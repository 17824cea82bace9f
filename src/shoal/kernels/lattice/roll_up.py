"""Group tables of a generalization lattice, each made from a finer one.

A node of the lattice gives each attribute a level of its hierarchy. Its group table lists the
distinct combinations of generalized codes, with the number of records of each. LeFevre, DeWitt
and Ramakrishnan (2005), "Incognito: efficient full-domain k-anonymity": the table of a node comes
from that of any node below it ("roll-up"), so the records are read once.

A combination is a key: each attribute's code has its own bits in a 64-bit word, with as many
words as needed. Groups are numbered by their first distinct tuple, so that the table of a node, and
every sum over it, is the same for every path to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Codes, Floats, Integers, Keys
from shoal.kernels.compile import njit
from shoal.kernels.grouping import _SALT, _mixed

RECORDS, POPULATION = 0, 1  # columns of ``Groups.weights``


class Base(NamedTuple):
    """The distinct combinations of values of a table, each once.

    ``counts`` may be 0 for combinations that only a population has; ``population`` is all zeros
    if there is none. Sensitive values come as distinct pairs: ``pair_codes[s, i]`` is the
    value of sensitive column s, ``pair_counts[i]`` the records of tuple ``pair_tuple[i]`` with
    these values. There are no pairs if no condition needs them.
    these values. There are no pairs where no condition needs them.
    """

    tuples: Codes
    counts: Integers
    population: Integers
    pair_tuple: Codes
    pair_codes: Codes
    pair_counts: Integers


class Coding(NamedTuple):
    """How keys are packed, and the result of a code at a level.

    ``to_level[j, l]`` is where the codes of attribute j's values at level l start in ``flat``;
    ``one_up[j, l]`` is where those of the level-l codes one level up start; ``at_level[j, l]`` is
    where the facts about each level-l code start in ``leaves``, and at ``at_level[j, l + 1]``
    they end.
    """

    words: Integers
    shifts: Keys
    masks: Keys
    flat: Codes
    to_level: Integers
    one_up: Integers
    at_level: Integers
    leaves: Floats  # values of the hierarchy under each code


class Groups(NamedTuple):
    """The group table of a node; pairs are (group, sensitive column × values + value)."""

    keys: Keys
    weights: Integers  # of shape (groups, 2): records and population
    pair_group: Codes
    pair_value: Codes
    pair_counts: Integers


class Slots:
    """The memory of a hash table, used for successive merges without being cleared."""

    def __init__(self, entries: int) -> None:
        size = 16
        while size < 2 * entries:
            size *= 2
        self.words = np.zeros(size, np.uint64)
        self.turn = 0

    def next_turn(self) -> int:
        """A number that marks the entries of this merge; all older entries become invalid."""
        self.turn += 1
        if self.turn == 2**32:
            self.words[:] = 0
            self.turn = 1
        return self.turn


def coding(maps: Sequence[Codes], leaves: Sequence[Floats]) -> Coding:
    """Pack as many attributes into a word as fit, and lay out all levels in one array.

    ``maps[j][l, v]`` is the code of value v at level l, in any numbering; level 0 is the value.
    """
    levels = max((len(steps) for steps in maps), default=1)
    words, shifts, masks = _packing([steps.shape[1] for steps in maps])
    to_level, one_up = (np.zeros((len(maps), levels), np.int64) for _ in range(2))
    at_level = np.zeros((len(maps), levels + 1), np.int64)
    flat: list[npt.NDArray[Any]] = []
    known: list[Floats] = []
    written = held = 0
    for j, steps in enumerate(maps):
        dense, firsts = _dense(steps)
        for level, codes in enumerate(dense):
            to_level[j, level] = written
            flat.append(codes)
            written += len(codes)
            one_up[j, level] = written
            if level + 1 < len(dense):
                above = dense[level + 1][firsts[level]]
                if not np.array_equal(above[codes], dense[level + 1]):
                    raise ValueError(f"The levels of attribute {j} do not nest.")
                flat.append(above)
                written += len(above)
            at_level[j, level] = held
            known.append(np.asarray(leaves[j][level], np.float64)[firsts[level]])
            held += len(firsts[level])
        at_level[j, len(dense) :] = held
    return Coding(
        words,
        shifts,
        masks,
        np.concatenate(flat).astype(np.int32) if flat else np.empty(0, np.int32),
        to_level,
        one_up,
        at_level,
        np.concatenate(known) if known else np.empty(0),
    )


def _packing(values: Sequence[int]) -> tuple[Integers, Keys, Keys]:
    """The word, shift and mask of each attribute; none crosses a word boundary."""
    words, shifts, masks = [], [], []
    word = used = 0
    for count in values:
        bits = max(1, (count - 1).bit_length())
        if used + bits > 64:
            word, used = word + 1, 0
        words.append(word)
        shifts.append(used)
        masks.append(2**bits - 1)
        used += bits
    return np.array(words, np.int64), np.array(shifts, np.uint64), np.array(masks, np.uint64)


def _dense(steps: Codes) -> tuple[list[npt.NDArray[Any]], list[Integers]]:
    """The codes of each level numbered from 0, and a value with each code; level 0 unchanged."""
    dense: list[npt.NDArray[Any]] = [np.arange(steps.shape[1])]
    firsts = [np.arange(steps.shape[1])]
    for codes in steps[1:]:
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        dense.append(inverse)
        firsts.append(first)
    return dense, firsts


def packed_keys(tuples: Codes, code: Coding) -> Keys:
    """Tuples of codes as keys, one per row."""
    keys = np.zeros((len(tuples), int(code.words.max(initial=0)) + 1), np.uint64)
    for j in range(tuples.shape[1]):
        keys[:, code.words[j]] |= tuples[:, j].astype(np.uint64) << code.shifts[j]
    return keys


def bottom(base: Base, code: Coding, values: int) -> Groups:
    """The group table of the node that generalizes nothing; ``values`` per sensitive column."""
    keys = packed_keys(base.tuples, code)
    weights = np.stack([base.counts, base.population], axis=1).astype(np.int64)
    columns = len(base.pair_codes)
    group = np.tile(base.pair_tuple, columns).astype(np.int32)
    offsets = np.arange(columns, dtype=np.int32)[:, None] * np.int32(values)
    value = (base.pair_codes.astype(np.int32) + offsets).ravel().astype(np.int32)
    return Groups(keys, weights, group, value, np.tile(base.pair_counts, columns).astype(np.int64))


def roll_up(groups: Groups, code: Coding, attribute: int, level: int, slots: Slots) -> Groups:
    """The table of the node with one attribute one level further up, from ``level``."""
    changed = np.array([attribute])
    starts = code.one_up[changed, level]
    return _united(groups, recoded(groups.keys, code, changed, starts), slots)


def generalized(
    groups: Groups, code: Coding, below: Integers, levels: Integers, slots: Slots
) -> Groups:
    """The table of any node, from that of a node ``below`` it."""
    return _united(groups, recoded(groups.keys, code, *_steps(code, below, levels)), slots)


def _steps(code: Coding, below: Integers, levels: Integers) -> tuple[Integers, Integers]:
    """Which attributes change from one node to another, and where their new codes start."""
    attributes, starts = [], []
    for j in np.flatnonzero(levels > below):
        if below[j] == 0:
            steps = [code.to_level[j, levels[j]]]
        else:
            steps = list(code.one_up[j, below[j] : levels[j]])
        attributes += [j] * len(steps)
        starts += steps
    return np.array(attributes, np.int64), np.array(starts, np.int64)


class Line:
    """The tables of all levels of one attribute, each made by uniting neighbors of the one before.

    Groups that differ in nothing else are adjacent, in the order of the hierarchy, so nothing has
    to be looked up. Unless it is ``exact``, a group may have several pairs with one value.
    """

    def __init__(
        self, code: Coding, attribute: int, height: int, slots: Slots, *, exact: bool
    ) -> None:
        self._code, self._attribute, self._slots = code, attribute, slots
        self._exact = exact
        word, shift, mask = code.words[attribute], code.shifts[attribute], code.masks[attribute]
        self._word, self._shift, self._mask = int(word), shift, mask
        values = int(code.at_level[attribute, 1] - code.at_level[attribute, 0])
        starts = code.to_level[attribute, : height + 1]
        down = np.lexsort([code.flat[start : start + values] for start in starts])
        self._place = np.empty(values, np.uint64)  # of each value in the order of the hierarchy
        self._place[down] = np.arange(values, dtype=np.uint64)

    def start(self, groups: Groups, below: Integers, levels: Integers) -> Groups:
        """The table of a node with the attribute at level 0, from that of a node below it."""
        keys = recoded(groups.keys, self._code, *_steps(self._code, below, levels))
        order = self._order(keys)
        pairs = groups.pair_group
        if len(pairs):
            moved = np.empty(len(order), np.int32)
            moved[order] = np.arange(len(order), dtype=np.int32)
            pairs = moved[pairs]
        weights = groups.weights.take(order, axis=0)
        return self._united(Groups(keys, weights, pairs, *groups[3:]), keys.take(order, axis=0))

    def roll_up(self, groups: Groups, level: int) -> Groups:
        """The next table, with the attribute one level up from ``level``."""
        changed = np.array([self._attribute])
        starts = self._code.one_up[changed, level]
        return self._united(groups, recoded(groups.keys, self._code, changed, starts))

    def _order(self, keys: Keys) -> npt.NDArray[np.intp]:
        word, one = keys[:, self._word], np.uint64(1)
        own = self._place.take(((word >> self._shift) & self._mask).astype(np.int64))
        bits = np.uint64(int(self._mask).bit_length())
        above = (word >> self._shift >> bits) << self._shift  # in two steps: bits may be all 64
        last = (above | word & ((one << self._shift) - one)) << bits | own
        others = [keys[:, other] for other in range(keys.shape[1]) if other != self._word]
        return np.lexsort([last, *others]) if others else np.argsort(last)

    def _united(self, groups: Groups, keys: Keys) -> Groups:
        keys, weights, labels = _neighbours_united(keys, groups.weights)
        if self._exact or 2 * len(keys) <= len(labels):
            return _with_pairs(groups, keys, weights, labels, self._slots)
        return Groups(keys, weights, labels[groups.pair_group], *groups[3:])


def projected(groups: Groups, code: Coding, attributes: Integers, slots: Slots) -> Groups:
    """The table of some attributes only; the others act as if they had one value."""
    seen = np.zeros(groups.keys.shape[1], np.uint64)
    for j in attributes:
        seen[code.words[j]] |= code.masks[j] << code.shifts[j]
    return _united(groups, groups.keys & seen, slots)


def _united(groups: Groups, keys: Keys, slots: Slots) -> Groups:
    """The table with the keys of its groups replaced, and equal ones united."""
    keys, weights, labels = merge(keys, groups.weights, slots.words, slots.next_turn(), _SALT)
    return _with_pairs(groups, keys, weights, labels, slots)


def _with_pairs(
    groups: Groups, keys: Keys, weights: Integers, labels: Codes, slots: Slots
) -> Groups:
    """A table with the pairs of a finer one, whose groups got these labels."""
    if not len(groups.pair_group):
        return Groups(keys, weights, *groups[2:])
    pairs = _pair_keys(groups.pair_group, groups.pair_value, labels)
    counts = groups.pair_counts.reshape(-1, 1)
    pairs, counts, _ = merge(pairs, counts, slots.words, slots.next_turn(), _SALT)
    group, value = _pairs_of(pairs)
    return Groups(keys, weights, group, value, counts.ravel())


@njit(cache=True)
def recoded(keys: Keys, code: Coding, changed: Integers, starts: Integers) -> Keys:
    """Keys with some attributes' codes replaced, one after the other."""
    result, flat = keys.copy(), code.flat
    for i in range(len(changed)):
        j = changed[i]
        word, shift, mask, start = code.words[j], code.shifts[j], code.masks[j], starts[i]
        clear = ~(mask << shift)
        for row in range(len(keys)):
            new = np.uint64(flat[start + np.int64((result[row, word] >> shift) & mask)])
            result[row, word] = (result[row, word] & clear) | (new << shift)
    return result


@njit(cache=True)
def merge(
    keys: Keys, weights: Integers, slots: Keys, turn: int, salt: np.uint64
) -> tuple[Keys, Integers, Codes]:
    """Unite equal keys and add their weights, in order of first appearance.

    A slot holds the turn and, below it, the number of the entry. All hashes are computed first:
    they do not wait for memory, so the slots of many rows are loaded at once.
    """
    rows, width = keys.shape
    size = 16
    while size < 2 * rows:
        size *= 2
    last = np.uint64(size - 1)
    mark = np.uint64(turn) << np.uint64(32)
    low = np.uint64(2**32 - 1)
    merged = np.empty_like(keys)
    sums = np.empty_like(weights)
    labels = np.empty(rows, np.int32)  # first the hash
    for row in range(rows):
        hashed = _mixed(keys[row, 0] ^ salt)
        for word in range(1, width):
            hashed = _mixed(keys[row, word] ^ hashed)
        labels[row] = np.int32(hashed & last)
    count = 0
    for row in range(rows):
        at = np.uint64(np.uint32(labels[row]))
        while True:
            slot = slots[at]
            if slot < mark:  # empty, or from an older turn
                slots[at] = mark | np.uint64(count)
                for word in range(width):
                    merged[count, word] = keys[row, word]
                for column in range(weights.shape[1]):
                    sums[count, column] = weights[row, column]
                labels[row] = count
                count += 1
                break
            entry = np.int64(slot & low)
            same = True
            for word in range(width):
                same &= merged[entry, word] == keys[row, word]
            if same:
                for column in range(weights.shape[1]):
                    sums[entry, column] += weights[row, column]
                labels[row] = entry
                break
            at = (at + np.uint64(1)) & last
    if 2 * count > rows:
        return merged[:count], sums[:count], labels
    return merged[:count].copy(), sums[:count].copy(), labels


@njit(cache=True)
def _neighbours_united(keys: Keys, weights: Integers) -> tuple[Keys, Integers, Codes]:
    """The result of :func:`merge` if equal keys are adjacent."""
    rows, width = keys.shape
    merged, sums = np.empty_like(keys), np.empty_like(weights)
    labels = np.empty(rows, np.int32)
    count = 0
    for row in range(rows):
        same = row > 0
        for word in range(width):
            same &= keys[row, word] == keys[row - same, word]
        if not same:
            for word in range(width):
                merged[count, word] = keys[row, word]
            for column in range(weights.shape[1]):
                sums[count, column] = 0
            count += 1
        for column in range(weights.shape[1]):
            sums[count - 1, column] += weights[row, column]
        labels[row] = count - 1
    if 2 * count > rows:
        return merged[:count], sums[:count], labels
    return merged[:count].copy(), sums[:count].copy(), labels


@njit(cache=True)
def _pair_keys(group: Codes, value: Codes, labels: Codes) -> Keys:
    keys = np.empty((len(group), 1), np.uint64)
    for i in range(len(group)):
        keys[i, 0] = (np.uint64(labels[group[i]]) << np.uint64(32)) | np.uint64(value[i])
    return keys


@njit(cache=True)
def _pairs_of(keys: Keys) -> tuple[Codes, Codes]:
    group, value = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        group[i] = np.int32(keys[i, 0] >> np.uint64(32))
        value[i] = np.int32(keys[i, 0] & np.uint64(2**32 - 1))
    return group, value
