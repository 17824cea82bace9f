"""Which values of a column a released text covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from shoal.kernels.arrays import Floats, Integers
from shoal.table.columns._domain import ROOT, Domain, Interval, Meanings
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import Kind, kind_of
from shoal.table.columns._quantities import line_of
from shoal.table.hierarchy._number_codes import as_whole
from shoal.table.hierarchy._rule import UNITS, Dates, Prefixes, Rung
from shoal.table.storage._types import as_text


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """Ranges of codes: label ``labels[i]`` covers the codes from low to high, both included."""

    labels: Integers
    low: Integers
    high: Integers

    @classmethod
    def of(cls, labels: Integers, low: Integers, high: Integers) -> Runs:
        """Ranges in any order, sorted by label and joined if they are adjacent."""
        order = np.lexsort((low, labels))
        labels, low, high = labels[order], low[order], high[order]
        breaks = (np.diff(labels) != 0) | (low[1:] > high[:-1] + 1)
        first, last = (np.append(*ends)[: len(labels)] for ends in ((True, breaks), (breaks, True)))
        return cls(labels[first], low[first], high[last])


def runs_of(domain: Domain, column: Codes) -> tuple[Runs, Integers]:
    """The codes of a column that each text covers, and the texts that cover none.

    A text is the value itself, ``*``, an interval or a set, a calendar unit, or a prefix. Units and
    prefixes are generated again from the values, by the rules of a hierarchy, and compared. A text
    that no value produces is therefore never misread.
    """
    meanings = domain.meanings
    values = _Values(column.levels, _named(meanings))
    left = {text: at for at, text in enumerate(meanings)}
    found: list[tuple[int, int, int]] = []
    for reader in (_itself, _root, _interval, _calendar, _prefix, _set):
        read = reader({text: meanings[text] for text in left}, values) if left else {}
        for text, stretches in read.items():
            at = left.pop(text)
            found += [(at, low, high) for low, high in stretches]
    labels, low, high = np.array(found, np.int64).reshape(-1, 3).T
    return Runs.of(labels, low, high), np.array(list(left.values()), np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _Values:
    """The values of a column, ascending, and the texts that may be one of them."""

    levels: pl.Series
    names: set[str]

    @property
    def kind(self) -> Kind:
        return kind_of(self.levels.dtype)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each value that occurs among the texts, by its text."""
        found: dict[str, int] = {}
        written = [as_text(self.levels)]
        if self.levels.dtype.is_temporal():
            also = Codes(np.zeros(0, np.uint8), self.levels).texts
            written.append(pl.Series(also, dtype=pl.String))
        zeros = {len(name) for name in self.names if name.isdecimal() and name.startswith("0")}
        if zeros and (whole := _whole(self.levels)) is not None:  # codes that were numbers
            written += [whole.cast(pl.String).str.zfill(width) for width in sorted(zeros)]
        for texts in written:
            places = texts.is_in(self.names).arg_true()
            found |= zip(texts.gather(places).to_list(), places.to_list(), strict=True)
        return found

    @cached_property
    def line(self) -> Floats:
        line = line_of(self.levels)
        return np.zeros(0) if line is None else line

    def first_code(self, end: str | None, number: float | None, *, after: bool) -> int | None:
        """The first code not below an end, or, with ``after``, above it; None if it is invalid."""
        if end is None:
            return len(self.line) if after else 0
        if end in self.codes:
            return self.codes[end] + after
        if number is None:
            return None
        return int(np.searchsorted(self.line, number, side="right" if after else "left"))


def _named(meanings: Meanings) -> set[str]:
    """The texts themselves, the ends of intervals, and the parts of sets."""
    names = set(meanings)
    for meaning in meanings.values():
        if isinstance(meaning, Interval):
            names.update(end for end in meaning[:2] if end is not None)
        elif isinstance(meaning, frozenset):
            names |= meaning
    return names


#: For each text that was read, the ranges of codes that it covers, both ends included.
Read = dict[str, list[tuple[int, int]]]


def _itself(texts: Meanings, values: _Values) -> Read:
    known = values.codes
    return {text: [(known[text], known[text])] for text in texts if text in known}


def _root(texts: Meanings, values: _Values) -> Read:
    last = len(values.levels) - 1
    return {ROOT: [(0, last)] if last >= 0 else []} if ROOT in texts else {}


def _interval(texts: Meanings, values: _Values) -> Read:
    read: Read = {}
    for text, one in texts.items():
        if isinstance(one, Interval):
            low = values.first_code(one.low, one.ends[0], after=one.above_low)
            high = values.first_code(one.high, one.ends[1], after=not one.below_high)
            if low is not None and high is not None:
                read[text] = [(low, high - 1)] if low < high else []
    return read


def _calendar(texts: Meanings, values: _Values) -> Read:
    if values.kind not in ("date", "datetime", "time"):
        return {}
    units = ("minute", "hour") if values.kind == "time" else UNITS
    rungs = [rung for unit in units for rung in Dates((unit,)).rungs(values.levels, "refuse")]
    # an hour is written like its first minute, so prefer a unit that fits all texts
    alone = [rung for rung in rungs if set(texts) <= set(rung.labels)]
    return _by_rungs(texts, alone[-1:] or rungs)


def _prefix(texts: Meanings, values: _Values) -> Read:
    masked = [text for text in texts if text.endswith(ROOT)]
    of_numbers = _whole(values.levels) is not None
    if not masked or not (of_numbers or values.kind == "text"):
        return {}
    lengths = sorted({len(text.rstrip(ROOT)) for text in masked} - {0}, reverse=True)
    pads: list[int | None] = [None]
    if of_numbers:  # codes may have lost leading zeros
        pads += sorted({len(text) for text in masked})
    rules = [Prefixes(tuple(lengths), pad) for pad in pads] if lengths else []
    one = all(text.count(ROOT) == 1 for text in masked)
    if lengths and one and values.kind == "text":  # one * may stand for several characters
        rules.insert(0, Prefixes(tuple(lengths), any_length=True))
    return _by_rungs(texts, [one for rule in rules for one in rule.rungs(values.levels, "refuse")])


def _whole(values: pl.Series) -> pl.Series | None:
    """Numbers that may be codes as integers; None for others and for other kinds."""
    return as_whole(values) if values.dtype.is_numeric() else None


def _by_rungs(texts: Meanings, rungs: Sequence[Rung]) -> Read:
    """Texts that are labels of a level, with the values under them; the first level wins."""
    read: Read = {}
    for rung in rungs:
        here = {at: one for at, one in enumerate(rung.labels) if one in texts and one not in read}
        for code in np.flatnonzero(np.isin(rung.nodes, list(here))).tolist():
            read.setdefault(here[int(rung.nodes[code])], []).append((code, code))
    return read


def _set(texts: Meanings, values: _Values) -> Read:
    """Texts such as ``{a, b}`` in which every part is a value."""
    known = values.codes
    sets = {text: one for text, one in texts.items() if isinstance(one, frozenset)}
    return {
        text: [(known[part], known[part]) for part in one]
        for text, one in sets.items()
        if all(part in known for part in one)
    }
