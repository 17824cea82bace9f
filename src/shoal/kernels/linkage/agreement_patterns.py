"""The columns in which persons and records agree: the patterns of all pairs, counted by person.

No pair is stored. A pattern is a 64-bit word to which every column adds its mark: one if both
agree, and another if either lacks the value. Up to 31 columns the marks are single bits, and
words are patterns. With more, marks are random, and two patterns share a word with a chance of less
than one in a million. One pair of each pattern is kept, to read the columns from it.
than one in a million. One pair of each pattern is kept, to read the columns off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Codes, Floats, Integers, Words
from shoal.kernels.compile import njit

_BITS = 62
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LOAD = 4  # slots for each possible pattern
_VANISHING = -600.0


class Patterns(NamedTuple):
    """The patterns of all pairs of some persons with all records.

    Person i has pattern ``ids[e]`` with ``counts[e]`` records, for the entries e from
    ``starts[i]`` to ``starts[i + 1]``. Pattern j is that of ``persons[j]`` and ``records[j]``.
    """

    starts: Integers
    ids: Integers
    counts: Floats
    persons: Integers
    records: Integers


def count_patterns(
    persons: Codes, records: Codes, sizes: Integers, *, most_patterns: int, most_entries: int
) -> Patterns:
    """Count the patterns of the first persons, as many as the limits allow.

    Persons and records come as codes by column, negative if a value is missing; ``sizes`` has the
    number behind each record. Counting stops before a person who would exceed a limit.
    """
    marks = _marks(len(persons))
    slots = 1 << int(np.ceil(np.log2(_LOAD * most_patterns)))
    room = min(most_entries, persons.shape[1] * min(most_patterns, records.shape[1]))
    starts = np.zeros(persons.shape[1] + 1, np.int64)
    ids, counts = np.empty(room, np.int64), np.empty(room)
    pairs = np.empty((2, most_patterns), np.int64)
    done, patterns = _count(
        persons, records, sizes, marks, np.full(slots, -1), starts, ids, counts, pairs
    )
    entries = starts[done]
    return Patterns(
        starts[: done + 1],
        ids[:entries].copy(),
        counts[:entries].copy(),
        pairs[0, :patterns].copy(),
        pairs[1, :patterns].copy(),
    )


def _marks(columns: int) -> Words:
    """The marks of agreement and of missing values, by column."""
    if 2 * columns <= _BITS:
        places = np.arange(2 * columns, dtype=np.uint64).reshape(2, columns)
        return np.uint64(1) << places
    words = np.arange(1, 2 * columns + 1, dtype=np.uint64).reshape(2, columns) * _SPREAD
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)  # SplitMix64
    return words


@njit(cache=True)
def _count(
    persons: Codes,
    records: Codes,
    sizes: Integers,
    marks: Words,
    slots: Integers,
    starts: Integers,
    ids: Integers,
    counts: Floats,
    pairs: Integers,
) -> tuple[int, int]:
    """The number of persons that were counted, and the number of their patterns."""
    words, known = np.empty(records.shape[1], np.uint64), np.empty(pairs.shape[1], np.uint64)
    entry_of = np.full(pairs.shape[1], -1)
    mask, patterns = len(slots) - 1, 0
    for person in range(persons.shape[1]):
        _words_of(persons, records, marks, person, words)
        before, entry = patterns, starts[person]
        for record in range(len(words)):
            slot = int((words[record] * _SPREAD) >> np.uint64(20)) & mask
            while slots[slot] >= 0 and known[slots[slot]] != words[record]:
                slot = (slot + 1) & mask
            found = slots[slot]
            if found < 0:
                if patterns == pairs.shape[1]:
                    return person, before
                slots[slot] = found = patterns
                known[found], pairs[0, found], pairs[1, found] = words[record], person, record
                patterns += 1
            if entry_of[found] < starts[person]:
                if entry == len(ids):
                    return person, before
                entry_of[found], ids[entry], counts[entry] = entry, found, 0.0
                entry += 1
            counts[entry_of[found]] += sizes[record]
        starts[person + 1] = entry
    return persons.shape[1], patterns


@njit(cache=True)
def _words_of(persons: Codes, records: Codes, marks: Words, person: int, words: Words) -> None:
    words[:] = np.uint64(0)
    for column in range(len(persons)):
        code, theirs = persons[column, person], records[column]
        agreeing, missing = marks[0, column], marks[1, column]
        for record in range(len(words)):
            mark = agreeing if theirs[record] == code else np.uint64(0)
            words[record] ^= missing if theirs[record] < 0 or code < 0 else mark


def expected_matches(patterns: Patterns, weights: Floats, odds: float) -> Floats:
    """How many own records each pattern is expected to have, over all persons.

    ``weights`` are the logarithms of the likelihood ratios of the patterns. Each person has at most
    one record; ``odds`` are those that a given record is it, against there being none.
    """
    highest = weights.max()
    # Values so far below the best that their exponential is zero must not leave a person nothing.
    ratios = np.exp(np.maximum(weights - highest, _VANISHING))
    nobody = 0.0 if odds == np.inf else np.exp(min(-highest, -_VANISHING)) / odds
    matches = np.zeros(len(weights))
    _expect(patterns, ratios, nobody, matches)
    return matches


@njit(cache=True)
def _expect(patterns: Patterns, ratios: Floats, nobody: float, matches: Floats) -> None:
    ids, counts = patterns.ids, patterns.counts
    for person in range(len(patterns.starts) - 1):
        begin, end = patterns.starts[person], patterns.starts[person + 1]
        total = nobody
        for entry in range(begin, end):
            total += counts[entry] * ratios[ids[entry]]
        for entry in range(begin, end):
            matches[ids[entry]] += counts[entry] * ratios[ids[entry]] / total
