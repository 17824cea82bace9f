"""For each of some records of mixed type the nearest of others, as an intruder would link them."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import njit
from shoal.kernels.lanes import WIDTH, bits, load, store
from shoal.kernels.space.few import Few, are_few
from shoal.kernels.space.mixed_distance import (
    Floats,
    Integers,
    Measure,
    distances,
    lower_bounds,
    open_windows,
    set_query,
)
from shoal.kernels.space.mixed_records import MixedRecords
from shoal.kernels.space.mixed_tree import (
    CHILD,
    ENTRY,
    GONE,
    ROW,
    SCORE,
    Tree,
    await_children,
    grow,
)

_STEP = 400_000  # leaves and nodes that a call may compare with a query: about 50 ms


class NearestRecords:
    """The nearest candidates of some rows; call ``advance`` until it gives their number.

    Parameters
    ----------
    records : MixedRecords
        Both sides in one table, so that they have the same codes and ranges.
    rows : array of int
        The rows to link.
    candidates : array of int
        The rows, in ascending order, among which the nearest are sought.
    labels : array of int, optional
        What each record of ``records`` tells about somebody, as a number; negative for nothing.

    Attributes
    ----------
    nearest : array of int64
        For each of ``rows`` the nearest candidate, the lowest of equally near ones.
    gaps : array of float64
        How unlike it is.
    ties : array of int64
        How many candidates are as near. An intruder who picks one of them finds the right one, if
        it is among them, with a probability of ``1 / ties``.
    alike : array of int64
        How many of these have the label of the row; 0 without labels.

    Examples
    --------
    >>> from shoal.kernels.space.mixed_records import gower
    >>> original, masked = np.array([[1.0], [4.0]]), np.array([[0.0], [2.0], [2.0]])
    >>> records = gower(np.vstack([original, masked]), np.zeros((5, 0), int))
    >>> link = NearestRecords(records, np.array([0, 1]), np.array([2, 3, 4]))
    >>> link.advance()
    2
    >>> link.nearest.tolist(), link.gaps.tolist(), link.ties.tolist()
    ([2, 3], [0.25, 0.5], [3, 2])
    """

    def __init__(
        self,
        records: MixedRecords,
        rows: Integers,
        candidates: Integers,
        labels: Integers | None = None,
    ) -> None:
        self.nearest = np.full(len(rows), -1)
        self.gaps = np.full(len(rows), np.inf)
        self.ties = np.zeros(len(rows), np.int64)
        self.alike = np.zeros(len(rows), np.int64)
        self._records, self._rows = records, rows
        self._labels = np.empty(0, np.int64) if labels is None else labels
        self._candidates = candidates
        few = are_few(len(records.measure.presence), len(rows), len(candidates))
        self._tree = None if few else grow(records, candidates)
        self._done = 0

    def advance(self) -> int:
        """Link rows for a fraction of a second; give how many have been linked."""
        if self._tree is None:
            self._link_few()
            return self._done
        self._done = _link(
            self._tree,
            self._records,
            self._rows,
            self._labels,
            self._done,
            self.nearest,
            self.gaps,
            self.ties,
            self.alike,
        )
        return self._done

    def _link_few(self) -> None:
        """Link all rows, comparing each with every candidate."""
        few, candidates = Few(self._records), self._candidates
        for place, row in enumerate(self._rows):
            few.ask(row)
            distances = few.distances(candidates)
            as_near = candidates[distances == distances.min(initial=np.inf)]
            if len(as_near):
                self.nearest[place], self.gaps[place] = as_near[0], distances.min()
            self.ties[place] = len(as_near)
            if len(self._labels) and self._labels[row] >= 0:
                self.alike[place] = np.count_nonzero(self._labels[as_near] == self._labels[row])
        self._done = len(self._rows)


@njit(cache=True)
def _link(
    tree: Tree,
    records: MixedRecords,
    rows: Integers,
    labels: Integers,
    done: int,
    nearest: Integers,
    gaps: Floats,
    ties: Integers,
    alike: Integers,
) -> int:
    met = 0
    while done < len(rows) and met < _STEP:
        set_query(tree.query, records.measure, records.values, records.codes, rows[done])
        label = labels[rows[done]] if len(labels) > 0 else -1
        nearest[done], gaps[done], ties[done], alike[done], visits = _nearest_one(
            tree, records.measure, labels, label
        )
        done, met = done + 1, met + visits
    return done


@njit(cache=True)
def _nearest_one(
    tree: Tree, measure: Measure, labels: Integers, label: int
) -> tuple[int, float, int, int, int]:
    """The lowest of the nearest rows, its distance, how many are as near, and what was met.

    Before what was met: how many of those as near have the label.
    """
    query, queue, leaves, rows = tree.query, tree.queue, len(tree.values), tree.values.shape[1] - 3
    if len(measure.tables) > 0:
        open_windows(query, measure, np.bool_(False))
    best, best_row, ties, alike = np.inf, GONE, 0, 0
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
                    best, best_row, ties, alike = gap, row, 0, 0
                best_row, ties = min(best_row, row), ties + 1
                if label >= 0 and labels[int(row)] == label:
                    alike += 1
        else:
            node = entry - leaves
            bounds = lower_bounds(query, measure, tree.edges, tree.code_edges, node)
            hits = bits((bounds <= best) & (load(tree.edges, node, 2 * rows) < GONE))
            store(bounds, query.room, 0, 0)
            first = tree.links[CHILD, entry]
            waiting = await_children(
                queue, waiting, query.room, tree.edges, node, 2 * rows, hits, first, -1.0
            )
    return int(best_row), best, ties, alike, met
