"""What each format of Stata, SPSS and SAS can hold, checked before anything is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from shoal.errors import InputError, quoted
from shoal.table.storage.labelled._read import EXACT


@dataclass(frozen=True)
class Limits:
    """The limits of one format; lengths of texts and labels are in bytes."""

    name: re.Pattern[str]
    longest_name: int
    naming: str
    longest_text: int
    longest_label: int
    longest_value_label: int = 0
    reserved: frozenset[str] = frozenset()
    by_case: bool = False
    ascii_only: bool = False
    smallest: float = 0.0
    largest: float = 8.9e307


_SPSS_WORDS: Final = frozenset("ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH".split())
_STATA_WORDS: Final = frozenset(
    "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip str strL using "
    "with".split()
)
_SPSS: Final = Limits(
    re.compile(r"[^\W\d_][\w.$#@]*(?<!\.)|@[\w.$#@]*(?<!\.)"),
    64,
    "begin with a letter, and have only letters, digits and . _ $ # @ in at most 64 bytes",
    32_767,
    256,
    120,
    _SPSS_WORDS,
)
LIMITS: Final[dict[str, Limits]] = {
    "dta": Limits(
        re.compile(r"[^\W\d]\w*"),
        32,
        "begin with a letter or _, and have only letters, digits and _ in at most 32 characters",
        2044,
        80,
        32_000,
        _STATA_WORDS,
        by_case=True,
    ),
    "sav": _SPSS,
    "zsav": _SPSS,
    "por": Limits(
        re.compile(r"[A-Za-z@][A-Za-z0-9._$#@]*(?<!\.)"),
        8,
        "begin with a letter, and have only unaccented letters, digits and . _ $ # @ in at most "
        "8 characters",
        255,
        255,
        120,
        _SPSS_WORDS,
        ascii_only=True,
    ),
    "xpt": Limits(
        re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
        32,
        "begin with a letter or _, and have only unaccented letters, digits and _ in at most 32 "
        "characters",
        32_767,
        256,
        smallest=5.4e-79,
        largest=7.2e75,
    ),
}


def check_columns(names: Sequence[str], format: str) -> None:
    """InputError if a format cannot hold columns of these names."""
    limits = LIMITS[format]
    stata = format == "dta"
    odd = [
        name
        for name in names
        if limits.name.fullmatch(name) is None
        or len(name if stata else name.encode()) > limits.longest_name
        or (name if stata else name.upper()) in limits.reserved
        or (stata and re.fullmatch(r"str\d+", name))
    ]
    if odd:
        raise InputError(
            f"The format {format} cannot hold columns of these names: {quoted(odd)}. There, names "
            f"{limits.naming}, and are not reserved words. Rename the columns, or use another "
            "format."
        )
    if limits.by_case:
        return
    counts = Counter(name.upper() for name in names)
    twins = [name for name in names if counts[name.upper()] > 1]
    if twins:
        raise InputError(
            f"The format {format} does not distinguish upper and lower case, so it cannot hold "
            f"all of these columns: {quoted(twins)}. Rename them, or use another format."
        )


def check_texts(name: str, texts: pl.Series, format: str) -> None:
    """InputError if a format would change some of these texts."""
    limits, bare = LIMITS[format], texts.alias("").drop_nulls()
    faults = {
        "are empty, which would read as missing": bare == "",
        "end in a space, which would be lost": bare.str.ends_with(" "),
        "contain a NUL character": bare.str.contains("\0", literal=True),
        f"are longer than {limits.longest_text:,} bytes": bare.str.len_bytes()
        > limits.longest_text,
    }
    if limits.ascii_only:
        faults["have letters that are not ASCII"] = bare.str.contains(r"[^\x20-\x7e]")
    for fault, marked in faults.items():
        count = int(marked.sum())
        if count:
            raise InputError(
                f"The format {format} cannot hold column '{name}': {count:,} of its different "
                f"texts {fault}. Change the texts, or use another format."
            )


def check_numbers(name: str, numbers: pl.Series, format: str) -> None:
    """InputError if a format would change some of these numbers."""
    limits = LIMITS[format]
    if numbers.dtype.is_integer():
        values = numbers.alias("").drop_nulls().cast(pl.Int128)  # also those of 64 bits
        beyond = int(((values > EXACT) | (values < -EXACT)).sum())
        if beyond:
            raise InputError(
                f"The format {format} cannot hold column '{name}': {beyond:,} of its whole numbers "
                "have more than 15 digits, and the last ones would change. Make the column text, "
                "or use another format."
            )
        return
    sizes = np.abs(numbers.drop_nulls().to_numpy())
    beyond = int(((sizes > limits.largest) | ((sizes > 0) & (sizes < limits.smallest))).sum())
    if beyond:
        raise InputError(
            f"The format {format} cannot hold column '{name}': {beyond:,} of its numbers are "
            "infinite, too large or too small for it. Change them, or use another format."
        )


def shortened(text: str, most: int) -> str:
    """A label of at most so many bytes, with a sign where the rest is cut off."""
    if len(text.encode()) <= most:
        return text
    return text.encode()[: most - 3].decode(errors="ignore") + "…"
