"""Shifted dates: one secret number of days for each person, and what would show it."""

from __future__ import annotations

import datetime as dt
import warnings

import numpy as np
import polars as pl
import pytest

from shoal import (
    DatesToYear,
    Plan,
    Pseudonymize,
    Roles,
    ShiftDates,
    Table,
    TopBottomCode,
    protect,
)
from shoal.errors import (
    DisclosureWarning,
    InputError,
    ParameterError,
    RolesError,
    ShoalWarning,
    UnprotectedColumnWarning,
)
from shoal.masking import write_key_file
from shoal.masking.dates._derived import derived_columns

DAY = dt.timedelta(days=1)


def numbers(name, rows, below):
    """The same on every machine."""
    return np.random.default_rng(sum(map(ord, name))).integers(0, below, rows).tolist()


def stays(persons=80, **more):
    """One to three stays of each person; one of ten is not over yet."""
    rows = [n for n in range(persons) for _ in range(1 + n % 3)]
    born = [dt.date(1935, 1, 1) + n * DAY for n in numbers("born", persons, 25_000)]
    admitted = [dt.date(2021, 1, 4) + n * DAY for n in numbers("admitted", len(rows), 1_000)]
    length = numbers("length", len(rows), 25)
    left = [None if at % 10 == 9 else a + n * DAY
            for at, (a, n) in enumerate(zip(admitted, length, strict=True))]  # fmt: skip
    frame = pl.DataFrame(
        {"patient": rows, "born": [born[n] for n in rows], "admitted": admitted, "left": left}
    )
    roles = Roles(unit="patient", quasi_identifiers=["born"], insensitive=["admitted", "left"])
    return Table(frame.with_columns(**more), roles)


def shifted(table, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return ShiftDates(**options).fit_transform(table)


def days(original, masked, name):
    """By how many days each cell moved; None where it is missing."""
    moved = masked.frame[name] - original.frame[name]
    assert moved.is_null().equals(original.frame[name].is_null())
    return moved.dt.total_days().to_list()


def shifts(original, masked, names=("born", "admitted", "left")):
    """The shift of each person, of whom no cell has another one."""
    found = {}
    for name in names:
        for who, moved in zip(original.persons.tolist(), days(original, masked, name), strict=True):
            if moved is not None:
                assert found.setdefault(who, moved) == moved
    return found


# -- one shift for each person


@pytest.mark.parametrize("most", [7, 30, 365, 4_000])
def test_each_person_has_one_shift_in_the_range_and_never_0(most):
    table = stays()
    found = shifts(table, shifted(table, days=most))
    assert len(found) == 80
    assert all(0 < abs(one) <= most for one in found.values())
    assert len(set(found.values())) > min(most, 40) / 2


def test_intervals_of_a_person_are_kept():
    table = stays()
    masked = shifted(table)
    for one, other in (("born", "admitted"), ("admitted", "left")):
        before = (table.frame[other] - table.frame[one]).to_list()
        assert (masked.frame[other] - masked.frame[one]).to_list() == before


def test_no_date_of_a_person_is_another_of_their_own():
    """Where there is room: a shift that meets an own date is drawn again."""
    table = stays()
    for most in (30, 365):
        masked = shifted(table, days=most)
        for name in ("born", "admitted", "left"):
            pairs = set(zip(table.persons.tolist(), table.frame[name].to_list(), strict=True))
            now = set(zip(table.persons.tolist(), masked.frame[name].to_list(), strict=True))
            assert not {pair for pair in pairs & now if pair[1] is not None}


def test_where_every_day_is_taken_a_shift_is_still_not_0():
    table = Table(
        pl.DataFrame({"who": [1] * 40, "day": [dt.date(2024, 1, 1) + n * DAY for n in range(40)]}),
        Roles(unit="who", quasi_identifiers=["day"]),
    )
    assert all(0 < abs(one) <= 7 for one in days(table, shifted(table, days=7), "day"))


def test_shifts_are_equally_likely():
    """Each of fourteen shifts of 7,000 rows is drawn about 500 times (chi-square, 1 in 1000)."""
    table = Table(
        pl.DataFrame({"day": [dt.date(2024, 1, 1) + (n % 900) * DAY for n in range(7_000)]}),
        Roles(quasi_identifiers=["day"]),
    )
    found = np.unique(days(table, shifted(table, days=7), "day"), return_counts=True)
    assert found[0].tolist() == [*range(-7, 0), *range(1, 8)]
    assert ((found[1] - 500) ** 2 / 500).sum() < 34.5


def test_weekdays_are_kept_if_asked():
    table = stays()
    found = set(shifts(table, shifted(table, days=365, weekdays=True)).values())
    assert all(one % 7 == 0 for one in found)
    assert len(found) > 20


def test_without_a_unit_each_row_is_a_person():
    table = stays().with_roles(Roles(unit="row", quasi_identifiers=["born"]))
    masked = shifted(table)
    assert len(set(days(table, masked, "born"))) > 80
    assert days(table, masked, "admitted") == days(table, masked, "born")


# -- what dates are like


def test_every_kind_of_moment_moves_by_whole_days():
    moment = dt.datetime(2024, 3, 30, 22, 15, 7, 123456)
    for unit in ("ms", "us", "ns"):
        for zone in (None, "Europe/Berlin", "UTC"):
            series = pl.Series("t", [moment, None, moment + 200 * DAY]).cast(pl.Datetime(unit))
            series = series if zone is None else series.dt.replace_time_zone(zone)
            table = Table(pl.DataFrame({"t": series}), Roles(quasi_identifiers=["t"]))
            masked = shifted(table, days=20)
            assert masked.frame["t"].dtype == series.dtype
            before = table.frame["t"].to_physical().to_list()
            after = masked.frame["t"].to_physical().to_list()
            per_day = table.ticks("t")[1]
            assert after[1] is None
            assert all((after[at] - before[at]) % per_day == 0 != after[at] - before[at]
                       for at in (0, 2))  # fmt: skip


def test_intervals_are_kept_across_daylight_saving():
    zone = "Europe/Berlin"
    came = pl.Series([dt.datetime(2024, 3, 1, 9)] * 40).dt.replace_time_zone(zone)
    went = pl.Series([dt.datetime(2024, 3, 20, 9)] * 40).dt.replace_time_zone(zone)
    table = Table(pl.DataFrame({"came": came, "went": went}), Roles(quasi_identifiers=["came"]))
    masked = shifted(table, days=60)
    assert set((masked.frame["went"] - masked.frame["came"]).to_list()) == {19 * DAY}


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (dt.date(1, 1, 1), dt.date(1, 1, 5)),
        (dt.date(9998, 12, 20), dt.date(9998, 12, 31)),
        (dt.date(1, 1, 1), dt.date(9998, 12, 31)),
    ],
)
def test_dates_at_the_ends_of_the_calendar_move_inside(first, last):
    frame = pl.DataFrame({"who": [1, 1] * 1, "day": [first, last]})
    table = Table(frame, Roles(unit="who", quasi_identifiers=["day"]))
    for _ in range(10):
        one, other = days(table, shifted(table, days=3_000), "day")
        assert one == other != 0


def test_nanoseconds_end_sooner():
    series = pl.Series("t", [dt.datetime(2262, 4, 1), dt.datetime(1700, 1, 1)]).cast(
        pl.Datetime("ns")
    )
    table = Table(pl.DataFrame({"t": series}), Roles(quasi_identifiers=["t"]))
    for _ in range(10):
        assert all(0 < abs(one) <= 50_000 for one in days(table, shifted(table, days=50_000), "t"))


def test_a_person_who_spans_the_calendar_is_refused():
    frame = pl.DataFrame({"who": [1, 1], "day": [dt.date(1, 1, 3), dt.date(9998, 12, 31)]})
    table = Table(frame, Roles(unit="who", quasi_identifiers=["day"]))
    assert shifted(table, days=365) is not None
    series = pl.Series("t", [dt.datetime(1677, 9, 22), dt.datetime(2262, 4, 11)])
    narrow = Table(
        pl.DataFrame({"who": [1, 1], "t": series.cast(pl.Datetime("ns"))}),
        Roles(unit="who", quasi_identifiers=["t"]),
    )
    with pytest.raises(InputError, match="1 persons"):
        shifted(narrow)


def test_a_date_that_stands_for_none_is_refused():
    """9999-12-31 would become 9999-12-14, and the shift be known."""
    frame = pl.DataFrame({"day": [dt.date(2024, 1, 1), dt.date(9999, 12, 31)]})
    with pytest.raises(InputError, match="1 cells of 'day'") as caught:
        shifted(Table(frame, Roles(quasi_identifiers=["day"])))
    assert "12-31" not in str(caught.value)


def test_what_is_no_date_is_left_and_said_so():
    step = ShiftDates(columns=["patient", "born"])
    with pytest.warns(UnprotectedColumnWarning):
        step.fit_transform(stays().with_roles(Roles(unit="row", quasi_identifiers=["born"])))
    assert step.touched_ == ("born",)
    assert step.skipped_ == {"patient": "integer, not date or datetime"}


def test_a_table_without_dates_is_warned_about():
    table = Table(pl.DataFrame({"age": [1, 2, 3]}), Roles(quasi_identifiers=["age"]))
    with pytest.warns(UnprotectedColumnWarning, match="no column|No column"):
        assert ShiftDates().fit_transform(table).frame.equals(table.frame)


# -- keys


@pytest.fixture
def key(tmp_path):
    return str(write_key_file(tmp_path / "dates.key"))


def test_two_tables_with_one_key_file_have_the_same_shifts(key):
    table = stays()
    fewer = table.keep(np.arange(len(table)) % 2 == 0)
    one, other = (shifts(each, shifted(each, key_file=key)) for each in (table, fewer))
    whole = dict(zip(table.persons.tolist(), table.frame["patient"].to_list(), strict=True))
    part = dict(zip(fewer.persons.tolist(), fewer.frame["patient"].to_list(), strict=True))
    by_name = {whole[who]: moved for who, moved in one.items()}
    assert {part[who]: moved for who, moved in other.items()}.items() <= by_name.items()
    assert all(0 < abs(moved) <= 365 for moved in by_name.values())
    others = shifts(table, shifted(table, key_file=key, days=364))
    assert sum(one[who] == others[who] for who in one) < 10  # another range is another key


def test_a_key_file_needs_a_unit(key):
    table = stays().with_roles(Roles(unit="row", quasi_identifiers=["born"]))
    with pytest.raises(InputError, match="unit"):
        shifted(table, key_file=key)
    with pytest.raises(ParameterError, match="not both"):
        ShiftDates(key_file=key, random_state=1)


def test_shifts_with_a_key_file_come_before_pseudonyms(key):
    late = Plan([Pseudonymize(["patient"]), ShiftDates(key_file=key)])
    with pytest.raises(RolesError, match="first"):
        protect(stays(), late)


def test_a_key_file_draws_no_other_shift(key):
    frame = pl.DataFrame({"who": range(50), "day": [dt.date(9998, 12, 30)] * 50})
    table = Table(frame, Roles(unit="who", quasi_identifiers=["day"]))
    with pytest.raises(InputError, match="key"):
        shifted(table, key_file=key, days=3_000)


def test_the_public_half_does_not_say_when_the_true_dates_were():
    """With that period, whoever was moved beyond it has few possible shifts left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect(stays(), Plan([ShiftDates()]))
    dates = [profile for profile in release.columns if profile.dates]
    assert len(dates) == 3
    assert {bar.before for profile in dates for bar in profile.bars} == {None}
    assert {profile.left for profile in dates} == {"shifted, and the time between dates kept"}
    assert "before 0 %" not in release.to_html()


# -- what would show the shift


def said(table, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ShiftDates(**options).fit_transform(table)
    return [(one.category, str(one.message)) for one in caught]


YEAR = 365.25


def years(table, name, until):
    """Completed years, as people count them."""
    return [
        until.year - one.year - ((until.month, until.day) < (one.month, one.day))
        for one in table.frame[name].to_list()
    ]


TABLE = stays(200)
ADMITTED = TABLE.frame["admitted"]
DERIVED = {
    "age at admission": pl.Series(
        [int((a - b).days / YEAR) for a, b in zip(ADMITTED, TABLE.frame["born"], strict=True)]
    ),
    "age on a day": pl.Series(years(TABLE, "born", dt.date(2024, 6, 30))),
    "age by year": 2024 - TABLE.frame["born"].dt.year(),
    "year of birth": TABLE.frame["born"].dt.year(),
    "month": ADMITTED.dt.month(),
    "month by name": ADMITTED.dt.strftime("%B"),
    "day of the week": ADMITTED.dt.weekday(),
    "day of the week by name": ADMITTED.dt.strftime("%A"),
    "year and month": ADMITTED.dt.strftime("%Y%m").cast(pl.Int64),
    "number of a spreadsheet": (ADMITTED - dt.date(1899, 12, 30)).dt.total_days(),
    "quarter": ADMITTED.dt.quarter(),
    "date in digits": TABLE.frame["born"].dt.strftime("%Y%m%d").cast(pl.Int64),
    "date in digits, day first": TABLE.frame["born"].dt.strftime("%d%m%Y").cast(pl.Int64),
    "date in digits, month first": TABLE.frame["born"].dt.strftime("%m%d%Y").cast(pl.Int64),
    "year and month of birth": TABLE.frame["born"].dt.strftime("%Y%m").cast(pl.Int64),
    "seconds since 1970": ADMITTED.cast(pl.Datetime).dt.epoch("s") + 29_000,
    "milliseconds since 1970": ADMITTED.cast(pl.Datetime).dt.epoch("ms"),
    "days left of a study": (dt.date(2024, 6, 30) - ADMITTED).dt.total_days(),
    "day of the year": ADMITTED.dt.ordinal_day(),
    "age in months": (dt.date(2024, 6, 30) - TABLE.frame["born"]).dt.total_days() // 30.4369,
    "number of a case": ADMITTED.rank("ordinal").cast(pl.Int64) * 3 + 1_000,
}
UNRELATED = {
    # every shift keeps these, so they say nothing about it
    "length of stay": (TABLE.frame["left"] - ADMITTED).dt.total_days(),
    "both days counted": (TABLE.frame["left"] - ADMITTED).dt.total_days() + 1,
    "wage": pl.Series(numbers("wage", len(TABLE), 5_000)),
    "score": pl.Series(numbers("score", len(TABLE), 12)),
    "a small number": pl.Series(numbers("small", len(TABLE), 4)),
    "an age of others": pl.Series([20 + n for n in numbers("others", len(TABLE), 60)]),
    "a ward": pl.Series([f"ward {n}" for n in numbers("ward", len(TABLE), 7)]),
    "a fraction": pl.Series([n / 7 for n in numbers("fraction", len(TABLE), 900)]),
    "nearly always the same": pl.Series(["x"] * (len(TABLE) - 3) + list("abc")),
    "the largest numbers": pl.Series([(-1) ** n * 1.7e308 for n in range(len(TABLE))]),
    "a row number": pl.Series(range(len(TABLE))),
}


def beside(column):
    table = Table(TABLE.frame.with_columns(column.alias("x")), TABLE.roles)
    return derived_columns(table, ["born", "admitted", "left"], table.columns[1:])


@pytest.mark.parametrize("name", DERIVED)
def test_a_column_that_follows_from_dates_is_named(name):
    assert set(beside(DERIVED[name])) == {"x"}, name


@pytest.mark.parametrize("name", DERIVED)
def test_a_few_errors_and_gaps_do_not_hide_it(name):
    column = DERIVED[name].to_list()
    column[5], column[7], column[11] = None, column[8], column[12]
    assert set(beside(pl.Series(column))) == {"x"}, name


@pytest.mark.parametrize("name", UNRELATED)
def test_a_column_of_its_own_is_not_named(name):
    assert beside(UNRELATED[name]) == {}, name


def test_the_warning_names_columns_and_no_cell():
    table = Table(
        TABLE.frame.with_columns(then=DERIVED["age at admission"], age=DERIVED["age on a day"]),
        TABLE.roles,
    )
    ((category, text),) = said(table)
    assert category is DisclosureWarning
    assert "'then' is the years from 'born' to 'admitted'" in text
    assert "'age' is the years since 'born'" in text
    assert not any(str(year) in text for year in range(1935, 2025))


def test_dates_that_are_left_are_named():
    table = TABLE.frame.with_columns(
        letter=pl.col("admitted").dt.strftime("%d.%m.%Y"), free=pl.lit("on 1.1.2024 at noon")
    )
    roles = TABLE.roles
    texts = [text for category, text in said(Table(table, roles), columns=["born", "left"])
             if category is UnprotectedColumnWarning]  # fmt: skip
    assert len(texts) == 1
    assert "'admitted'" in texts[0]
    assert "'letter'" in texts[0]
    assert "'free'" not in texts[0]


@pytest.mark.parametrize(
    "written", ["%Y%m%d", "%Y%m%d 12:30", "%Y-%m", "%d %b %Y", "%d%b%Y", "%B %d, %Y", "%b %Y"]
)
def test_texts_look_like_dates_in_every_writing(written):
    table = Table(TABLE.frame.with_columns(x=pl.col("born").dt.strftime(written)), TABLE.roles)
    assert any(
        "'x'" in text for category, text in said(table) if category is UnprotectedColumnWarning
    )


@pytest.mark.parametrize("form", ["2024-{:04}", "2024{:06}", "{:02} mar", "maybe {:04}", "{:08}"])
def test_numbers_of_cases_do_not_look_like_dates(form):
    texts = pl.Series([form.format(n) for n in numbers("cases", len(TABLE), 9_000)])
    assert said(Table(TABLE.frame.with_columns(x=texts), TABLE.roles)) == []


def test_a_date_that_many_share_is_warned_about():
    """Each of those persons is found by where that date went."""
    start = TABLE.frame.with_columns(start=pl.lit(dt.date(2020, 1, 1)))
    ((category, text),) = said(Table(start, TABLE.roles))
    assert category is DisclosureWarning
    assert "'start'" in text
    assert "2020" not in text
    assert said(TABLE) == []


# -- the year alone, and ages above a limit


def test_only_the_year_is_left():
    masked = DatesToYear(columns=["born", "admitted"]).fit_transform(TABLE)
    for name in ("born", "admitted"):
        assert masked.frame[name].to_list() == [str(one.year) for one in TABLE.frame[name]]


def test_the_very_old_are_one():
    masked = DatesToYear(earliest=1950).fit_transform(TABLE).frame["born"]
    expected = [str(b.year) if b.year >= 1950 else "<1950-01-01" for b in TABLE.frame["born"]]
    assert masked.to_list() == expected
    assert "<1950-01-01" in expected


def test_ages_above_a_limit_are_one():
    ages = pl.Series("age", [17, 89, 90, 91, 104, None])
    table = Table(pl.DataFrame({"age": ages}), Roles(quasi_identifiers=["age"]))
    step = TopBottomCode(top=90)
    assert step.fit_transform(table).frame["age"].to_list() == [17, 89, 90, 90, 90, None]
    later = Table(pl.DataFrame({"age": [120, 3]}), Roles(quasi_identifiers=["age"]))
    assert step.transform(later).frame["age"].to_list() == [90, 3]
    both = TopBottomCode(top=90.7, bottom=17.2).fit_transform(table).frame["age"]
    assert both.to_list() == [18, 89, 90, 90, 90, None]


@pytest.mark.parametrize("given", [{}, {"fence": 1.5, "top": 3}, {"top": 1, "bottom": 2}])
def test_a_fence_or_limits(given):
    with pytest.raises(ParameterError, match="TopBottomCode"):
        TopBottomCode(**given)
