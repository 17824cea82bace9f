"""The columns of two tables as numbers and codes that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.table import (
    QUANTITIES,
    Codes,
    Table,
    empty_cells,
    quantities,
    scale_name,
    signed_codes,
    stacked_codes,
)
from shoal.utility.models._splits import Integers

Side = Literal["original", "masked"]
Task = Literal["classification", "regression"]
Values = npt.NDArray[Any]

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
    return table.kind(name) in QUANTITIES


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


#: A number with more different values than this is predicted as a number.
FEW_VALUES: Final = 20
#: More classes than this are no classes.
MOST_CLASSES: Final = 100


@dataclass(frozen=True, eq=False)
class Target:
    """The target in both tables: classes 0, 1, 2, … (-1 missing), or floats (NaN missing).

    ``positive`` is the rarer of two classes, by the original. ``strange`` is the number of
    masked records with a class that the original has not.
    """

    name: str
    task: Task
    original: Values
    masked: Values | None = None
    classes: int = 0
    positive: int = 1
    strange: int = 0

    def of(self, side: Side) -> Values:
        """The target in one of the tables."""
        values = self.original if side == "original" else self.masked
        assert values is not None
        return values

    def present(self, side: Side) -> npt.NDArray[np.bool_]:
        """Where it is known."""
        values = self.of(side)
        known: npt.NDArray[np.bool_] = (
            values >= 0 if self.task == "classification" else ~np.isnan(values)
        )
        return known

    def strata(self, rows: Integers, side: Side = "original") -> Integers:
        """What the folds of these rows keep in balance."""
        values = self.of(side)[rows]
        return values if self.task == "classification" else _bands(values)


def _bands(values: npt.NDArray[np.float64], count: int = 10) -> Integers:
    """Numbers as strata: ``count`` bands with equally many persons."""
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return rank * count // max(len(values), 1)


def natural_task(table: Table, name: str) -> Task:
    """Numbers of many values are numbers, and everything else is classes."""
    many = is_quantity(table, name) and table.distinct(name) > FEW_VALUES
    return "regression" if many else "classification"


def target_of(name: str, original: Table, masked: Table | None, task: Task) -> Target:
    """The target of both tables; refused where there is nothing to learn or to test."""
    if masked is not None and name not in masked.columns:
        raise InputError(
            f"The masked table has no column '{name}', so no model can learn this target from it."
        )
    make = _classes if task == "classification" else _of_numbers
    return make(name, original, masked)


def _classes(name: str, original: Table, masked: Table | None) -> Target:
    below = original if masked is None else masked
    codes = stacked_codes(name, original, below)
    found, dense = np.unique(codes, return_inverse=True)
    dense = dense.reshape(len(codes)) - int(len(found) > 0 and found[0] < 0)
    before, after = dense[: len(original)], dense[len(original) :]
    for called, values in (("original", before), ("masked table", after)):
        if (count := len(np.unique(values[values >= 0]))) < 2:
            raise InputError(
                f"The target '{name}' has {count} class{'es' * (count != 1)} in the {called}, so "
                "there is nothing to predict; name a target with at least two."
            )
    counts = np.bincount(before[before >= 0])
    classes = np.flatnonzero(counts)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"The target '{name}' has {len(classes):,} classes, and {MOST_CLASSES} are the most "
            "that a model is trained for; group them, or predict a number by "
            "regression_performance."
        )
    strange = (after >= 0) & ~np.isin(after, classes)
    if strange.all():
        raise InputError(
            f"The target '{name}' has no value in the masked table that it has in the original, "
            "so predictions cannot be compared with what is true; leave the target as it is."
        )
    return Target(
        name,
        "classification",
        before,
        None if masked is None else after,
        len(classes),
        # of equally rare ones the last, which is the one that is "true" or "yes"
        int(classes[::-1][np.argmin(counts[classes][::-1])]),
        int(strange.sum()),
    )


def _of_numbers(name: str, original: Table, masked: Table | None) -> Target:
    values = []
    for table in (original, original if masked is None else masked):
        codes = table.codes(name)
        if not is_quantity(table, name) or scale_name(codes) != scale_name(original.codes(name)):
            raise InputError(
                f"The target '{name}' is not a number in both tables, so its error cannot be "
                "measured; predictive_performance predicts classes."
            )
        values.append(quantities(codes)[codes.codes])
        if len(codes.levels) < 2:
            raise InputError(
                f"The target '{name}' has one value at most, so there is nothing to predict."
            )
    return Target(name, "regression", values[0], None if masked is None else values[1])
