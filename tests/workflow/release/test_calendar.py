"""Dates on a time axis: calendar bins, spans of released texts, and the bars of a column."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Generalize, Hierarchy, Plan, Roles, Table, protect
from shoal.table.columns._domain import read_domain
from shoal.workflow.release._calendar import Bins, date_text, spans_of_dates
from shoal.workflow.report._figures import histogram

EPOCH = dt.date(1970, 1, 1)
DAYS = st.integers(-200_000, 200_000)  # the years 1422 to 2517
ALL_BINS = [Bins("D"), Bins("W"), Bins("M"), Bins("M", 3), Bins("Y"), Bins("Y", 5), Bins("Y", 100)]


def _date(days: float) -> dt.date:
    return EPOCH + dt.timedelta(days=int(days))


def _days(text: str) -> int:
    return (dt.date.fromisoformat(text) - EPOCH).days


@given(DAYS, st.sampled_from(ALL_BINS))
def test_each_day_lies_in_its_bin(day, bins):
    number = bins.number(day)
    assert bins.start(number) <= day < bins.start(number + 1)
    first = _date(bins.start(number))
    if bins.unit == "W":
        assert first.weekday() == 0
    elif bins.unit == "M":
        assert (first.day, (first.month - 1) % bins.joined) == (1, 0)
    elif bins.unit == "Y":
        assert (first.month, first.day, first.year % bins.joined) == (1, 1, 0)


@given(DAYS, st.integers(0, 90_000))
def test_the_finest_bins_that_are_few_enough_are_chosen(low, length):
    bins = Bins.for_range(low, low + length, 20)
    edges = bins.edges(low, low + length)
    assert edges[0] <= low
    assert low + length < edges[-1]
    assert len(edges) <= 21
    if length < 19:
        assert bins == Bins("D")


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("1962", "1962-01-01", "1963-01-01"),
        ("1960s", "1960-01-01", "1970-01-01"),
        ("1900-1999", "1900-01-01", "2000-01-01"),
        ("1962-Q4", "1962-10-01", "1963-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("2020-W53", "2020-12-28", "2021-01-04"),
        ("[1962-05-04, 1970-01-01)", "1962-05-04", "1970-01-01"),
        ("[1962-05-04, 1970-01-01]", "1962-05-04", "1970-01-02"),
    ],
)
def test_a_released_text_covers_its_days(text, first, end):
    assert spans_of_dates([text], read_domain([text], "date")).tolist() == [
        [_days(first), _days(end)]
    ]


@given(st.dates(dt.date(1800, 1, 1), dt.date(2199, 12, 31)), st.sampled_from(
    ["month", "quarter", "year", "decade", "century", "week"]))  # fmt: skip
def test_the_units_of_hierarchies_are_read(day, unit):
    values = pl.Series("d", [day])
    from shoal.table.hierarchy._rule import Dates

    rung = Dates((unit,)).rungs(values, "refuse")[0]
    found = spans_of_dates(list(rung.labels), read_domain(rung.labels, "date"))
    low, high = found[0]
    assert low <= (day - EPOCH).days < high


@pytest.mark.parametrize("text", ["yesterday", "{1962-01-01, 1970-01-01}", "1962-13", "1962-02-30"])
def test_other_texts_have_no_span(text):
    assert spans_of_dates([text], read_domain([text], "date")) is None


def test_ticks_name_the_coarsest_unit():
    assert [date_text(_days(t)) for t in ("1962-01-01", "1962-05-01", "1962-05-04")] == [
        "1962", "1962-05", "1962-05-04",
    ]  # fmt: skip


# -- bars


def _profile(dates, step=None):
    table = Table(pl.DataFrame({"day": dates}), Roles(quasi_identifiers=["day"]))
    steps = [] if step is None else [step]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return protect(table, Plan(steps)).columns[0]


def test_generalized_dates_are_drawn_over_their_span():
    dates = [dt.date(1950 + n % 40, 1 + n % 12, 15) for n in range(400)]
    rule = Hierarchy.dates(["decade"])
    step = Generalize("full-domain", k=5, hierarchies={"day": rule})
    profile = _profile(dates, step)
    assert profile.dates
    assert profile.intervals
    numbers = [bar for bar in profile.bars if bar.low is not None]
    assert all(bar.low < bar.high for bar in numbers)
    # 10 % a year in each decade: 400 dates evenly over 40 years, so 5 % in two years
    assert [bar.after for bar in numbers if bar.after] == pytest.approx([5] * 20, abs=1)
    assert _date(numbers[0].low) == dt.date(1950, 1, 1)
    assert numbers[0].label == "1950 to 1951"
    chart = histogram(profile.bars, dates=True)
    assert chart.x_ticks[0].label == "1950"
    places = [tick.at for tick in chart.x_ticks]
    assert places == sorted(places)


def test_a_single_open_interval_is_drawn():
    moments = [dt.datetime(1922, 8, 8, 14)] * 7 + [dt.datetime(1930, 1, 18, 14)] * 4
    moments += [dt.datetime(2058, 3, 9)] * 2 + [None] * 11
    profile = _profile(moments, Generalize("mondrian", k=5))
    assert profile.dates
    assert any(bar.after for bar in profile.bars)


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("ms"), pl.Datetime("us", "Europe/Berlin")])
def test_dates_that_stay_are_counted_in_their_bins(kind):
    dates = [dt.date(2024, 1 + n % 12, 1 + n % 28) for n in range(240)]
    profile = _profile(pl.Series(dates).cast(pl.Datetime("us")).dt.replace_time_zone(
        getattr(kind, "time_zone", None)).cast(kind))  # fmt: skip
    shown = {bar.label: bar.after for bar in profile.bars}
    assert list(shown) == [f"2024-{month:02d}" for month in range(1, 13)]
    expected = np.bincount([day.month for day in dates], minlength=13)[1:] / len(dates) * 100
    assert list(shown.values()) == pytest.approx(list(expected), abs=0.5)


def test_no_bar_of_dates_tells_of_fewer_than_ten_people():
    dates = [dt.date(1950, 1, 1) + dt.timedelta(days=137 * (n % 90)) for n in range(450)]
    dates[0] = dt.date(1890, 5, 5)
    profile = _profile(dates, Generalize("mondrian", k=10))
    assert "1890" not in str(profile.to_dict())
    shares = [bar.before for bar in profile.bars if bar.low is not None]
    assert all(share == 0 or share >= 100 * 10 / 450 for share in shares)
