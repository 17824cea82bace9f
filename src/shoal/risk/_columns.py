"""A column of the original and of the masked table, in one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.table import Table

Floats = npt.NDArray[np.float64]

_NUMERIC = ("integer", "float")


def shared_numbers(name: str, original: Table, masked: Table) -> Floats:
    """A column of both tables from its least value on, about 1 in size; NaN where missing.

    Whole numbers are shifted before they become floats, so that large ones keep their digits.
    """
    return shared_numbers_and_unit(name, original, masked)[0]


def shared_numbers_and_unit(name: str, original: Table, masked: Table) -> tuple[Floats, float]:
    """The numbers of :func:`shared_numbers`, and how much of their scale a difference of 1 is."""
    both = [table.numbers(name) for table in (original, masked)]
    present = np.concatenate([numbers.present for numbers in both])
    values: npt.NDArray[Any]
    if all(numbers.values.dtype.kind in "iu" for numbers in both):
        least = min(
            (int(n.values[n.present].min()) for n in both if n.present.any()), default=0
        )  # differences are exact modulo 2 ** 64
        shift = np.uint64(least % 2**64)
        parts = [n.values.view(np.uint64) - shift for n in both]
        values = np.concatenate(parts).astype(np.float64)
    else:
        values = np.concatenate([numbers.values.astype(np.float64) for numbers in both])
    values = np.where(present, values, 0.0)
    largest = np.abs(values).max(initial=0.0)
    power = -int(np.frexp(largest)[1])  # of two: ranges then neither overflow nor vanish
    return np.where(present, np.ldexp(values, power), np.nan), float(np.ldexp(1.0, power))


def is_numeric(name: str, original: Table, masked: Table) -> bool:
    """Whether a column is of finite numbers in both tables; infinite ones have no distance."""
    if original.kind(name) not in _NUMERIC or masked.kind(name) not in _NUMERIC:
        return False
    try:
        original.numbers(name), masked.numbers(name)
    except InputError:
        return False
    return True
