"""The estimate of the time of a long run; clocks are scripted, nothing here asserts a time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Table
from shoal.kernels.groups.mixed_mdav import MixedMdav
from shoal.masking._base import StepLog
from shoal.masking.grouping import _partitions as estimate
from shoal.masking.grouping._dissimilarity import Space, space_of
from shoal.randomness import SecretStream


@pytest.fixture
def stream():
    return SecretStream(bytes(32))


@pytest.fixture
def clock(monkeypatch):
    """A clock that work moves on: ``clock.now += seconds``."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(estimate, "time", made)
    return made


def space(rows):
    return Space(rows, points=np.arange(rows, dtype=np.float64)[:, None])


def test_the_time_of_a_part_is_scaled_up(clock):
    """Compiling counts in the first run only: 9 s, and 2 s without."""
    seen = []

    def form(part, log):
        seen.append(part.rows)
        assert log.progress is None
        clock.now += 9.0 if len(seen) == 1 else 2.0

    found = estimate.estimated_seconds(space(100_000), form)
    assert seen == [200, 5_000]
    assert found == pytest.approx(2.0 * 20**1.3)


def test_a_short_run_is_not_tried():
    def form(part, log):
        raise AssertionError("nobody waits for this")

    assert estimate.estimated_seconds(space(49_999), form) is None
    log = StepLog(progress=lambda label, share: None)
    assert estimate.with_estimate(log, space(49_999), form) is log
    nobody_listens = StepLog()
    assert estimate.with_estimate(nobody_listens, space(60_000), form) is nobody_listens


@pytest.mark.parametrize(("seconds", "told"), [(1.0, ": about 50 s"), (0.01, "")])
def test_the_estimate_stands_beside_what_is_done(clock, seconds, told):
    def form(part, log):
        clock.now += seconds

    said = []
    log = StepLog(progress=lambda label, share: said.append((label, share)))
    informed = estimate.with_estimate(log, space(60_000), form)
    informed.tell("Forming groups", 0.25)
    assert said == [(f"Forming groups{told}", 0.25)]
    informed.touched.append("age")
    assert log.touched == ["age"], "one log, shown in two ways"


def test_a_part_is_compared_as_the_whole():
    """Its records have the groups that they have among themselves, with the ranges of all."""
    random = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "x": [*random.normal(size=299), 1000.0],
            "c": random.choice(["a", "b", None], 300).tolist(),
        }
    )
    whole = space_of(Table(frame), ["x", "c"], "gower", standardize=True)
    rows = np.arange(0, 299, 2)
    part = estimate.part_of(whole, rows)
    assert (part.rows, part.points) == (150, None)
    assert part.mixed.measure.weights == whole.mixed.measure.weights
    work = MixedMdav(part.mixed, 4)
    while work.advance() < part.rows:
        pass
    assert np.bincount(work.labels).min() >= 4
    np.testing.assert_array_equal(part.mixed.values[0], whole.mixed.values[0, rows])
    points = estimate.part_of(space(9), np.array([1, 4]))
    assert points.points.tolist() == [[1.0], [4.0]]
