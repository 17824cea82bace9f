"""What released texts mean: which values of a column each of them stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table._encode import Codes
from shoal.table._frames import kind_of
from shoal.table._released_texts import end_of, interval_of, members_of, moment_of
from shoal.table.hierarchy._dates import UNITS, Dates
from shoal.table.hierarchy._prefixes import Prefixes
from shoal.table.hierarchy._rule import ROOT, Rung, bounds_of_values
from shoal.table.storage._types import as_text

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


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


def read_labels(texts: Sequence[str], column: Codes) -> tuple[Runs, Integers]:
    """The codes of a column that each text stands for, and the texts that cannot be read.

    A text is the value itself, ``*``, an interval or a set as Shoal and others write them, a unit
    of the calendar, or a prefix. Units and prefixes are made again from the values by the rules
    that make them in a hierarchy, and compared: no text is taken for what no value gives.

    Examples
    --------
    >>> from shoal.table._encode import encode
    >>> runs, unread = read_labels(["[20, 40)", "*", "young"], encode(pl.Series([23, 38, 41])))
    >>> runs.labels.tolist(), runs.low.tolist(), runs.high.tolist(), unread.tolist()
    ([0, 1], [0, 0], [1, 2], [2])
    """
    values = column.levels
    found: list[Runs] = []
    left = np.arange(len(texts), dtype=np.int64)
    for reader in (_itself, _root, _interval, _calendar, _prefix, _set):
        if len(left) == 0:
            break
        runs, read = reader([texts[at] for at in left.tolist()], values)
        found.append(Runs(left[runs.labels], runs.low, runs.high))
        left = left[~read]
    nothing = np.zeros(0, np.int64)
    return Runs.joined([*found, Runs(nothing, nothing, nothing)]), left


Reading = tuple[Runs, npt.NDArray[np.bool_]]


def _members(texts: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Reading:
    read = np.zeros(len(texts), np.bool_)
    read[[label for label, _ in pairs]] = True
    labels, codes = zip(*pairs, strict=True) if pairs else ((), ())
    return Runs.of_members(labels, codes), read


def _codes_by_text(values: pl.Series) -> dict[str, int]:
    """The code of each value by the texts that it may be written as."""
    written = [as_text(values).to_list()]
    if not isinstance(values.dtype, (pl.String, pl.Categorical, pl.Enum)):
        written.append(Codes(np.zeros(0, np.uint8), values).texts)
    return {text: code for texts in written for code, text in enumerate(texts)}


def _itself(texts: Sequence[str], values: pl.Series) -> Reading:
    known = _codes_by_text(values)
    return _members(texts, [(at, known[text]) for at, text in enumerate(texts) if text in known])


def _root(texts: Sequence[str], values: pl.Series) -> Reading:
    roots = np.array([text == ROOT for text in texts])
    labels = np.flatnonzero(roots) if len(values) else np.zeros(0, np.int64)
    return Runs(labels, np.zeros_like(labels), np.full_like(labels, len(values) - 1)), roots


def _interval(texts: Sequence[str], values: pl.Series) -> Reading:
    """Ends that are values of the column are found as such, others are read as what it holds."""
    quantities = bounds_of_values(values)
    if quantities is None:
        return _members(texts, [])
    line, known, kind = quantities[:, 0], _codes_by_text(values), kind_of(values.dtype)
    of_numbers = kind in ("integer", "float")
    read, stretches = np.zeros(len(texts), np.bool_), []
    for at, text in enumerate(texts):
        found = interval_of(text, of_numbers=of_numbers)
        if found is None:
            continue
        low = _first_code(found.low, kind, known, line, after=found.above_low)
        high = _first_code(found.high, kind, known, line, after=not found.below_high)
        if low is None or high is None:
            continue
        read[at] = True
        if low < high:
            stretches.append((at, low, high - 1))
    columns = np.array(stretches, np.int64).reshape(-1, 3).T
    return Runs(*columns), read


def _first_code(
    end: str | None, kind: str, known: dict[str, int], line: Floats, *, after: bool
) -> int | None:
    """The first code that is not below an end, or that is above it; None where it is no end."""
    if end is None:
        return len(line) if after else 0
    if end in known:
        return known[end] + after
    number = None if kind in ("integer", "float") else moment_of(end, kind)
    number = end_of(end) if number is None else number
    if number is None:
        return None
    return int(np.searchsorted(line, number, side="right" if after else "left"))


def _calendar(texts: Sequence[str], values: pl.Series) -> Reading:
    kind = kind_of(values.dtype)
    if kind not in ("date", "datetime", "time"):
        return _members(texts, [])
    units = ("minute", "hour") if kind == "time" else UNITS
    rungs = [rung for unit in units for rung in Dates((unit,)).rungs(values, "refuse")]
    # an hour is written like its first minute: one unit for all texts says which is meant
    alone = [rung for rung in rungs if set(texts) <= set(rung.labels)]
    return _by_rungs(texts, alone[-1:] or rungs)


def _prefix(texts: Sequence[str], values: pl.Series) -> Reading:
    kind = kind_of(values.dtype)
    masked = [text for text in texts if text.endswith(ROOT)]
    if kind not in ("text", "integer") or not masked:
        return _members(texts, [])
    lengths = sorted({len(text.rstrip(ROOT)) for text in masked} - {0}, reverse=True)
    pads: list[int | None] = [None]
    if kind == "integer":  # codes that had lost leading zeros
        pads += sorted({len(text) for text in masked})
    rungs = [
        rung
        for pad in pads
        for rung in (Prefixes(tuple(lengths), pad).rungs(values, "refuse") if lengths else [])
    ]
    return _by_rungs(texts, rungs)


def _by_rungs(texts: Sequence[str], rungs: Sequence[Rung]) -> Reading:
    """Texts that are labels of a level: the values under the label. The first level has it."""
    pairs: list[tuple[int, int]] = []
    left = {text: at for at, text in enumerate(texts)}
    for rung in rungs:
        here = {node: left.pop(text) for node, text in enumerate(rung.labels) if text in left}
        under = np.flatnonzero(np.isin(rung.nodes, list(here)))
        pairs += [(here[int(rung.nodes[code])], code) for code in under.tolist()]
    return _members(texts, pairs)


def _set(texts: Sequence[str], values: pl.Series) -> Reading:
    """``{a, b}``, where every part is a value."""
    known = _codes_by_text(values)
    pairs: list[tuple[int, int]] = []
    for at, text in enumerate(texts):
        parts = members_of(text)
        if parts and all(part in known for part in parts):
            pairs += [(at, known[part]) for part in parts]
    return _members(texts, pairs)
