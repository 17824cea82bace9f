"""Texts that a spreadsheet would run as formulas, and the apostrophe that prevents it.

A spreadsheet runs a field of a text file that begins with =, +, - or @ (OWASP, CSV injection;
CWE-1236). An apostrophe before it prevents that. A program that expects another delimiter splits
fields elsewhere, so the part of a text after a semicolon, a tab or a line end gets an apostrophe
too. A signed number, such as -5 or +49 170, contains nothing to run and stays unchanged.

Nothing is lost. Texts that already begin with apostrophes get one more, so different texts stay
different, and :func:`restored` returns the original.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
import polars as pl

#: What to do with texts that a spreadsheet would run.
Formulas = Literal["neutralise", "keep"]

_CELL: Final = r"(^|[;\t\r\n])"  # where a cell begins for some program
_BLANKS: Final = r'[\s"\x{feff}&&[^\t\r\n]]*'  # what some programs strip first
_SIGN: Final = r"[=+\-@＝＋－＠]"
_BREAK: Final = r"[\t\r\n]"  # stripped too, at the beginning of a field
_DIGITS: Final = r"(?:[0-9]+(?:[ .,'\x{a0}\x{202f}][0-9]+)*[.,]?|[.,][0-9]+)"
_NUMBER: Final = rf"[+\-](?:[+\-]*|\s?{_DIGITS}(?:[eE][+\-]?[0-9]+)?\s?%?)"
_NUMBER_CELL: Final = rf"{_CELL}('*{_BLANKS}{_NUMBER}{_BLANKS}(?:$|[;\t\r\n]))"
_MARK: Final = "\0"  # never occurs in a text file


def running(column: pl.Series) -> pl.Series:
    """Which texts would run as a formula."""
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
    """The texts before :func:`neutralised`."""
    if not may_run([column]):
        return column
    found = _marked(column).str.replace_all(f"{_CELL}'('*{_BLANKS}{_SIGN})", "${1}${2}")
    return _unmarked(found).str.replace(f"^'('*{_BREAK})", "${1}")


def may_run(columns: Iterable[pl.Series]) -> bool:
    """Whether any cell in any text begins with a sign, possibly after apostrophes; most do not.

    Checking many columns at once takes hardly longer than checking one.
    """
    texts = [column.alias("") for column in columns]
    if not texts:
        return False
    begun = pl.concat(texts, rechunk=False).str.contains(f"{_CELL}'*{_BLANKS}{_SIGN}|^'*{_BREAK}")
    return bool(begun.any())


def _marked(column: pl.Series) -> pl.Series:
    """The texts with a mark before each number, so that its sign does not look like a formula."""
    # two adjacent numbers share a delimiter, so each pass finds every other one
    once = column.str.replace_all(_NUMBER_CELL, f"${{1}}{_MARK}${{2}}")
    return once.str.replace_all(_NUMBER_CELL, f"${{1}}{_MARK}${{2}}")


def _unmarked(column: pl.Series) -> pl.Series:
    return column.str.replace_all(_MARK, "", literal=True)
