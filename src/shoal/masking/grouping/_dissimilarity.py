"""Distances between records: the columns of a table in the form the kernels compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Floats
from shoal.table import NUMBERS, Table, signed_codes

if TYPE_CHECKING:
    from shoal.kernels.space.mixed_records import MixedRecords


DISSIMILARITIES = ("euclidean", "gower", "ahmad-dey", "ahmad-dey-squared")
_LEVELS = 2_000  # per column: Ahmad and Dey compare every pair of values
_BINS = 5  # Ahmad and Dey leave the number open; five bins of equal width
_FAR = 400  # powers of two from 1: beyond, squares and their sums may overflow or vanish


@dataclass(frozen=True, eq=False)
class Space:
    """Records to partition: points with Euclidean distance, or records of mixed type."""

    rows: int
    points: Floats | None = None
    mixed: MixedRecords | None = None

    @property
    def columns(self) -> int:
        """The number of compared columns."""
        if self.points is not None:
            return self.points.shape[1]
        return len(self.records.measure.presence)

    @cached_property
    def records(self) -> MixedRecords:
        """The records for kernels of mixed type; points with their squared distance."""
        from shoal.kernels.space.mixed_records import squared_euclidean

        if self.mixed is not None:
            return self.mixed
        assert self.points is not None
        return squared_euclidean(self.points)


def space_of(
    table: Table, columns: Sequence[str], dissimilarity: str, *, standardize: bool
) -> Space:
    """The columns of a table under a dissimilarity.

    ``euclidean`` compares numbers, standardized to mean 0 and variance 1 unless
    ``standardize`` is false; a missing number counts as the mean. The others compare columns of
    any kind: numbers as numbers, everything else as categories.
    """
    if dissimilarity == "euclidean":
        return Space(len(table), points=_points(table, columns, standardize))
    numeric = [name for name in columns if table.kind(name) in NUMBERS]
    nominal = [name for name in columns if name not in numeric]
    if dissimilarity != "gower":
        _check_levels(table, nominal)
    values = _matrix([_with_gaps(table, name) for name in numeric], len(table))
    codes = _matrix([signed_codes(table.codes(name)) for name in nominal], len(table))
    return Space(len(table), mixed=_mixed(values, codes, dissimilarity))


def _check_levels(table: Table, nominal: Sequence[str]) -> None:
    """Check before memory is used: a table of all pairs of values grows with their square."""
    for name in nominal:
        if (found := table.distinct(name)) > _LEVELS:
            raise InputError(
                f"Column '{name}' has {found} different values, and Ahmad and Dey's dissimilarity "
                f"compares all pairs of at most {_LEVELS}. Choose the dissimilarity 'gower', "
                "recode the column, or leave it out."
            )


def _mixed(values: Floats, codes: npt.NDArray[Any], dissimilarity: str) -> MixedRecords:
    codes = codes.astype(np.int64)
    if dissimilarity == "gower":
        from shoal.kernels.space.mixed_records import gower

        return gower(values, codes)
    from shoal.kernels.space.ahmad_dey import ahmad_dey

    return ahmad_dey(values, codes, bins=_BINS, original=dissimilarity.endswith("squared"))


def _points(table: Table, columns: Sequence[str], standardize: bool) -> Floats:
    others = [name for name in columns if table.kind(name) not in NUMBERS]
    if others:
        raise InputError(
            "Euclidean distance compares numbers, but these columns are not numeric: "
            f"{quoted(others)}. Choose the dissimilarity 'gower' or 'ahmad-dey', or name other "
            "columns."
        )
    shift = 0 if standardize else _common_shift([table.numbers(name).values for name in columns])
    points = np.empty((len(table), len(columns)))
    for place, name in enumerate(columns):  # one at a time: never two copies of the table
        points[:, place] = _scaled(table, name, standardize, shift)
    return points


def _common_shift(columns: Sequence[npt.NDArray[Any]]) -> int:
    """The power of two that scales all raw values so that their squares stay finite."""
    largest = max((np.abs(c.astype(np.float64)).max(initial=0.0) for c in columns), default=0.0)
    exponent = int(np.frexp(largest)[1])
    return -exponent if abs(exponent) > _FAR else 0


def _scaled(table: Table, name: str, standardize: bool, shift: int) -> Floats:
    numbers = table.numbers(name)
    values = numbers.values.astype(np.float64, copy=False)
    values = _about_one(values) if standardize else np.ldexp(values, shift)
    complete = bool(numbers.present.all())
    inside = values if complete else values[numbers.present]
    if len(inside) == 0:
        return np.zeros(len(values))
    middle = float(inside.mean())
    spread = float(inside.std()) if standardize else 1.0
    if not spread > 0:
        return np.zeros(len(values))
    centred = values - middle
    if not complete:
        centred[~numbers.present] = 0.0
    centred /= spread
    return centred


def _with_gaps(table: Table, name: str) -> Floats:
    numbers = table.numbers(name)
    values = _about_one(numbers.values.astype(np.float64))
    return np.where(numbers.present, values, np.nan)


def _about_one(values: Floats) -> Floats:
    """Exactly the same up to a power of two, so that sums and ranges do not over- or underflow."""
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    power = -int(np.frexp(largest)[1])
    if largest == 0 or power == 0:
        return values
    # multiplying by a power of two is exact too, and faster, if that power is itself a float
    return values * 2.0**power if abs(power) < 1000 else np.ldexp(values, power)


def _matrix(columns: Sequence[npt.NDArray[Any]], rows: int) -> npt.NDArray[Any]:
    return np.column_stack(columns) if columns else np.empty((rows, 0))
