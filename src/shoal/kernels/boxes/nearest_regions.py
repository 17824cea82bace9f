"""The nearest released records of a person, if a released cell may represent many values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers
from shoal.kernels.boxes.predicates import Runs, stands_for
from shoal.kernels.compile import njit

_ROOM = 1e-12  # sums in another order differ by less than this


class Regions(NamedTuple):
    """Distinct released records in some columns: what each of their cells represents.

    ``labels[c, region]`` is the number of a label or -1 for a missing cell; those of column ``c``
    are from ``bounds[c]`` to below ``bounds[c + 1]``. ``places[offsets[c] + code]`` is the
    position of a value; ``ordered[c]`` says whether positions matter.
    """

    labels: Integers
    bounds: Integers
    runs: Runs
    places: Floats
    offsets: Integers
    ordered: Flags


@njit(cache=True)
def _cell_gap(regions: Regions, column: int, label: int, code: int) -> float:
    """0 if the label represents the value; otherwise 1, or the distance to its nearest value."""
    if not regions.ordered[column]:
        return 0.0 if stands_for(label, code, regions.runs) else 1.0
    first = regions.offsets[column]
    starts, low, high = regions.runs
    place, best = regions.places[first + code], np.inf
    for run in range(starts[label], starts[label + 1]):
        if low[run] <= code <= high[run]:
            return 0.0
        ends = (regions.places[first + low[run]], regions.places[first + high[run]])
        best = min(best, abs(place - ends[0]), abs(place - ends[1]))
    return best if best < np.inf else 1.0


@njit(cache=True)
def fill_gaps(regions: Regions, codes: Integers, cells: Floats, gaps: Floats) -> None:
    """Gower's dissimilarity of a person to every region, over the cells that both have.

    ``cells`` is room for the gap to each label: there are fewer labels than cells.
    """
    columns, count = regions.labels.shape
    shared = np.zeros(count)
    gaps[:] = 0.0
    for column in range(columns):
        if codes[column] < 0:
            continue
        for label in range(regions.bounds[column], regions.bounds[column + 1] - 1):
            cells[label] = _cell_gap(regions, column, label, codes[column])
        for region in range(count):
            label = regions.labels[column, region]
            if label >= 0:
                gaps[region] += cells[label]
                shared[region] += 1.0
    for region in range(count):
        gaps[region] = gaps[region] / shared[region] if shared[region] > 0 else 1.0


@njit(cache=True)
def _reach(gaps: Floats, sizes: Integers, neighbours: int) -> tuple[float, int, int]:
    """The distance that the nearest ``neighbours`` reach, and how many are nearer or as far."""
    nearer, limit = 0, -1.0
    while True:
        best, tied = np.inf, 0
        for region in range(len(gaps)):
            if gaps[region] > limit:
                if gaps[region] < best - _ROOM:
                    best, tied = gaps[region], sizes[region]
                elif gaps[region] <= best + _ROOM:
                    tied += sizes[region]
        if nearer + tied >= neighbours or best == np.inf:
            return best, nearer, tied
        nearer, limit = nearer + tied, best + _ROOM


@njit(cache=True)
def shared_neighbours(one: Any, other: Any, pairs: Integers, neighbours: int) -> Integers:
    """For each person, how the nearest records by the left and by the right columns overlap.

    Each side consists of its regions, the codes of the persons, and the number of records in each
    region. ``pairs[:, i]`` is a left region, a right region, and the number of records in both. The
    columns of the result: records nearer on the left, as far on the left, nearer on the right, as
    far on the right, then in both: nearer and nearer, as far on the left and nearer on the right,
    nearer on the left and as far on the right, as far on both.
    """
    left, left_codes, left_sizes = one
    right, right_codes, right_sizes = other
    persons = left_codes.shape[1]
    found = np.zeros((persons, 8), np.int64)
    left_gaps, right_gaps = np.empty(left.labels.shape[1]), np.empty(right.labels.shape[1])
    left_cells, right_cells = np.empty(left.bounds[-1]), np.empty(right.bounds[-1])
    for person in range(persons):
        fill_gaps(left, left_codes[:, person], left_cells, left_gaps)
        fill_gaps(right, right_codes[:, person], right_cells, right_gaps)
        near_left, found[person, 0], found[person, 1] = _reach(left_gaps, left_sizes, neighbours)
        near_right, found[person, 2], found[person, 3] = _reach(right_gaps, right_sizes, neighbours)
        for at in range(pairs.shape[1]):
            here = left_gaps[pairs[0, at]] - near_left
            there = right_gaps[pairs[1, at]] - near_right
            if here <= _ROOM and there <= _ROOM:
                kind = 4 + (here >= -_ROOM) + 2 * (there >= -_ROOM)
                found[person, kind] += pairs[2, at]
    return found


class Secrets(NamedTuple):
    """A column to guess: what a released label reveals, and when a guess based on it is right.

    For a label of ordered values, the guess is ``guesses[label]``, right within ``closeness``. For
    other labels, the guess is any of the represented values, right in a share ``worth[label]`` of
    the cases if the true value is among them.
    """

    runs: Runs
    places: Floats
    ordered: bool
    guesses: Floats
    worth: Floats
    closeness: float


@njit(cache=True)
def worth_of(secrets: Secrets, label: int, code: int) -> float:
    """The chance that a guess based on a label is right for a person with a value."""
    if label < 0 or code < 0:
        return 0.0
    if secrets.ordered:
        away = abs(secrets.guesses[label] - secrets.places[code])
        return 1.0 if away <= secrets.closeness + _ROOM else 0.0
    if stands_for(label, code, secrets.runs):
        return secrets.worth[label]
    return 0.0


@njit(cache=True)
def nearest_guesses(
    regions: Regions, codes: Integers, members: Integers, secrets: Secrets, own: Integers
) -> Floats:
    """For each person, the chance that the secret of a nearest record is right.

    ``members[:, i]`` is a region, a label of the secret and the number of records that have both;
    ``own`` is the secret of each person, -1 if it is missing.
    """
    chances = np.zeros(codes.shape[1])
    gaps, cells = np.empty(regions.labels.shape[1]), np.empty(regions.bounds[-1])
    for person in range(codes.shape[1]):
        fill_gaps(regions, codes[:, person], cells, gaps)
        nearest, tied, right = gaps.min(), 0, 0.0
        for at in range(members.shape[1]):
            if gaps[members[0, at]] <= nearest + _ROOM:
                tied += members[2, at]
                right += members[2, at] * worth_of(secrets, members[1, at], own[person])
        chances[person] = right / tied
    return chances
