"""The full-domain search against every node of small lattices, looked at one record at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kernels.conditions import (
    DISCLOSURE,
    DISTINCT,
    ENHANCED_LIKENESS,
    ENTROPY,
    EQUAL,
    HIERARCHICAL,
    IN_POPULATION,
    LARGEST_SHARE,
    LIKENESS,
    ORDERED,
    PRESENCE,
    RECURSIVE,
    Conditions,
    holds,
    only_size,
)
from shoal.kernels.lattice import nodes as _lattice_nodes
from shoal.kernels.lattice.lattice import FullDomainSearch
from shoal.kernels.lattice.losses import LOSSES
from shoal.kernels.lattice.roll_up import Base

KINDS = {
    DISTINCT: (2.0, 0.0),
    ENTROPY: (1.6, 0.0),
    RECURSIVE: (2.0, 2.0),
    EQUAL: (0.35, 0.0),
    ORDERED: (0.3, 0.0),
    HIERARCHICAL: (0.3, 0.0),
    LARGEST_SHARE: (0.7, 0.0),
    LIKENESS: (1.0, 0.0),
    ENHANCED_LIKENESS: (1.0, 0.0),
    DISCLOSURE: (1.2, 0.0),
    IN_POPULATION: (4.0, 0.0),
    PRESENCE: (0.8, 0.1),
}


class Problem(NamedTuple):
    records: Any
    people: Any  # records of the population
    sensitive: Any  # a column per sensitive attribute
    maps: list[Any]
    leaves: list[Any]
    conditions: Conditions
    weights: Any = None  # 1 on average


def hierarchy(random: np.random.Generator, values: int, height: int, root: bool) -> Any:
    """Random levels that nest: codes of a level are joined at random."""
    levels = [np.arange(values)]
    for level in range(height):
        above = random.integers(0, max(1, (levels[-1].max() + 1) // 2 + level % 2), values)
        levels.append(random.permutation(50)[above[levels[-1]]] if level % 2 else above[levels[-1]])
        levels[-1] = np.unique(levels[-1], return_inverse=True)[1]
    if root and height:
        levels[-1] = np.zeros(values, np.int64)
    return np.array(levels, np.int32)


def problem(seed: int, kinds: tuple[int, ...], smallest: int, population: bool = False) -> Problem:
    random = np.random.default_rng(seed)
    attributes, rows = int(random.integers(1, 5)), int(random.integers(1, 40))
    sizes = random.integers(1, 7, attributes)
    heights = random.integers(0, 4, attributes)
    maps = [
        hierarchy(random, v, h, random.random() < 0.8) for v, h in zip(sizes, heights, strict=True)
    ]
    leaves = [np.array([np.bincount(level)[level] for level in m], float) for m in maps]
    draw = [random.integers(0, v, 2 * rows) * (random.random(2 * rows) < 0.7) for v in sizes]
    everyone = np.stack(draw, axis=1)
    people = everyone if population else everyone[:0]
    sensitive = np.stack([random.integers(0, v, rows) for v in (3, 4)])
    shares = np.zeros((2, 4))
    for column, values in enumerate((3, 4)):
        shares[column, :values] = np.bincount(sensitive[column], minlength=values) / rows
    trees = np.array(
        [[[0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 0, 0]], [[0, 1, 2, 3], [0, 0, 1, 1], [0] * 4]]
    )
    conditions = Conditions(
        smallest,
        np.array(kinds, np.int64),
        np.array([i % 2 for i in range(len(kinds))], np.int64),
        np.array([KINDS[kind][0] for kind in kinds], float),
        np.array([KINDS[kind][1] for kind in kinds], float),
        shares,
        np.array([3, 4]),
        trees,
        np.array([1, 2]),
    )
    if not kinds:
        conditions = only_size(smallest)
    return Problem(everyone[:rows], people, sensitive, maps, leaves, conditions)


def weighted(given: Problem, seed: int) -> Problem:
    """The problem with some weights of its attributes, one of them far from the others."""
    random = np.random.default_rng(seed)
    weights = random.integers(1, 5, len(given.maps)).astype(float)
    weights[random.integers(len(weights))] *= random.choice([1.0, 1e-3, 50.0])
    return given._replace(weights=weights / weights.mean())


def base_of(given: Problem) -> Base:
    both = np.concatenate([given.records, given.people])
    tuples, inverse = np.unique(both, axis=0, return_inverse=True)
    own, others = np.split(inverse.ravel(), [len(given.records)])
    counts, population = (np.bincount(each, minlength=len(tuples)) for each in (own, others))
    pairs, pair_counts = np.unique(np.stack([own, *given.sensitive]), axis=1, return_counts=True)
    if not len(given.conditions.kinds):
        pairs, pair_counts = np.empty((1, 0), np.int32), np.empty(0, np.int64)
    return Base(
        tuples.astype(np.int32),
        counts,
        population,
        pairs[0].astype(np.int32),
        pairs[1:].astype(np.int32),
        pair_counts,
    )


def loss_of(name: str, given: Problem, levels: Any, labels: Any, kept: Any) -> float:
    """The definitions, record by record."""
    rows, q = given.records.shape
    lost = rows - int(kept.sum())
    domains = np.array([m.shape[1] for m in given.maps])
    weights = np.ones(q) if given.weights is None else given.weights
    under = np.array(
        [le[level][c] for le, level, c in zip(given.leaves, levels, given.records.T, strict=True)]
    )
    sizes = np.bincount(labels)[labels]
    if name == "loss":
        total = 0.0
        for j, domain in enumerate(domains):
            if domain > 1:
                share = (np.where(kept, under[j], domain).sum() - rows) / (rows * domain - rows)
                total += weights[j] * math.log1p(math.floor(share * 1e10) / 1e10)
        return math.exp(total / q) - 1
    if name == "precision":
        steps = [
            level / (len(m) - 1) if len(m) > 1 else 0.0
            for level, m in zip(levels, given.maps, strict=True)
        ]
        return float(np.mean(np.where(kept, np.average(steps, weights=weights), 1.0)))
    if name == "discernibility":
        return float(np.where(kept, sizes, rows).sum())
    if name == "discernibility-monotonic":
        return float(sizes.sum())
    if name == "average-class-size":
        return rows / (len(np.unique(labels[kept])) + (lost > 0))
    if name.startswith("entropy"):
        total = 0.0
        for j in range(q):
            value = given.records[:, j]
            code = given.maps[j][levels[j]][value]
            bits = np.log2(np.bincount(code)[code] / np.bincount(value)[value]).sum()
            if name == "entropy" and lost:
                gone = code[~kept]
                bits -= np.log2(np.bincount(gone)[gone] / lost).sum()
            total += weights[j] * bits
        return float(total)
    everything = float((domains**weights).prod())
    stands_for = np.where(kept, (under ** weights[:, None]).prod(axis=0), everything)
    if name == "ambiguity":
        return float(stands_for.mean())
    same = np.unique(given.records, axis=0, return_inverse=True)[1].ravel()
    original = np.bincount(same)[same] / rows
    released = np.where(kept, sizes, lost) / rows
    bits = np.log2(original / released) * weights.min() + np.log2(stands_for)
    return float(bits.mean())


def brute_force(given: Problem, limit: int, loss: str, check: Any) -> list[Any]:
    """(rounded loss, sum of levels, levels, loss, suppressed) of every feasible node, sorted."""
    found = []
    for levels in itertools.product(*(range(len(m)) for m in given.maps)):
        cells = np.concatenate([given.records, given.people])
        cells = np.stack(
            [m[lv][c] for m, lv, c in zip(given.maps, levels, cells.T, strict=True)], axis=1
        )
        labels = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
        own, others = np.split(labels, [len(given.records)])
        kept = np.zeros(len(own), bool)
        for label in np.unique(own):
            members = own == label
            counts = np.stack([np.bincount(s[members], minlength=4) for s in given.sensitive])
            inside = int((others == label).sum())
            kept[members] = holds(given.conditions, int(members.sum()), inside, counts)
        bounded_below = (given.conditions.kinds == PRESENCE) & (given.conditions.extras > 0)
        if bounded_below.any() and len(np.setdiff1d(others, own)):
            continue  # of some people it is known that they are not in the table
        suppressed = len(own) - int(kept.sum())
        sizes = np.unique(own[kept], return_counts=True)[1]
        if suppressed <= limit and (check is None or check(sizes)):
            own = np.unique(own, return_inverse=True)[1].ravel()
            cost = loss_of(loss, given, levels, own, kept)
            found.append((float(f"{cost:.10e}"), sum(levels), levels, cost, suppressed))
    return sorted(found)


def search_for(given: Problem, limit: int, loss: str, **options: Any) -> FullDomainSearch:
    domains = [float(m.shape[1]) for m in given.maps]
    search = FullDomainSearch(
        base_of(given), given.maps, given.leaves, domains, given.conditions, limit=limit,
        loss=loss, weights=given.weights, **options,
    )  # fmt: skip
    while search.advance() < 1:
        pass
    return search


def agrees(given: Problem, limit: int, loss: str, check: Any = None, **options: Any) -> None:
    asked = None if check is None else lambda sizes, *_: check(sizes)
    search = search_for(given, limit, loss, node_check=asked, **options)
    nodes = brute_force(given, limit, loss, check)
    assert search.optimal
    if not nodes:
        assert search.levels is None
        assert search.bound == math.inf
        return
    _, _, levels, cost, suppressed = nodes[0]
    assert search.loss == pytest.approx(cost, rel=1e-9, abs=1e-9)
    if len(nodes) == 1 or nodes[1][0] != nodes[0][0] or nodes[0][0] < 1e-9 or loss != "loss":
        assert (search.levels, search.suppressed) == (levels, suppressed)
    else:  # cut to 10 decimals, two losses may part where the brute force's do not
        assert search.levels in [node[2] for node in nodes]


kinds_of_condition = st.sampled_from([(), *((kind,) for kind in KINDS), (DISTINCT, EQUAL)])


@settings(max_examples=250)
@given(
    st.integers(0, 10**6),
    kinds_of_condition,
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    st.sampled_from(LOSSES),
)
def test_every_loss_and_condition_agrees_with_the_whole_lattice(
    seed: int, kinds: tuple[int, ...], smallest: int, share: float, loss: str
) -> None:
    population = IN_POPULATION in kinds or PRESENCE in kinds
    given = problem(seed, kinds, smallest, population)
    agrees(given, int(share * len(given.records)), loss)


@settings(max_examples=250)
@given(
    st.integers(0, 10**6),
    st.sampled_from([(), (ENTROPY,), (DISTINCT,), (EQUAL,)]),
    st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    st.sampled_from(LOSSES),
    st.booleans(),
)
def test_with_weights_every_loss_agrees_with_the_whole_lattice(
    seed: int, kinds: tuple[int, ...], share: float, loss: str, anytime: bool
) -> None:
    """Every bound must hold: one that is too high would skip the best node."""
    given = weighted(problem(seed, kinds, 3), seed)
    options = {"max_nodes": 0, "seconds": 60.0} if anytime else {}
    agrees(given, int(share * len(given.records)), loss, **options)


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_weights_are_no_weights(loss: str) -> None:
    for seed in range(12):
        given = problem(seed, (), 3)
        ones = given._replace(weights=np.ones(len(given.maps)))
        plain, same = (search_for(each, 3, loss) for each in (given, ones))
        assert (plain.levels, plain.loss) == (same.levels, same.loss)
        assert plain.nodes.tobytes() == same.nodes.tobytes()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("limit", [0, 4])
def test_a_check_of_the_released_sizes(loss: str, limit: int) -> None:
    for seed in range(8):
        agrees(problem(seed, (), 2), limit, loss, lambda sizes: len(sizes) % 2 == 1)


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from([(), (ENTROPY,), (DISTINCT,)]),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from(LOSSES),
)
def test_the_anytime_search_proves_what_it_has_time_for(
    seed: int, kinds: tuple[int, ...], share: float, loss: str
) -> None:
    given = problem(seed, kinds, 3)
    agrees(given, int(share * len(given.records)), loss, max_nodes=0, seconds=60.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("has_weights", [False, True])
def test_out_of_time_the_bound_is_below_the_best_node(loss: str, has_weights: bool) -> None:
    for seed in range(12):
        given = problem(seed, (DISTINCT,), 2)
        given = weighted(given, seed) if has_weights else given
        nodes = brute_force(given, 3, loss, None)
        search = search_for(given, 3, loss, max_nodes=0, seconds=0.0)
        assert not search.optimal or search.levels == (nodes[0][2] if nodes else None)
        if nodes:
            assert search.bound <= nodes[0][3] * (1 + 1e-9) + 1e-12
            assert search.loss >= nodes[0][3] * (1 - 1e-9) - 1e-9


def test_what_cannot_be_reached_tells_the_closest() -> None:
    given = problem(3, (), 50)
    search = search_for(given, 0, "loss")
    assert search.levels is None
    assert search.optimal
    assert search.closest == (tuple(len(m) - 1 for m in given.maps), len(given.records))


def test_levels_that_do_not_nest_are_refused() -> None:
    given = problem(1, (), 2)
    maps = [np.array([[0, 1, 2], [0, 0, 1], [0, 1, 1]], np.int32)] * given.records.shape[1]
    leaves = [np.ones((3, 3))] * len(maps)
    given = given._replace(records=given.records % 3, maps=maps, leaves=leaves)
    with pytest.raises(ValueError, match=r"^The levels of attribute 0 do not nest\.$"):
        search_for(given, 0, "loss")


def test_leaves_that_do_not_add_up_mislead_nobody() -> None:
    """A hierarchy may say that a more general code has fewer leaves; no bound may rely on it."""
    random = np.random.default_rng(5)
    for seed in range(60):
        given = problem(seed, (), 2)
        leaves = [_shuffled(random, m) for m in given.maps]
        given = given._replace(leaves=leaves)
        for loss in ("loss", "ambiguity", "kl-divergence"):
            for limit in (0, 3):
                nodes = brute_force(given, limit, loss, None)
                search = search_for(given, limit, loss)
                if nodes:
                    assert search.loss == pytest.approx(nodes[0][3], rel=1e-8, abs=1e-8)


def test_a_dear_level_below_a_cheap_one_hides_it_from_nobody() -> None:
    maps = [np.array([np.arange(10), *np.zeros((4, 10))], np.int32)]
    leaves = [np.repeat([[1.0], [9.0], [2.0], [9.0], [5.0]], 10, axis=1)]
    given = problem(0, (), 2)._replace(maps=maps, leaves=leaves, people=np.empty((0, 1), int))
    given = given._replace(records=np.arange(10)[:, None], sensitive=np.zeros((2, 10), int))
    for loss in ("loss", "ambiguity"):
        assert search_for(given, 1, loss).levels == (2,)


@pytest.mark.parametrize("max_nodes", [0, 10**6])
def test_feasible_below_what_is_not(max_nodes: int) -> None:
    """With suppression, entropy l-diversity can fail at every node above a feasible one."""
    # Town 0 has ten records, half of each value; town 1 has eight, all of one value. Together
    # they are 13 and 5, which is not diverse; apart, eight are suppressed. Ages must go.
    town = np.repeat([0, 1], [10, 8])
    value = np.concatenate([np.arange(10) % 2, np.zeros(8, int)])
    age = np.concatenate([np.arange(10) % 3, np.arange(8) % 3])
    records = np.stack([age, town, *np.zeros((3, 18), int)], axis=1)
    maps = [np.array([np.arange(3), np.zeros(3)], np.int32)]
    maps += [np.array([np.arange(2), np.zeros(2)], np.int32)] * 4
    leaves = [np.array([np.bincount(level)[level] for level in m], float) for m in maps]
    given = problem(0, (ENTROPY,), 6)
    conditions = given.conditions._replace(bounds=np.array([1.9]))
    given = Problem(records, records[:0], np.stack([value, value]), maps, leaves, conditions)
    for loss in LOSSES:
        search = search_for(given, 8, loss, max_nodes=max_nodes, seconds=60.0)
        assert search.levels == (1, 0, 0, 0, 0)
        assert search.suppressed == 8
        assert search_for(given, 7, loss, max_nodes=max_nodes, seconds=60.0).levels is None


def _shuffled(random: np.random.Generator, codes: Any) -> Any:
    """Leaves at random, the same for each code of a level."""
    drawn = [random.integers(1, codes.shape[1] + 1, codes.shape[1])[level] for level in codes]
    return np.array(drawn, float)


def test_visited_nodes_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(11, (), 2)
    everything = search_for(given, 2, "discernibility")
    assert len(everything.nodes) == everything.counters["visited"]
    monkeypatch.setattr(_lattice_nodes, "_MOST_KEPT", 1)
    few = search_for(given, 2, "discernibility")
    assert few.levels == everything.levels
    assert few.levels in {tuple(levels) for levels in few.nodes["levels"].tolist()}
    assert len(few.nodes) <= 2
