"""Types of text columns: found from all values, and only where nothing is lost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.errors import InputError, ReadError
from shoal.table.storage._types import dtypes_of, schema_of

from ...parts.files import read_frame

Column = Callable[..., pl.Series]


@pytest.fixture
def column(tmp_path: Path) -> Column:
    """The column that is read from these fields."""

    def column(*fields: str, beside: str = "", **options: Any) -> pl.Series:
        path = tmp_path / "t.csv"
        lines = ["value" + beside, *(field + beside.replace("x", "y") for field in fields)]
        path.write_text("\n".join(lines) + "\n")
        return read_frame(path, **options)["value"]

    return column


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        (["1", "-20", "0"], pl.Int64),
        (["9223372036854775807", "-9223372036854775808"], pl.Int64),
        (["1", "2.5"], pl.Float64),
        (["-.5", "5.", "1e-3", "1E+05"], pl.Float64),
        (["-0"], pl.Float64),
        (["true", "false"], pl.Boolean),
        (["TRUE", "False"], pl.Boolean),
        (["2020-02-29", "0001-01-01"], pl.Date),
        (["2020-01-31 23:59", "2020-01-31T23:59:59.123456"], pl.Datetime("us")),
        (["2020-01-31T23:59:59.1234567"], pl.Datetime("ns")),
        (["2020-01-31T23:59:59Z", "2020-01-31 23:59Z"], pl.Datetime("us", "UTC")),
        # what would lose something stays text
        (["01234", "99999"], pl.String),
        (["00"], pl.String),
        (["-01"], pl.String),
        (["01.5"], pl.String),
        (["+4912345", "4912345"], pl.String),
        (["+1.5"], pl.String),
        (["9223372036854775808"], pl.String),
        (["123456789012345678901234567890", "1"], pl.String),
        (["1.5", "12345678901234567"], pl.String),
        (["1e400"], pl.String),
        (["inf", "1"], pl.String),
        (["1_000"], pl.String),
        (["0x10"], pl.String),
        (["1,000"], pl.String),
        (["٣"], pl.String),
        (["2020-02-30"], pl.String),
        (["2020-1-2"], pl.String),
        (["31.12.2020", "x"], pl.String),
        (["2020-01-31T23:59:59Z", "2020-01-31T23:59:59"], pl.String),
        (["2020-01-31T23:59:59+02:00"], pl.String),
        (["2020-01-31", "2020-01-31 23:59"], pl.String),
        (["23:59:59"], pl.String),
        (["true", "1"], pl.String),
        (["yes", "no"], pl.String),
    ],
)
def test_the_type_of_a_column(column: Column, fields: list[str], dtype: pl.DataType) -> None:
    fields = [f'"{field}"' if "," in field else field for field in fields]
    found = column(*fields, "")
    assert found.dtype == dtype
    assert found.null_count() == 1
    if dtype == pl.String:
        assert found.to_list()[:-1] == [field.strip('"') for field in fields]


def test_one_late_text_makes_the_column_text(column: Column) -> None:
    found = column(*["7"] * 30_000, "seven")
    assert found.dtype == pl.String
    assert found.null_count() == 0
    assert found[-1] == "seven"


def test_a_late_number_after_missing_ones_counts(column: Column) -> None:
    assert column(*["NA"] * 5000, "7").dtype == pl.Int64
    assert column(*["NA"] * 5000, "07").dtype == pl.String


def test_spaces_around_numbers_do_not_count(column: Column) -> None:
    assert column(" 1", "2 ").to_list() == [1, 2]
    assert column(" a", "2 ").to_list() == [" a", "2 "]


def test_values(column: Column) -> None:
    assert column("0.1", "1e3").to_list() == [0.1, 1000.0]
    assert column("2020-01-31 23:59", "2020-01-31T23:59:59.5").to_list() == [
        dt.datetime(2020, 1, 31, 23, 59),
        dt.datetime(2020, 1, 31, 23, 59, 59, 500_000),
    ]


# -- missing values


def test_missing_values(column: Column) -> None:
    words = ["", '""', "NA", "N/A", "NaN", "nan", "NULL", "null"]
    assert column("1", *words).to_list() == [1, *[None] * len(words)]
    assert column("x", *words).null_count() == len(words)
    assert column("none", "?", "-", ".", "-99", "na", "None").null_count() == 0


def test_other_missing_values_can_be_named(column: Column) -> None:
    found = column("1", "-99", "?", "", missing_values=["-99", "?"])
    assert found.to_list() == [1, None, None, None]
    assert column("x", "NA", "?", missing_values=["?"]).to_list() == ["x", None, None]
    only = column("x", "NA", "", '""', only_missing_values=[])
    assert only.to_list() == ["x", "NA", None, ""]
    assert column("x", "NA", "?", only_missing_values=["?"]).to_list() == ["x", "NA", None]
    with pytest.raises(ReadError, match="cannot be combined"):
        column("x", missing_values=["?"], only_missing_values=["?"])


def test_one_text_is_no_list_of_missing_values(column: Column) -> None:
    with pytest.raises(ReadError, match="must be a list of texts"):
        column("1", missing_values="NA")


def test_a_column_without_values_is_text(column: Column) -> None:
    assert column("", "NA").dtype == pl.String


# -- decimal commas


def test_a_decimal_comma_is_found_beside_a_semicolon(column: Column) -> None:
    assert column("1,5", "-2", "0,25", beside=";x").to_list() == [1.5, -2.0, 0.25]


def test_a_decimal_comma_is_not_guessed_where_there_are_points(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;1.5\n")
    assert read_frame(path).schema == {"a": pl.String, "b": pl.Float64}


def test_what_may_be_thousands_is_not_guessed(column: Column) -> None:
    assert column("1,500", "12,250", beside=";x").dtype == pl.String
    assert column("1,500", "12,2", beside=";x").to_list() == [1.5, 12.2]
    assert column("1,500", "12,250", beside=";x", decimal=",").to_list() == [1.5, 12.25]


def test_codes_with_commas_stay_text(column: Column) -> None:
    assert column("1,5", "1,5,7", beside=";x").dtype == pl.String
    assert column("01,5", beside=";x").dtype == pl.String


def test_the_decimal_mark_can_be_said(column: Column) -> None:
    assert column('"1,5"', "2", decimal=",", delimiter=",").to_list() == [1.5, 2.0]
    assert column("1,5", beside=";x", decimal=".").to_list() == ["1,5"]
    assert column("1.5", beside=";x", decimal=",").to_list() == ["1.5"]
    with pytest.raises(ReadError, match=r"decimal mark must be '\.' or ','"):
        column("1", decimal="'")


# -- recorded types

EVERY_TYPE: dict[str, pl.DataType] = {
    "a": pl.Int8(),
    "b": pl.UInt64(),
    "c": pl.Float32(),
    "d": pl.String(),
    "e": pl.Boolean(),
    "f": pl.Date(),
    "g": pl.Time(),
    "h": pl.Datetime("ms"),
    "i": pl.Datetime("ns", "Europe/Berlin"),
    "j": pl.Duration("us"),
    "k": pl.Decimal(20, 3),
}


def test_schema_of_and_dtypes_of_are_inverse() -> None:
    schema = schema_of(EVERY_TYPE)
    assert schema["i"] == "datetime[ns, Europe/Berlin]"
    assert schema["k"] == "decimal[20, 3]"
    assert dtypes_of(schema) == EVERY_TYPE


def test_categories_are_recorded_as_text() -> None:
    frame = pl.DataFrame(schema={"a": pl.Categorical, "b": pl.Enum(["x"]), "c": pl.Null})
    assert set(schema_of(frame.schema).values()) == {"string"}


def test_types_that_no_file_can_hold_are_told() -> None:
    with pytest.raises(InputError, match="'a', 'b'"):
        schema_of(pl.DataFrame({"a": [[1]], "b": [b"x"], "c": [1]}).schema)
    with pytest.raises(InputError, match="recorded type 'int7' of column 'a'"):
        dtypes_of({"a": "int7"})


def test_recorded_types_are_taken_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('zip,n\n1,007\n"",\nNA,8\n')
    read = read_frame(path, schema={"zip": "string", "n": "uint8"})
    assert read.to_dict(as_series=False) == {"zip": ["1", "", "NA"], "n": [7, None, 8]}
    for wrong in ("boolean", "date", "time", "datetime[us]", "int16"):
        with pytest.raises(ReadError, match=r"Column 'zip' .* not fit its recorded type") as caught:
            read_frame(path, schema={"zip": wrong, "n": "uint8"})
        assert "NA" not in str(caught.value)
    with pytest.raises(ReadError, match=r"not have the recorded columns.*'zip', 'n'.*'n', 'zip'"):
        read_frame(path, schema={"n": "uint8", "zip": "string"})
