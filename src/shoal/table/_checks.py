"""Whether the roles fit the data, checked at the door."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from shoal.errors import RolesError, quoted
from shoal.table._column import Column
from shoal.table._frames import kind_of
from shoal.table._roles import ROW, Roles


def check_roles(
    columns: Mapping[str, Column], rows: int, roles: Roles, *, released: bool = False
) -> None:
    """Raise RolesError where the roles do not fit; a released column may be empty."""
    if not isinstance(roles, Roles):
        raise RolesError("The roles must be a shoal.Roles; write sh.Roles(identifiers=[...]).")
    roles.check(list(columns))
    if roles.unit == ROW and ROW in columns:
        raise RolesError(
            f"unit = '{ROW}' says that each row is a person, and the table has a column '{ROW}'; "
            f"write unit = ['{ROW}'] if that column says whose row it is, or rename the column."
        )
    if rows == 0 or released:
        return
    empty = [name for name in roles.quasi_identifiers if columns[name].missing_count == rows]
    if empty:
        raise RolesError(
            f"The quasi-identifier {quoted(empty)} has no value in any of the {rows} rows; "
            "leave it out of the quasi-identifiers or read the column again."
        )
    if roles.weight is not None:
        _check_weight(columns[roles.weight].series)
    gaps = {name: columns[name].missing_count for name in roles.unit_columns}
    if any(gaps.values()):
        listed = ", ".join(f"{count} in '{name}'" for name, count in gaps.items() if count)
        raise RolesError(
            f"The unit has missing values ({listed}, of {rows} rows), so nobody knows whose "
            "rows these are; fill them in, or take the rows out."
        )


def _check_weight(weight: pl.Series) -> None:
    if kind_of(weight.dtype) not in ("integer", "float"):
        raise RolesError(f"The weight column '{weight.name}' is not numeric.")
    bad = int((~(weight.is_not_null() & weight.is_finite() & (weight > 0))).sum())
    if bad:
        raise RolesError(
            f"The weight column '{weight.name}' has {bad} values that are missing, infinite or "
            "not above 0; every record needs a positive weight."
        )
