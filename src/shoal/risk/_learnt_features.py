"""What is known, as the features of a model that learns from a release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.risk._intruder import Floats
from shoal.risk._released_terms import Terms

_MOST_INDICATORS = 1_000  # columns of zeros and ones for a learner that is no tree


def features_of(columns: Sequence[Terms], learner: Any) -> tuple[Floats, Floats]:
    """The records and the people as numbers: all that is learnt about a value is from records.

    A value is its rank among those released, one between two of them lies between their ranks,
    and a missing one, or one without an order that was not released, is -1. Trees take
    that; other learners get ranks from 0 to 1, with a mark where they are missing, and for columns
    without an order a column of zeros and ones for each frequent value.
    """
    ranked = [_ranks(terms) for terms in columns]
    if _is_tree(learner):
        records = np.column_stack([records for records, _ in ranked])
        return records, np.column_stack([people for _, people in ranked])
    nominal = sum(not terms.ordered for terms in columns)
    most = int(np.clip(_MOST_INDICATORS // max(nominal, 1), 2, 50))
    parts = [
        _scaled(*ranks) if terms.ordered else _indicators(*ranks, most)
        for terms, ranks in zip(columns, ranked, strict=True)
    ]
    return np.hstack([part[0] for part in parts]), np.hstack([part[1] for part in parts])


def _is_tree(learner: Any) -> bool:
    module = type(learner).__module__
    return isinstance(learner, str) or module.startswith(("sklearn.tree", "sklearn.ensemble"))


def _ranks(terms: Terms) -> tuple[Floats, Floats]:
    levels = np.unique(terms.records[terms.records >= 0])
    if len(levels) == 0:
        return np.full(len(terms.records), -1.0), np.full(len(terms.people), -1.0)
    placed = []
    for codes in (terms.records, terms.people):
        at = np.searchsorted(levels, codes)
        found = levels[np.minimum(at, len(levels) - 1)] == codes
        unseen = at - 0.5 if terms.ordered else -1.0
        placed.append(np.where(codes < 0, -1.0, np.where(found, at, unseen)))
    return placed[0], placed[1]


def _scaled(records: Floats, people: Floats) -> tuple[Floats, Floats]:
    """Ranks from 0 to 1, the middle where missing, and a mark there if any record has a gap."""
    top = max(float(records.max()), 1.0)
    gaps = (records < 0).any()
    sides = []
    for ranks in (records, people):
        absent = ranks == -1.0
        columns = [np.where(absent, 0.5, ranks / top)]
        if gaps:
            columns.append(absent.astype(np.float64))
        sides.append(np.column_stack(columns))
    return sides[0], sides[1]


def _indicators(records: Floats, people: Floats, most: int) -> tuple[Floats, Floats]:
    """Zeros and ones for the most frequent values; the lower rank first where they are equal."""
    levels, counts = np.unique(records, return_counts=True)
    kept = np.sort(levels[np.lexsort((levels, -counts))][:most])
    marked = [(ranks[:, None] == kept).astype(np.float64) for ranks in (records, people)]
    return marked[0], marked[1]
