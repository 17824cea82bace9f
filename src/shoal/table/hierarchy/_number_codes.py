"""Codes that were read as numbers: postcodes and the codes of classifications.

A program that reads 01067 as a number keeps 1067. A code is not a quantity: what lies between two
codes means nothing, and a code and its prefix mean the same thing more coarsely. The name of a
column says whether it has codes, and the lengths of the numbers show the zeros that were lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from shoal.kernels.arrays import Integers
from shoal.table.columns._frames import kind_of
from shoal.table.suggestion._column_names import known, words_of

#: Codes of places whose states are numbered from 01, by their digits.
_DIGITS: Final = {"ags": (5, 8), "fips": (5,)}
_FEWEST: Final = 10
_SHORTEST: Final = 3
_MOST: Final = 15  # digits that a float holds


@dataclass(frozen=True)
class NumberCodes:
    """The numbers of a column as codes: the digits of a full one, and what is in doubt.

    ``are_names`` says that their digits mean nothing either: only their labels do.
    """

    pad: int | None
    are_codes: bool = True
    doubt: str | None = None
    are_names: bool = False


def says_postcode(name: str) -> bool:
    """Whether a name says that a column has postcodes."""
    words = words_of(name)
    return not known("postcodes").isdisjoint([*words, "".join(words)])


def number_codes(values: pl.Series) -> NumberCodes | None:
    """How distinct numbers, ascending, are codes; None if nothing suggests it."""
    kind = kind_of(values.dtype)
    if kind not in ("integer", "float") or not len(values):
        return None
    parts = words_of(values.name)
    words = {*parts, "".join(parts)}
    postcode, classified = bool(words & known("postcodes")), bool(words & known("classifications"))
    if not (postcode or classified or words & known("perhaps_codes")):
        return None
    whole = as_whole(values)
    if whole is None:
        lost = (
            "has numbers with a point. If they are codes such as 01.10, zeros at both ends were "
            "lost. Read the column as text"
        )
        return NumberCodes(None, False, lost) if classified or postcode else None
    if int(whole[0]) < 0:
        return None
    texts = whole.cast(pl.String)
    lengths = texts.str.len_chars().to_numpy()
    longest = int(lengths.max())
    if longest > _MOST or (longest < _SHORTEST and not postcode):
        return None
    if not (postcode or classified):
        same = len(whole) >= _FEWEST and (lengths >= longest - 1).all()
        told = (
            "has whole numbers that may be codes. They are generalized as quantities. If they are "
            "codes, give the column the hierarchy prefixes"
        )
        return NumberCodes(None, False, told) if same else None
    if postcode or (lengths == longest).all():
        return NumberCodes(longest)
    whose = any(longest in _DIGITS.get(word, ()) for word in words)
    if (whose and lengths.min() == longest - 1) or _shows_zeros(texts, lengths, longest):
        return NumberCodes(longest)
    told = (
        "has codes of different lengths, so it is not clear whether leading zeros were lost. They "
        "are generalized by their first digits, without added zeros. If zeros were lost, read the "
        "column as text, or set pad of its prefixes"
    )
    return NumberCodes(None, True, told)


def _shows_zeros(texts: pl.Series, lengths: Integers, longest: int) -> bool:
    """Whether the shorter codes lost a zero, and are not the coarser levels of the longer ones."""
    full = lengths == longest
    if 2 * int(full.sum()) < len(texts) or longest - int(lengths.min()) > 2:
        return False
    whole = texts.filter(pl.Series(full))
    above = {text for cut in (1, 2) for text in whole.str.slice(0, longest - cut).to_list()}
    short = texts.filter(pl.Series(~full))
    return 2 * int(short.is_in(list(above)).sum()) <= len(short)


def as_whole(values: pl.Series) -> pl.Series | None:
    """Whole numbers as integers, also if missing values made them floats; None for others."""
    if kind_of(values.dtype) == "integer":
        return values
    numbers = values.cast(pl.Float64)
    if not (numbers.is_finite() & (numbers == numbers.round()) & (numbers.abs() < 1e15)).all():
        return None
    return numbers.cast(pl.Int64)
