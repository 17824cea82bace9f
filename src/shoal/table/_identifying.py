"""Columns that would leave although they identify people."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from shoal.table._roles import Roles
from shoal.table.columns._column import Column, in_one_code
from shoal.table.suggestion._owners import is_person_key
from shoal.table.suggestion._patterns import looks_like_identifier

#: Types that may hold the same identifier in another writing.
_WRITTEN_ALIKE = {pl.String(), pl.Int64(), pl.Int32(), pl.UInt64(), pl.UInt32()}


def identifying_columns(columns: Mapping[str, Column], roles: Roles) -> dict[str, str]:
    """The evidence in words, by column.

    Columns without a role, the weight and the target are looked at, and every column that is not
    said to be insensitive is compared with the declared identifiers, of which it may be a copy.
    """
    found = {}
    for name, column in columns.items():
        role = roles.of(name)
        if role in (None, "weight", "target"):
            evidence = looks_like_identifier(column)
            if evidence is not None:
                found[name] = str(evidence)
            elif is_person_key(column) and column.codes.count > 1:
                found[name] = "the key of a person, by its name"
        if role not in ("identifiers", "insensitive", "unit", "household"):
            copied = _copied_identifier(columns, roles, column)
            if copied is not None:
                found[name] = f"a copy of the identifier '{copied}'"
    return found


def _copied_identifier(columns: Mapping[str, Column], roles: Roles, column: Column) -> str | None:
    """The identifier that has the same value in most of the rows, if there is one."""
    withheld = [columns[name] for name in roles.withheld]
    alike = [other for other in withheld if _written_alike(column.dtype, other.dtype)]
    if not alike or column.codes.count <= 2:
        return None
    for other in alike:
        one, two = in_one_code(column, other)
        mine, theirs = one[column.codes.codes], two[other.codes.codes]
        if 2 * np.count_nonzero((mine == theirs) & (mine >= 0)) > len(mine):
            return other.name
    return None


def _written_alike(one: pl.DataType, other: pl.DataType) -> bool:
    """Whether columns of these types may hold the same identifier."""
    types = {one, other}
    numbers = all(dtype.is_numeric() for dtype in types)
    return len(types) == 1 or numbers or types <= _WRITTEN_ALIKE
