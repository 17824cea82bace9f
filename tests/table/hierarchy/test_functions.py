"""Hierarchies that are functions: intervals, rounding, edges, quantiles, dates, prefixes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal import Hierarchy, Table
from shoal.errors import InputError

from .ladders import ascending, check_ladder


def table_of(values, dtype=None):
    return Table(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))


def labels_of(hierarchy, values, level, dtype=None):
    masked = hierarchy.generalize(table_of(values, dtype), "x", level)
    return masked.frame["x"].to_list()


# -- intervals and rounding


def reference_cell(value, width, start):
    """The cell whose edges, as floats, hold a float; exact for whole numbers."""
    if isinstance(value, int):
        return (Fraction(value) - Fraction(start)) // Fraction(width)
    cell = (Fraction(value) - Fraction(start)) // Fraction(width)
    while value < float(start + width * int(cell)):
        cell -= 1
    while value >= float(start + width * int(cell + 1)):
        cell += 1
    return cell


WIDTHS = st.sampled_from(["0.1", "0.25", "1", "3", "7.5", "1000", "1e-9"]).map(Decimal)
FACTORS = st.lists(st.integers(2, 5), max_size=3)


def widths_from(first, factors):
    widths = [first]
    for factor in factors:
        widths.append(widths[-1] * factor)
    return widths


@given(
    st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50).map(lambda n: n / 10), min_size=1),
    WIDTHS,
    FACTORS,
    st.sampled_from(["0", "0.5", "-3"]).map(Decimal),
)
@example([0.3, 0.6, 0.7, -0.1, 0.1 + 0.2], Decimal("0.1"), [2], Decimal(0))
def test_intervals_of_floats_are_those_of_the_edges(values, width, factors, origin):
    widths = widths_from(width, factors)
    codes = Hierarchy.intervals(widths, origin=origin).codes(table_of(values), "x")
    check_ladder(codes)
    assert ascending(codes)
    distinct = codes.column.levels.to_list()
    for level, wide in enumerate(widths, 1):
        cells = [reference_cell(value, wide, origin) for value in distinct]
        assert codes.maps[level].tolist() == [sorted(set(cells)).index(cell) for cell in cells]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20), min_size=1, max_size=20),
    st.sampled_from([2, 5, 1000, 2**40, 2**63, 2**64, 2**65]),
    FACTORS,
    st.integers(-7, 7),
    st.booleans(),
)
def test_intervals_of_whole_numbers_are_exact(values, width, factors, origin, rounds):
    widths = widths_from(Decimal(width), factors)
    made = Hierarchy.rounding(widths) if rounds else Hierarchy.intervals(widths, origin=origin)
    codes = made.codes(table_of(values, pl.Int64), "x")
    check_ladder(codes)
    if rounds:
        return
    distinct = codes.column.levels.to_list()
    for level, wide in enumerate(widths, 1):
        cells = [reference_cell(value, wide, Decimal(origin)) for value in distinct]
        assert codes.maps[level].tolist() == [sorted(set(cells)).index(cell) for cell in cells]


def test_unsigned_words_to_their_end():
    codes = Hierarchy.intervals(2**60).codes(table_of([0, 2**63, 2**64 - 1], pl.UInt64), "x")
    assert codes.maps[1].tolist() == [0, 1, 2]
    assert codes.labels[1][0] == f"[0, {2**60})"
    assert codes.labels[1][2] == f"[{15 * 2**60}, {2**64})"


@given(st.lists(st.integers(-300, 300), min_size=1), st.integers(1, 12).map(Decimal), FACTORS)
def test_rounding_rounds_the_level_below_half_up(values, base, factors):
    bases = widths_from(base, factors)
    table = table_of(values)
    for level in range(1, len(bases) + 1):
        expected = []
        for value in values:
            for one in bases[:level]:
                value = one * ((Fraction(value) / Fraction(one) + Fraction(1, 2)) // 1)
            expected.append(str(int(value)))
        released = Hierarchy.rounding(bases).generalize(table, "x", level)
        assert released.frame["x"].to_list() == expected


def test_labels_of_intervals_are_written_plainly():
    hierarchy = Hierarchy.intervals(0.1, levels=2)
    assert labels_of(hierarchy, [0.3, -0.05, 2.0], 1) == ["[0.3, 0.4)", "[-0.1, 0)", "[2, 2.1)"]
    assert labels_of(hierarchy, [0.3, -0.05, 2.0], 2) == ["[0.2, 0.4)", "[-0.2, 0)", "[2, 2.2)"]
    assert labels_of(hierarchy, [0.3, None], 1) == ["[0.3, 0.4)", None]
    assert labels_of(hierarchy, [0.3, None], 3) == ["*", "*"]
    assert labels_of(Hierarchy.rounding([5]), [12, 13], 1) == ["10", "15"]


def test_numbers_that_are_huge_beside_the_width_keep_their_cells():
    codes = Hierarchy.intervals(1).codes(table_of([1e300, 1.0, 1.5, 2.0**60]), "x")
    assert codes.maps[1].tolist() == [0, 0, 1, 2]
    check_ladder(codes)


def test_whole_numbers_in_cells_of_broken_width_are_exact():
    width = Decimal("1000000000.5")
    edge = 10**9 * 2 + 1  # the end of the second cell, and the same far out
    values = [0, edge - 1, edge, 10**9 * edge - 1, 10**9 * edge, 10**9 * edge + 1]
    codes = Hierarchy.intervals(width).codes(table_of(values), "x")
    cells = [value // Fraction(width) for value in values]
    assert codes.maps[1].tolist() == [sorted(set(cells)).index(cell) for cell in cells]
    assert codes.maps[1].tolist() == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: Hierarchy.intervals([5, 12]), "12 is not a multiple of 5"),
        (lambda: Hierarchy.intervals([5, 5]), "5 is not a multiple"),
        (lambda: Hierarchy.rounding([0.1, 0.25]), "0.25 is not a multiple of 0.1"),
        (lambda: Hierarchy.intervals(0), "above 0"),
        (lambda: Hierarchy.intervals([]), "above 0"),
        (lambda: Hierarchy.intervals(float("nan")), "finite"),
        (lambda: Hierarchy.intervals("5"), "finite"),
        (lambda: Hierarchy.intervals(True), "finite"),
        (lambda: Hierarchy.intervals(), "either 'width' or 'edges'"),
        (lambda: Hierarchy.intervals(5, edges=[1]), "either 'width' or 'edges'"),
        (lambda: Hierarchy.intervals(5, levels=0), "1 or more"),
        (lambda: Hierarchy.intervals([5, 10], levels=2), "Leave out 'levels'"),
        (lambda: Hierarchy.intervals(edges=[1, 1]), "ascending"),
        (lambda: Hierarchy.intervals(edges=[]), "at least one"),
        (lambda: Hierarchy.intervals(edges=[1], origin=2), "origin"),
        (lambda: Hierarchy.intervals(edges=[1, 2], levels=0), "1 or more"),
        (lambda: Hierarchy.intervals(edges=[[1, 2], [3]]), "1 edges of a coarser level"),
        (lambda: Hierarchy.intervals(edges=[[1, 2], [1, 2]]), "not all, edges"),
        (lambda: Hierarchy.intervals(edges=[[1, 2], [1]], levels=1), "Leave out 'levels'"),
        (lambda: Hierarchy.quantiles([]), "finite"),
        (lambda: Hierarchy.quantiles([1, float("inf")]), "finite"),
        (lambda: Hierarchy.quantiles([1, 2], groups=(4, 3)), "must divide"),
        (lambda: Hierarchy.quantiles([1, 2], groups=(1,)), "2 or more"),
        (lambda: Hierarchy.prefixes([2, 3]), "long to short"),
        (lambda: Hierarchy.prefixes([]), "long to short"),
        (lambda: Hierarchy.prefixes([1, 0]), "1 character"),
        (lambda: Hierarchy.prefixes([1], pad=0), "'pad'"),
        (lambda: Hierarchy.dates(["fortnight"]), "no date unit 'fortnight'"),
        (lambda: Hierarchy.dates(["week", "month"]), "Weeks do not nest in a month"),
        (lambda: Hierarchy.dates(["day", "week", "year"]), "Weeks do not nest in a year"),
        (lambda: Hierarchy.dates(["year", "month"]), "fine to coarse"),
        (lambda: Hierarchy.dates([]), "fine to coarse"),
    ],
)
def test_what_does_not_nest_is_refused_at_once(made, told):
    with pytest.raises(InputError, match=told):
        made()


def test_infinite_numbers_are_refused_by_their_count():
    with pytest.raises(InputError, match="2 infinite values"):
        Hierarchy.intervals(5).codes(table_of([1.0, float("inf"), -float("inf")]), "x")


@pytest.mark.parametrize(
    ("hierarchy", "values"),
    [
        (Hierarchy.intervals(5), ["a"]),
        (Hierarchy.intervals(edges=[5]), [True]),
        (Hierarchy.rounding([5]), [dt.date(2020, 1, 1)]),
        (Hierarchy.dates(), ["2020-01-01"]),
        (Hierarchy.dates(["year"]), [dt.time(1)]),
        (Hierarchy.prefixes([1]), [1.5]),
    ],
)
def test_a_hierarchy_for_another_kind_of_column_is_refused(hierarchy, values):
    with pytest.raises(InputError, match="Column 'x' is"):
        hierarchy.codes(table_of(values), "x")


# -- edges and quantiles


@given(
    st.lists(st.integers(-30, 30) | st.integers(2**53, 2**53 + 9), min_size=1),
    st.lists(st.integers(-20, 20) | st.integers(2**53, 2**53 + 9), min_size=1, unique=True),
    st.booleans(),
)
def test_edges_part_values_as_comparing_does(values, edges, floats):
    edges = sorted(edges)
    if floats:  # whose edges are the nearest floats
        values, edges = [list(map(float, numbers)) for numbers in (values, edges)]
        edges = sorted(set(edges))
    hierarchy = Hierarchy.intervals(edges=edges, levels=3)
    codes = hierarchy.codes(table_of(values), "x")
    check_ladder(codes)
    assert ascending(codes)
    distinct = codes.column.levels.to_list()
    for level in range(1, hierarchy.levels - 1):
        kept = edges
        for _ in range(level - 1):
            kept = kept[1::2]
        cells = [sum(edge <= value for edge in kept) for value in distinct]
        assert codes.maps[level].tolist() == [sorted(set(cells)).index(cell) for cell in cells]


def test_edges_beyond_the_type_of_the_column():
    hierarchy = Hierarchy.intervals(edges=[-(2**70), 0.5, 2**70])
    codes = hierarchy.codes(table_of([-(2**63), 0, 1, 2**63 - 1], pl.Int64), "x")
    assert codes.maps[1].tolist() == [0, 0, 1, 1]
    assert codes.labels[1] == (f"[-{2**70}, 0.5)", f"[0.5, {2**70})")


def test_open_ends_have_their_labels_and_bounds():
    hierarchy = Hierarchy.intervals(edges=[18, 65.5])
    codes = hierarchy.codes(table_of([3, 18, 70]), "x")
    assert codes.labels[1] == ("<18", "[18, 65.5)", ">=65.5")
    assert codes.bounds(1).tolist() == [[-np.inf, 18], [18, 65.5], [65.5, np.inf]]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_quantiles_nest_and_keep_equal_values_together(values):
    codes = Hierarchy.quantiles(values, groups=(8, 4, 2)).codes(table_of(values), "x")
    check_ladder(codes)


def test_quantiles_hold_equally_many():
    values = np.random.default_rng(1).permutation(800)
    hierarchy = Hierarchy.quantiles(values, groups=(8, 2))
    codes = hierarchy.codes(table_of(values), "x")
    assert np.bincount(codes.maps[1]).tolist() == [100] * 8
    assert np.bincount(codes.maps[2]).tolist() == [400] * 2
    assert Hierarchy.quantiles([5, 5, 5]) == Hierarchy.suppression()


# -- dates


def reference_unit(moment, unit):
    """The label of a unit, by the calendar of Python."""
    iso = moment.isocalendar()
    return {
        "day": moment.strftime("%Y-%m-%d"),
        "week": f"{iso.year}-W{iso.week:02d}",
        "iso-year": f"ISO {iso.year}",
        "month": f"{moment.year}-{moment.month:02d}",
        "quarter": f"{moment.year}-Q{(moment.month + 2) // 3}",
        "year": f"{moment.year}",
        "decade": f"{moment.year // 10}0s",
        "century": f"{moment.year // 100 * 100}-{moment.year // 100 * 100 + 99}",
    }[unit]


DAYS = st.dates(dt.date(1583, 1, 1), dt.date(2400, 1, 1))
CHAINS = (("month", "quarter", "year", "decade", "century"), ("week", "iso-year"))


@pytest.mark.parametrize("units", CHAINS, ids="-".join)
@given(st.lists(DAYS, min_size=1))
@example([dt.date(2020, 12, 31), dt.date(2021, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)])
def test_dates_are_those_of_the_calendar(units, days):
    hierarchy = Hierarchy.dates(units)
    codes = hierarchy.codes(table_of(days), "x")
    check_ladder(codes)
    assert ascending(codes)
    for level, unit in enumerate(units, 1):
        released = hierarchy.generalize(table_of(days), "x", level).frame["x"].to_list()
        assert released == [reference_unit(day, unit) for day in days]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@given(st.lists(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), min_size=1))
@example([dt.datetime(1969, 12, 31, 23, 59, 59)])
def test_datetimes_go_through_hours_and_days(unit, moments):
    hierarchy = Hierarchy.dates(["minute", "hour", "day", "year"])
    table = table_of(moments, pl.Datetime(unit))
    check_ladder(hierarchy.codes(table, "x"))
    released = [hierarchy.generalize(table, "x", n).frame["x"].to_list() for n in range(5)]
    assert released[1] == [f"{m:%Y-%m-%d %H:%M}" for m in moments]
    assert released[2] == [f"{m:%Y-%m-%d %H}:00" for m in moments]
    assert released[3] == [f"{m:%Y-%m-%d}" for m in moments]
    assert released[4] == [f"{m.year}" for m in moments]


def test_a_datetime_with_a_zone_goes_by_its_clock():
    moments = pl.Series([dt.datetime(2023, 12, 31, 23, 30)]).dt.replace_time_zone("UTC")
    table = table_of(moments.dt.convert_time_zone("Europe/Berlin"))
    assert Hierarchy.dates(["year"]).generalize(table, "x", 1).frame["x"].to_list() == ["2024"]


def test_bounds_of_dates_are_days():
    codes = Hierarchy.dates(["week"]).codes(table_of([dt.date(1970, 1, 1)]), "x")
    assert codes.bounds(1).tolist() == [[-3, 4]]
    codes = Hierarchy.dates(["iso-year"]).codes(table_of([dt.date(2021, 1, 3)]), "x")
    days = [dt.date(1970, 1, 1) + dt.timedelta(int(day)) for day in codes.bounds(1)[0]]
    assert days == [dt.date(2019, 12, 30), dt.date(2021, 1, 4)]


def test_times_and_durations():
    hierarchy = Hierarchy.dates(["minute", "hour"])
    clocks = [dt.time(23, 59, 59, 999999), dt.time(0), None]
    assert labels_of(hierarchy, clocks, 1) == ["23:59", "00:00", None]
    assert labels_of(hierarchy, clocks, 2) == ["23:00", "00:00", None]
    check_ladder(hierarchy.codes(table_of(clocks), "x"))
    spans = [dt.timedelta(seconds=90), dt.timedelta(seconds=-1)]
    assert labels_of(Hierarchy.intervals(60), spans, 1) == ["[60, 120)", "[-60, 0)"]


# -- prefixes


@given(st.lists(st.text("01*é", max_size=5), min_size=1))
def test_prefixes_keep_the_first_characters(texts):
    hierarchy = Hierarchy.prefixes([3, 1])
    check_ladder(hierarchy.codes(table_of(texts), "x"))
    for level, kept in ((1, 3), (2, 1)):
        expected = [text[:kept] + "*" * max(len(text) - kept, 0) for text in texts]
        assert labels_of(hierarchy, texts, level) == expected


def test_whole_numbers_get_their_leading_zeros_back():
    assert labels_of(Hierarchy.prefixes([3], pad=5), [1247, 90210], 1) == ["012**", "902**"]
    assert labels_of(Hierarchy.prefixes([3]), [1247, 90210], 1) == ["124*", "902**"]


def test_suppression_has_the_value_or_nothing():
    codes = Hierarchy.suppression().codes(table_of(["a", "b", None]), "x")
    assert codes.levels == 2
    assert codes.domain == 3
    check_ladder(codes)
