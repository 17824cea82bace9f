"""The file formats that Shoal reads and writes, and how a name tells them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shoal.errors import InputError, ReadError, did_you_mean, quoted

#: Format → the endings of the file names that it goes by; the first is the one that is written.
FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc", ".arrows"),
    "xlsx": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
}

#: The formats that are text in lines, and what stands between their fields.
DELIMITER_OF: Final[dict[str, str]] = {"csv": ",", "tsv": "\t"}

#: What may stand between the fields of a text that is written.
DELIMITERS: Final = (",", ";", "\t", "|")

#: The encodings that text is written in.
ENCODINGS: Final = (
    *("utf-8", "utf-8-sig", "utf-16", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1257"),
    *("iso8859-1", "iso8859-2", "iso8859-15"),
)

#: Endings of compressed text files; what comes before them tells the format.
COMPRESSIONS: Final[dict[str, str]] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

#: Other names of formats.
ALIASES: Final[dict[str, str]] = {"feather": "arrow", "ipc": "arrow", "excel": "xlsx"}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file stands for."""
    name = Path(path).name.lower()
    stem = name
    for ending in COMPRESSIONS:
        stem = stem.removesuffix(ending)
    for format_name, endings in FORMATS.items():
        if stem.endswith(endings) and (stem == name or format_name in ("csv", "tsv")):
            return format_name
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise ReadError(
        f"The name '{os.fspath(path)}' does not tell a format that Shoal knows; "
        f"known endings are {known} (text also with .gz, .zst or .bz2), "
        f"or say it with format=, one of {quoted(FORMATS)}."
    )


def check_format(name: str) -> str:
    """The format by its name or an alias, else InputError with the nearest."""
    known = ALIASES.get(name, name)
    if known not in FORMATS:
        raise InputError(f"There is no format '{name}'. {did_you_mean(name, FORMATS)}")
    return known


@dataclass(frozen=True)
class Dialect:
    """How text is written: between fields, in numbers, and in which encoding."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name, known in (("delimiter", DELIMITERS), ("encoding", ENCODINGS)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"A release cannot be written with the {name} {getattr(self, name)!r}; known "
                    f"are {quoted(map(repr, known), limit=20)}."
                )
        if self.decimal not in (".", ",") or self.decimal == self.delimiter:
            raise InputError(
                f"A release cannot be written with the decimal mark {self.decimal!r} and with "
                f"{self.delimiter!r} between fields; take '.' or ',', and something else between "
                "fields."
            )
