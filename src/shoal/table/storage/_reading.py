"""How a source is read: the given options and what was detected, without any of its cells."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shoal.errors import OptionError, ReadError, did_you_mean, quoted
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
from shoal.table.storage.inference._infer import DECIMALS, THOUSANDS
from shoal.table.storage.inference._missing import DEFAULT_MISSING

if TYPE_CHECKING:
    from shoal.table.storage.metadata._description import DescribedColumn

#: Options that say nothing about the notation of a format.
_OF_ALL: Final = ("columns", "metadata")
#: The options for each format; the other formats have none.
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
    **dict.fromkeys(("dta", "sav", "zsav", "xpt"), ("encoding", "missing_reasons")),
    "sas7bdat": ("encoding", "missing_reasons", "catalog"),
    "por": ("missing_reasons",),
}


@dataclass(frozen=True)
class ReadOptions(Helpful):
    """How a source is read: ``[read]`` of a plan. Options that are not given are detected.

    Parameters
    ----------
    format : str, optional
        The format of the file.
    delimiter, encoding, decimal, thousands : str, optional
        How text is written: what separates fields, the encoding, and the marks in numbers.
    missing_values : tuple of str, optional
        Texts that mean a missing value, in addition to the usual ones.
    only_missing_values : tuple of str, optional
        Texts that mean a missing value, instead of the usual ones.
    sheet : str or int, optional
        The sheet of a workbook, by name or by number from 1.
    header : bool, optional
        True if the first line holds column names, whatever they look like.
    skip_lines : int, optional
        The number of lines above the names.
    date_formats : mapping of str, optional
        The date format of each column, such as ``"%d.%m.%Y"``; ``"*"`` stands for all columns that
        fit it.
    missing_reasons : {"kept", "dropped"}, optional
        For a file of Stata, SPSS or SAS: whether the declared reasons for missing values become
        columns of their own (by default), or all missing values are alike.
    catalog : str, optional
        For a SAS file: the catalog (``.sas7bcat``) that has the labels of its values.
    metadata : str, optional
        The metadata file that describes the table (Frictionless, CSVW or DDI-Codebook), or
        ``"none"`` to ignore one that lies next to the table.
    columns : mapping of str, optional
        The columns of the source when the options were written, with their kinds. They do not
        change how the source is read, but reveal that it is a different one.
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
    missing_reasons: str | None = None
    catalog: str | None = None
    metadata: str | None = None
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for name, (kinds, words) in _VALUES.items():
            value = getattr(self, name)
            is_flag = isinstance(value, bool) and name != "sheet"
            wrong = value is not True if kinds == (bool,) else is_flag
            if value is not None and (wrong or not isinstance(value, kinds)):
                raise OptionError(f"{name!r} must be {words}; got {value!r}.")
        for name in ("missing_values", "only_missing_values"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        if isinstance(self.date_formats, str):
            object.__setattr__(self, "date_formats", {EVERY_COLUMN: self.date_formats})
        for format in (self.date_formats or {}).values():
            check_date_format(format)
        if self.format is not None:
            object.__setattr__(self, "format", check_format(self.format))
        if self.missing_reasons not in (None, "kept", "dropped"):
            raise ReadError(
                f"'missing_reasons' must be 'kept' or 'dropped'; got {self.missing_reasons!r}."
            )
        self._check_marks()

    def _check_marks(self) -> None:
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise ReadError(f"The decimal mark must be '.' or ','; got {self.decimal!r}.")
        if self.thousands is not None and self.thousands not in THOUSANDS:
            raise ReadError(
                "The thousands separator must be a point, a comma, an apostrophe or a space; "
                f"got {self.thousands!r}."
            )
        if self.thousands is not None and self.thousands == self.decimal:
            raise ReadError(
                f"{self.decimal!r} cannot be both the decimal mark and the thousands separator. "
                "Change one of them."
            )
        if self.skip_lines is not None and self.skip_lines < 0:
            raise OptionError(f"'skip_lines' must be 0 or more; got {self.skip_lines}.")
        if self.missing_values is not None and self.only_missing_values is not None:
            raise OptionError(
                "'missing_values' and 'only_missing_values' cannot be combined. The first adds to "
                "the usual texts, the second replaces them. Pass one of them."
            )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> ReadOptions:
        """Options from plain data; ReadError for an unknown option."""
        for name in given:
            if name not in cls.__dataclass_fields__:
                known = did_you_mean(str(name), cls.__dataclass_fields__)
                raise ReadError(f"There is no option '{name}' for reading. {known}")
        return cls(**given)

    def _repr_html_(self) -> str:
        rows = ((name, str(value)) for name, value in self.to_dict().items())
        return view("How a source is read", listing(("option", "value"), rows))

    def to_dict(self) -> dict[str, Any]:
        """The given options as plain data."""
        return {name: _plain(value) for name, value in vars(self).items() if value is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """All texts that mean a missing value."""
        if self.only_missing_values is not None:
            return self.only_missing_values
        return (*DEFAULT_MISSING, *(self.missing_values or ()))

    def over(self, other: ReadOptions | None) -> ReadOptions:
        """These options, completed with those of another set."""
        if other is None:
            return self
        merged = {**other.to_dict(), **self.to_dict()}
        if self.missing_values is not None:
            merged.pop("only_missing_values", None)
        if self.only_missing_values is not None:
            merged.pop("missing_values", None)
        if merged.get("decimal") == merged.get("thousands") is not None:
            del merged["thousands" if self.thousands is None else "decimal"]
        formats = {**(other.date_formats or {}), **(self.date_formats or {})}
        return ReadOptions(**{**merged, **({"date_formats": formats} if formats else {})})

    def for_file(self, source: str | os.PathLike[str]) -> ReadOptions:
        """The options that apply to a file, because a plan may run on a copy in another format."""
        try:
            format: str | None = format_of(source)
        except ReadError:
            format = self.format
        if {format, self.format} <= {*DELIMITER_OF}:
            format = self.format  # a .csv file may hold tabs, and a .tsv file commas
        return self if format is None else self.fitting(format)

    def fitting(self, format: str) -> ReadOptions:
        """The options that apply to a format."""
        known = (*OPTIONS_OF.get(format, ()), *_OF_ALL)
        kept = {name: value for name, value in self.to_dict().items() if name in known}
        return ReadOptions(format=format, **kept)

    def without(self, names: Iterable[str]) -> ReadOptions:
        """The options without the named ones."""
        return dataclasses.replace(self, **dict.fromkeys(names))

    def check_for(self, format: str) -> None:
        """ReadError if an option does not apply to the format."""
        what = {"xlsx": "a workbook"}.get(format, f"a file of format {format}")
        allowed = OPTIONS_OF.get(format, ())
        if allowed is _OF_TEXT:
            what = "a text file"
        given = self.without(["format", *_OF_ALL]).to_dict()
        refuse_others(given, allowed, what)


def refuse_others(given: Iterable[str], allowed: Sequence[str], what: str) -> None:
    """ReadError if an option does not apply to a source."""
    odd = [name for name in given if name not in allowed]
    if odd:
        raise OptionError(
            f"The option {quoted(odd)} does not apply to {what}, whose options are "
            f"{quoted(allowed) if allowed else 'none'}."
        )


#: The types of each option, and what it must be in words.
_VALUES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "format": ((str,), f"one of {quoted((*FORMATS, *ALIASES))}"),
    "delimiter": ((str,), "one character"),
    "encoding": ((str,), "the name of an encoding, such as 'cp1252'"),
    "decimal": ((str,), "'.' or ','"),
    "thousands": ((str,), "one character, such as '.'"),
    "sheet": ((str, int), "the name of a sheet, or its number from 1"),
    "header": ((bool,), "true, or left out: a table needs column names"),
    "skip_lines": ((int,), "a whole number"),
    "date_formats": (
        (Mapping, str),
        "a format such as '%d.%m.%Y', or a table of columns with their formats",
    ),
    "missing_reasons": ((str,), "'kept' or 'dropped'"),
    "catalog": ((str,), "the path of a SAS catalog"),
    "metadata": ((str,), "the path of a metadata file, or 'none'"),
    "columns": ((Mapping,), "a table of columns with their kinds"),
}


def _texts(name: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not all(isinstance(text, str) for text in given):
        raise OptionError(f"'{name}' must be a list of texts, such as ['k.A.', '-99'].")
    return tuple(given)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Manner:
    """How a source was read: the given options and what was detected.

    With ``options``, it is read in the same way again. ``notes`` report what was detected and what
    could not be. ``described`` is what a metadata file says about single columns.
    """

    options: ReadOptions = ReadOptions()
    marked: bool = False
    sheets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    described: Mapping[str, DescribedColumn] = dataclasses.field(default_factory=dict)

    def dialect(self, format: str) -> Dialect:
        """The dialect that writes a text file like the source, as far as possible."""
        source, usual = self.options, Dialect(DELIMITER_OF[format])
        if source.format not in DELIMITER_OF:
            return usual
        alike = source.format == format and source.delimiter in DELIMITERS
        delimiter = str(source.delimiter) if alike else usual.delimiter
        decimal = "," if source.decimal == "," and delimiter != "," else "."
        encoding = "utf-8" if source.encoding == "ascii" else str(source.encoding)
        if encoding not in ENCODINGS or (encoding == "utf-8" and self.marked):
            encoding = "utf-8-sig"
        return Dialect(delimiter, decimal, encoding)
