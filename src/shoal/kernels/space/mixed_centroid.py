"""The mean of numeric and the mode of nominal columns of a shrinking set of records.

Sums are kept as pairs of floats (Møller's and Knuth's two-sum), whose error is far below the last
bit of a mean, so that a centroid does not depend on the order in which records left. Modes are
kept by a tournament of the codes of a column: the code with more records advances, in a tie
the lower.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers
from shoal.kernels.compile import njit, python_if_small
from shoal.kernels.space.mixed_distance import Query
from shoal.kernels.space.mixed_records import MixedRecords


class Centroid(NamedTuple):
    """What remains of each column. Nominal columns have their places one after the other."""

    sums: Floats  # high and low part by numeric column
    counts: Integers  # values by numeric, then nominal column
    tallies: Integers  # records by given code
    winners: Integers  # a tournament per nominal column: winner at 1, codes at the end
    firsts: Integers  # where each nominal column starts in arrays by code or rank
    seats: Integers  # where the tournament of each nominal column starts
    code_of: Integers  # the given code by rank
    rank_of: Integers  # the rank by given code


def centroid_of(records: MixedRecords) -> Centroid:
    """The centroid of all records."""
    levels = records.measure.levels
    firsts = np.cumsum(np.append(0, levels))
    sizes = 2 ** np.ceil(np.log2(levels)).astype(np.int64)
    seats = np.cumsum(np.append(0, 2 * sizes))
    centroid = Centroid(
        np.zeros((2, len(records.values))),
        np.zeros(len(records.measure.presence), np.int64),
        np.zeros(firsts[-1], np.int64),
        np.zeros(seats[-1], np.int64),
        firsts,
        seats,
        records.ranked,
        np.empty_like(records.ranked),
    )
    for first, last in pairwise(firsts):
        rank = centroid.rank_of[first:last]
        rank[centroid.code_of[first:last]] = np.arange(last - first)
    _count(centroid, records)
    return centroid


@python_if_small(lambda centroid, records: 4 * records.values.shape[1] * len(centroid.counts))
@njit(cache=True)
def _count(centroid: Centroid, records: MixedRecords) -> None:
    for row in range(records.values.shape[1]):
        _move(centroid, records, row, np.int64(1))
    for column in range(len(centroid.seats) - 1):
        tallies, winners = centroid.firsts[column], centroid.seats[column]
        codes = centroid.firsts[column + 1] - tallies
        size = (centroid.seats[column + 1] - winners) // 2
        for seat in range(size):
            centroid.winners[winners + size + seat] = min(seat, codes - 1)
        for seat in range(size - 1, 0, -1):
            _play(centroid, column, seat)


@njit(cache=True)
def _play(centroid: Centroid, column: int, seat: int) -> int:
    """Let the winners of two seats compete for the seat above; returns the winner."""
    tallies, winners = centroid.firsts[column], centroid.seats[column]
    left = centroid.winners[winners + 2 * seat]
    right = centroid.winners[winners + 2 * seat + 1]
    ahead = centroid.tallies[tallies + left] >= centroid.tallies[tallies + right]
    winner = left if ahead else right
    centroid.winners[winners + seat] = winner
    return winner


@njit(cache=True)
def _move(centroid: Centroid, records: MixedRecords, row: int, sign: int) -> None:
    """Add a record to the sums and tallies, or remove it."""
    numeric = len(records.values)
    for column in range(len(centroid.counts)):
        at = records.measure.presence[column]
        if at >= 0 and records.codes[at, row] == 0:
            continue
        centroid.counts[column] += sign
        if column < numeric:
            _add(centroid.sums, column, sign * records.values[column, row])
        else:
            first = centroid.firsts[column - numeric]
            code = centroid.code_of[first + records.codes[column - numeric, row]]
            centroid.tallies[first + code] += sign


@njit(cache=True)
def _add(sums: Floats, column: int, value: float) -> None:
    high = sums[0, column]
    total = high + value
    shifted = total - high
    error = (high - (total - shifted)) + (value - shifted)
    low = sums[1, column] + error
    sums[0, column] = total + low
    sums[1, column] = low - (sums[0, column] - total)


@njit(cache=True)
def leave(centroid: Centroid, records: MixedRecords, row: int) -> None:
    """Remove a record."""
    _move(centroid, records, row, np.int64(-1))
    numeric = len(records.values)
    for column in range(len(centroid.seats) - 1):
        at = records.measure.presence[numeric + column]
        if at >= 0 and records.codes[at, row] == 0:
            continue
        code = centroid.code_of[centroid.firsts[column] + records.codes[column, row]]
        seat = (centroid.seats[column + 1] - centroid.seats[column]) // 2 + code
        while seat > 1:
            seat //= 2
            before = centroid.winners[centroid.seats[column] + seat]
            # Only a winner that became weaker can lose its seat.
            if before != code:
                break
            _play(centroid, column, seat)


@njit(cache=True)
def set_centroid(query: Query, centroid: Centroid) -> None:
    """Make the centroid the query; a column without any remaining value is missing."""
    numeric = len(query.values)
    for column in range(len(query.has)):
        count = centroid.counts[column]
        query.has[column] = count > 0
        if count == 0:
            continue
        if column < numeric:
            query.values[column] = centroid.sums[0, column] / count
        else:
            nominal = column - numeric
            winner = centroid.winners[centroid.seats[nominal] + 1]
            query.codes[nominal] = centroid.rank_of[centroid.firsts[nominal] + winner]
