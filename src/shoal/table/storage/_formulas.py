"""Texts that a spreadsheet would run as formulas, and the apostrophe that makes them texts again.

A spreadsheet runs a field of a text file that begins with =, +, - or @ (OWASP, CSV injection;
CWE-1236). An apostrophe before it prevents that. A field is also cut where the reader expects
another delimiter, so what follows a semicolon, a tab or a line end inside a text gets one too. A
text that is a signed number, such as -5 or +49 170, has nothing to run and stays as it is.

Nothing is lost: texts that already have apostrophes there get one more, so two different texts
stay different, and :func:`restored` gives back what was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
import polars as pl

#: What is done with texts that a spreadsheet would run.
Formulas = Literal["neutralise", "keep"]

_CELL: Final = r"(^|[;\t\r\n])"  # where some reader begins a cell
_BLANKS: Final = r'[\s"\x{feff}&&[^\t\r\n]]*'  # what some readers take off first
_SIGN: Final = r"[=+\-@＝＋－＠]"
_BREAK: Final = r"[\t\r\n]"  # taken off too, where a field begins with it
_DIGITS: Final = r"(?:[0-9]+(?:[ .,'\x{a0}\x{202f}][0-9]+)*[.,]?|[.,][0-9]+)"
_NUMBER: Final = rf"[+\-](?:[+\-]*|\s?{_DIGITS}(?:[eE][+\-]?[0-9]+)?\s?%?)"
_NUMBER_CELL: Final = rf"{_CELL}('*{_BLANKS}{_NUMBER}{_BLANKS}(?:$|[;\t\r\n]))"
_MARK: Final = "\0"  # in no text that a text file can hold


def running(column: pl.Series) -> pl.Series:
    """Where a text would run as a formula."""
    if not may_run([column]):
        if not column.null_count():
            return pl.Series(column.name, np.zeros(len(column), np.bool_))
        return column.is_null().replace_strict({False: False, True: None})
    runs = _marked(column).str.contains(f"{_CELL}{_BLANKS}{_SIGN}")
    return runs | column.str.contains(f"^{_BREAK}")


def neutralised(column: pl.Series) -> pl.Series:
    """The texts with an apostrophe before each part that would run."""
    if not may_run([column]):
        return column
    begun = column.str.replace(f"^('*{_BREAK})", "'${1}")
    return _unmarked(_marked(begun).str.replace_all(f"{_CELL}('*{_BLANKS}{_SIGN})", "${1}'${2}"))


def restored(column: pl.Series) -> pl.Series:
    """The texts that :func:`neutralised` was given."""
    if not may_run([column]):
        return column
    found = _marked(column).str.replace_all(f"{_CELL}'('*{_BLANKS}{_SIGN})", "${1}${2}")
    return _unmarked(found).str.replace(f"^'('*{_BREAK})", "${1}")


def may_run(columns: Iterable[pl.Series]) -> bool:
    """Whether any text begins a cell with a sign, after apostrophes or not; most do not.

    To ask for many columns at once takes hardly longer than for one.
    """
    texts = [column.alias("") for column in columns]
    if not texts:
        return False
    begun = pl.concat(texts, rechunk=False).str.contains(f"{_CELL}'*{_BLANKS}{_SIGN}|^'*{_BREAK}")
    return bool(begun.any())


def _marked(column: pl.Series) -> pl.Series:
    """With a mark before each number, so that it is not taken for the beginning of a formula."""
    # two numbers side by side share the delimiter between them: each time every other is found
    once = column.str.replace_all(_NUMBER_CELL, f"${{1}}{_MARK}${{2}}")
    return once.str.replace_all(_NUMBER_CELL, f"${{1}}{_MARK}${{2}}")


def _unmarked(column: pl.Series) -> pl.Series:
    return column.str.replace_all(_MARK, "", literal=True)
