"""Pictures for the public: crowds and steps, whatever the table."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Roles, Round, Suppress, Table
from shoal.table import Dictionary
from shoal.table.storage.labelled._dictionary import Facts
from shoal.workflow.release._crowds import (
    SMALLEST_CROWD,
    crowded_count,
    crowded_percent,
    crowded_removals,
    share_step,
)
from shoal.workflow.release._profile import (
    _crowded_spans,
    _round_edges,
    class_size_profile,
    column_profiles,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_edges_rise_around_the_range(one, other):
    """On any range, from the smallest float to the largest."""
    low, high = min(one, other), max(one, other)
    edges = _round_edges(low, high)
    assert 2 <= len(edges) <= 26
    with np.errstate(invalid="ignore"):
        assert (np.diff(edges) > 0).all()
    rounding = 1e-12 * max(abs(low), abs(high))
    assert edges[0] <= low + rounding
    assert edges[-1] >= high - rounding
    # what is counted with: open ends, and no two inner edges alike
    inner = edges[1:-1]
    assert np.isfinite(inner).all()
    assert len(np.unique(inner)) == len(inner)


@pytest.mark.parametrize(
    ("low", "high", "edges"),
    [
        (0, 100, [0, 5, 10]),
        (20, 59, [20, 22, 24]),
        (0, 1, [0, 0.05, 0.1]),
        (7, 7, [7, 8]),
        (0, 0, [0, 0.1]),
    ],
)
def test_edges_are_round_numbers(low, high, edges):
    assert _round_edges(low, high)[: len(edges)] == pytest.approx(edges)


def test_whole_numbers_have_bars_of_whole_numbers():
    """Not from 1 to 1.05, from 1.05 to 1.1, and so on."""
    frame = pl.DataFrame({"sex": [1, 2] * 50, "age": list(range(20, 70)) * 2})
    table = Table(frame, Roles(quasi_identifiers=["age"]))
    sex, age = column_profiles(table, table)
    assert [bar.label for bar in sex.bars] == ["1", "2"]
    assert [bar.label for bar in age.bars][:2] == ["20 to 24", "25 to 29"]


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["1990-1994", "1995-1999"], "1990"),
        (["1980s", "1990-1994", "1995", "*"], "1980 to 1981"),
        (["1990-05", "1990-Q3"], "1990-05"),
    ],
)
def test_calendar_units_are_on_a_time_axis(texts, first):
    """Also units of several sizes, as local recoding releases them."""
    born = [dt.date(1980, 1, 1) + dt.timedelta(days=73 * n) for n in range(100)]
    table = Table(pl.DataFrame({"born": born}), Roles(quasi_identifiers=["born"]))
    masked = table.with_labels("born", texts, (np.arange(100) % len(texts)).astype(np.uint8))
    (profile,) = column_profiles(table, masked)
    assert profile.numeric
    assert profile.dates
    assert profile.bars[0].label == first


def test_codes_with_labels_are_shown_by_them():
    facts = Facts(label="Sex of respondent", values={1: "male", 2: "female", 3: "nobody"})
    table = Table(pl.DataFrame({"sex": [1, 2, 2, 2] * 25, "wage": range(100)}))
    (sex, _) = column_profiles(*[table.described(Dictionary("stata", {"sex": facts}))] * 2)
    assert [bar.label for bar in sex.bars] == ["male (1)", "female (2)"]
    facts = Facts(values={0: "none"})  # only one of the numbers has a label: a quantity
    (_, wage) = column_profiles(*[table.described(Dictionary("stata", {"wage": facts}))] * 2)
    assert wage.bars[0].label == "0 to 4"


@given(st.lists(st.integers(0, 25), min_size=1, max_size=12))
def test_spans_hold_nobody_or_a_crowd(counts):
    """Neighbouring bars are joined; together they are all bars, in order, none twice."""
    spans = _crowded_spans(np.array(counts))
    covered = [place for first, last in spans for place in range(first, last + 1)]
    assert covered == list(range(len(counts)))
    sums = [sum(counts[first : last + 1]) for first, last in spans]
    if sum(counts) == 0 or sum(counts) >= SMALLEST_CROWD:
        assert all(total == 0 or total >= SMALLEST_CROWD for total in sums)
    else:
        assert len([total for total in sums if total]) == 1


@given(st.integers(0, 10**6), st.data())
def test_shares_are_told_in_steps_of_a_crowd(rows, data):
    step = share_step(rows)
    count = data.draw(st.integers(0, rows))
    if step is None:
        assert rows < 100
        assert crowded_percent(count / max(rows, 1), rows) is None
        return
    assert step * rows / 100 >= SMALLEST_CROWD or step == 1
    told = crowded_percent(count / rows, rows)
    assert 0 <= told <= 100
    assert abs(told - 100 * count / rows) <= step


def test_few_are_only_called_few():
    assert [crowded_count(n) for n in (0, 1, 9, 10, 11)] == [
        0,
        "fewer than 10",
        "fewer than 10",
        10,
        11,
    ]
    assert crowded_removals([0, 0]) == [0, 0]
    assert crowded_removals([50]) == [50]
    assert crowded_removals([50, 3]) == ["some", "some"]


def table_of(**columns):
    frame = pl.DataFrame(columns)
    return Table(frame, Roles(quasi_identifiers=frame.columns))


def test_profiles_of_a_changed_a_same_and_a_removed_column():
    ages = [20 + i % 50 for i in range(200)]
    original = table_of(age=ages, city=["Bern", "Jena"] * 100, badge=list(range(200)))
    masked = Suppress(max_distinct=0.9).fit_transform(original)
    masked = Round(base=20).fit_transform(masked)
    profiles = {profile.name: profile for profile in column_profiles(original, masked)}
    assert {name: profile.status for name, profile in profiles.items()} == {
        "age": "changed",
        "city": "unchanged",
        "badge": "removed",
    }
    assert profiles["badge"].bars == ()
    assert all(bar.before is None for bar in profiles["city"].bars), "nothing to subtract"
    age = profiles["age"]
    assert age.numeric
    assert sum(bar.after for bar in age.bars) == pytest.approx(100, abs=10)
    json.dumps([profile.to_dict() for profile in profiles.values()], allow_nan=False)


def test_a_value_of_few_people_is_not_shown():
    """A changed column of which a few kept a rare value: its bar would be those few."""
    values = ["rare"] * 3 + ["common"] * 150 + ["other"] * 60
    original = table_of(job=values)
    keep = np.ones(213, dtype=bool)
    keep[:3] = False
    masked = original.blank({"job": ~keep | (np.arange(213) > 200)})
    (profile,) = column_profiles(original, masked)
    assert "rare" not in [bar.label for bar in profile.bars]
    remaining = original.blank({"job": np.arange(213) > 200})
    (profile,) = column_profiles(original, remaining)
    assert "rare" not in [bar.label for bar in profile.bars]
    assert "common" in [bar.label for bar in profile.bars]


def test_identifiers_have_no_profile():
    frame = pl.DataFrame({"name": list("abc"), "age": [1, 2, 3]})
    original = Table(frame, Roles(identifiers=["name"], quasi_identifiers=["age"]))
    profiles = column_profiles(original, original.drop(["name"]))
    assert [profile.name for profile in profiles] == ["age"]


def test_sizes_before_that_few_live_in_are_joined():
    """One record alone and 300 in three large classes: the one is not told apart."""
    original = table_of(x=[0] + [1] * 100 + [2] * 100 + [3] * 100)
    masked = original.keep(np.arange(301) > 0)
    bars = class_size_profile(original, masked)
    assert bars[0].label != "1" or bars[0].before in (0, None)
    assert all(bar.before is None or bar.before == 0 or bar.before >= 3 for bar in bars)
    assert bars[-1].after == 100.0


def test_a_column_without_a_value_left():
    original = table_of(x=[1.5, 2.5] * 20, y=[1, 2] * 20)
    masked = original.blank({"x": np.ones(40, dtype=bool)})
    profile = column_profiles(original, masked)[0]
    assert [bar.label for bar in profile.bars] == ["missing"]
    assert profile.bars[0].after == 100.0


def intervals_of(ages, *, width):
    """A table of ages, and the same as closed intervals of so many whole numbers."""
    original = table_of(age=ages)
    labels = [f"[{a - a % width}, {a - a % width + width - 1}]" for a in ages]
    masked = Table(pl.DataFrame({"age": labels}), original.roles).paired(original)
    return original, masked


def test_released_intervals_are_spread_over_their_width():
    """Ten-year intervals over bars of one year: each gets a tenth of what the interval holds."""
    ages = [20 + i % 10 for i in range(300)] + [30 + i % 10 for i in range(100)]
    (profile,) = column_profiles(*intervals_of(ages, width=10))
    assert profile.numeric
    assert profile.intervals
    assert [(bar.low, bar.high) for bar in profile.bars] == [(n, n + 1) for n in range(20, 40)]
    assert [bar.after for bar in profile.bars] == [8.0] * 10 + [2.0] * 10  # 7.5 and 2.5 of 100
    assert sum(bar.before for bar in profile.bars) == pytest.approx(100, abs=20)


def test_bars_of_whole_numbers_are_not_narrower_than_one():
    original, masked = intervals_of([0, 1, 2, 3] * 50, width=2)
    (profile,) = column_profiles(original, masked)
    assert [(bar.low, bar.high) for bar in profile.bars] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [bar.after for bar in profile.bars] == [25.0] * 4
    assert [bar.before for bar in profile.bars] == [25.0] * 4


def test_open_intervals_single_numbers_and_what_says_nothing():
    original = table_of(x=[float(n) for n in range(100)] * 6)
    labels = (["<20"] * 20 + ["[20, 60)"] * 40 + ["60"] * 30 + ["*"] * 10) * 6
    masked = Table(pl.DataFrame({"x": labels}), original.roles).paired(original)
    bars = {bar.label: bar for bar in column_profiles(original, masked)[0].bars}
    assert bars["*"].after == 10.0
    assert (bars["*"].before, bars["*"].low) == (0.0, None)
    assert sum(bar.after for bar in bars.values()) == pytest.approx(100, abs=5)
    assert next(iter(bars.values())).after == 20.0, "an open interval lies in the outermost bar"
    assert next(bar for bar in bars.values() if bar.low == 60).after == 30.0


def test_texts_that_are_no_intervals_are_counted_by_value():
    original = table_of(x=[1, 2] * 60)
    masked = Table(pl.DataFrame({"x": ["few", "many"] * 60}), original.roles).paired(original)
    (profile,) = column_profiles(original, masked)
    assert not profile.numeric
    assert {bar.label for bar in profile.bars} == {"few", "many"}


def test_few_with_a_twin_do_not_hide_how_large_crowds_were():
    """All but two records are alone: the two are joined with them, not with all other sizes."""
    original = table_of(x=[*range(300), 0])
    bars = class_size_profile(original, original)
    assert [bar.label for bar in bars][:3] == ["1–2", "3–4", "5–9"]
    assert [bar.before for bar in bars] == [100.0] + [0.0] * 6


def test_intervals_over_the_whole_range_of_numbers():
    def bars(power):
        pay = [float(f"{sign}1.797{power}") for sign in ("", "-") for _ in range(5)] + [1.0] * 5
        table = Table(pl.DataFrame({"pay": pay}), Roles(quasi_identifiers=["pay"]))
        labels = [f"<-1.5{power}", f"[-1.5{power}, 1.5{power})", f">=1.5{power}"]
        (profile,) = column_profiles(table, table.with_labels("pay", labels, np.arange(15) // 5))
        return profile.bars

    widest = bars("e308")
    assert [bar.after for bar in widest] == [bar.after for bar in bars("e300")]
    assert all(np.isfinite([bar.low, bar.high]).all() for bar in widest)
