"""Probabilistic linkage: agreement weighs more if it is rare among strangers.

Fellegi and Sunter's weights are learned from the agreement patterns of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers, Labels
from shoal.measurement import Measurement
from shoal.parameters import Flag, OneOf
from shoal.randomness import SecretStream
from shoal.risk._options import Count, Draw, Known, risk
from shoal.risk.linkage._intruder import (
    PUBLIC_KEY,
    SCORED_SAMPLE,
    Compared,
    Intruder,
    best_scores,
    compared,
    intruder_of,
)
from shoal.risk.linkage._right_links import Links, about_coarser, blind_links, right_links
from shoal.table import Table

if TYPE_CHECKING:
    from shoal.kernels.linkage.best_scores import Scoring


#: The weights of this many persons with as many records are held at once: 72 MB.
MOST_PERSONS = 3_000


@risk("share of right links by agreement", pairs=True)
def probabilistic_linkage(
    original: Table,
    masked: Table,
    *,
    known: Known = None,
    one_to_one: Annotated[bool, Flag()] = False,
    estimate: Estimate = "by-person",
    sample: Count = SCORED_SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """The share of people who are linked to their own record by agreement of values.

    An intruder compares every person with every masked record. Each known column agrees or not.
    The weight of agreement is the logarithm of m/u, and the weight of a difference is that of
    (1-m)/(1-u). m is how often the column agrees between a person and their own record, and u how
    often it agrees with any other record. Both are learned from the tables alone, without knowing
    who is who. The intruder takes the record with the largest sum for the person's own. If t
    records have the largest sum and the right one is among them, the link counts 1/t. A value that
    is missing on either side has no weight.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    known : list of str or a word, optional
        The columns that the intruder knows: a list, or ``"quasi-identifiers"`` (the default),
        ``"left-in-place"``, ``"informed"`` or ``"everything"``.
    one_to_one : bool
        Whether each record is linked to at most one person. The links then maximize the total sum
        of weights. For at most 3,000 people.
    estimate : {"by-person", "by-pair"}
        How m and u are learned, by expectation-maximization over the counts of agreement patterns.
        ``"by-person"`` uses that a person has at most one record. ``"by-pair"`` is the textbook
        mixture model, which treats pairs as independent and estimates how many of them belong
        together. It easily finds kinds of people instead of individuals.
    sample : int
        At most this many people are linked. All masked records are always candidates.
    random_state : int, optional
        Another number draws another sample. It is not a secret.

    References
    ----------
    Fellegi, Sunter (1969), A theory for record linkage
    <https://doi.org/10.1080/01621459.1969.10501049>. Jaro (1989), Advances in record-linkage
    methodology as applied to matching the 1985 census of Tampa, Florida
    <https://doi.org/10.1080/01621459.1989.10478785>. Sadinle (2017), Bayesian estimation of
    bipartite matchings for record linkage <https://doi.org/10.1080/01621459.2016.1148612>, section
    2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 48, 51], "sex": ["f", "m", "m", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> probabilistic_linkage(table, table).value
    1.0
    """
    intruder = intruder_of(original, masked, known=known, sample=sample, random_state=random_state)
    links = probabilistic_links(intruder, one_to_one=one_to_one, estimate=estimate)
    return right_links("probabilistic_linkage", intruder, links)


def probabilistic_links(
    intruder: Intruder, *, one_to_one: bool = False, estimate: Estimate = "by-person"
) -> Links:
    """The chance that the record with the largest weight has the person's label."""
    from shoal.kernels.linkage.best_scores import scoring

    if one_to_one and len(intruder.persons) > MOST_PERSONS:
        raise InputError(
            f"One-to-one linkage takes at most {MOST_PERSONS:,} persons; got "
            f"{len(intruder.persons):,}. Pass a smaller 'sample'."
        )
    if not intruder.released:
        return blind_links(intruder)
    both = compared(intruder, {})
    learned = learn_weights(
        both.persons.codes,
        both.records.codes,
        both.sizes,
        presence=min(1.0, intruder.masked.person_count / intruder.original.person_count),
        estimate=estimate,
    )
    how = scoring(learned.agreeing, learned.differing, np.empty(0), gauss=False)
    if one_to_one:
        chances = one_to_one_chances(intruder, both, how)
    else:
        found = best_scores(intruder, both, how)
        chances = found.alike / found.ties
    warnings = [*about_coarser(both.coarser)]
    if learned.persons == 0:
        warnings.append(
            "There are too many patterns of agreement to learn from, so the weights are the "
            "starting values."
        )
    elif not learned.converged:
        warnings.append(f"The weights did not converge in {MOST_STEPS} steps of learning.")
    names = intruder.released
    details = {
        "one_to_one": one_to_one,
        "estimate": estimate,
        "m": dict(zip(names, learned.m.tolist(), strict=True)),
        "u": dict(zip(names, learned.u.tolist(), strict=True)),
        "prevalence": learned.prevalence,
        "steps": learned.steps,
        "converged": learned.converged,
        "learnt_from_persons": learned.persons,
        "patterns": learned.patterns,
        "different_records": len(both.sizes),
    }
    return Links(chances, details, tuple(warnings))


def one_to_one_chances(intruder: Intruder, both: Compared, how: Scoring) -> Floats:
    """The chance that a person is linked to a record with the person's label.

    The order of persons and records depends only on their values and a public key. If there are
    many best solutions, the one found is therefore independent of who is who and of the order of
    rows. Equal records are exchanged at random, and so are equal persons: a person linked to one
    of two equal records gets the right one with chance 1/2.
    """
    by_name = np.argsort(intruder.released)
    stream = SecretStream.from_key_hex(PUBLIC_KEY).derive("one-to-one")
    persons = np.lexsort(both.persons.codes[by_name])
    persons = persons[stream.permutation(len(persons))]
    records = np.lexsort(both.records.codes[by_name][:, both.tuples])
    linked = np.full(len(persons), -1)
    of_persons, of_records = _assigned(both, how, persons, both.tuples[records])
    linked[persons[of_persons]] = both.tuples[records[of_records]]
    return _exchanged(both, linked, *intruder.labels)


def _assigned(
    both: Compared, how: Scoring, persons: Integers, tuples: Integers
) -> tuple[Integers, Integers]:
    """The places of linked persons and records, as many as the smaller side has."""
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    from shoal.kernels.linkage.best_scores import all_scores

    def scores(person: int) -> Floats:
        return all_scores(both.persons, both.records, how, person)[tuples]

    if len(persons) * len(tuples) <= MOST_PERSONS**2:
        dense = np.array([scores(person) for person in persons])
        one, other = linear_sum_assignment(dense, maximize=True)
        return one, other
    # The best records, one for each person, are enough: the other persons leave one of them.
    count = len(persons)
    near, gains = np.empty((count, count), np.int32), np.empty((count, count))
    for at, person in enumerate(persons):
        found = scores(person)
        near[at] = np.sort(np.argpartition(-found, count - 1)[:count])
        gains[at] = found[near[at]]
    costs = gains.max() + 1 - gains  # never 0, which would not be an entry
    starts = np.arange(0, count * count + 1, count)
    sparse = csr_array((costs.ravel(), near.ravel(), starts), shape=(count, len(tuples)))
    one, other = min_weight_full_bipartite_matching(sparse)
    return one, other


def _exchanged(
    both: Compared, linked: Integers, person_labels: Integers, record_labels: Integers
) -> Floats:
    """Chances of labels if equal persons and equal records are exchanged at random."""
    alike = np.unique(both.persons.codes, axis=1, return_inverse=True)[1].ravel()
    chances = np.zeros(len(linked))
    there = np.flatnonzero(linked >= 0)
    ties = np.bincount(alike, minlength=alike.max() + 1)
    # For each kind of person, the linked tuples and the number of links to each.
    kinds = alike[there] * len(both.sizes) + linked[there]
    pairs, links = np.unique(kinds, return_counts=True)
    order = np.argsort(alike, kind="stable")
    begins = np.concatenate([[0], np.cumsum(ties)])
    for pair, count in zip(pairs, links, strict=True):
        kind, tuple_ = divmod(int(pair), len(both.sizes))
        members = order[begins[kind] : begins[kind + 1]]
        behind = np.sort(record_labels[both.rows[both.starts[tuple_] : both.starts[tuple_ + 1]]])
        labels = person_labels[members]
        right = np.searchsorted(behind, labels, "right") - np.searchsorted(behind, labels)
        right = np.where(labels >= 0, right, 0)
        chances[members] += count / len(members) * right / len(behind)
    return chances


Estimate = Annotated[Literal["by-person", "by-pair"], OneOf(("by-person", "by-pair"))]

#: How often a column agrees between a person and their own record, before learning.
START = 0.9
#: A learned chance of agreement is never nearer to 0 or 1.
LEAST = 1e-6
#: Learning ends when no chance moves by more than this, or after this many steps.
TOLERANCE, MOST_STEPS = 1e-5, 200

_MOST_PATTERNS = 100_000
_MOST_ENTRIES = 500_000  # counts of a pattern at a person
_MOST_PAIRS = 50_000_000
_HARDLY_ANY = 1e-15  # a share of pairs, or of what is left of all pairs


@dataclass(frozen=True, eq=False)
class Learned:
    """How often each column agrees for own records (m) and for others (u), and the weights.

    ``prevalence`` is the share of pairs that belong together. ``persons`` is how many persons were
    learned from, each with all records. It is 0 if there were too many patterns; the weights are
    then the starting values.
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
        """The weight of agreement in each column: the logarithm of a likelihood ratio."""
        return np.log(self.m / self.u)

    @property
    def differing(self) -> Floats:
        """The weight of a difference in each column."""
        return np.log((1 - self.m) / (1 - self.u))


def learn_weights(
    persons: Labels, records: Labels, sizes: Integers, *, presence: float, estimate: Estimate
) -> Learned:
    """Learn m, u and, by pair, the prevalence by expectation-maximization."""
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
    learned_from = len(found.starts) - 1
    total = float(sizes.sum())
    prevalence = presence / total
    start = np.full(len(persons), START)
    if learned_from == 0:
        u = _agreement(persons, records, sizes)
        return Learned(start, u, prevalence, 0, False, 0, 0)
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
        return pairs / (1 + np.exp(np.minimum(against, 700.0)))

    expected = by_person if estimate == "by-person" else by_pair
    found_best = _maximised(agreed, present, pairs, start, prevalence, expected)
    return Learned(*found_best, learned_from, len(pairs))


def _spread(persons: int) -> Integers:
    """All places in an order whose beginning, of any length, is spread over all of them.

    Neighbors are alike. The fractional parts of multiples of the golden ratio leave no large gap.
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
    """Iterate expectation-maximization; return m, u, prevalence, steps and convergence."""
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
    """The parts of wholes, not quite 0 or 1; ``unknown`` if the whole is 0."""
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
