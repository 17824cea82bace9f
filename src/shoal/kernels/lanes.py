"""Sixteen numbers at once, as values inside numba kernels.

LLVM unrolls a short loop before it could vectorize it, so a kernel that loops over 16 things runs
at scalar speed. Lanes are LLVM's own vectors: :func:`load` reads 16 numbers from an array,
operators act on all of them, and intermediate results stay in registers, whatever their width on
the machine.

``+ - * /``, comparisons, ``abs`` and, on the results of comparisons, ``& |`` work as on numbers.
One operand may be a plain number, which represents 16 equal ones. Integers are unsigned;
the result of a comparison counts as 0 or 1 when added to integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

WIDTH = 16
"""How many numbers are processed at once."""

_ARITHMETIC = {  # with LLVM's names for floats and for integers
    operator.add: ("fadd", "add"),
    operator.sub: ("fsub", "sub"),
    operator.mul: ("fmul", "mul"),
    operator.truediv: ("fdiv", "floats only"),
    operator.and_: ("and_", "and_"),
    operator.or_: ("or_", "or_"),
}
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


class Lanes(types.Type):  # type: ignore[misc]
    """The numba type of 16 numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")

    @property
    def vector(self) -> ir.VectorType:
        """The same type in LLVM."""
        if isinstance(self.dtype, types.Float):
            double = self.dtype == types.float64
            return ir.VectorType(ir.DoubleType() if double else ir.FloatType(), WIDTH)
        bits = 1 if self.dtype == types.boolean else self.dtype.bitwidth
        return ir.VectorType(ir.IntType(bits), WIDTH)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, lanes.vector)


@intrinsic
def load(typing: Any, array: Any, first: Any, second: Any) -> Any:
    """Lanes of ``array[first, second, :16]``; the indices are not negative."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, array, *args), align=_size(array))

    return Lanes(array.dtype)(array, types.intp, types.intp), emit


@intrinsic
def store(typing: Any, lanes: Any, array: Any, first: Any, second: Any) -> Any:
    """``array[first, second, :16] = lanes``; the indices are not negative."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[0], _place(context, builder, array, *args[1:]), align=_size(array))
        return context.get_dummy_value()

    return types.void(lanes, array, types.intp, types.intp), emit


@intrinsic
def singles(typing: Any, number: Any) -> Any:
    """A number 16 times, as 32-bit floats."""
    return _repeated(number, types.float32)


@intrinsic
def integers(typing: Any, number: Any) -> Any:
    """A small number 16 times, as integers for counting."""
    return _repeated(number, types.uint16)


def _repeated(number: Any, dtype: Any) -> Any:
    result = Lanes(dtype)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _as_lanes(context, builder, args[0], number, result)

    return result(number), emit


@intrinsic
def add_product(typing: Any, total: Any, left: Any, right: Any) -> Any:
    """``total + left * right`` of floats, rounded once if the processor can, otherwise twice."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.fmul(args[1], args[2], flags=("contract",))
        return builder.fadd(args[0], product, flags=("contract",))

    return total(total, left, right), emit


@intrinsic
def floats(typing: Any, source: Any) -> Any:
    """A number 16 times, or any lanes, as 64-bit floats."""
    result = Lanes(types.float64)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not isinstance(source, Lanes):
            return _as_lanes(context, builder, args[0], source, result)
        if isinstance(source.dtype, types.Float):
            return builder.fpext(args[0], result.vector)
        return builder.uitofp(args[0], result.vector)

    return result(source), emit


@intrinsic
def choose(typing: Any, condition: Any, chosen: Any, other: Any) -> Any:
    """The first where the condition holds, otherwise the second; one may be a number."""
    result = chosen if isinstance(chosen, Lanes) else other

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        both = [
            _as_lanes(context, builder, value, given, result)
            for value, given in zip(args[1:], (chosen, other), strict=True)
        ]
        return builder.select(args[0], *both)

    return result(condition, chosen, other), emit


@intrinsic
def look_up(typing: Any, table: Any, start: Any, steps: Any) -> Any:
    """``table[start + steps]`` for lanes of steps; ``table`` is contiguous."""
    result = Lanes(table.dtype)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(table)(context, builder, args[0]).data
        base = builder.gep(data, [args[1]])
        found = ir.Constant(result.vector, ir.Undefined)
        for lane in range(WIDTH):
            place = ir.IntType(32)(lane)
            step = builder.zext(builder.extract_element(args[2], place), ir.IntType(64))
            entry = builder.load(builder.gep(base, [step]))
            found = builder.insert_element(found, entry, place)
        return found

    return result(table, types.intp, steps), emit


@intrinsic
def least(typing: Any, lanes: Any) -> Any:
    """The least of 16 numbers."""
    return lanes.dtype(lanes), _folded("<")


@intrinsic
def greatest(typing: Any, lanes: Any) -> Any:
    """The greatest of 16 numbers."""
    return lanes.dtype(lanes), _folded(">")


def _folded(sign: str) -> Callable[..., Any]:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Compare the second half with the first until one number is left."""
        value, width = args[0], WIDTH
        compares = _comparison(sign)
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    value,
                    value,
                    ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(at, at + width))),
                )
                for at in (0, width)
            ]
            is_float = isinstance(signature.return_type, types.Float)
            value = builder.select(compares(builder, is_float, *halves), *halves)
        return builder.extract_element(value, ir.IntType(32)(0))

    return emit


@intrinsic
def bits(typing: Any, condition: Any) -> Any:
    """The results of a comparison as the bits of one integer, with the first lane lowest."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(args[0], ir.IntType(WIDTH)), ir.IntType(64))

    return types.int64(condition), emit


@intrinsic
def first_lane(typing: Any, hits: Any) -> Any:
    """The number of the lowest set bit."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), emit


def _place(context: Any, builder: Any, array: Any, value: Any, *indices: Any) -> Any:
    """A pointer to the start of lanes."""
    struct = context.make_array(array)(context, builder, value)
    at = [*indices, ir.IntType(64)(0)]
    item = cgutils.get_item_pointer(context, builder, array, struct, at)
    return builder.bitcast(item, Lanes(array.dtype).vector.as_pointer())


def _size(array: Any) -> int:
    return int(array.dtype.bitwidth) // 8


def _as_lanes(context: Any, builder: Any, value: Any, given: Any, wanted: Lanes) -> Any:
    """Lanes of the wanted type from lanes or from a number."""
    if given == wanted:
        return value
    if isinstance(given, Lanes):
        return builder.zext(value, wanted.vector)
    number = context.cast(builder, value, given, wanted.dtype)
    nothing = ir.Constant(wanted.vector, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, nothing, everywhere)


def _define(operation: Callable[..., Any], build: Callable[..., Any], *, compares: bool) -> None:
    """Define an operator for lanes: convert both sides to lanes of one type, then ``build``."""

    @type_callable(operation)
    def type_it(context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            for kind in (left, right):
                if isinstance(kind, Lanes):
                    return Lanes(types.boolean) if compares else kind
            return None

        return typer

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, right = signature.args
        kind = left if isinstance(left, Lanes) else right
        both = [
            _as_lanes(context, builder, value, given, kind)
            for value, given in zip(args, (left, right), strict=True)
        ]
        return build(builder, isinstance(kind.dtype, types.Float), *both)

    for sides in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(operation, *sides)(emit)


def _comparison(sign: str) -> Callable[..., Any]:
    def build(builder: Any, is_float: bool, left: Any, right: Any) -> Any:
        compare = builder.fcmp_ordered if is_float else builder.icmp_unsigned
        return compare(sign, left, right)

    return build


def _arithmetic(float_name: str, integer_name: str) -> Callable[..., Any]:
    def build(builder: Any, is_float: bool, left: Any, right: Any) -> Any:
        return getattr(builder, float_name if is_float else integer_name)(left, right)

    return build


for _operation, _names in _ARITHMETIC.items():
    _define(_operation, _arithmetic(*_names), compares=False)
for _operation, _sign in _COMPARISONS.items():
    _define(_operation, _comparison(_sign), compares=True)


@type_callable(abs)
def _type_abs(context: Any) -> Any:
    def typer(lanes: Any) -> Any:
        return lanes if isinstance(lanes, Lanes) else None

    return typer


@lower_builtin(abs, Lanes)
def _abs(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Clear the sign bit."""
    words = ir.VectorType(ir.IntType(64), WIDTH)
    bare = builder.and_(builder.bitcast(args[0], words), ir.Constant(words, [2**63 - 1] * WIDTH))
    return builder.bitcast(bare, signature.return_type.vector)
