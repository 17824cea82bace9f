"""Searches of tables that are very wide, or empty."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.kernels.conditions import only_size
from shoal.kernels.lattice.lattice import FullDomainSearch
from shoal.kernels.lattice.losses import LOSSES
from shoal.kernels.lattice.nodes import Lattice
from shoal.kernels.lattice.roll_up import Base, Line


def sized(tuples: Any) -> Base:
    none, each = np.empty(0, np.int32), np.ones(len(tuples), np.int64)
    pairs = none, none.reshape(0, 0), none.astype(np.int64)
    return Base(tuples.astype(np.int32), each, 0 * each, *pairs)


def test_keys_of_two_hundred_columns_do_not_collide() -> None:
    random = np.random.default_rng(0)
    maps = [np.array([np.arange(9), np.zeros(9)], np.int32)] * 200
    leaves = [np.array([np.ones(9), np.full(9, 9.0)])] * 200
    first = random.integers(0, 9, 200)
    tuples = np.tile(first, (200, 1))
    tuples[np.arange(200), np.arange(200)] = (first + 1) % 9  # each differs in its own column
    search = FullDomainSearch(
        sized(tuples),
        maps,
        leaves,
        [9.0] * 200,
        only_size(2),
        limit=199,
        loss="precision",
        seconds=60,
    )
    while search.advance() < 1 and len(search.nodes) <= 10:
        pass
    # The records whose column is raised, two at least, are one class: all others stand alone.
    raised = search.nodes["levels"].sum(axis=1)
    np.testing.assert_array_equal(search.nodes["suppressed"], 200 - raised * (raised > 1))
    assert len(raised) > 10
    assert search.bound <= 0.75 <= search.loss  # (c · c / 200 + 200 - c) / 200 is least at 100


def test_a_line_of_a_column_beside_others_of_two_words() -> None:
    tuples = np.tile(np.arange(40) % 9, (90, 1))
    tuples[:, 3], tuples[:, 30] = np.arange(90) % 9, np.arange(90) // 9 % 9
    maps = [np.array([np.arange(9), np.arange(9) // 4, np.zeros(9)], np.int32)] * 40
    leaves = [np.array([np.ones(9), np.full(9, 4.0), np.full(9, 9.0)])] * 40
    lattice = Lattice(sized(tuples), maps, leaves, [9.0] * 40, only_size(2), 0, "loss", None)
    assert lattice.bottom.keys.shape == (90, 3)
    for attribute, other in ((3, 30), (30, 3)):
        line = Line(lattice.code, attribute, 2, lattice.slots, exact=False)
        levels = np.zeros(40, np.int64)
        levels[other] = 1
        table = line.start(lattice.bottom, 0 * levels, levels)
        sizes = [len(table.keys), *(len((table := line.roll_up(table, n)).keys) for n in (0, 1))]
        assert sizes == [27, 9, 3]
        assert table.weights.sum() == 90


def run(search: FullDomainSearch) -> float:
    """To the end: what is compiled on the way may take more than one portion."""
    while (done := search.advance()) < 1:
        pass
    return done


def test_no_records_and_no_attributes() -> None:
    maps = [np.array([np.arange(3), np.zeros(3)], np.int32)] * 2
    leaves = [np.array([np.ones(3), np.full(3, 3.0)])] * 2
    for loss in LOSSES:
        for limit in (0, 5):
            search = FullDomainSearch(
                sized(np.empty((0, 2))),
                maps,
                leaves,
                [3.0] * 2,
                only_size(2),
                limit=limit,
                loss=loss,
            )
            assert run(search) == 1
            assert (search.levels, search.suppressed) == ((0, 0), 0)
    for rows, levels in ((2, ()), (1, None)):
        base = sized(np.empty((1, 0)))._replace(counts=np.array([rows]))
        search = FullDomainSearch(base, [], [], [], only_size(2), limit=0)
        assert run(search) == 1
        assert search.levels == levels
