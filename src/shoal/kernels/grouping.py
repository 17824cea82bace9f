"""Group records by equal keys, and count them where a missing value matches everything.

Equal keys are found with an open-addressing hash table. A slot is one 64-bit word: 24 bits of the
key's hash and, below, the number of the group plus one (0 is an empty slot). Those 24 bits nearly
always decide a probe that meets another key, so the table is the only memory accessed at
random; at most 5/8 of its slots are taken. Keys from a small range index a table directly.

No result depends on the salt of the hash: groups are numbered by first appearance. The salt is
drawn once per process so that nobody can craft data whose keys collide.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers, Keys, Words
from shoal.kernels.compile import is_small, njit

Labels = npt.NDArray[np.signedinteger[Any]]
Tuples = npt.NDArray[np.uint32]

WILDCARD = 2**32 - 1
"""The code that matches every other code in :func:`wildcard_totals`."""

_SALT = np.uint64(int.from_bytes(os.urandom(8), "little"))
_LABEL = np.uint64(2**40 - 1)
_TAG = np.uint64(2**64 - 2**40)
_ONE = np.uint64(1)
_FIRST_SLOTS = 2**12
_SMALL_RANGE = 2**16
_NARROW = 2  # bytes of codes that numpy would widen to count them
_FEW_KEYS = 2**12  # sorting so many is fast, and too many of them can share a place by chance
_SORT_COST = 16  # the cost of one key that numpy sorts, in steps of :func:`is_small`
_HASH_COST = 8  # the cost of one hashed tuple, in comparisons of two tuples


def dense_labels(keys: Keys) -> tuple[Labels, int]:
    """The group of each key, numbered from 0 by first appearance, and the number of groups."""
    labels, sizes = group(keys)
    return labels, len(sizes)


def group(keys: Keys) -> tuple[Labels, Integers]:
    """The group of each key, numbered from 0 by first appearance, and the size of each group."""
    labels = np.empty(len(keys), _label_type(len(keys)))
    return labels, _group_into(keys, labels)


def all_differ(keys: Keys) -> bool:
    """Whether no two keys are equal; if so, much cheaper than :func:`group`.

    Examples
    --------
    >>> all_differ(np.array([3, 1, 2], np.uint64)), all_differ(np.array([3, 1, 3], np.uint64))
    (True, False)
    """
    rows = len(keys)
    if rows <= _FEW_KEYS or is_small(_SORT_COST * rows):
        return len(np.unique(keys)) == rows
    # Sixteen places per key: few keys share one, and only those can be equal.
    words = np.zeros((2, 1 << max(rows // 4 - 1, 1).bit_length()), np.uint64)
    sharing = _sharing_a_place(_read_only(keys), words, rows // 4, _SALT)
    return len(sharing) <= rows // 4 and len(np.unique(sharing)) == len(sharing)


def count_sizes(keys: Keys) -> Integers:
    """The size of each group of equal keys, by first appearance, without creating labels."""
    return _group_into(keys, None)


def counts_of(codes: npt.NDArray[np.unsignedinteger[Any]], count: int) -> Integers:
    """How often each number below ``count`` occurs among the codes."""
    if is_small(len(codes)) or codes.dtype.itemsize > _NARROW:
        return np.bincount(codes, minlength=count).astype(np.int64, copy=False)
    counts: Integers = _counts_of(_read_only(codes), np.zeros(count, np.int64))
    return counts


@njit(cache=True)
def _counts_of(codes: npt.NDArray[np.unsignedinteger[Any]], counts: Integers) -> Integers:
    for row in range(len(codes)):
        counts[codes[row]] += 1
    return counts


def wildcard_totals(tuples: Tuples, starts: Integers, blocks: Integers, weights: Floats) -> Floats:
    """For each tuple, the weight of all that agree with it wherever neither has a wildcard.

    Tuples are distinct. Run r is ``tuples[starts[r]:starts[r + 1]]``, with the wildcards in the
    same columns; ``blocks`` has the block of each run, ascending. Tuples of different blocks never
    agree; runs of one block differ in their wildcards.
    """
    return _wildcard_totals(tuples, starts, blocks, weights, _SALT, False)


def wildcard_largest(tuples: Tuples, starts: Integers, blocks: Integers, values: Floats) -> Floats:
    """Like :func:`wildcard_totals`, with the largest of the values instead of their sum."""
    return _wildcard_totals(tuples, starts, blocks, values, _SALT, True)


def wildcard_matches(tuples: Tuples, starts: Integers, seeks: Flags, weights: Floats) -> Floats:
    """For each tuple of the runs that seek, the weight of all tuples of other runs that agree.

    Runs are as in :func:`wildcard_totals`, in one block. Runs that seek do not meet each other.
    """
    return _wildcard_matches(tuples, starts, seeks, weights, _SALT)


def _label_type(rows: int) -> type[np.signedinteger[Any]]:
    return np.int32 if rows < 2**31 else np.int64


def _group_into(keys: Keys, labels: Labels | None) -> Integers:
    """Fill ``labels``, if passed, and return the sizes."""
    rows = len(keys)
    if is_small(_SORT_COST * rows):
        return _group_sorted(keys, labels)
    keys = _read_only(keys)
    # As long as there can be groups: pages that are never written use no memory.
    sizes = np.zeros(rows, np.int64)
    largest = int(keys.max()) if rows else 0
    if largest < max(_SMALL_RANGE, rows):
        seen = np.zeros(largest + 1, _label_type(rows))
        return _trimmed(sizes, _group_direct(keys, labels, sizes, seen))
    group_keys = np.empty(rows, np.uint64)
    slots = np.zeros(_FIRST_SLOTS, np.uint64)
    row = count = 0
    while True:
        row, count = _group_hashed(keys, labels, sizes, slots, group_keys, row, count, _SALT)
        if row == rows:
            return _trimmed(sizes, count)
        slots = np.zeros(_grown(len(slots), count + rows - row), np.uint64)
        _refill(slots, group_keys, count, _SALT)


def _group_sorted(keys: Keys, labels: Labels | None) -> Integers:
    """The same by sorting, for few keys."""
    _, first, inverse, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    if labels is not None:
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        labels[:] = number[inverse]
    return sizes[order].astype(np.int64)


def _read_only(array: Any) -> Any:
    """The same array with one type: numba would compile again for writable arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def _trimmed(sizes: Integers, count: int) -> Integers:
    """The first ``count`` sizes; copied if that frees more memory than it uses."""
    return sizes[:count] if 2 * count > len(sizes) else sizes[:count].copy()


def _grown(slots: int, most_groups: int) -> int:
    """Four times the slots, or twice if that is enough for all possible groups."""
    return slots * 2 if slots * 2 // 8 * 5 >= most_groups else slots * 4


def first_rows(labels: Labels, count: int) -> Integers:
    """The first row of each group, for labels numbered by first appearance."""
    if is_small(len(labels)):
        new = np.diff(np.maximum.accumulate(labels), prepend=-1)
        return np.flatnonzero(new)[:count]
    return _first_rows(_read_only(labels), count)


def total_by(labels: Labels, count: int, values: Floats) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(labels, values, count).astype(np.float64)


@njit(cache=True)
def _first_rows(labels: Labels, count: int) -> Integers:
    rows = np.empty(count, np.int64)
    found = 0
    for row in range(len(labels)):
        if labels[row] == found:
            rows[found] = row
            found += 1
    return rows


@njit(cache=True)
def _mixed(key: np.uint64) -> np.uint64:
    """Every bit of the key moves every bit of the hash (the finalizer of SplitMix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@njit(cache=True)
def _sharing_a_place(keys: Keys, words: Words, most: int, salt: np.uint64) -> Keys:
    """The keys whose hash leads to a place that another key shares; a place is a bit.

    If there are more than ``most``, which happens only with equal keys, any larger number of them.
    """
    taken, shared = words
    places = np.uint64(64 * len(taken) - 1)
    low = np.uint64(63)
    found = 0
    for row in range(len(keys)):
        place = _mixed(keys[row] ^ salt) & places
        word, bit = place >> np.uint64(6), _ONE << (place & low)
        if taken[word] & bit:
            found += 2 - int(shared[word] & bit != 0)
            shared[word] |= bit
            if found > most:
                return np.empty(found, np.uint64)
        else:
            taken[word] |= bit
    sharing = np.empty(found, np.uint64)
    found = 0
    for row in range(len(keys)):
        place = _mixed(keys[row] ^ salt) & places
        if shared[place >> np.uint64(6)] & (_ONE << (place & low)):
            sharing[found] = keys[row]
            found += 1
    return sharing


@njit(cache=True)
def _group_direct(keys: Keys, labels: Labels | None, sizes: Integers, seen: Labels) -> int:
    """Group keys below ``len(seen)``; ``seen`` holds the number of the group plus one."""
    count = 0
    for row in range(len(keys)):
        label = seen[keys[row]] - 1
        if label < 0:
            label = count
            count += 1
            seen[keys[row]] = count
        sizes[label] += 1
        if labels is not None:
            labels[row] = label
    return count


@njit(cache=True)
def _group_hashed(
    keys: Keys,
    labels: Labels | None,
    sizes: Integers,
    slots: Keys,
    group_keys: Keys,
    row: int,
    count: int,
    salt: np.uint64,
) -> tuple[int, int]:
    """Group from ``row`` on, until the keys end or the table is full; return (row, groups)."""
    mask = np.uint64(len(slots) - 1)
    limit = len(slots) // 8 * 5
    while row < len(keys):
        key = keys[row]
        hashed = _mixed(key ^ salt)
        tag = hashed & _TAG
        at = hashed & mask
        while True:
            slot = slots[at]
            if slot == 0:
                if count == limit:
                    return row, count
                label = count
                group_keys[label] = key
                count += 1
                slots[at] = tag | np.uint64(count)
                break
            if slot & _TAG == tag:
                label = int(slot & _LABEL) - 1
                if group_keys[label] == key:
                    break
            at = (at + _ONE) & mask
        sizes[label] += 1
        if labels is not None:
            labels[row] = label
        row += 1
    return row, count


@njit(cache=True)
def _refill(slots: Keys, group_keys: Keys, count: int, salt: np.uint64) -> None:
    """Put all groups so far into a larger, empty table."""
    mask = np.uint64(len(slots) - 1)
    for label in range(count):
        hashed = _mixed(group_keys[label] ^ salt)
        at = hashed & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = (hashed & _TAG) | np.uint64(label + 1)


@njit(cache=True)
def _joined(one: float, other: float, largest: bool) -> float:
    return max(one, other) if largest else one + other


@njit(cache=True)
def _wildcard_totals(
    tuples: Tuples,
    starts: Integers,
    blocks: Integers,
    weights: Floats,
    salt: np.uint64,
    largest: bool,
) -> Floats:
    # A tuple meets itself once; others of its run differ from it where both have a value.
    totals = weights.copy()
    for this in range(len(blocks)):
        other = this + 1
        while other < len(blocks) and blocks[other] == blocks[this]:
            _meet_runs(tuples, starts, this, other, weights, totals, salt, largest)
            other += 1
    return totals


@njit(cache=True)
def _wildcard_matches(
    tuples: Tuples, starts: Integers, seeks: Flags, weights: Floats, salt: np.uint64
) -> Floats:
    totals = np.zeros(len(tuples))
    for this in range(len(seeks)):
        for other in range(len(seeks)):
            if seeks[this] and not seeks[other]:
                _meet_runs(tuples, starts, this, other, weights, totals, salt, False)
    return totals


@njit(cache=True)
def _meet_runs(
    tuples: Tuples,
    starts: Integers,
    this: int,
    other: int,
    weights: Floats,
    totals: Floats,
    salt: np.uint64,
    largest: bool,
) -> None:
    """Let two runs meet, in the cheaper way."""
    near, near_end = starts[this], starts[this + 1]
    far, far_end = starts[other], starts[other + 1]
    if near_end - near > far_end - far:
        near, near_end, far, far_end = far, far_end, near, near_end
    runs = near, near_end, far, far_end
    few, many = near_end - near, far_end - far
    if few * many <= _HASH_COST * (few + many):
        _meet_each(tuples, runs, weights, totals, largest)
        return
    columns = np.empty(tuples.shape[1], np.int64)
    shared = 0
    for column in range(tuples.shape[1]):
        if tuples[near, column] != WILDCARD and tuples[far, column] != WILDCARD:
            columns[shared] = column
            shared += 1
    _meet_hashed(tuples, columns[:shared], runs, weights, totals, salt, largest)


@njit(cache=True)
def _meet_each(tuples: Tuples, runs: Any, weights: Floats, totals: Floats, largest: bool) -> None:
    """Let every tuple of one run meet every tuple of another."""
    near, near_end, far, far_end = runs
    for a in range(near, near_end):
        for b in range(far, far_end):
            agree = True
            for column in range(tuples.shape[1]):
                left, right = tuples[a, column], tuples[b, column]
                if left != right and left != WILDCARD and right != WILDCARD:
                    agree = False
                    break
            if agree:
                totals[a] = _joined(totals[a], weights[b], largest)
                totals[b] = _joined(totals[b], weights[a], largest)


@njit(cache=True)
def _meet_hashed(
    tuples: Tuples,
    columns: Integers,
    runs: Any,
    weights: Floats,
    totals: Floats,
    salt: np.uint64,
    largest: bool,
) -> None:
    """The same with a hash table of the smaller run, over the columns where both have a value."""
    near, near_end, far, far_end = runs
    size = 16
    while size < 2 * (near_end - near):
        size *= 2
    slots = np.zeros(size, np.uint64)
    leader = np.empty(near_end - near, np.int64)  # the first tuple with the same shared values
    nothing = -np.inf if largest else 0.0
    near_weight = np.full(near_end - near, nothing)
    far_weight = np.full(near_end - near, nothing)
    for a in range(near, near_end):
        at, tag = _find(tuples, columns, near, a, slots, salt)
        if slots[at] == 0:
            slots[at] = tag | np.uint64(a - near + 1)
        leader[a - near] = int(slots[at] & _LABEL) - 1
        first = leader[a - near]
        near_weight[first] = _joined(near_weight[first], weights[a], largest)
    for b in range(far, far_end):
        at, _ = _find(tuples, columns, near, b, slots, salt)
        if slots[at] != 0:
            met = int(slots[at] & _LABEL) - 1
            totals[b] = _joined(totals[b], near_weight[met], largest)
            far_weight[met] = _joined(far_weight[met], weights[b], largest)
    for a in range(near, near_end):
        totals[a] = _joined(totals[a], far_weight[leader[a - near]], largest)


@njit(cache=True)
def _find(
    tuples: Tuples, columns: Integers, near: int, sought: int, slots: Keys, salt: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The slot with the shared values of a tuple, or the empty slot for them."""
    mask = np.uint64(len(slots) - 1)
    hashed = salt
    for column in columns:
        hashed = (hashed + np.uint64(tuples[sought, column])) * (salt | _ONE)
    hashed = _mixed(hashed)
    tag = hashed & _TAG
    at = hashed & mask
    while slots[at] != 0:
        if slots[at] & _TAG == tag:
            held = near + int(slots[at] & _LABEL) - 1
            same = True
            for column in columns:
                if tuples[held, column] != tuples[sought, column]:
                    same = False
                    break
            if same:
                break
        at = (at + _ONE) & mask
    return at, tag
