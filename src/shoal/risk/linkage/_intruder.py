"""An intruder who links records: what is known, and about whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Integers
from shoal.randomness import SecretStream
from shoal.risk._options import Known
from shoal.table import Classes, Table

#: At most this many persons are linked by default: ± 1 percent at a rate of 0.2.
SAMPLE = 5_000

#: Who is measured is not a secret: verifying a release must measure the same persons.
PUBLIC_KEY = "00" * 32


@dataclass(frozen=True, eq=False)
class Intruder:
    """An intruder knows columns of persons in the original and sees the masked table.

    ``persons`` are rows of the original, one for each person: the one that is known. ``own`` is
    each row's place in the masked table, or -1 if it was removed.
    """

    original: Table
    masked: Table
    known: tuple[str, ...]
    persons: Integers
    own: Integers

    @property
    def released(self) -> tuple[str, ...]:
        """The known columns that were released: those that a link can use."""
        return tuple(name for name in self.known if name in self.masked.columns)

    @cached_property
    def people(self) -> tuple[Integers, Integers]:
        """Numbers of the persons (-1 without a record) and of each masked record's person."""
        if not self.original.has_persons:
            return self.own, np.arange(len(self.masked))
        if not self.masked.pairs_with(self.original):
            return self.own, np.arange(len(self.masked))
        records = persons_of_records(self.original, self.masked)
        numbers = self.original.persons[self.persons]
        return np.where(np.isin(numbers, records), numbers, -1), records

    @cached_property
    def crowds(self) -> Classes:
        """The masked records grouped by equal values of the released known columns."""
        return self.masked.group(self.released)

    @property
    def there(self) -> Flags:
        """Whether each person has a record in the masked table."""
        found: Flags = self.people[0] >= 0
        return found


def intruder_of(
    original: Table, masked: Table, *, known: Known, sample: int, random_state: int | None
) -> Intruder:
    """Check the options, draw the persons and pair them with their records."""
    masked.check_pairs_with(original)
    if len(masked) == 0 or len(original) == 0:
        raise InputError("Linkage needs records, and one of the two tables has none.")
    names = known_columns(original, masked, known)
    persons = drawn_rows(original, int(sample), random_state)
    own = masked.rows_of_keys(original.row_key[persons])
    return Intruder(original, masked, names, persons, own)


def known_columns(original: Table, masked: Table, known: Known) -> tuple[str, ...]:
    """The columns that an intruder knows, by name or by one of the keywords."""
    if known is None or isinstance(known, str):
        return _columns_of_word(original, masked, known or "quasi-identifiers")
    absent = [name for name in known if name not in original.columns]
    if absent:
        raise InputError(f"The original has no column {quoted(absent)} for an intruder to know.")
    return tuple(dict.fromkeys(known))


def _columns_of_word(original: Table, masked: Table, word: str) -> tuple[str, ...]:
    """The columns that a word stands for."""
    roles = original.roles
    quasi, sensitive = roles.quasi_identifiers, roles.sensitive
    if word in ("quasi-identifiers", "informed") and not quasi:
        raise InputError(
            "The original has no quasi-identifiers, so it is not clear what an intruder knows. "
            "Declare them in the roles, or name columns as 'known'."
        )
    if word == "quasi-identifiers":
        return quasi
    if word == "informed":
        if len(sensitive) < 2:
            raise InputError(
                "An informed intruder knows the quasi-identifiers and all sensitive columns but "
                "the first, and wants to learn the first. The original declares "
                f"{len(sensitive)} sensitive columns and needs at least two."
            )
        return (*quasi, *sensitive[1:])
    shared = [n for n in original.columns if n in masked.columns and n not in roles.withheld]
    if word == "left-in-place":
        shared = [name for name in shared if name not in (*quasi, *sensitive)]
    if not shared:
        raise InputError(
            f"The tables share no column that an intruder with known='{word}' could use. Name "
            "columns as 'known'."
        )
    return tuple(shared)


def drawn_persons(row_key: Integers, sample: int, random_state: int | None) -> Integers:
    """The rows of at most ``sample`` persons, independent of the order of the rows."""
    if len(row_key) <= sample:
        return np.arange(len(row_key))
    purpose = ("persons",) if random_state is None else ("persons", str(int(random_state)))
    stream = SecretStream.from_key_hex(PUBLIC_KEY).derive(*purpose)
    drawn = stream.choose(len(row_key), sample)
    in_order = (row_key[1:] > row_key[:-1]).all()
    return np.sort(drawn if in_order else np.argsort(row_key)[drawn])


def drawn_rows(table: Table, sample: int, random_state: int | None = None) -> Integers:
    """One row of each of at most ``sample`` persons, drawn by a public key."""
    if not table.has_persons:
        return drawn_persons(table.row_key, sample, random_state)
    rows = one_row_each(table.persons, table.row_key, random_state)
    eldest = np.full(table.person_count, np.iinfo(np.int64).max)
    np.minimum.at(eldest, table.persons, table.row_key)
    drawn = drawn_persons(eldest[table.persons[rows]], sample, random_state)
    return np.sort(rows[drawn])


def one_row_each(persons: Integers, row_key: Integers, random_state: int | None = None) -> Integers:
    """One row of each person, ascending, chosen by a public key."""
    luck = SecretStream.from_key_hex(PUBLIC_KEY).keyed_hash(
        row_key, "known row", *(() if random_state is None else (str(int(random_state)),))
    )
    order = np.lexsort((luck, persons))
    first = np.concatenate([[True], np.diff(persons[order]) != 0]) if len(order) else order
    return np.sort(order[first])


def persons_of_records(original: Table, masked: Table) -> Integers:
    """The original's number of each masked record's person."""
    rows = original.rows_of_keys(masked.row_key)
    strangers = original.person_count + np.arange(len(rows))
    return np.where(rows >= 0, original.persons[rows], strangers)
