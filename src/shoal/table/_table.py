"""The table: columns, the parts they play, and a private record of where its rows came from."""

from __future__ import annotations

import contextlib
import os
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import (
    CallError,
    InputError,
    UnknownAttribute,
    UnknownName,
    did_you_mean,
    quoted,
)
from shoal.hints import Helpful, instead
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.notebook import listing, view
from shoal.table._classes import (
    Agreement,
    Classes,
    agreement_of,
    counting,
    form_classes,
    histories,
    once_per_person,
    owned_pairs,
    weights_by_class,
)
from shoal.table._pair import Pair, counted_in
from shoal.table._provenance import Course, Exchange, Owners, Provenance, Sampling, pseudonyms
from shoal.table._roles import Roles, as_roles, check_roles, role_word
from shoal.table.columns._column import Column, Numbers, keys_of
from shoal.table.columns._domain import ROOT, Domain
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import (
    Kind,
    Names,
    Origin,
    check_names,
    refuse_beyond_calendar,
    refuse_index_names,
    to_polars,
)
from shoal.table.storage._formats import Dialect, format_of
from shoal.table.storage._formulas import Formulas, may_run, running
from shoal.table.storage._reading import Manner
from shoal.table.storage._write import schema_of, unwritable_columns, write_columns
from shoal.table.suggestion._owners import repeating_owners, undeclared_identifiers

if TYPE_CHECKING:
    from shoal.randomness import SecretStream

Missing = Literal["own", "wildcard"]
_ANEW = "Change the frame, and make a new one: sh.Table(frame, roles)."
Scalar = TypeVar("Scalar", bound=np.generic)
T = TypeVar("T")


def check_reading(missing: Missing) -> None:
    """Raise InputError unless it is one of the two readings of a missing value."""
    if missing not in ("own", "wildcard"):
        raise InputError(f"missing must be 'own' or 'wildcard'; got '{missing}'.")


def check_table(given: object, taker: str) -> None:
    """Raise InputError for what is no table."""
    if not isinstance(given, Table):
        raise InputError(
            f"{taker} needs a shoal.Table; got {type(given).__name__}. Write sh.Table(frame, "
            "roles)."
        )


class Table(Helpful):
    """A frame about people with the roles of its columns; frozen.

    Every row carries a private key from reading on: its position in the input. Samples are
    chosen by it and the audit refers to it; it is never a column and never leaves the private
    half of a release.

    Parameters
    ----------
    frame : polars, pandas or pyarrow frame
        The data. ``table.frame`` gives the same type back. An index is not kept.
    roles : Roles or dict, optional
        Which column plays which part.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [31, 31, 40], "zip": ["1000", "1000", "2000"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "zip"]))
    >>> table
    Table: 3 rows, 2 columns (2 quasi-identifiers)
    >>> table.classes.k
    1
    >>> table.shape, "age" in table, table["age"].to_list()
    ((3, 2), True, [31, 31, 40])
    """

    _instead = instead(
        {
            "table.frame": "data df to_pandas to_polars to_frame",
            "table.frame, which is the frame that came in": "iloc loc rows",
            "table.frame.tail()": "tail",
            "table.write('table.csv')": "to_csv to_parquet save",
            "table.schema": "dtypes",
            "table.classes.k": "k",
            "table.with_roles(roles)": "set_roles",
            "table.roles.quasi_identifiers": "quasi_identifiers",
            "sh.assess(table)": "describe assess",
            "sh.protect(table, k=5)": "protect anonymize",
        }
    )

    _columns: dict[str, Column]
    _origin: Origin
    _roles: Roles
    _past: Provenance
    #: Groupings by the columns they are of; tables with the same rows share them.
    _kept: dict[tuple[Any, ...], Any]
    _manner: Manner | None

    def __init__(self, frame: Any, roles: Roles | Mapping[str, Any] | None = None) -> None:
        if isinstance(frame, Table):
            raise InputError("This is a Table already; use table.with_roles(...) for other roles.")
        data, origin = to_polars(frame)
        columns = {series.name: Column(series) for series in data}
        given = as_roles(roles)
        refuse_index_names([name for _, name in given.items() if name not in columns], frame)
        self._begin(columns, data.height, origin, given)

    def _begin(self, columns: dict[str, Column], rows: int, origin: Origin, roles: Roles) -> None:
        check_roles(columns, rows, roles)
        past = Provenance(np.arange(rows, dtype=np.int64), uuid.uuid4().hex, Owners())
        vars(self).update(_columns=columns, _origin=origin, _roles=roles, _past=past, _kept={})
        vars(self)["_manner"] = None
        vars(self)["_past"] = replace(past, owners=Owners().under(roles, self))

    @classmethod
    def of_columns(cls, columns: Sequence[Column], roles: Roles | None = None) -> Table:
        """A table of columns that were read as such, and may be coded already."""
        check_names([column.name for column in columns])
        for column in columns:
            if column.dtype.is_temporal():
                refuse_beyond_calendar(column.series)
        table = cls.__new__(cls)
        named = {column.name: column for column in columns}
        origin = Origin("polars", {column.name: column.dtype for column in columns})
        rows = len(columns[0]) if columns else 0
        table._begin(named, rows, origin, as_roles(roles))
        return table

    def __setattr__(self, name: str, value: Any) -> None:
        raise UnknownAttribute(f"'{name}' cannot be set: a table is frozen. {_ANEW}")

    def __setitem__(self, name: object, value: object) -> NoReturn:
        raise CallError(f"Cells cannot be set: a table is frozen. {_ANEW}")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": {}}

    def _meant(self, name: str) -> str:
        return f"Write table['{name}']." if name in self._columns else super()._meant(name)

    # -- what it is

    @property
    def frame(self) -> Any:
        """The data, in the frame type that came in."""
        return self._origin.restore(self._data)

    @property
    def _data(self) -> pl.DataFrame:
        series = [column.series for column in self._columns.values()]
        return pl.DataFrame(series) if series else pl.DataFrame(height=len(self))

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return self._roles

    @property
    def manner(self) -> Manner | None:
        """How the source was read, and what was found out about it; None for a frame."""
        return self._manner

    @property
    def row_key(self) -> Integers:
        """The private key of each row: its position in the input. Never publish it."""
        return self._past.row_key

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return Names(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(self._past.row_key)

    def __iter__(self) -> Iterator[str]:
        """The names of the columns, as frames of pandas give them."""
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str | list[str]) -> Any:
        """A column as a series, or some columns as a frame, of the library that came in."""
        if isinstance(name, list):
            return self._given_back(name, len(self))
        if not isinstance(name, str):  # a mask or a slice, whose text may quote cells
            raise UnknownName(
                f"A table is read by the names of its columns; got {type(name).__name__}. For rows "
                "take table.head(), or table.frame."
            )
        return self._given_back([name], len(self))[name]

    def head(self, rows: int = 5) -> Any:
        """The first rows, in the frame type that came in."""
        return self._given_back(self.columns, rows)

    def _given_back(self, names: Sequence[str], rows: int) -> Any:
        series = [self.column(name).series.head(rows) for name in names]
        return self._origin.restore(pl.DataFrame(series))

    @property
    def times(self) -> Integers | None:
        """How many records each row stands for; None where each row is one."""
        return self._past.times

    @property
    def records(self) -> int:
        """The number of records: of rows, unless each stands for several."""
        return len(self) if self.times is None else int(self.times.sum())

    def records_at(self, rows: Flags) -> int:
        """How many records the marked rows stand for."""
        return int(np.count_nonzero(rows) if self.times is None else self.times[rows].sum())

    def total(self, values: npt.NDArray[Any]) -> Any:
        """The sum over persons of a value of each record: of a person's rows, the largest one."""
        if self.times is None or self.has_persons:
            return self.of_persons(values).sum()
        return (values * self.times).sum()

    def total_of_classes(self, values: npt.NDArray[Any]) -> Any:
        """The same of a value of each class."""
        if self.has_persons:
            return self.of_persons(self.classes.spread(values)).sum()
        return (values * self.classes.rows).sum()

    def __repr__(self) -> str:
        counts = [
            (len(self.roles.identifiers), "identifier"),
            (len(self.roles.quasi_identifiers), "quasi-identifier"),
            (len(self.roles.sensitive), "sensitive column"),
        ]
        said = ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n)
        size = f"Table: {len(self)} rows, {len(self.columns)} columns"
        return f"{size} ({said or 'no roles'})"

    def _repr_html_(self) -> str:
        """The columns with their types and roles; no cell, which :meth:`head` shows."""
        rows = (
            (name, c.kind, role_word(self.roles.of(name)), c.distinct, c.missing_count)
            for name, c in self._columns.items()
        )
        head = ("column", "type", "role", "different values", "missing")
        cells = "table.head() shows the first rows."
        return view(repr(self), listing(head, rows, of="columns"), quiet=cells)

    def column(self, name: str) -> Column:
        """A column, with its codes and numbers once they are asked for."""
        if not isinstance(name, str):
            raise UnknownName(f"A column is named by a text; got {type(name).__name__}.")
        found = self._columns.get(name)
        if found is None:
            raise UnknownName(
                f"The table has no column '{name}'. {did_you_mean(name, self.columns)}"
            )
        return found

    def kind(self, column: str) -> Kind:
        """Integer, float, boolean, text, date, datetime, time or duration."""
        return self.column(column).kind

    def chosen(self, columns: Sequence[str] | None) -> list[str]:
        """The columns that a method works on: those named, or the quasi-identifiers."""
        if columns is None:
            return list(self.roles.quasi_identifiers)
        return [self.column(name).name for name in columns]

    # -- columns as arrays, for methods and measures

    def numbers(self, column: str) -> Numbers:
        """A numeric column as arrays; infinite values are refused."""
        return self.column(column).numbers

    def codes(self, column: str) -> Codes:
        """A column as integer codes; a missing value has a code of its own."""
        return self.column(column).codes

    def distinct(self, column: str) -> int:
        """The number of different values, missing not counted."""
        return self.column(column).distinct

    def missing_count(self, column: str) -> int:
        """The number of missing cells."""
        return self.column(column).missing_count

    def present(self, column: str) -> Flags:
        """Where the column has a value."""
        return self.column(column).present

    def value_counts(self, column: str) -> dict[str, int]:
        """How often each value occurs, as text, the most frequent first; missing left out."""
        return self.column(column).value_counts()

    def texts(
        self, first: int, count: int, columns: Sequence[str] | None = None
    ) -> list[tuple[str | None, ...]]:
        """Some rows as texts, for a page; None where a value is missing."""
        names = self.columns if columns is None else columns
        some = (self.column(name).series.slice(first, count) for name in names)
        return list(zip(*(each.cast(pl.String).to_list() for each in some), strict=True))

    def changed_cells(self, column: str, before: Table) -> Flags:
        """Where the cell differs from that of the same row (by key) in ``before``.

        The number 3 written as 3.0 is no other cell, nor is a day written as its midnight.
        """
        rows = before._past.positions_of(self.row_key)
        return self.column(column).differs_from(before.column(column), rows)

    def changed_count(self, column: str, before: Table) -> int:
        """How many cells differ from those of the same rows in ``before``."""
        if not self.pairs_with(before):
            return self.records_at(self.changed_cells(column, before))
        return Pair.of(before, self).changed_count(column)

    def matching(self, where: str) -> Flags:
        """Which rows a condition holds for, written as in SQL: ``"age > 90 AND sex = 'f'"``.

        A condition that cannot be decided because a value is missing does not hold.
        """
        try:
            result = self._data.select(pl.sql_expr(where).alias("matches"))["matches"]
        except Exception:
            # the text of the cause may quote what the condition compares with
            raise InputError(
                "The condition of 'where' cannot be understood; write it as in SQL over the "
                f"columns {quoted(self.columns)}, with text in single quotes and column names "
                "that are not plain words in double quotes."
            ) from None
        if result.dtype != pl.Boolean:
            raise InputError("The condition of 'where' must be true or false for each row.")
        if len(result) == 1 and len(self) != 1:
            result = result.new_from_index(0, len(self))
        return result.fill_null(False).to_numpy()

    # -- rows grouped by equal values

    def _once(self, make: Callable[[], T], what: str, names: Sequence[str], *more: object) -> T:
        """What ``make`` gives, made once for these columns and whatever else it depends on."""
        key = (what, *(weakref.ref(one) for one in (*map(self.column, names), *more)))
        if key in self._kept:
            with contextlib.suppress(KeyError):  # another thread may have let it go
                return self._kept[key]
        for other in list(self._kept):
            if any(ref() is None for ref in other[1:]):
                self._kept.pop(other, None)  # of a column that is gone
        found = self._kept[key] = make()
        return found

    def let_go(self) -> None:
        """Forget all groupings but that of the classes; another is formed again when needed."""
        known = (*map(self.column, self.roles.quasi_identifiers), self._past.owners)
        own = {id(one) for one in known}
        for key in list(self._kept):
            if not {id(ref()) for ref in key[1:]} <= own:
                self._kept.pop(key, None)

    def group(self, columns: Sequence[str]) -> Classes:
        """The rows grouped by equal values of any columns; sizes count rows."""
        return self._once(
            lambda: form_classes(keys_of(map(self.column, columns)), len(self), self.times),
            "group",
            columns,
        )

    def crowds(self, columns: Sequence[str]) -> Classes:
        """The rows grouped by equal values of any columns; sizes count persons."""
        owners = self._past.owners
        return self._once(
            lambda: counting(self.group(columns), owners.persons), "crowds", columns, owners
        )

    @property
    def classes(self) -> Classes:
        """The rows grouped by equal quasi-identifiers; a missing value is a value of its own.

        Sizes count persons, who may have several rows in a class.
        """
        return self.crowds(self.roles.quasi_identifiers)

    @property
    def histories(self) -> Classes:
        """The persons grouped by equal histories: the classes of all rows of a person."""
        if not self.has_persons:
            return self.classes
        return self._of_classes(
            lambda: histories(self.classes, self.persons, self.times), "histories"
        )

    def _of_classes(self, make: Callable[[], T], what: str) -> T:
        return self._once(make, what, self.roles.quasi_identifiers, self._past.owners)

    @property
    def has_persons(self) -> bool:
        """Whether a person may have several rows."""
        return self._past.owners.persons is not None

    @property
    def persons(self) -> Integers:
        """The number of the person of each row, from 0 without gaps. Never publish it."""
        return np.arange(len(self)) if self._numbered is None else self._numbered

    @cached_property
    def _numbered(self) -> Integers | None:
        persons = self._past.owners.persons
        if persons is None:
            return None
        return np.unique(persons, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def person_count(self) -> int:
        """The number of persons."""
        return int(self.persons.max(initial=-1)) + 1 if self.has_persons else self.records

    @property
    def households(self) -> Integers | None:
        """The number of the household of each row; None where none is declared."""
        return self._past.owners.households

    @property
    def together(self) -> Integers | None:
        """What is taken out or kept as a whole; None where each row goes by itself."""
        return self._past.owners.together

    def whole(self, rows: Flags) -> Flags:
        """The marked rows with all others of the same persons or households."""
        return rows if self.together is None else np.isin(self.together, self.together[rows])

    def of_persons(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The largest value among the rows of each person; the values where each row is one."""
        if not self.has_persons:
            return values
        order = np.argsort(self.persons, kind="stable")
        starts = np.searchsorted(self.persons[order], np.arange(self.person_count))
        largest: npt.NDArray[Scalar] = np.maximum.reduceat(values[order], starts)
        return largest

    def holders(self, column: str) -> Integers:
        """How many persons have each value of a column, missing left out."""
        codes = self.codes(column)
        if not self.has_persons:
            return codes.counts[: len(codes.levels)]
        values, _ = owned_pairs(codes.codes, self.persons)
        return np.bincount(values, minlength=codes.count)[: len(codes.levels)]

    def class_sizes(self, missing: Missing = "own") -> Integers:
        """How many persons share the quasi-identifiers of each record.

        With ``missing="wildcard"`` a missing value agrees with every value, which is how the
        statistics offices count; the groups then overlap.
        """
        return self.classes.spread(self.crowd_sizes(missing))

    def crowd_sizes(self, missing: Missing = "own") -> Integers:
        """The same once for each class."""
        check_reading(missing)
        if missing == "own":
            return self.classes.sizes
        return self._of_classes(self._wildcard_sizes, "wildcard sizes")

    def _wildcard_sizes(self) -> Integers:
        agreement, sizes = self.agreement("wildcard"), self.classes.sizes.astype(np.float64)
        if self.has_persons:
            # a person may have rows in several of the classes that agree: at least as many as the
            # largest of them has, and as what is left where each row is a share of its person
            shares = 1.0 / np.bincount(self.persons)[self.persons]
            summed = agreement.totals(weights_by_class(self.classes, shares))
            totals = np.maximum(agreement.largest(sizes), np.floor(summed + 1e-9))
        else:
            totals = agreement.totals(sizes)
        crowds = totals.astype(np.int64)
        crowds.flags.writeable = False
        return crowds

    def agreement(self, missing: Missing = "own") -> Agreement:
        """Which classes agree: each with itself only or, with wildcards, with others too."""
        check_reading(missing)
        if missing == "own":
            return Agreement(self.classes.count)
        parts = [self.codes(name) for name in self.roles.quasi_identifiers]
        return self._of_classes(lambda: agreement_of(parts, self.classes), "agreement")

    def class_weights(self, missing: Missing = "own") -> Floats:
        """The sum of the sampling weights in the class of each record."""
        if self.roles.weight is None:
            raise InputError("The table has no weight column; declare one in the roles.")
        absent = self.missing_count(self.roles.weight)
        if absent:
            raise InputError(
                f"The weight column '{self.roles.weight}' has {absent} missing values; every "
                "record needs a weight."
            )
        weights = self.column(self.roles.weight).series.cast(pl.Float64).to_numpy()
        if self.has_persons:
            weights = once_per_person(weights, self.persons, self.classes)
        totals = self.agreement(missing).totals(weights_by_class(self.classes, weights))
        return self.classes.spread(totals)

    def class_sizes_in(self, population: Table, missing: Missing = "own") -> Integers:
        """How many persons of ``population`` share the quasi-identifiers of each record."""
        names = self.roles.quasi_identifiers
        population = population.owned_like(self)
        people = counted_in(
            [self.column(name) for name in names],
            [population.column(name) for name in names],
            (self.group(names), population.group(names)),
            wildcard=missing == "wildcard",
            persons=population._past.owners.persons,
        )
        return self.group(names).spread(people)

    # -- what the release asks

    @property
    def schema(self) -> dict[str, str]:
        """The type of each column, as a release records it."""
        return schema_of({name: column.dtype for name, column in self._columns.items()})

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        formulas: Formulas = "neutralise",
        dialect: Dialect | None = None,
    ) -> None:
        """Write the data, without roles, row keys or any metadata.

        Without a ``format`` the name of the file tells it.
        In CSV and TSV an apostrophe keeps spreadsheets from running a text or a column name as a
        formula, unless ``formulas`` is ``"keep"``; a ``dialect`` says how text is written.
        """
        format = format_of(path) if format is None else format
        columns = list(self._columns.values())
        write_columns(columns, path, format=format, formulas=formulas, dialect=dialect)

    def lacking(self, encoding: str) -> list[str]:
        """The columns with characters that an encoding does not have."""
        return unwritable_columns(list(self._columns.values()), encoding)

    def running_cells(self) -> dict[str, int]:
        """The text columns that have cells a spreadsheet would run as formulas, and how many."""
        texts = {name: c.codes for name, c in self._columns.items() if c.dtype == pl.String}
        if not may_run(codes.levels for codes in texts.values()):
            return {}
        counts = {}
        for name, codes in texts.items():
            runs = running(codes.levels.alias("")).to_numpy()
            records = codes.counts[: len(runs)]
            counts[name] = int(records[runs].sum())
        return {name: count for name, count in counts.items() if count}

    def running_names(self) -> list[str]:
        """The columns whose names a spreadsheet would run as formulas."""
        names = pl.Series(self.columns, dtype=pl.String)
        return names.filter(running(names)).to_list()

    def undeclared_identifiers(self) -> dict[str, str]:
        """Columns that would leave although they identify, with the evidence in words."""
        return undeclared_identifiers(self._columns, self.roles)

    def repeating_owners(
        self, repeats: Callable[[Sequence[str]], int | None] | None = None
    ) -> dict[tuple[str, ...], int]:
        """Columns that seem to say whose row it is and repeat, though no unit is declared.

        Where the table is only a sample, ``repeats`` counts in all rows how many values some
        columns have together, if they repeat.
        """
        return repeating_owners(self._columns, len(self), self.roles, repeats)

    # -- what is on record about the rows: never publish it

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Which rows exchanged values in which columns."""
        return self._past.exchanges

    @property
    def course(self) -> Course:
        """Whether the rows were sampled by chance, and what was done to them since."""
        return self._past.course

    @property
    def sampling(self) -> Sampling | None:
        """Who was there before a sample was drawn, in classes that still are those of the rows.

        None where nothing was sampled, or a quasi-identifier was changed since.
        """
        return self._past.sampling

    def with_exchange(self, exchange: Exchange) -> Table:
        """The same table with one more exchange on record."""
        return self._recorded(exchanges=(*self.exchanges, exchange))

    def accepting_seeds(self) -> Table:
        """The same table, its seeded exchanges taken for secret: for a plan that accepts a seed."""
        if all(exchange.is_secret for exchange in self.exchanges):
            return self
        return self._recorded(exchanges=tuple(replace(e, accepted=True) for e in self.exchanges))

    def on_course(self, course: Course) -> Table:
        """The same table with another course on record."""
        return self._recorded(course=course)

    def with_sampling(self, sampling: Sampling | None) -> Table:
        """The same table with another record of who was there before sampling."""
        return self._recorded(sampling=sampling)

    def owned_by(self, persons: Integers | None, households: Integers | None = None) -> Table:
        """The same rows with the numbers of the person and the household of each, as on record."""
        if any(one is not None and len(one) != len(self) for one in (persons, households)):
            raise InputError("The audit names the persons of another number of rows.")
        return self._recorded(owners=Owners(persons, households))

    def owned_like(self, other: Table) -> Table:
        """The same rows, owned by the persons whom the unit of another table names.

        As they are where their own roles say whose they are, or lack the columns.
        """
        named, owners = other._past.owners.named, self._past.owners
        if owners.persons is not None or self._roles.unit or not named:
            return self
        if not set(named) <= set(self.columns):
            return self
        return self._recorded(owners=owners.under(Roles(unit=named), self))

    def each_row_a_person(self) -> Table:
        """The same rows as if each was a person's only one."""
        return self._recorded(owners=Owners())

    def on_record(self, row_key: Integers, exchanges: tuple[Exchange, ...]) -> Table:
        """The same rows with the keys and exchanges that an audit has of them."""
        lengths = {len(row_key), *(len(exchange.groups) for exchange in exchanges)}
        if lengths != {len(self)}:
            raise InputError("The audit is of another number of rows than the table has.")
        if np.array_equal(row_key, self.row_key):
            return self._recorded(exchanges=exchanges)
        own = row_key.dtype == np.int64 and not row_key.flags.writeable  # nobody changes them
        keys = row_key if own else np.array(row_key, dtype=np.int64)
        return self._recorded(row_key=keys, exchanges=exchanges, sampling=None)

    def pairs_with(self, other: Table) -> bool:
        """Whether both tables descend from one input, so that their rows can be paired."""
        return self._past.lineage == other._past.lineage

    def check_pairs_with(self, original: Table) -> None:
        """Raise InputError where the rows of the two tables cannot be paired."""
        if not self.pairs_with(original):
            raise InputError(
                "The two tables do not come from one input, so their rows cannot be paired; mask "
                "the original with Shoal, or declare that the rows have the same order by "
                "masked.paired(original)."
            )

    def rows_in(self, original: Table) -> Integers:
        """The row of the original that each row descends from."""
        self.check_pairs_with(original)
        rows = original._past.positions_of(self.row_key)
        return np.arange(len(self)) if rows is None else rows

    def rows_of_keys(self, row_key: Integers) -> Integers:
        """The row that has each key; -1 where none has it."""
        if row_key is self.row_key:
            return np.arange(len(self))
        return self._past.positions.of(row_key)

    def paired(self, original: Table, row_key: Integers | None = None) -> Table:
        """The same rows declared to descend from ``original``, for measures that pair rows.

        A table that was masked elsewhere pairs row by row: the first row is taken for the first
        of the original, and so on. With ``row_key`` each row names its row key in the original.
        """
        if row_key is None:
            row_key = original.row_key
            if len(row_key) != len(self):
                raise InputError(
                    f"A table of {len(self):,} rows does not pair row by row with an original of "
                    f"{len(row_key):,}; name the row key of each row as row_key."
                )
        if len(row_key) != len(self):
            raise InputError(f"The audit names {len(row_key)} rows, but the table has {len(self)}.")
        table = self.on_record(row_key, self.exchanges)
        if not self.pairs_with(original):
            # who was there before sampling is about rows of another input
            table = table._recorded(lineage=original._past.lineage, sampling=None)
        owners = original._past.owners.at(table.rows_in(original))
        if original.has_persons or not self.has_persons:
            table = table._recorded(owners=owners)
        return table

    def among(self, original: Table) -> Table:
        """The same rows on record as of one input with ``original``, which may lack some of them.

        So a sample of the original can be linked with all released records.
        """
        return self._recorded(lineage=original._past.lineage)

    # -- new tables

    def _derive(self, **changed: Any) -> Table:
        """A table with some parts replaced; with other rows it gets other groupings, ``kept``."""
        table = Table.__new__(Table)
        names = ("_columns", "_origin", "_roles", "_past", "_kept", "_manner")
        parts = {name: vars(self)[name] for name in names}
        vars(table).update(parts | {f"_{name}": part for name, part in changed.items()})
        return table

    def _recorded(self, **changed: Any) -> Table:
        return self._derive(past=replace(self._past, **changed))

    def _at(self, rows: npt.ArrayLike) -> Table:
        rows = np.asarray(rows)
        past = self._past.at(rows)
        columns = {
            name: column.at(rows).counting(past.times) for name, column in self._columns.items()
        }
        return self._derive(columns=columns, past=past, kept={})

    def _groupings(
        self, columns: Mapping[str, Column], order: Integers | None = None
    ) -> dict[Any, Any]:
        """The groups that were formed, for columns with the same cells, maybe in another order."""
        if self.times is not None:
            return {}
        now = {id(column): columns[name] for name, column in self._columns.items()}
        kept: dict[Any, Any] = {}
        for (what, *refs), classes in self._kept.items():
            if what == "group" and all(id(ref()) in now for ref in refs):
                key = (what, *(weakref.ref(now[id(ref())]) for ref in refs))
                kept[key] = classes if order is None else classes.at(order)
        return kept

    def _with_columns(self, changed: Iterable[Column], origin: Origin | None = None) -> Table:
        """New cells in some columns; classes from before sampling are no longer theirs."""
        new = {column.name: column.counting(self.times) for column in changed}
        table = self._derive(columns={**self._columns, **new}, origin=origin or self._origin)
        on_record = () if self.sampling is None else self.sampling.codes
        if any(
            name in on_record
            and (
                column.dtype != self._columns[name].dtype
                or column.differs_from(self._columns[name], None).any()
            )
            for name, column in new.items()
        ):
            table = table.with_sampling(None)
        return table

    def tallied(self, times: Integers) -> Table:
        """The same rows, each standing for so many equal records of a larger table.

        Classes, models, searches by combinations and what else declares it count those records.
        What needs single records refuses such a table.

        Examples
        --------
        >>> import polars as pl
        >>> roles = Roles(quasi_identifiers=["age"])
        >>> tally = Table(pl.DataFrame({"age": [30, 41]}), roles).tallied(np.array([3, 1]))
        >>> tally.classes.sizes.tolist(), tally.records
        ([3, 1], 4)
        """
        if len(times) != len(self) or (np.asarray(times) < 1).any():
            raise InputError("A tally needs a number of records, 1 or more, for each row.")
        counts = np.array(times, np.int64)
        counts.flags.writeable = False
        columns = {name: column.counting(counts) for name, column in self._columns.items()}
        return self._derive(columns=columns, past=replace(self._past, times=counts), kept={})

    def with_crowds(self, sizes: Integers) -> Table:
        """The same rows, each standing for classes of this size, and not for one class."""
        rows = np.arange(len(self))
        names, owners = self.roles.quasi_identifiers, self._past.owners
        table = self._derive(kept={})
        table._once(lambda: Classes(rows, sizes, self.times), "crowds", names, owners)  # type: ignore[arg-type]
        return table

    def read_in(self, manner: Manner) -> Table:
        """The same table on record as read in some manner."""
        return self._derive(manner=manner)

    def with_roles(self, roles: Roles | Mapping[str, Any], *, released: bool = False) -> Table:
        """The same data under other roles; a released column may be empty after masking.

        Whose row it is stays known where the roles do not say: ``unit="row"`` forgets it.
        """
        roles = as_roles(roles)
        check_roles(self._columns, len(self), roles, released=released)
        owners = self._past.owners.under(roles, self)
        return self._derive(roles=roles, past=replace(self._past, owners=owners))

    def with_numbers(
        self, columns: Mapping[str, npt.NDArray[Any]], *, keep_equal: bool = False
    ) -> Table:
        """New values for numeric columns; type and missing cells stay as they are.

        With ``keep_equal`` a decimal that equals its new value as a float keeps all its digits.
        """
        return self._with_columns(
            self.column(name).with_numbers(values, keep_equal=keep_equal)
            for name, values in columns.items()
        )

    def blank(self, cells: Mapping[str, Flags]) -> Table:
        """Make the marked cells of the named columns missing, also in memory."""
        if not cells:
            return self
        changed = []
        for name, marked in cells.items():
            rows = np.where(marked, -1, np.arange(len(self)))
            changed.append(self.column(name).taken_from(rows).scrubbed())
        return self._with_columns(changed)

    def drop(self, columns: Iterable[str]) -> Table:
        """Without some columns, and without their roles."""
        names = [columns] if isinstance(columns, str) else columns
        gone = {self.column(name).name for name in names}
        left = {name: column for name, column in self._columns.items() if name not in gone}
        return self._derive(columns=left, roles=self._roles.without(gone))

    def with_pseudonyms(self, columns: Sequence[str], stream: SecretStream) -> Table:
        """A first column with a random name for the person of each row.

        It has the name of the column that named the persons, or ``person`` where several did.
        """
        called = columns[0] if len(columns) == 1 else "person"
        while called in self.columns:
            called += "_"
        order = stream.derive("pseudonyms").permutation(self.person_count)
        named = Column(pseudonyms(self.persons, order).alias(called))
        roles = self._roles.replacing(unit=[called])
        return self._derive(columns={called: named, **self._columns}, roles=roles)

    def keep(self, rows: Flags) -> Table:
        """Only the marked rows, in their order."""
        return self._at(rows)

    def reorder(self, order: Integers) -> Table:
        """The rows in another order."""
        table = self._at(order)
        table._kept.update(self._groupings(table._columns, np.asarray(order)))
        return table

    def scrubbed(self) -> Table:
        """The same cells in new memory, which holds no value of a row or cell that is gone."""
        columns = {
            name: column.scrubbed().counting(self.times) for name, column in self._columns.items()
        }
        kept = self._groupings(columns)
        return self._derive(columns=columns, origin=self._origin.reduced(columns), kept=kept)

    def with_cells_of(self, sources: Mapping[str, Integers]) -> Table:
        """The named columns with, in each row, the cell of another row; -1 makes it missing."""
        return self._with_columns(
            self.column(name).taken_from(rows) for name, rows in sources.items()
        )

    def with_labels(
        self,
        column: str,
        labels: Sequence[str | None],
        codes: npt.NDArray[np.integer[Any]],
        domain: Domain | None = None,
    ) -> Table:
        """The column as text: in each row the label of its code; None makes it missing.

        ``domain`` says what the labels stand for, where whoever wrote them knows.
        """
        text = Column.of_labels(self.column(column).name, labels, codes, domain)
        return self._with_columns([text], origin=self._origin.as_text(column))

    def starred(self, columns: Sequence[str], rows: Flags) -> Table:
        """Some columns as text, with ``*`` in the marked rows."""
        table = self
        for name in columns:
            codes = self.codes(name)
            labels = [*codes.texts, None, ROOT]
            starred = np.where(rows, len(labels) - 1, codes.codes)
            table = table.with_labels(name, labels, starred, self.column(name).own_domain)
        return table

    def with_codes(self, columns: Mapping[str, tuple[Codes, npt.NDArray[Any]]]) -> Table:
        """The named columns with, in each row, the value of a code of another column."""
        changed = []
        for name, (values, codes) in columns.items():
            each = values.with_codes(np.arange(values.count, dtype=values.codes.dtype))
            changed.append(Column(each.at(codes)))
            assert changed[-1].name == name
        return self._with_columns(changed)

    def fill_numbers(
        self, columns: Mapping[str, Floats], groups: npt.NDArray[np.integer[Any]] | None = None
    ) -> Table:
        """New values for numeric columns, also where a cell was missing; NaN makes it missing.

        Whole numbers stay whole; dates and times take the count of units that they are kept in.
        With ``groups``, the group of each row, there is one value for each group.
        """
        changed = []
        for name, values in columns.items():
            new = self.column(name).filled(values)
            changed.append(new if groups is None else Column(new.codes.at(groups)))
        return self._with_columns(changed)
