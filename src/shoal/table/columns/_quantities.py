"""A column of quantities as numbers of one scale, independent of the unit of its type."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Floats
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import PER_DAY, Kind, kind_of

#: The scale of whole numbers and fractions.
NUMBERS: Final = "numbers"
#: Kinds that can be compared with each other.
_SCALES: dict[Kind, str] = {"integer": NUMBERS, "float": NUMBERS, "datetime": "date"}


def scale_of(kind: Kind) -> str:
    """The scale of a kind; kinds with the same scale can be compared."""
    return _SCALES.get(kind, kind)


def scale_name(column: Codes) -> str:
    """The scale of a column's values."""
    return scale_of(kind_of(column.levels.dtype))


def quantities(
    column: Codes, scale: str | None = None, *, infinite: Literal["refused", "missing"] = "refused"
) -> Floats:
    """Each code of a column as a number; a missing value is NaN.

    Dates and datetimes count in days, times in parts of a day, durations in seconds. If a
    ``scale`` is given, a column of another scale is refused; a column without values fits every
    scale. An infinite number is ``refused`` or ``missing``.
    """
    values = np.full(column.count, np.nan)
    if not len(column.levels):
        return values
    levels = column.levels
    if infinite == "missing" and levels.dtype.is_float():
        levels = levels.set(levels.is_infinite(), np.nan)
    found = line_of(levels)
    if found is None or (scale is not None and scale_name(column) != scale):
        raise InputError(
            f"Column '{column.name}' is {kind_of(column.levels.dtype)}, but was "
            f"{scale or 'a quantity'} when the step was fitted. Read it as it was then."
        )
    values[: len(found)] = found
    return values


def numbers_of(values: pl.Series) -> npt.NDArray[Any]:
    """Numbers as 64-bit integers or floats; a duration counts in seconds."""
    kind = kind_of(values.dtype)
    if kind == "duration":
        ticks = {"ms": 1e3, "us": 1e6, "ns": 1e9}[getattr(values.dtype, "time_unit", "us")]
        return values.to_physical().cast(pl.Float64).to_numpy() / ticks
    if kind == "integer":
        return values.cast(pl.UInt64 if values.dtype == pl.UInt64 else pl.Int64).to_numpy()
    if kind != "float":
        raise InputError(
            f"Column '{values.name}' is {kind}, so a hierarchy of numbers does not fit it. Use "
            "one for its kind, or let Shoal propose one (Hierarchy.propose, 'shoal hierarchy')."
        )
    floats = values.cast(pl.Float64).to_numpy()
    infinite = int(np.isinf(floats).sum())
    if infinite:
        raise InputError(
            f"Column '{values.name}' holds {infinite} infinite values. Make them missing first."
        )
    return floats


def line_of(values: pl.Series) -> Floats | None:
    """Each value as a number; None if the values are not quantities."""
    kind = kind_of(values.dtype)
    if kind in ("text", "boolean"):
        return None
    if kind in ("date", "datetime", "time"):
        return days_of(values)
    return numbers_of(values).astype(np.float64)


def days_of(values: pl.Series) -> Floats:
    """Dates, datetimes (by the local time of their zone) and times in days."""
    if kind_of(values.dtype) == "time":
        return values.to_physical().cast(pl.Float64).to_numpy() / 86_400e9
    moments = moments_of(values)
    whole = moments.astype("datetime64[D]")
    ticks = (PER_DAY | {"D": 1})[np.datetime_data(moments.dtype)[0]]
    rest = (moments - whole.astype(moments.dtype)).astype(np.float64) / ticks
    return whole.astype(np.float64) + rest


def moments_of(values: pl.Series) -> npt.NDArray[np.datetime64]:
    """Dates and datetimes in numpy's type, without their zone."""
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None:
        # by local time, as people read it
        values = values.dt.replace_time_zone(None)
    unit = getattr(values.dtype, "time_unit", "D")
    return values.to_physical().cast(pl.Int64).to_numpy().astype(f"datetime64[{unit}]")
