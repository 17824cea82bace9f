"""What Mondrian releases of an ordered column: intervals between cuts, which quote nobody.

A box ends at the cuts around it, and where it was never cut, or lies far from its cuts, at a round
number beyond its own records, of a step of at least half of their width. The ends of all boxes
are values that nobody or several records have, and the box of the lowest or the highest record of
the table is open on that side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.masking.generalization._boxes import Spans, one_over_width
from shoal.masking.generalization._recoding import TOP, Scale
from shoal.masking.generalization._serving import middles
from shoal.table import (
    Codes,
    Domain,
    RoundEnds,
    interval_meanings,
    interval_text,
    quantities,
    scale_name,
    value_meanings,
)

#: How many steps of the values a cut that cannot be told is blurred by.
_FAR = 10
#: Points of a line, and where there is one; elsewhere an interval is open.
Ends = tuple[npt.NDArray[Any], Flags]


def ordered_spans(
    column: Codes, records: Integers, reach: npt.NDArray[np.integer[Any]]
) -> tuple[Spans, Domain]:
    """The released stretches of a column, and what their texts stand for.

    Parameters
    ----------
    column : Codes
        The column, of which ``records`` have each code.
    reach : numpy.ndarray
        A row per stretch: its lowest and its highest code, the codes beside the cut below it and
        those beside the cut above it; -1 where there is no cut.
    """
    first, last = reach[:, 0].astype(np.int64), reach[:, 1].astype(np.int64)
    levels = len(column.levels)
    numbers = quantities(column)
    silent = last >= levels  # missing values, alone or among others
    single = (first == last) & (silent | (np.append(records, 0)[first] > 1))
    ends, low, high = _told_ends(column, records, reach, np.flatnonzero(~silent & ~single))
    values, measured = [*column.texts, None], scale_name(column)
    texts = [
        values[code] if one else interval_text(start, end)
        for code, one, start, end in zip(first, single, low, high, strict=True)
    ]
    alone = value_meanings(measured, [values[code] for code in first[single]])
    domain = Domain(measured, interval_meanings(low, high, ends) | alone | {TOP: None})
    ends[single] = np.column_stack([numbers[first], numbers[last]])[single]
    ends[first == levels] = [np.inf, -np.inf]  # nothing but missing values
    scale = Scale(tuple(texts), middles(ends), numeric=True)
    inside = ends.copy()
    inside[~single, 1] = np.nextafter(ends[~single, 1], -np.inf)  # an interval is open above
    inside[np.isposinf(ends)] = np.inf
    unit = one_over_width(ends)
    spans = Spans(texts, scale, single, inside, measured, unit, gaps=silent)
    return spans, domain


def _told_ends(
    column: Codes, records: Integers, reach: npt.NDArray[np.integer[Any]], asked: Integers
) -> tuple[Floats, list[str | None], list[str | None]]:
    """Where the asked stretches begin and end, as numbers and as texts; the others are open."""
    ends = np.full((len(reach), 2), [-np.inf, np.inf])
    shown: list[list[str | None]] = [[None] * len(reach), [None] * len(reach)]
    line = RoundEnds(column, records[: len(column.levels)])
    rows = reach[asked].astype(np.int64)
    for side, place in enumerate((_below, _above) if len(asked) else ()):
        points, found = place(line, rows)
        told = line.numbers(points[found])
        if line.line.dtype.kind == "f":  # the last digits of a float may not be told
            own = line.line[rows[found, side]]
            true = told > own if side else told <= own
            found[np.flatnonzero(found)[~true]] = False
            told = told[true]
        ends[asked[found], side] = told
        for at, text in zip(asked[found], line.texts(points[found]), strict=True):
            shown[side][at] = text
    return ends, shown[0], shown[1]


def _below(line: RoundEnds, rows: Integers) -> Ends:
    """Where each stretch begins: at the cut below it, or nearer at a round number."""
    first, last = line.line[rows[:, 0]], line.line[rows[:, 1]]
    points, found = _cuts(line, rows[:, 2], rows[:, 3], below=True)
    near, rounds = line.down(first, last / 2 - first / 2)
    better = rounds & (rows[:, 0] > 0) & (rows[:, 0] < rows[:, 1]) & (~found | (near > points))
    return np.where(better, near, points), found | better


def _above(line: RoundEnds, rows: Integers) -> Ends:
    """Where each stretch ends: at the cut above it, or nearer at a round number."""
    first, last = line.line[rows[:, 0]], line.line[rows[:, 1]]
    points, found = _cuts(line, rows[:, 4], rows[:, 5], below=False)
    near, rounds = line.up(last, last / 2 - first / 2)
    inner = (rows[:, 1] < len(line.line) - 1) & (rows[:, 0] < rows[:, 1])
    better = rounds & inner & (~found | (near < points))
    return np.where(better, near, points), found | better


def _cuts(line: RoundEnds, low: Integers, high: Integers, *, below: bool) -> Ends:
    """The points of cuts between two codes, as the ends of what lies above or below them.

    Where every value in between is somebody's, both sides end at a rounder point beyond the cut,
    so that they overlap and do not say where it is, or stay open. Only where no cut of the column
    has a point, as in a column of ranks, are the cuts themselves told.
    """
    cut = (low >= 0) & (high < len(line.line))  # what is above all values is missing
    ends = line.line[np.where(cut, low, 0)], line.line[np.where(cut, high, 0)]
    points, found = line.between(*ends)
    lost = np.flatnonzero(cut & ~found)
    least = np.full(len(lost), _FAR * line.unit)
    beyond, there = line.down(ends[1][lost], least) if below else line.up(ends[0][lost], least)
    there &= (beyond > line.line[0]) & (beyond <= line.line[-1])
    points[lost], found[lost] = beyond, there
    if len(lost) and not (found & cut).any():
        points[lost], found[lost] = line.beside(ends[1][lost])
    return points, found & cut
