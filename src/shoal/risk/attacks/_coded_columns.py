"""What is known of people, in the terms of a release: the values that its records have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Integers
from shoal.risk.attacks._success import check_control
from shoal.risk.linkage._intruder import Intruder, Known, intruder_of, known_columns
from shoal.table import Table, read_labels_of, stacked_codes, stacked_table, usual_partners

#: Kinds whose values have an order that means something.
_ORDERED = ("integer", "float", "date", "datetime", "time", "duration")
_NUMBERS = ("integer", "float")
#: A number or date with more different values than this is right within a tolerance.
MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class MembersAndControl:
    """Persons of the original, and after them those of a control group, if there is one.

    ``table`` has both; the first ``members`` rows are the original's. ``own`` is for each row
    its record in the masked table, or -1 where there is none or nothing says which one it is.
    ``persons`` has the number of the person of each row.
    """

    table: Table
    masked: Table
    members: int
    own: Integers
    persons: Integers


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """One column of people and of records in one code; -1 where a value is missing.

    ``ordered`` says that codes follow the order of the values. ``coarser`` says that the records
    have labels which nobody had before, so that what is known was mapped to them.
    """

    people: Integers
    records: Integers
    ordered: bool
    coarser: bool

    def of(self, rows: Integers) -> CodedColumn:
        """The same for some of the people."""
        return replace(self, people=self.people[rows])


def unpaired_intruder(
    original: Table, masked: Table, *, known: Known, sample: int, random_state: int | None
) -> Intruder:
    """An intruder as for a linkage, also where nothing says which record is whose."""
    options: dict[str, Any] = {"sample": sample, "random_state": random_state}
    if masked.pairs_with(original):
        return intruder_of(original, masked, known=known, **options)
    if len(masked) == 0:
        raise InputError("The masked table has no records.")
    names = list(known_columns(original, masked, known))
    alone = intruder_of(original, original, known=names, **options)
    return replace(alone, masked=masked, own=np.full(len(alone.persons), -1))


def members_and_control(
    original: Table, masked: Table, control: Table | None, columns: Sequence[str]
) -> MembersAndControl:
    """The original above a control group, with the record of each person where it is known."""
    own = np.full(len(original), -1)
    if masked.pairs_with(original):
        own = masked.rows_of_keys(original.row_key)
    if control is None:
        return MembersAndControl(original, masked, len(original), own, original.persons)
    check_control(control, original, columns)
    both = stacked_table(original, control, columns)
    persons = np.append(original.persons, original.person_count + control.persons)
    own = np.append(own, np.full(len(control), -1))
    return MembersAndControl(both, masked, len(original), own, persons)


def coded_column(name: str, people: MembersAndControl, *, exactly: bool = True) -> CodedColumn:
    """A column of the people in the terms of the release.

    Where a column was made coarser, the intruder maps what is known to the label that most
    persons with this value got; with ``exactly`` somebody's own label is taken to be found. Where
    nothing says which record is whose, labels are read.
    """
    before, after = people.table.kind(name), people.masked.kind(name)
    ordered = (before == after and before in _ORDERED) or {before, after} <= set(_NUMBERS)
    both = stacked_codes(name, people.table, people.masked)
    known, records = both[: len(people.own)], both[len(people.own) :]
    if ordered or _has_all(known[: people.members], records):
        return CodedColumn(known, records, ordered, coarser=False)
    if not (people.own >= 0).any():
        return CodedColumn(*read_labels_of(name, people.table, people.masked), False, coarser=True)
    mapped = _usual_labels(name, people, records)
    if exactly:
        mapped = np.where(people.own >= 0, records[people.own], mapped)
    return CodedColumn(mapped, records, ordered=False, coarser=True)


def _has_all(known: Integers, records: Integers) -> bool:
    """Whether every code of the records, but for missing ones, is among the known ones."""
    has = np.zeros(int(max(known.max(initial=-1), records.max(initial=-1))) + 2, np.bool_)
    has[known] = True
    has[-1] = True  # of missing ones, which are -1
    return bool(has[records].all())


def _usual_labels(name: str, people: MembersAndControl, records: Integers) -> Integers:
    """For each person the label that most records of the same value have; the lowest of ties.

    A value that no released person had is taken for the next lower one that somebody had, or
    the lowest; a missing one, or one without an order, is missing in the release too.
    """
    column = people.table.codes(name)
    codes = column.codes.astype(np.int64)
    taught = people.own >= 0
    values, found = usual_partners(codes[taught], records[people.own[taught]])
    at = np.maximum(np.searchsorted(values, codes, side="right") - 1, 0)
    comparable = np.full(len(codes), people.table.kind(name) in _ORDERED)
    if column.missing is not None:
        comparable &= codes != column.missing
    return np.where(comparable | (values[at] == codes), found[at], -1)


@dataclass(frozen=True, eq=False)
class SecretLabels:
    """The secret of people and records as whole numbers from 0 on, a missing one too.

    ``values`` is how many different ones were released, ``parts`` into how many parts of about
    equally many persons a quantity was cut, or None where a guess must be exact.
    """

    people: Integers
    records: Integers
    values: int
    parts: int | None


def secret_labels(name: str, people: MembersAndControl, tolerance: float) -> SecretLabels:
    """The labels of a secret: its values, or parts of the original's ranks for a quantity."""
    terms = coded_column(name, people)
    parts = None
    members = terms.people[: people.members]
    if terms.ordered and len(np.unique(members[members >= 0])) > MOST_CLASSES:
        parts = max(1, round(1 / tolerance))
        terms = _in_parts(terms, members, parts)
    missing = int(max(terms.people.max(), terms.records.max())) + 1
    labels = [np.where(codes < 0, missing, codes) for codes in (terms.people, terms.records)]
    return SecretLabels(labels[0], labels[1], len(np.unique(labels[1])), parts)


def _in_parts(terms: CodedColumn, members: Integers, parts: int) -> CodedColumn:
    """Each value as the part of the original's ranks that it lies in; equal values stay together.

    A value stands in the middle of the ranks of those who have it.
    """
    ordered = np.sort(members[members >= 0])

    def part(codes: Integers) -> Integers:
        low, high = (np.searchsorted(ordered, codes, side=side) for side in ("left", "right"))
        at = (low + high) * parts // (2 * len(ordered))
        return np.where(codes < 0, -1, np.minimum(at, parts - 1))

    return CodedColumn(part(terms.people), part(terms.records), terms.ordered, terms.coarser)
