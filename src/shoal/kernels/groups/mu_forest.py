"""The forest of μ-Approx: edges between records, and its trees side by side while they are cut.

It knows edges and sizes only, not how records are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers, Rows
from shoal.kernels.compile import njit

TREES, GROUPS, GROUPED = 0, 1, 2
"""What ``Forest.state`` counts."""
INSIDE, OUTWARD, OWN = 0, 1, 2
"""What ``Forest.sums`` has of a record."""


class Forest(NamedTuple):
    """The edges, and the records of each tree side by side, parents before children."""

    target: Rows  # where a record's edge leads, -1 for a root
    tree_of: Rows  # union-find
    sizes: Rows  # of the tree, at its representative; then of the subtree of each record
    order: Rows  # the records, tree by tree
    spare: Rows
    mark: Rows
    sums: Floats  # of the subtree of each record
    stack: Integers  # first place of the trees still to cut, and the one behind the last
    state: Integers  # trees on the stack, groups, records grouped


def edgeless(count: int, k: int) -> Forest:
    """A forest of single records."""
    return Forest(
        target=np.full(count, -1, np.int32),
        tree_of=np.arange(count, dtype=np.int32),
        sizes=np.ones(count, np.int32),
        order=np.empty(count, np.int32),
        spare=np.empty(count, np.int32),
        mark=np.empty(count, np.int32),
        sums=np.empty((count, 3)),
        stack=np.empty((count // k + 1, 2), np.int64),
        state=np.zeros(3, np.int64),
    )


@njit(cache=True)
def representative(tree_of: Rows, row: int) -> int:
    """The record that names the tree of a record."""
    while tree_of[row] != row:
        tree_of[row] = tree_of[tree_of[row]]
        row = tree_of[row]
    return row


@njit(cache=True)
def link(forest: Forest, row: int, to: int) -> None:
    """Give a root an edge to a record of another tree."""
    own, other = representative(forest.tree_of, row), representative(forest.tree_of, to)
    forest.target[row] = to
    forest.tree_of[own] = other
    forest.sizes[other] += forest.sizes[own]


@njit(cache=True)
def size_if_short(forest: Forest, row: int, k: int) -> int:
    """The size of a record's tree if it has fewer than k and that is its root, else 0."""
    size = forest.sizes[representative(forest.tree_of, row)]
    return size if size < k and forest.target[row] < 0 else 0


@njit(cache=True)
def line_up(forest: Forest) -> None:
    """Fill ``order`` with the trees one after another, and the stack with their places."""
    count = len(forest.target)
    first_child, next_child = forest.mark, forest.spare
    first_child[:] = -1
    for row in range(count - 1, -1, -1):
        target = forest.target[row]
        if target >= 0:
            next_child[row] = first_child[target]
            first_child[target] = row
    placed = trees = 0
    for root in range(count):
        if forest.target[root] >= 0:
            continue
        start = placed
        forest.order[placed] = root
        placed += 1
        at = start
        while at < placed:
            child = first_child[forest.order[at]]
            while child >= 0:
                forest.order[placed] = child
                placed += 1
                child = next_child[child]
            at += 1
        forest.stack[trees, 0], forest.stack[trees, 1] = start, placed
        trees += 1
    forest.state[TREES] = trees
    # The tree of the lowest row is cut first.
    forest.stack[:trees] = forest.stack[:trees][::-1].copy()


@njit(cache=True)
def pop(forest: Forest) -> Integers:
    """Take a tree from the stack: its first place, and the one behind its last."""
    forest.state[TREES] -= 1
    return forest.stack[forest.state[TREES]]


@njit(cache=True)
def _push(forest: Forest, start: int, end: int) -> None:
    """Put a tree on the stack, unless it has no records."""
    if end > start:
        top = forest.state[TREES]
        forest.stack[top, 0], forest.stack[top, 1] = start, end
        forest.state[TREES] += 1


@njit(cache=True)
def make_group(forest: Forest, start: int, end: int, labels: Rows) -> None:
    """Make a whole tree a group."""
    for place in range(start, end):
        labels[forest.order[place]] = forest.state[GROUPS]
    forest.state[GROUPS] += 1
    forest.state[GROUPED] += end - start


@njit(cache=True)
def _mark_subtree(forest: Forest, start: int, end: int, child: int) -> None:
    """Mark a record and all below it, and cut its edge."""
    for place in range(start, end):
        row = forest.order[place]
        parent = forest.target[row]
        forest.mark[row] = row == child or (place > start and forest.mark[parent] == 1)
    forest.target[child] = -1


@njit(cache=True)
def _sort_marked(forest: Forest, start: int, end: int) -> int:
    """Put the marked records behind the others, each in their order; give where they begin."""
    kept, moved = start, 0
    for place in range(start, end):
        row = forest.order[place]
        if forest.mark[row] == 1:
            forest.spare[moved] = row
            moved += 1
        else:
            forest.order[kept] = row
            kept += 1
    forest.order[kept:end] = forest.spare[:moved]
    return kept


@njit(cache=True)
def cut(
    forest: Forest, start: int, end: int, k: int, parted: bool, child: int, labels: Rows
) -> None:
    """Cut a tree: as marked if it is parted, else at the edge of a child, else its branches off."""
    if not parted and child < 0:
        _push(forest, start, _strip_branches(forest, start, end, k, labels))
        return
    if not parted:
        _mark_subtree(forest, start, end, child)
    middle = _sort_marked(forest, start, end)
    _push(forest, start, middle)
    _push(forest, middle, end)


@njit(cache=True)
def _strip_branches(forest: Forest, start: int, end: int, k: int, labels: Rows) -> int:
    """Make groups of whole branches of the hub until fewer than 3 k records are left.

    No edge parts k from k records, so one vertex has only branches of fewer than k: its
    subtrees, and all that is not below it. Gives where the rest, which keeps the hub, ends.
    """
    order, target, sizes, branch = forest.order, forest.target, forest.sizes, forest.mark
    root = order[start]
    hub = root
    for place in range(start, end):
        if sizes[order[place]] >= k and target[order[place]] == hub:
            hub = order[place]
    # A branch is named by its record next to the hub, what is not below the hub by the root.
    left, filling = end - start, 0
    kept = start
    for place in range(start, end):
        row = order[place]
        if row == hub:
            branch[row] = row
            continue
        first = row == root or target[row] == hub
        branch[row] = row if first else branch[target[row]]
        if first:
            labels[row] = forest.state[GROUPS] if left >= 3 * k else -1
            if labels[row] >= 0:
                filling += end - start - sizes[hub] if row == root else sizes[row]
                if filling >= k:
                    left -= filling
                    forest.state[GROUPS] += 1
                    forest.state[GROUPED] += filling
                    filling = 0
        else:
            labels[row] = labels[branch[row]]
    if labels[root] >= 0:
        target[hub] = -1
    for place in range(start, end):
        row = order[place]
        if row == hub or labels[row] < 0:
            order[kept] = row
            kept += 1
    return kept
