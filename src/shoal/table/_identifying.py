"""Columns that would leave although they identify people."""

from __future__ import annotations

import polars as pl

from shoal.table._comparable import comparable
from shoal.table._roles import Roles
from shoal.table.suggestion._owners import is_person_key
from shoal.table.suggestion._patterns import looks_like_identifier

#: Types that may hold the same identifier in another writing.
_WRITTEN_ALIKE = {pl.String(), pl.Int64(), pl.Int32(), pl.UInt64(), pl.UInt32()}


def identifying_columns(data: pl.DataFrame, roles: Roles) -> dict[str, str]:
    """The evidence in words, by column.

    Columns without a role, the weight and the target are looked at, and every column that is not
    said to be insensitive is compared with the declared identifiers, of which it may be a copy.
    """
    found = {}
    for name in data.columns:
        role = roles.of(name)
        if role in (None, "weight", "target"):
            evidence = looks_like_identifier(data[name], name)
            if evidence is not None:
                found[name] = str(evidence)
            elif is_person_key(name) and data[name].n_unique() > 1:
                found[name] = "the key of a person, by its name"
        if role not in ("identifiers", "insensitive", "unit", "household"):
            copied = _copied_identifier(data, roles, name)
            if copied is not None:
                found[name] = f"a copy of the identifier '{copied}'"
    return found


def _copied_identifier(data: pl.DataFrame, roles: Roles, name: str) -> str | None:
    """The identifier that has the same value in most of the rows, if there is one."""
    own = data[name]
    if own.n_unique() <= 2:
        return None
    for identifier in roles.withheld:
        other = data[identifier]
        types = {own.dtype, other.dtype}
        alike = len(types) == 1 or all(dtype.is_numeric() for dtype in types)
        if not alike and not types <= _WRITTEN_ALIKE:
            continue
        one, two = comparable(own, other)
        if int((one == two).sum()) > data.height / 2:
            return identifier
    return None
