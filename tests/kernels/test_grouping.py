"""Grouping kernels against slow, obvious references."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shoal.kernels import grouping as _grouping
from shoal.kernels.grouping import (
    WILDCARD,
    all_differ,
    count_sizes,
    dense_labels,
    first_rows,
    group,
    total_by,
    wildcard_largest,
    wildcard_totals,
)

Keys = npt.NDArray[np.uint64]


def reference(keys: Keys) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Labels by first appearance and sizes, by sorting."""
    _, first, inverse, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse], sizes[order]


def agrees(keys: Keys) -> None:
    expected_labels, expected_sizes = reference(keys)
    labels, sizes = group(keys)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(sizes, expected_sizes)
    np.testing.assert_array_equal(count_sizes(keys), expected_sizes)
    assert labels.dtype == np.int32
    assert sizes.dtype == np.int64


def test_worked_by_hand() -> None:
    keys = np.array([7, 2**64 - 1, 7, 0, 2**64 - 1, 7], np.uint64)
    labels, count = dense_labels(keys)
    assert labels.tolist() == [0, 1, 0, 2, 1, 0]
    assert count == 3
    assert count_sizes(keys).tolist() == [3, 2, 1]
    assert first_rows(labels, count).tolist() == [0, 1, 3]


@pytest.mark.parametrize("keys", [[], [0], [2**64 - 1], [5, 5, 5]])
def test_tiny(keys: list[int]) -> None:
    agrees(np.array(keys, np.uint64))


few_values = st.sampled_from([0, 1, 2, 2**16 - 1, 2**16, 2**32, 2**63, 2**64 - 1])


@given(arrays.arrays(np.uint64, st.integers(0, 60), elements=few_values))
def test_any_keys_with_repeats(keys: Keys) -> None:
    agrees(keys)


@given(arrays.arrays(np.uint64, st.integers(0, 60)))
def test_any_keys(keys: Keys) -> None:
    agrees(keys)


@pytest.mark.parametrize("stride", [1, 2**16, 2**24, 2**40, 2**44, 982_451_653])
@pytest.mark.parametrize("distinct", [10, 20_000, 60_000])
def test_growth_and_regular_keys(stride: int, distinct: int) -> None:
    """More groups than the first table holds; strides whose low or high bits are all equal."""
    rows = np.random.default_rng(distinct).integers(0, distinct, 80_000).astype(np.uint64)
    agrees(rows * np.uint64(stride))


def test_keys_with_equal_low_bits_spread_over_the_table() -> None:
    """A hash that kept the low bits would probe all of these one after the other."""
    keys = np.arange(200_000, dtype=np.uint64) << np.uint64(40)
    slots = np.zeros(2**19, np.uint64)
    _grouping._refill(slots, keys, len(keys), _grouping._SALT)
    taken = np.flatnonzero(slots)
    label = (slots[taken] & _grouping._LABEL).astype(np.int64) - 1
    mixed = [int(_grouping._mixed(keys[i] ^ _grouping._SALT)) for i in label[:2000]]
    moved = (taken[:2000] - np.array([m % 2**19 for m in mixed])) % 2**19
    assert sorted(label.tolist()) == list(range(200_000))
    assert moved.max() < 100
    assert moved.mean() < 2


def unmixed(hashed: int) -> int:
    """The key of a hash, without the salt: the steps of the mixing function undone."""
    hashed ^= hashed >> 31 ^ hashed >> 62
    hashed = hashed * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    hashed ^= hashed >> 27 ^ hashed >> 54
    hashed = hashed * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    return hashed ^ hashed >> 30 ^ hashed >> 60


def test_keys_with_the_same_tag_and_slot_stay_apart() -> None:
    """Different keys whose hashes differ only in bits that neither tag nor slot looks at."""
    hashes = [(0xABCDEF << 40) | (i << 25) | 7 for i in range(200)]
    keys = np.array([unmixed(h) ^ int(_grouping._SALT) for h in hashes], np.uint64)
    assert [int(_grouping._mixed(key ^ _grouping._SALT)) for key in keys] == hashes
    agrees(np.tile(keys, 3))


def test_result_does_not_depend_on_the_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.random.default_rng(0).integers(0, 2**63, 20_000).astype(np.uint64) // np.uint64(2**50)
    keys *= np.uint64(2**45)
    before = group(keys)
    monkeypatch.setattr(_grouping, "_SALT", np.uint64(12345))
    after = group(keys)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])


def test_the_keys_are_not_touched() -> None:
    keys = np.array([2**40, 3, 2**40], np.uint64)
    keys.flags.writeable = False
    group(keys)
    assert keys.tolist() == [2**40, 3, 2**40]


@pytest.mark.parametrize(("slots", "most", "grown"), [(4096, 5000, 8192), (4096, 10**6, 16384)])
def test_table_grows_no_further_than_needed(slots: int, most: int, grown: int) -> None:
    assert _grouping._grown(slots, most) == grown


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-100, 100)), max_size=40))
def test_total_by(pairs: list[tuple[int, int]]) -> None:
    labels = np.array([label for label, _ in pairs], np.int32)
    values = np.array([value for _, value in pairs], np.float64)
    expected = [sum(v for label, v in pairs if label == group) for group in range(5)]
    assert total_by(labels, 5, values).tolist() == expected


def runs_of(
    tuples: npt.NDArray[np.uint32], blocks: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], ...]:
    """The order of the tuples by block and pattern, where the runs start, and their blocks."""
    patterns = [tuple(row == WILDCARD) for row in tuples]
    order = sorted(range(len(tuples)), key=lambda i: (blocks[i], patterns[i]))
    heads = [
        at
        for at, i in enumerate(order)
        if at == 0 or (blocks[i], patterns[i]) != (blocks[order[at - 1]], patterns[order[at - 1]])
    ]
    starts = np.array([*heads, len(order)])
    return np.array(order), starts, np.array([blocks[order[head]] for head in heads])


def agreeing(
    tuples: npt.NDArray[np.uint32], blocks: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """The definition, pair by pair."""
    left, right = tuples[:, None, :], tuples[None, :, :]
    agree = ((left == right) | (left == WILDCARD) | (right == WILDCARD)).all(axis=2)
    return agree & (blocks[:, None] == blocks[None, :])


def vary(hash_cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Globals are constants once compiled, so the bound is varied in the plain Python version."""
    monkeypatch.setattr(_grouping, "_HASH_COST", hash_cost)
    if hash_cost != 8:
        monkeypatch.setattr(_grouping, "_meet_runs", _grouping._meet_runs.py_func)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("hash_cost", [0, 8, 10**6])
@pytest.mark.parametrize("seed", range(6))
def test_wildcard_totals(
    seed: int, hash_cost: int, largest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways of meeting, small and large runs, one and several blocks."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, (600, 5)).astype(np.uint32)
    codes[rng.random(codes.shape) < 0.1 * seed] = WILDCARD
    everything = np.unique(np.column_stack([rng.integers(0, 1 + seed % 3, 600), codes]), axis=0)
    blocks, tuples = everything[:, 0].astype(np.int64), everything[:, 1:].astype(np.uint32)
    weights = rng.integers(-8, 9, len(tuples)).astype(np.float64)
    order, starts, run_blocks = runs_of(tuples, blocks)
    vary(hash_cost, monkeypatch)
    given = (tuples[order], starts, run_blocks, weights[order])
    if hash_cost == 8:
        result = (wildcard_largest if largest else wildcard_totals)(*given)
    else:
        result = _grouping._wildcard_totals.py_func(*given, _grouping._SALT, largest)
    agree = agreeing(tuples, blocks)
    met = np.where(agree, weights, -np.inf).max(axis=1) if largest else agree @ weights
    np.testing.assert_array_equal(result, met[order])


@pytest.mark.parametrize("hash_cost", [0, 8, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_wildcard_matches(seed: int, hash_cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples that seek meet those that do not, and only these."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (500, 4)).astype(np.uint32)
    codes[rng.random(codes.shape) < 0.1 + 0.1 * seed] = WILDCARD
    seeking = rng.random(len(codes)) < 0.4
    kept = np.zeros(len(codes), np.bool_)
    for part in (False, True):  # each tuple once in a run
        rows = np.flatnonzero(seeking == part)
        kept[rows[np.unique(codes[rows], axis=0, return_index=True)[1]]] = True
    tuples, seeking = codes[kept], seeking[kept]
    weights = rng.integers(-8, 9, len(tuples)).astype(np.float64)
    order, starts, _ = runs_of(tuples, seeking.astype(np.int64))
    given = (tuples[order], starts, seeking[order][starts[:-1]], weights[order])
    vary(hash_cost, monkeypatch)
    if hash_cost == 8:
        result = _grouping.wildcard_matches(*given)
    else:
        result = _grouping._wildcard_matches.py_func(*given, _grouping._SALT)
    met = agreeing(tuples, np.zeros(len(tuples), np.int64))[:, ~seeking] @ weights[~seeking]
    asked = order[seeking[order]]
    np.testing.assert_array_equal(result[seeking[order]], met[asked])
    assert met[asked].any()


def test_tuples_with_the_same_tag_and_slot_stay_apart() -> None:
    salt = _grouping._SALT
    codes = np.arange(300_000, dtype=np.uint32)
    with np.errstate(over="ignore"):
        hashes = _grouping._mixed.py_func(
            (salt + codes.astype(np.uint64)) * np.uint64(int(salt) | 1)
        )
    seen_alike = hashes & (_grouping._TAG | np.uint64(15))  # the tag and one of 16 slots
    order = np.argsort(seen_alike)
    twin = np.flatnonzero(np.diff(seen_alike[order]) == 0)
    assert len(twin)  # of 4.5e10 pairs, one in 2**28 is such a twin
    for at in twin[:20]:
        one, other = codes[order[at]], codes[order[at + 1]]
        tuples = np.array([[one, 0], [one, WILDCARD], [other, WILDCARD]], np.uint32)
        weights = np.ones(3)
        totals = np.zeros(3)
        _grouping._meet_hashed(tuples, np.array([0]), (0, 1, 1, 3), weights, totals, salt, False)
        assert totals.tolist() == [1, 1, 0]


@pytest.mark.parametrize("rows", [10, 5_000, 200_000])
def test_whether_keys_all_differ(rows: int) -> None:
    keys = np.random.default_rng(3).permutation(rows).astype(np.uint64) * np.uint64(2**40 + 1)
    assert all_differ(keys)
    twice = keys.copy()
    twice[-1] = twice[0]
    assert not all_differ(twice)
    assert not all_differ(np.repeat(keys, 5))
