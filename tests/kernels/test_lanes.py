"""Lanes do to sixteen numbers what numpy does to arrays of sixteen."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from numba import njit

from shoal.kernels.lanes import (
    WIDTH,
    bits,
    choose,
    floats,
    greatest,
    integers,
    least,
    load,
    look_up,
    store,
)

GENERATOR = np.random.default_rng(0)
FLOATS = np.stack([GENERATOR.normal(size=(3, WIDTH)).round(1), GENERATOR.normal(size=(3, WIDTH))])
FLOATS[0, 0, :5] = -0.0, 0.0, np.inf, -np.inf, 1e30
FLOATS[0, 1, :5] = 0.0, np.inf, np.inf, 1.0, 1e30
CODES = GENERATOR.integers(0, 2**16, (2, 3, WIDTH)).astype(np.uint16)
CODES[0, 1, ::2] = CODES[0, 0, ::2]


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_arithmetic_of_floats(operation: Any) -> None:
    @njit
    def kernel(array, number, out):  # type: ignore[no-untyped-def]
        left, right = load(array, 0, 0), load(array, 0, 1)
        store(operation(left, right), out, 0, 0)
        store(operation(left, number), out, 0, 1)
        store(operation(number, right), out, 0, 2)

    out = np.empty((1, 3, WIDTH))
    kernel(FLOATS, 0.3, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out[0, 0], operation(FLOATS[0, 0], FLOATS[0, 1]))
        np.testing.assert_array_equal(out[0, 1], operation(FLOATS[0, 0], 0.3))
        np.testing.assert_array_equal(out[0, 2], operation(0.3, FLOATS[0, 1]))


@pytest.mark.parametrize("array", [FLOATS, FLOATS.astype(np.float32), CODES])
@pytest.mark.parametrize(
    "operation", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)
def test_comparisons_and_bits(operation: Any, array: Any) -> None:
    @njit
    def kernel(array, number):  # type: ignore[no-untyped-def]
        left, right = load(array, 0, 0), load(array, 0, 1)
        return (
            bits(operation(left, right)),
            bits(operation(left, number)),
            bits(operation(left, right) & operation(left, number)),
            bits(operation(left, right) | operation(left, number)),
        )

    number = array[0, 0, 7]
    both, one = operation(array[0, 0], array[0, 1]), operation(array[0, 0], number)
    expected = [sum(1 << i for i in np.flatnonzero(x)) for x in (both, one, both & one, both | one)]
    assert list(kernel(array, number)) == expected


def test_counting_conversion_choice_and_absolute_value() -> None:
    @njit
    def kernel(array, codes, out):  # type: ignore[no-untyped-def]
        left, right = load(array, 0, 0), load(array, 0, 1)
        count = integers(3) + (left < right) + (left == right)
        store(floats(count), out, 0, 0)
        store(choose(left < right, left, 7.0), out, 0, 1)
        store(abs(left), out, 0, 2)
        store(floats(load(codes, 0, 0)), out, 0, 3)
        store(floats(left < right), out, 0, 4)

    out = np.empty((1, 5, WIDTH))
    kernel(FLOATS, CODES, out)
    left, right = FLOATS[0, 0], FLOATS[0, 1]
    np.testing.assert_array_equal(out[0, 0], 3 + (left < right) + (left == right))
    np.testing.assert_array_equal(out[0, 1], np.where(left < right, left, 7.0))
    np.testing.assert_array_equal(out[0, 2], np.abs(left))
    assert not np.signbit(out[0, 2]).any()
    np.testing.assert_array_equal(out[0, 3], CODES[0, 0])
    np.testing.assert_array_equal(out[0, 4], left < right)


@pytest.mark.parametrize("array", [FLOATS[1:], FLOATS[1:].astype(np.float32), CODES])
def test_least_and_greatest(array: Any) -> None:
    @njit
    def kernel(array, row):  # type: ignore[no-untyped-def]
        return least(load(array, 0, row)), greatest(load(array, 0, row))

    for row in range(3):
        for shift in range(WIDTH):
            turned = np.roll(array[:1], shift, axis=2).copy()
            assert kernel(turned, row) == (array[0, row].min(), array[0, row].max())


def test_look_up() -> None:
    @njit
    def kernel(table, start, codes, out):  # type: ignore[no-untyped-def]
        store(look_up(table, start, load(codes, 1, 2)), out, 0, 0)

    table, out = GENERATOR.normal(size=2**16 + 5), np.empty((1, 1, WIDTH))
    kernel(table, 5, CODES, out)
    np.testing.assert_array_equal(out[0, 0], table[5 + CODES[1, 2].astype(int)])
    kernel(table, 5, CODES.astype(np.uint32), out)
    np.testing.assert_array_equal(out[0, 0], table[5 + CODES[1, 2].astype(int)])
