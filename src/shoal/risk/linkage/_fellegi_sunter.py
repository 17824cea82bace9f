"""The weights of Fellegi and Sunter, learnt from the agreement patterns of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Labels

Estimate = Literal["by-person", "by-pair"]

#: How often a column agrees for a person and the own record, before anything is learnt.
START = 0.9
#: No chance of agreement is learnt to be nearer to 0 or 1.
LEAST = 1e-6
#: Learning ends where no chance moves by more, or after so many steps.
TOLERANCE, MOST_STEPS = 1e-5, 200

_MOST_PATTERNS = 100_000
_MOST_ENTRIES = 500_000  # counts of a pattern at a person
_MOST_PAIRS = 50_000_000
_HARDLY_ANY = 1e-15  # a share of pairs, or of what is left of all pairs


@dataclass(frozen=True, eq=False)
class Learnt:
    """How often each column agrees for own records (m) and for others (u), and what that weighs.

    ``prevalence`` is the share of pairs that belong together. ``persons`` were learnt from, each
    with all records; none where there were too many patterns, and the start values stand.
    """

    m: Floats
    u: Floats
    prevalence: float
    steps: int
    converged: bool
    persons: int
    patterns: int

    @property
    def agreeing(self) -> Floats:
        """What agreement of each column weighs: the logarithm of a likelihood ratio."""
        weights: Floats = np.log(self.m / self.u)
        return weights

    @property
    def differing(self) -> Floats:
        """What a difference in each column weighs."""
        weights: Floats = np.log((1 - self.m) / (1 - self.u))
        return weights


def learn_weights(
    persons: Labels, records: Labels, sizes: Integers, *, presence: float, estimate: Estimate
) -> Learnt:
    """Learn m, u and, by pair, the prevalence by expectation and maximisation.

    Parameters
    ----------
    persons, records : array of shape (columns, persons) and (columns, records)
        Codes, -1 where a value is missing; such a pair tells nothing about the column.
    sizes : array of int
        How many stand behind each record.
    presence : float
        The chance that a person has a record at all.
    estimate : {"by-person", "by-pair"}
        Whether a person is known to have one record at most, or pairs are taken one by one.
    """
    from shoal.kernels.linkage.agreement_patterns import count_patterns, expected_matches

    count = min(persons.shape[1], max(1, _MOST_PAIRS // records.shape[1]))
    chosen = np.lexsort(persons[::-1])[_spread(persons.shape[1])][:count]
    found = count_patterns(
        np.ascontiguousarray(persons[:, chosen]),
        records,
        sizes,
        most_patterns=_MOST_PATTERNS,
        most_entries=_MOST_ENTRIES,
    )
    learnt_from = len(found.starts) - 1
    total = float(sizes.sum())
    prevalence = presence / total
    start = np.full(len(persons), START)
    if learnt_from == 0:
        u = _agreement(persons, records, sizes)
        return Learnt(start, u, prevalence, 0, False, 0, 0)
    one, other = persons[:, chosen[found.persons]], records[:, found.records]
    present = ((one >= 0) & (other >= 0)).astype(np.float64)
    agreed = present * (one == other)
    pairs = np.bincount(found.ids, found.counts, len(found.persons)).astype(np.float64)
    odds = np.inf if presence >= 1 else presence / (1 - presence) / total

    def by_person(weights: Floats, prevalence: float) -> Floats:
        return expected_matches(found, weights, odds)

    def by_pair(weights: Floats, prevalence: float) -> Floats:
        share = min(max(prevalence, _HARDLY_ANY), 1 - _HARDLY_ANY)
        against = np.log((1 - share) / share) - weights
        matches: Floats = pairs / (1 + np.exp(np.minimum(against, 700.0)))
        return matches

    expected = by_person if estimate == "by-person" else by_pair
    m, u, prevalence, steps, converged = _maximised(
        agreed, present, pairs, start, prevalence, expected
    )
    return Learnt(m, u, prevalence, steps, converged, learnt_from, len(pairs))


def _spread(persons: int) -> Integers:
    """All places in an order whose beginning, of whatever length, is from all over them.

    Neighbours are alike. Multiples of the golden ratio, without their whole parts, leave no
    large gap.
    """
    return np.argsort(np.arange(persons) * ((5**0.5 - 1) / 2) % 1)


def _maximised(
    agreed: Floats,
    present: Floats,
    pairs: Floats,
    m: Floats,
    prevalence: float,
    expected: Callable[[Floats, float], Floats],
) -> tuple[Floats, Floats, float, int, bool]:
    """Steps of expectation and maximisation until nothing moves; m, u, prevalence, how it went."""
    u = _shares(agreed @ pairs, present @ pairs, m)
    for step in range(1, MOST_STEPS + 1):
        weights = np.log(m / u) @ agreed + np.log((1 - m) / (1 - u)) @ (present - agreed)
        matches = expected(weights, prevalence)
        others = pairs - matches
        before = np.concatenate([m, u])
        m = _shares(agreed @ matches, present @ matches, m)
        u = _shares(agreed @ others, present @ others, u)
        prevalence = float(matches.sum() / pairs.sum())
        if np.abs(np.concatenate([m, u]) - before).max() < TOLERANCE:
            return m, u, prevalence, step, True
    return m, u, prevalence, MOST_STEPS, False


def _shares(part: Floats, whole: Floats, unknown: Floats) -> Floats:
    """The parts of wholes, not quite 0 or 1; as before where there is no whole."""
    shares = np.divide(part, whole, out=unknown.copy(), where=whole > 0)
    return np.clip(shares, LEAST, 1 - LEAST)


def _agreement(persons: Labels, records: Labels, sizes: Integers) -> Floats:
    """How often each column agrees in all pairs, from the counts of its values alone."""
    agreed, whole = np.zeros(len(persons)), np.zeros(len(persons))
    for column, (one, other) in enumerate(zip(persons, records, strict=True)):
        codes = int(max(one.max(), other.max())) + 1
        theirs = np.bincount(other[other >= 0], sizes[other >= 0], minlength=codes)
        mine = np.bincount(one[one >= 0], minlength=codes)
        agreed[column], whole[column] = mine @ theirs, mine.sum() * theirs.sum()
    return _shares(agreed, whole, np.full(len(persons), 1 - START))
