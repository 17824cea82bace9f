"""Records in the order of the leaves of a kd-tree: near in space means near in the order.

Each part is cut across its longest side, down to leaves of equal size. Every cut falls on a power
of two of leaves, so that any aligned run of 2, 4, 8, 16, … leaves is one box of the tree, and the
tree needs no pointers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Keys, Rows, Singles
from shoal.kernels.compile import njit

_SIGN = np.uint64(0x80000000)
_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SAMPLE = 32


def kd_order(copies: Singles, leaf: int) -> Rows:
    """The rows of ``copies`` in the order of kd-tree leaves of ``leaf`` rows each."""
    order = np.arange(len(copies), dtype=np.int32)
    _cut_all(copies, copies.view(np.uint32), order, np.empty(len(copies), np.uint64), leaf)
    return order


@njit(cache=True)
def _cut_all(
    copies: Singles, bits: npt.NDArray[np.uint32], order: Rows, keys: Keys, leaf: int
) -> None:
    starts = np.empty(64, np.int64)
    ends = np.empty(64, np.int64)
    starts[0], ends[0] = 0, len(order)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        start, end = starts[waiting], ends[waiting]
        leaves = (end - start + leaf - 1) // leaf
        if leaves <= 1:
            continue
        left = 1
        while 2 * left < leaves:
            left *= 2
        middle = start + left * leaf
        _cut(copies, bits, order[start:end], keys, left * leaf)
        starts[waiting], ends[waiting] = middle, end
        starts[waiting + 1], ends[waiting + 1] = start, middle
        waiting += 2


@njit(cache=True)
def _cut(copies: Singles, bits: npt.NDArray[np.uint32], order: Rows, keys: Keys, rank: int) -> None:
    """Move the ``rank`` lowest along the longest side to the front; ties by row."""
    column = _longest_side(copies, order)
    for i in range(len(order)):
        word = np.uint64(bits[order[i], column])
        # Order-preserving: negative floats have all bits inverted, others only the sign.
        word ^= _WORD if word & _SIGN else _SIGN
        keys[i] = word << _HALF | np.uint64(order[i])
    _select(keys, len(order), rank)
    for i in range(len(order)):
        order[i] = np.int32(keys[i] & _WORD)


@njit(cache=True)
def _longest_side(copies: Singles, order: Rows) -> int:
    """The column with the widest range, on a sample."""
    step = max(1, len(order) // (4 * _SAMPLE))
    best, widest = 0, np.float32(-1)
    for column in range(copies.shape[1]):
        low = high = copies[order[0], column]
        for i in range(step, len(order), step):
            value = copies[order[i], column]
            low = min(low, value)
            high = max(high, value)
        if high - low > widest:
            best, widest = column, high - low
    return best


@njit(cache=True)
def _select(keys: Keys, size: int, rank: int) -> None:
    """Put the ``rank`` lowest keys first. Keys differ, since a row is part of each."""
    low, high = 0, size
    sample = np.empty(_SAMPLE, np.uint64)
    while high - low > _SAMPLE:
        step = (high - low) // _SAMPLE
        for i in range(_SAMPLE):
            sample[i] = keys[low + i * step]
        _sort(sample)
        pivot = sample[(rank - low) * _SAMPLE // (high - low)]
        at = low
        while keys[at] != pivot:
            at += step
        keys[at], keys[high - 1] = keys[high - 1], pivot
        at = low
        for i in range(low, high - 1):  # no branch: the processor could not predict it
            key = keys[i]
            keys[i] = keys[at]
            keys[at] = key
            at += key < pivot
        keys[at], keys[high - 1] = pivot, keys[at]
        if rank <= at:
            high = at
        else:
            low = at + 1
        if rank == low or rank == high:
            return
    _sort(keys[low:high])


@njit(cache=True)
def _sort(keys: Keys) -> None:
    for i in range(1, len(keys)):
        key = keys[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
