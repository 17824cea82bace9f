"""A secret as labels: what an intruder's guess must say to be right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.risk._intruder import Integers
from shoal.risk._released_terms import People, Terms, released_terms

#: A number or date with more different values than this is right within a tolerance.
MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class SecretLabels:
    """The secret of people and records as whole numbers from 0 on, a missing one too.

    ``values`` is how many different ones were released, ``parts`` into how many parts of about
    equally many persons a quantity was cut, or None where a guess must be exact.
    """

    people: Integers
    records: Integers
    values: int
    parts: int | None


def secret_labels(name: str, people: People, tolerance: float) -> SecretLabels:
    """The labels of a secret: its values, or parts of the original's ranks for a quantity."""
    terms = released_terms(name, people)
    parts = None
    members = terms.people[: people.members]
    if terms.ordered and len(np.unique(members[members >= 0])) > MOST_CLASSES:
        parts = max(1, round(1 / tolerance))
        terms = _in_parts(terms, members, parts)
    missing = int(max(terms.people.max(), terms.records.max())) + 1
    labels = [np.where(codes < 0, missing, codes) for codes in (terms.people, terms.records)]
    return SecretLabels(labels[0], labels[1], len(np.unique(labels[1])), parts)


def _in_parts(terms: Terms, members: Integers, parts: int) -> Terms:
    """Each value as the part of the original's ranks that it lies in; equal values stay together.

    A value stands in the middle of the ranks of those who have it.
    """
    ordered = np.sort(members[members >= 0])

    def part(codes: Integers) -> Integers:
        low, high = (np.searchsorted(ordered, codes, side=side) for side in ("left", "right"))
        at = (low + high) * parts // (2 * len(ordered))
        return np.where(codes < 0, -1, np.minimum(at, parts - 1))

    return Terms(part(terms.people), part(terms.records), terms.ordered, terms.coarser)
