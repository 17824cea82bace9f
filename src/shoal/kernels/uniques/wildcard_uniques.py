"""Minimal sample uniques where a missing value agrees with every value.

A tuple that is complete on a set of columns agrees there with its equals, and with every tuple
that has its values with some of them missing: with k columns these are 2ᵏ keys, looked up in a
hash table of all tuples on the set. A tuple with a missing value in a set is alone on it exactly
where it is alone without that column, so no set of its with a missing value is minimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit
from shoal.kernels.grouping import _SALT, _mixed
from shoal.kernels.uniques.minimal_uniques import Codes, Floats, MinimalUniques, binomials_of


def wildcard_uniques(
    codes: Codes,
    missing: Codes,
    single: npt.NDArray[np.bool_],
    size: int,
    weights: Floats,
    owners: Codes | None = None,
) -> MinimalUniques:
    """Find all minimal sets of up to ``size`` columns on which a tuple agrees with no other.

    Parameters
    ----------
    codes : array of shape (columns, tuples)
        At least two different tuples of codes.
    missing : array of shape (columns,)
        The code of a missing value in each column; -1 where nothing is missing.
    single : array of shape (tuples,)
        Whether only one person has the tuple; else it is never alone, but others meet it.
    size : int
        The largest sets to look at, at most as many as there are columns.
    weights : array of shape (size + 1,)
        What a set of each size adds to the score.
    owners : array of shape (tuples,), optional
        A number from 0 on: tuples with the same one are of one person only, and do not meet.
    """
    columns, tuples = codes.shape
    if owners is None:
        owners = np.arange(tuples, dtype=np.int32)
    binomials = binomials_of(columns, size)
    result = MinimalUniques.nothing(columns, tuples, size)
    slots = np.zeros(1 << (2 * tuples - 1).bit_length(), np.int32)
    alone = np.zeros((1, tuples // 64 + 1), np.uint64)
    for k in range(1, size + 1):
        sets = binomials[columns, k] if k < size else 1  # nobody asks for the last ones
        now_alone = np.zeros((sets, alone.shape[1]), np.uint64)
        _sets_of_size(
            codes, missing, single, owners, k, weights[k], binomials, alone, now_alone, slots,
            result, _SALT,
        )  # fmt: skip
        alone = now_alone
    return result


@njit(cache=True)
def _sets_of_size(
    codes: Any,
    missing: Any,
    single: Any,
    owners: Any,
    size: int,
    weight: float,
    binomials: Any,
    before: Any,
    alone: Any,
    slots: Any,
    result: Any,
    salt: np.uint64,
) -> None:
    """All sets of one size; ``before`` marks who is alone on the sets of one column less."""
    columns, tuples = codes.shape
    holders = np.empty(tuples, np.int32)
    path = np.arange(size)
    parts = np.empty(size, np.int64)
    while True:
        _note_keys(codes, owners, path, slots, holders, salt)
        own = _places(path, binomials, parts) if len(alone) > 1 or size > 1 else 0
        for row in range(tuples):
            if not single[row] or _lacks(codes, missing, path, row):
                continue
            word, bit = row >> 6, np.uint64(1) << np.uint64(row & 63)
            known = False
            if size > 1:
                for part in parts:
                    known |= before[part, word] & bit != 0
            if not known:
                if _is_met(codes, missing, path, row, owners[row], slots, holders, salt):
                    continue
                result.found[size] += 1
                result.scores[row] += weight
                if result.smallest[row] == 0:
                    result.smallest[row] = size
                for column in path:
                    result.contributions[row, column] += weight
            if len(alone) > 1:
                alone[own, word] |= bit
        if not _advance(path, columns):
            return


@njit(cache=True)
def _advance(path: Any, columns: int) -> bool:
    """The next set of as many columns; False after the last."""
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
def _places(path: Any, binomials: Any, parts: Any) -> int:
    """The number of the set among those of its size, and of the sets without one of its columns."""
    own = 0
    for left_out in range(len(path)):
        place, rank = 0, 0
        for at in range(len(path)):
            if at != left_out:
                rank += 1
                place += binomials[path[at], rank]
        parts[left_out] = place
        own += binomials[path[left_out], left_out + 1]
    return own


@njit(cache=True)
def _lacks(codes: Any, missing: Any, path: Any, row: int) -> bool:
    for column in path:
        if codes[column, row] == missing[column]:
            return True
    return False


@njit(cache=True)
def _note_keys(
    codes: Any, owners: Any, path: Any, slots: Any, holders: Any, salt: np.uint64
) -> None:
    """Fill the table with the first tuple of each key, and whose the key is: -1 of several."""
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
def _is_met(
    codes: Any,
    missing: Any,
    path: Any,
    row: int,
    owner: int,
    slots: Any,
    holders: Any,
    salt: np.uint64,
) -> bool:
    """Whether a tuple of somebody else has the values of a complete one, or misses some of them."""
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
    """The slot of a key, or the empty slot where it belongs."""
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
