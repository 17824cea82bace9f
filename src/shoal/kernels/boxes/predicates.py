"""Which record a conjunction of conditions isolates, if it is one alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit

Integers = npt.NDArray[np.int64]

NOBODY, SEVERAL = -1, -2


@njit(cache=True)
def stands_for(label: int, code: int, starts: Integers, low: Integers, high: Integers) -> bool:
    """Whether a released label stands for a value; a missing value is stood for by none."""
    for run in range(starts[label], starts[label + 1]):
        if low[run] <= code <= high[run]:
            return True
    return False


class Indexed(NamedTuple):
    """Rows by the value that they have in each column.

    ``values[row, c]`` is the code of a row, -1 where it is missing; ``order[c]`` has the rows by
    ascending code, those with a code below ``code`` in its first ``firsts[offsets[c] + code]``.
    ``owners`` has the number of the person of each row.
    """

    values: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]
    firsts: Integers
    offsets: Integers
    owners: Integers


def indexed(values: Integers, counts: Integers, owners: Integers | None = None) -> Indexed:
    """Rows by value, where column ``c`` of ``values[c, row]`` has codes below ``counts[c]``.

    Each row is a person, unless ``owners`` says whose it is.
    """
    order = np.empty(values.shape, np.int32)
    firsts = []
    for codes, rows, count in zip(values, order, counts, strict=True):
        rows[:] = np.argsort(codes, kind="stable")
        firsts.append(np.searchsorted(codes[rows], np.arange(count + 1)))
    offsets = np.cumsum([0, *(len(one) for one in firsts[:-1])])
    of_rows = np.ascontiguousarray(values.T, np.int32)  # a row is looked at in all its columns
    begins = np.concatenate(firsts).astype(np.int64)
    owners = np.arange(values.shape[1]) if owners is None else owners.astype(np.int64)
    return Indexed(of_rows, order, begins, offsets.astype(np.int64), owners)


@njit(cache=True)
def fewest(
    rows: Indexed,
    columns: Integers,
    labels: Integers,
    starts: Integers,
    low: Integers,
    high: Integers,
) -> tuple[int, int]:
    """The condition that the fewest rows meet, and how many; -1 and 0 where nothing is asked."""
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
def rows_to_look_at(
    rows: Indexed,
    columns: Integers,
    labels: Integers,
    starts: Integers,
    low: Integers,
    high: Integers,
) -> Integers:
    """How many rows :func:`isolated_rows` has to look at for each predicate, at most."""
    looked = np.zeros(len(columns), np.int64)
    for at in range(len(columns)):
        looked[at] = fewest(rows, columns[at], labels[at], starts, low, high)[1]
    return looked


@njit(cache=True)
def holds(
    rows: Indexed,
    row: int,
    columns: Integers,
    labels: Integers,
    starts: Integers,
    low: Integers,
    high: Integers,
) -> bool:
    """Whether a row meets all conditions of a predicate."""
    for place in range(len(columns)):
        label = labels[place]
        if label >= 0 and not stands_for(
            label, rows.values[row, columns[place]], starts, low, high
        ):
            return False
    return True


@njit(cache=True)
def isolated_rows(
    rows: Indexed,
    columns: Integers,
    labels: Integers,
    starts: Integers,
    low: Integers,
    high: Integers,
) -> Integers:
    """For each predicate a row of the only person that it holds for, or NOBODY, or SEVERAL.

    Only rows that meet the condition which the fewest meet are looked at.

    Parameters
    ----------
    rows : Indexed
        The rows among which those of one person are to be isolated.
    columns, labels : array of int64
        ``columns[p, i]`` and ``labels[p, i]`` are condition ``i`` of predicate ``p``: the value in
        that column is one that the label stands for. A label of -1 asks for nothing.
    starts, low, high : array of int64
        What each label stands for: runs of codes, as in a released column.
    """
    found = np.full(len(columns), NOBODY, np.int64)
    for at in range(len(columns)):
        best = fewest(rows, columns[at], labels[at], starts, low, high)[0]
        if best < 0:
            found[at] = 0 if (rows.owners == rows.owners[0]).all() else SEVERAL
            continue
        column = columns[at, best]
        first = rows.offsets[column]
        for run in range(starts[labels[at, best]], starts[labels[at, best] + 1]):
            begin, end = rows.firsts[first + low[run]], rows.firsts[first + high[run] + 1]
            for spot in range(begin, end):
                row = rows.order[column, spot]
                if holds(rows, row, columns[at], labels[at], starts, low, high):
                    if found[at] == NOBODY:
                        found[at] = row
                    elif rows.owners[row] != rows.owners[found[at]]:
                        found[at] = SEVERAL
                        break
            if found[at] == SEVERAL:
                break
    return found
