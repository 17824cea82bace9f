"""The columns of two tables as numbers and codes that can be compared.

A model that learned from intervals and coarser values must predict people from raw values. How a
value was released is learned only from the training persons, whose records in both tables are
known.
"""

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
    ends_of_members,
    quantities,
    scale_name,
    signed_codes,
    stacked_codes,
    usual_partners,
)

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Side = Literal["original", "masked"]
Task = Literal["classification", "regression"]
Values = npt.NDArray[Any]

_FEW: Final = 20  # so few values are never too many
_TOO_MANY: Final = 0.5  # share of the records: from here on, texts identify them


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the original and of the masked table.

    Numbers are floats, NaN if missing; other values are codes, -1 if missing. A column has
    ``labels`` if the masked table has other values than the original: intervals of numbers
    (then ``masked`` holds codes of its own), or coarser values (then codes are shared).
    ``original`` or ``masked`` is None if that table lacks the column or has no information in it.
    ``learnable`` names the tables in which the column is more than a list of names. Infinite
    numbers count as missing; ``infinite`` says whether there were any.
    """

    name: str
    numeric: bool
    original: Values | None
    masked: Values | None
    labels: bool = False
    learnable: frozenset[Side] = frozenset()
    infinite: bool = False

    def of(self, side: Side) -> Values | None:
        """The column's values in one of the tables."""
        return self.original if side == "original" else self.masked


def columns_of(original: Table, masked: Table | None, names: Sequence[str]) -> list[Column]:
    """The named columns of both tables; the original has all of them.

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
    tables: list[tuple[Side, Table | None]] = [("original", original), ("masked", released)]
    there = {side: table.codes(name) for side, table in tables if table is not None}
    learnable = {s for s, codes in there.items() if len(codes.levels) and not _names(codes)}
    before = there["original"]
    if len(before.levels) and is_quantity(original, name):
        return _quantity(name, original, released, learnable | {"original"})
    if released is None:
        return Column(name, False, _codes(before), None, learnable=frozenset(learnable))
    both = stacked_codes(name, original, released)
    old, new = both[: len(original)], both[len(original) :]
    new = np.where(empty_cells(original, released, name), -1, new)
    coarser = not np.isin(new[new >= 0], old).all()
    return Column(name, False, old, new, coarser, frozenset(learnable))


def _quantity(name: str, original: Table, masked: Table | None, learnable: set[Side]) -> Column:
    before, infinite = _numbers(original.codes(name))
    labels, released = False, None
    if masked is not None:
        after = masked.codes(name)
        if len(after.levels):
            learnable = learnable | {"masked"}  # intervals too: they become numbers
            labels = not _same_scale(original.codes(name), after, masked)
        if labels:
            released = np.where(empty_cells(original, masked, name), -1, _codes(after))
        else:
            released, more = _numbers(after)
            infinite = infinite or more
    # divided by one power of two, so that squares neither overflow nor vanish; this changes no
    # digit, and nothing that a model of standardized columns learns
    numbers = [before] if labels or released is None else [before, released]
    largest = max(np.nanmax(np.abs(values), initial=0.0) for values in numbers)
    power = -int(np.frexp(largest)[1])
    before = np.ldexp(before, power)
    if not labels and released is not None:
        released = np.ldexp(released, power)
    return Column(name, True, before, released, labels, frozenset(learnable), infinite)


def _numbers(column: Codes) -> tuple[Values, bool]:
    """A column of quantities as floats, and whether any were infinite (these become missing)."""
    numbers = quantities(column, infinite="missing")
    return numbers[column.codes], bool(np.isnan(numbers[: len(column.levels)]).any())


def _names(column: Codes) -> bool:
    """Whether a nominal column identifies records rather than describing what they share."""
    records = len(column.codes)
    if column.missing is not None:
        records -= int((column.codes == column.missing).sum())
    return len(column.levels) > max(_FEW, _TOO_MANY * records)


def _same_scale(before: Codes, after: Codes, masked: Table) -> bool:
    return is_quantity(masked, after.name) and scale_name(before) == scale_name(after)


def _codes(column: Codes) -> npt.NDArray[np.int64]:
    return signed_codes(column).astype(np.int64)


#: A target with more distinct numbers than this is predicted as a number.
FEW_VALUES: Final = 20
#: A target with more classes than this is refused.
MOST_CLASSES: Final = 100


@dataclass(frozen=True, eq=False)
class Target:
    """The target in both tables: classes 0, 1, 2, … (-1 missing), or floats (NaN missing).

    ``positive`` is the rarer of two classes, by the original. ``strange`` is the number of
    masked records with a class that the original lacks.
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
        """Which rows of a table have a known target."""
        values = self.of(side)
        known: npt.NDArray[np.bool_] = (
            values >= 0 if self.task == "classification" else ~np.isnan(values)
        )
        return known

    def strata(self, rows: Integers, side: Side = "original") -> Integers:
        """The strata that the folds of these rows keep in balance."""
        values = self.of(side)[rows]
        return values if self.task == "classification" else _bands(values)


def _bands(values: npt.NDArray[np.float64], count: int = 10) -> Integers:
    """Numbers as strata: ``count`` bands with equally many persons."""
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return rank * count // max(len(values), 1)


def natural_task(table: Table, name: str) -> Task:
    """Regression for numbers with many values, classification for everything else."""
    many = is_quantity(table, name) and table.distinct(name) > FEW_VALUES
    return "regression" if many else "classification"


def target_of(name: str, original: Table, masked: Table | None, task: Task) -> Target:
    """The target of both tables; refused if there is nothing to learn or to test."""
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
                "there is nothing to predict. Name a target with at least two."
            )
    counts = np.bincount(before[before >= 0])
    classes = np.flatnonzero(counts)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"The target '{name}' has {len(classes):,} classes, and a model is trained for at "
            f"most {MOST_CLASSES}. Group them, or predict a number with regression_performance."
        )
    strange = (after >= 0) & ~np.isin(after, classes)
    if strange.all():
        raise InputError(
            f"The masked table and the original have no value of the target '{name}' in common, so "
            "predictions cannot be compared with the truth. Do not change the target."
        )
    return Target(
        name,
        "classification",
        before,
        None if masked is None else after,
        len(classes),
        # if equally rare, the last one: "true" or "yes"
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
                "measured. Use predictive_performance, which predicts classes."
            )
        values.append(quantities(codes)[codes.codes])
        if len(codes.levels) < 2:
            raise InputError(
                f"The target '{name}' has at most one value, so there is nothing to predict."
            )
    return Target(name, "regression", values[0], None if masked is None else values[1])


#: A code that no training row has.
UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The rows of one split in both tables, and the training persons' rows in both.

    ``paired`` has rows of the original and, in the same positions, of the masked table. ``place``
    is the repeat and the fold.
    """

    train: dict[Side, Integers]
    test: dict[Side, Integers]
    paired: tuple[Integers, Integers] | None = None
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class SplitColumn:
    """A column in one domain: floats with NaN, or codes with -1, for missing values."""

    name: str
    numeric: bool
    train: Values
    test: Values


def in_one_domain(column: Column, train: Side, test: Side, rows: SplitRows) -> SplitColumn | None:
    """A column of the training rows and of the test rows; None if nothing can be learned from it.

    Labels of a quantity become numbers: the middle between the smallest and the largest original
    value of the training persons who have the label. If each value has one label (a global
    recoding), a raw value becomes the middle of its own label, or of the nearest value's label;
    otherwise it stays unchanged. A nominal value becomes the one that most training persons with
    that value have.
    """
    learned = column.of(train)
    if train not in column.learnable or learned is None:
        return None
    known, asked = learned[rows.train[train]], column.of(test)
    asked_of: Values
    if asked is None:  # not in the tested table: missing everywhere
        asked_of = np.full(len(rows.test[test]), np.nan if column.numeric else -1)
    else:
        asked_of = asked[rows.test[test]]
    if not column.labels or (train == test == "original"):
        return SplitColumn(column.name, column.numeric, known, asked_of)
    if rows.paired is None or column.original is None or column.masked is None:
        same = SplitColumn(column.name, False, known, asked_of)  # labels as they are
        return same if train == test else None
    before, after = column.original[rows.paired[0]], column.masked[rows.paired[1]]
    if column.numeric:
        middles = middles_of(after, before, int(column.masked.max(initial=-1)) + 1)
        if test == "masked":
            asked_of = middles[asked_of]
        elif train == "masked":
            asked_of = _served(asked_of, before, after, middles)
        return SplitColumn(
            column.name, True, middles[known] if train == "masked" else known, asked_of
        )
    if train != test:
        pairs = (before, after) if test == "original" else (after, before)
        asked_of = most_frequent(asked_of, *pairs, known)
    return SplitColumn(column.name, False, known, asked_of)


def middles_of(labels: Integers, values: Floats, count: int) -> Floats:
    """For each label, the middle between the ends of its values; at the end NaN, for missing."""
    there = (labels >= 0) & ~np.isnan(values)
    low, high = ends_of_members(labels[there], values[there], count + 1).T
    seen = low <= high
    middles = np.full(count + 1, np.nan)  # code -1 reads the last entry
    middles[seen] = low[seen] / 2 + high[seen] / 2
    return middles


def _served(asked: Floats, before: Floats, after: Integers, middles: Floats) -> Floats:
    """Raw numbers under the label of the nearest known value, if each value has one label."""
    there = (after >= 0) & ~np.isnan(before)
    values, place = np.unique(before[there], return_inverse=True)
    if not len(values):
        return asked
    labels = after[there]
    first, last = np.full(len(values), len(middles)), np.full(len(values), -1)
    np.minimum.at(first, place, labels)
    np.maximum.at(last, place, labels)
    if (first != last).any():  # a local recoding: no label is nearer than the value
        return asked
    served = np.full(len(asked), np.nan)
    present = ~np.isnan(asked)
    served[present] = middles[first[nearest(asked[present], values)]]
    return served


def nearest(asked: Floats, values: Floats) -> Integers:
    """For each number, the index of the nearest of ascending values; in a tie, the smaller."""
    above = np.clip(np.searchsorted(values, asked), 1, max(len(values) - 1, 1))
    above = np.minimum(above, len(values) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(asked - values[below] <= values[above] - asked, below, above)


def most_frequent(asked: Integers, source: Integers, target: Integers, known: Integers) -> Integers:
    """Codes of one table as those of another: what most pairs with the same source have.

    In a tie, the smallest. A value without any pair stays unchanged if the other table knows it,
    and is unknown otherwise.
    """
    there = source >= 0
    sources, usual = usual_partners(source[there], target[there])
    size = int(max(asked.max(initial=-1), source.max(initial=-1))) + 1
    given = np.full(size + 1, UNKNOWN)
    kept = np.unique(known[(known >= 0) & (known < size)])
    given[kept] = kept
    given[sources] = usual
    given[-1] = -1  # missing stays missing
    return given[asked]
