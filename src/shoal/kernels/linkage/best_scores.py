"""For each of some persons, the records with the highest score, which is a sum over columns.

A column of codes adds one number if person and record agree and another if they differ; a
column of values adds their similarity, between 0 and 1. A value that either of them lacks adds
nothing. Everything that is added is a multiple of 2 ** -40, so sums are exact: records that
agree in the same columns tie, whatever the order of the columns.

All records are compared, one block at a time, so that the block stays close to the processor while
one person after the other is compared with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers
from shoal.kernels.compile import njit

_BLOCK = 2_048  # records: their scores fit into the innermost cache
_GRID = 4_096.0  # numbers of this size are 2 ** -40 apart
_FAR = 6.4  # 2 ** -(6.4 ** 2) is below 2 ** -40


class Scored(NamedTuple):
    """Persons or records: codes and values by column, -1 and NaN where missing."""

    codes: Codes
    values: Floats


class Scoring(NamedTuple):
    """What each column adds to a score; made by :func:`scoring`."""

    agreeing: Floats  # for each column of codes
    differing: Floats
    scales: Floats  # for each column of values: the difference at which the similarity is 1/2
    gauss: bool  # 2 ** -(d / scale) ** 2 instead of 1 - d / (2 scale) down to 0


def scoring(agreeing: Floats, differing: Floats, scales: Floats, *, gauss: bool) -> Scoring:
    """A scoring; what agreement adds is rounded to multiples of 2 ** -40."""
    return Scoring(on_grid(agreeing), on_grid(differing), scales, gauss)


def on_grid(numbers: Floats) -> Floats:
    """The nearest multiples of 2 ** -40."""
    return np.ldexp(np.rint(np.ldexp(numbers, 40)), -40)


class BestScores:
    """The best-scoring records of each person; call ``advance`` until it returns their number.

    Both sides have the same codes and units, and no two records are equal. Behind record r are all
    whose labels are in ``members[starts[r]:starts[r + 1]]``. Each person has a label and a
    record whose score is wanted, negative for none. Results are the highest score of each person
    (``best``), how many are behind the records that have it (``ties``), how many of these have
    the person's label (``alike``), and the score of the own record (``own``; -inf if there is
    none).
    """

    def __init__(
        self,
        persons: Scored,
        records: Scored,
        how: Scoring,
        starts: Integers,
        members: Integers,
        labels: Integers,
        own: Integers,
    ) -> None:
        count = len(labels)
        self.best, self.own = np.full(count, -np.inf), np.full(count, -np.inf)
        self.ties, self.alike = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._sides, self._how = (persons, records), how
        self._behind, self._sought = (starts, members), (labels, own)
        self._done = 0

    def advance(self) -> int:
        """Compare some records; return how many have been compared."""
        end = min(self._done + _BLOCK, len(self._behind[0]) - 1)
        found = self.best, self.ties, self.alike, self.own
        _meet(self._sides, self._how, self._behind, self._sought, (self._done, end), found)
        self._done = end
        return end


def all_scores(persons: Scored, records: Scored, how: Scoring, person: int) -> Floats:
    """The scores of one person with all records."""
    scores = np.empty(records.codes.shape[1])
    _score(persons, records, how, person, 0, scores)
    return scores


@njit(cache=True)
def _meet(sides: Any, how: Scoring, behind: Any, sought: Any, block: Any, found: Any) -> None:
    persons, records = sides
    starts, members = behind
    labels, own = sought
    best, ties, alike, own_scores = found
    first, last = block
    scores = np.empty(last - first)
    for person in range(len(labels)):
        _score(persons, records, how, person, first, scores)
        if first <= own[person] < last:
            own_scores[person] = scores[own[person] - first]
        highest = scores.max()
        if highest < best[person]:
            continue
        if highest > best[person]:
            best[person], ties[person], alike[person] = highest, 0, 0
        for at in range(len(scores)):
            if scores[at] == highest:
                begin, end = starts[first + at], starts[first + at + 1]
                ties[person] += end - begin
                if labels[person] >= 0:
                    alike[person] += (members[begin:end] == labels[person]).sum()


@njit(cache=True)
def _score(
    persons: Scored, records: Scored, how: Scoring, person: int, first: int, scores: Floats
) -> None:
    """Compute the scores of a person and the records from ``first`` on."""
    scores[:] = 0.0
    size = len(scores)
    for column in range(len(how.agreeing)):
        code = persons.codes[column, person]
        if code >= 0:
            agreeing, differing = how.agreeing[column], how.differing[column]
            theirs = records.codes[column, first : first + size]
            for at in range(size):
                gain = agreeing if theirs[at] == code else differing
                scores[at] += gain if theirs[at] >= 0 else 0.0
    for column in range(len(how.scales)):
        value, scale = persons.values[column, person], how.scales[column]
        if not np.isnan(value):
            values = records.values[column, first : first + size]
            for at in range(size):
                gap = abs(values[at] - value) / scale
                if how.gauss:
                    alike = np.exp2(-(gap * gap)) if gap < _FAR else 0.0
                else:
                    alike = 1.0 - 0.5 * gap if gap < 2.0 else 0.0  # not less for a missing value
                scores[at] += (alike + _GRID) - _GRID
