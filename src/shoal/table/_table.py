"""The table: a frame, the roles of its columns, and a private key for every row."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError, did_you_mean, quoted
from shoal.table._checks import check_roles
from shoal.table._comparable import comparable
from shoal.table._course import Course
from shoal.table._encode import Codes, encode
from shoal.table._exchange import Exchange
from shoal.table._frames import Kind, Names, Origin, in_type_of, kind_of, to_polars
from shoal.table._grouped import GroupedRows
from shoal.table._identifying import identifying_columns
from shoal.table._persons import Owners, pseudonyms
from shoal.table._recorded import RecordedRows
from shoal.table._roles import Roles
from shoal.table._sampling import Sampling
from shoal.table._scrub import scrubbed
from shoal.table.storage._formulas import Formulas, running
from shoal.table.storage._write import schema_of, write_frame
from shoal.table.suggestion._owners import repeating_owners

if TYPE_CHECKING:
    from shoal.randomness import SecretStream


@dataclass(frozen=True)
class Numbers:
    """A numeric column as arrays: values (0 where missing) and where a value is present."""

    values: npt.NDArray[Any]
    present: npt.NDArray[np.bool_]


class Table(GroupedRows, RecordedRows):
    """A frame about people with the roles of its columns; frozen.

    Every row carries a private key from reading on: its position in the input. Samples are
    chosen by it and the audit refers to it; it is never a column and never leaves the private
    half of a release.

    Parameters
    ----------
    frame : polars, pandas or pyarrow frame
        The data. ``table.frame`` gives the same type back. An index is not kept.
    roles : Roles, optional
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
    """

    _data: pl.DataFrame
    _origin: Origin
    _roles: Roles
    _row_key: npt.NDArray[np.int64]
    _lineage: str

    def __init__(self, frame: Any, roles: Roles | None = None) -> None:
        if isinstance(frame, Table):
            raise InputError("This is a Table already; use table.with_roles(...) for other roles.")
        data, origin = to_polars(frame)
        roles = Roles() if roles is None else roles
        check_roles(data, roles)
        keys = np.arange(data.height, dtype=np.int64)
        owners = Owners().under(roles, data)
        self._fill(data, origin, roles, keys, lineage=uuid.uuid4().hex, owners=owners)

    def _fill(
        self,
        data: pl.DataFrame,
        origin: Origin,
        roles: Roles,
        row_key: npt.NDArray[np.int64],
        lineage: str,
        exchanges: tuple[Exchange, ...] = (),
        course: Course = Course(),  # noqa: B008
        sampling: Sampling | None = None,
        owners: Owners = Owners(),  # noqa: B008
    ) -> None:
        row_key.flags.writeable = False
        vars(self).update(
            _data=data,
            _origin=origin,
            _roles=roles,
            _row_key=row_key,
            _lineage=lineage,
            _exchanges=exchanges,
            _course=course,
            _sampling=sampling,
            _owners=owners,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A Table is frozen; a step returns a new one.")

    # -- what it is

    @property
    def frame(self) -> Any:
        """The data, in the frame type that came in."""
        return self._origin.restore(self._data.clone())  # polars frames can be changed in place

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return self._roles

    @property
    def row_key(self) -> npt.NDArray[np.int64]:
        """The private key of each row: its position in the input. Never publish it."""
        return self._row_key

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._names

    @cached_property
    def _names(self) -> Names:
        # kept: a frame makes the list of its names anew for every look
        return Names(self._data.columns)

    def __len__(self) -> int:
        return len(self._row_key)

    def __repr__(self) -> str:
        counts = [
            (len(self.roles.identifiers), "identifier"),
            (len(self.roles.quasi_identifiers), "quasi-identifier"),
            (len(self.roles.sensitive), "sensitive column"),
        ]
        said = ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n)
        size = f"Table: {len(self)} rows, {len(self.columns)} columns"
        return f"{size} ({said or 'no roles'})"

    def kind(self, column: str) -> Kind:
        """Integer, float, boolean, text, date, datetime, time or duration."""
        return kind_of(self._series(column).dtype)

    def _series(self, column: str) -> pl.Series:
        place = self._names.place(column)
        if place is None:
            raise InputError(
                f"The table has no column '{column}'. {did_you_mean(column, self.columns)}"
            )
        return self._data.to_series(place)

    def chosen(self, columns: Sequence[str] | None) -> list[str]:
        """The columns that a method works on: those named, or the quasi-identifiers."""
        if columns is None:
            return list(self.roles.quasi_identifiers)
        return [name for name in columns if self._series(name) is not None]

    # -- columns as arrays, for methods and measures

    def numbers(self, column: str) -> Numbers:
        """A numeric column as arrays; infinite values are refused."""
        series = self._series(column)
        kind = kind_of(series.dtype)
        if kind not in ("integer", "float"):
            raise InputError(f"Column '{column}' is not numeric but {kind}.")
        present = series.is_not_null().to_numpy()
        if kind == "integer":
            series = series.cast(pl.UInt64 if series.dtype == pl.UInt64 else pl.Int64)
        else:
            series = series.cast(pl.Float64)
        values = series.fill_null(0).to_numpy()
        infinite = 0 if kind == "integer" else int(np.isinf(values).sum())
        if infinite:
            raise InputError(
                f"Column '{column}' holds {infinite} infinite values; make them missing first."
            )
        return Numbers(values, present)

    def codes(self, column: str) -> Codes:
        """A column as integer codes; a missing value has a code of its own."""
        return encode(self._series(column))

    def distinct(self, column: str) -> int:
        """The number of different values, missing not counted."""
        return int(self._series(column).drop_nulls().n_unique())

    def missing_count(self, column: str) -> int:
        """The number of missing cells."""
        return int(self._series(column).null_count())

    def present(self, column: str) -> npt.NDArray[np.bool_]:
        """Where the column has a value."""
        return self._series(column).is_not_null().to_numpy()

    def value_counts(self, column: str) -> dict[str, int]:
        """How often each value occurs, as text, the most frequent first; missing left out."""
        series = self._series(column).drop_nulls()
        if series.dtype == pl.Duration:
            series = series.dt.to_string("iso")  # has no cast to text
        counts = series.cast(pl.String).alias("value").value_counts(sort=True, name="records")
        return dict(zip(counts["value"].to_list(), counts["records"].to_list(), strict=True))

    def changed_cells(self, column: str, before: Table) -> npt.NDArray[np.bool_]:
        """Where the cell differs from that of the same row (by key) in ``before``.

        The number 3 written as 3.0 is no other cell, nor is a day written as its midnight.
        """
        old, new = before._series(column), self._series(column)
        if self._row_key is not before._row_key:
            old = old.gather(before._positions_of(self._row_key))
        old, new = comparable(old, new)
        return old.ne_missing(new).to_numpy()

    def _positions_of(self, row_key: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        order = np.argsort(self._row_key, kind="stable")
        at = np.searchsorted(self._row_key[order], row_key)
        inside = at < len(order)
        if not inside.all() or not (self._row_key[order[at]] == row_key).all():
            raise InputError("The two tables do not come from the same rows.")
        return order[at]

    def matching(self, where: str) -> npt.NDArray[np.bool_]:
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

    # -- what the release asks

    @property
    def schema(self) -> dict[str, str]:
        """The type of each column, as a release records it."""
        return schema_of(self._data)

    def write(
        self, path: str | os.PathLike[str], *, format: str, formulas: Formulas = "neutralise"
    ) -> None:
        """Write the data, without roles, row keys or any metadata.

        In CSV and TSV an apostrophe keeps spreadsheets from running a text or a column name as a
        formula, unless ``formulas`` is ``"keep"``.
        """
        write_frame(self._data, path, format=format, formulas=formulas)

    def running_cells(self) -> dict[str, int]:
        """The text columns that have cells a spreadsheet would run as formulas, and how many."""
        texts = (column for column in self._data if column.dtype == pl.String)
        counts = {column.name: int(running(column.alias("")).sum()) for column in texts}
        return {name: count for name, count in counts.items() if count}

    def running_names(self) -> list[str]:
        """The columns whose names a spreadsheet would run as formulas."""
        names = pl.Series(self.columns, dtype=pl.String)
        return names.filter(running(names)).to_list()

    def undeclared_identifiers(self) -> dict[str, str]:
        """Columns that would leave although they identify, with the evidence in words.

        Columns without a role, the weight and the target are looked at, and every column is
        compared with the declared identifiers, of which it may be a copy.
        """
        return identifying_columns(self._data, self.roles)

    def repeating_owners(self) -> dict[tuple[str, ...], int]:
        """Columns that seem to say whose row it is and repeat, though no unit is declared."""
        return repeating_owners(self._data, self.roles)

    # -- new tables

    def _derive(
        self,
        data: pl.DataFrame,
        *,
        roles: Roles | None = None,
        row_key: npt.NDArray[np.int64] | None = None,
        exchanges: tuple[Exchange, ...] | None = None,
        owners: Owners | None = None,
    ) -> Table:
        table = Table.__new__(Table)
        table._fill(
            data,
            self._origin,
            self._roles if roles is None else roles,
            self._row_key if row_key is None else row_key,
            self._lineage,
            self._exchanges if exchanges is None else exchanges,
            self._course,
            self._sampling,
            self._owners if owners is None else owners,
        )
        return table

    def with_roles(self, roles: Roles, *, released: bool = False) -> Table:
        """The same data under other roles; a released column may be empty after masking.

        Whose row it is stays known where the roles do not say: ``unit="row"`` forgets it.
        """
        check_roles(self._data, roles, released=released)
        return self._derive(self._data, roles=roles, owners=self._owners.under(roles, self._data))

    def with_numbers(
        self, columns: Mapping[str, npt.NDArray[Any]], *, keep_equal: bool = False
    ) -> Table:
        """New values for numeric columns; type and missing cells stay as they are.

        With ``keep_equal`` a decimal that equals its new value as a float keeps all its digits.
        """
        changed = []
        for name, values in columns.items():
            old = self._series(name)
            new = in_type_of(old, pl.Series(name, values), keep_equal=keep_equal)
            empty = pl.Series(name, [None], dtype=new.dtype)
            changed.append(new.zip_with(old.is_not_null(), empty.new_from_index(0, len(old))))
        return self._with_columns(changed)

    def blank(self, cells: Mapping[str, npt.NDArray[np.bool_]]) -> Table:
        """Make the marked cells of the named columns missing, also in memory."""
        if not cells:
            return self
        changed = []
        for name, mask in cells.items():
            column = self._series(name)
            empty = pl.Series(name, [None], dtype=column.dtype).new_from_index(0, len(column))
            changed.append(empty.zip_with(pl.Series(mask), column))
        return self._with_columns(scrubbed(pl.DataFrame(changed)).get_columns())

    def drop(self, columns: Iterable[str]) -> Table:
        """Without some columns, and without their roles."""
        gone = [name for name in columns if self._series(name) is not None]
        # column by column: polars would read a name like "^a.*$" as a pattern
        left = [column for column in self._data if column.name not in gone]
        data = pl.DataFrame(height=len(self)).hstack(left)
        return self._derive(data, roles=self._roles.without(gone))

    def with_pseudonyms(self, columns: Sequence[str], stream: SecretStream) -> Table:
        """A first column with a random name for the person of each row.

        It has the name of the column that named the persons, or ``person`` where several did.
        """
        called = columns[0] if len(columns) == 1 else "person"
        while called in self.columns:
            called += "_"
        order = stream.derive("pseudonyms").permutation(self.person_count)
        named = pseudonyms(self.persons, order).alias(called)
        data = pl.DataFrame([named]).hstack(self._data.get_columns())
        return self._derive(data, roles=self._roles.replacing(unit=[called]))

    def keep(self, rows: npt.NDArray[np.bool_]) -> Table:
        """Only the marked rows, in their order."""
        return self._derive(
            self._data.filter(pl.Series(rows)),
            row_key=self._row_key[rows],
            exchanges=tuple(exchange.at(rows) for exchange in self._exchanges),
            owners=self._owners.at(rows),
        )

    def scrubbed(self) -> Table:
        """The same cells in new memory, which holds no value of a row or cell that is gone."""
        table = self._derive(scrubbed(self._data))
        vars(table)["_origin"] = self._origin.reduced(table._data)
        return table

    def reorder(self, order: npt.NDArray[np.int64]) -> Table:
        """The rows in another order."""
        return self._derive(
            self._data[order],
            row_key=self._row_key[order],
            exchanges=tuple(exchange.at(order) for exchange in self._exchanges),
            owners=self._owners.at(order),
        )

    def with_cells_of(self, sources: Mapping[str, npt.NDArray[np.int64]]) -> Table:
        """The named columns with, in each row, the cell of another row; -1 makes it missing."""
        changed = []
        for name, rows in sources.items():
            taken = pl.Series(np.where(rows < 0, 0, rows)).set(pl.Series(rows < 0), None)
            changed.append(self._series(name).gather(taken))
        return self._with_columns(changed)

    def with_labels(
        self, column: str, labels: Sequence[str | None], codes: npt.NDArray[np.integer[Any]]
    ) -> Table:
        """The column as text: in each row the label of its code; None makes it missing."""
        text = pl.Series(self._series(column).name, labels, dtype=pl.String).gather(codes)
        table = self._with_columns([text])
        vars(table)["_origin"] = self._origin.as_text(column)
        return table

    def fill_numbers(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> Table:
        """New values for numeric columns, also where a cell was missing; NaN makes it missing.

        Whole numbers stay whole; dates and times take the count of units that they are kept in.
        """
        changed = []
        for name, values in columns.items():
            old = self._series(name)
            new = pl.Series(name, values).fill_nan(None)
            if kind_of(old.dtype) not in ("integer", "float"):
                ticks = pl.Series(np.rint(np.nan_to_num(values)).astype(np.int64))
                ticks = ticks.set(pl.Series(np.isnan(values)), None)
                changed.append(ticks.cast(old.to_physical().dtype).cast(old.dtype).alias(name))
                continue
            if kind_of(old.dtype) == "integer":
                wide = np.uint64 if old.dtype == pl.UInt64 else np.int64
                # the largest float below the end of the type: the end itself is not one
                ends = float(np.iinfo(wide).min), np.nextafter(float(np.iinfo(wide).max), 0)
                whole = np.clip(np.rint(np.nan_to_num(values)), *ends).astype(wide)
                gaps = pl.Series(np.isnan(values))
                new = pl.Series(name, whole).set(gaps, None)
            changed.append(in_type_of(old, new))
        return self._with_columns(changed)
