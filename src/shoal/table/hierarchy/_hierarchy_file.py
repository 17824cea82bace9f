"""Files of hierarchies: a value and its coarser labels on each line, as ARX has them."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from shoal.errors import ReadError
from shoal.table.hierarchy._rule import ROOT
from shoal.table.storage._text import load_text

#: Tried in this order: labels such as [0, 5) hold commas, few hold semicolons.
_SEPARATORS: Final = (";", "\t", "|", ",")
_LEVEL: Final = re.compile(r"(level|ebene|stufe)[ _-]*\d*|value|leaf|wert", re.IGNORECASE)


def read_rows(
    path: str | os.PathLike[str],
    *,
    separator: str | None,
    header: bool | None,
    encoding: str | None,
) -> list[list[str]]:
    """The rows of a file, without its line of names."""
    place = Path(path)
    if not place.is_file():
        raise ReadError(f"There is no hierarchy at '{place}'.")
    text = load_text(place, encoding).decoded()
    if separator is None:
        separator = next((one for one in _SEPARATORS if _cuts_all(text, one)), ";")
    elif len(separator) != 1 or separator in '"\r\n':
        raise ReadError("The separator must be one character that is not a quotation mark.")
    rows = _parsed(text, separator)
    if rows is None:
        raise ReadError(f"'{place}' cannot be parsed as lines of fields.")
    width = len(rows[0])
    wrong = sum(len(row) != width for row in rows)
    if wrong:
        raise ReadError(
            f"{wrong} of the {len(rows)} lines of the hierarchy '{place}' have another number of "
            f"fields than the first one, which has {width} with the separator {separator!r}; mend "
            "them, or give another separator=."
        )
    if all(field.startswith(" ") for row in rows for field in row[1:]):
        # "value; label; *": the blank belongs to the separator
        rows = [[row[0], *(field.strip() for field in row[1:])] for row in rows]
    named = _has_names(rows) if header is None else header
    if named and len(rows) == 1:
        raise ReadError(f"The hierarchy '{place}' has a line of names and no values.")
    return rows[1:] if named else rows


def _parsed(text: str, separator: str) -> list[list[str]] | None:
    """The fields of each line that has any; None where they cannot be told apart."""
    try:
        return [row for row in csv.reader(io.StringIO(text, ""), delimiter=separator) if row]
    except csv.Error:
        return None


def _cuts_all(text: str, separator: str) -> bool:
    """Whether a separator cuts every line into the same number of fields, two or more."""
    rows = _parsed(text, separator)
    return rows is not None and len(rows[0]) > 1 and len(set(map(len, rows))) == 1


def _has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line names the levels: its labels come nowhere else, nor does its root."""
    first, rest = rows[0], rows[1:]
    if not rest:
        return False
    if all(_LEVEL.fullmatch(name.strip()) for name in first):
        return True
    # only under a root that is plain to see: a value taken for a name would be lost
    if {row[-1] for row in rest} != {ROOT} or not any(map(str.isalpha, first[-1])):
        return False
    labels = [{row[level] for row in rest} for level in range(len(first))]
    return not any(name in known for name, known in zip(first, labels, strict=True))


def text_of(rows: Iterable[Sequence[str]], separator: str) -> str:
    """Rows as the text of a file."""
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return file.getvalue()
