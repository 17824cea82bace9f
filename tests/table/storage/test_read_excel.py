"""Workbooks that others made."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal as sh
from shoal.errors import MissingExtra, ReadError
from shoal.table import Manner, mixed_columns

from ...parts.files import read_frame, write_frame

pytest.importorskip("fastexcel", reason="the extra 'excel' is not installed")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")


def make(path: Path, *sheets: list[list[Any]], at: tuple[int, int] = (0, 0)) -> Path:
    """A workbook with these rows, each sheet beginning at the given cell."""
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
        for number, rows in enumerate(sheets, 1):
            sheet = book.add_worksheet(f"Sheet {number}")
            for row, cells in enumerate(rows, at[0]):
                for column, cell in enumerate(cells, at[1]):
                    if cell is not None:
                        sheet.write(row, column, cell)
    return path


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "people.xlsx"


def test_types(book: Path) -> None:
    rows = [
        ["n", "x", "t", "code", "mixed", "day", "moment", "yes", "gap"],
        [1, 1.5, "a", "01234", 1, dt.date(2020, 1, 31), dt.datetime(2020, 1, 31, 12), True, None],
        [2, 2.0, "b", "99999", "q", dt.date(2020, 2, 1), dt.datetime(2020, 2, 1), False, None],
        [None] * 9,
        [3, None, None, None, None, None, None, None, None],
    ]
    frame = read_frame(make(book, rows))
    assert frame.to_dict(as_series=False) == {
        "n": [1, 2, 3],
        "x": [1.5, 2.0, None],
        "t": ["a", "b", None],
        "code": ["01234", "99999", None],
        "mixed": ["1", "q", None],
        "day": [dt.date(2020, 1, 31), dt.date(2020, 2, 1), None],
        "moment": [dt.datetime(2020, 1, 31, 12), dt.datetime(2020, 2, 1), None],
        "yes": [True, False, None],
        "gap": [None, None, None],
    }
    assert frame.schema["n"] == pl.Int64
    assert frame.schema["gap"] == pl.String


def test_a_late_text_in_a_column_of_numbers(book: Path) -> None:
    rows = [["n"], *([i] for i in range(3000)), ["many"]]
    frame = read_frame(make(book, rows))
    assert frame["n"].null_count() == 0
    assert frame["n"].to_list()[-2:] == ["2999", "many"]


def test_a_table_that_does_not_begin_in_the_corner(book: Path) -> None:
    rows = [["a", "b"], [1, "x"]]
    assert read_frame(make(book, rows, at=(3, 2))).to_dict(as_series=False) == {
        "a": [1],
        "b": ["x"],
    }


def test_sheets(book: Path) -> None:
    make(book, [["a"], [1]], [["b"], [2]])
    assert read_frame(book).columns == ["a"]
    assert read_frame(book, sheet=2).columns == ["b"]
    assert read_frame(book, sheet="Sheet 2").columns == ["b"]
    for wrong in ("Sheet 3", 0, 3, -1, True):
        with pytest.raises(ReadError, match="counted from 1, are 'Sheet 1', 'Sheet 2'"):
            read_frame(book, sheet=wrong)


def test_names(book: Path) -> None:
    with pytest.raises(ReadError, match="name 'a'"):
        read_frame(make(book, [["a", "b", "a"], [1, 2, 3]]))
    with pytest.raises(ReadError, match="no name for column number 2 of 3"):
        read_frame(make(book, [["a", None, "c"], [1, 2, 3]]))
    with pytest.raises(ReadError, match="no name for column number 3 of 3"):
        read_frame(make(book, [["a", "b"], [1, 2, 3]]))
    assert read_frame(make(book, [["a", None, 2020], [1, None, 3]])).columns == ["a", "2020"]


def test_empty_sheets(book: Path) -> None:
    with pytest.raises(ReadError, match=r"Sheet 2 of .* is empty"):
        read_frame(make(book, [["a"]], []), sheet=2)
    assert read_frame(make(book, [["a", "b"]])).to_dict(as_series=False) == {"a": [], "b": []}


@pytest.mark.parametrize("name", ["people.xlsx", "people.xls", "people.ods"])
def test_what_is_no_workbook(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04 name Zoe")
    with pytest.raises(ReadError, match="cannot be read as a workbook") as caught:
        read_frame(path)
    assert "Zoe" not in str(caught.value)


def test_errors_in_cells_are_missing(book: Path) -> None:
    with xlsxwriter.Workbook(str(book)) as made:
        sheet = made.add_worksheet()
        sheet.write_column(0, 0, ["a", 1])
        sheet.write_formula(2, 0, "=1/0", value="#DIV/0!")
        sheet.write_column(0, 1, ["b", 1, 2])
    assert read_frame(book).to_dict(as_series=False) == {"a": [1, None], "b": [1, 2]}


def test_an_empty_column_makes_no_noise(book: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_frame(make(book, [["a", "b"], [1, None]]))
    assert not caplog.records


def test_without_the_extra_the_line_that_installs_it_is_told(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(book, [["a"], [1]])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingExtra, match=r'pip install ".*\[excel\]"'):
        read_frame(book)
    with pytest.raises(MissingExtra, match=r'pip install ".*\[excel\]"'):
        write_frame(pl.DataFrame({"a": [1]}), book, format="xlsx")


# -- which sheet, and where its table begins

TABLE = [["name", "age", "born"], ["Ann", 31, "01.02.1980"], ["Bo", 40, "31.12.1999"]]


def manner(path: Path, **options: Any) -> Manner:
    found = sh.read(path, **options).manner
    assert found is not None
    return found


def test_the_sheet_that_looks_like_a_table_is_read(book: Path) -> None:
    make(book, [["About these data"], ["Ask Ann"]], TABLE)
    assert read_frame(book).columns == ["name", "age", "born"]
    found = manner(book)
    assert found.options.sheet == "Sheet 2"
    assert "'Sheet 2' was read" in found.notes[0]
    assert "'Sheet 1'" in found.notes[0]
    assert read_frame(book, sheet=1).columns == ["About these data"]


def test_the_first_of_several_tables_is_read_and_others_are_named(book: Path) -> None:
    make(book, TABLE, [["a", "b"], [1, 2]])
    assert "'Sheet 1' was read" in manner(book).notes[0]
    make(book, [["read me"]], TABLE, [["a", "b"], [1, 2]])
    with pytest.raises(ReadError, match=r"'Sheet 2', 'Sheet 3'.*sheet="):
        read_frame(book)


def test_titles_above_the_names_of_a_sheet(book: Path) -> None:
    make(book, [["Patients 2024", None, None], *TABLE])
    assert read_frame(book).to_dict(as_series=False) == {
        "name": ["Ann", "Bo"],
        "age": [31, 40],
        "born": [dt.date(1980, 2, 1), dt.date(1999, 12, 31)],
    }
    assert manner(book).options.skip_lines == 1
    assert read_frame(book, **manner(book).options.to_dict()).height == 2
    with pytest.raises(ReadError, match="no name"):
        read_frame(book, skip_lines=0)


def test_dates_that_a_sheet_has_as_texts(book: Path) -> None:
    make(book, [["born", "n"], ["01/02/1980", 1], ["03/04/1981", 2]])
    assert "--date-format 'born=" in manner(book).notes[0]
    read = read_frame(book, date_formats={"born": "%m/%d/%Y"})
    assert read["born"].to_list() == [dt.date(1980, 1, 2), dt.date(1981, 3, 4)]


def test_texts_that_stand_for_missing_values_in_a_sheet(book: Path) -> None:
    rows = [["kg", "n", "code", "born"], *[[n + 0.5, n, f"0{n}", "1.2.1980"] for n in range(30)]]
    make(book, [*rows, ["k.A.", "-", "k.A.", "-"]])
    assert [one.name for one in mixed_columns(sh.read(book))] == ["kg", "n", "born"]
    read = read_frame(book, missing_values=["k.A.", "-"])
    assert read.dtypes == [pl.Float64, pl.Int64, pl.String, pl.Date]
    assert read.null_count().row(0) == (0, 0, 0, 0)  # a row without any value is left out
    assert read["kg"].to_list() == [n + 0.5 for n in range(30)]
