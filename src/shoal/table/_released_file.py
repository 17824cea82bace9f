"""Read the files of a release."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import ReadError
from shoal.kernels.arrays import Integers
from shoal.table._roles import Roles
from shoal.table._table import Table
from shoal.table.columns._column import Column
from shoal.table.storage._columnar import read_plain
from shoal.table.storage._delimited import TextFile
from shoal.table.storage._formats import DELIMITER_OF, Dialect
from shoal.table.storage._formulas import Formulas, may_run, restored, running
from shoal.table.storage._header import check_names
from shoal.table.storage._read import read_columnar
from shoal.table.storage._size import check_file_size, check_memory, check_table_size
from shoal.table.storage._types import (
    Fields,
    as_text,
    check_recorded_names,
    column_of,
    dtypes_of,
    in_recorded_type,
)
from shoal.table.storage._workbook import read_written_sheet
from shoal.table.storage.labelled._coding import Coding, in_recorded_types
from shoal.table.storage.labelled._dictionary import LABELLED
from shoal.table.storage.labelled._read import read_labelled

#: A file in another encoding is held as it is and as UTF-8, with up to three bytes per character.
_RECODED: Final = 4


class ReleasedFile:
    """The data file of a release, read once and available in two views.

    The first is a table with the recorded types. The second shows the file as anyone reads it, with
    nothing parsed: text fields are equal if their characters are the same, and values of other
    formats if they are written alike.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str,
        dialect: Dialect | None = None,
        coding: Coding | None = None,
    ) -> None:
        self.path, self.format = Path(path), format
        self.dialect = dialect or Dialect(DELIMITER_OF.get(format, ","))
        self.coding = coding or Coding()

    @cached_property
    def sha256(self) -> str:
        """The checksum of the file; ReadError if it is too large for the memory."""
        check_file_size(self.path)
        if self.format in DELIMITER_OF:
            try:
                found = self._text.shape.sha256
            except ReadError:  # about its shape, which reading the fields reports
                found = None
            if found is not None:
                return found
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def _text(self) -> TextFile:
        encoding = self.dialect.encoding
        if encoding != "utf-8":
            check_file_size(self.path, copies=_RECODED)
        return TextFile.open(self.path, encoding, self.dialect.delimiter)

    @cached_property
    def _fields(self) -> list[Fields]:
        """The columns as in the file; ReadError if memory cannot hold them."""
        if self.format in DELIMITER_OF:
            check_file_size(self.path)
            check_table_size(self.path, self._text.shape.records, len(self._text.names))
            return self._text.fields()
        check_memory(self.path, self.format)
        if self.format == "xlsx":
            return [Fields(column) for column in read_written_sheet(self.path, texts=True)]
        if self.format in LABELLED:
            frame, _ = read_labelled(self.path, self.format, expected=self.coding.reasons)
            return [Fields(column) for column in frame]
        return read_columnar(self.path, self.format)

    def table(
        self, schema: Mapping[str, str], roles: Roles, *, formulas: Formulas = "keep"
    ) -> Table:
        """The data with the recorded types; ReadError if they do not fit, or not into memory."""
        columns = self.columns(schema, formulas=formulas)
        return Table.of_columns(columns).with_roles(roles, released=True)

    def columns(self, schema: Mapping[str, str], *, formulas: Formulas = "keep") -> list[Column]:
        """The columns with the recorded types."""
        dtypes, called = dtypes_of(schema), f"'{self.path}'"
        if self.format in LABELLED:
            return self._labelled(dtypes, called)
        if self.format == "xlsx":
            check_memory(self.path, self.format)
            fields = [Fields(column) for column in read_written_sheet(self.path)]
        else:
            fields = self._fields
        names, is_text = [column.texts.name for column in fields], self.format in DELIMITER_OF
        neutralised = is_text and formulas == "neutralise"
        if is_text:
            check_names(self._text.names, called)
            bare = pl.Series(self._text.names)
            names = (restored(bare) if neutralised else bare).to_list()
        check_recorded_names(names, dtypes, called)
        read = list(zip(names, fields, strict=True))
        written = (column.texts for name, column in read if dtypes[name] == pl.String)
        marked = neutralised and may_run(written)
        columns = []
        for name, column in read:
            dtype, texts = dtypes[name], column.texts
            if marked and dtype == pl.String:
                texts = restored(texts)
            if is_text and self.dialect.decimal == "," and (dtype.is_float() or dtype.is_decimal()):
                # the swap makes a decimal point invalid, as it was not written
                texts = texts.str.replace_many([",", "."], [".", ","])
            values = in_recorded_type(texts.alias(name), dtype, called)
            columns.append(column_of(name, values, column.labels))
        return columns

    def _labelled(self, dtypes: Mapping[str, pl.DataType], called: str) -> list[Column]:
        """The columns of a labelled file."""
        frame = pl.DataFrame([column.texts for column in self._fields])
        if [name.upper() for name in frame.columns] != [name.upper() for name in dtypes]:
            check_recorded_names(frame.columns, dtypes, called)
        found = in_recorded_types(frame, dtypes, self.coding)
        for name in dtypes:
            if name not in found:
                raise ReadError(
                    f"Column '{name}' of {called} has values that do not fit its recorded type."
                )
        return [Column(found[name]) for name in dtypes]

    def sizes(self, places: Sequence[int], persons: Integers | None = None) -> Integers:
        """The sorted sizes of groups of rows, or ``persons``, with equal fields in some columns.

        polars counts them from the fields, independently of the codes of a table.
        """
        fields = self._fields
        rows = len(fields[0]) if fields else 0
        columns = [_as_written(fields[place]).alias(str(place)) for place in places]
        if not columns:
            count = rows if persons is None else len(np.unique(persons))
            return np.array([count] if rows else [], dtype=np.int64)
        frame, names = pl.DataFrame(columns), [column.name for column in columns]
        if persons is not None:  # each person once in each class
            frame = frame.with_columns(pl.Series("whose", persons)).unique()
        sizes = frame.lazy().group_by(names).agg(pl.len().alias("size")).collect()
        return np.sort(sizes["size"].to_numpy().astype(np.int64))

    def running(self, places: Sequence[int]) -> int:
        """How many names, and fields of some columns, a spreadsheet would run as formulas."""
        names = self._text.names if self.format in DELIMITER_OF else []
        count = int(running(pl.Series(names, dtype=pl.String)).sum())
        asked = [self._fields[place] for place in places]
        for fields in asked if may_run(fields.texts for fields in asked) else ():
            runs = running(fields.texts).fill_null(False).to_numpy()
            count += int(runs.sum() if fields.counts is None else fields.counts[runs].sum())
        return count


def _as_written(fields: Fields) -> pl.Series:
    """Values that are equal if the file has the same; -0.0 is not 0.0, and NaN is not missing."""
    if fields.labels is not None:
        return pl.Series(fields.labels)
    column = fields.texts
    if column.dtype.is_integer():
        return column
    if column.dtype == pl.Float64 and not column.null_count():
        return pl.Series(column.to_numpy().view(np.uint64))
    return as_text(column)


def records_as_parquet(
    file: BinaryIO, columns: Mapping[str, npt.NDArray[Any] | Sequence[Any]]
) -> None:
    """Write columns of plain types: facts of the private half, or results of a study."""
    pl.DataFrame(dict(columns)).write_parquet(file, compression="snappy", statistics=False)


def read_records(
    path: str | os.PathLike[str], without: Container[str] = ()
) -> dict[str, npt.NDArray[Any]]:
    """Read per-record facts of the private half; ReadError if memory cannot hold them."""
    check_memory(Path(path), "parquet")
    facts = read_plain(Path(path), without)  # reports a damaged file
    # in one piece they are frozen, and a table takes them without a copy
    return {fact.name: fact.rechunk().to_numpy() for fact in facts}
