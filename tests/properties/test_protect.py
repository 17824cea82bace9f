"""Nothing leaves that does not satisfy the plan, counted again in plain Python."""

from __future__ import annotations

import warnings
from collections import Counter

import polars as pl
from hypothesis import event, given, settings
from hypothesis import strategies as st

from shoal import (
    AddNoise,
    KAnonymity,
    Limit,
    Plan,
    Recode,
    Roles,
    Round,
    Suppress,
    Table,
    TopBottomCode,
    protect,
)
from shoal.errors import InputError, RequirementNotMet, ShoalWarning

from .tables import KINDS, keys_of, rows_of, tables

COARSE = ["few integers", "small integers", "few floats", "few texts", "booleans"]
steps = st.one_of(
    st.builds(Round, base=st.sampled_from([0.2, 1, 5, 100])),
    st.builds(Recode, magnitude=st.sampled_from([0.5, 1.5])),
    st.builds(TopBottomCode, fence=st.sampled_from([0.1, 1.5, 3])),
    st.builds(AddNoise, epsilon=st.sampled_from([0.5, 16])),
    st.builds(Suppress, max_distinct=st.sampled_from([0.2, 0.5, 0.9])),
    st.builds(Suppress, min_count=st.integers(2, 3)),
    st.builds(Suppress, min_class_size=st.integers(2, 3)),
)
requirements = st.one_of(
    st.builds(KAnonymity, st.integers(2, 4)),
    st.builds(KAnonymity, st.integers(2, 4), missing=st.just("wildcard")),
    st.builds(Limit, st.just("marketer_risk"), at_most=st.sampled_from([0.2, 0.5])),
    st.builds(Limit, st.just("uniqueness"), at_most=st.sampled_from([0.0, 0.1])),
    st.builds(Limit, st.just("prosecutor_risk"), at_most=st.sampled_from([0.25, 0.5])),
)
plans = st.builds(
    Plan,
    st.lists(steps, max_size=3),
    require=st.lists(requirements, min_size=1, max_size=2),
    keep_order=st.booleans(),
)


def agree(one, other):
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def satisfied(requirement, table):
    """The requirement by its definition, in plain Python."""
    keys = keys_of(table)
    counts = Counter(keys)
    if isinstance(requirement, KAnonymity):
        if requirement.missing == "wildcard":
            return all(sum(agree(a, b) for b in keys) >= requirement.k for a in keys)
        return min(counts.values()) >= requirement.k
    value = {
        "marketer_risk": len(counts) / len(keys),
        "uniqueness": sum(size == 1 for size in counts.values()) / len(keys),
        "prosecutor_risk": 1 / min(counts.values()),
    }[requirement.measure]
    return value <= requirement.at_most + 1e-12


def released(table, plan):
    """The release, or None where Shoal refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        try:
            return protect(table, plan)
        except (RequirementNotMet, InputError):
            return None


@given(tables(rows=st.integers(2, 16), kinds=COARSE), plans)
@settings(max_examples=80)
def test_what_leaves_satisfies_the_plan(table, plan):
    release = released(table, plan)
    event("released" if release else "refused")
    if release is None:
        return
    assert len(release.masked)
    for claim, requirement in zip(release.claims, plan.require, strict=True):
        assert claim.holds
        assert satisfied(requirement, release.masked)


@given(tables(rows=st.integers(2, 16), kinds=COARSE), plans)
@settings(max_examples=80)
def test_nothing_is_refused_without_reason(table, plan):
    """Where the requirement holds after the same steps, the release is given, and the other way."""
    if any(isinstance(step, AddNoise) for step in plan.steps):
        return  # another run would draw other noise
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        try:
            masked, _ = plan.apply(table)
            for requirement in plan.require:
                if isinstance(requirement, KAnonymity):
                    requirement.check(table)
        except InputError:
            assert released(table, plan) is None
            return
    left = len(masked) > 0 and len(masked.columns) > 0
    holds = left and all(satisfied(one, masked) for one in plan.require)
    assert (released(table, plan) is not None) == holds


@given(tables(rows=st.integers(2, 30), kinds=list(KINDS)))
@settings(max_examples=30)
def test_shuffling_keeps_the_rows(table):
    """The same rows, whole, each with the key of its original."""
    release = released(table, Plan())
    assert Counter(map(repr, rows_of(release.masked))) == Counter(map(repr, rows_of(table)))
    keys = release.masked.row_key.tolist()
    assert sorted(keys) == list(range(len(table)))
    before, after = rows_of(table), rows_of(release.masked)
    assert [repr(row) for row in after] == [repr(before[key]) for key in keys]


@given(tables(rows=st.integers(2, 30), kinds=list(KINDS)))
@settings(max_examples=30)
def test_keep_order_keeps_it(table):
    release = released(table, Plan(keep_order=True))
    assert release.masked.frame.equals(table.frame)
    assert release.masked.row_key.tolist() == list(range(len(table)))


def test_the_shuffle_is_uniform():
    """Each of 4 rows comes first about 100 times in 400 releases (chi-square, 3 degrees)."""
    frame = pl.DataFrame({"x": [0, 1, 2, 3]})
    table = Table(frame, Roles(quasi_identifiers=["x"]))
    first = Counter(released(table, Plan()).masked.row_key[0] for _ in range(400))
    chi_square = sum((first[row] - 100) ** 2 / 100 for row in range(4))
    assert chi_square < 30  # met by chance once in a million
