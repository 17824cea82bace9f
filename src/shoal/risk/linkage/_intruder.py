"""An intruder who links records: what is known, about whom, and in which codes and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.randomness import SecretStream
from shoal.risk._options import Known
from shoal.table import (
    NUMBERS,
    QUANTITIES,
    Classes,
    Listed,
    Table,
    read_labels_of,
    scale_name,
    shared_codes,
    shared_numbers,
)

if TYPE_CHECKING:
    from shoal.kernels.linkage.best_scores import BestScores, Scored, Scoring
    from shoal.kernels.space.mixed_records import MixedRecords

#: At most this many persons are linked by default: ± 1 percent at a rate of 0.2.
SAMPLE = 5_000
#: At most this many persons are compared with all records by default: ± 2 percent at 0.2.
SCORED_SAMPLE = 2_000

#: Who is measured is not a secret: verifying a release must measure the same persons.
PUBLIC_KEY = "00" * 32


@dataclass(frozen=True, eq=False)
class Intruder:
    """An intruder knows columns of persons in the original and sees the masked table.

    ``persons`` are rows of the original, one for each person: the one that is known. ``own`` is
    each row's place in the masked table, or -1 if it was removed. A link is right if it leads to a
    record of the person or, with ``secrets`` of the persons and of all records, to their secret.
    """

    original: Table
    masked: Table
    known: tuple[str, ...]
    persons: Integers
    own: Integers
    secrets: tuple[Integers, Integers] | None = None

    @property
    def released(self) -> tuple[str, ...]:
        """The known columns that were released: those that a link can use."""
        return tuple(name for name in self.known if name in self.masked.columns)

    @property
    def labels(self) -> tuple[Integers, Integers]:
        """What persons (-1 for nothing) and masked records must share for a link to be right."""
        return self.secrets or self.people

    @cached_property
    def people(self) -> tuple[Integers, Integers]:
        """Numbers of the persons (-1 without a record) and of each masked record's person."""
        if not self.original.has_persons or not self.masked.pairs_with(self.original):
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
        return self.people[0] >= 0


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


def is_numeric(name: str, original: Table, masked: Table) -> bool:
    """Whether a column has only finite numbers in both tables; infinite ones have no distance."""
    both = original.column(name), masked.column(name)
    return all(column.kind in NUMBERS and column.is_finite for column in both)


def is_quantity(name: str, original: Table, masked: Table) -> bool:
    """Whether it has only finite numbers, or dates, times or durations, in both tables."""
    times = set(QUANTITIES) - set(NUMBERS)
    if {original.kind(name), masked.kind(name)} <= times:
        return scale_name(original.codes(name)) == scale_name(masked.codes(name))
    return is_numeric(name, original, masked)


@dataclass(frozen=True, eq=False)
class KnownCodes:
    """A column with common codes for persons and groups of equal records; -1 if missing.

    ``coarser``: the masked table has values that the original does not have. The intruder maps
    known values to them, and is assumed to find the one that the person got.
    """

    persons: Integers
    records: Integers
    coarser: bool = False

    def equal(self, persons: Integers, records: Integers) -> Flags:
        """Whether each person has the code of the matching group of records."""
        return self.persons[persons] == self.records[records]


def known_codes(intruder: Intruder, name: str, *, coarsened: bool = True) -> KnownCodes:
    """A column of the persons and of ``intruder.crowds``; numbers are never ``coarsened``."""
    before, after = shared_codes(name, intruder.original, intruder.masked)
    released = intruder.masked.codes(name).codes
    records = after[released[intruder.crowds.first_rows]]
    kept = np.array_equal(before, after) or np.isin(after[after >= 0], before).all()
    if not coarsened or kept:
        return KnownCodes(before[intruder.original.codes(name).codes[intruder.persons]], records)
    if not intruder.masked.pairs_with(intruder.original):
        persons, cells = read_labels_of(name, intruder.original, intruder.masked)
        records = cells[intruder.crowds.first_rows]
        return KnownCodes(persons[intruder.persons], records, coarser=True)
    own = np.where(intruder.own >= 0, after[released[intruder.own]], -1)
    return KnownCodes(own, records, coarser=True)


@dataclass(frozen=True, eq=False)
class KnownNumbers:
    """A column of quantities ``before`` and ``after`` masking, on one scale; NaN if missing.

    ``unit`` is a difference of 1 on the scale.
    """

    intruder: Intruder
    before: Listed
    after: Listed
    unit: float

    @cached_property
    def persons(self) -> Floats:
        """The known value of each person."""
        return self.before.at(self.intruder.persons)

    @cached_property
    def records(self) -> Floats:
        """The value of each group of equal records."""
        return self.after.at(self.intruder.crowds.first_rows)

    @property
    def values_before(self) -> Floats:
        """The values of all rows of the original, without missing ones."""
        values = self.before.of_rows
        return values[~np.isnan(values)]

    def equal(self, persons: Integers, records: Integers) -> Flags:
        """Whether each person has the number of the matching group of records."""
        theirs = self.after.at(self.intruder.crowds.first_rows[records])
        return self.persons[persons] == theirs


def known_numbers(intruder: Intruder, name: str) -> KnownNumbers:
    """A column of quantities of the persons and of ``intruder.crowds``."""
    return KnownNumbers(intruder, *shared_numbers(name, intruder.original, intruder.masked))


def numbered_tuples(keys: Sequence[Integers], rows: int) -> tuple[Integers, Integers]:
    """Number the rows of columns of codes (from -1 on), equal rows alike; and each first row."""
    from shoal.kernels.grouping import first_rows, group

    labels, count = np.zeros(rows, np.int64), 1
    for codes in keys:
        words = (labels.astype(np.uint64) << np.uint64(32)) | (codes + 1).astype(np.uint64)
        found, sizes = group(words)
        labels, count = found.astype(np.int64), len(sizes)
    return labels, first_rows(labels, count)


@dataclass(frozen=True, eq=False)
class Compared:
    """Two sides in the same codes and units; equal masked records form one tuple.

    ``tuples`` holds the tuple of each masked record. ``rows`` holds all masked records in the order
    of ``tuples``, those of tuple t from ``starts[t]`` on. ``coarser`` are the columns whose values
    became coarser.
    """

    persons: Scored
    records: Scored
    tuples: Integers
    rows: Integers
    starts: Integers
    coarser: tuple[str, ...]

    @property
    def sizes(self) -> Integers:
        """How many masked records each tuple stands for."""
        return np.diff(self.starts)


def compared(intruder: Intruder, values: Mapping[str, KnownNumbers]) -> Compared:
    """The known and released columns as codes; some of them as values."""
    from shoal.kernels.linkage.best_scores import Scored

    names = [name for name in intruder.released if name not in values]
    sides = [
        known_codes(
            intruder, name, coarsened=not is_numeric(name, intruder.original, intruder.masked)
        )
        for name in names
    ]
    keys = [side.records for side in sides]
    # NaN is a value
    keys += [np.unique(side.records, return_inverse=True)[1] for side in values.values()]
    # different cells may be read alike
    alike, first = numbered_tuples(keys, intruder.crowds.count)
    tuples = alike[intruder.crowds.labels]
    sizes = np.bincount(alike, weights=intruder.crowds.rows).astype(np.int64)
    count = len(intruder.persons)
    persons = Scored(
        _by_column([side.persons for side in sides], np.int32, count),
        _by_column([side.persons for side in values.values()], np.float64, count),
    )
    records = Scored(
        _by_column([side.records[first] for side in sides], np.int32, len(first)),
        _by_column([side.records[first] for side in values.values()], np.float64, len(first)),
    )
    coarser = tuple(name for name, side in zip(names, sides, strict=True) if side.coarser)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Compared(persons, records, tuples, np.argsort(tuples, kind="stable"), starts, coarser)


def best_scores(intruder: Intruder, both: Compared, how: Scoring) -> BestScores:
    """Compare every person with every record."""
    from shoal.kernels.linkage.best_scores import BestScores

    persons, records = intruder.labels
    own = np.where(intruder.own >= 0, both.tuples[intruder.own], -1)
    labels = records[both.rows], persons.astype(np.int64)
    found = BestScores(both.persons, both.records, how, both.starts, *labels, own)
    while found.advance() < len(both.sizes):
        pass  # in portions, so that ctrl-C stops it
    return found


def mixed_rows(
    values: Sequence[Floats], codes: Sequence[Integers], rows: int, weights: Floats, **options: Any
) -> MixedRecords:
    """Rows of numbers and codes, given by column, as the kernels compare them."""
    from shoal.kernels.space.mixed_records import mixed_records

    numbers = _by_column(values, np.float64, rows).T
    return mixed_records(numbers, _by_column(codes, np.int64, rows).T, weights=weights, **options)


def _by_column(columns: Sequence[npt.NDArray[Any]], dtype: Any, rows: int) -> npt.NDArray[Any]:
    return np.array(columns, dtype).reshape(len(columns), rows)
