"""Whether the first line holds column names, or the first record of a file without names.

Column names are released unchanged, so a record that is mistaken for names would be published. A
field of the first line is suspicious if it could be a value of its column: a number above numbers,
a date above dates, an e-mail address above others, a code without letters above such codes. One
such field is enough to refuse the file. A text that is also a value of its column is suspicious
only if no column of numbers or dates has a word as its name, and if this is true of at least half
of the text columns with repeated values, because real tables name columns after one of their
answers. Real tables also have years as names; those pass unless the column holds years or all names
are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

import polars as pl

from shoal.errors import ReadError
from shoal.table.columns import _frames
from shoal.table.columns._column import Column

_FIRST_YEAR, _LAST_YEAR = 1800, 2199
_YEAR: Final = r"^(?:1[89]|2[01])[0-9]{2}(?:[-/](?:[0-9]{2}|[0-9]{4}))?$"  # and 2019/20
_NUMBER: Final = r"^[+-]?(?:[0-9][0-9 .,']*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?$"
_MOMENT: Final = r"^[0-9]{1,4}[-./:][0-9]{1,2}(?:[-./:][0-9]{1,4})?(?:[ T].*)?$"
_EMAIL: Final = r"^\s*[^@\s]+@[^@\s]+\.[^@\s]+\s*$"
_LETTER: Final = r"\p{L}"
_MOST_TITLES: Final = 20


#: Raise ReadError unless the names of a source are valid and all different.
check_names: Final = partial(
    _frames.check_names,
    error=ReadError,
    remedy="It may be an exported index, or a title may stand above the names. Name every column, "
    "remove unnamed ones, or skip lines above the names with skip_lines=.",
)


def title_rows(rows: Sequence[Sequence[str | None]]) -> int:
    """How many rows above the names are titles, or 0 if this is not clear.

    A title is alone in its row. All rows below it have as many cells as there are names. There are
    at least three names, all different, and at least one is a word above numbers or dates.
    Otherwise a record could be mistaken for the names.
    """
    first = next((at for at, row in enumerate(rows) if len(_filled(row)) > 1), 0)
    if not 0 < first <= _MOST_TITLES or len(rows) < first + 2:
        return 0
    names, body = rows[first], rows[first + 1 :]
    named = _filled(names)
    fitting = named == [*names[: len(named)]] and all(len(row) == len(names) for row in body)
    if not fitting or len(named) < 3 or len(set(named)) < len(named):
        return 0
    return first if any(map(_heads_numbers, names, zip(*body, strict=True))) else 0


def _filled(row: Sequence[str | None]) -> list[str]:
    return [cell for cell in row if cell and cell.strip()]


def _heads_numbers(name: str | None, cells: Sequence[str | None]) -> bool:
    present = [cell.strip() for cell in _filled(cells)]
    if name is None or not _is_word(name) or not present:
        return False
    return all(re.match(_NUMBER, cell) or re.match(_MOMENT, cell) for cell in present)


def check_header(names: Sequence[str | None], columns: Sequence[Column], called: str) -> None:
    """ReadError if the names look like a record."""
    given = [name for name in names if name is not None]
    if given and all(re.match(_NUMBER, name.strip()) for name in given):
        suspicious = len(given)
    else:
        held = zip(names, map(_values, columns), strict=True)
        pairs = [(name, values) for name, values in held if name is not None and len(values)]
        values = {at for at, pair in enumerate(pairs) if _is_value(*pair)}
        repeated = {at for at, pair in enumerate(pairs) if _repeats(*pair)}
        words = any(held.dtype != pl.String and _is_word(name) for name, held in pairs)
        # only a text column that holds a value twice could repeat one in a record above it
        texts = sum(
            column.dtype == pl.String and column.distinct < len(column) - column.missing_count
            for column in columns
        )
        many = not words and 2 * len(repeated) >= texts
        suspicious = len(values | repeated) if values or many else 0
    if suspicious:
        raise ReadError(
            f"{called} looks like a record, not like column names ({suspicious} of {len(names)} "
            "fields are numbers, dates, e-mail addresses or repeat a value of their column). Add a "
            "line of names. If these are names, use header=True."
        )


def _is_word(name: str) -> bool:
    """Whether a name cannot be a number, a date, a boolean or a missing value."""
    bare = name.strip().lower()
    letters = any(map(str.isalpha, bare))
    return letters and bare not in ("true", "false", "na", "n/a", "nan", "null", "none")


def _values(column: Column) -> pl.Series:
    """The values of a column, without a name, which polars could read as a pattern."""
    values = column.codes.levels if column.is_coded else column.series
    values = values.alias("")
    return values.drop_nulls() if values.null_count() else values


def _repeats(name: str, values: pl.Series) -> bool:
    """Whether a text column holds its own name and other values; a checkbox holds only its name."""
    if values.dtype != pl.String:
        return False
    same = values == name
    return bool(same.any()) and not bool(same.all())


def _is_value(name: str, column: pl.Series) -> bool:
    """Whether a name has the form of the values of its column, and so may be a value."""
    bare, dtype = name.strip(), column.dtype
    if dtype == pl.Boolean:
        return bare.lower() in ("true", "false")
    if dtype.is_temporal():
        return re.match(_MOMENT, bare) is not None
    if dtype.is_numeric():
        if re.match(_YEAR, bare):
            return bool(column.is_between(_FIRST_YEAR, _LAST_YEAR).all())
        return re.match(_NUMBER, bare) is not None
    return _is_code(bare, column)


def _is_code(bare: str, column: pl.Series) -> bool:
    if re.match(_YEAR, bare):
        return bool(column.str.contains(_YEAR).all())
    if re.match(_EMAIL, bare):
        return bool(column.str.contains(_EMAIL).any())
    code = any(map(str.isdigit, bare)) and not any(map(str.isalpha, bare))
    return code and not bool(column.str.contains(_LETTER).any())
