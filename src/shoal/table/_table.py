"""The table: columns with roles, and a private record of the origin of its rows."""

from __future__ import annotations

import contextlib
import os
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import (
    CallError,
    InputError,
    ParameterError,
    UnknownAttribute,
    UnknownName,
    did_you_mean,
    quoted,
)
from shoal.hints import Helpful, helpful, instead, table_from
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
from shoal.table._pair import Pair, Stacked
from shoal.table._provenance import Course, Exchange, Owners, Provenance, Sampling, ranks_below
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
from shoal.table.storage._types import schema_of
from shoal.table.storage._write import unwritable_columns, write_columns
from shoal.table.storage.labelled._coding import Coding, coding_of, labels_of_texts, losses, settled
from shoal.table.storage.labelled._dictionary import LABELLED, NO_DICTIONARY, Dictionary
from shoal.table.storage.labelled._limits import check_columns
from shoal.table.suggestion._owners import repeating_owners, undeclared_identifiers

Missing = Literal["own", "wildcard"]
_ANEW = "Change the frame, and make a new table: sh.Table(frame, roles)."
Scalar = TypeVar("Scalar", bound=np.generic)
T = TypeVar("T")


def check_reading(missing: Missing) -> None:
    """Raise InputError unless the argument is one of the two readings of a missing value."""
    if missing not in ("own", "wildcard"):
        raise InputError(f"missing must be 'own' or 'wildcard'; got '{missing}'.")


def check_table(given: object, taker: str) -> None:
    """Raise InputError for anything but a table."""
    if not isinstance(given, Table):
        raise InputError(
            f"{taker} needs a shoal.Table; got {type(given).__name__}. {table_from(given)}"
        )


class Table(Helpful):
    """A frame about people with the roles of its columns; frozen.

    Every row has a private key from the start: its position in the input. Sampling and the audit
    use it. It is never a column and never leaves the private half of a release.

    Parameters
    ----------
    frame : polars, pandas or pyarrow frame
        The data. ``table.frame`` returns the same type. An index is not kept.
    roles : Roles or dict, optional
        The roles of the columns.

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
            "table.frame, and group that": "groupby group_by value_counts",
            "sh.protect(table, k=5)": "protect anonymize",
        }
    )

    _columns: dict[str, Column]
    _origin: Origin
    _roles: Roles
    _past: Provenance
    #: Groupings by their columns; tables with the same rows share them.
    _kept: dict[tuple[Any, ...], Any]
    _manner: Manner | None
    #: What the source says about its columns; derived tables share it.
    _dictionary: Dictionary

    def __init__(self, frame: Any, roles: Roles | Mapping[str, Any] | None = None) -> None:
        if isinstance(frame, Table):
            raise InputError("This is already a Table. For other roles, use table.with_roles(...).")
        data, origin = to_polars(frame)
        columns = {series.name: Column(series) for series in data}
        given = as_roles(roles)
        refuse_index_names([name for _, name in given.items() if name not in columns], frame)
        self._begin(columns, data.height, origin, given)

    def _begin(self, columns: dict[str, Column], rows: int, origin: Origin, roles: Roles) -> None:
        check_roles(columns, rows, roles)
        past = Provenance(np.arange(rows, dtype=np.int64), uuid.uuid4().hex, Owners())
        vars(self).update(_columns=columns, _origin=origin, _roles=roles, _past=past, _kept={})
        vars(self).update(_manner=None, _dictionary=NO_DICTIONARY)
        vars(self)["_past"] = replace(past, owners=past.owners.under(roles, self))

    @classmethod
    def of_columns(cls, columns: Sequence[Column], roles: Roles | None = None) -> Table:
        """A table from columns, which may already be coded."""
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
        raise UnknownAttribute(f"'{name}' cannot be set, because a table is frozen. {_ANEW}")

    def __setitem__(self, name: object, value: object) -> NoReturn:
        raise CallError(f"Cells cannot be set, because a table is frozen. {_ANEW}")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": {}}

    def _meant(self, name: str) -> str:
        return f"Use table['{name}']." if name in self._columns else super()._meant(name)

    # -- properties

    @property
    def frame(self) -> Any:
        """The data, in the frame type of the input."""
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
        """How the source was read, and what was detected; None for a frame."""
        return self._manner

    @property
    def dictionary(self) -> Dictionary:
        """Labels, formats and reasons for missing values, as a labelled file declares them."""
        return self._dictionary

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
        """The names of the columns, as in a pandas frame."""
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str | list[str]) -> Any:
        """A column as a series, or some columns as a frame, of the input's library."""
        if isinstance(name, list):
            return self._given_back(name, len(self))
        if not isinstance(name, str):  # a mask or a slice, whose text may quote cells
            raise UnknownName(
                f"A table is indexed by column names; got {type(name).__name__}. For rows, "
                "use table.head() or table.frame."
            )
        return self._given_back([name], len(self))[name]

    def head(self, rows: int = 5) -> Any:
        """The first rows, in the frame type of the input."""
        if not isinstance(rows, int):
            raise ParameterError(f"The number of rows must be an integer. Got {rows!r} instead.")
        return self._given_back(self.columns, rows)

    def _given_back(self, names: Sequence[str], rows: int) -> Any:
        series = [self.column(name).series.head(rows) for name in names]
        return self._origin.restore(pl.DataFrame(series))

    @property
    def times(self) -> Integers | None:
        """How many records each row represents; None if each row is one record."""
        return self._past.times

    @property
    def records(self) -> int:
        """The number of records; the number of rows, unless a row represents several."""
        return len(self) if self.times is None else int(self.times.sum())

    def records_at(self, rows: Flags) -> int:
        """How many records the marked rows represent."""
        return int(np.count_nonzero(rows) if self.times is None else self.times[rows].sum())

    def total(self, values: npt.NDArray[Any]) -> Any:
        """The sum of a value over persons; a person counts with the largest value of their rows."""
        if self.times is None or self.has_persons:
            return self.of_persons(values).sum()
        return (values * self.times).sum()

    def total_of_classes(self, values: npt.NDArray[Any]) -> Any:
        """The same for a value of each class."""
        if self.has_persons:
            return self.of_persons(self.classes.spread(values)).sum()
        return (values * self.classes.rows).sum()

    def __repr__(self) -> str:
        counts = [
            (len(self.roles.identifiers), "identifier"),
            (len(self.roles.quasi_identifiers), "quasi-identifier"),
            (len(self.roles.sensitive), "sensitive column"),
        ]
        roles = ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n)
        size = f"Table: {len(self):,} rows, {len(self.columns)} columns"
        return f"{size} ({roles or 'no roles'})"

    def _repr_html_(self) -> str:
        """The columns with their types and roles, but no cells; :meth:`head` shows those."""
        rows = (
            (name, c.kind, role_word(self.roles.of(name)), c.distinct, c.missing_count)
            for name, c in self._columns.items()
        )
        head = ("column", "type", "role", "different values", "missing")
        cells = "table.head() shows the first rows."
        return view(repr(self), listing(head, rows, of="columns"), quiet=cells)

    def column(self, name: str) -> Column:
        """A column; its codes and numbers are computed on first use."""
        if not isinstance(name, str):
            raise UnknownName(f"A column name must be text; got {type(name).__name__}.")
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
        """The columns that a method works on: the given ones, or else the quasi-identifiers."""
        if columns is None:
            return list(self.roles.quasi_identifiers)
        return [self.column(name).name for name in columns]

    # -- columns as arrays, for methods and measures

    def numbers(self, column: str) -> Numbers:
        """A numeric column as arrays; infinite values are refused."""
        return self.column(column).numbers

    def ticks(self, column: str) -> tuple[Integers, int]:
        """Dates or datetimes as whole numbers (0 where missing), and how many make a day."""
        return self.column(column).ticks

    def codes(self, column: str) -> Codes:
        """A column as integer codes; a missing value has its own code."""
        return self.column(column).codes

    def distinct(self, column: str) -> int:
        """The number of distinct values, without missing."""
        return self.column(column).distinct

    def missing_count(self, column: str) -> int:
        """The number of missing cells."""
        return self.column(column).missing_count

    def present(self, column: str) -> Flags:
        """Which rows have a value in the column."""
        return self.column(column).present

    def value_counts(self, column: str) -> dict[str, int]:
        """How often each value occurs, as text, the most frequent first, without missing."""
        return self.column(column).value_counts()

    def texts(
        self, first: int, count: int, columns: Sequence[str] | None = None
    ) -> list[tuple[str | None, ...]]:
        """Some rows as texts, for a page; None for a missing value."""
        names = self.columns if columns is None else columns
        some = (self.column(name).series.slice(first, count) for name in names)
        return list(zip(*(each.cast(pl.String).to_list() for each in some), strict=True))

    def changed_cells(self, column: str, before: Table) -> Flags:
        """Which cells differ from the cell of the same row (by key) in ``before``.

        The number 3 written as 3.0 is not a different cell, and neither is a day written as
        midnight.
        """
        rows = before._past.positions_of(self.row_key)
        return self.column(column).differs_from(before.column(column), rows)

    def changed_count(self, column: str, before: Table) -> int:
        """How many cells differ from those of the same rows in ``before``."""
        if not self.pairs_with(before):
            return self.records_at(self.changed_cells(column, before))
        return Pair.of(before, self).changed_count(column)

    def matching(self, where: str) -> Flags:
        """Which rows satisfy a condition, written as in SQL: ``"age > 90 AND sex = 'f'"``.

        A condition that is undecided because a value is missing does not hold.
        """
        try:
            result = self._data.select(pl.sql_expr(where).alias("matches"))["matches"]
        except Exception:
            # the message of the cause may quote the values in the condition
            raise InputError(
                "The condition of 'where' cannot be parsed. Write it as in SQL over the "
                f"columns {quoted(self.columns)}. Put texts in single quotes, and column names "
                "that are not plain words in double quotes."
            ) from None
        if result.dtype != pl.Boolean:
            raise InputError(
                "The condition of 'where' must be true or false for each row, such as \"age > 90\"."
            )
        if len(result) == 1 and len(self) != 1:
            result = result.new_from_index(0, len(self))
        return result.fill_null(False).to_numpy()

    # -- rows grouped by equal values

    def _once(self, make: Callable[[], T], what: str, names: Sequence[str], *more: object) -> T:
        """The result of ``make``, made once for these columns and its other dependencies."""
        key = (what, *(weakref.ref(one) for one in (*map(self.column, names), *more)))
        if key in self._kept:
            with contextlib.suppress(KeyError):  # another thread may have removed it
                return self._kept[key]
        for other in list(self._kept):
            if any(ref() is None for ref in other[1:]):
                self._kept.pop(other, None)  # its column no longer exists
        found = self._kept[key] = make()
        return found

    def once_beside(self, original: Table, name: str, what: str, make: Callable[[str], T]) -> T:
        """The result of ``make`` for a column, made once beside the rows of the original."""
        theirs = original.column(name), self._past.positions, original._past.positions
        return self._once(lambda: make(name), what, [name], *theirs)

    def forget_groupings(self) -> None:
        """Forget all groupings except the classes; they are formed again when needed."""
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
        """The person of each row, numbered from 0 without gaps. Never publish it."""
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
        """The number of the household of each row; None if no household is declared."""
        return self._past.owners.households

    @property
    def together(self) -> Integers | None:
        """The groups of rows that stay together; None if each row is on its own."""
        return self._past.owners.together

    def whole(self, rows: Flags) -> Flags:
        """The marked rows, and all other rows of the same persons or households."""
        return rows if self.together is None else np.isin(self.together, self.together[rows])

    def of_persons(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The largest value of the rows of each person; the values if each row is a person."""
        if not self.has_persons:
            return values
        order = np.argsort(self.persons, kind="stable")
        starts = np.searchsorted(self.persons[order], np.arange(self.person_count))
        largest: npt.NDArray[Scalar] = np.maximum.reduceat(values[order], starts)
        return largest

    def holders(self, column: str) -> Integers:
        """How many persons have each value of a column, without missing."""
        codes = self.codes(column)
        if not self.has_persons:
            return codes.counts[: len(codes.levels)]
        values, _ = owned_pairs(codes.codes, self.persons)
        return np.bincount(values, minlength=codes.count)[: len(codes.levels)]

    def class_sizes(self, missing: Missing = "own") -> Integers:
        """How many persons share the quasi-identifiers of each record.

        With ``missing="wildcard"`` a missing value agrees with every value, as statistics offices
        count; the groups then overlap.
        """
        return self.classes.spread(self.crowd_sizes(missing))

    def crowd_sizes(self, missing: Missing = "own") -> Integers:
        """The same for each class instead of each record."""
        check_reading(missing)
        if missing == "own":
            return self.classes.sizes
        return self._of_classes(self._wildcard_sizes, "wildcard sizes")

    def _wildcard_sizes(self) -> Integers:
        agreement, sizes = self.agreement("wildcard"), self.classes.sizes.astype(np.float64)
        if self.has_persons:
            # a person may have rows in several agreeing classes, so there are at least as many
            # persons as in the largest class, and as the sum of the rows' shares of their persons
            shares = 1.0 / np.bincount(self.persons)[self.persons]
            summed = agreement.totals(weights_by_class(self.classes, shares))
            totals = np.maximum(agreement.largest(sizes), np.floor(summed + 1e-9))
        else:
            totals = agreement.totals(sizes)
        crowds = totals.astype(np.int64)
        crowds.flags.writeable = False
        return crowds

    def agreement(self, missing: Missing = "own") -> Agreement:
        """Which classes agree: each only with itself or, with wildcards, also with others."""
        check_reading(missing)
        if missing == "own":
            return Agreement(self.classes.count)
        parts = [self.codes(name) for name in self.roles.quasi_identifiers]
        return self._of_classes(lambda: agreement_of(parts, self.classes), "agreement")

    def class_weights(self, missing: Missing = "own") -> Floats:
        """The sum of the sampling weights in the class of each record."""
        if self.roles.weight is None:
            raise InputError("The table has no weight column. Declare one in the roles.")
        absent = self.missing_count(self.roles.weight)
        if absent:
            raise InputError(
                f"The weight column '{self.roles.weight}' has {absent} missing values. Every "
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
        stacked = self._above(population, names)
        people = stacked.people(missing == "wildcard", population._past.owners.persons)
        return self.group(names).spread(people)

    def _above(self, other: Table, names: Sequence[str]) -> Stacked:
        """The classes of this table above those of another one, formed once for both orders."""
        mine, theirs = map(self.column, names), list(map(other.column, names))
        turned = other._kept.get(("stacked", *map(weakref.ref, theirs), *map(weakref.ref, mine)))
        if turned is not None:
            return turned.turned
        parts = self.group(names), other.group(names)
        return self._once(
            lambda: Stacked.of(map(self.column, names), theirs, *parts), "stacked", names, *theirs
        )

    # -- for releases

    @property
    def schema(self) -> dict[str, str]:
        """The type of each column, as recorded in a release."""
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

        Without a ``format``, the file name decides. In CSV and TSV, an apostrophe prevents
        spreadsheets from running a text or a column name as a formula, unless ``formulas`` is
        ``"keep"``; the ``dialect`` defines how text is written.
        """
        format = format_of(path) if format is None else format
        columns = list(self._columns.values())
        write_columns(
            columns,
            path,
            format=format,
            formulas=formulas,
            dialect=dialect,
            dictionary=self._released_dictionary,
        )

    def coding(self, format: str) -> Coding:
        """How a labelled file of this format codes the released texts and missing values."""
        return coding_of(list(self._columns.values()), self._released_dictionary, format)

    def value_labels(self, column: str) -> dict[str, str]:
        """The labels of a column's values as texts, as a labelled file gave them."""
        explained = {why: name for name, why in self._dictionary.reasons.items()}
        if column in explained:
            there, why = self.column(column), self._dictionary.of(explained[column]).reasons
            return {text: why[text] for text in there.codes.texts if text in why}
        return labels_of_texts(self.column(column), self._released_dictionary.of(column))

    @property
    def _released_dictionary(self) -> Dictionary:
        return self._dictionary.with_texts(self.roles.withheld)

    def check_holds(self, format: str) -> list[str]:
        """What a format cannot hold of labels and reasons, in sentences.

        InputError if it cannot hold columns of these names. Nothing needs to be masked for this.
        """
        names = [name for name in self.columns if name not in self.roles.withheld]
        joined = {*self.coding(format).reasons.values()}
        if format in LABELLED:
            check_columns([name for name in names if name not in joined], format)
        return losses(names, self._dictionary, format)

    def settled(self) -> Table:
        """The table with a value or a reason for its absence in each cell, and never both.

        Reasons that were masked are dropped. InputError if a step moved values and reasons apart.
        """
        changed = settled(self._columns, self._dictionary)
        return self._with_columns(changed) if changed else self

    def lacking(self, encoding: str) -> list[str]:
        """The columns with characters that an encoding lacks."""
        return unwritable_columns(list(self._columns.values()), encoding)

    def running_cells(self) -> dict[str, int]:
        """How many cells a spreadsheet would run as formulas, for each text column with any."""
        texts = {name: c.codes for name, c in self._columns.items() if c.dtype == pl.String}
        if not may_run(codes.levels for codes in texts.values()):
            return {}
        runs = {name: running(codes.levels.alias("")).to_numpy() for name, codes in texts.items()}
        counts = {name: int(texts[name].counts[: len(r)][r].sum()) for name, r in runs.items()}
        return {name: count for name, count in counts.items() if count}

    def running_names(self) -> list[str]:
        """The columns whose names a spreadsheet would run as formulas."""
        names = pl.Series(self.columns, dtype=pl.String)
        return names.filter(running(names)).to_list()

    def undeclared_identifiers(self) -> dict[str, str]:
        """Columns that would be released although they identify people, each with its evidence."""
        return undeclared_identifiers(self._columns, self.roles)

    def repeating_owners(
        self, repeats: Callable[[Sequence[str]], int | None] | None = None
    ) -> dict[tuple[str, ...], int]:
        """Columns that seem to identify persons and repeat, although no unit is declared.

        If the table is only a sample, ``repeats`` counts over all rows how many values some
        columns have together, if they repeat.
        """
        return repeating_owners(self._columns, len(self), self.roles, repeats)

    # -- what is recorded about the rows: never publish it

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Which rows exchanged values in which columns."""
        return self._past.exchanges

    @property
    def course(self) -> Course:
        """Whether the rows were sampled at random, and what was done to them since."""
        return self._past.course

    @property
    def sampling(self) -> Sampling | None:
        """The rows before a sample was drawn, in classes that are still valid.

        None if nothing was sampled, or if a quasi-identifier has changed since.
        """
        return self._past.sampling

    def with_exchange(self, exchange: Exchange) -> Table:
        """The same table with one more exchange on record."""
        return self._recorded(exchanges=(*self.exchanges, exchange))

    def accepting_seeds(self) -> Table:
        """The same table with its seeded exchanges treated as secret, if a plan accepts seeds."""
        if all(exchange.is_secret for exchange in self.exchanges):
            return self
        return self._recorded(exchanges=tuple(replace(e, accepted=True) for e in self.exchanges))

    def on_course(self, course: Course) -> Table:
        """The same table with another course on record."""
        return self._recorded(course=course)

    def with_sampling(self, sampling: Sampling | None) -> Table:
        """The same table with another record of the rows before sampling."""
        return self._recorded(sampling=sampling)

    def ranked(self, names: Sequence[str]) -> Table:
        """The same rows and classes by some columns, with ranks instead of values."""
        ranks = {}
        for name in names:
            codes = self.codes(name)
            levels = ranks_below(name, len(codes.levels)).levels
            ranks[name] = Column(replace(codes, levels=levels))
        return self._derive(
            columns=ranks,
            origin=Origin("polars", {name: column.dtype for name, column in ranks.items()}),
            roles=Roles(quasi_identifiers=names),
            past=replace(self._past, exchanges=(), sampling=None, owners=Owners()),
            manner=None,
            dictionary=NO_DICTIONARY,
            kept=self._groupings(ranks),
        )

    def owned_by(self, persons: Integers | None, households: Integers | None = None) -> Table:
        """The same rows with the recorded person and household of each."""
        if any(one is not None and len(one) != len(self) for one in (persons, households)):
            raise InputError(
                f"The audit does not record persons for exactly the {len(self):,} rows of the "
                "table. Pass the audit of this table."
            )
        return self._recorded(owners=Owners(persons, households))

    def owned_like(self, other: Table) -> Table:
        """The same rows, with the persons that the unit of another table declares.

        Unchanged if their own roles declare the persons, or if the table lacks the columns.
        """
        named, owners = other._past.owners.named, self._past.owners
        if owners.persons is not None or self._roles.unit or not named:
            return self
        if not set(named) <= set(self.columns):
            return self
        return self._recorded(owners=owners.under(Roles(unit=named), self))

    def each_row_a_person(self) -> Table:
        """The same rows, each treated as a person of its own."""
        return self._recorded(owners=Owners())

    def on_record(self, row_key: Integers, exchanges: tuple[Exchange, ...]) -> Table:
        """The same rows with the keys and exchanges that an audit records."""
        lengths = {len(row_key), *(len(exchange.groups) for exchange in exchanges)}
        if lengths != {len(self)}:
            raise InputError(
                f"The audit does not have as many rows as the table, which has {len(self):,}. "
                "Pass the audit of this table."
            )
        if np.array_equal(row_key, self.row_key):
            return self._recorded(exchanges=exchanges)
        frozen = row_key.dtype == np.int64 and not row_key.flags.writeable
        keys = row_key if frozen else np.array(row_key, dtype=np.int64)
        return self._recorded(row_key=keys, exchanges=exchanges, sampling=None)

    def pairs_with(self, other: Table) -> bool:
        """Whether both tables descend from one input, so that their rows can be paired."""
        return self._past.lineage == other._past.lineage

    def check_pairs_with(self, original: Table) -> None:
        """Raise InputError if the rows of the two tables cannot be paired."""
        if not self.pairs_with(original):
            raise InputError(
                "The two tables do not come from one input, so their rows cannot be paired. Mask "
                "the original with Shoal or, if the rows have the same order, declare this with "
                "masked.paired(original)."
            )

    def rows_in(self, original: Table) -> Integers:
        """The row of the original from which each row descends."""
        self.check_pairs_with(original)
        rows = original._past.positions_of(self.row_key)
        return np.arange(len(self)) if rows is None else rows

    def rows_of_keys(self, row_key: Integers) -> Integers:
        """The row with each key; -1 if there is none."""
        if row_key is self.row_key:
            return np.arange(len(self))
        return self._past.positions.of(row_key)

    def paired(self, original: Table, row_key: Integers | None = None) -> Table:
        """The same rows declared to descend from ``original``, for measures that pair rows.

        A table that was masked elsewhere pairs row by row: the first row with the first row of the
        original, and so on. ``row_key`` gives each row its row key in the original.
        """
        if row_key is None:
            row_key = original.row_key
            if len(row_key) != len(self):
                raise InputError(
                    f"A table of {len(self):,} rows does not pair row by row with an original of "
                    f"{len(row_key):,}. Pass the row key of each row as row_key=."
                )
        if len(row_key) != len(self):
            raise InputError(
                f"There are {len(row_key)} row keys, but the table has {len(self)} rows. Pass one "
                "key for each row."
            )
        table = self.on_record(row_key, self.exchanges)
        if not self.pairs_with(original):
            # the record of sampling refers to rows of another input
            table = table._recorded(lineage=original._past.lineage, sampling=None)
        owners = original._past.owners.at(table.rows_in(original))
        if original.has_persons or not self.has_persons:
            table = table._recorded(owners=owners)
        return table

    def among(self, original: Table) -> Table:
        """The same rows, recorded as coming from the input of ``original``, which may lack some.

        This makes it possible to link a sample of the original with all released records.
        """
        return self._recorded(lineage=original._past.lineage)

    # -- new tables

    def _derive(self, **changed: Any) -> Table:
        """A table with some parts replaced; if rows change, pass new groupings as ``kept``."""
        table = Table.__new__(Table)
        names = ("_columns", "_origin", "_roles", "_past", "_kept", "_manner", "_dictionary")
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
        """The existing groupings for columns with the same cells, possibly in another order."""
        if self.times is not None:
            return {}
        now = {id(self._columns[name]): column for name, column in columns.items()}
        kept: dict[Any, Any] = {}
        for (what, *refs), classes in self._kept.items():
            if what == "group" and refs and all(id(ref()) in now for ref in refs):
                key = (what, *(weakref.ref(now[id(ref())]) for ref in refs))
                kept[key] = classes if order is None else classes.at(order)
        return kept

    def _beside(self, table: Table) -> dict[Any, Any]:
        """What is known of columns beside originals, for a table of the same rows."""
        mine = {id(self._columns[name]): column for name, column in table._columns.items()}
        own, new = weakref.ref(self._past.positions), weakref.ref(table._past.positions)
        return {
            (what, weakref.ref(mine[id(refs[0]())]), refs[1], new, refs[3]): found
            for (what, *refs), found in self._kept.items()
            if what == "changed" and id(refs[0]()) in mine and refs[2] == own
        }

    def _with_columns(self, changed: Iterable[Column], origin: Origin | None = None) -> Table:
        """The table with new cells in some columns; a record of sampling may become invalid."""
        new = {column.name: column.counting(self.times) for column in changed}
        table = self._derive(columns={**self._columns, **new}, origin=origin or self._origin)
        on_record = () if self.sampling is None else self.sampling.whole.columns
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
        """The same rows, each representing several equal records of a larger table.

        Classes, models, searches by combinations and everything else that supports it count those
        records. Methods that need single records refuse such a table.

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
        """The same rows, each representing classes of this size instead of one class."""
        rows = np.arange(len(self))
        names, owners = self.roles.quasi_identifiers, self._past.owners
        table = self._derive(kept={})
        table._once(lambda: Classes(rows, sizes, self.times), "crowds", names, owners)  # type: ignore[arg-type]
        return table

    def read_in(self, manner: Manner) -> Table:
        """The same table with a record of how it was read."""
        return self._derive(manner=manner)

    def described(self, dictionary: Dictionary) -> Table:
        """The same table with what its file says about the columns; reasons get their roles."""
        table = self._derive(dictionary=dictionary)
        return table.with_roles(self.roles)

    def with_pseudonymized(self, column: str) -> Table:
        """The same table, without the labels that a column's values had before pseudonyms."""
        if column not in self._dictionary.facts:
            return self
        text = self.column(column).dtype == pl.String
        return self._derive(dictionary=self._dictionary.pseudonymized(column, text=text))

    def with_roles(self, roles: Roles | Mapping[str, Any], *, released: bool = False) -> Table:
        """The same data with other roles; a released column may be empty after masking.

        The persons of the rows stay known if the roles declare no unit; ``unit="row"`` forgets
        them.
        """
        roles = self._dictionary.followed(as_roles(roles), self.columns)
        check_roles(self._columns, len(self), roles, released=released)
        owners = self._past.owners.under(roles, self)
        return self._derive(roles=roles, past=replace(self._past, owners=owners))

    def with_numbers(
        self, columns: Mapping[str, npt.NDArray[Any]], *, keep_equal: bool = False
    ) -> Table:
        """The table with new values in numeric columns; types and missing cells do not change.

        With ``keep_equal``, a decimal that equals its new value as a float keeps all its digits.
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
            changed.append(self.column(name).at(rows).scrubbed())
        return self._with_columns(changed)

    @helpful
    def drop(self, columns: Iterable[str]) -> Table:
        """The table without some columns and their roles."""
        names = [columns] if isinstance(columns, str) else columns
        gone = {self.column(name).name for name in names}
        left = {name: column for name, column in self._columns.items() if name not in gone}
        return self._derive(columns=left, roles=self._roles.without(gone))

    def with_pseudonyms(self, columns: Sequence[str], names: Sequence[str]) -> Table:
        """The table with a first column that has the given name of the person of each row.

        Its name is that of the unit column, or ``person`` if the unit has several columns.
        """
        called = columns[0] if len(columns) == 1 else "person"
        while called in self.columns:
            called += "_"
        order = np.argsort(names)  # that of the persons would say something
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        named = Column.of_labels(called, [names[at] for at in order], place[self.persons])
        roles = self._roles.replacing(unit=[called])
        return self._derive(columns={called: named, **self._columns}, roles=roles)

    def keep(self, rows: Flags) -> Table:
        """The marked rows, in their order."""
        return self._at(rows)

    def reorder(self, order: Integers) -> Table:
        """The rows in another order."""
        table = self._at(order)
        table._kept.update(self._groupings(table._columns, np.asarray(order)))
        if len(order) == len(self) and (np.bincount(order) == 1).all():
            table._kept.update(self._beside(table))
        return table

    def scrubbed(self) -> Table:
        """The same cells in new memory, which holds no value of a removed row or cell."""
        columns = {
            name: column.scrubbed().counting(self.times) for name, column in self._columns.items()
        }
        kept = self._groupings(columns)
        table = self._derive(columns=columns, origin=self._origin.reduced(columns), kept=kept)
        kept.update(self._beside(table))
        return table

    def with_cells_of(self, sources: Mapping[str, Integers]) -> Table:
        """The table with cells of other rows in the named columns; -1 makes a cell missing."""
        return self._with_columns(self.column(name).at(rows) for name, rows in sources.items())

    def with_labels(
        self,
        column: str,
        labels: Sequence[str | None],
        codes: npt.NDArray[np.integer[Any]],
        domain: Domain | None = None,
    ) -> Table:
        """The table with a column as text: the label of each row's code; None makes it missing.

        ``domain`` holds the meanings of the labels, if they are known.
        """
        text = Column.of_labels(self.column(column).name, labels, codes, domain)
        return self._with_columns([text], origin=self._origin.as_text(column))

    def starred(self, columns: Sequence[str], rows: Flags) -> Table:
        """The table with some columns as text, and ``*`` in their marked rows."""
        table = self
        for name in columns:
            codes = self.codes(name)
            labels = [*codes.texts, None, ROOT]
            starred = np.where(rows, len(labels) - 1, codes.codes)
            table = table.with_labels(name, labels, starred, self.column(name).own_domain)
        return table

    def with_codes(self, columns: Mapping[str, tuple[Codes, npt.NDArray[Any]]]) -> Table:
        """The table with, in the named columns, the values of the given codes of other columns."""
        changed = []
        for name, (values, codes) in columns.items():
            each = values.with_codes(np.arange(values.count, dtype=values.codes.dtype))
            changed.append(Column(each.at(codes)))
            assert changed[-1].name == name
        return self._with_columns(changed)

    def shifted(self, columns: Mapping[str, Integers]) -> Table:
        """The named dates and datetimes, in each row moved by so many days of 24 hours."""
        return self._with_columns(self.column(name).shifted(days) for name, days in columns.items())

    def fill_numbers(
        self, columns: Mapping[str, Floats], groups: npt.NDArray[np.integer[Any]] | None = None
    ) -> Table:
        """The table with new values in numeric columns, also in missing cells; NaN means missing.

        Whole numbers stay whole; for dates and times, values count the units of their type. With
        ``groups``, the group of each row, there is one value for each group.
        """
        changed = []
        for name, values in columns.items():
            new = self.column(name).filled(values)
            changed.append(new if groups is None else Column(new.codes.at(groups)))
        return self._with_columns(changed)
