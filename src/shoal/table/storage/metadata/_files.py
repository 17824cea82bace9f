"""Which metadata file belongs to a table, and which files a release gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from shoal.errors import InputError, ReadError, quoted
from shoal.table.storage._formats import DELIMITER_OF, DELIMITERS
from shoal.table.storage.metadata import _csvw, _ddi, _frictionless
from shoal.table.storage.metadata._description import Description, Malformed

#: The word for "read without a metadata file".
NONE: Final = "none"
_LARGEST: Final = 1 << 25

#: Each standard with its module, which reads and writes its files.
_STANDARDS: Final[dict[str, Any]] = {"csvw": _csvw, "frictionless": _frictionless, "ddi": _ddi}


def name_of(standard: str, data: str) -> str:
    """The name of the metadata file of a data file."""
    names = {"frictionless": _frictionless.NAME, "ddi": _ddi.NAME}
    return names.get(standard, f"{data}{_csvw.ENDING}")


def check_standards(standards: tuple[str, ...], format: str) -> None:
    """Raise InputError if a standard cannot describe a format."""
    if "csvw" in standards and format not in DELIMITER_OF:
        raise InputError(
            f"CSVW describes CSV and TSV, not {format}. Save the release as csv or tsv, or choose "
            'metadata = "frictionless" or "ddi" under [release].'
        )


def write(
    standard: str, description: Description, about: Mapping[str, str], file: Mapping[str, Any]
) -> str:
    """The text of a metadata file."""
    text: str = _STANDARDS[standard].write(description, about, file)
    return text


def description_of(path: Path, given: str | None) -> Description | None:
    """What the given metadata file, or one next to the table, says about the table."""
    if given == NONE:
        return None
    if given is None:
        return _found(path)
    file = Path(given)
    if not file.is_file():
        raise ReadError(f"There is no metadata file '{file}'. Check its name.")
    text = _text(file)
    standard = "ddi" if text.lstrip("\ufeff \n\r\t").startswith("<") else "frictionless"
    if standard != "ddi" and ('"tableSchema"' in text or "ns/csvw" in text):
        standard = "csvw"
    found = _described(standard, text, file.name, path.name)
    if found is None:
        raise ReadError(
            f"The metadata file '{file.name}' describes other files, but not '{path.name}'."
        )
    return found


def _found(path: Path) -> Description | None:
    """What the first of the metadata files next to a table says, if one describes it."""
    for standard in _STANDARDS:
        file = path.with_name(name_of(standard, path.name))
        if file.is_file():
            found = _described(standard, _text(file), file.name, path.name)
            if found is not None:
                return found
    return None


def _described(standard: str, text: str, source: str, data: str) -> Description | None:
    """What a text says about the data file; ReadError if it is not as its standard says."""
    try:
        found: Description | None = _STANDARDS[standard].read(text, data)
        if found is None:
            return None
        counted = Counter(column.name for column in found.columns)
        twice = [name for name, count in counted.items() if count > 1]
        if twice:
            raise Malformed(f"it describes {quoted(twice)} twice")
        if found.delimiter is not None and found.delimiter not in DELIMITERS:
            raise Malformed(f"its delimiter is not one of {quoted(DELIMITERS)}")
    except Malformed as cause:
        raise ReadError(f"The metadata file '{source}' cannot be used: {cause}.") from None
    return replace(found, source=source)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > _LARGEST:
            raise ReadError(f"The metadata file '{file.name}' has more than {_LARGEST >> 20} MiB.")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ReadError(
            f"The metadata file '{file.name}' cannot be read as a UTF-8 text file."
        ) from None
