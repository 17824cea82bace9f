"""What a metadata file says about a table: names, types, missing values, labels and descriptions.

Each standard has a file with the way from its notation to a :class:`Description` and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from shoal.errors import ReadError, did_you_mean, quoted
from shoal.table.columns._column import Column
from shoal.table.columns._frames import Kind
from shoal.table.storage._reading import ReadOptions

#: Kinds that a declared kind may also have when it is read.
_ALSO: Final[dict[str, tuple[str, ...]]] = {
    "float": ("integer",),
    "boolean": ("integer", "text"),
    "date": ("datetime",),
    "duration": ("integer", "text"),
    "time": ("text",),
    "datetime": ("date", "text"),
}


@dataclass(frozen=True)
class DescribedColumn:
    """One column as a metadata file describes it; ``labels`` maps values to their labels."""

    name: str
    kind: Kind | None = None
    label: str | None = None
    description: str | None = None
    date_format: str | None = None
    missing: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """What a metadata file says; ``source`` is its name for messages."""

    columns: tuple[DescribedColumn, ...]
    source: str = ""
    missing: tuple[str, ...] | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    @property
    def by_name(self) -> dict[str, DescribedColumn]:
        return {column.name: column for column in self.columns}

    @property
    def texts(self) -> frozenset[str]:
        """The columns that stay text, whatever their values look like."""
        return frozenset(column.name for column in self.columns if column.kind == "text")

    def options(self, given: ReadOptions, text: bool) -> ReadOptions:
        """The reading options, completed by the file's; a given option wins."""
        formats = {c.name: c.date_format for c in self.columns if c.date_format}
        told: dict[str, Any] = {"date_formats": formats or None}
        if text:
            missing = None if self.missing is None else tuple(dict.fromkeys(("", *self.missing)))
            told |= {"only_missing_values": missing, "delimiter": self.delimiter}
            told |= {"decimal": self.decimal, "encoding": self.encoding}
        known = {name: value for name, value in told.items() if value is not None}
        return given.over(ReadOptions(**known)) if known else given

    def applied(self, columns: Sequence[Column]) -> list[Column]:
        """The columns with missing values made missing; ReadError if they contradict the file."""
        known, names = self.by_name, [column.name for column in columns]
        absent = [name for name in known if name not in names]
        if absent:
            raise ReadError(
                f"The metadata file '{self.source}' describes columns that the table does not "
                f"have: {quoted(absent)}. {did_you_mean(absent[0], names)}"
            )
        made = [
            _fitted(column, known[column.name]) if column.name in known else column
            for column in columns
        ]
        wrong = [
            f"'{column.name}' is {known[column.name].kind}, but it reads as {column.kind}"
            for column in made
            if column.name in known and not _fits(column, known[column.name].kind)
        ]
        if wrong:
            raise ReadError(
                f"The metadata file '{self.source}' contradicts the table: {'; '.join(wrong)}. "
                'Correct one of the two, or read without the file (metadata="none", --metadata '
                "none)."
            )
        return made


def _fits(column: Column, kind: Kind | None) -> bool:
    if kind is None or column.missing_count == len(column):
        return True
    return column.kind == kind or column.kind in _ALSO.get(kind, ())


def _fitted(column: Column, described: DescribedColumn) -> Column:
    """A column without its own missing values, as decimals if it is declared so."""
    series = column.series
    if described.missing:
        bare = series.alias("")
        if series.dtype.is_numeric():
            codes = pl.Series(described.missing).cast(pl.Float64, strict=False).drop_nulls()
            gone = bare.cast(pl.Float64).is_in(codes.to_list())
        else:
            gone = bare.cast(pl.String).is_in(list(described.missing))
        series = series.set(gone.fill_null(value=False), None)
        if series.dtype == pl.String and described.kind in ("integer", "float"):
            number = series.alias("").cast(pl.Float64, strict=False)
            if number.null_count() == series.null_count():  # only the missing ones were no numbers
                whole = described.kind == "integer" and bool((number == number.floor()).all())
                series = number.cast(pl.Int64 if whole else pl.Float64).alias(column.name)
    if described.kind == "float" and series.dtype.is_integer():
        series = series.cast(pl.Float64)
    return column if series is column.series else Column(series)


# -- reading with care: a metadata file is a stranger's text


class Malformed(Exception):
    """A metadata file is not as its standard says; the message ends "…: "."""


def parsed_json(text: str) -> dict[str, Any]:
    """The table of a JSON file."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("it is not valid JSON") from None
    if not isinstance(found, dict):
        raise Malformed("it is not a JSON object")
    return found


def entry(given: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """An optional entry of a type; None if it is missing."""
    value = given.get(name)
    if value is not None and not isinstance(value, kind):
        raise Malformed(f"its '{name}' has the wrong type")
    return value


def tables_in(given: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of tables; empty if it is missing."""
    found = entry(given, name, list) or []
    if not all(isinstance(one, dict) for one in found):
        raise Malformed(f"its '{name}' must list objects")
    return found


def texts_in(given: Any, name: str) -> tuple[str, ...]:
    """A text or a list of texts."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise Malformed(f"its '{name}' must be a text or a list of texts")
    return tuple(listed)


def nonempty(texts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The entries that say something."""
    return {name: text for name, text in texts if text not in (None, "", [], {}, ())}
