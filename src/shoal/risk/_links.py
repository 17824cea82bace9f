"""What linking gave, and what of a column an intruder compares: shared by all linkages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.errors import quoted
from shoal.risk._intruder import Floats, Integers, Intruder
from shoal.table import Table, read_labels_of, stacked_codes


@dataclass(frozen=True, eq=False)
class Links:
    """For each person the chance that the linked record has the person's label.

    ``details`` and ``warnings`` are those of the measurement to be made of it.
    """

    chances: Floats
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class KnownCodes:
    """A column in one code for both sides; -1 where a value is missing.

    ``coarser`` says that the masked table has values which the original has not. An intruder maps
    what is known to them, and is taken to find the one that the person got.
    """

    persons: Integers
    records: Integers
    coarser: bool


def known_codes(who: Intruder, name: str, *, coarsened: bool = True) -> KnownCodes:
    """What is known of the persons in a column, and what the masked records have there.

    ``coarsened=False`` is for numbers: masked ones are others, and none is a class of values.
    """
    both = stacked_codes(name, who.original, who.masked)
    before, released = both[: len(who.original)], both[len(who.original) :]
    if not coarsened or np.isin(released[released >= 0], before).all():
        return KnownCodes(before[who.persons], released, coarser=False)
    if not who.masked.pairs_with(who.original):
        persons, records = read_labels_of(name, who.original, who.masked)
        return KnownCodes(persons[who.persons], records, coarser=True)
    return KnownCodes(np.where(who.own >= 0, released[who.own], -1), released, coarser=True)


def blind_links(who: Intruder, person_labels: Integers, record_labels: Integers) -> Links:
    """Where nothing that is known was released: any record is as good as another."""
    values, counts = np.unique(record_labels, return_counts=True)
    at = np.minimum(np.searchsorted(values, person_labels), len(values) - 1)
    there = (values[at] == person_labels) & (person_labels >= 0)
    return Links(np.where(there, counts[at] / len(who.masked), 0.0))


def about_coarser(names: Iterable[str]) -> tuple[str, ...]:
    """What an intruder is taken to know about columns that were made coarser."""
    if not (names := list(names)):
        return ()
    return (
        f"The columns {quoted(names)} were made coarser: the intruder is taken to know which "
        "released value a person has in them.",
    )


def about_sampled(original: Table, masked: Table) -> tuple[str, ...]:
    """A sample that hides most people does not hide those who are in it."""
    if masked.person_count >= original.person_count:
        return ()
    return (
        f"The masked table has {len(masked):,} records of {original.person_count:,} "
        "persons, all of whom count here; the risk of those who are in it can be higher.",
    )


def about_renamed(original: Table, masked: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Columns that may still be there under names which nobody can know."""
    lacking = [name for name in names if name not in masked.columns]
    added = [name for name in masked.columns if name not in original.columns]
    if not lacking or not added:
        return ()
    return (
        f"The masked table has no column {quoted(lacking)}, and it has {quoted(added)}, which the "
        "original has not: a column under another name counts as taken out; give it its old name.",
    )
