"""For each of some records of mixed type, the nearest others, as an intruder would link them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.arrays import Floats, Integers
from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH, bits, load, store
from shoal.kernels.space.few import Few, are_few
from shoal.kernels.space.mixed_distance import (
    Measure,
    distances,
    lower_bounds,
    open_windows,
    set_query,
)
from shoal.kernels.space.mixed_records import MixedRecords
from shoal.kernels.space.mixed_tree import ENTRY, GONE, ROW, SCORE, Tree, await_children, grow

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms


class Behind(NamedTuple):
    """Who is behind each record: how many, and which of them have a label that is asked for.

    ``counts[i]`` of those behind the record ``holders[i]`` have label ``l``, for every ``i``
    from ``starts[l]`` to below ``starts[l + 1]``; holders of a label ascend.
    """

    sizes: Integers
    starts: Integers
    holders: Integers
    counts: Integers


def behind(sizes: Integers, records: Integers, labels: Integers, asked: Integers) -> Behind:
    """Who is behind the records; only labels that somebody asks for are kept.

    ``sizes`` has the number behind each record; each of these is behind one of ``records`` and
    has a label, negative for none.
    """
    span = int(asked.max(initial=-1)) + 1
    wanted = np.zeros(span, np.bool_)
    wanted[asked[asked >= 0]] = True
    here = np.flatnonzero((labels >= 0) & (labels < span))
    here = here[wanted[labels[here]]]
    pairs, counts = np.unique(labels[here] * len(sizes) + records[here], return_counts=True)
    of_label, holders = np.divmod(pairs, max(1, len(sizes)))
    return Behind(sizes, np.searchsorted(of_label, np.arange(span + 1)), holders, counts)


def with_label(whom: Behind, labels: Integers, records: Integers) -> Integers:
    """How many of those behind each record have the label next to it."""
    of_label = np.repeat(np.arange(len(whom.starts) - 1), np.diff(whom.starts))
    held = np.append(of_label * len(whom.sizes) + whom.holders, -1)
    asked = labels * len(whom.sizes) + records
    at = np.searchsorted(held[:-1], asked)
    return np.where((labels >= 0) & (held[at] == asked), np.append(whom.counts, 0)[at], 0)


class _Asked(NamedTuple):
    """For whom links are sought, and which labels are asked for."""

    rows: Integers
    whom: Behind
    starts: Integers
    labels: Integers


class _Found(NamedTuple):
    """The links so far, as in :class:`NearestRecords`, and room for a search."""

    nearest: Integers
    gaps: Floats
    ties: Integers
    alike: Integers
    tied: Integers
    marks: Integers


class NearestRecords:
    """The nearest candidates of some rows; call ``advance`` until it returns their number.

    Both sides are in one table, so that they have the same codes and ranges; ``candidates`` ascend.
    ``asked[starts[i]:starts[i + 1]]`` are the labels that ``rows[i]`` asks for. Without ``whom``
    each record represents one without a label.

    Results are the nearest candidate of each row (the lowest among equally near ones), its
    dissimilarity (``gaps``), and how many are behind the candidates that are as near (``ties``): an
    intruder who picks one of them finds the right one, if it is among them, with a probability of
    ``1 / ties``. ``alike`` has for each of ``asked`` how many of these have the label.
    """

    def __init__(
        self,
        records: MixedRecords,
        rows: Integers,
        candidates: Integers,
        whom: Behind | None = None,
        starts: Integers | None = None,
        asked: Integers | None = None,
    ) -> None:
        none, every = np.empty(0, np.int64), records.values.shape[1]
        if whom is None:
            whom = behind(np.ones(every, np.int64), none, none, none)
        labels = none if asked is None else asked.astype(np.int64)
        starts = np.zeros(len(rows) + 1, np.int64) if starts is None else starts
        self._records, self._candidates = records, candidates
        self._asked = _Asked(rows, whom, starts, labels)
        self.nearest = np.full(len(rows), -1)
        self.gaps = np.full(len(rows), np.inf)
        self.ties = np.zeros(len(rows), np.int64)
        self.alike = np.zeros(len(labels), np.int64)
        links = self.nearest, self.gaps, self.ties, self.alike
        self._found = _Found(*links, np.empty(len(candidates), np.int64), np.full(every, -1))
        few = are_few(len(records.measure.presence), len(rows), len(candidates))
        self._tree = None if few else grow(records, candidates)
        self._done = 0

    def advance(self) -> int:
        """Link rows for a fraction of a second; return how many have been linked."""
        if self._tree is None:
            self._link_few()
        else:
            self._done = _link(self._tree, self._records, self._asked, self._found, self._done)
        return self._done

    def _link_few(self) -> None:
        """Link all rows by comparing each with every candidate."""
        few, candidates, asked = Few(self._records), self._candidates, self._asked
        for place, row in enumerate(asked.rows):
            few.ask(row)
            distances = few.distances(candidates)
            as_near = candidates[distances == distances.min(initial=np.inf)]
            if len(as_near):
                self.nearest[place], self.gaps[place] = as_near[0], distances.min()
            self.ties[place] = asked.whom.sizes[as_near].sum()
            for at in range(asked.starts[place], asked.starts[place + 1]):
                labels = np.full(len(as_near), asked.labels[at])
                self.alike[at] = with_label(asked.whom, labels, as_near).sum()
        self._done = len(asked.rows)


@njit(cache=True)
def _link(tree: Tree, records: MixedRecords, asked: _Asked, found: _Found, done: int) -> int:
    rows, whom, starts, labels = asked
    nearest, gaps, ties, alike, tied, marks = found
    met = 0
    while done < len(rows) and met < _STEP:
        set_query(tree.query, records, rows[done])
        nearest[done], gaps[done], count, visits = _nearest_one(tree, records.measure, tied)
        for i in range(count):
            ties[done] += whom.sizes[tied[i]]
            marks[tied[i]] = done
        for at in range(starts[done], starts[done + 1]):
            if labels[at] >= 0:
                alike[at] = _with_label(whom, labels[at], tied, count, marks, done)
        done, met = done + 1, met + visits + (starts[done + 1] - starts[done]) // 16
    return done


@njit(cache=True)
def _with_label(
    whom: Behind, label: int, tied: Integers, count: int, marks: Integers, mark: int
) -> int:
    """How many of those behind the tied records have a label: by its holders, or by the records."""
    first, last, found = whom.starts[label], whom.starts[label + 1], 0
    if last - first <= 8 * count:
        for at in range(first, last):
            if marks[whom.holders[at]] == mark:
                found += whom.counts[at]
        return found
    for i in range(count):
        at = first + np.searchsorted(whom.holders[first:last], tied[i])
        if at < last and whom.holders[at] == tied[i]:
            found += whom.counts[at]
    return found


@njit(cache=True)
def _nearest_one(tree: Tree, measure: Measure, tied: Integers) -> tuple[int, float, int, int]:
    """The lowest of the nearest rows, its distance, how many are ``tied``, how many were met."""
    query, queue, leaves, rows = tree.query, tree.queue, len(tree.values), tree.values.shape[1] - 3
    if len(measure.tables) > 0:
        open_windows(query, measure, np.bool_(False))
    best, best_row, count = np.inf, GONE, 0
    queue[SCORE, 0], queue[ROW, 0], queue[ENTRY, 0] = np.inf, 0.0, tree.links.shape[1] - 1
    waiting, met = 1, 0
    while waiting > 0:
        waiting -= 1
        if -queue[SCORE, waiting] > best:
            continue
        entry, met = int(queue[ENTRY, waiting]), met + 1
        if entry < leaves:
            found = distances(query, measure, tree.values, tree.codes, entry)
            hits = bits((found <= best) & (load(tree.values, entry, rows) < GONE))
            store(found, query.room, 0, 0)
            for lane in range(WIDTH):
                gap, row = query.room[0, 0, lane], tree.values[entry, rows, lane]
                if not hits >> lane & 1 or gap > best:
                    continue
                if gap < best:
                    best, best_row, count = gap, row, 0
                best_row, tied[count] = min(best_row, row), int(row)
                count += 1
        else:
            node = entry - leaves
            bounds = lower_bounds(query, measure, tree.edges, tree.code_edges, node)
            hits = bits((bounds <= best) & (load(tree.edges, node, 2 * rows) < GONE))
            waiting = await_children(tree, waiting, entry, bounds, hits, -1.0)
    return int(best_row), best, count, met
