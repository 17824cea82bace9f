"""What the elimination from above relies on, each piece against its definition."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from shoal.kernels.conditions import DISTINCT, EQUAL, only_size
from shoal.kernels.lattice.conditions import judged
from shoal.kernels.lattice.lattice import FullDomainSearch
from shoal.kernels.lattice.losses import Loss
from shoal.kernels.lattice.nodes import Lattice
from shoal.kernels.lattice.roll_up import Base, Groups, Line, projected
from shoal.kernels.lattice.searches import (
    Projections,
    _affordable,
    _not_ruled_out,
    descend,
    from_above,
)


def lattice_of(
    seed: int, kinds: tuple[int, ...], limit: int, loss: str = "loss", heaviest: float = 1.0
) -> Lattice:
    """Up to four attributes whose levels join two or three codes each, and a sensitive one."""
    random = np.random.default_rng(seed)
    attributes, rows = int(random.integers(2, 5)), int(random.integers(5, 60))
    values = random.integers(1, 9, attributes)
    records = (random.random((rows, attributes)) ** 2 * values).astype(np.int32)
    maps, leaves = [], []
    for count in values:
        factor, height = random.integers(2, 4), int(random.integers(0, 4))
        steps = np.arange(count) // factor ** np.arange(height + 1)[:, None]
        maps.append(steps.astype(np.int32))
        leaves.append(np.stack([np.bincount(codes)[codes] for codes in steps]).astype(float))
    tuples, own = np.unique(records, axis=0, return_inverse=True)
    sensitive = random.integers(0, 3, rows)
    pairs, counts = np.unique(np.stack([own.ravel(), sensitive]), axis=1, return_counts=True)
    sizes = np.bincount(own.ravel())
    pairs = pairs.astype(np.int32)
    base = Base(tuples, sizes, 0 * sizes, pairs[0], pairs[1:], counts)
    conditions = only_size(3)._replace(
        kinds=np.array(kinds, np.int64),
        columns=np.zeros(len(kinds), np.int64),
        bounds=np.array([{DISTINCT: 2.0, EQUAL: 0.35}[kind] for kind in kinds]),
        extras=np.zeros(len(kinds)),
        shares=np.bincount(sensitive, minlength=3)[None] / rows,
        values=np.array([3]),
    )
    weights = np.append(np.ones(attributes - 1), heaviest)
    weights /= weights.mean()
    domains = values.astype(float)
    return Lattice(base, maps, leaves, domains, conditions, limit, loss, None, weights)


def all_nodes(lattice: Lattice) -> Any:
    levels = [range(height + 1) for height in lattice.heights]
    return np.array(list(itertools.product(*levels)), np.int64)


@pytest.mark.parametrize("loss", ["loss", "precision"])
@pytest.mark.parametrize("heaviest", [1.0, 7.0])
def test_how_many_records_a_node_can_suppress_at_a_cost(loss: str, heaviest: float) -> None:
    decided = 0
    for seed in range(20):
        lattice = lattice_of(seed, (), 0, loss, heaviest)
        nodes, records = all_nodes(lattice), lattice.loss.records
        for cost in (0.0, 0.1, 0.3, 0.7):
            most = lattice.loss.most_suppressed(nodes, cost, records)
            for levels, bound in zip(nodes, most, strict=True):
                costs = [lattice.loss.at_least(s, levels) for s in range(records + 1)]
                able = [s for s, least in enumerate(costs) if least <= cost * (1 + 1e-12)]
                if able:  # else its floor rules the node out
                    assert max(able) <= bound <= 1.1 * max(able) + 1
                    decided += bound < records
    assert decided > 300


def test_nothing_is_said_of_losses_that_do_not_charge_suppression() -> None:
    lattice = lattice_of(3, (), 0, "entropy")
    nodes = all_nodes(lattice)
    assert np.all(lattice.loss.most_suppressed(nodes, 0.0, 7) == 7)


@pytest.mark.parametrize("kinds", [(), (DISTINCT,), (EQUAL,)])
@pytest.mark.parametrize("limit", [0, 4])
def test_projections_are_those_of_all_single_attributes_and_pairs(
    kinds: tuple[int, ...], limit: int
) -> None:
    ruled_out = 0
    for seed in range(25):
        lattice = lattice_of(seed, kinds, limit)
        projections, nodes = Projections(lattice), all_nodes(lattice)
        count = len(lattice.heights)
        fails = np.zeros(len(nodes), bool)
        for size in (1, 2):
            for chosen in itertools.combinations(range(count), size):
                for i, levels in enumerate(nodes):
                    table = projected(
                        lattice.at(levels), lattice.code, np.array(chosen), lattice.slots
                    )
                    fails[i] |= judged(table, lattice.projectable, False)[1] > limit
        np.testing.assert_array_equal(projections.possible(nodes), ~fails)
        assert [projections.rules_out(levels) for levels in nodes] == fails.tolist()
        ruled_out += int(fails.sum())
    assert ruled_out > 100


def test_shared_tables_are_those_from_the_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, room in itertools.product(range(10), (0, 1, 100)):
        monkeypatch.setattr("shoal.kernels.lattice.nodes._TABLES", room)
        lattice = lattice_of(seed, (DISTINCT,), 0)
        for levels in np.random.default_rng(seed).permutation(all_nodes(lattice)):
            for ours, direct in zip(lattice.near(levels), lattice.at(levels), strict=True):
                np.testing.assert_array_equal(ours, direct)
            held = sum(len(table.weights) for table in lattice._tables.values())
            assert held == lattice._held
            assert len(lattice._tables) <= 1 or held <= room * len(lattice.bottom.weights)


def as_sets(groups: Groups) -> Any:
    """A table whatever its order: the weights of each key, and what its pairs add up to."""
    keys = [tuple(key) for key in groups.keys.tolist()]
    assert len(set(keys)) == len(keys)
    pairs: Counter[Any] = Counter()
    for group, value, count in zip(*(part.tolist() for part in groups[2:]), strict=True):
        pairs[keys[group], value] += count
    return dict(zip(keys, groups.weights.tolist(), strict=True)), pairs


@pytest.mark.parametrize("exact", [False, True])
def test_lines_have_the_tables_of_their_nodes(exact: bool) -> None:
    united = 0
    for seed in range(12):
        lattice = lattice_of(seed, (DISTINCT,), 0)
        for attribute, height in enumerate(lattice.heights.tolist()):
            line = Line(lattice.code, attribute, height, lattice.slots, exact=exact)
            table, below = lattice.bottom, 0 * lattice.heights
            for other in {0, *(lattice.heights // 2).tolist()}:
                levels = np.minimum(np.maximum(below, other), lattice.heights)
                levels[attribute] = 0
                table = beginning = line.start(table, below, levels)
                below = levels.copy()
                for level in range(height + 1):
                    if level:
                        table = line.roll_up(table, level - 1)
                    levels[attribute] = level
                    assert as_sets(table) == as_sets(lattice.at(levels))
                    united += len(table.keys) < len(beginning.keys)
                    if exact:
                        pairs = np.stack([table.pair_group, table.pair_value])
                        assert np.unique(pairs, axis=1).shape == pairs.shape
                table = beginning
    assert united > 50


def test_a_node_comes_after_all_above_it_and_none_is_missing() -> None:
    for seed in range(20):
        lattice = lattice_of(seed, (), 0)
        nodes = _affordable(lattice)
        assert sorted(map(tuple, nodes.tolist())) == sorted(map(tuple, all_nodes(lattice).tolist()))
        for i, levels in enumerate(nodes):
            assert not np.any(np.all(nodes[i + 1 :] >= levels, axis=1))


def test_ruled_out_is_what_is_below_and_can_suppress_less() -> None:
    nodes = np.array([[2, 1], [1, 2], [1, 1], [0, 1], [1, 0]])
    most = np.array([0.0, 0.0, 4.0, 3.9, 9.0])
    left = _not_ruled_out(np.array([0, 1, 2, 3, 4]), nodes, most, np.array([1, 1]), 4)
    assert left.tolist() == [0, 1, 2, 4]
    left = _not_ruled_out(np.array([1, 3, 4]), nodes, most, np.array([1, 2]), 10)
    assert left.tolist() == []


@pytest.mark.parametrize("limit", [0, 5])
def test_no_node_is_visited_below_one_that_is_not_feasible(limit: int) -> None:
    met = 0
    for seed in range(40):
        lattice = lattice_of(seed, (), limit)
        for _ in from_above(lattice, None):
            pass
        before = lattice_of(seed, (), limit)
        before.visit(before.at(before.heights), before.heights)
        for _ in descend(before, before.heights, 0 * before.heights):
            pass
        for i, visit in enumerate(lattice.visits):
            if visit.suppressed > limit:
                for later in lattice.visits[max(i + 1, len(before.visits)) :]:
                    assert not np.all(np.array(later.levels) <= visit.levels)
                    met += 1
    assert met > 20


def test_leaves_that_do_not_add_up_say_nothing() -> None:
    lattice = lattice_of(3, (), 0)
    lattice.code.leaves[:] = np.arange(len(lattice.code.leaves)) ** 4.0 + 1.0
    base = Base(np.zeros((9, len(lattice.heights)), np.int32), np.ones(9, np.int64), *[None] * 4)
    loss = Loss("loss", base, lattice.code, lattice.heights, lattice.loss._domains.tolist())
    assert np.all(loss.most_suppressed(all_nodes(lattice), 0.2, 9) == 9)


def test_where_more_can_fail_higher_up_only_what_lasts_is_concluded() -> None:
    """t-closeness with suppression: a node may suppress fewer records than one above it."""
    fewer = 0
    for seed, limit in itertools.product((*range(30), 269, 666), (2, 8, 20)):
        lattice, every = (lattice_of(seed, (EQUAL,), limit) for _ in range(2))
        for _ in from_above(lattice, None):
            pass
        nodes = all_nodes(every)
        tables = [every.at(levels) for levels in nodes]
        visits = [every.visit(table, levels) for table, levels in zip(tables, nodes, strict=True)]
        assert (lattice.best and lattice.best.levels) == (every.best and every.best.levels)
        for levels, table, visit in zip(nodes, tables, visits, strict=True):
            fewest = every.fewest_below(table, visit)
            below = np.flatnonzero(np.all(nodes <= levels, axis=1))
            assert all(fewest <= visits[i].suppressed for i in below)
            fewer += sum(visits[i].suppressed < visit.suppressed for i in below)
    assert fewer > 0


@pytest.mark.parametrize("limit", [0, 1])
def test_many_attributes_that_have_no_levels(limit: int) -> None:
    """As many as there are no axes for in an array."""
    flat, tall = np.zeros((1, 1), np.int32), np.array([[0, 1], [0, 0]], np.int32)
    maps, leaves = (
        [flat] * 98 + [tall] * 2,
        [flat + 1.0] * 98 + [np.array([[1.0] * 2, [2.0] * 2])] * 2,
    )
    tuples = np.zeros((3, 100), np.int32)
    tuples[1, 99] = tuples[2, 98] = 1
    none = np.empty(0, np.int32)
    base = Base(
        tuples,
        np.array([2, 2, 1]),
        np.zeros(3, np.int64),
        none,
        none.reshape(0, 0),
        none.astype(np.int64),
    )
    domains = [1.0] * 98 + [2.0] * 2
    search = FullDomainSearch(base, maps, leaves, domains, only_size(2), limit=limit)
    while search.advance() < 1:
        pass
    assert search.levels == (*[0] * 98, 1 - limit, 0)
    assert search.suppressed == limit
