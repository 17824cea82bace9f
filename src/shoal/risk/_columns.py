"""Whether a column of the original and of the masked table can be compared by distance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.table import Table, scale_name

Floats = npt.NDArray[np.float64]

_NUMERIC = ("integer", "float")
_QUANTITIES = ("date", "datetime", "time", "duration")


def is_numeric(name: str, original: Table, masked: Table) -> bool:
    """Whether a column is of finite numbers in both tables; infinite ones have no distance."""
    if original.kind(name) not in _NUMERIC or masked.kind(name) not in _NUMERIC:
        return False
    try:
        original.numbers(name), masked.numbers(name)
    except InputError:
        return False
    return True


def is_quantity(name: str, original: Table, masked: Table) -> bool:
    """Whether it is of finite numbers, or of dates, times or durations, in both tables."""
    if original.kind(name) in _QUANTITIES and masked.kind(name) in _QUANTITIES:
        return scale_name(original.codes(name)) == scale_name(masked.codes(name))
    return is_numeric(name, original, masked)
