"""Suppression of columns, cells and records."""

from __future__ import annotations

import polars as pl
import pytest

from shoal import Roles, Suppress, Table
from shoal.errors import InputError, ParameterError

FRAME = pl.DataFrame(
    {
        "job": ["baker", "baker", "judge", None, None, "baker"],
        "age": [30, 30, 41, 41, 52, 30],
        "note": list("abcdef"),
    }
)


def table():
    return Table(FRAME, Roles(quasi_identifiers=["job", "age"], insensitive=["note"]))


def test_rare_cells():
    """judge, 52 and the pair of 41 are rarer than 3; a gap is no value and cannot go."""
    suppress = Suppress(min_count=3)
    masked = suppress.fit_transform(table())
    assert masked.frame["job"].to_list() == ["baker", "baker", None, None, None, "baker"]
    assert masked.frame["age"].to_list() == [30, 30, None, None, None, 30]
    assert suppress.touched_ == ("job", "age")
    assert suppress.removed_ == 0
    once = Suppress(min_count=2, columns=["age"]).fit_transform(table())
    assert once.frame["age"].to_list() == [30, 30, 41, 41, None, 30]


def test_small_classes():
    suppress = Suppress(min_class_size=2)
    masked = suppress.fit_transform(table())
    assert masked.row_key.tolist() == [0, 1, 5]
    assert (suppress.removed_, suppress.touched_) == (3, ())
    exactly = Suppress(min_class_size=3).fit_transform(table())
    assert exactly.row_key.tolist() == [0, 1, 5], "a class of exactly so many may stay"
    assert len(Suppress(min_class_size=4).fit_transform(table())) == 0
    with pytest.raises(InputError, match="6 records"):
        Suppress(min_class_size=7).fit_transform(table())


def test_cells_by_condition():
    suppress = Suppress(where="age > 40")
    masked = suppress.fit_transform(table())
    assert masked.frame["job"].to_list() == ["baker", "baker", None, None, None, "baker"]
    assert masked.frame["age"].to_list() == [30, 30, None, None, None, 30]
    assert masked.frame["note"].to_list() == list("abcdef")
    named = Suppress(where="note = 'a'", columns=["age"]).fit_transform(table())
    assert named.frame["age"].to_list() == [None, 30, 41, 41, 52, 30]


def test_records_by_condition():
    masked = Suppress(where="job IS NULL OR age > 50", target="records").fit_transform(table())
    assert masked.row_key.tolist() == [0, 1, 2, 5]


def test_a_condition_on_a_gap_is_not_met():
    assert len(Suppress(where="job <> 'baker'", target="records").fit_transform(table())) == 5


def test_a_condition_that_nothing_meets():
    suppress = Suppress(where="age > 100")
    masked = suppress.fit_transform(table())
    assert masked.frame.equals(FRAME)
    assert suppress.skipped_ == {"job": "no cell meets the rule", "age": "no cell meets the rule"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "exactly one rule"),
        ({"min_count": 2, "min_class_size": 2}, "Got 'min_count' and 'min_class_size'"),
        ({"max_distinct": 1.1}, "≥ 0 and ≤ 1"),
        ({"max_distinct": -0.1}, "≥ 0 and ≤ 1"),
        ({"min_count": 1}, "an integer ≥ 2"),
        ({"min_count": 2.5}, "an integer ≥ 2"),
        ({"where": "  "}, "a condition as in SQL"),
        ({"where": "TRUE", "target": "columns"}, "one of 'cells', 'records'"),
        (
            {"min_count": 2, "target": "records"},
            "'target' parameter of Suppress is for 'where'",
        ),
        ({"min_class_size": 2, "columns": ["age"]}, "no effect when whole records"),
        ({"where": "TRUE", "target": "records", "columns": ["age"]}, "no effect when whole"),
    ],
)
def test_what_is_refused(given, said):
    """What would silently do something else than it says is refused."""
    with pytest.raises(ParameterError) as caught:
        Suppress(**given)
    assert said in str(caught.value)


def test_another_rule_takes_the_first_one_out():
    suppress = Suppress(min_count=2)
    with pytest.raises(ParameterError, match="exactly one rule"):
        suppress.set_params(max_distinct=0.5)
    suppress = Suppress(min_count=2).set_params(min_count=None, max_distinct=0.5)
    assert suppress.max_distinct == 0.5


def test_a_condition_is_not_in_the_public_parameters():
    suppress = Suppress(where="job = 'canary-7d1f'")
    assert suppress.changed_params(public=True) == {}
    assert "canary" in str(suppress.changed_params())
