"""A column of quantities as numbers of one scale, whatever unit its type counts in."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import Kind, kind_of
from shoal.table.hierarchy._rule import bounds_of_values

#: The scale of whole numbers and fractions.
NUMBERS: Final = "numbers"
#: Kinds that are compared with each other.
_SCALES: dict[Kind, str] = {"integer": NUMBERS, "float": NUMBERS, "datetime": "date"}


def scale_of(kind: Kind) -> str:
    """What values of a kind are measured in: equal names can be compared."""
    return _SCALES.get(kind, kind)


def scale_name(column: Codes) -> str:
    """What the values of a column are measured in."""
    return scale_of(kind_of(column.levels.dtype))


def quantities(
    column: Codes, scale: str | None = None, *, infinite: Literal["refused", "missing"] = "refused"
) -> Floats:
    """Each code of a column as a number; a missing value is NaN.

    Dates and datetimes count in days, times in parts of a day, durations in seconds. Where a
    ``scale`` is named, a column of another one is refused; one without any value fits all. An
    infinite number is ``refused``, or ``missing``.
    """
    values = np.full(column.count, np.nan)
    if not len(column.levels):
        return values
    levels = column.levels
    if infinite == "missing" and levels.dtype.is_float():
        levels = levels.set(levels.is_infinite(), np.nan)
    found = bounds_of_values(levels)
    if found is None or (scale is not None and scale_name(column) != scale):
        raise InputError(
            f"Column '{column.name}' is {kind_of(column.levels.dtype)}, and was "
            f"{scale or 'a quantity'} when the step was fitted; read it as it was then."
        )
    values[: len(found)] = found[:, 0]
    return values
