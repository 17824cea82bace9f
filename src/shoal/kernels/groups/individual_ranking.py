"""Individual ranking: a column sorted, and cut into groups of k neighbouring ranks.

The sort is a radix sort from the lowest digit up, on bits that order as the values do. It keeps
equal values in the order of their rows, and it is faster than a comparison sort of as many
values: numpy's argsort is not the floor. A digit that is the same in all values is skipped,
which leaves a column of small whole numbers with one or two passes instead of six.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit

Column = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

_DIGIT = 11  # bits; the 2,048 counters of a pass stay in the first-level cache
_DIGITS = 6
_SIGN = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_MASK = np.uint64((1 << _DIGIT) - 1)


def stable_argsort(values: Column) -> Rows:
    """The rows in the order of their values, equal values by row.

    Examples
    --------
    >>> stable_argsort(np.array([2.5, -1.0, 0.0, -1.0, -0.0])).tolist()
    [1, 3, 2, 4, 0]
    """
    bits = np.ascontiguousarray(values).view(np.uint64)
    counts = np.zeros((_DIGITS, 1 << _DIGIT), np.int64)
    order = np.empty(len(bits), np.int32)
    floating = values.dtype == np.float64
    digits = _count(bits, floating, counts)
    if len(digits) == 0:
        order[:] = np.arange(len(bits), dtype=np.int32)
        return order
    # Where there is one pass only, nothing is carried from it to a next one.
    spare = len(bits) if len(digits) > 1 else 0
    keys = np.empty((2, spare), np.uint64)
    rows = np.empty((2, spare), np.int32)
    _first_pass(bits, floating, digits, counts, keys[0], rows[0], order)
    for turn in range(1, len(digits)):
        now, then = (turn + 1) % 2, turn % 2
        last = turn == len(digits) - 1
        _next_pass(
            keys[now],
            rows[now],
            digits[turn],
            counts,
            keys[then],
            order if last else rows[then],
            last,
        )
    return order


def rank_groups(count: int, k: int) -> Integers:
    """Where each of the ``count // k`` groups begins in the sorted rows, then ``count``.

    All groups have k records, but for the one in the middle, which takes the ``count % k`` that
    are left over. The values at both ends differ most from their neighbours: groups there are as
    small as they may be. In the top group of a skewed column a few more would do most harm.

    Examples
    --------
    >>> rank_groups(11, 3).tolist()
    [0, 3, 8, 11]
    """
    groups = count // k
    starts = np.arange(groups + 1, dtype=np.int64) * k
    starts[groups // 2 + 1 :] += count - groups * k
    return starts


def individual_ranking(values: Column, k: int) -> tuple[Rows, Integers]:
    """The rows in the order of their values, and where each rank group begins in it.

    Examples
    --------
    >>> order, offsets = individual_ranking(np.array([9, 1, 5, 2, 8]), 2)
    >>> order.tolist(), offsets.tolist(), labels_of(order, offsets).tolist()
    ([1, 3, 2, 4, 0], [0, 2, 5], [1, 0, 1, 0, 1])
    """
    return stable_argsort(values), rank_groups(len(values), k)


@njit(cache=True)
def labels_of(order: Rows, offsets: Integers) -> Rows:
    """The group of each row, for groups that are runs of ``order``."""
    labels = np.empty(len(order), np.int32)
    for group in range(len(offsets) - 1):
        for place in range(offsets[group], offsets[group + 1]):
            labels[order[place]] = group
    return labels


@njit(cache=True)
def _ordered(bits: np.uint64, floating: bool) -> np.uint64:
    """Bits that order as unsigned integers as the values do; both zeros are one value."""
    if floating:
        if bits == _SIGN:
            return _SIGN
        return bits ^ (_ALL if bits & _SIGN else _SIGN)
    return bits ^ _SIGN


@njit(cache=True)
def _count(bits: Bits, floating: bool, counts: npt.NDArray[np.int64]) -> Integers:
    """Turn ``counts`` into the first place of each digit; give the digits that vary."""
    for row in range(len(bits)):
        key = _ordered(bits[row], floating)
        for digit in range(_DIGITS):
            counts[digit, key & _MASK] += 1
            key >>= np.uint64(_DIGIT)
    varying = np.empty(_DIGITS, np.int64)
    found = 0
    for digit in range(_DIGITS):
        constant = False
        place = 0
        for value in range(1 << _DIGIT):
            many = counts[digit, value]
            constant = constant or many == len(bits)
            counts[digit, value] = place
            place += many
        if not constant:
            varying[found] = digit
            found += 1
    return varying[:found]


@njit(cache=True)
def _first_pass(
    bits: Bits,
    floating: bool,
    digits: Integers,
    counts: npt.NDArray[np.int64],
    keys: Bits,
    rows: Rows,
    order: Rows,
) -> None:
    """Scatter the rows by their lowest varying digit; into ``order`` if it is the only one."""
    places = counts[digits[0]]
    shift = np.uint64(_DIGIT * digits[0])
    alone = len(digits) == 1
    for row in range(len(bits)):
        key = _ordered(bits[row], floating)
        digit = (key >> shift) & _MASK
        place = places[digit]
        places[digit] = place + 1
        if alone:
            order[place] = row
        else:
            keys[place] = key
            rows[place] = row


@njit(cache=True)
def _next_pass(
    keys: Bits,
    rows: Rows,
    digit_number: int,
    counts: npt.NDArray[np.int64],
    keys_out: Bits,
    rows_out: Rows,
    last: bool,
) -> None:
    """Scatter keys and rows by a further digit; the keys are no more needed after the last."""
    places = counts[digit_number]
    shift = np.uint64(_DIGIT * digit_number)
    for at in range(len(keys)):
        key = keys[at]
        digit = (key >> shift) & _MASK
        place = places[digit]
        places[digit] = place + 1
        rows_out[place] = rows[at]
        if not last:
            keys_out[place] = key
