"""How a source is read: what is said about it, and what was found out; nothing about its cells."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shoal.errors import ReadError, did_you_mean, quoted
from shoal.hints import Helpful
from shoal.notebook import listing, view
from shoal.table.storage._formats import (
    ALIASES,
    DELIMITER_OF,
    DELIMITERS,
    ENCODINGS,
    FORMATS,
    Dialect,
    check_format,
    format_of,
)
from shoal.table.storage.inference._dates import EVERY_COLUMN, check_date_format
from shoal.table.storage.inference._missing import DEFAULT_MISSING
from shoal.table.storage.inference._numbers import DECIMALS, THOUSANDS

#: What can be said of a file of each format; others have nothing to say.
_OF_TEXT: Final = (
    *("delimiter", "encoding", "decimal", "thousands", "missing_values", "only_missing_values"),
    *("header", "skip_lines", "date_formats"),
)
_OF_WORKBOOK: Final = (
    *("sheet", "header", "skip_lines", "missing_values", "only_missing_values", "date_formats"),
)
OPTIONS_OF: Final[dict[str, tuple[str, ...]]] = {
    "csv": _OF_TEXT,
    "tsv": _OF_TEXT,
    "xlsx": _OF_WORKBOOK,
}


@dataclass(frozen=True)
class ReadOptions(Helpful):
    """How a source is read: ``[read]`` of a plan. What is not said is found out.

    Parameters
    ----------
    format : str, optional
        The format of the file.
    delimiter, encoding, decimal, thousands : str, optional
        How text is written: between fields, its encoding, and the marks in numbers.
    missing_values : tuple of str, optional
        What stands for a missing value beside the usual signs.
    only_missing_values : tuple of str, optional
        What stands for one instead of the usual signs.
    sheet : str or int, optional
        The sheet of a workbook, by name or by number from 1.
    header : bool, optional
        True if the first line holds names, whatever they look like.
    skip_lines : int, optional
        How many lines stand above the names.
    date_formats : mapping of str, optional
        The format of the dates of a column, such as ``"%d.%m.%Y"``; ``"*"`` stands for all columns
        that fit it.
    columns : mapping of str, optional
        The columns that the source had when this was written, with their kinds. They say nothing
        about reading: a source that has others now is told from the one that was meant.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing_values: tuple[str, ...] | None = None
    only_missing_values: tuple[str, ...] | None = None
    sheet: str | int | None = None
    header: bool | None = None
    skip_lines: int | None = None
    date_formats: Mapping[str, str] | None = None
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            value = getattr(self, name)
            is_flag = isinstance(value, bool) and name != "sheet"
            wrong = value is not True if kinds == (bool,) else is_flag
            if value is not None and (wrong or not isinstance(value, kinds)):
                raise ReadError(f"{name!r} cannot be {value!r}; it is {_WORDS[name]}.")
        for name in ("missing_values", "only_missing_values"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        if isinstance(self.date_formats, str):
            object.__setattr__(self, "date_formats", {EVERY_COLUMN: self.date_formats})
        for format in (self.date_formats or {}).values():
            check_date_format(format)
        if self.format is not None:
            object.__setattr__(self, "format", check_format(self.format))
        self._check_marks()

    def _check_marks(self) -> None:
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise ReadError(f"The decimal mark must be '.' or ','; got {self.decimal!r}.")
        if self.thousands is not None and self.thousands not in THOUSANDS:
            raise ReadError(
                "The mark between thousands must be a point, a comma, an apostrophe or a space; "
                f"got {self.thousands!r}."
            )
        if self.thousands is not None and self.thousands == self.decimal:
            raise ReadError(
                f"{self.decimal!r} cannot be the decimal mark and stand between thousands too."
            )
        if self.skip_lines is not None and self.skip_lines < 0:
            raise ReadError(f"'skip_lines' must be 0 or more; got {self.skip_lines}.")
        if self.missing_values is not None and self.only_missing_values is not None:
            raise ReadError(
                "Give 'missing_values', which are added to the usual signs, or "
                "'only_missing_values', which replace them; not both."
            )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> ReadOptions:
        """From plain data; ReadError for what is not known."""
        for name in given:
            if name not in cls.__dataclass_fields__:
                known = did_you_mean(str(name), cls.__dataclass_fields__)
                raise ReadError(f"There is no way of reading '{name}'. {known}")
        return cls(**given)

    def _repr_html_(self) -> str:
        rows = ((name, str(value)) for name, value in self.to_dict().items())
        return view("How a source is read", listing(("option", "value"), rows))

    def to_dict(self) -> dict[str, Any]:
        """What is said, as plain data."""
        return {name: _plain(value) for name, value in vars(self).items() if value is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """All that stands for a missing value."""
        if self.only_missing_values is not None:
            return self.only_missing_values
        return (*DEFAULT_MISSING, *(self.missing_values or ()))

    def over(self, other: ReadOptions | None) -> ReadOptions:
        """These options, and those of another one where these say nothing."""
        if other is None:
            return self
        said = {**other.to_dict(), **self.to_dict()}
        if self.missing_values is not None:
            said.pop("only_missing_values", None)
        if self.only_missing_values is not None:
            said.pop("missing_values", None)
        if said.get("decimal") == said.get("thousands") is not None:
            del said["thousands" if self.thousands is None else "decimal"]
        formats = {**(other.date_formats or {}), **(self.date_formats or {})}
        return ReadOptions(**{**said, **({"date_formats": formats} if formats else {})})

    def for_file(self, source: str | os.PathLike[str]) -> ReadOptions:
        """As far as it can be said of a file; a plan may be run on a copy in another format."""
        try:
            told: str | None = format_of(source)
        except ReadError:
            told = self.format
        if {told, self.format} <= {*DELIMITER_OF}:
            told = self.format  # a file of either name may be of the other kind
        return self if told is None else self.fitting(told)

    def fitting(self, format: str) -> ReadOptions:
        """As far as it can be said of a format."""
        known = (*OPTIONS_OF.get(format, ()), "columns")
        said = {name: value for name, value in self.to_dict().items() if name in known}
        return ReadOptions(format=format, **said)

    def without(self, names: Iterable[str]) -> ReadOptions:
        """Without some of it."""
        return dataclasses.replace(self, **dict.fromkeys(names))

    def check_for(self, format: str) -> None:
        """ReadError where something is said that a format does not have."""
        what = {"xlsx": "a workbook"}.get(format, f"a file of format {format}")
        allowed = OPTIONS_OF.get(format, ())
        if allowed is _OF_TEXT:
            what = "a text file"
        said = self.without(["format", "columns"]).to_dict()
        refuse_others(said, allowed, what)


def refuse_others(given: Iterable[str], allowed: Sequence[str], what: str) -> None:
    """ReadError where an option does not belong to a source."""
    odd = [name for name in given if name not in allowed]
    if odd:
        raise ReadError(
            f"The option {quoted(odd)} cannot be given for {what}; "
            f"its options are {quoted(allowed) if allowed else 'none'}."
        )


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("format", "delimiter", "encoding", "decimal", "thousands"), (str,)),
    "sheet": (str, int),
    "header": (bool,),
    "skip_lines": (int,),
    "date_formats": (Mapping, str),
    "columns": (Mapping,),
}
_WORDS: Final = {
    "format": f"one of {quoted((*FORMATS, *ALIASES))}",
    "delimiter": "one character",
    "encoding": "the name of an encoding, such as 'cp1252'",
    "decimal": "'.' or ','",
    "thousands": "one character, such as '.'",
    "sheet": "the name of a sheet, or its number from 1",
    "header": "true, or left out: a table needs column names",
    "skip_lines": "a whole number",
    "date_formats": "a format such as '%d.%m.%Y', or a table of columns with theirs",
    "columns": "a table of columns with their kinds",
}


def _texts(name: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not all(isinstance(text, str) for text in given):
        raise ReadError(f"'{name}' must be a list of texts, such as ['k.A.', '-99'].")
    return tuple(given)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Manner:
    """How a source was read, as far as it was said or found out.

    With ``options`` it is read in the same way again. ``notes`` say what was found out, and what
    could not be.
    """

    options: ReadOptions = ReadOptions()
    marked: bool = False
    sheets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def dialect(self, format: str) -> Dialect:
        """How a text file is written like the source, as far as it can be."""
        said, usual = self.options, Dialect(DELIMITER_OF[format])
        if said.format not in DELIMITER_OF:
            return usual
        alike = said.format == format and said.delimiter in DELIMITERS
        delimiter = str(said.delimiter) if alike else usual.delimiter
        decimal = "," if said.decimal == "," and delimiter != "," else "."
        encoding = "utf-8" if said.encoding == "ascii" else str(said.encoding)
        if encoding not in ENCODINGS or (encoding == "utf-8" and self.marked):
            encoding = "utf-8-sig"
        return Dialect(delimiter, decimal, encoding)
