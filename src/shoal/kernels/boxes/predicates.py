"""Rows by what labels represent: the row that a predicate isolates, the rows that a box covers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.compile import njit

NOBODY, SEVERAL = -1, -2


class Runs(NamedTuple):
    """What labels represent: label ``l`` represents the codes from ``low[i]`` to ``high[i]``, for
    every ``i`` from ``starts[l]`` to below ``starts[l + 1]``."""

    starts: Integers
    low: Integers
    high: Integers


@njit(cache=True)
def stands_for(label: int, code: int, runs: Runs) -> bool:
    """Whether a released label represents a value; no label represents a missing value."""
    for run in range(runs.starts[label], runs.starts[label + 1]):
        if runs.low[run] <= code <= runs.high[run]:
            return True
    return False


class Indexed(NamedTuple):
    """Rows by the value that they have in each column.

    ``values[row, c]`` is the code of a row, -1 if it is missing; ``order[c]`` has the rows by
    ascending code, those with a code below ``code`` in its first ``firsts[offsets[c] + code]``.
    ``owners`` has the number of the person of each row.
    """

    values: Codes
    order: Codes
    firsts: Integers
    offsets: Integers
    owners: Integers


def indexed(values: Integers, counts: Integers, owners: Integers | None = None) -> Indexed:
    """Rows by value; column ``c`` of ``values[c, row]`` has codes below ``counts[c]``.

    Each row is a person unless ``owners`` has the person of each.
    """
    order = np.empty(values.shape, np.int32)
    firsts = []
    for codes, rows, count in zip(values, order, counts, strict=True):
        rows[:] = np.argsort(codes, kind="stable")
        firsts.append(np.searchsorted(codes[rows], np.arange(count + 1)))
    offsets = np.cumsum([0, *(len(one) for one in firsts[:-1])])
    of_rows = np.ascontiguousarray(values.T, np.int32)  # all columns of a row are read together
    begins = np.concatenate(firsts).astype(np.int64)
    owners = np.arange(values.shape[1]) if owners is None else owners.astype(np.int64)
    return Indexed(of_rows, order, begins, offsets.astype(np.int64), owners)


@njit(cache=True)
def fewest(rows: Indexed, columns: Integers, labels: Integers, runs: Runs) -> tuple[int, int]:
    """The condition that the fewest rows meet, and their number; -1 and 0 without conditions."""
    starts, low, high = runs
    best, smallest = -1, 0
    for place in range(len(columns)):
        if labels[place] < 0:
            continue
        first, count = rows.offsets[columns[place]], 0
        for run in range(starts[labels[place]], starts[labels[place] + 1]):
            count += rows.firsts[first + high[run] + 1] - rows.firsts[first + low[run]]
        if best < 0 or count < smallest:
            best, smallest = place, count
    return best, smallest


@njit(cache=True)
def rows_to_look_at(rows: Indexed, columns: Integers, labels: Integers, runs: Runs) -> Integers:
    """The most rows that :func:`isolated_rows` has to examine for each predicate."""
    looked = np.zeros(len(columns), np.int64)
    for at in range(len(columns)):
        looked[at] = fewest(rows, columns[at], labels[at], runs)[1]
    return looked


@njit(cache=True)
def holds(rows: Indexed, row: int, columns: Integers, labels: Integers, runs: Runs) -> bool:
    """Whether a row meets all conditions of a predicate."""
    for place in range(len(columns)):
        label = labels[place]
        if label >= 0 and not stands_for(label, rows.values[row, columns[place]], runs):
            return False
    return True


@njit(cache=True)
def isolated_rows(rows: Indexed, columns: Integers, labels: Integers, runs: Runs) -> Integers:
    """For each predicate, a row of the only person for whom it holds, or NOBODY, or SEVERAL.

    ``columns[p, i]`` and ``labels[p, i]`` are condition ``i`` of predicate ``p``: the label
    represents the value in that column. A label of -1 is no condition. Only the rows that meet
    the most selective condition are examined.
    """
    starts, low, high = runs
    found = np.full(len(columns), NOBODY, np.int64)
    for at in range(len(columns)):
        best = fewest(rows, columns[at], labels[at], runs)[0]
        if best < 0:
            found[at] = 0 if (rows.owners == rows.owners[0]).all() else SEVERAL
            continue
        column = columns[at, best]
        first = rows.offsets[column]
        for run in range(starts[labels[at, best]], starts[labels[at, best] + 1]):
            begin, end = rows.firsts[first + low[run]], rows.firsts[first + high[run] + 1]
            for spot in range(begin, end):
                row = rows.order[column, spot]
                if holds(rows, row, columns[at], labels[at], runs):
                    if found[at] == NOBODY:
                        found[at] = row
                    elif rows.owners[row] != rows.owners[found[at]]:
                        found[at] = SEVERAL
                        break
            if found[at] == SEVERAL:
                break
    return found


def covered_rows(rows: Indexed, boxes: Integers, runs: Runs, weights: Floats) -> Floats:
    """For each box, which has a label in every column, the weight of the rows that it covers."""
    totals = np.zeros(len(boxes))
    _add_up(rows, boxes, runs, weights, totals, False)
    return totals


def shared_out(rows: Indexed, boxes: Integers, runs: Runs, shares: Floats) -> Floats:
    """For each row, the sum of the shares of the boxes that cover it."""
    received = np.zeros(len(rows.values))
    _add_up(rows, boxes, runs, shares, received, True)
    return received


@njit(cache=True)
def _add_up(
    rows: Indexed, boxes: Integers, runs: Runs, given: Floats, sums: Floats, by_row: bool
) -> None:
    """Add what rows give to the boxes that cover them or, ``by_row``, what boxes give to rows.

    Only the rows of the label that covers the fewest rows are examined.
    """
    columns = np.arange(boxes.shape[1])
    starts, low, high = runs
    for box in range(len(boxes)):
        labels = boxes[box]
        column = fewest(rows, columns, labels, runs)[0]
        first = rows.offsets[column]
        for run in range(starts[labels[column]], starts[labels[column] + 1]):
            begin, end = rows.firsts[first + low[run]], rows.firsts[first + high[run] + 1]
            for spot in range(begin, end):
                row = rows.order[column, spot]
                if holds(rows, row, columns, labels, runs):
                    if by_row:
                        sums[row] += given[box]
                    else:
                        sums[box] += given[row]
