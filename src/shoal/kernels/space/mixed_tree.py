"""A tree of records of mixed type: it finds the furthest and the nearest, and forgets records.

Leaves hold up to 16 records and nodes up to 16 leaves or nodes, each with a box around its
records. A query meets 16 at once. The most promising child is entered first, and a child that
cannot hold anything better than what was found is never entered. The result is that of a scan
over all records, with ties going to the lower row.

Edges of boxes are rounded outwards to 32 bits, which halves the memory that a query reads.

:func:`scan` reads every record instead, sixteen at a time, with the same result. It is faster
if the boxes of a tree separate little: many independent columns, few records, large groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.arrays import Flags, Floats, Integers, Singles
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH, bits, choose, greatest, least, load, store
from shoal.kernels.space.mixed_distance import (
    Codes,
    Measure,
    Query,
    distances,
    empty_query,
    lower_bounds,
    open_windows,
    partial_sums,
    set_query,
    upper_bounds,
)
from shoal.kernels.space.mixed_order import leaf_starts, run_starts
from shoal.kernels.space.mixed_records import MixedRecords

_SAMPLE = 1_000  # records from which the middle is taken
_NO_CODE = 2**32 - 1  # at least as large as any code of any type
_LARGEST = np.finfo(np.float32).max

GONE = np.inf
"""The row of a lane without a record."""
CHILD, PARENT, LANE = 0, 1, 2
"""The fields of ``Tree.links`` for a leaf or node."""
SCORE, ROW, ENTRY = 0, 1, 2
"""The fields of ``Tree.queue`` for a leaf or node."""


class Tree(NamedTuple):
    """Records in leaves, and boxes around them.

    After the numeric columns, leaves have the row of a record and the numeric and the nominal
    part of its distance from the middle. After two edges per numeric column, low and high, nodes
    have the lowest row, and the greatest distance, numeric and nominal part.
    """

    values: Floats  # by leaf, column, lane
    codes: Codes
    edges: Singles  # by node, edge, lane
    code_edges: Codes
    links: Integers  # first child, parent and lane there of each leaf, then of each node
    places: Integers  # leaf * 16 + lane of each row
    worn: Flags  # leaves that lost records since their boxes were computed
    query: Query
    queue: Floats  # entries still to visit, the best last: score, lowest row, entry


def grow(records: MixedRecords, rows: Integers) -> Tree:
    """A tree of some rows, given in ascending order."""
    rows, starts, depths = leaf_starts(records, rows)
    links, levels = _link(depths)
    tree = empty_tree(records, len(starts), links, WIDTH * levels)
    tree.edges[:, ::2], tree.edges[:, 1::2], tree.edges[:, -2] = np.inf, -np.inf, -np.inf
    tree.code_edges[:, ::2], tree.code_edges[:, 1::2] = np.iinfo(tree.codes.dtype).max, 0
    _set_middle(tree.query, records, rows)
    fill(tree, records, rows, np.append(starts, len(rows)))
    return tree


def empty_tree(records: MixedRecords, leaves: int, links: Integers, room: int) -> Tree:
    """So many leaves under nodes, and room for a queue; without any records yet."""
    columns, code_columns = len(records.values), len(records.codes)
    nodes, code_type = links.shape[1] - leaves, records.codes.dtype
    return Tree(
        np.zeros((leaves, columns + 3, WIDTH)),
        np.zeros((leaves, code_columns, WIDTH), code_type),
        np.empty((nodes, 2 * columns + 4, WIDTH), np.float32),
        np.empty((nodes, 2 * code_columns, WIDTH), code_type),
        links,
        np.full(records.values.shape[1], -1),
        np.ones(leaves, np.bool_),
        empty_query(records.measure, code_type),
        np.zeros((3, room)),
    )


def _link(depths: Integers) -> tuple[Integers, int]:
    """The links of leaves separated at some depths, and the number of levels of leaves and nodes.

    Entries are numbered level by level, the leaves first and the root last.
    """
    links, entries, levels = np.zeros((3, 2 * len(depths) + 1), np.int64), 0, 1
    while len(depths) > 1 or levels == 1:
        first = run_starts(depths)
        run = np.repeat(np.arange(len(first)), np.diff(first, append=len(depths)))
        above = entries + len(depths)
        links[CHILD, above : above + len(first)] = entries + first
        links[PARENT, entries:above] = above + run
        links[LANE, entries:above] = np.arange(len(depths)) - first[run]
        entries, depths, levels = above, depths[first], levels + 1
    links[PARENT, entries] = -1
    return links[:, : entries + 1].copy(), levels


def _set_middle(query: Query, records: MixedRecords, rows: Integers) -> None:
    """Medians and modes of some rows; any record would do, but this one makes bounds tight."""
    some = rows[:: -(-len(rows) // _SAMPLE)]
    for column, at in enumerate(records.measure.presence):
        have = some if at < 0 else some[records.codes[at, some] != 0]
        nominal = column - len(query.values)
        if len(have) and nominal < 0:
            query.middle_values[column] = np.median(records.values[column, have])
        elif len(have):
            query.middle_codes[nominal] = np.bincount(records.codes[nominal, have]).argmax()
    query.values[:], query.codes[:] = query.middle_values, query.middle_codes


@njit(cache=True)
def fill(tree: Tree, records: MixedRecords, rows: Integers, starts: Integers) -> None:
    """Put the rows into the leaves, and boxes around them; the query is the middle."""
    values, codes, numeric = records.values, records.codes, len(records.values)
    for leaf in range(len(tree.values)):
        for lane in range(WIDTH):
            tree.values[leaf, numeric, lane] = GONE
        for lane in range(starts[leaf + 1] - starts[leaf]):
            row = rows[starts[leaf] + lane]
            tree.places[row] = leaf * WIDTH + lane
            tree.values[leaf, numeric, lane] = row
            for column in range(numeric):
                tree.values[leaf, column, lane] = values[column, row]
            for column in range(len(codes)):
                tree.codes[leaf, column, lane] = codes[column, row]
        sums, differing, _ = partial_sums(
            tree.query, records.measure, tree.values, tree.codes, leaf
        )
        store(sums, tree.values, leaf, numeric + 1)
        store(differing, tree.values, leaf, numeric + 2)
        tighten(tree, leaf)


@njit(cache=True)
def compare_all(tree: Tree, measure: Measure, found: Floats) -> None:
    """The dissimilarity of the query and every row."""
    for leaf in range(len(tree.values)):
        store(distances(tree.query, measure, tree.values, tree.codes, leaf), tree.query.room, 0, 0)
        for lane in range(WIDTH):
            row = tree.values[leaf, tree.values.shape[1] - 3, lane]
            if row != GONE:
                found[int(row)] = tree.query.room[0, 0, lane]


@njit(cache=True)
def forget(tree: Tree, row: int) -> None:
    """Remove a row from its leaf, whose boxes must then be tightened."""
    leaf, lane = tree.places[row] // WIDTH, tree.places[row] % WIDTH
    tree.values[leaf, tree.values.shape[1] - 3, lane] = GONE
    tree.worn[leaf] = True


@njit(cache=True)
def tighten(tree: Tree, leaf: int) -> None:
    """Make the boxes around a leaf fit its content."""
    edges, links, numeric = tree.edges, tree.links, tree.values.shape[1] - 3
    rows = load(tree.values, leaf, numeric)
    held = rows < GONE
    for column in range(numeric):
        value = load(tree.values, leaf, column)
        _climb(edges, links, leaf, 2 * column, _down(least(choose(held, value, np.inf))), True)
        _climb(
            edges, links, leaf, 2 * column + 1, _up(greatest(choose(held, value, -np.inf))), False
        )
    sums, differing = load(tree.values, leaf, numeric + 1), load(tree.values, leaf, numeric + 2)
    last = 2 * numeric
    _climb(edges, links, leaf, last, _down(least(rows)), True)
    _climb(
        edges, links, leaf, last + 1, _up(greatest(choose(held, sums + differing, -np.inf))), False
    )
    _climb(edges, links, leaf, last + 2, _up(greatest(choose(held, sums, -np.inf))), False)
    _climb(edges, links, leaf, last + 3, _up(greatest(choose(held, differing, -np.inf))), False)
    for column in range(tree.codes.shape[1]):
        code = load(tree.codes, leaf, column)
        low, high = choose(held, code, _NO_CODE), choose(held, code, 0)
        _climb(tree.code_edges, links, leaf, 2 * column, least(low), True)
        _climb(tree.code_edges, links, leaf, 2 * column + 1, greatest(high), False)
    tree.worn[leaf] = False


@njit(cache=True, forceinline=True)
def _climb(edges: Any, links: Integers, entry: int, edge: int, value: Any, is_low: bool) -> None:
    """Set an edge of a leaf or node in its parent, and continue there while it changes."""
    first_node = links.shape[1] - len(edges)
    while links[PARENT, entry] >= 0:
        above, lane = links[PARENT, entry], links[LANE, entry]
        node = above - first_node
        if edges[node, edge, lane] == value:
            break
        edges[node, edge, lane] = value
        beside = load(edges, node, edge)
        value = least(beside) if is_low else greatest(beside)
        entry = above


@njit(cache=True, forceinline=True)
def _down(value: float) -> Any:
    """A float of 32 bits that is not greater."""
    narrow = np.float32(value)
    if narrow > value:
        narrow = np.float32(value - abs(value) * 2.0**-23 - 1e-45)
    return _LARGEST if narrow == np.inf and value < np.inf else narrow


@njit(cache=True, forceinline=True)
def _up(value: float) -> Any:
    return -_down(-value)


@njit(cache=True)
def furthest(tree: Tree, measure: Measure) -> tuple[int, int]:
    """The row that is furthest from the query, and how many leaves and nodes the query met."""
    query, queue, leaves, rows = tree.query, tree.queue, len(tree.values), tree.values.shape[1] - 3
    if len(measure.tables) > 0:
        open_windows(query, measure, np.bool_(True))
    best, best_row = -1.0, GONE
    queue[SCORE, 0], queue[ROW, 0], queue[ENTRY, 0] = np.inf, 0.0, tree.links.shape[1] - 1
    waiting, met = 1, 0
    while waiting > 0:
        waiting -= 1
        bound, row = queue[SCORE, waiting], queue[ROW, waiting]
        if bound < best or (bound == best and row > best_row):
            continue
        entry, met = int(queue[ENTRY, waiting]), met + 1
        if entry < leaves:
            found = distances(query, measure, tree.values, tree.codes, entry)
            hits = bits((found >= best) & (load(tree.values, entry, rows) < GONE))
            store(found, query.room, 0, 0)
            lane = 0
            while hits >> lane:
                if hits >> lane & 1:
                    gap, row = query.room[0, 0, lane], tree.values[entry, rows, lane]
                    if gap > best or (gap == best and row < best_row):
                        best, best_row = gap, row
                lane += 1
        else:
            node = entry - leaves
            bounds = upper_bounds(query, measure, tree.edges, tree.code_edges, node)
            hits = bits((bounds >= best) & (load(tree.edges, node, 2 * rows) < GONE))
            waiting = await_children(tree, waiting, entry, bounds, hits, 1.0)
    return int(best_row), met


@njit(cache=True)
def nearest(tree: Tree, measure: Measure, but: int, gaps: Floats, found_rows: Floats) -> int:
    """The rows that are nearest to the query, except one, and their distances.

    They come as a heap, the furthest of them first. There must be enough. Returns how many leaves
    and nodes the query met.
    """
    query, queue, leaves, rows = tree.query, tree.queue, len(tree.values), tree.values.shape[1] - 3
    if len(measure.tables) > 0:
        open_windows(query, measure, np.bool_(False))
    for i in range(len(gaps)):
        gaps[i], found_rows[i] = np.inf, GONE
    queue[SCORE, 0], queue[ROW, 0], queue[ENTRY, 0] = np.inf, 0.0, tree.links.shape[1] - 1
    waiting, met = 1, 0
    while waiting > 0 and len(gaps) > 0:
        waiting -= 1
        bound, row = -queue[SCORE, waiting], queue[ROW, waiting]
        if bound > gaps[0] or (bound == gaps[0] and row > found_rows[0]):
            continue
        entry, met = int(queue[ENTRY, waiting]), met + 1
        if entry < leaves:
            found = distances(query, measure, tree.values, tree.codes, entry)
            theirs = load(tree.values, entry, rows)
            hits = bits((found <= gaps[0]) & (theirs < GONE) & (theirs != but))
            store(found, query.room, 0, 0)
            lane = 0
            while hits >> lane:
                if hits >> lane & 1:
                    take(gaps, found_rows, query.room[0, 0, lane], tree.values[entry, rows, lane])
                lane += 1
        else:
            node = entry - leaves
            bounds = lower_bounds(query, measure, tree.edges, tree.code_edges, node)
            hits = bits((bounds <= gaps[0]) & (load(tree.edges, node, 2 * rows) < GONE))
            waiting = await_children(tree, waiting, entry, bounds, hits, -1.0)
    return met


@njit(cache=True)
def list_nearest(tree: Tree, records: MixedRecords, start: int, end: int, near: Any) -> None:
    """Write the neighbors of the records of some leaves into their rows of a list, nearest first.

    There must be enough. Among equally near records, the lowest rows are listed.
    """
    gaps, found = np.empty(near.shape[1]), np.empty(near.shape[1])
    for leaf in range(start, end):
        for value in tree.values[leaf, tree.values.shape[1] - 3]:
            if value == GONE:
                continue
            row = int(value)
            set_query(tree.query, records, row)
            nearest(tree, records.measure, row, gaps, found)
            order = np.argsort(gaps)
            for i in range(len(gaps)):
                near[row, i] = int(found[order[i]])


@njit(cache=True, forceinline=True)
def await_children(
    tree: Tree, waiting: int, entry: int, bounds: Any, hits: int, sign: float
) -> int:
    """Queue the children with a hit; the greatest score and the lowest row come last."""
    queue, edges, room, first = tree.queue, tree.edges, tree.query.room, tree.links[CHILD, entry]
    node, rows = entry - len(tree.values), edges.shape[1] - 4
    bottom, lane = waiting, 0
    store(bounds, room, 0, 0)
    while hits >> lane:
        if hits >> lane & 1:
            score, row, at = sign * room[0, 0, lane], edges[node, rows, lane], waiting
            while at > bottom and (
                queue[SCORE, at - 1] > score
                or (queue[SCORE, at - 1] == score and queue[ROW, at - 1] < row)
            ):
                queue[SCORE, at], queue[ROW, at] = queue[SCORE, at - 1], queue[ROW, at - 1]
                queue[ENTRY, at] = queue[ENTRY, at - 1]
                at -= 1
            queue[SCORE, at], queue[ROW, at], queue[ENTRY, at] = score, row, first + lane
            waiting += 1
        lane += 1
    return waiting


@njit(cache=True, forceinline=True)
def take(gaps: Floats, rows: Floats, gap: float, row: float) -> None:
    """Replace the furthest row of the heap by a row, if it is nearer."""
    if gap > gaps[0] or (gap == gaps[0] and row > rows[0]):
        return
    at = 0
    while 2 * at + 1 < len(gaps):
        child = 2 * at + 1
        other = child + 1
        if other < len(gaps) and (
            gaps[other] > gaps[child] or (gaps[other] == gaps[child] and rows[other] > rows[child])
        ):
            child = other
        if gaps[child] < gap or (gaps[child] == gap and rows[child] < row):
            break
        gaps[at], rows[at] = gaps[child], rows[child]
        at = child
    gaps[at], rows[at] = gap, row


def pack(records: MixedRecords, rows: Integers) -> Tree:
    """Some rows, in the order of the leaves of a tree, in full leaves without boxes above them."""
    leaves = -(-len(rows) // WIDTH)
    packed = empty_tree(records, leaves, np.full((3, leaves), -1), 1)
    starts = np.append(np.arange(0, len(rows), WIDTH), len(rows))
    fill(packed, records, rows, starts)
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
    """The rows nearest to the query, as from ``nearest`` of a tree; and the furthest row.

    One pass does both. It goes around once from leaf ``first``: if that is near the query, few
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
