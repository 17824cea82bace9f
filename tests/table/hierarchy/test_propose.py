"""Hierarchies proposed from the data: sensible, covering, nesting, for every kind of column."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from shoal import Hierarchy, Table, read
from shoal.errors import InputError
from shoal.table import released_column

from ...contracts.parts.registry import AWKWARD
from ...properties.tables import tables
from .ladders import ascending, check_ladder


def table_of(values, dtype=None, name="x"):
    return Table(pl.DataFrame({name: pl.Series(values, dtype=dtype)}))


def proposed(values, dtype=None, name="x"):
    table = table_of(values, dtype, name)
    hierarchy = Hierarchy.propose(table, name)
    codes = hierarchy.codes(table, name)
    check_ladder(codes)
    assert Hierarchy.from_plan(hierarchy.to_plan()) == hierarchy
    sizes = [codes.nodes(level) for level in range(codes.levels)]
    joining = all(below > above for below, above in itertools.pairwise(sizes))
    assert joining or sizes[0] <= 1, "a level joins nothing"
    return hierarchy


def draws(count=500):
    return np.random.default_rng(7), count


def test_ages_become_the_usual_groups():
    plan = {"intervals": [2.5, 5, 10, 20, 40], "whole": True}
    assert proposed(list(range(17, 91))).to_plan() == plan
    assert proposed([float(age) for age in range(17, 91)]).to_plan() == plan
    table = table_of([30, 32, 33, 34, 35])
    ages = Hierarchy.intervals([2.5, 5], whole=True)
    labels = ["[30, 33)", "[33, 35)", "[35, 38)"]
    assert list(ages.codes(table, "x").labels[1]) == labels
    later = table_of([30.0, 32.9, 33.0, 34.99, None])  # a missing value makes a column of floats
    assert ages.generalize(later, "x", 1).frame["x"].to_list() == [
        *[labels[at] for at in (0, 0, 1, 1)],
        None,
    ]


def test_a_decimal_scale_gets_decimal_widths():
    rng, count = draws()
    assert proposed(rng.uniform(0, 1, count)).to_plan() == {
        "intervals": [0.025, 0.05, 0.1, 0.2, 0.4]
    }


def test_numbers_of_all_sizes_get_edges_of_all_sizes():
    rng, count = draws()
    plan = proposed([0] * 400 + np.rint(rng.lognormal(6, 2, count)).astype(int).tolist()).to_plan()
    assert plan["edges"][0][:6] == [1, 2, 5, 10, 20, 50]
    assert all(str(edge)[0] == "1" for edge in plan["edges"][1])


def test_few_spread_numbers_are_joined_and_not_repeated():
    assert proposed([1000 * n for n in range(1, 8)]).to_plan() == {"intervals": [2000, 4000]}
    assert proposed([0, 1, 2, 3]).to_plan() == {"intervals": [2]}


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d.%m.%y", "%Y-%m", "%d.%m.%Y %H:%M", "%d %b %Y"])
def test_what_looks_like_dates_is_never_cut_by_its_beginning(form):
    days = [dt.date(1950, 1, 1) + dt.timedelta(40 * n) for n in range(300)]
    texts = [day.strftime(form) for day in days]
    for values in (texts, [*texts, "k.A.", "-", "unbekannt"]):
        assert proposed(values).to_plan() == {"suppression": True}


@pytest.mark.parametrize("values", [[], [5, 5], [5, 6, None], ["a"], ["a", "b"], [True, False]])
def test_two_values_have_only_the_root_above_them(values):
    assert proposed(values, pl.Int64 if not values else None) == Hierarchy.suppression()


def test_an_empty_column():
    assert proposed([None, None], pl.Float64) == Hierarchy.suppression()


def test_dates_get_the_units_that_join_something():
    born = [dt.date(1930, 1, 1) + dt.timedelta(days=37 * n) for n in range(600)]
    assert proposed(born).to_plan() == {"dates": ["quarter", "year", "5 years", "decade"]}
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in range(200)]
    assert proposed(days).to_plan() == {"dates": ["month", "quarter"]}
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=17 * n) for n in range(5000)]
    assert proposed(moments).to_plan() == {"dates": ["hour", "day", "month"]}
    clocks = [dt.time(n // 60, n % 60) for n in range(0, 1440, 7)]
    assert proposed(clocks).to_plan() == {"dates": ["hour"]}
    assert proposed([dt.timedelta(hours=n) for n in range(100)]).is_function


def test_postcodes_get_prefixes_in_text_and_in_numbers():
    codes = [f"{n:05d}" for n in draws()[0].integers(1000, 99_999, 3_000)]
    assert proposed(codes).to_plan() == {"prefixes": [4, 3, 2, 1]}
    numbers = [int(code) for code in codes]
    assert proposed(numbers, name="ZIPCode").to_plan() == {"prefixes": [4, 3, 2, 1], "pad": 5}
    assert "intervals" in proposed(numbers).to_plan()
    icd = [f"{letter}{n:02d}.{m}" for letter in "ABC" for n in range(10) for m in range(3)]
    assert proposed(icd).to_plan() == {"prefixes": [3, 2]}  # and not the four characters of "A00."


CODES = {
    "ICD": ["F10.2", "F10", "F17.25", "I10.90", "I25.10", "B24", "B20.1", "E11.9", "K35", "K35.8"],
    "NACE": ["01.11", "01.2", "47.1", "47.11", "62.01", "62.02", "62.03", "84.11", "85.1", "86.10"],
    "ISCO": ["2511", "2512", "2513", "2514", "3111", "3112", "5120", "5131", "9112", "9111"],
    "ATC": [
        "A10BA02",
        "A10BB01",
        "B01AA03",
        "C07AB02",
        "C07AB07",
        "C09",
        "J01",
        "J01CA04",
        "N02BA",
    ],
    "post": [
        "SW1A 1AA",
        "M1 1AE",
        "EC1A 1BB",
        "W1A 0AX",
        "M60 1NW",
        "CR2 6XH",
        "B33 8TH",
        "M1 2AE",
    ],
}


@pytest.mark.parametrize("name", CODES)
def test_codes_of_letters_and_digits_are_joined_by_what_they_begin_with(name):
    """Alcohol was joined with hypertension, because their numbers follow each other."""
    values = CODES[name] + [CODES[name][0][:-1] + digit for digit in "345"]
    hierarchy = proposed(values)
    assert "prefixes" in hierarchy.to_plan()
    table = table_of(values)
    codes = hierarchy.codes(table, "x")
    for level in range(1, codes.levels - 1):
        for value, node in zip(codes.column.texts, codes.maps[level], strict=True):
            label = codes.labels[level][node]
            assert value.startswith(label.rstrip("*"))
            assert label.rstrip("*")[-1] not in "./-"
        masked = hierarchy.generalize(table, "x", level)
        read = released_column("x", table, masked)
        groups = {text: set() for text in masked.frame["x"]}
        for value, text in zip(table.frame["x"], masked.frame["x"], strict=True):
            groups[text].add(value)
        assert [set(covered) for covered in _covered(read, table, masked)] == list(groups.values())


def _covered(read, table, masked):
    """The values that a reader takes each released text to cover, in order of the texts."""
    frame = masked.frame["x"]
    texts = list(dict.fromkeys(frame))
    for text in texts:
        label = read.labels[frame.to_list().index(text)]
        yield {
            value
            for value, code in zip(table.frame["x"], read.values, strict=True)
            if read.stands_for(np.array([label]), np.array([code])).all()
        }


@pytest.mark.parametrize(
    "scale",
    [
        ["Low", "Medium", "High"],
        ["never", "rarely", "sometimes", "often", "always"],
        ["0-9", "10-19", "20-29", "100+"],
        ["1st grade", "2nd grade", "10th grade"],
        ["under 5", "5 to 9", "10 to 14", "15 and over"],
        ["stimme nicht zu", "teils/teils", "stimme zu", "stimme voll und ganz zu"],
        ["nie", "selten", "manchmal", "häufig", "immer"],
        ["Preschool", "5th-6th", "12th", "HS-grad", "Some-college", "Bachelors", "Doctorate"],
        ["Hauptschule", "Mittlere Reife", "Abitur", "Promotion"],
        ["1 room", "2 rooms", "3 rooms", "10+ rooms"],
        ["keine Kinder", "1 Kind", "2 Kinder", "3 Kinder und mehr"],
        ["none", "1", "2", "3 or more"],
        ["2023-Q4", "2024-Q1", "2024-Q2", "2024-Q3"],
        ["none", "one", "two", "three or more"],
        ["underweight", "normal", "overweight", "obese"],
    ],
)
def test_answers_with_an_order_keep_it(scale):
    rows = proposed(sorted(scale) * 20).to_plan()["rows"]
    assert [row[0] for row in rows] == scale
    assert rows[0][1] == f"{scale[0]}..{scale[1]}"


def test_rare_categories_are_joined_first():
    values = ["Bern"] * 600 + ["Jena"] * 360 + ["Kiel"] * 30 + ["Graz"] * 6 + ["Rome"] * 4
    rows = {row[0]: row[1:] for row in proposed(values).to_plan()["rows"]}
    assert rows == {
        "Bern": ["Bern", "Bern", "*"],
        "Jena": ["Jena", "Jena", "*"],
        "Kiel": ["Kiel", "(other)", "*"],
        "Graz": ["(other)", "(other)", "*"],
        "Rome": ["(other)", "(other)", "*"],
    }
    odd = ["(other)"] * 600 + ["a"] * 3 + ["b"] * 2
    assert proposed(odd).to_plan()["rows"][1] == ["a", "((other))", "*"]
    steep = ["a"] * 300 + [letter for letter in "bcdefgh" for _ in range(100)]
    assert [len({row[n] for row in proposed(steep).to_plan()["rows"]}) for n in (1, 2)] == [5, 2]
    alike = [letter for letter in "abcdef" for _ in range(50)]
    assert [row[1] for row in proposed(alike).to_plan()["rows"]] == ["a", "b", "c"] + [
        "(other)"
    ] * 3


def test_codes_without_an_order_are_no_scale():
    values = [code for code, count in enumerate([50, 30, 3, 2]) for _ in range(count)]
    rows = proposed([str(value) for value in values]).to_plan()["rows"]
    assert [row[1] for row in rows] == ["0", "1", "(other)", "(other)"]


def test_texts_with_numbers_in_them_are_no_scale():
    """They were joined in the order of the numbers: gout 3 with flu (2)."""
    values = ["cold 1", "flu (2)", "gout 3", "angina 4"]
    assert not any(".." in label for row in proposed(values * 9).rows for label in row)


def test_texts_that_nearly_all_differ_are_not_listed():
    values = [f"person {'x' * (n % 7)} {n}" for n in range(300)]
    assert proposed(values) == Hierarchy.suppression()


def test_many_ordered_texts_have_few_levels():
    values = [f"{n} rooms" for n in range(400)] * 3
    assert proposed(values).levels <= 7


@pytest.mark.parametrize("name", AWKWARD)
def test_what_is_proposed_covers_and_nests_on_awkward_tables(name):
    table = AWKWARD[name]()
    for column in table.columns:
        codes = Hierarchy.propose(table, column).codes(table, column)
        check_ladder(codes)
        if codes.bounds(0) is not None:
            assert ascending(codes)


@settings(max_examples=60)
@given(tables())
def test_what_is_proposed_covers_and_nests_on_random_tables(table):
    for column in table.columns:
        hierarchy = Hierarchy.propose(table, column)
        codes = hierarchy.codes(table, column)
        check_ladder(codes)
        assert Hierarchy.from_plan(hierarchy.to_plan()) == hierarchy
        as_list = hierarchy.listed(table, column) if len(codes.column.levels) else hierarchy
        assert as_list.uncovered(table, column) == 0
        again = as_list.codes(table, column)
        check_ladder(again)
        assert [sorted(map(str, level)) for level in again.labels[1:]] == [
            sorted(map(str, level)) for level in codes.labels[1:]
        ]


def test_what_is_proposed_for_census_tables_is_fit_for_a_search(shared_data):
    """Adult and ACS: every column covered, no more than ten levels, no free text listed."""
    for name in ("uci/adult", "acs/acs_income_2018"):
        table = read(shared_data / f"{name}.parquet")
        for column in table.columns:
            hierarchy = Hierarchy.propose(table, column)
            codes = hierarchy.codes(table, column)
            check_ladder(codes)
            assert hierarchy.levels <= 7
            assert hierarchy.levels > 2 or table.distinct(column) == 2


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("intervals", {"intervals": [2.5, 5, 10, 20, 40], "whole": True}),
        ("rounding", {"rounding": [5, 10, 20, 40]}),
        ("sizes", {"edges": [[20, 50]]}),
        (
            "quantiles",  # each age is one person's
            {"edges": [[26.5, 35.5, 44.5, 53.5, 63.5, 72.5, 81.5], [35.5, 53.5, 72.5], [53.5]]},
        ),
        ("prefixes", {"prefixes": [1], "pad": 2}),
        ("suppression", {"suppression": True}),
    ],
)
def test_another_kind_can_be_asked_for(kind, plan):
    table = table_of(list(range(17, 91)))
    assert Hierarchy.propose(table, "x", kind=kind).to_plan() == plan


@pytest.mark.parametrize("kind", ["ordered", "frequency", "dates", "quantile", "intervals"])
def test_another_kind_for_dates(kind):
    table = table_of([dt.date(2020, month, 1) for month in range(1, 13)])
    if kind in ("quantile", "intervals"):
        with pytest.raises(InputError, match=r"Did you mean 'quantiles'|hierarchy of numbers"):
            Hierarchy.propose(table, "x", kind=kind)
        return
    codes = Hierarchy.propose(table, "x", kind=kind).codes(table, "x")
    check_ladder(codes)
    assert codes.nodes(1) == {"ordered": 6, "frequency": 7, "dates": 4}[kind]
