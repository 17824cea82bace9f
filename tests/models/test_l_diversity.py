"""l-diversity in its three kinds; what holds for every model is in the contracts."""

from __future__ import annotations

import math
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import LDiversity, Plan, Roles, Table
from shoal.errors import InputError, ParameterError

from .tables import in_classes


def test_distinct_values_are_counted_class_by_class():
    table = in_classes("aab", "abc", "cc")
    assert LDiversity(2).level(table) == 1
    assert LDiversity(2).violations(table).tolist() == [False] * 6 + [True] * 2
    assert LDiversity(3).violations(table).tolist() == [True] * 3 + [False] * 3 + [True] * 2


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_m_equally_frequent_values_have_entropy_level_m(m):
    """Off by one would be m + 1 or m - 1 here."""
    table = in_classes(list(range(m)) * 3)
    assert LDiversity(2, kind="entropy").level(table) == pytest.approx(m)


def test_the_entropy_level_is_met_exactly():
    table = in_classes("aabbcc")
    assert LDiversity(3, kind="entropy").holds(table)
    assert not LDiversity(3.001, kind="entropy").holds(table)


def test_recursive_sorts_the_most_frequent_first():
    """Counts 5, 2, 1: 5 < c (2 + 1) for l = 2, and 5 < c × 1 for l = 3."""
    table = in_classes("aaaaabbc")
    assert not LDiversity(2, kind="recursive", c=5 / 3).holds(table)  # not strictly less
    assert LDiversity(2, kind="recursive", c=1.7).holds(table)
    assert not LDiversity(3, kind="recursive", c=5).holds(table)
    assert LDiversity(3, kind="recursive", c=5.1).holds(table)
    assert LDiversity(2, kind="recursive", c=1.7).level(table) == 2
    assert LDiversity(2, kind="recursive", c=0.1).level(table) == 0


def brute(values, kind, c):
    """The largest l by the definition, tried one after the other."""
    counts = sorted(Counter(values).values(), reverse=True)
    if kind == "distinct":
        return len(counts)
    if kind == "entropy":
        return math.exp(-sum(n / len(values) * math.log(n / len(values)) for n in counts))
    fits = [
        length for length in range(1, len(counts) + 1) if counts[0] < c * sum(counts[length - 1 :])
    ]
    return max(fits, default=0)


classes = st.lists(st.lists(st.integers(0, 6) | st.none(), min_size=1, max_size=25), min_size=1)


@given(
    classes, st.sampled_from(["distinct", "entropy", "recursive"]), st.sampled_from([0.75, 2, 3])
)
def test_levels_by_brute_force(groups, kind, c):
    model = LDiversity(2, kind=kind, c=c if kind == "recursive" else None)
    expected = min(brute(values, kind, c) for values in groups)
    assert model.level(in_classes(*groups)) == pytest.approx(expected)


def test_every_sensitive_column_counts():
    frame = pl.DataFrame({"x": [1, 1, 2, 2], "a": [*"pqpq"], "b": [1, 2, 3, 3]})
    table = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["a", "b"]))
    assert LDiversity(2).violations(table).tolist() == [False, False, True, True]
    assert LDiversity(2, column="a").holds(table)
    assert LDiversity(2, column="b").level(table) == 1


def test_a_missing_value_is_a_value_and_a_missing_key_is_a_class():
    frame = pl.DataFrame({"x": [1, 1, None], "ill": ["flu", None, "gout"]})
    table = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["ill"]))
    assert LDiversity(2).violations(table).tolist() == [False, False, True]


def test_weights_do_not_matter():
    frame = pl.DataFrame({"x": [1] * 4, "ill": [*"aaab"], "w": [1.0, 1.0, 1.0, 3.0]})
    roles = Roles(quasi_identifiers=["x"], sensitive=["ill"])
    model = LDiversity(1.9, kind="entropy")
    assert model.level(Table(frame, roles.replacing(weight="w"))) == model.level(
        Table(frame, roles)
    )


def test_what_cannot_be_reached_is_refused():
    table = in_classes("aab", "abc")
    LDiversity(3).check(table)
    with pytest.raises(InputError, match=r"l = 4 is larger .* column 'ill', which is 3"):
        LDiversity(4).check(table)


def test_there_must_be_something_sensitive():
    table = Table(pl.DataFrame({"x": [1, 1]}), Roles(quasi_identifiers=["x"]))
    with pytest.raises(InputError, match="the table declares none"):
        LDiversity(2).level(table)
    with pytest.raises(InputError, match="no column 'il'"):
        LDiversity(2, column="il").level(in_classes("ab"))
    with pytest.raises(InputError, match="'group' is a quasi-identifier"):
        LDiversity(2, column="group").level(in_classes("ab"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"l": 1},
        {"l": 2.5},
        {"l": 2.5, "kind": "recursive", "c": 2},
        {"l": 2, "kind": "recursive"},
        {"l": 2, "c": 2},
        {"l": 2, "kind": "recursive", "c": 0},
        {"l": 2, "kind": "shannon"},
    ],
)
def test_parameters_that_make_no_sense(wrong):
    with pytest.raises(ParameterError):
        LDiversity(**wrong)


def test_several_in_one_plan():
    plan = Plan(
        require=[
            LDiversity(2, kind="entropy", column="diagnosis"),
            LDiversity(3, kind="recursive", c=2.0, column="job"),
            LDiversity(2),
        ]
    )
    again = Plan.from_toml(plan.to_toml())
    assert again.require == plan.require
    one = Plan.from_toml(
        '[require]\nl_diversity = {l = 2, kind = "entropy", column = "diagnosis"}\n'
    )
    assert one.require == (LDiversity(2, kind="entropy", column="diagnosis"),)


def test_sentences():
    said = LDiversity(2).explain(in_classes("aab", "cc"))
    assert said == (
        "l-diversity requires at least 2 different sensitive values in a class (l = 2); the worst "
        "class reaches 1 in 'ill', and 2 of 5 records are in classes that fail"
    )
