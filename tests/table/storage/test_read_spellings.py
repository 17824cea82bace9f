"""Dates, numbers and missing values as people spell them: read whole, or not at all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal as sh
from shoal.table import MixedColumn, mixed_columns
from shoal.table.storage.inference._infer import first_texts, infer_types

Columns = Callable[..., dict[str, list[Any]]]
DAY = dt.date


@pytest.fixture
def read(tmp_path: Path) -> Columns:
    """The columns that are read from these fields, beside each other with semicolons."""

    def read(*columns: list[str], **options: Any) -> dict[str, list[Any]]:
        rows = [[f"c{at}" for at in range(len(columns))], *map(list, zip(*columns, strict=True))]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(";".join([*row, "x"]) for row in rows) + "\n")
        found = sh.read(path, **options).frame.to_dict(as_series=False)
        return {name: values for name, values in found.items() if name != "x"}

    return read


# -- dates


@pytest.mark.parametrize(
    ("texts", "dates"),
    [
        (["01.02.1980", "31.12.1999"], [DAY(1980, 2, 1), DAY(1999, 12, 31)]),
        (["1.2.1980", "03.04.1981"], [DAY(1980, 2, 1), DAY(1981, 4, 3)]),
        (["31/12/1999", "01/02/1980"], [DAY(1999, 12, 31), DAY(1980, 2, 1)]),
        (["12/31/1999", "01/02/1980"], [DAY(1999, 12, 31), DAY(1980, 1, 2)]),
        (["31-12-1999", "1-2-1980"], [DAY(1999, 12, 31), DAY(1980, 2, 1)]),
        (["2/2/1980", "03/03/1981"], [DAY(1980, 2, 2), DAY(1981, 3, 3)]),  # either order
        (["1999/12/31", "1980/1/2"], [DAY(1999, 12, 31), DAY(1980, 1, 2)]),
        (["01.02.1980 13:45"], [dt.datetime(1980, 2, 1, 13, 45)]),
        (["3.4.1981 0:00"], [dt.datetime(1981, 4, 3)]),
        (["12/31/1999 1:45 PM"], [dt.datetime(1999, 12, 31, 13, 45)]),
        (["31.12.1999, 23:59:58"], [dt.datetime(1999, 12, 31, 23, 59, 58)]),
        (["31.12.1999 23:59:58.25"], [dt.datetime(1999, 12, 31, 23, 59, 58, 250_000)]),
    ],
)  # fmt: skip
def test_dates_as_people_write_them(read: Columns, texts: list[str], dates: list[Any]) -> None:
    assert read(texts)["c0"] == dates


@pytest.mark.parametrize(
    "texts",
    [
        ["30.02.1980"],
        ["12.31.1999"],  # with dots the day comes first
        ["01.02.1980", "unbekannt"],
        ["01.01.0000", "01.02.1980"],
        ["01.02.1980 10:00:00.1234567"],
        ["01.02.1980", "01/02/1980"],
        ["31/12/1999", "12/31/1999"],
        ["01.02.1980", "01.02.1980 13:45"],
        ["1.2.3", "1.10.2"],
        ["192.168.10.20"],
        ["01.02.03.04.05"],
        ["01.02.99"],
        ["01/02/1980", "03/04/1981"],
    ],
)
def test_what_is_no_date_stays_whole(read: Columns, texts: list[str]) -> None:
    assert read(texts)["c0"] == texts


def test_columns_in_the_same_spelling_decide(read: Columns) -> None:
    open_, us, german = ["01/02/1980"], ["12/31/1999"], ["31.12.1999"]
    assert read(open_, us)["c0"] == [DAY(1980, 1, 2)]
    assert read(us, open_)["c1"] == [DAY(1980, 1, 2)]
    assert read(open_, ["31/12/1999"])["c0"] == [DAY(1980, 2, 1)]
    assert read(open_, german)["c0"] == open_
    assert read(open_, ["1999/12/31"])["c0"] == open_
    assert read(open_, us, ["31/12/1999"])["c0"] == open_


# -- numbers


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["8.074,75", "912,5", "1.234.567,00"], [8074.75, 912.5, 1234567.0]),
        (["1,234.56", "-7.5"], [1234.56, -7.5]),
        (["1 234,56", "12"], [1234.56, 12.0]),
        (["1\u00a0234,56", "1\u00a0234\u00a0567,5"], [1234.56, 1234567.5]),
        (["1\u202f234", "12"], [1234, 12]),
        (["1'234.50", "987.00"], [1234.5, 987.0]),
        (["1\u2019234", "5"], [1234, 5]),
        (["1.234.567", "12"], [1234567, 12]),
        (["1.234", "2.500"], [1.234, 2.5]),
    ],
)
def test_numbers_as_people_write_them(
    read: Columns, texts: list[str], numbers: list[float]
) -> None:
    found = read(texts)["c0"]
    assert found == numbers
    assert [type(value) for value in found] == [type(value) for value in numbers]


@pytest.mark.parametrize(
    "texts",
    [
        ["1.23,45"],
        ["1234.567,00"],
        ["8.074,75", "1,234.56"],
        ["01.234,50"],
        ["0.123.456"],
        ["1.234,56", "k.A."],
        ["1.234 567,00"],
        ["1,234", "5,678"],
        ["123 456 789", "987 654 321"],
    ],
)
def test_what_is_no_number_stays_whole(read: Columns, texts: list[str]) -> None:
    assert read(texts)["c0"] == texts


def test_other_columns_say_which_mark_is_the_decimal_one(read: Columns) -> None:
    points, commas = ["1.234", "12"], ["1,234", "12"]
    assert read(points, ["0,5", "2"])["c0"] == [1234, 12]
    assert read(points, ["8.074,75", "2"])["c0"] == [1234, 12]
    assert read(points, ["0.5", "2"])["c0"] == [1.234, 12.0]
    assert read(commas, ["0.5", "2"])["c0"] == [1234, 12]
    assert read(commas, ["0,5", "2"])["c0"] == [1.234, 12.0]
    assert read(commas, ["0.5", "2"], ["0,5", "2"])["c0"] == commas
    # what has both marks is sure, whatever the others say
    assert read(["8.074,75", "1"], ["0.5", "2"]) == {"c0": [8074.75, 1.0], "c1": [0.5, 2.0]}


# -- all or nothing, and nothing changed

days = st.dates(DAY(1000, 1, 1), DAY(9999, 12, 31))
formats = st.sampled_from(["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d"])


def inferred(texts: list[str]) -> pl.Series:
    columns = [pl.Series("c", texts)]
    infer_types(columns, [first_texts(columns[0])])
    return columns[0]


@given(st.lists(days, min_size=1, max_size=30), formats)
def test_dates_print_back(dates: list[dt.date], format: str) -> None:
    texts = [date.strftime(format) for date in dates]
    found = inferred(texts)
    if found.dtype == pl.Date:
        assert found.to_list() == dates or inferred_otherwise(texts, format) == found.to_list()
    else:
        assert found.to_list() == texts
        assert format in ("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y")
        assert all(date.day <= 12 for date in dates)


def inferred_otherwise(texts: list[str], format: str) -> list[dt.date]:
    """The dates if all of them fit both orders alike."""
    other = format.replace("%d", "%x").replace("%m", "%d").replace("%x", "%m")
    return [dt.datetime.strptime(text, other).date() for text in texts]


amounts = st.integers(-(10**12), 10**12)


@given(
    st.lists(amounts, min_size=1, max_size=30),
    st.sampled_from([(",", "."), (".", ","), (",", " "), (".", "'"), (",", "\u202f")]),
    st.integers(0, 4),
)
def test_numbers_print_back(values: list[int], marks: tuple[str, str], places: int) -> None:
    decimal, thousands = marks
    whole = [f"{abs(v) // 10**places:,}".replace(",", thousands) for v in values]
    signs = ["-" * (v < 0) for v in values]
    ends = [f"{decimal}{abs(v) % 10**places:0{places}}" if places else "" for v in values]
    texts = ["".join(parts) for parts in zip(signs, whole, ends, strict=True)]
    found = inferred(texts)
    if found.dtype == pl.String:
        assert found.to_list() == texts
    elif any(thousands in text for text in texts) and any(decimal in text for text in texts):
        assert found.to_list() == [v / 10**places for v in values]


@given(st.lists(amounts.map("{:,}".format) | days.map("{:%d.%m.%Y}".format), max_size=12))
def test_a_mixed_column_is_never_half_converted(texts: list[str]) -> None:
    found = inferred([*texts, "1.234,5", "01.02.1980"])
    assert found.to_list() == [*texts, "1.234,5", "01.02.1980"]


# -- texts that stand for missing values


def test_texts_among_numbers_and_dates_are_found() -> None:
    numbers, dates = [f"{n},5" for n in range(95)], [f"{n % 28 + 1}.02.1980" for n in range(95)]
    others = ["k.A.", "k.A.", "-", "#NV", "see file of Ann"]
    frame = pl.DataFrame(
        {
            "Gewicht kg": [*numbers, *others],
            "geboren": [*dates, *["unbekannt"] * 5],
            "plz": [*[f"0{n:04}" for n in range(95)], *others],
            "sex": ["m"] * 95 + others,
            "age": range(100),
        }
    )
    assert mixed_columns(sh.Table(frame)) == [
        MixedColumn("Gewicht kg", "numbers", 0.95, ("#NV", "-", "k.A."), 1),
        MixedColumn("geboren", "dates", 0.95, ("unbekannt",), 0),
    ]


def test_no_cell_is_shown_but_known_signs() -> None:
    frame = pl.DataFrame({"a": [*map(str, range(98)), "Ann", "k.A."]})
    (found,) = mixed_columns(sh.Table(frame))
    assert "98 % of the values of 'a' are numbers" in found.sentence
    assert "--missing-value 'k.A.'" in found.sentence
    assert "Ann" not in found.sentence + repr(found)
    (found,) = mixed_columns(sh.Table(frame.head(99)))
    assert (found.signs, found.others) == ((), 1)
    assert "98.9 %" in found.sentence


def test_the_note_shows_how_to_read_if_it_can(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [*map(str, range(98)), "k.A.", "k.A."], "b": ["x", "y"] * 50})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    (told,) = (n for n in sh.suggest_roles(sh.read(tmp_path / "t.csv")).notes if "missing" in n)
    assert told.endswith("--missing-value 'k.A.'.")
    for table in (sh.read(tmp_path / "t.parquet"), frame):
        (told,) = (note for note in sh.suggest_roles(table).notes if "missing" in note)
        assert told.endswith("?")
        assert "--missing-value" not in told


def test_few_numbers_among_texts_are_nothing_to_ask_about() -> None:
    frame = pl.DataFrame({"a": [*map(str, range(80)), *["k.A."] * 20]})
    assert mixed_columns(sh.Table(frame)) == []
