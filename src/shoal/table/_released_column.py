"""A released column and the persons it may be about: which values each released cell means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table._provenance import signed_codes
from shoal.table.columns._column import Column, stacked
from shoal.table.columns._domain import ROOT, Domain, Interval, Meanings
from shoal.table.columns._encode import Codes, encode
from shoal.table.columns._frames import QUANTITIES, Kind, kind_of
from shoal.table.columns._quantities import line_of
from shoal.table.hierarchy._number_codes import as_whole
from shoal.table.hierarchy._rule import UNITS, Dates, Prefixes, Rung
from shoal.table.storage._types import as_text

if TYPE_CHECKING:
    from shoal.table._table import Table


#: How released cells were read: as values, as labels of several values, through the paired records
#: that have them, or not at all.
Reading = Literal["values", "labels", "pairs", "nothing"]

#: A value halfway between two released numbers belongs to the lower one, despite rounding errors.
_HAIR = 1e-12

_TIMES = ("date", "datetime", "time", "duration")


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


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedColumn:
    """Values of persons and released cells in shared codes; -1 for missing.

    Label ``l`` covers the codes from ``low[i]`` to ``high[i]``, both included, for every ``i``
    from ``starts[l]`` to below ``starts[l + 1]``.
    """

    name: str
    values: Integers  # of each person: first those of the original, then the control persons
    labels: Integers  # the number of each released cell's text or value
    starts: Integers
    low: Integers
    high: Integers
    places: Floats  # the position of each code, in ranges of the original; 0 without an order
    ordered: bool  # whether values are numbers, dates or times
    reading: Reading
    root: int = -1  # the label ``*``, which reveals nothing

    def stands_for(self, labels: Integers, values: Integers) -> Flags:
        """Whether each label covers the matching value; missing ones never do."""
        of_run = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        span = len(self.places) + 1
        at = np.searchsorted(of_run * span + self.low, labels * span + values, side="right") - 1
        found = np.zeros(len(labels), np.bool_)
        asked = (labels >= 0) & (values >= 0) & (at >= 0)
        run = at[asked]
        found[asked] = (of_run[run] == labels[asked]) & (values[asked] <= self.high[run])
        return found

    def with_missing(self, *, wildcard: bool) -> ReleasedColumn:
        """The column with a last code for missing values and a last label for missing cells.

        A missing cell covers a missing value, and so does ``*``. With ``wildcard``, a missing cell
        covers everything, and every cell covers a missing value.
        """
        gap, last = len(self.places), len(self.starts) - 1
        of_run = np.repeat(np.arange(last), np.diff(self.starts))
        blank = np.append(np.arange(last) if wildcard else [self.root][: self.root >= 0], last)
        runs = Runs.of(
            np.append(of_run, blank.astype(np.int64)),
            np.append(self.low, np.where(blank == last, 0 if wildcard else gap, gap)),
            np.append(self.high, np.full(len(blank), gap)),
        )
        return replace(
            self,
            values=np.where(self.values < 0, gap, self.values),
            labels=np.where(self.labels < 0, last, self.labels),
            starts=np.searchsorted(runs.labels, np.arange(last + 2)),
            low=runs.low,
            high=runs.high,
            places=np.append(self.places, 0.0),
        )

    def usual_labels(self) -> Integers:
        """For each code, the most frequent label of those that cover it; -1 if there is none."""
        cells = np.bincount(self.labels[self.labels >= 0], minlength=len(self.starts) - 1)
        usual = np.full(len(self.places) + 1, -1)
        shown = np.flatnonzero(cells)
        for label in shown[np.lexsort((-shown, cells[shown]))].tolist():  # the best one last
            for run in range(self.starts[label], self.starts[label + 1]):
                usual[self.low[run] : self.high[run] + 1] = label
        usual[-1] = -1
        return usual

    def spanned(self, values: Integers) -> ReleasedColumn:
        """Let each label cover the range of its records' values, which are given by record."""
        known = (self.labels >= 0) & (values >= 0)
        labels = np.unique(self.labels[known])
        low, high = ends_of_members(self.labels[known], values[known], len(self.starts) - 1).T
        starts = np.searchsorted(labels, np.arange(len(self.starts)))
        ends = (low[labels].astype(np.int64), high[labels].astype(np.int64))
        return replace(self, starts=starts, low=ends[0], high=ends[1], reading="pairs")

    def near(self) -> ReleasedColumn:
        """Let each released number cover the values nearer to it than to any other one."""
        if not self.ordered or self.reading != "values":
            return self
        numbers = np.flatnonzero(self.low == self.high)  # without the root, whose run is longer
        shown = np.unique(self.labels[np.isin(self.labels, numbers)])
        if len(shown) == 0:
            return self
        codes = np.arange(len(self.places))
        above = np.searchsorted(shown, codes).clip(0, len(shown) - 1)
        below = (np.searchsorted(shown, codes, side="right") - 1).clip(0)
        up = self.places[shown[above]] - self.places
        down = self.places - self.places[shown[below]]
        nearest = np.where(up < down - _HAIR, above, below)
        low, high = self.low.copy(), self.high.copy()
        low[shown] = np.searchsorted(nearest, np.arange(len(shown)))
        high[shown] = np.searchsorted(nearest, np.arange(len(shown)), side="right") - 1
        return replace(self, low=low, high=high)

    def beyond(self) -> ReleasedColumn:
        """Let each number or interval cover everything at least as far out, on its side."""
        if (
            not self.ordered
            or len(self.low) != len(self.starts) - 1
            or not (self.labels >= 0).any()
        ):
            return self
        middles = (self.places[self.low] + self.places[self.high]) / 2
        upper = middles >= np.median(middles[self.labels[self.labels >= 0]])
        last = len(self.places) - 1
        whole = (self.low == 0) & (self.high == last)
        return replace(
            self,
            low=np.where(upper | whole, self.low, 0),
            high=np.where(upper & ~whole, last, self.high),
        )


def released_column(
    name: str, original: Table, masked: Table, control: Table | None = None
) -> ReleasedColumn:
    """Read the released cells of a column.

    Cells of the same kind as the original are values. Others are texts: intervals, sets, calendar
    units, prefixes and ``*``. Any other text, such as a node of a list, covers the values of the
    persons whose records have it, if rows can be paired; otherwise it covers no value.
    """
    persons, cells = original.column(name), masked.column(name)
    if control is not None:
        others = _alike(control.column(name).series, persons.series)
        persons = Column(stacked(persons.series, others))
    if cells.kind == persons.kind in _TIMES and cells.dtype != persons.dtype:
        cells = Column(cells.series.cast(persons.dtype))  # in another unit
    if cells.kind == "text" and cells.dtype != pl.String:
        cells = Column(as_text(cells.series))
    numbers = None
    if cells.kind == "text" and persons.dtype.is_numeric():
        numbers = _numbers(cells.domain(persons.kind))
    types = persons.dtype, cells.dtype
    as_they_are = types[0] == types[1] and persons.kind != "text"
    if numbers is not None or as_they_are or all(dtype.is_numeric() for dtype in types):
        return _of_values(name, persons, cells, numbers, len(original))
    return _of_labels(name, persons, cells, original, masked)


def read_labels_of(name: str, original: Table, masked: Table) -> tuple[Integers, Integers]:
    """For each person the label that covers their value, and the label of each cell; -1 if none."""
    read = released_column(name, original, masked)
    shown = np.unique(read.labels[read.labels >= 0])
    if (np.diff(read.starts)[shown] == 0).any():
        raise InputError(
            f"Column '{name}' was made coarser, but some of its released values cannot be read "
            "as intervals or sets of original values, and the rows of the two tables cannot be "
            "paired, so the released value of each person is unknown. Mask the original with "
            "Shoal or, if the rows have the same order, declare this with masked.paired(original)."
        )
    return read.usual_labels()[read.values], read.labels


def _alike(control: pl.Series, original: pl.Series) -> pl.Series:
    """The column of control persons in a type that fits the original's."""
    kinds = kind_of(original.dtype), kind_of(control.dtype)
    if original.dtype.is_numeric() and control.dtype.is_numeric():
        return control
    if kinds[0] != kinds[1]:
        raise InputError(
            f"Column '{original.name}' is {kinds[0]} in the original and {kinds[1]} in the "
            "control data. Read both in the same way."
        )
    return control if kinds[0] == "text" else control.cast(original.dtype)


def _numbers(domain: Domain) -> Floats | None:
    """Numbers that were written as text, as by a rounding hierarchy; None for other texts."""
    meanings = [one for text, one in domain.meanings.items() if text != ROOT]
    numbers = all(isinstance(one, float) and math.isfinite(one) for one in meanings)
    return domain.ends[:, 0] if meanings and numbers and domain.ends is not None else None


def _of_values(
    name: str, persons: Column, cells: Column, numbers: Floats | None, originals: int
) -> ReleasedColumn:
    shown = cells.codes.levels if numbers is None else pl.Series(numbers).fill_nan(None)
    both = encode(stacked(persons.codes.levels, shown))
    codes = np.split(signed_codes(both).astype(np.int64), [len(persons.codes.levels)])
    count = len(both.levels)
    ends = np.arange(count, dtype=np.int64)
    low, high, root = ends, ends, -1
    if numbers is not None and np.isnan(numbers).any():
        root = count
        codes[1][np.isnan(numbers)] = root
        low, high = np.append(low, 0), np.append(high, count - 1)
    values, labels = (
        np.append(known, -1)[column.codes.codes]
        for known, column in zip(codes, (persons, cells), strict=True)
    )
    starts = np.arange(len(low) + 1, dtype=np.int64)
    places, ordered = _places(both, values[:originals])
    reading: Reading = "values" if count else "nothing"
    return ReleasedColumn(name, values, labels, starts, low, high, places, ordered, reading, root)


def _of_labels(
    name: str, persons: Column, cells: Column, original: Table, masked: Table
) -> ReleasedColumn:
    if cells.kind != "text":
        cells = Column(as_text(cells.series))
    before, released = persons.codes, cells.codes
    values, labels = (signed_codes(c).astype(np.int64) for c in (before, released))
    places, ordered = _places(before, values[: len(original)])
    if not ordered and persons.kind != "text":
        before = replace(before, levels=as_text(before.levels))  # infinite: only texts compare
    texts = released.texts
    domain = Domain("text", dict.fromkeys(texts))  # texts of an unchanged column mean themselves
    if cells is not persons:
        domain = cells.domain(persons.kind if ordered or persons.kind == "boolean" else "text")
    runs, unread = runs_of(domain, before)
    plain = len(runs.labels) == len(texts) and (runs.low == runs.high).all()
    reading: Reading = "values" if plain and not ordered else "labels"
    if len(unread) and masked.pairs_with(original):
        of_record = values[masked.rows_in(original)]
        known = np.isin(labels, unread) & (of_record >= 0)
        theirs = of_record[known]  # the values of the persons whose records have a text
        low, high = np.append(runs.low, theirs), np.append(runs.high, theirs)
        runs, reading = Runs.of(np.append(runs.labels, labels[known]), low, high), "pairs"
    elif len(unread) and len(unread) >= len(texts) - (ROOT in texts):
        reading = "nothing"
    starts = np.searchsorted(runs.labels, np.arange(len(texts) + 1))
    silent = ROOT in texts and ROOT not in before.texts
    root = texts.index(ROOT) if silent else -1
    return ReleasedColumn(
        name, values, labels, starts, runs.low, runs.high, places, ordered, reading, root
    )


def _places(column: Codes, of_original: Integers) -> tuple[Floats, bool]:
    """The position of each code in ranges of the original, and whether values have an order."""
    nowhere = np.zeros(len(column.levels))
    if kind_of(column.levels.dtype) not in QUANTITIES:
        return nowhere, False
    numbers = column.numbers
    if np.isinf(numbers).any():
        return nowhere, False
    places = column.positions[: len(column.levels)]
    here = places[of_original[of_original >= 0]]
    span = float(np.ptp(here)) if len(here) else 0.0
    return (places / span if span > 0 else nowhere), True


# -- which values a text covers


def runs_of(domain: Domain, column: Codes) -> tuple[Runs, Integers]:
    """The codes of a column that each text covers, and the texts that cover none.

    A text is the value itself, ``*``, an interval or a set, a calendar unit, or a prefix. Units and
    prefixes are generated again from the values, by the rules of a hierarchy, and compared. A text
    that no value produces is therefore never misread.
    """
    meanings = domain.meanings
    values = _Levels(column.levels, _named(meanings))
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
class _Levels:
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


def _itself(texts: Meanings, values: _Levels) -> Read:
    known = values.codes
    return {text: [(known[text], known[text])] for text in texts if text in known}


def _root(texts: Meanings, values: _Levels) -> Read:
    last = len(values.levels) - 1
    return {ROOT: [(0, last)] if last >= 0 else []} if ROOT in texts else {}


def _interval(texts: Meanings, values: _Levels) -> Read:
    read: Read = {}
    for text, one in texts.items():
        if isinstance(one, Interval):
            low = values.first_code(one.low, one.ends[0], after=one.above_low)
            high = values.first_code(one.high, one.ends[1], after=not one.below_high)
            if low is not None and high is not None:
                read[text] = [(low, high - 1)] if low < high else []
    return read


def _calendar(texts: Meanings, values: _Levels) -> Read:
    if values.kind not in ("date", "datetime", "time"):
        return {}
    units = ("minute", "hour") if values.kind == "time" else UNITS
    rungs = [rung for unit in units for rung in Dates((unit,)).rungs(values.levels, "refuse")]
    # an hour is written like its first minute, so prefer a unit that fits all texts
    alone = [rung for rung in rungs if set(texts) <= set(rung.labels)]
    return _by_rungs(texts, alone[-1:] or rungs)


def _prefix(texts: Meanings, values: _Levels) -> Read:
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


def _set(texts: Meanings, values: _Levels) -> Read:
    """Texts such as ``{a, b}`` in which every part is a value."""
    known = values.codes
    sets = {text: one for text, one in texts.items() if isinstance(one, frozenset)}
    return {
        text: [(known[part], known[part]) for part in one]
        for text, one in sets.items()
        if all(part in known for part in one)
    }


def usual_partners(source: Integers, target: Integers) -> tuple[Integers, Integers]:
    """For each distinct source, in ascending order, its most frequent target."""
    if not len(source):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    least, span = int(target.min()), int(np.ptp(target)) + 1
    pairs, counts = np.unique(source * span + (target - least), return_counts=True)
    sources, targets = np.divmod(pairs, span)
    order = np.lexsort((targets, -counts, sources))
    found, first = np.unique(sources[order], return_index=True)
    return found, targets[order[first]] + least


def ends_of_members(
    labels: npt.NDArray[np.integer[Any]], values: npt.NDArray[Any], count: int
) -> Floats:
    """The lowest and highest value of the records with each of ``count`` labels."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, labels, values)
    np.maximum.at(high, labels, values)
    return np.column_stack([low, high])
