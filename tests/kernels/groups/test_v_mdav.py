"""V-MDAV against its definition, written down with numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.groups import v_mdav as _v_mdav
from shoal.kernels.groups.v_mdav import VMdav
from shoal.kernels.space.mixed_records import squared_euclidean

from ..compared import points_of

Floats = npt.NDArray[np.float64]


KINDS = ["normal", "ties", "zeros", "copies", "constant", "skewed", "clustered"]


def away(points: Floats, point: Floats) -> Floats:
    distances = np.zeros(len(points))
    for column in range(points.shape[1]):
        distances += (points[:, column] - point[column]) ** 2
    return distances


def reference(points: Floats, k: int, gamma: float) -> npt.NDArray[np.int64]:
    labels = np.full(len(points), -1)
    from_centre = away(points, points.mean(axis=0))
    groups = 0

    def free() -> npt.NDArray[np.int64]:
        return np.flatnonzero(labels < 0)

    while len(free()) >= k:
        seed = free()[from_centre[free()].argmax()]
        labels[seed] = groups
        labels[free()[away(points[free()], points[seed]).argsort(kind="stable")[: k - 1]]] = groups
        while gamma > 0 and len(free()) and (labels == groups).sum() < 2 * k - 1:
            members = points[labels == groups]
            inside = np.min([away(points[free()], member) for member in members], axis=0)
            candidate = free()[inside.argmin()]
            others = free()[free() != candidate]
            outside = away(points[others], points[candidate]).min(initial=np.inf)
            if not inside.min() < gamma * gamma * outside:
                break
            labels[candidate] = groups
        groups += 1
    centres = [points[labels == group].sum(axis=0) for group in range(groups)]
    centres = [centre / (labels == group).sum() for group, centre in enumerate(centres)]
    left = free()
    labels[left] = [away(np.array(centres), points[row]).argmin() for row in left]
    return labels


def run(points: Floats, k: int, gamma: float) -> npt.NDArray[np.int32]:
    partition = VMdav(squared_euclidean(points), k, gamma * gamma)
    while partition.advance() < len(points):
        pass
    return partition.labels


def agrees(points: Floats, k: int, gamma: float) -> None:
    labels = run(points, k, gamma)
    assert labels.dtype == np.int32
    assert np.bincount(labels).min() >= k
    np.testing.assert_array_equal(labels, reference(points, k, gamma))


@given(
    st.sampled_from(KINDS),
    st.integers(2, 80),
    st.integers(1, 4),
    st.integers(2, 9),
    st.sampled_from([0.0, 0.2, 0.8, 1.1, 5.0]),
    st.integers(0, 9999),
)
def test_groups_equal_the_reference(
    kind: str, rows: int, columns: int, k: int, gamma: float, seed: int
) -> None:
    agrees(points_of(kind, rows, columns, seed), min(k, rows), gamma)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "gamma"), [(3, 0.2), (5, 1.1), (40, 0.8)])
def test_many_records_equal_the_reference(kind: str, k: int, gamma: float) -> None:
    agrees(points_of(kind, 2000, 3, k), k, gamma)


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    points = points_of("ties", 300, 2, 0)
    whole = run(points, 4, 1.1)
    monkeypatch.setattr(_v_mdav, "_STEP", 1)
    np.testing.assert_array_equal(run(points, 4, 1.1), whole)


def test_a_group_grows_to_its_cluster() -> None:
    # Hand-worked: two clusters of five and four records, centre 24, k = 3.
    points = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [50.0], [51.0], [52.0], [53.0]])
    assert run(points, 3, 1.1).tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0]
    # Without growth 50 is left alone, is the outermost then, and takes 4 and 3.
    assert run(points, 3, 0.0).tolist() == [2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_left_over_records_may_make_a_group_large() -> None:
    # The one group grows to 2 k - 1 = 3; the fourth record is left over.
    assert run(np.array([[0.0], [1.0], [2.0], [3.0]]), 2, 1.1).tolist() == [0, 0, 0, 0]
