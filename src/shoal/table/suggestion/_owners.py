"""Columns that identify people: the unit if a person has several rows, and missed identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from shoal.table._classes import form_classes
from shoal.table._roles import Roles
from shoal.table.columns._column import Column, in_one_code
from shoal.table.suggestion._column_names import hints_of
from shoal.table.suggestion._patterns import Evidence, looks_like_identifier

#: Kinds that several people may share; such columns identify people only together.
_SHARED = ("person_name", "phone", "address", "ip_address")
#: Kinds that number or describe rows, never persons.
_OF_ROWS = ("row_number", "unique_text", "free_text")
_HOUSEHOLD = re.compile(
    r"(.*_)?(household|haushalt(s)?|m[ée]nage|hogar|hh)(_?(id|nr|no|num|number|nummer|key|code))?"
    r"|(.*_)?hid",
    re.IGNORECASE,
)
_FEWEST = 2
_PERSON = (
    r"(patient(en)?|person(en)?|subject|customer|client|member|user|employee|student|pupil|"
    r"respondent|participant|insured|beneficiary|citizen|policyholder|applicant|borrower|donor|"
    r"voter|inmate|versicherte(r|n)?|kunde(n)?|mitarbeiter|sch(ü|ue)ler|proband(en)?|mitglied(s)?)"
)
#: Names of columns that hold the key of a person.
_PERSON_KEY = re.compile(
    rf"(.*_)?{_PERSON}_?(id|nr|no|num|nbr|number|nummer|key|code)", re.IGNORECASE
)
_BARE_PERSON = re.compile(_PERSON, re.IGNORECASE)
#: With this many distinct codes, a column named like "patient" holds people, not answers or counts.
_FEWEST_CODES = 10


def is_household(name: str) -> bool:
    """Whether the name of a column refers to households."""
    return _HOUSEHOLD.fullmatch(_joined(name)) is not None


def is_person_key(column: Column) -> bool:
    """Whether the name of a column says that it is the key of a person."""
    name = _joined(column.name)
    if _PERSON_KEY.fullmatch(name) is not None:
        return True
    if _BARE_PERSON.fullmatch(name) is None or column.distinct < _FEWEST_CODES:
        return False
    if column.dtype == pl.String():
        return bool(column.codes.levels.str.contains(r"\d").all())
    return column.dtype.is_integer()


def _joined(name: str) -> str:
    """A name with one underscore between its words, also for ``twoWords``."""
    return re.sub(r"(?<=[a-zäöü])(?=[A-Z])|[\s.-]+", "_", name.strip())


def repeating_owners(
    columns: Mapping[str, Column],
    rows: int,
    roles: Roles,
    repeats: Callable[[Sequence[str]], int | None] | None = None,
) -> dict[tuple[str, ...], int]:
    """Columns that seem to identify the person of a row and repeat, with their distinct values.

    Empty if the roles declare that each row is a person; with a declared unit, only coarser keys of
    persons. The function checks declared identifiers and columns that look like the key of a
    person. It takes columns that people share, such as names, phones and postcodes, together. If
    ``columns`` hold only a part of the rows, ``repeats`` counts over all of them.
    """
    count = repeats or (lambda names: repeated([columns[name] for name in names]))
    if rows < _FEWEST:
        return {}
    keys = [
        name
        for name, column in columns.items()
        if name not in roles.quasi_identifiers and is_person_key(column)
    ]
    found: dict[tuple[str, ...], int] = {
        (name,): distinct for name in keys if (distinct := count([name])) is not None
    }
    if roles.unit_columns:  # another key with fewer values may be the real person
        persons = count(roles.unit_columns) or rows
        return {names: distinct for names, distinct in found.items() if distinct < persons}
    if roles.unit:
        return {}
    if found or any(name in roles.identifiers for name in keys):
        return found  # a key of persons that does not repeat shows that each row is a person
    shared: list[str] = []
    for name, column in columns.items():
        role = roles.of(name)
        if role not in ("identifiers", None, "insensitive") or name in keys:
            continue
        evidence = looks_like_identifier(column)
        if evidence is None and role != "identifiers":
            continue
        if is_household(name) or (evidence is not None and evidence.kind in _OF_ROWS):
            continue
        by_nature = hints_of(name).quasi if evidence is None else evidence.kind in _SHARED
        if by_nature:  # several people can have the same name, phone or postcode
            shared.append(name)
        elif (distinct := count([name])) is not None:
            found[(name,)] = distinct
    if shared and not found:
        also = [name for name in roles.identifiers if name not in shared]
        of_people = [name for name in also if _is_of_people(columns[name])]
        if (distinct := count([*shared, *of_people])) is not None:
            found[tuple(shared)] = distinct
    return found


def suggested_unit(
    columns: Mapping[str, Column], evidence: dict[str, Evidence], keys: Sequence[str] = ()
) -> str | None:
    """The column that identifies the person of a row; None if each row seems to be a person."""
    found: dict[str, int] = {}
    others = (
        name
        for name, why in evidence.items()
        if why.kind not in (*_SHARED, *_OF_ROWS) and not is_household(name) and name not in keys
    )
    for name in (*keys, *others):
        distinct = None if columns[name].missing_count else repeated([columns[name]])
        if distinct is not None:
            found[name] = distinct + (len(columns[name]) if name in keys else 0)
    return max(found, key=lambda name: found[name]) if found else None


def repeated(columns: Sequence[Column]) -> int | None:
    """The number of distinct values that columns have together, or None if none repeats."""
    there = np.all([column.present for column in columns], axis=0)
    rows = int(there.sum())
    if not rows:
        return None
    if len(columns) == 1:
        distinct = columns[0].distinct
    else:
        distinct = form_classes((column.codes.at(there) for column in columns), rows).count
    return distinct if distinct < rows else None


def _is_of_people(column: Column) -> bool:
    """Whether a column looks like an identifier of people rather than of rows."""
    evidence = looks_like_identifier(column)
    return evidence is not None and evidence.kind not in ("record_id", *_OF_ROWS)


#: Types that may hold the same identifier written differently.
_WRITTEN_ALIKE = {pl.String(), pl.Int64(), pl.Int32(), pl.UInt64(), pl.UInt32()}


def undeclared_identifiers(columns: Mapping[str, Column], roles: Roles) -> dict[str, str]:
    """Columns that would be released although they identify people, each with its evidence."""
    found = {}
    for name, column in columns.items():
        role = roles.of(name)
        if role in (None, "weight", "target"):
            evidence = looks_like_identifier(column)
            if evidence is not None:
                found[name] = str(evidence)
            elif is_person_key(column) and column.codes.count > 1:
                found[name] = "named like the key of a person"
        if role not in ("identifiers", "insensitive", "unit", "household", "drop"):
            copied = _copied_identifier(columns, roles, column)
            if copied is not None:
                found[name] = f"a copy of the identifier '{copied}'"
    return found


def _copied_identifier(columns: Mapping[str, Column], roles: Roles, column: Column) -> str | None:
    """The identifier that has the same value as a column in most rows, or None."""
    withheld = [columns[name] for name in roles.naming]
    for other in withheld:
        types = {column.dtype, other.dtype}
        numbers = all(dtype.is_numeric() for dtype in types)
        if not (len(types) == 1 or numbers or types <= _WRITTEN_ALIKE) or column.codes.count <= 2:
            continue
        one, two = in_one_code(column, other)
        mine, theirs = one[column.codes.codes], two[other.codes.codes]
        if 2 * np.count_nonzero((mine == theirs) & (mine >= 0)) > len(mine):
            return other.name
    return None
