"""The columns of two tables, in the form that utility measures compare."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, columns_that, did_you_mean
from shoal.measurement import Measurement
from shoal.parameters import ColumnNames
from shoal.randomness import SecretStream
from shoal.table import NUMBERS, QUANTITIES, Table, scale_name, stacked_numbers, to_one_scale

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: The option of a measure that compares only some columns.
Columns = Annotated[Sequence[str] | None, ColumnNames()]


def columns_to_compare(original: Table, masked: Table, columns: Columns) -> list[str]:
    """The columns that a measure compares: the named ones, or all except those always withheld."""
    everything = [name for name in original.columns if name not in original.roles.withheld]
    return _chosen(original, masked, columns, everything, "columns")


def quasi_identifiers_to_compare(original: Table, masked: Table, columns: Columns) -> list[str]:
    """The columns that a measure of generalization compares: the quasi-identifiers."""
    quasi = list(original.roles.quasi_identifiers)
    return _chosen(original, masked, columns, quasi, "quasi-identifiers")


def _chosen(
    original: Table, masked: Table, columns: Columns, otherwise: list[str], called: str
) -> list[str]:
    names = otherwise if columns is None else list(columns)
    for name in names:
        if name not in original.columns:
            known = did_you_mean(name, original.columns)
            raise InputError(f"The original has no column '{name}'. {known}")
    if not names or len(original) == 0 or len(masked) == 0:
        raise InputError(f"There is nothing to compare: a table has no {called} or no records.")
    return names


def mean_over_columns(
    name: str, each: Mapping[str, float], warnings: Sequence[str] = (), **details: Any
) -> Measurement:
    """The mean of a number per column, 0 without columns; the columns are in the details."""
    value = float(np.mean(list(each.values()) or [0.0]))
    return Measurement(
        name, value, details={"columns": dict(each), **details}, warnings=tuple(warnings)
    )


def about_persons(original: Table) -> tuple[str, ...]:
    """A warning that a test assumes independent records, but those of one person are not."""
    if original.person_count == len(original):
        return ()
    return (
        f"The {len(original):,} records belong to {original.person_count:,} persons. The tests "
        "assume independent records, so their p-values are too small.",
    )


def rows_if_paired(original: Table, masked: Table) -> Integers | None:
    """The original's row for each masked row; None if the tables were read separately."""
    return masked.rows_in(original) if masked.pairs_with(original) else None


@dataclass(frozen=True, eq=False)
class Quantity:
    """A column of numbers in both tables, on one scale; NaN for a missing value.

    A column is ``gone`` if it was removed or no longer holds numbers. Its masked values are then
    the mean of the original: the best that an analyst could put there.
    """

    name: str
    before: Floats
    after: Floats
    gone: bool = False

    @property
    def variance(self) -> float:
        """The variance of the original (n - 1); 0 if it is constant."""
        return variance(self.before)

    @property
    def spread(self) -> float:
        """The standard deviation of the original (n - 1); 0 if it is constant."""
        return math.sqrt(self.variance)


def each_quantity(original: Table, masked: Table, names: Sequence[str]) -> Iterator[Quantity]:
    """The columns that are numbers, dates, times or durations in the original, one by one.

    An interval of numbers, such as ``[20, 30)``, counts as its middle. Columns with infinite
    values, or without any value, are left out.
    """
    for name in names:
        if original.kind(name) not in QUANTITIES:
            continue
        try:
            before = stacked_numbers(name, original, original)[: len(original)]
        except InputError:  # infinite values have no mean
            continue
        if np.isnan(before).all():
            continue
        both = _in_one_scale(original, masked, name)
        if both is not None and not np.isnan(both[len(original) :]).all():
            yield Quantity(name, both[: len(original)], both[len(original) :])
        else:
            yield Quantity(name, before, np.full(len(masked), np.nanmean(before)), gone=True)


def quantities_to_compare(original: Table, masked: Table, columns: Columns) -> list[Quantity]:
    """All such columns; raises InputError if there are none."""
    names = columns_to_compare(original, masked, columns)
    found = list(each_quantity(original, masked, names))
    if not found:
        raise InputError("No column holds finite numbers or dates, so there is nothing to compare.")
    return found


def present(values: Floats) -> Floats:
    """The values that are not missing."""
    return values[~np.isnan(values)]


def variance(values: Floats) -> float:
    """The variance of the values that are not missing (n - 1); 0 if they are all equal."""
    inside = present(values)
    # rounding can leave a small variance of equal values
    return float(inside.var(ddof=1)) if len(inside) > 1 and np.ptp(inside) > 0 else 0.0


def about_gone(quantities: Sequence[Quantity]) -> tuple[str, ...]:
    """What a reader must know about the columns that are gone."""
    gone = [quantity.name for quantity in quantities if quantity.gone]
    if not gone:
        return ()
    return (
        columns_that(
            gone,
            "was removed or no longer holds numbers; it counts",
            "were removed or no longer hold numbers; they count",
        )
        + " as the mean of the original.",
    )


def _in_one_scale(original: Table, masked: Table, name: str) -> Floats | None:
    """The column of both tables as numbers, or None if the masked one has no numbers."""
    if name not in masked.columns:
        return None
    kinds = original.kind(name), masked.kind(name)
    if kinds[0] in NUMBERS and kinds[1] == "text":
        return _with_middles(original, masked, name)
    if kinds[1] not in QUANTITIES or (kinds[0] in NUMBERS) != (kinds[1] in NUMBERS):
        return None
    if kinds[0] not in NUMBERS and scale_name(original.codes(name)) != scale_name(
        masked.codes(name)
    ):
        return None
    try:
        return stacked_numbers(name, original, masked)
    except InputError:
        return None


def _with_middles(original: Table, masked: Table, name: str) -> Floats | None:
    """The numbers of the original, and below them the middles of the released intervals."""
    numbers, labels = original.numbers(name), masked.column(name)
    before = np.where(numbers.present, numbers.values.astype(np.float64), np.nan)
    ends = labels.domain(original.kind(name)).ends
    if ends is None:
        return None
    ends = np.clip(ends, np.nanmin(before), np.nanmax(before))  # open ends stop at the data's
    middles = np.append(ends[:, 0] / 2 + ends[:, 1] / 2, np.nan)
    return to_one_scale(np.concatenate([before, middles[labels.codes.codes]]))


def sampled_rows(row_key: Integers, most: int) -> Integers:
    """The rows of at most ``most`` records, chosen by their keys: the same ones in every table."""
    if len(row_key) <= most:
        return np.arange(len(row_key))
    places = SecretStream.public("utility").keyed_hash(row_key, "records")
    return np.sort(np.argsort(places, kind="stable")[:most])
