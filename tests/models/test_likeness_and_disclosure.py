"""(α, k)-anonymity, β-likeness and δ-disclosure privacy, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import AlphaKAnonymity, BetaLikeness, DeltaDisclosure
from shoal.errors import InputError

from .tables import in_classes


def test_alpha_and_k_must_both_hold():
    table = in_classes("aab", "abbb", "a")
    model = AlphaKAnonymity(0.7, 2)
    assert model.violations(table).tolist() == [False] * 3 + [True] * 5
    assert model.level(table) == math.inf  # no alpha makes up for a class that is too small
    assert AlphaKAnonymity(0.75, 2).violations(table).tolist() == [False] * 7 + [True]
    assert AlphaKAnonymity(1, 2).violations(table).tolist() == [False] * 7 + [True]
    assert AlphaKAnonymity(0.75, 4).violations(table).tolist() == [True] * 3 + [False] * 4 + [True]
    assert "fails with any parameter" in model.explain(table)


def test_alpha_below_one_in_the_number_of_values_is_refused():
    table = in_classes("abc", "abc")
    AlphaKAnonymity(1 / 3, 3).check(table)
    assert AlphaKAnonymity(1 / 3, 3).holds(table)
    with pytest.raises(InputError, match=r"the 3 that column 'ill' has.* at least 0\.33"):
        AlphaKAnonymity(0.3, 3).check(table)
    with pytest.raises(InputError, match=r"has 6 records.* at most 6"):
        AlphaKAnonymity(0.5, 7).check(table)


def test_gains_are_relative():
    """b has 1/8 overall and 1/4 in the first class: a gain of 1. a never gains more than 1/7."""
    table = in_classes("aaab", "aaaa")
    assert BetaLikeness(1).level(table) == pytest.approx(1)
    assert BetaLikeness(1).holds(table)
    assert BetaLikeness(0.9).violations(table).tolist() == [True] * 4 + [False] * 4


def test_losing_a_value_is_no_gain():
    table = in_classes("aabb", "aabb", "ab")
    assert BetaLikeness(0.01).holds(table)


def test_the_enhanced_form_bounds_frequent_values():
    """a has 7/8 overall: -ln(7/8) = 0.134 is below its gain of 1/7 in the second class."""
    table = in_classes("aaab", "aaaa")
    model = BetaLikeness(1, enhanced=True)
    assert model.violations(table).tolist() == [False] * 4 + [True] * 4
    assert model.level(table) == math.inf
    assert "fails with any parameter" in model.explain(table)


@given(st.floats(1e-6, 1 - 1e-6))
def test_the_enhanced_form_never_lets_a_value_fill_a_class(share):
    """Cao and Karras: q (1 + min(β, -ln q)) < 1 for every q < 1."""
    assert share * (1 - math.log(share)) < 1


def test_a_class_of_one_value_fails_the_enhanced_form_at_any_beta():
    table = in_classes("aaaa", "aabb")
    assert BetaLikeness(1e6).holds(table)
    assert BetaLikeness(1e6, enhanced=True).violations(table).tolist() == [True] * 4 + [False] * 4


def test_disclosure_counts_in_both_directions():
    """a: 1/2 overall, 3/4 and 1/4 in the classes: ln 1.5 up, and ln 2 down for the other."""
    table = in_classes("aaab", "abbb")
    assert DeltaDisclosure(1).level(table) == pytest.approx(math.log(2))
    assert DeltaDisclosure(0.7).holds(table)
    assert not DeltaDisclosure(0.69).holds(table)


def test_disclosure_must_be_strictly_below_delta():
    table = in_classes("aaab", "abbb")
    assert not DeltaDisclosure(math.log(2)).holds(table)


def test_a_class_that_lacks_a_value_discloses_that():
    table = in_classes("aabbc", "aabb")
    model = DeltaDisclosure(100)
    assert model.violations(table).tolist() == [False] * 5 + [True] * 4
    assert model.level(table) == math.inf


values = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@given(st.lists(values, min_size=1, max_size=4))
def test_levels_by_brute_force(groups):
    table = in_classes(*groups)
    everyone = [value for group in groups for value in group]
    likeness = disclosure = 0.0
    for group in groups:
        for value in set(everyone):
            p, q = group.count(value) / len(group), everyone.count(value) / len(everyone)
            likeness = max(likeness, (p - q) / q)
            disclosure = max(disclosure, abs(math.log(p / q)) if p else math.inf)
    assert BetaLikeness(1).level(table) == pytest.approx(likeness, abs=1e-12)
    assert DeltaDisclosure(1).level(table) == pytest.approx(disclosure, abs=1e-12)
    shares = [max(map(g.count, g)) / len(g) if len(g) > 1 else math.inf for g in groups]
    assert AlphaKAnonymity(0.5, 2).level(table) == pytest.approx(max(shares))
