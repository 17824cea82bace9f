"""The file formats that Shoal reads and writes, and the file names they use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shoal.errors import InputError, ReadError, did_you_mean, quoted

#: Format → its file name extensions; the first one is used for writing.
FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc", ".arrows"),
    "xlsx": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    "dta": (".dta",),
    "sav": (".sav",),
    "zsav": (".zsav",),
    "por": (".por",),
    "xpt": (".xpt", ".xport"),
}
#: Formats that Shoal reads and cannot write, each with the format to write instead.
READ_ONLY: Final[dict[str, str]] = {"sas7bdat": "xpt"}
_READ_ONLY_ENDINGS: Final = {"sas7bdat": (".sas7bdat",)}

#: The text formats, and the delimiter of each.
DELIMITER_OF: Final[dict[str, str]] = {"csv": ",", "tsv": "\t"}

#: The delimiters for writing text.
DELIMITERS: Final = (",", ";", "\t", "|")

#: The encodings for writing text.
ENCODINGS: Final = (
    *("utf-8", "utf-8-sig", "utf-16", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1257"),
    *("iso8859-1", "iso8859-2", "iso8859-15"),
)

#: Extensions of compressed text files; the extension before them shows the format.
COMPRESSIONS: Final[dict[str, str]] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

#: Other names of formats.
ALIASES: Final[dict[str, str]] = {
    **{"feather": "arrow", "ipc": "arrow", "excel": "xlsx"},
    **{"stata": "dta", "spss": "sav", "sas": "sas7bdat", "xport": "xpt"},
}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file shows."""
    name = Path(path).name.lower()
    stem = name
    for ending in COMPRESSIONS:
        stem = stem.removesuffix(ending)
    for format_name, endings in (FORMATS | _READ_ONLY_ENDINGS).items():
        if stem.endswith(endings) and (stem == name or format_name in ("csv", "tsv")):
            return format_name
    every = (*FORMATS.values(), *_READ_ONLY_ENDINGS.values())
    known = ", ".join(ending for endings in every for ending in endings)
    raise ReadError(
        f"The file name '{os.fspath(path)}' does not end in a known extension. "
        f"Known extensions are {known} (text also with .gz, .zst or .bz2). "
        f"Otherwise, set format= to one of {quoted((*FORMATS, *READ_ONLY))}."
    )


def check_format(name: str, *, writing: bool = False) -> str:
    """The format with this name or alias; InputError with the nearest name if there is none."""
    known = ALIASES.get(name, name)
    if known in READ_ONLY and writing:
        raise InputError(
            f"Shoal reads the format {known} but cannot write it: SAS opens only files of this "
            f"format that SAS wrote. Use '{READ_ONLY[known]}', which SAS opens, or 'sav' or 'dta', "
            "which SAS imports with labels of values."
        )
    if known not in FORMATS and known not in READ_ONLY:
        raise InputError(f"There is no format '{name}'. {did_you_mean(name, FORMATS)}")
    return known


@dataclass(frozen=True)
class Dialect:
    """How text is written: its delimiter, decimal mark and encoding."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for name, known in (("delimiter", DELIMITERS), ("encoding", ENCODINGS)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"A release cannot be written with the {name} {getattr(self, name)!r}. "
                    f"Use one of {quoted(map(repr, known), limit=20)}."
                )
        if self.decimal not in (".", ",") or self.decimal == self.delimiter:
            raise InputError(
                f"A release cannot be written with the decimal mark {self.decimal!r} and the "
                f"delimiter {self.delimiter!r}. Use '.' or ',' as decimal mark and a different "
                "delimiter."
            )
