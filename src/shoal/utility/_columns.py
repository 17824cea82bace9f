"""The columns of two tables, as measures of utility compare them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, did_you_mean, quoted
from shoal.measurement import Measurement
from shoal.parameters import ColumnNames
from shoal.randomness import SecretStream
from shoal.table import (
    NUMBERS,
    QUANTITIES,
    Table,
    scale_name,
    stacked_numbers,
    to_one_scale,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: The option of a measure that is about some columns only.
Columns = Annotated[Sequence[str] | None, ColumnNames()]


def columns_to_compare(original: Table, masked: Table, columns: Columns) -> list[str]:
    """The columns that a measure is about: those named, or all but what is always withheld."""
    everything = [name for name in original.columns if name not in original.roles.withheld]
    return _chosen(original, masked, columns, everything, "columns")


def quasi_identifiers_to_compare(original: Table, masked: Table, columns: Columns) -> list[str]:
    """The columns that a measure of generalization is about: the quasi-identifiers."""
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
    """The mean of a number of each column, 0 without any; the columns are in the details."""
    value = float(np.mean(list(each.values()) or [0.0]))
    return Measurement(
        name, value, details={"columns": dict(each), **details}, warnings=tuple(warnings)
    )


def about_persons(original: Table) -> tuple[str, ...]:
    """That a test takes records to be independent, which those of one person are not."""
    if original.person_count == len(original):
        return ()
    return (
        f"The {len(original):,} records are of {original.person_count:,} persons, and the tests "
        "take them to be independent, so that their p-values are too small.",
    )


def rows_if_paired(original: Table, masked: Table) -> Integers | None:
    """The row of the original of each masked row; None where the tables were read apart."""
    return masked.rows_in(original) if masked.pairs_with(original) else None


@dataclass(frozen=True, eq=False)
class Quantity:
    """A column of numbers in both tables, in one scale; NaN where a value is missing.

    Of a column that is ``gone``, because it was taken out or is no longer of numbers, the masked
    values are the mean of the original: all that an analyst could put there.
    """

    name: str
    before: Floats
    after: Floats
    gone: bool = False

    @property
    def variance(self) -> float:
        """The variance of the original (n - 1); 0 where it is constant."""
        return variance(self.before)

    @property
    def spread(self) -> float:
        """The standard deviation of the original (n - 1); 0 where it is constant."""
        return math.sqrt(self.variance)


def each_quantity(original: Table, masked: Table, names: Sequence[str]) -> Iterator[Quantity]:
    """The columns that are numbers, dates, times or durations in the original, one by one.

    Intervals of numbers, such as ``[20, 30)``, are taken at their middle. A column with infinite
    values is left out, and so is one without any.
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
    """All of them; InputError where there is none."""
    names = columns_to_compare(original, masked, columns)
    found = list(each_quantity(original, masked, names))
    if not found:
        raise InputError("No column is of finite numbers or dates, so there is nothing to compare.")
    return found


def present(values: Floats) -> Floats:
    """The values that are not missing."""
    return values[~np.isnan(values)]


def variance(values: Floats) -> float:
    """The variance of the values that are not missing (n - 1); 0 where they are all the same."""
    inside = present(values)
    # of equal values rounding can leave a little
    return float(inside.var(ddof=1)) if len(inside) > 1 and np.ptp(inside) > 0 else 0.0


def about_gone(quantities: Sequence[Quantity]) -> tuple[str, ...]:
    """What a reader must know of the columns that are gone."""
    gone = [quantity.name for quantity in quantities if quantity.gone]
    if not gone:
        return ()
    return (
        f"The columns {quoted(gone)} were taken out or are no longer numbers; they are taken at "
        "the mean of the original.",
    )


def _in_one_scale(original: Table, masked: Table, name: str) -> Floats | None:
    """The column of both tables as numbers, or None where the masked one has none."""
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
    ends = np.clip(ends, np.nanmin(before), np.nanmax(before))  # an open end is that of the data
    middles = np.append(ends[:, 0] / 2 + ends[:, 1] / 2, np.nan)
    return to_one_scale(np.concatenate([before, middles[labels.codes.codes]]))


def sampled_rows(row_key: Integers, most: int) -> Integers:
    """The rows of at most so many records, chosen by their keys: the same ones in every table."""
    if len(row_key) <= most:
        return np.arange(len(row_key))
    places = SecretStream.public("utility").keyed_hash(row_key, "records")
    return np.sort(np.argsort(places, kind="stable")[:most])
