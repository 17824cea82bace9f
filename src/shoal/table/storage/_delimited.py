"""CSV, TSV and the like: text in lines, fields between delimiters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from shoal.errors import ReadError
from shoal.table.columns._column import Column
from shoal.table.storage._formulas import Formulas, may_run, restored
from shoal.table.storage._header import check_header, check_names
from shoal.table.storage._records import Shape, sample_rows, shape_of, without_blank_lines
from shoal.table.storage._text import Text, file_state, load_text, remember_digest
from shoal.table.storage._types import Fields, check_recorded_names, column_of, in_recorded_type
from shoal.table.storage.inference._infer import FIRST, first_texts, infer_types
from shoal.table.storage.inference._missing import DEFAULT_MISSING

_SAMPLE: Final = 1 << 18
#: The share of different texts in the sample beyond which coding costs more than it saves.
_MOST_DIFFERENT: Final = 0.9


@dataclass(frozen=True)
class TextFile:
    """A file of delimited text that has been looked at, and is parsed once."""

    path: Path
    text: Text
    shape: Shape

    @classmethod
    def open(
        cls, path: Path, encoding: str | None, delimiter: str | None, likely: str = ","
    ) -> TextFile:
        """ReadError if the file is no text, or its records do not fit together."""
        text = load_text(path, encoding)
        return cls(path, text, shape_of(text, delimiter=delimiter, likely=likely))

    @property
    def names(self) -> list[str]:
        """The fields of the first line."""
        return self.shape.names

    def fields(self, missing_values: Sequence[str] = ()) -> list[Fields]:
        """The columns as they stand in the file, named by their positions."""
        source: Path | bytes
        if self.shape.blank_lines:
            source = without_blank_lines(self.text, self.shape)
        elif self.text.whole:
            source = self.path
        else:
            source = bytes(self.text.content)
        frame = self._parsed(source, [value for value in missing_values if value])
        if frame is None or frame.height != self.shape.records:
            raise ReadError(f"'{self.path}' cannot be parsed as text in lines with delimiters.")
        numbers = frame.select(pl.all().to_physical())  # in one go: there may be many columns
        return [Fields.of(*column) for column in zip(frame, numbers, strict=True)]

    def _parsed(self, source: Path | bytes, missing_values: list[str]) -> pl.DataFrame | None:
        """All columns as text, or None if polars refuses: its reasons quote cells."""
        try:
            return pl.read_csv(
                source,
                separator=self.shape.delimiter,
                quote_char='"' if self.shape.quoted else None,
                # not by names that come twice or that polars reads as patterns, such as ^a$
                new_columns=[str(at) for at in range(len(self.names))],
                schema_overrides=self._types(),
                null_values=missing_values or None,
                glob=False,
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None

    def _types(self) -> list[pl.DataType]:
        """Categories of its own for a column whose first texts repeat, texts for others."""
        rows = sample_rows(self.text, self.shape.delimiter, _SAMPLE)[1:]
        seen = zip(*rows, strict=False) if rows else ()
        few = [len(set(texts)) <= _MOST_DIFFERENT * len(rows) for texts in seen]
        few += [False] * (len(self.names) - len(few))
        return [
            pl.Categorical(pl.Categories.random()) if repeats else pl.String()
            for repeats in few[: len(self.names)]
        ]


def read_delimited(
    path: Path,
    *,
    likely: str = ",",
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing_values: Sequence[str] = DEFAULT_MISSING,
    header: bool | None = None,
) -> list[Column]:
    """Read delimited text; types are guessed from all values."""
    if decimal not in (None, ".", ","):
        raise ReadError(f"The decimal mark must be '.' or ','; got {decimal!r}.")
    if isinstance(missing_values, str):
        raise ReadError("The missing values must be a list of texts, such as ['NA', '-99'].")
    state = file_state(path)
    file = TextFile.open(path, encoding, delimiter, likely)
    if header:
        check_names(file.names, f"'{path}'")  # before a large file is parsed
    fields = file.fields(missing_values)
    if file.shape.sha256 is not None:
        remember_digest(path, state, file.shape.sha256)
    labels = [column.labels for column in fields]
    texts = [column.texts for column in fields]
    samples = [first_texts(column.head(FIRST)) for column in fields]
    del fields  # texts are let go one by one
    if "" in missing_values:
        texts, samples = list(map(_without_empty, texts)), list(map(_without_empty, samples))
    infer_types(texts, samples, decimal=decimal, commas=file.shape.delimiter == ",")
    columns = [
        column_of(name, values, labels)
        for name, values, labels in zip(file.names, texts, labels, strict=True)
    ]
    if not header:
        # first: what is said about names may quote them
        check_header(file.names, columns, f"The first line of '{path}'")
        check_names(file.names, f"'{path}'")
    return columns


def _without_empty(texts: pl.Series) -> pl.Series:
    return texts.replace("", None) if bool((texts == "").any()) else texts


def recorded_columns(
    file: TextFile, fields: Sequence[Fields], dtypes: Mapping[str, pl.DataType], formulas: Formulas
) -> list[Column]:
    """The columns of a file that :func:`write_frame` wrote, in the types that were recorded."""
    called = f"'{file.path}'"
    check_names(file.names, called)
    neutralised = formulas == "neutralise"
    names = restored(pl.Series(file.names)).to_list() if neutralised else file.names
    check_recorded_names(names, dtypes, called)
    read = list(zip(names, fields, strict=True))
    written = (column.texts for name, column in read if dtypes[name] == pl.String)
    marked = neutralised and may_run(written)
    columns = []
    for name, column in read:
        dtype, texts = dtypes[name], column.texts
        if marked and dtype == pl.String:
            texts = restored(texts)
        values = in_recorded_type(texts.alias(name), dtype, called)
        columns.append(column_of(name, values, column.labels))
    return columns
