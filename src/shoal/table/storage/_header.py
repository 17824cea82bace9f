"""Whether the first line holds the names of the columns, or the first record of a file without any.

Column names reach a release as they are, so a record that is taken for them would be published. A
field of the first line is suspicious if it could stand in its column: a number above numbers, a
date above dates, an e-mail address above others, a code without letters above such codes. One such
field is enough to refuse the file. A text that its column holds too is suspicious only if no number
or date has a word above it, and if half of the text columns with repeated values are like that:
real tables name a column by one of its answers. They also name columns by years, which pass unless
years stand under them or all names are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import polars as pl

from shoal.errors import ReadError

_FIRST_YEAR, _LAST_YEAR = 1800, 2199
_YEAR: Final = r"^(?:1[89]|2[01])[0-9]{2}(?:[-/](?:[0-9]{2}|[0-9]{4}))?$"  # and 2019/20
_NUMBER: Final = r"^[+-]?(?:[0-9][0-9 .,']*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?$"
_MOMENT: Final = r"^[0-9]{1,4}[-./:][0-9]{1,2}(?:[-./:][0-9]{1,4})?(?:[ T].*)?$"
_EMAIL: Final = r"^\s*[^@\s]+@[^@\s]+\.[^@\s]+\s*$"
_LETTER: Final = r"\p{L}"


def check_header(names: Sequence[str | None], columns: Sequence[pl.Series], called: str) -> None:
    """ReadError if the names look like a record.

    Parameters
    ----------
    names : sequence of str
        The fields of the first line; None where a cell is empty.
    columns : sequence of polars.Series
        What stands under each of them, in its type, and called by nothing that polars would read
        as a pattern.
    called : str
        The first line in the error, such as ``The first line of 'people.csv'``.
    """
    given = [name for name in names if name is not None]
    if given and all(re.match(_NUMBER, name.strip()) for name in given):
        suspicious = len(given)
    else:
        pairs = [(n, c) for n, c in zip(names, columns, strict=True) if n is not None and _holds(c)]
        values = {at for at, pair in enumerate(pairs) if _is_value(*pair)}
        repeated = {at for at, pair in enumerate(pairs) if _repeats(*pair)}
        words = any(column.dtype != pl.String and _is_word(name) for name, column in pairs)
        many = not words and 2 * len(repeated) >= _with_repetitions(columns)
        suspicious = len(values | repeated) if values or many else 0
    if suspicious:
        raise ReadError(
            f"{called} looks like a record, not like column names ({suspicious} of {len(names)} "
            "fields are numbers, dates, e-mail addresses or repeat a value of their column); add a "
            "line of names, or say header=True (--header) if these are names."
        )


def _is_word(name: str) -> bool:
    """Whether a name can be no number, date or boolean, nor say that one is missing."""
    bare = name.strip().lower()
    letters = any(map(str.isalpha, bare))
    return letters and bare not in ("true", "false", "na", "n/a", "nan", "null", "none")


def _holds(column: pl.Series) -> bool:
    return column.null_count() < len(column)


def _repeats(name: str, column: pl.Series) -> bool:
    """Whether a text column holds its name, and not only that, as an answer to tick does."""
    if column.dtype != pl.String:
        return False
    same = column == name
    return bool(same.any()) and not bool(same.all())


def _with_repetitions(columns: Sequence[pl.Series]) -> int:
    """How many text columns hold a value twice: only there a record would repeat one."""
    texts = (column.drop_nulls() for column in columns if column.dtype == pl.String)
    return sum(column.n_unique() < len(column) for column in texts)


def _is_value(name: str, column: pl.Series) -> bool:
    """Whether a name is of the kind that its column holds, and so may be one more value."""
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
