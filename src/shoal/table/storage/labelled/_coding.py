"""How masked columns become codes again: labels follow a recoding, reasons return to their cells.

An interval is not a code of the source, so each gets a new code with a label. A value that is
still a code of the source keeps it, and its label. Only labels of released values are written, and
of the codes that name a released group or interval: any other label may have been made from the
data.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Floats
from shoal.table.columns._column import Column
from shoal.table.columns._domain import ROOT, Domain, Interval
from shoal.table.columns._frames import plain_floats
from shoal.table.storage._types import as_recorded
from shoal.table.storage.labelled._dictionary import (
    FAMILY,
    LABELLED,
    WITH_VALUES,
    Dictionary,
    Facts,
)

#: No code is as large as this, since Stata uses the largest integers as missing values.
_CODE: Final = 2**31 - 100
#: A column with more different texts stays text; Stata holds up to 65,536 labels.
_MOST_LABELS: Final = 10_000
#: The reasons of programs that do not declare values of their own as missing.
_LETTERS: Final = {"stata": r"^\.[a-z]$", "sas": r"^\.[A-Z_]$"}


@dataclass(frozen=True)
class Coding:
    """What a reader needs to get the released table back from a labelled file.

    ``codes`` maps columns to what each code stands for, and ``reasons`` maps columns to the names
    of their reasons.
    """

    codes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The coding as plain data, as ``release.json`` has it."""
        codes = {name: {str(k): v for k, v in of.items()} for name, of in self.codes.items()}
        return {"codes": codes, "reasons": dict(self.reasons)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Coding:
        """The coding from plain data."""
        codes = {name: {int(k): v for k, v in of.items()} for name, of in given["codes"].items()}
        return cls(codes, dict(given["reasons"]))


def coding_of(columns: Sequence[Column], dictionary: Dictionary, format: str) -> Coding:
    """How these columns are coded in a format; empty for a format of another kind."""
    codes = {
        column.name: _codes_of(column, dictionary.of(column.name))
        for column in columns
        if format in WITH_VALUES
        and column.name in dictionary.facts
        and column.dtype == pl.String
        and not dictionary.of(column.name).text
        and column.codes.count <= _MOST_LABELS
    }
    reasons = {}
    if FAMILY.get(format) == dictionary.family:
        for column, after in itertools.pairwise(columns):
            facts = dictionary.of(column.name)
            if (
                dictionary.reasons.get(column.name) == after.name
                and may_join(column, codes.get(column.name), facts)
                and _are_reasons(after, facts, dictionary.family)
            ):
                reasons[column.name] = after.name
    return Coding(codes, reasons)


def _codes_of(column: Column, facts: Facts) -> dict[int, str]:
    """The code of each text: its own if the source labels its codes, else a new one."""
    texts = column.codes.texts
    kept: dict[int, str] = {}
    if facts.values:
        known = pl.Series(texts, dtype=pl.String).cast(pl.Int64, strict=False)
        own = zip(known.to_list(), texts, strict=True)
        kept = {
            code: text
            for code, text in own
            if code is not None and abs(code) < _CODE and str(code) == text
        }
    new = [text for text in _in_order(column) if text not in set(kept.values())]
    used = [*kept, *(value for value in facts.values if isinstance(value, int))]
    code = max((one for one in used if abs(one) < _CODE), default=0) + 1 if kept else 1
    for text in new:
        while code in kept or any(low <= code <= high for low, high in facts.number_ranges):
            code += 1
        kept[code] = text
    return kept


def _in_order(column: Column) -> list[str]:
    """The texts by the numbers that they stand for, * last; by their letters if by none."""
    texts = column.codes.texts
    ends = column.domain("float").ends
    low: Floats = np.arange(float(len(texts))) if ends is None else ends[:, 0]
    low = np.where(np.isnan(low), np.inf, low)
    named = np.array([text == ROOT for text in texts], np.bool_)
    return [texts[place] for place in np.lexsort((low, named)).tolist()]


def may_join(column: Column, codes: Mapping[int, str] | None, facts: Facts) -> bool:
    """Whether reasons can stand in the cells of a column without being mistaken for values."""
    if codes is not None:
        return True
    if column.dtype == pl.String:
        declared = {low for low, _ in facts.ranges}
        are_texts = bool(declared) and all(isinstance(low, str) for low in declared)
        return are_texts and declared.isdisjoint(column.codes.texts)
    if not facts.ranges:
        return True
    if not column.dtype.is_numeric():
        return False
    values = column.codes.levels.cast(pl.Float64)
    return not any(values.is_between(low, high).any() for low, high in facts.number_ranges)


def _are_reasons(reasons: Column, facts: Facts, family: str) -> bool:
    """Whether a file can declare all of these reasons: a step may have given some another name."""
    if reasons.dtype != pl.String:
        return False
    texts = reasons.codes.levels.alias("")
    if family in _LETTERS:
        return bool(texts.str.contains(_LETTERS[family]).all())
    declared = texts.is_in([str(low).rstrip() for low, _ in facts.ranges if isinstance(low, str)])
    numbers = texts.cast(pl.Float64, strict=False)
    for low, high in facts.number_ranges:
        declared |= numbers.is_between(low, high).fill_null(False)
    return bool(declared.all())


def value_labels(
    column: Column, facts: Facts, codes: Mapping[int, str] | None
) -> dict[int | float | str, str]:
    """The labels of the values that a column has, and of no others."""
    if codes is not None:
        domain = column.domain("float")
        labels: dict[int | float | str, str] = {}
        for code, text in codes.items():
            label = _label_of(text, facts, domain)
            # readers refuse one label for two codes
            labels[code] = label if label not in labels.values() else text
        return labels
    there = set(column.codes.levels.to_list()) if facts.values else set()
    return {value: label for value, label in facts.values.items() if value in there}


def labels_of_texts(column: Column, facts: Facts) -> dict[str, str]:
    """The labels of the values that a column has as texts, where they have one."""
    if not facts.values:
        return {}
    if facts.text:
        labels = {text: facts.values.get(text, text) for text in column.codes.texts}
    else:
        domain = column.domain("float")
        labels = {text: _label_of(text, facts, domain) for text in column.codes.texts}
    return {text: label for text, label in labels.items() if label != text}


def _label_of(text: str, facts: Facts, domain: Domain) -> str:
    """The label of a released text: that of its code, or those of the codes it names."""
    named = _named(text, facts)
    if named is not None:
        return named
    meaning = domain.meanings.get(text)
    if isinstance(meaning, frozenset):
        parts = [_named(part, facts) for part in sorted(meaning)]
        return " or ".join(part or "" for part in parts) if all(parts) else text
    return _stretch(meaning, facts) or text if isinstance(meaning, Interval) else text


def _stretch(meaning: Interval, facts: Facts) -> str | None:
    """An interval of whole codes in the words of its first and its last one."""
    try:
        first = None if meaning.low is None else int(meaning.low) + meaning.above_low
        last = None if meaning.high is None else int(meaning.high) - meaning.below_high
    except ValueError:
        return None
    low, high = (None if end is None else facts.values.get(end) for end in (first, last))
    if first is None and high:
        return f"up to {high}"
    if last is None and low:
        return f"{low} and above"
    if first is None or last is None or not (low and high):
        return None
    return f"{low} or {high}" if last - first == 1 else f"{low} to {high}"


def _named(text: str, facts: Facts) -> str | None:
    try:
        return facts.values.get(int(text))
    except ValueError:
        return None


def losses(columns: Sequence[str], dictionary: Dictionary, format: str) -> list[str]:
    """What a format cannot hold of what the source says about its columns, in sentences."""
    if not dictionary.family:
        return []
    told = []
    valued = [name for name in columns if dictionary.of(name).values]
    if valued and format not in WITH_VALUES:
        told.append(f"The format {format} holds no labels of values, so these columns lose them")
    if format == "dta" and any(dictionary.of(name).text for name in valued):
        told.append("The format dta holds labels of numbers only, so columns of texts lose theirs")
    labelled = [name for name in columns if dictionary.of(name).label]
    if labelled and format not in LABELLED:
        told.append(f"The format {format} holds no labels of columns")
    explained = [name for name in columns if name in dictionary.reasons]
    if explained and FAMILY.get(format) != dictionary.family:
        told.append(
            f"The format {format} does not declare the reasons for missing values of this source, "
            "so they are written as columns of their own"
        )
    return told


def settled(columns: Mapping[str, Column], dictionary: Dictionary) -> list[Column]:
    """The columns that change so that each cell has either a value or a reason.

    A masked reason, ``*``, is dropped: the value is then missing without a reason. Where a reason
    stays, a masked value says nothing more and becomes missing. InputError if a step moved values
    and reasons apart.
    """
    changed = []
    for name, why in dictionary.reasons.items():
        if why not in columns:
            continue
        reasons = columns[why]
        codes = reasons.codes
        if ROOT in codes.texts:
            rows = np.arange(len(reasons))
            rows[codes.codes == codes.texts.index(ROOT)] = -1
            reasons = reasons.at(rows)
            changed.append(reasons)
        if name not in columns:
            continue
        column = columns[name]
        both = reasons.present & column.present
        if not both.any():
            continue
        texts = column.codes.texts
        masked = column.codes.codes == texts.index(ROOT) if ROOT in texts else ~both
        apart = int((both & ~masked).sum())
        if apart:
            raise InputError(
                f"A step moved the values of '{name}' away from the reasons for missing ones in "
                f"'{why}': {apart:,} rows have both. Mask the two columns together, or read the "
                "file with missing_reasons='dropped'."
            )
        changed.append(column.at(np.where(both, -1, np.arange(len(column)))))
    return changed


# -- back from the file


def in_recorded_types(
    frame: pl.DataFrame, dtypes: Mapping[str, pl.DataType], coding: Coding
) -> dict[str, pl.Series]:
    """The columns of a file in their recorded types; one whose values do not fit is left out."""
    # a portable file has its names in upper case
    cells = {column.name.upper(): column for column in reversed(frame.get_columns())}
    cells |= {column.name: column for column in frame}
    found: dict[str, pl.Series] = {}
    for name, dtype in dtypes.items():
        column = cells.get(name, cells.get(name.upper()))
        if column is not None:
            fitting = _in_type(column.alias(""), dtype, coding.codes.get(name))
            if fitting is not None:
                found[name] = plain_floats(fitting).alias(name)
    return found


def _in_type(
    cells: pl.Series, dtype: pl.DataType, codes: Mapping[int, str] | None
) -> pl.Series | None:
    if codes is not None:
        if not cells.dtype.is_numeric():
            return cells.cast(pl.String) if cells.null_count() == len(cells) else None
        text = cells.cast(pl.Int64, strict=False).replace_strict(
            dict(codes), default=None, return_dtype=pl.String
        )
        return text if text.null_count() == cells.null_count() else None
    return as_recorded(cells, dtype, _cast)


def _cast(cells: pl.Series, dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        moments = cells.cast(pl.Datetime(dtype.time_unit), strict=False)
        return moments.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    if isinstance(cells.dtype, pl.Datetime) and cells.dtype.time_zone is not None:
        cells = cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if dtype == pl.Boolean:
        odd = ~cells.drop_nulls().is_in([0, 1])
        return cells.set(cells.is_not_null(), None) if odd.any() else cells.cast(pl.Boolean)
    return cells.cast(dtype, strict=False)
