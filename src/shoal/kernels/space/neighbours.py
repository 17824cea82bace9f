"""The nearest records by Euclidean distance, exactly, from a tree that records can leave.

A kd-tree whose nodes halve the records: node i has the children 2 i + 1 and 2 i + 2, and all
leaves lie on one level. The records of a leaf lie side by side, column by column, so that their
distances are computed together. Every node knows the box of its records. A box's distance is
summed in the same order as a record's, and rounding is monotone, so it is never above the
distance of a record inside: what is cut off could not have been among the nearest.

Ties go to the lowest row. So that equal records do not make a search visit all of them, a node
also knows the lowest row that is still in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]

_LANES = 16  # records in a leaf, at most: two registers of the widest kind
_NO_ROW = np.int32(2**31 - 1)
_DEPTH = 128

NOBODY = np.int64(-1)
"""For :func:`nearest` to leave nobody out. Rows to leave out are int64: compiled once for all."""


class Tree(NamedTuple):
    """Records in leaves, boxes of nodes, and room to search in."""

    blocks: Floats  # leaf, column, lane; infinite where there is no record
    rows: Rows  # leaf, lane; -1 where there is no record
    places: Rows  # row: leaf times lanes plus lane
    low: Floats  # node, column
    high: Floats
    lowest: Rows  # node: the lowest row that is in it
    stack: Rows
    bounds: Floats
    lanes: Floats


def build(points: Floats) -> Tree:
    """A tree over all records of ``points``, which it copies.

    Examples
    --------
    >>> import numpy as np
    >>> tree = build(np.array([[0.0], [5.0], [6.0], [5.0]]))
    >>> distances, rows = np.empty(2), np.empty(2, np.int32)
    >>> nearest(tree, np.array([5.0]), NOBODY, distances, rows)
    2
    >>> rows.tolist(), distances.tolist()
    ([1, 3], [0.0, 0.0])
    """
    count, columns = points.shape
    levels = 0
    while count > _LANES << levels:
        levels += 1
    leaves, nodes = 1 << levels, (2 << levels) - 1
    tree = Tree(
        blocks=np.full((leaves, columns, _LANES), np.inf),
        rows=np.full((leaves, _LANES), -1, np.int32),
        places=np.empty(count, np.int32),
        low=np.empty((nodes, columns)),
        high=np.empty((nodes, columns)),
        lowest=np.full(nodes, _NO_ROW, np.int32),
        stack=np.empty(_DEPTH, np.int32),
        bounds=np.empty(_DEPTH),
        lanes=np.empty(_LANES),
    )
    rows = np.arange(count, dtype=np.int32)
    _build(tree, np.array(points, np.float64, order="C"), rows, np.empty((nodes, 2), np.int32))
    return tree


@njit(cache=True)
def _build(tree: Tree, points: Floats, rows: Rows, ranges: Rows) -> None:
    """Halve the records from the root down, then fill the leaves; shuffles points and rows."""
    leaves = len(tree.rows)
    ranges[0, 0], ranges[0, 1] = 0, len(rows)
    for node in range(2 * leaves - 1):
        start, end = ranges[node, 0], ranges[node, 1]
        column = _enclose(tree, node, points[start:end])
        for place in range(start, end):
            tree.lowest[node] = min(tree.lowest[node], rows[place])
        if node < leaves - 1:
            middle = (start + end) // 2
            _halve(points, rows, start, end, middle, column)
            ranges[2 * node + 1, 0], ranges[2 * node + 1, 1] = start, middle
            ranges[2 * node + 2, 0], ranges[2 * node + 2, 1] = middle, end
        else:
            leaf = node - (leaves - 1)
            for lane in range(end - start):
                tree.rows[leaf, lane] = rows[start + lane]
                tree.places[rows[start + lane]] = leaf * _LANES + lane
                for other in range(points.shape[1]):
                    tree.blocks[leaf, other, lane] = points[start + lane, other]


@njit(cache=True)
def _enclose(tree: Tree, node: int, points: Floats) -> int:
    """Set the box of a node; give its widest column."""
    low, high = tree.low[node], tree.high[node]
    low[:] = np.inf
    high[:] = -np.inf
    for place in range(len(points)):
        for column in range(points.shape[1]):
            low[column] = min(low[column], points[place, column])
            high[column] = max(high[column], points[place, column])
    widest = 0
    for column in range(points.shape[1]):
        if high[column] - low[column] > high[widest] - low[widest]:
            widest = column
    return widest


@njit(cache=True)
def _halve(points: Floats, rows: Rows, start: int, end: int, middle: int, column: int) -> None:
    """Quickselect: no record before ``middle`` has a larger value than one from there on."""
    first, last = start, end - 1
    while first < last:
        # Not the first and the last: columns that rise and then fall would take n passes.
        quarter = (last - first) // 4
        one, two = points[first + quarter, column], points[last - quarter, column]
        pivot = max(min(one, two), min(max(one, two), points[(first + last) // 2, column]))
        left, right = first, last
        while left <= right:
            while points[left, column] < pivot:
                left += 1
            while points[right, column] > pivot:
                right -= 1
            if left <= right:
                for other in range(points.shape[1]):
                    moved = points[left, other]
                    points[left, other] = points[right, other]
                    points[right, other] = moved
                rows[left], rows[right] = rows[right], rows[left]
                left += 1
                right -= 1
        if middle <= right:
            last = right
        elif middle >= left:
            first = left
        else:
            return


@njit(cache=True)
def _before(distance: float, row: int, other_distance: float, other_row: int) -> bool:
    return distance < other_distance or (distance == other_distance and row < other_row)


@njit(cache=True)
def _box_distance(tree: Tree, node: int, point: Floats) -> float:
    total = 0.0
    for column in range(len(point)):
        below = tree.low[node, column] - point[column]
        above = point[column] - tree.high[node, column]
        gap = max(max(below, above), 0.0)
        total += gap * gap
    return total


@njit(cache=True)
def nearest(tree: Tree, point: Floats, skip: int, distances: Floats, rows: Rows) -> int:
    """The records nearest to ``point`` but ``skip``, as many as fit, nearest first.

    Fills ``distances`` (squared) and ``rows``, by distance and then row. Gives how many there
    are: fewer than fit only where the tree has no more.
    """
    wanted, found = len(rows), np.int64(0)
    inner = len(tree.rows) - 1
    worst = np.inf
    tree.stack[0], tree.bounds[0] = 0, 0.0
    top = 1
    while top > 0:
        top -= 1
        node, bound = tree.stack[top], tree.bounds[top]
        if tree.lowest[node] == _NO_ROW or (
            found == wanted and not _before(bound, tree.lowest[node], worst, rows[wanted - 1])
        ):
            continue
        if node >= inner:
            found = _insert(tree, node - inner, point, skip, distances, rows, found)
            if found == wanted:
                worst = distances[wanted - 1]
            continue
        near, far = 2 * node + 1, 2 * node + 2
        near_bound = _box_distance(tree, near, point)
        far_bound = _box_distance(tree, far, point)
        if _before(far_bound, tree.lowest[far], near_bound, tree.lowest[near]):
            near, far, near_bound, far_bound = far, near, far_bound, near_bound
        if far_bound <= worst:
            tree.stack[top], tree.bounds[top] = far, far_bound
            top += 1
        if near_bound <= worst:
            tree.stack[top], tree.bounds[top] = near, near_bound
            top += 1
    return int(found)


@njit(cache=True, fastmath={"nnan", "nsz"})
def _insert(
    tree: Tree, leaf: int, point: Floats, skip: int, distances: Floats, rows: Rows, found: int
) -> int:
    """Insert the records of a leaf into the sorted list of the nearest so far."""
    wanted = len(rows)
    block, lanes = tree.blocks[leaf], tree.lanes
    for lane in range(_LANES):
        lanes[lane] = 0.0
    for column in range(len(point)):
        value = point[column]
        for lane in range(_LANES):
            gap = block[column, lane] - value
            lanes[lane] += gap * gap
    for lane in range(_LANES):
        total, row = lanes[lane], tree.rows[leaf, lane]
        if found == wanted and total > distances[wanted - 1]:
            continue
        if row < 0 or row == skip:
            continue
        if found < wanted:
            at = found
            found += 1
        elif _before(total, row, distances[wanted - 1], rows[wanted - 1]):
            at = wanted - 1
        else:
            continue
        while at > 0 and _before(total, row, distances[at - 1], rows[at - 1]):
            distances[at] = distances[at - 1]
            rows[at] = rows[at - 1]
            at -= 1
        distances[at] = total
        rows[at] = row
    return int(found)


@njit(cache=True)
def take_away(tree: Tree, row: int) -> None:
    """Remove a record that is in the tree; boxes stay as they are."""
    leaf, lane = divmod(tree.places[row], _LANES)
    tree.rows[leaf, lane] = -1
    lowest = _NO_ROW
    for other in range(_LANES):
        if tree.rows[leaf, other] >= 0:
            lowest = min(lowest, tree.rows[leaf, other])
    node = leaf + len(tree.rows) - 1
    while tree.lowest[node] != lowest:
        tree.lowest[node] = lowest
        if node == 0:
            return
        node = (node - 1) // 2
        lowest = min(tree.lowest[2 * node + 1], tree.lowest[2 * node + 2])
