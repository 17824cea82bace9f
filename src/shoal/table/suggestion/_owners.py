"""Whose row it is: columns whose repeated values show that a person has several rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from shoal.table._classes import classes_of
from shoal.table._roles import Roles
from shoal.table.suggestion._column_names import hints_of
from shoal.table.suggestion._patterns import Evidence, looks_like_identifier

#: What several people may share: only together do such columns say who it is.
_SHARED = ("person_name", "phone", "address", "ip_address")
#: What numbers rows or describes them, and never a person.
_OF_ROWS = ("row_number", "unique_text", "free_text")
_HOUSEHOLD = re.compile(
    r"(.*_)?(household|haushalt(s)?|m[ée]nage|hogar|hh)(_?(id|nr|no|num|number|nummer|key|code))?"
    r"|(.*_)?hid",
    re.IGNORECASE,
)
_FEWEST = 2


def is_household(name: str) -> bool:
    """Whether the name of a column speaks of households.

    Examples
    --------
    >>> [is_household(name) for name in ("household_id", "hhid", "household_size", "patient_id")]
    [True, True, False, False]
    """
    return _HOUSEHOLD.fullmatch(re.sub(r"[\s.-]+", "_", name.strip())) is not None


def repeating_owners(data: pl.DataFrame, roles: Roles) -> dict[tuple[str, ...], int]:
    """Columns that seem to say whose row it is, and repeat, with the number of their values.

    Nothing where the roles name a unit, or say that each row is a person. Declared identifiers
    are looked at, and columns that may leave but look like a person's key. What people share, as
    names, phones and postcodes, is looked at together.

    Examples
    --------
    >>> frame = pl.DataFrame({"patient_id": [7, 7, 8, 8, 8], "age": [30, 30, 41, 41, 42]})
    >>> repeating_owners(frame, Roles(identifiers=["patient_id"], quasi_identifiers=["age"]))
    {('patient_id',): 2}
    """
    if roles.unit or data.height < _FEWEST:
        return {}
    found: dict[tuple[str, ...], int] = {}
    shared: list[str] = []
    for name in data.columns:
        role = roles.of(name)
        if role not in ("identifiers", None, "insensitive"):
            continue
        evidence = looks_like_identifier(data[name], name)
        if evidence is None and role != "identifiers":
            continue
        if is_household(name) or (evidence is not None and evidence.kind in _OF_ROWS):
            continue
        if _is_shared(evidence, name):
            shared.append(name)
        elif (distinct := repeated(data, [name])) is not None:
            found[(name,)] = distinct
    if shared and not found:
        also = [name for name in roles.identifiers if name not in shared]
        of_people = [name for name in also if _is_of_people(data[name], name)]
        if (distinct := repeated(data, [*shared, *of_people])) is not None:
            found[tuple(shared)] = distinct
    return found


def suggested_unit(data: pl.DataFrame, evidence: dict[str, Evidence]) -> str | None:
    """The column that says whose row it is; None where each row seems to be a person.

    Of several columns that look like identifiers and repeat it is the one with most values: a
    patient's number rather than that of the ward.
    """
    found = {}
    for name, why in evidence.items():
        if why.kind not in (*_SHARED, *_OF_ROWS) and not is_household(name):
            distinct = repeated(data, [name])
            if distinct is not None and not data[name].null_count():
                found[name] = distinct
    return max(found, key=lambda name: found[name]) if found else None


def repeated(data: pl.DataFrame, names: Sequence[str]) -> int | None:
    """How many different values some columns have together, where they repeat; else None.

    Rows in which one is missing are left out.
    """
    present = data.select(data[name] for name in names).drop_nulls()
    if not present.height:
        return None
    distinct = classes_of(present.get_columns(), present.height).count
    return distinct if distinct < present.height else None


def _is_shared(evidence: Evidence | None, name: str) -> bool:
    """Whether several people have the same value by nature: a name, a phone, a postcode."""
    if evidence is None:
        return hints_of(name).quasi is not None
    return evidence.kind in _SHARED


def _is_of_people(series: pl.Series, name: str) -> bool:
    """Whether a column that no two people share is about them, and not about rows."""
    evidence = looks_like_identifier(series, name)
    return evidence is not None and evidence.kind not in ("record_id", *_OF_ROWS)
