"""The columns of two tables as numbers and codes that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from shoal.table import (
    Codes,
    Table,
    empty_cells,
    quantities,
    scale_name,
    signed_codes,
    stacked_codes,
)

Side = Literal["original", "masked"]
Values = npt.NDArray[Any]

_QUANTITIES: Final = ("integer", "float", "date", "datetime", "time", "duration")
_FEW: Final = 20  # values that are never too many
_TOO_MANY: Final = 0.5  # of the records: from there on a text names them


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the original and of the masked table.

    Numbers are floats, NaN where missing; other values are codes, -1 where missing. A column
    ``labels`` where the masked table has other values than the original: intervals of numbers
    (then ``masked`` holds codes of its own), or coarser values (then codes are shared). A table
    that has not the column, or in which it says nothing, has None; ``learnable`` are the tables
    in which it is more than a list of names. Infinite numbers are missing; ``infinite`` tells
    whether there were any.
    """

    name: str
    numeric: bool
    original: Values | None
    masked: Values | None
    labels: bool = False
    learnable: frozenset[Side] = frozenset()
    infinite: bool = False

    def of(self, side: Side) -> Values | None:
        """The values in one of the tables."""
        return self.original if side == "original" else self.masked


def columns_of(original: Table, masked: Table | None, names: Sequence[str]) -> list[Column]:
    """The named columns of both tables, all of which the original has.

    Examples
    --------
    >>> import polars as pl
    >>> ages, bands = pl.DataFrame({"age": [31, 48]}), pl.DataFrame({"age": ["[30, 40)", "*"]})
    >>> column = columns_of(Table(ages), Table(bands), ["age"])[0]
    >>> column.numeric, column.labels, column.masked.tolist()
    (True, True, [1, -1])
    """
    return [_column(name, original, masked) for name in names]


def is_quantity(table: Table, name: str) -> bool:
    """Whether a column counts or measures something."""
    return table.kind(name) in _QUANTITIES


def _column(name: str, original: Table, masked: Table | None) -> Column:
    released = masked if masked is not None and name in masked.columns else None
    before = original.codes(name)
    after = None if released is None else released.codes(name)
    learnable = {side for side, column in _present(before, after) if not _names(column)}
    if len(before.levels) and is_quantity(original, name):
        return _quantity(name, original, released, learnable | {"original"})
    if released is None or after is None:
        return Column(name, False, _codes(before), None, learnable=frozenset(learnable))
    return _nominal(name, original, released, frozenset(learnable))


def _quantity(name: str, original: Table, masked: Table | None, learnable: set[Side]) -> Column:
    before, infinite = _numbers(original.codes(name))
    after = None if masked is None else masked.codes(name)
    labels = False
    released: Values | None = None
    if masked is not None and after is not None:
        if len(after.levels):
            learnable = learnable | {"masked"}  # also intervals, which become numbers
        labels = bool(len(after.levels)) and not _same_scale(original.codes(name), after, masked)
        if labels:
            released = np.where(empty_cells(original, masked, name), -1, _codes(after))
        else:
            released, more = _numbers(after)
            infinite = infinite or more
    if labels:
        before, _ = _in_one_size(before, None)
    else:
        before, released = _in_one_size(before, released)
    return Column(name, True, before, released, labels, frozenset(learnable), infinite)


def _numbers(column: Codes) -> tuple[Values, bool]:
    """A column of quantities as floats, and whether it has infinite ones, which are missing."""
    numbers = quantities(column, infinite="missing")
    return numbers[column.codes], bool(np.isnan(numbers[: len(column.levels)]).any())


def _nominal(name: str, original: Table, masked: Table, learnable: frozenset[Side]) -> Column:
    both = stacked_codes(name, original, masked)
    old, new = both[: len(original)], both[len(original) :]
    new = np.where(empty_cells(original, masked, name), -1, new)
    coarser = not np.isin(new[new >= 0], old).all()
    return Column(name, False, old, new, coarser, learnable)


def _present(before: Codes, after: Codes | None) -> list[tuple[Side, Codes]]:
    sides: list[tuple[Side, Codes]] = [("original", before)]
    if after is not None:
        sides.append(("masked", after))
    return [(side, column) for side, column in sides if len(column.levels)]


def _names(column: Codes) -> bool:
    """Whether a nominal column tells records apart rather than what they have in common."""
    records = len(column.codes)
    if column.missing is not None:
        records -= int((column.codes == column.missing).sum())
    return len(column.levels) > max(_FEW, _TOO_MANY * records)


def _same_scale(before: Codes, after: Codes, masked: Table) -> bool:
    return is_quantity(masked, after.name) and scale_name(before) == scale_name(after)


def _codes(column: Codes) -> npt.NDArray[np.int64]:
    return signed_codes(column).astype(np.int64)


def _in_one_size(first: Values, second: Values | None) -> tuple[Values, Values | None]:
    """Both divided by one power of two, so that squares neither overflow nor vanish.

    It changes no digit, and nothing that a model of standardised columns learns.
    """
    largest = np.nanmax(np.abs(first), initial=0.0)
    if second is not None:
        largest = max(largest, np.nanmax(np.abs(second), initial=0.0))
    if largest == 0:
        return first, second
    power = -int(np.frexp(largest)[1])
    return np.ldexp(first, power), None if second is None else np.ldexp(second, power)
