"""Persons who were not in the table, on whom an attack is tried too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import InputError, quoted
from shoal.table import Table, shared_persons


def check_control(control: Any, original: Table, columns: Sequence[str] = ()) -> None:
    """Raise InputError where a control group is none, or has nobody else or too few columns.

    Persons of the same input are welcome who are not in the original: the other part of a split,
    which leaves each person on one side.
    """
    if not isinstance(control, Table):
        raise InputError(
            "The 'control' must be a shoal.Table of persons who were not in the original; got "
            f"{type(control).__name__} instead."
        )
    if len(control) == 0:
        raise InputError("The control group has no persons.")
    if control.pairs_with(original) and np.isin(control.row_key, original.row_key).any():
        raise InputError(
            "Some control persons are in the original; give persons who were not in the table."
        )
    known = int(shared_persons(original, control).sum())
    if known:
        raise InputError(
            f"{known:,} rows of the control group are of persons who are in the original by their "
            "unit; give persons who were not in the table, with units of their own."
        )
    lacking = [name for name in columns if name not in control.columns]
    if lacking:
        raise InputError(
            f"The control group has no column {quoted(lacking)}; it needs all columns that the "
            "original and the attack have."
        )
