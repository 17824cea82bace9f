"""Minimal sample uniques if a missing value agrees with every value.

A tuple that is complete on a set of columns agrees there with its equals, and with every tuple
that has some of its values missing: with k columns these are 2ᵏ keys, looked up in a hash table of
all tuples on the set. A tuple with a missing value in a set is alone on the set exactly if it is
alone without that column, so none of its sets with a missing value is minimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.arrays import Codes, Flags, Floats
from shoal.kernels.compile import njit
from shoal.kernels.grouping import _SALT, _mixed
from shoal.kernels.uniques.minimal_uniques import MinimalUniques, by_size, note_minimal, place_of


def wildcard_uniques(
    codes: Codes, missing: Codes, single: Flags, size: int, weights: Floats, owners: Codes
) -> MinimalUniques:
    """Find all minimal sets of up to ``size`` columns on which a tuple agrees with no other.

    Parameters are those of :func:`~shoal.kernels.uniques.minimal_uniques.minimal_uniques`, with at
    least two tuples, and ``missing`` of shape (columns,): the code of a missing value in each
    column; -1 if nothing is missing.
    """
    result = MinimalUniques.nothing(codes, size)
    slots = np.zeros(1 << (2 * codes.shape[1] - 1).bit_length(), np.int32)
    for sets in by_size(codes, single, size, weights, owners, result):
        _look_at(sets, missing, slots, _SALT)
    return result


@njit(cache=True)
def _look_at(sets: Any, missing: Any, slots: Any, salt: np.uint64) -> None:
    """All sets of one size."""
    codes, before, alone = sets.codes, sets.before, sets.alone
    columns, tuples = codes.shape
    table = slots, np.empty(tuples, np.int32), salt  # keys and their owners
    path = np.arange(sets.size)
    parts = np.empty(sets.size, np.int64)
    while True:
        _note_keys(codes, sets.owners, path, table)
        own = place_of(sets, path, parts)
        for row in range(tuples):
            if not sets.single[row] or _lacks(codes, missing, path, row):
                continue
            word, bit = row >> 6, np.uint64(1) << np.uint64(row & 63)
            known = False
            for part in parts:
                known |= before[part, word] & bit != 0
            if not known:
                if _is_met(codes, missing, path, row, sets.owners[row], table):
                    continue
                note_minimal(sets, path, row)
            alone[own, word] |= bit
        if not _advance(path, columns):
            return


@njit(cache=True)
def _advance(path: Any, columns: int) -> bool:
    """The next set with as many columns; False after the last."""
    size = len(path)
    at = size - 1
    while at >= 0 and path[at] == columns - size + at:
        at -= 1
    if at < 0:
        return False
    path[at] += 1
    for later in range(at + 1, size):
        path[later] = path[later - 1] + 1
    return True


@njit(cache=True)
def _lacks(codes: Any, missing: Any, path: Any, row: int) -> bool:
    for column in path:
        if codes[column, row] == missing[column]:
            return True
    return False


@njit(cache=True)
def _note_keys(codes: Any, owners: Any, path: Any, table: Any) -> None:
    """Fill the table with the first tuple of each key, and the key's owner: -1 if several."""
    slots, holders, salt = table
    slots[:] = 0
    key = np.empty(len(path), np.int32)
    for row in range(len(holders)):
        for at in range(len(path)):
            key[at] = codes[path[at], row]
        slot = _find(codes, path, key, slots, salt)
        if slots[slot] == 0:
            slots[slot] = row + 1
            holders[row] = owners[row]
        elif holders[slots[slot] - 1] != owners[row]:
            holders[slots[slot] - 1] = -1


@njit(cache=True)
def _is_met(codes: Any, missing: Any, path: Any, row: int, owner: int, table: Any) -> bool:
    """Whether another person's tuple has the values of a complete one, or misses some of them."""
    slots, holders, salt = table
    size = len(path)
    key = np.empty(size, np.int32)
    for pattern in range(1 << size):
        possible = True
        for at in range(size):
            gap = pattern >> at & 1
            possible &= not gap or missing[path[at]] >= 0
            key[at] = missing[path[at]] if gap else codes[path[at], row]
        if possible:
            held = slots[_find(codes, path, key, slots, salt)] - 1
            if held >= 0 and holders[held] != owner:
                return True
    return False


@njit(cache=True)
def _find(codes: Any, path: Any, key: Any, slots: Any, salt: np.uint64) -> Any:
    """The slot of a key, or the empty slot for it."""
    hashed = salt
    for code in key:
        hashed = (hashed + np.uint64(code)) * (salt | np.uint64(1))
    mask = len(slots) - 1
    slot = np.int64(_mixed(hashed) & np.uint64(mask))
    while slots[slot] != 0:
        held = slots[slot] - 1
        same = True
        for at in range(len(path)):
            same &= codes[path[at], held] == key[at]
        if same:
            break
        slot = (slot + 1) & mask
    return slot
