"""What released texts mean: which values of a column each of them stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.table.columns._domain import ROOT, Domain, Interval, Meanings
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import Kind, kind_of
from shoal.table.columns._quantities import bounds_of_values
from shoal.table.hierarchy._rule import UNITS, Dates, Prefixes, Rung
from shoal.table.storage._types import as_text


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """Stretches of codes: label ``labels[i]`` stands for the codes from low to high, inclusive."""

    labels: Integers
    low: Integers
    high: Integers

    @classmethod
    def of_members(cls, labels: npt.ArrayLike, codes: npt.ArrayLike) -> Runs:
        """The stretches of pairs of a label and one of the codes that it stands for."""
        pairs = np.unique(np.column_stack([labels, codes]).astype(np.int64), axis=0)
        breaks = (np.diff(pairs[:, 0]) != 0) | (np.diff(pairs[:, 1]) != 1)
        first = np.concatenate([[True], breaks])[: len(pairs)]
        last = np.concatenate([breaks, [True]])[-len(pairs) :] if len(pairs) else first
        return cls(pairs[first, 0], pairs[first, 1], pairs[last, 1])

    @classmethod
    def joined(cls, parts: Sequence[Runs]) -> Runs:
        """All stretches, those of a label together."""
        labels = np.concatenate([part.labels for part in parts])
        order = np.argsort(labels, kind="stable")
        low = np.concatenate([part.low for part in parts])
        high = np.concatenate([part.high for part in parts])
        return cls(labels[order], low[order], high[order])


def runs_of(domain: Domain, column: Codes) -> tuple[Runs, Integers]:
    """The codes of a column that each text stands for, and the texts that stand for none.

    A text is the value itself, ``*``, an interval or a set, a unit of the calendar, or a prefix.
    Units and prefixes are made again from the values by the rules that make them in a hierarchy,
    and compared: no text is taken for what no value gives.
    """
    values = _Values(column.levels, _named(domain.meanings))
    items = list(domain.meanings.items())
    found: list[Runs] = []
    left = np.arange(len(items), dtype=np.int64)
    for reader in (_itself, _root, _interval, _calendar, _prefix, _set):
        if len(left) == 0:
            break
        runs, read = reader(dict(items[at] for at in left.tolist()), values)
        found.append(Runs(left[runs.labels], runs.low, runs.high))
        left = left[~read]
    nothing = np.zeros(0, np.int64)
    return Runs.joined([*found, Runs(nothing, nothing, nothing)]), left


@dataclass(frozen=True, eq=False, repr=False)
class _Values:
    """The values of a column, ascending, and the texts that may name one."""

    levels: pl.Series
    names: set[str]

    @property
    def kind(self) -> Kind:
        return kind_of(self.levels.dtype)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each value that is named, by the text that it is written as."""
        found: dict[str, int] = {}
        written = [as_text(self.levels)]
        if self.levels.dtype.is_temporal():
            also = Codes(np.zeros(0, np.uint8), self.levels).texts
            written.append(pl.Series(also, dtype=pl.String))
        for texts in written:
            places = texts.is_in(self.names).arg_true()
            found |= zip(texts.gather(places).to_list(), places.to_list(), strict=True)
        return found

    @cached_property
    def line(self) -> Floats:
        quantities = bounds_of_values(self.levels)
        return np.zeros(0) if quantities is None else quantities[:, 0]

    def first_code(self, end: str | None, number: float | None, *, after: bool) -> int | None:
        """The first code that is not below an end, or that is above it; None where it is no end."""
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


Reading = tuple[Runs, Flags]


def _members(texts: Meanings, pairs: Sequence[tuple[int, int]]) -> Reading:
    read = np.zeros(len(texts), np.bool_)
    read[[label for label, _ in pairs]] = True
    labels, codes = zip(*pairs, strict=True) if pairs else ((), ())
    return Runs.of_members(labels, codes), read


def _itself(texts: Meanings, values: _Values) -> Reading:
    known = values.codes
    return _members(texts, [(at, known[text]) for at, text in enumerate(texts) if text in known])


def _root(texts: Meanings, values: _Values) -> Reading:
    roots, last = np.array([text == ROOT for text in texts]), len(values.levels) - 1
    labels = np.flatnonzero(roots) if last >= 0 else np.zeros(0, np.int64)
    return Runs(labels, np.zeros_like(labels), np.full_like(labels, last)), roots


def _interval(texts: Meanings, values: _Values) -> Reading:
    read, stretches = np.zeros(len(texts), np.bool_), []
    for at, one in enumerate(texts.values()):
        if not isinstance(one, Interval):
            continue
        low = values.first_code(one.low, one.ends[0], after=one.above_low)
        high = values.first_code(one.high, one.ends[1], after=not one.below_high)
        if low is None or high is None:
            continue
        read[at] = True
        if low < high:
            stretches.append((at, low, high - 1))
    columns = np.array(stretches, np.int64).reshape(-1, 3).T
    return Runs(*columns), read


def _calendar(texts: Meanings, values: _Values) -> Reading:
    if values.kind not in ("date", "datetime", "time"):
        return _members(texts, [])
    units = ("minute", "hour") if values.kind == "time" else UNITS
    rungs = [rung for unit in units for rung in Dates((unit,)).rungs(values.levels, "refuse")]
    # an hour is written like its first minute: one unit for all texts says which is meant
    alone = [rung for rung in rungs if set(texts) <= set(rung.labels)]
    return _by_rungs(texts, alone[-1:] or rungs)


def _prefix(texts: Meanings, values: _Values) -> Reading:
    masked = [text for text in texts if text.endswith(ROOT)]
    if values.kind not in ("text", "integer") or not masked:
        return _members(texts, [])
    lengths = sorted({len(text.rstrip(ROOT)) for text in masked} - {0}, reverse=True)
    pads: list[int | None] = [None]
    if values.kind == "integer":  # codes that had lost leading zeros
        pads += sorted({len(text) for text in masked})
    rules = [Prefixes(tuple(lengths), pad) for pad in pads] if lengths else []
    return _by_rungs(texts, [one for rule in rules for one in rule.rungs(values.levels, "refuse")])


def _by_rungs(texts: Meanings, rungs: Sequence[Rung]) -> Reading:
    """Texts that are labels of a level: the values under the label. The first level has it."""
    pairs: list[tuple[int, int]] = []
    left = {text: at for at, text in enumerate(texts)}
    for rung in rungs:
        here = {node: left.pop(text) for node, text in enumerate(rung.labels) if text in left}
        under = np.flatnonzero(np.isin(rung.nodes, list(here)))
        pairs += [(here[int(rung.nodes[code])], code) for code in under.tolist()]
    return _members(texts, pairs)


def _set(texts: Meanings, values: _Values) -> Reading:
    """``{a, b}``, where every part is a value."""
    known, pairs = values.codes, []
    for at, one in enumerate(texts.values()):
        if isinstance(one, frozenset) and all(part in known for part in one):
            pairs += [(at, known[part]) for part in one]
    return _members(texts, pairs)
