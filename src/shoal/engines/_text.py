"""A file of text for an engine: its delimiter, and the types that its first records have."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import ReadError
from shoal.table import read
from shoal.table.storage._delimited import DEFAULT_MISSING

_FIRST = 20_000
_DELIMITERS = ",;\t|"
_TYPES = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}


@dataclass(frozen=True)
class TextHead:
    """How a file of text is written."""

    delimiter: str
    missing: tuple[str, ...] = DEFAULT_MISSING


def typed_columns(path: Path, scratch: Path) -> tuple[TextHead, dict[str, str | None]]:
    """The type of each column by the first records, as SQL has it; None for text."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = file.readline()
            delimiter = max(_DELIMITERS, key=header.count)
            file.seek(0)
            rows = list(itertools.islice(csv.reader(file, delimiter=delimiter), _FIRST))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ReadError(
            f"'{path.name}' cannot be read as CSV in UTF-8; convert it to Parquet, or use the "
            "engine 'memory'."
        ) from None
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    head = scratch / "head.csv"
    head.write_text(written.getvalue(), encoding="utf-8")
    try:
        table = read(head)
    finally:
        head.unlink()
    return TextHead(delimiter), {name: _TYPES.get(table.kind(name)) for name in table.columns}
