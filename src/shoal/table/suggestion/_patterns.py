"""Direct identifiers, recognized by a column's name and by the form of its values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from shoal.table.columns._column import Column
from shoal.table.columns._frames import NUMBERS, kind_of
from shoal.table.suggestion._column_names import NameHints, hints_of, title_of
from shoal.table.suggestion._value_patterns import best_pattern

By = Literal["name", "values", "name and values"]

_MOST_VALUES = 5_000
_LONGEST = 200
_CODE_LENGTH = 9
_NUMBER = re.compile(
    r"[<>=≤≥~±+-]{0,2} ?[$€£¥]? ?(?:0|[1-9][\d '’,.]*|0?[.,]\d+)"
    r"(?:e[+-]?\d+)? ?[%€$£¥k+]?",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?:[T ].*)?"
    r"|\d{1,2}[-/. ]+(?:\d{1,2}|[^\W\d_]{3,9}\.?)[-/., ]+\d{2,4}(?:[T ].*)?"
    r"|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:\d{4}|\d{6})?"
    r"|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Evidence:
    """Why a column looks like a direct identifier. It never contains a value of the column.

    Parameters
    ----------
    kind : str
        The kind of identifier, as a key: ``"email"``, ``"national_id"``, …
    title : str
        The same in words.
    by : {"name", "values", "name and values"}
        What the evidence comes from.
    share : float, optional
        The share of the distinct values that match. For ids and near-unique text: the number of
        distinct values per value that is not missing. None if the name alone is the evidence.

    Examples
    --------
    >>> print(Evidence("email", "e-mail address", "values", 0.98))
    e-mail address (98.0 % of the distinct values)
    """

    kind: str
    title: str
    by: By
    share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        if self.share is None:
            return f"{self.title} (judging by its name)"
        unique = self.kind in ("record_id", "row_number", "unique_text", "free_text")
        what = "of the values are distinct" if unique else "of the distinct values"
        return f"{self.title} ({100 * self.share:.1f} % {what})"


def looks_like_identifier(column: Column) -> Evidence | None:
    """Why a column must be declared before a release, or None if it need not be.

    The strict check before a release finds values with the form of a direct identifier (e-mail,
    phone, bank account, national number, …), a column with many distinct values and the name of
    an identifier, and text that differs in nearly every row. Numbers that are merely all
    different (amounts, measurements) pass, unless the name says that they are ids.
    """
    if column not in _EVIDENCE:
        present = len(column) - column.missing_count
        may_be = present > 0 and column.kind in ("text", *NUMBERS)
        if may_be and column.kind == "float" and not column.is_coded:
            may_be = whole_numbers(column.series)
        levels = column.codes.levels if may_be else pl.Series()
        _EVIDENCE[column] = identifier_evidence(levels, present, column.name)
    return _EVIDENCE[column]


#: The evidence of each column, kept because it is needed repeatedly and a column never changes.
_EVIDENCE: WeakKeyDictionary[Column, Evidence | None] = WeakKeyDictionary()


def identifier_evidence(
    levels: pl.Series, present: int, name: str, *, running_numbers: bool = False
) -> Evidence | None:
    """The strongest evidence that a column is a direct identifier."""
    kind = kind_of(levels.dtype)
    if len(levels) == 0 or kind not in ("text", "integer", "float"):
        return None
    if kind == "float":
        if not whole_numbers(levels):
            return None
        levels = levels.cast(pl.Int64)
    hints = hints_of(name)
    integers = kind != "text"
    values = _sample(levels)
    if not values:
        return None
    if evidence := _by_form(values, len(levels), present, integers, hints):
        return evidence
    form = "number" if integers else _form_of(values)
    if evidence := _by_name(len(levels), present, form, hints):
        return evidence
    if form == "text":
        return _by_uniqueness(values, len(levels), present, hints)
    if integers and running_numbers and not (hints.quasi or hints.sensitive or hints.weight):
        return _running_number(levels, present)
    return None


def whole_numbers(levels: pl.Series) -> bool:
    """Whether floats are really integers, as happens if a frame had missing values."""
    values = levels.cast(pl.Float64)
    return bool((values.is_between(-(2**53), 2**53) & (values == values.floor())).all())


def written_as_date(levels: pl.Series) -> bool:
    """Whether the texts of a column are dates."""
    values = _sample(levels)
    return bool(values) and _form_of(values) == "date"


def _sample(levels: pl.Series) -> list[str]:
    """Up to 5,000 distinct values as texts of bounded length; always the same ones."""
    if len(levels) > _MOST_VALUES:
        # random places, because regular steps could coincide with a regular column
        places = np.random.default_rng(0).integers(0, len(levels), _MOST_VALUES)
        levels = levels.gather(np.unique(places))
    texts = (text.strip()[:_LONGEST] for text in levels.cast(pl.String).to_list())
    return [text for text in texts if text]


def _by_form(
    values: Sequence[str], distinct: int, present: int, integers: bool, hints: NameHints
) -> Evidence | None:
    found = best_pattern(values, integers=integers, named_kinds=hints.identifiers)
    if found is None:
        return None
    pattern, share = found
    named = pattern.kind in hints.identifiers
    if not (named or pattern.certain) and distinct < min(500, 0.05 * present):
        return None  # a code with few levels identifies nobody, whatever its form
    if named and len(values) == 1 and present > 1:
        return None
    return Evidence(pattern.kind, pattern.title, "name and values" if named else "values", share)


def _by_name(distinct: int, present: int, form: str, hints: NameHints) -> Evidence | None:
    """Evidence from the name of a column that has enough distinct values to be an identifier."""
    ratio = distinct / present
    if hints.row_number and form == "number" and ratio > 0.9 and distinct > 2:
        return Evidence("row_number", title_of("row_number"), "name and values", ratio)
    names_people = form == "text" and "person_name" in hints.identifiers
    if names_people and distinct > 2 and (ratio >= 0.2 or distinct >= 500):
        return Evidence("person_name", title_of("person_name"), "name")
    if form != "date" and hints.says_id:
        many = ratio >= 0.9 if hints.coded else ratio >= 0.5 or (distinct >= 50 and ratio >= 0.05)
        if many and distinct > 2:
            return Evidence("record_id", title_of("record_id"), "name and values", ratio)
    if form == "text" and distinct > 2 and ratio >= 0.5 and hints.identifiers:
        kind = min(hints.identifiers)
        return Evidence(kind, title_of(kind), "name")
    return None


def _by_uniqueness(
    values: Sequence[str], distinct: int, present: int, hints: NameHints
) -> Evidence | None:
    ratio = distinct / present
    if distinct < 20:
        return None
    words = sorted(text.count(" ") + 1 for text in values)
    if ratio >= 0.3 and words[len(words) // 2] >= 5:
        return Evidence("free_text", title_of("free_text"), "values", ratio)
    if ratio >= 0.9 and not hints.quasi:  # places may all differ in a small table
        return Evidence("unique_text", title_of("unique_text"), "values", ratio)
    return None


def _running_number(levels: pl.Series, present: int) -> Evidence | None:
    """Evidence from numbers that all differ and either have few gaps or all the same length."""
    distinct = len(levels)
    if distinct < 50 or distinct < present:
        return None
    low, high = int(levels.min()), int(levels.max())  # type: ignore[arg-type]
    dense = high - low < 2 * distinct
    one_length = low >= 100_000 and len(str(low)) == len(str(high))
    if not (dense or one_length):
        return None
    return Evidence("record_id", title_of("record_id"), "values", distinct / present)


def _form_of(values: Sequence[str]) -> Literal["number", "date", "text"]:
    """The form that nearly all texts have: numbers, dates, or other text."""
    needed = 0.9 * len(values)
    if sum(_DATE.fullmatch(value) is not None for value in values) >= needed:
        return "date"
    if min(map(len, values)) == max(map(len, values)) >= _CODE_LENGTH and all(
        value.isdigit() for value in values
    ):
        return "text"  # many digits, always the same number of them: a code, not a quantity
    if sum(_NUMBER.fullmatch(value) is not None for value in values) >= needed:
        return "number"
    return "text"
