"""Sixteen records, or sixteen boxes, measured against one query at once.

Written in LLVM's vector types, because numba's loop vectorizer does not see that the sixteen lanes
are independent. LLVM turns them into whatever the processor has: one instruction for all sixteen
on AVX-512, four on SSE. Numbers are 32-bit floats: they only decide what need not be looked at
exactly, so every result here is used with the allowance for rounding of ``records``.

A block of records is rows of sixteen values, one row per column. A node is rows too: the lowest
value per column, the highest per column, then the largest squared norm. A lane without a record
holds NaN, which no comparison here accepts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from shoal.kernels.compile import njit

Singles = npt.NDArray[np.float32]

kernel = njit(cache=True, _nrt=False)
"""Compiles a function that makes no array. So none is counted in and out: with arrays in named
tuples numba would do that at every access, which took a quarter of the time."""

inner = njit(cache=False, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for a function that only others call, which compiles faster without its wrappers.

It becomes part of those, and numba does not notice in its cache when only this part was edited:
after an edit, delete ``__pycache__``."""

LANES = 16
FAR = np.float32(1e18)
"""Where an empty box lies: its square is still a number, and beyond every limit."""

_FLOAT = ir.FloatType()
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_FUSED = ("contract",)  # one rounding less where the processor can; the allowance covers both


def aligned(size: int) -> Singles:
    """Room for ``size`` values that starts on a cache line, so that no vector straddles two."""
    room = np.empty(size + LANES, np.float32)
    skip = -room.ctypes.data // room.itemsize % LANES
    return room[skip : skip + size]


def _pointer(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _vector_at(builder: Any, base: Any, start: Any) -> Any:
    return builder.bitcast(builder.gep(base, [start]), _VECTOR.as_pointer())


def _row(builder: Any, base: Any, start: Any, row: Any) -> Any:
    at = builder.add(start, builder.mul(row, ir.Constant(_WORD, LANES)))
    return builder.load(_vector_at(builder, base, at), align=4)


def _spread(builder: Any, value: Any) -> Any:
    """The same value in every lane."""
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, nothing, lanes)


def _choose(builder: Any, comparison: str, left: Any, right: Any) -> Any:
    """Left where the comparison holds, else right."""
    return builder.select(builder.fcmp_ordered(comparison, left, right), left, right)


def _add_product(builder: Any, total: Any, left: Any, right: Any) -> None:
    """Add left * right to the vector that ``total`` points to."""
    product = builder.fmul(left, right, flags=_FUSED)
    builder.store(builder.fadd(builder.load(total), product, flags=_FUSED), total)


def _bits(builder: Any, holds: Any) -> Any:
    return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), _WORD)


def _zeros(builder: Any) -> Any:
    return cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))


@intrinsic
def measure_points(
    typing: Any, values: Any, start: Any, columns: Any, query: Any, near: Any, far: Any, out: Any
) -> Any:
    """Squared distances into ``out``; gives the lanes at most ``near`` or at least ``far``."""
    size, limit = types.int64, types.float32
    signature = types.uint64(values, size, size, query, limit, limit, out)

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kinds = signature.args
        base = _pointer(context, builder, kinds[0], given[0])
        wanted = _pointer(context, builder, kinds[3], given[3])
        kept = _pointer(context, builder, kinds[6], given[6])
        total = _zeros(builder)
        with cgutils.for_range(builder, given[2], intp=_WORD) as loop:
            value = _spread(builder, builder.load(builder.gep(wanted, [loop.index])))
            apart = builder.fsub(_row(builder, base, given[1], loop.index), value)
            _add_product(builder, total, apart, apart)
        distance = builder.load(total)
        builder.store(distance, _vector_at(builder, kept, ir.Constant(_WORD, 0)), align=4)
        is_near = builder.fcmp_ordered("<=", distance, _spread(builder, given[4]))
        is_far = builder.fcmp_ordered(">=", distance, _spread(builder, given[5]))
        return _bits(builder, builder.or_(is_near, is_far))

    return signature, build


@intrinsic
def measure_near_boxes(
    typing: Any, nodes: Any, start: Any, columns: Any, query: Any, near: Any, out: Any
) -> Any:
    """Least squared distance to each box into ``out``; gives the lanes at most ``near``."""
    size = types.int64
    signature = types.uint64(nodes, size, size, query, types.float32, out)

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kinds = signature.args
        base = _pointer(context, builder, kinds[0], given[0])
        wanted = _pointer(context, builder, kinds[3], given[3])
        kept = _pointer(context, builder, kinds[5], given[5])
        total = _zeros(builder)
        with cgutils.for_range(builder, given[2], intp=_WORD) as loop:
            value = _spread(builder, builder.load(builder.gep(wanted, [loop.index])))
            low = _row(builder, base, given[1], loop.index)
            high = _row(builder, base, given[1], builder.add(loop.index, given[2]))
            outside = _choose(builder, ">", builder.fsub(low, value), builder.fsub(value, high))
            outside = _choose(builder, ">", outside, ir.Constant(_VECTOR, [0.0] * LANES))
            _add_product(builder, total, outside, outside)
        distance = builder.load(total)
        builder.store(distance, _vector_at(builder, kept, ir.Constant(_WORD, 0)), align=4)
        is_near = builder.fcmp_ordered("<=", distance, _spread(builder, given[4]))
        return _bits(builder, is_near)

    return signature, build


@intrinsic
def measure_far_boxes(
    typing: Any,
    nodes: Any,
    start: Any,
    columns: Any,
    query: Any,
    lift: Any,
    far: Any,
    out: Any,
) -> Any:
    """Bound on the squared distance to anything in each box; gives the lanes at least ``far``.

    The smaller of two bounds: the furthest corner; and, from |x-q|² = |x|² + |q|² - 2 x·q, the
    largest |x|² in the box, ``lift`` = |q|² (with its allowance) and the least x·q of the box.
    """
    size, limit = types.int64, types.float32
    signature = types.uint64(nodes, size, size, query, limit, limit, out)

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kinds = signature.args
        base = _pointer(context, builder, kinds[0], given[0])
        wanted = _pointer(context, builder, kinds[3], given[3])
        kept = _pointer(context, builder, kinds[6], given[6])
        corner, product = _zeros(builder), _zeros(builder)
        with cgutils.for_range(builder, given[2], intp=_WORD) as loop:
            value = _spread(builder, builder.load(builder.gep(wanted, [loop.index])))
            low = _row(builder, base, given[1], loop.index)
            high = _row(builder, base, given[1], builder.add(loop.index, given[2]))
            across = _choose(builder, ">", builder.fsub(value, low), builder.fsub(high, value))
            _add_product(builder, corner, across, across)
            least = _choose(builder, "<", builder.fmul(low, value), builder.fmul(high, value))
            builder.store(builder.fadd(builder.load(product), least), product)
        twice = builder.fmul(builder.load(product), ir.Constant(_VECTOR, [2.0] * LANES))
        norm = _row(builder, base, given[1], builder.add(given[2], given[2]))
        lifted = builder.fsub(builder.fadd(norm, _spread(builder, given[4])), twice)
        bound = _choose(builder, "<", lifted, builder.load(corner))
        builder.store(bound, _vector_at(builder, kept, ir.Constant(_WORD, 0)), align=4)
        is_far = builder.fcmp_ordered(">=", bound, _spread(builder, given[5]))
        return _bits(builder, is_far)

    return signature, build


def _folded(comparison: str) -> Any:
    """An intrinsic that gives the extreme of a row of sixteen, where NaN counts as ``nothing``."""

    def fold(typing: Any, values: Any, start: Any, nothing: Any) -> Any:
        signature = types.float32(values, types.int64, types.float32)

        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            base = _pointer(context, builder, signature.args[0], given[0])
            row = builder.load(_vector_at(builder, base, given[1]), align=4)
            empty = _spread(builder, given[2])
            row = builder.select(builder.fcmp_ordered("ord", row, row), row, empty)
            half = LANES
            while half > 1:
                half //= 2
                lanes = [(lane + half) % LANES for lane in range(LANES)]
                turned = ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)
                row = _choose(builder, comparison, row, builder.shuffle_vector(row, row, turned))
            return builder.extract_element(row, ir.Constant(ir.IntType(32), 0))

        return signature, build

    return intrinsic(fold)


lowest = _folded("<")
highest = _folded(">")


@intrinsic
def first_lane(typing: Any, lanes: Any) -> Any:
    """The number of the lowest bit that is set."""
    signature = types.int64(types.uint64)

    def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))

    return signature, build
