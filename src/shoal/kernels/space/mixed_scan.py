"""The search among records of mixed type that looks at every record, sixteen at a time.

It finds what a tree finds. It is the faster one where the boxes of a tree tell little: many columns
that do not depend on each other, few records, large groups.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH, bits, load, store
from shoal.kernels.space.mixed_distance import Measure, distances
from shoal.kernels.space.mixed_records import MixedRecords
from shoal.kernels.space.mixed_tree import GONE, Tree, empty_tree, fill, take


def pack(records: MixedRecords, rows: Integers) -> Tree:
    """Some rows, in the order of the leaves of a tree, in full leaves without boxes above them."""
    leaves = -(-len(rows) // WIDTH)
    packed = empty_tree(records, leaves, np.full((3, leaves), -1), 1)
    starts = np.append(np.arange(0, len(rows), WIDTH), len(rows))
    fill(packed, records.measure, records.values, records.codes, rows, starts)
    return packed


def rows_by_leaf(tree: Tree) -> Integers:
    """The rows that a tree still has, leaf by leaf."""
    rows = tree.values[:, -3].ravel()
    return rows[rows < GONE].astype(np.int64)


@njit(cache=True)
def scan(
    packed: Tree,
    measure: Measure,
    first: int,
    but: int,
    gaps: Floats,
    found_rows: Floats,
    want_furthest: bool,
) -> int:
    """The rows nearest to the query, as ``nearest`` of a tree gives them; and the furthest row.

    One pass serves both. It goes round once from leaf ``first``: where that is near the query, few
    others need a closer look. Without ``want_furthest`` the furthest row is -1.
    """
    query, rows = packed.query, packed.values.shape[1] - 3
    for i in range(len(gaps)):
        gaps[i], found_rows[i] = np.inf, GONE
    near = np.inf if len(gaps) > 0 else -np.inf
    best, best_row = -1.0 if want_furthest else np.inf, GONE
    leaf = first - 1
    for _ in range(len(packed.values)):
        leaf = leaf + 1 if leaf + 1 < len(packed.values) else 0
        found = distances(query, measure, packed.values, packed.codes, leaf)
        theirs = load(packed.values, leaf, rows)
        hits = bits(((found <= near) | (found >= best)) & (theirs < GONE) & (theirs != but))
        if hits == 0:
            continue
        store(found, query.room, 0, 0)
        lane = 0
        while hits >> lane:
            if hits >> lane & 1:
                gap, row = query.room[0, 0, lane], packed.values[leaf, rows, lane]
                if gap <= near:
                    take(gaps, found_rows, gap, row)
                    near = gaps[0]
                if gap > best or (gap == best and row < best_row):
                    best, best_row = gap, row
            lane += 1
    return int(best_row) if best_row < GONE else -1
