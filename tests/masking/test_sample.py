"""Sampling: sizes that are exact, samples that belong to the key, and published figures."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Plan, Roles, Sample, Table
from shoal.errors import InputError, ParameterError, ShoalWarning
from shoal.kernels.balancing import balanced_counts


def classes(*sizes, target=None):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    data = {"zip": labels}
    if target is not None:
        data["ill"] = target
    roles = Roles(quasi_identifiers=["zip"], target=None if target is None else "ill")
    return Table(pl.DataFrame(data), roles)


def sampled(table, **options):
    step = Sample(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return step, step.fit_transform(table)


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    fraction=st.sampled_from([0.1, 0.125, 0.3, 0.5, 1 / 3, 0.7, 0.9]),
    strategy=st.sampled_from(["stratified", "balanced"]),
)
def test_each_class_keeps_its_floor(sizes, fraction, strategy):
    """The product as written on paper: 0.3 × 10 is 3, whatever doubles make of it."""
    tenths = {0.1: (1, 10), 0.125: (1, 8), 0.3: (3, 10), 0.5: (1, 2), 0.7: (7, 10), 0.9: (9, 10)}
    table = classes(*sizes, target=np.arange(sum(sizes)) % 3)
    step, masked = sampled(table, fraction=fraction, strategy=strategy)
    left = Counter(masked.frame["zip"].to_list())
    for label, size in enumerate(sizes):
        if fraction in tenths:
            over, under = tenths[fraction]
            assert left[label] == size * over // under
        assert left[label] / size <= fraction
    assert step.class_sizes_before_.tolist() == [sizes[z] for z in masked.frame["zip"]]


@pytest.mark.parametrize(
    ("rows", "fraction", "kept"), [(10, 0.3, 3), (7, 0.5, 3), (1000, 0.29, 290)]
)
def test_a_random_sample_has_its_size(rows, fraction, kept):
    assert len(sampled(classes(rows), fraction=fraction)[1]) == kept


def test_the_sample_belongs_to_keys_not_to_places(monkeypatch):
    monkeypatch.setattr("shoal.randomness._entropy", bytes)  # one secret for both
    table = classes(40, 25, 8, target=np.arange(73) % 2)
    other = table.reorder(np.random.default_rng(0).permutation(73))
    for strategy in ("random", "stratified", "balanced", "bernoulli"):
        options = {"fraction": 0.4, "strategy": strategy}
        first, second = sampled(table, **options)[1], sampled(other, **options)[1]
        assert set(first.row_key.tolist()) == set(second.row_key.tolist())


def test_every_record_is_equally_likely():
    """Chi-square over many draws; 13 of 26 records, each class of its own kind."""
    table = classes(10, 16)
    for strategy in ("random", "stratified", "bernoulli"):
        drawn = np.zeros(26)
        for _ in range(800):
            drawn[sampled(table, fraction=0.5, strategy=strategy)[1].row_key] += 1
        expected = 400.0
        # each count is binomial(800, 1/2) with variance 200; 26 of them
        assert ((drawn - expected) ** 2 / 200).sum() < 60  # far beyond the 0.999 quantile (54)


def reference_counts(classes, removals):
    left = sum(classes, Counter())
    kept = [Counter(cells) for cells in classes]
    for inside, number in zip(kept, removals, strict=True):
        for _ in range(number):
            most = min((value for value in +inside), key=lambda value: (-left[value], value))
            inside[most] -= 1
            left[most] -= 1
    return kept


@given(seed=st.integers(0, 10_000))
def test_balancing_equals_the_slow_way(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, rng.integers(1, 8))
    removals = np.array([rng.integers(0, size + 1) for size in sizes])
    drawn = [Counter(rng.choice(4, size, p=[0.6, 0.2, 0.1, 0.1]).tolist()) for size in sizes]
    labels = np.array([value for cells in drawn for value in sorted(cells)])
    counts = np.array([cells[value] for cells in drawn for value in sorted(cells)])
    offsets = np.append(0, np.cumsum([len(cells) for cells in drawn]))
    kept = balanced_counts(counts, labels, offsets, removals, 4)
    expected = reference_counts(drawn, removals)
    slow = [one[v] for one, cells in zip(expected, drawn, strict=True) for v in sorted(cells)]
    assert kept.tolist() == slow


def test_a_balanced_sample_is_balanced_where_it_can_be():
    target = np.array(([0] * 8 + [1] * 2) * 50)
    table = classes(*[10] * 50, target=target)
    masked = sampled(table, fraction=0.4, strategy="balanced")[1]
    assert Counter(masked.frame["ill"].to_list()) == {0: 100, 1: 100}


def test_balancing_takes_every_rare_value_in():
    """An intruder who knows the target is certain, although no class exceeds the fraction."""
    target = np.array(([0] * 9 + [1]) * 30)
    masked = sampled(classes(*[10] * 30, target=target), fraction=0.5, strategy="balanced")[1]
    assert Counter(masked.frame["ill"].to_list())[1] == 30


@pytest.mark.parametrize(("size", "above_half"), [(5, 0.5), (6, 0.344), (10, 0.377), (20, 0.412)])
def test_certainty_of_a_random_sample(size, above_half):
    """Of a class of F, more than half stays with these probabilities (binomial)."""
    rounds, found = 40, 0
    table = classes(*[size] * 500)
    for _ in range(rounds):
        masked = sampled(table, fraction=0.5)[1]
        counted = np.bincount(masked.frame["zip"].to_numpy(), minlength=500)
        found += int((counted / size > 0.5).sum())
    assert found / (rounds * 500) == pytest.approx(above_half, abs=0.015)


def test_bad_calls():
    for fraction in (0, 1, 1.5, -0.1, float("nan")):
        with pytest.raises(ParameterError, match="> 0 and < 1"):
            Sample(fraction=fraction)
    with pytest.raises(InputError, match="needs a target"):
        sampled(classes(5, 5), fraction=0.5, strategy="balanced")


def test_in_a_plan():
    plan = Plan([Sample(fraction=0.25, strategy="stratified")])
    assert Plan.from_toml(plan.to_toml()) == plan
