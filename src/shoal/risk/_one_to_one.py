"""One record for one person: the links that have the greatest sum of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.randomness import SecretStream
from shoal.risk._intruder import PUBLIC_KEY, Floats, Integers
from shoal.risk._scored_links import Compared

if TYPE_CHECKING:
    from shoal.kernels.linkage.best_scores import Scoring

#: The weights of so many persons, each with as many records, are held at once: 72 MB.
MOST_PERSONS = 3_000


def one_to_one_chances(
    both: Compared,
    how: Scoring,
    columns: Sequence[str],
    person_labels: Integers,
    record_labels: Integers,
) -> Floats:
    """The chance that a person is linked to a record with the person's label.

    Persons and records come in an order that follows from their values and a public key alone, so
    that of many best solutions the one that is found has nothing to do with who is who, nor with
    the order of rows. Records that are equal are exchanged at random, and so are persons:
    somebody linked to one of two equal records gets the right one with chance 1/2.
    """
    by_name = np.argsort(columns)
    stream = SecretStream.from_key_hex(PUBLIC_KEY).derive("one-to-one")
    persons = np.lexsort(both.persons.codes[by_name])
    persons = persons[stream.permutation(len(persons))]
    records = np.lexsort(both.records.codes[by_name][:, both.tuples])
    linked = np.full(len(persons), -1)
    of_persons, of_records = _assigned(both, how, persons, both.tuples[records])
    linked[persons[of_persons]] = both.tuples[records[of_records]]
    return _exchanged(both, linked, person_labels, record_labels)


def _assigned(
    both: Compared, how: Scoring, persons: Integers, tuples: Integers
) -> tuple[Integers, Integers]:
    """Places of persons and of records that are linked, as many as there are of the fewer."""
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
    # The others take all but one of as many records as there are persons: nobody needs more.
    count = len(persons)
    near, gains = np.empty((count, count), np.int32), np.empty((count, count))
    for at, person in enumerate(persons):
        found = scores(person)
        near[at] = np.sort(np.argpartition(-found, count - 1)[:count])
        gains[at] = found[near[at]]
    costs = gains.max() + 1 - gains  # none is 0, which would be no entry
    starts = np.arange(0, count * count + 1, count)
    sparse = csr_array((costs.ravel(), near.ravel(), starts), shape=(count, len(tuples)))
    one, other = min_weight_full_bipartite_matching(sparse)
    return one, other


def _exchanged(
    both: Compared, linked: Integers, person_labels: Integers, record_labels: Integers
) -> Floats:
    """Chances of labels, where equal persons and equal records are exchanged at random."""
    alike = np.unique(both.persons.codes, axis=1, return_inverse=True)[1].ravel()
    chances = np.zeros(len(linked))
    there = np.flatnonzero(linked >= 0)
    ties = np.bincount(alike, minlength=alike.max() + 1)
    # For each kind of persons the tuples that they were linked to, with how many links each.
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
