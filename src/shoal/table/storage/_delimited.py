"""Read CSV, TSV and similar files: text in lines, with fields between delimiters."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import polars as pl
import polars.selectors as cs

from shoal.errors import ReadError, quoted
from shoal.table.columns._column import Column
from shoal.table.storage._header import check_header, check_names
from shoal.table.storage._reading import Manner, ReadOptions
from shoal.table.storage._records import (
    Shape,
    check_delimiter,
    sample_rows,
    shape_of,
    title_lines,
    without_blank_lines,
)
from shoal.table.storage._text import (
    WESTERN,
    Text,
    Undecodable,
    file_state,
    load_text,
    remember_digest,
    western_text,
)
from shoal.table.storage._types import Fields, column_of
from shoal.table.storage.inference._dates import doubts_in_words, is_empty, read_formatted_dates
from shoal.table.storage.inference._infer import FIRST, Spelling, first_texts, infer_types

_SAMPLE: Final = 1 << 18
#: The share of distinct texts in the sample above which coding costs more than it saves.
_MOST_DIFFERENT: Final = 0.9


@dataclass(frozen=True)
class TextFile:
    """A file of delimited text whose shape is known, and which is parsed once."""

    path: Path
    text: Text
    shape: Shape
    skipped: int = 0

    @classmethod
    def open(
        cls,
        path: Path,
        encoding: str | None,
        delimiter: str | None,
        likely: str = ",",
        skip_lines: int | None = 0,
    ) -> TextFile:
        """Open a file; ReadError if it is not text or its records do not fit together.

        If ``skip_lines`` is None, lines above the names are detected.
        """
        check_delimiter(delimiter)
        text = load_text(path, encoding)
        try:
            return cls._of(path, text, delimiter, likely, skip_lines)
        except Undecodable:
            western = western_text(path) if encoding is None and not text.marked else None
            if western is None:
                raise
            return cls._of(path, western, delimiter, likely, skip_lines)

    @classmethod
    def _of(
        cls, path: Path, text: Text, delimiter: str | None, likely: str, skip_lines: int | None
    ) -> TextFile:
        lines = title_lines(text, delimiter) if skip_lines is None else skip_lines
        if lines:
            text = text.without_lines(lines)
        shape = shape_of(text, delimiter=delimiter, likely=likely)
        return cls(path, text, shape, lines)

    @property
    def names(self) -> list[str]:
        """The fields of the first line."""
        return self.shape.names

    def fields(self, missing_values: Sequence[str] = ()) -> list[Fields]:
        """The columns of the file, unchanged and named by their positions."""
        types, missing = self._types(), [value for value in missing_values if value]
        # polars forgets the codes of categories as soon as no column uses them
        known = [pl.Series([], dtype=dtype) for dtype in types]
        parts: list[pl.DataFrame] = []
        for source in self._parts():
            part = self._parsed(source, types, missing, header=not parts)
            if part is None:
                break
            parts.append(part)
        frame = pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame()
        if frame.height != self.shape.records or frame.width != len(types):
            raise ReadError(
                f"'{self.path}' cannot be parsed as delimited text. Check its format and delimiter."
            )
        del parts
        return [Fields.of(*column) for column in zip(frame, known, strict=True)]

    def _parts(self) -> Iterator[bytes]:
        """The text in parts of whole records, so that parsing takes little memory."""
        if self.shape.blank_lines:
            yield without_blank_lines(self.text, self.shape)
            return
        content = self.text.content
        for start, end in pairwise([*self.shape.parts, len(content)]):
            yield bytes(content[start:end])
            self.text.let_go(end)

    def _parsed(
        self, source: bytes, types: list[pl.DataType], missing_values: list[str], *, header: bool
    ) -> pl.DataFrame | None:
        """All columns, categories as codes; None if polars fails: its messages quote cells."""
        try:
            frame = pl.read_csv(
                source,
                has_header=header,
                separator=self.shape.delimiter,
                quote_char='"' if self.shape.quoted else None,
                # positions, because names may repeat, and polars reads ^a$ as a pattern
                new_columns=[str(at) for at in range(len(self.names))],
                schema_overrides=types,
                null_values=missing_values or None,
                glob=False,
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        frame = frame.select(pl.all().to_physical())  # in one go: there may be many columns
        if len(self.shape.parts) == 1:
            return frame
        return frame.with_columns(codes.shrink_dtype() for codes in frame.select(cs.integer()))

    def _types(self) -> list[pl.DataType]:
        """Separate categories for each column whose first texts repeat; text for the others."""
        rows = sample_rows(self.text, self.shape.delimiter, _SAMPLE)[1:]
        seen = zip(*rows, strict=False) if rows else ()
        few = [len(set(texts)) <= _MOST_DIFFERENT * len(rows) for texts in seen]
        few += [False] * (len(self.names) - len(few))
        return [
            pl.Categorical(pl.Categories.random()) if repeats else pl.String()
            for repeats in few[: len(self.names)]
        ]


def read_delimited(
    path: Path, options: ReadOptions, *, likely: str = ",", as_text: Container[str] = ()
) -> tuple[list[Column], Manner]:
    """Read delimited text; types are inferred from all values, except those of texts."""
    state = file_state(path)
    file = TextFile.open(path, options.encoding, options.delimiter, likely, options.skip_lines)
    if options.header and all(map(str.strip, file.names)):
        check_names(file.names, f"'{path}'")  # before a large file is parsed
    fields = file.fields(options.missing)
    if file.shape.sha256 is not None:
        remember_digest(path, state, file.shape.sha256)
    labels = [column.labels for column in fields]
    texts = [column.texts for column in fields]
    samples = [first_texts(column.head(FIRST)) for column in fields]
    del fields  # so that texts are freed one by one
    if "" in options.missing:
        texts, samples = list(map(_without_empty, texts)), list(map(_without_empty, samples))
    used = [at for at, name in enumerate(file.names) if name.strip() or not is_empty(texts[at])]
    names, dropped = [file.names[at] for at in used], len(texts) - len(used)
    if dropped:
        texts, samples = ([each[at] for at in used] for each in (texts, samples))
        labels = [labels[at] for at in used]
    formatted = read_formatted_dates(names, texts, options.date_formats or {}, f"'{path}'")
    open_ones = [at for at, name in enumerate(names) if name not in as_text]
    inferred, open_names = [texts[at] for at in open_ones], [names[at] for at in open_ones]
    spelling = infer_types(
        inferred,
        [samples[at] for at in open_ones],
        decimal=options.decimal,
        thousands=options.thousands,
        commas=file.shape.delimiter == ",",
    )
    for at, column in zip(open_ones, inferred, strict=True):
        texts[at] = column
    columns = [column_of(*column) for column in zip(names, texts, labels, strict=True)]
    if not options.header:
        # first, because other messages may quote the names
        check_header(names, columns, f"The first line of '{path}'")
    check_names(names, f"'{path}'")
    formats = {open_names[at]: format for at, format in spelling.date_formats.items()}
    found = replace(
        options,
        delimiter=file.shape.delimiter,
        encoding=file.text.origin,
        decimal=spelling.decimal,
        thousands=spelling.thousands,
        skip_lines=file.skipped or options.skip_lines,
        date_formats=formatted | formats or None,
    )
    notes = _notes(file, options, spelling, open_names, dropped)
    return columns, Manner(found, marked=file.text.marked, notes=tuple(notes))


def _notes(
    file: TextFile, options: ReadOptions, spelling: Spelling, names: Sequence[str], dropped: int
) -> Iterator[str]:
    """Notes on what was detected and may be wrong, and on what is ambiguous."""
    if file.text.origin == WESTERN and options.encoding is None:
        yield (
            f"The file is not UTF-8 and was read as {WESTERN}, which it looks like. If letters "
            "are wrong, set the encoding (--encoding)."
        )
    if file.skipped and options.skip_lines is None:
        yield (
            f"Lines above the column names were skipped: {file.skipped}. Use --skip-lines to "
            "change this."
        )
    if dropped:
        yield (
            f"{dropped} column{'s' * (dropped > 1)} without a name or any value "
            f"{'were' if dropped > 1 else 'was'} left out."
        )
    yield from doubts_in_words({names[at]: doubt for at, doubt in spelling.doubts.items()})
    if spelling.open_numbers:
        yield (
            f"In {quoted(names[at] for at in spelling.open_numbers)}, a number such as 1,234 may "
            "be a whole number or a decimal fraction, so the column was read as text. Use "
            "--thousands ',' or --decimal ','."
        )


def _without_empty(texts: pl.Series) -> pl.Series:
    return texts.replace("", None) if bool((texts == "").any()) else texts
