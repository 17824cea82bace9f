"""V-MDAV: groups around the outermost records, grown while the next record is close enough.

Solanas and Martínez-Ballesté (2006), "V-MDAV: a multivariate microaggregation with variable
group size". The centre is that of all records and stays where it is. As long as k records are
free, the one furthest from the centre and the k - 1 free ones nearest to it form a group. The
group then takes the free record nearest to any of its members, again and again, while that
record is nearer to the group than gamma times its distance to the nearest other free record,
and the group has fewer than 2 k - 1. What is left in the end, fewer than k records, goes to the
groups with the nearest centres, which may have 2 k records or more then.

What the paper leaves open is settled so: ties go to the lowest row, or group; the last free
record, which has no other to be near to, is taken by a group that may still grow (gamma > 0);
left-over records find the centres that the groups had before any of them came.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.compile import njit
from shoal.kernels.groups.individual_ranking import stable_argsort
from shoal.kernels.space.neighbours import NOBODY, Tree, build, nearest, take_away

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

_RECORDS = 5_000  # grouped in about 50 ms


class VMdav:
    """The partition of records into groups of k to 2 k - 1, by Euclidean distance.

    Parameters
    ----------
    points : array of shape (records, columns)
    k : int
    gamma : float
        How readily a group grows: 0 gives groups of exactly k; the paper finds 0.2 good for
        scattered and 1.1 for clustered records.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [2.0], [3.0], [20.0], [21.0], [22.0]])
    >>> partition = VMdav(points, 3, 1.1)
    >>> while partition.advance() < 7:
    ...     pass
    >>> partition.labels.tolist()
    [1, 1, 1, 1, 0, 0, 0]
    """

    def __init__(self, points: Floats, k: int, gamma: float) -> None:
        self._points = np.ascontiguousarray(points, np.float64)
        self._k = k
        self._gamma_squared = gamma * gamma
        self._tree = build(self._points)
        self._outermost = stable_argsort(-_from_centre(self._points))
        self._state = np.zeros(3, np.int64)  # records grouped, groups, place in outermost
        self.labels = np.full(len(points), -1, np.int32)

    def advance(self) -> int:
        """Do about 50 ms of work; give how many records have their group."""
        _advance(
            self._points,
            self._tree,
            self._outermost,
            self._k,
            self._gamma_squared,
            self._state,
            self.labels,
            _RECORDS,
        )
        if 0 < len(self.labels) - self._state[0] < self._k:
            _join_left_over(self._points, self._state, self.labels)
        return int(self._state[0])


def _from_centre(points: Floats) -> Floats:
    """The squared distance of each record from the centre of all, summed column by column."""
    centre = points.mean(axis=0)
    distances = np.zeros(len(points))
    for column, value in enumerate(centre):
        distances += np.square(points[:, column] - value)
    return distances


@njit(cache=True)
def _advance(
    points: Floats,
    tree: Tree,
    outermost: Rows,
    k: int,
    gamma_squared: float,
    state: Integers,
    labels: Rows,
    records: int,
) -> None:
    """Form groups until fewer than k records are free, or ``records`` more have their group."""
    end = min(state[0] + records, len(labels))
    distances, rows = np.empty(2 * k - 1), np.empty(2 * k - 1, np.int32)
    members = np.empty(2 * k - 1, np.int32)
    while state[0] < end and len(labels) - state[0] >= k:
        while labels[outermost[state[2]]] >= 0:
            state[2] += 1
        seed = outermost[state[2]]
        members[0] = seed
        nearest(tree, points[seed], np.int64(seed), distances[: k - 1], members[1:k])
        for place in range(k):
            labels[members[place]] = state[1]
            take_away(tree, members[place])
        size = _grow(points, tree, k, gamma_squared, members, distances, rows)
        for place in range(k, size):
            labels[members[place]] = state[1]
        state[0] += size
        state[1] += 1


@njit(cache=True)
def _grow(
    points: Floats,
    tree: Tree,
    k: int,
    gamma_squared: float,
    members: Rows,
    distances: Floats,
    rows: Rows,
) -> int:
    """Add free records to the k members while they are close enough; give the new size."""
    distance, row = np.empty(1), np.empty(1, np.int32)
    size = k
    if gamma_squared == 0.0 or size == 2 * k - 1:
        return size
    # The nearest free record of each member, kept until that record is taken.
    for place in range(size):
        if nearest(tree, points[members[place]], NOBODY, distance, row) == 0:
            return size
        distances[place], rows[place] = distance[0], row[0]
    while True:
        best = 0
        for place in range(1, size):
            if distances[place] < distances[best] or (
                distances[place] == distances[best] and rows[place] < rows[best]
            ):
                best = place
        candidate, inside = rows[best], distances[best]
        others = nearest(tree, points[candidate], np.int64(candidate), distance, row)
        if others > 0 and not inside < gamma_squared * distance[0]:
            return size
        take_away(tree, candidate)
        members[size], distances[size], rows[size] = candidate, distance[0], row[0]
        size += 1
        if others == 0 or size == 2 * k - 1:
            return size
        for place in range(size):
            if rows[place] == candidate:
                nearest(tree, points[members[place]], NOBODY, distance, row)
                distances[place], rows[place] = distance[0], row[0]


@njit(cache=True)
def _join_left_over(points: Floats, state: Integers, labels: Rows) -> None:
    """Give each free record to the group whose centre is nearest."""
    columns = points.shape[1]
    centres = np.zeros((state[1], columns))
    sizes = np.zeros(state[1])
    for row in range(len(labels)):
        if labels[row] >= 0:
            sizes[labels[row]] += 1.0
            for column in range(columns):
                centres[labels[row], column] += points[row, column]
    for group in range(state[1]):
        for column in range(columns):
            centres[group, column] /= sizes[group]
    for row in range(len(labels)):
        if labels[row] >= 0:
            continue
        least = np.inf
        for group in range(state[1]):
            distance = 0.0
            for column in range(columns):
                gap = points[row, column] - centres[group, column]
                distance += gap * gap
            if distance < least or labels[row] < 0:
                least = distance
                labels[row] = group
    state[0] = len(labels)
