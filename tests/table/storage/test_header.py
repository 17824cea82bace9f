"""A first line that is a record: taken for column names, it would be published."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal as sh
from shoal.errors import ReadError

from ...parts.files import read_frame, schema_of, write_frame

RECORDS = {
    "numbers": "CANARY,31,1.5\nBo,40,2.5\n",
    "only numbers": "31,15\n40,16\n",
    "only numbers, no records": "31,15\n",
    "only years": "1987,1990\n1988,1991\n",
    "a year above years": "CANARY,1987\nBo,1990\nCy,1954\n",
    "a year above years and gaps": "CANARY,1987\nBo,\nCy,1954\n",
    "a date": "CANARY,2020-01-31\nBo,2021-01-31\n",
    "a date in local form": "CANARY,31.01.1987\nBo,01.02.1990\n",
    "a moment": "CANARY,2020-01-31 12:00\nBo,2021-01-31 12:00\n",
    "a boolean": "CANARY,true\nBo,false\n",
    "a decimal comma": "CANARY;1,85\nBo;1,70\n",
    "a code with zeros": "CANARY,01234\nBo,09999\n",
    "a code that repeats": "CANARY,01234,5x\nBo,01234,6x\n",
    "an address": "CANARY@example.org\nbo@example.org\n",
    "texts that repeat": "CANARY,Berlin,f\nBo,Berlin,m\nCy,Bern,f\n",
    "fields that are the same": "CANARY,5,5\nBo,3,4\n",
    "an empty field": "CANARY,,5\nBo,3,4\n",
    "spaces": "CANARY, 31\nBo, 40\n",
}
NAMES = {
    "words": "age,zip\n31,01234\n",
    "words with digits": "q1,q2\n1,2\n3,4\n",
    "years among words": "country,2019,2020\nA,1.5,2.5\nB,3.5,4.5\n",
    "seasons among words": 'club,2019/20\nA,"1,234"\nB,"2,345"\n',
    "ranges": "region,0-14,15-24\nA,3,4\nB,5,6\n",
    "a date above numbers": "region,2020-01-31\nA,3\n",
    "an answer to tick": "Red,Green\nRed,\n,Green\nRed,Green\n",
    "an answer as the name": "age,airbag\n31,airbag\n40,none\n40,none\n",
    "an empty column": "31x,5\n,\n,\n",
    "no records": "age,2020\n",
}


def written(folder: Path, text: str) -> Path:
    path = folder / "people.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_not_taken_for_names(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, RECORDS[name])
    with pytest.raises(ReadError, match=r"^The first line of .* looks like a record") as caught:
        sh.read(path)
    said = str(caught.value).replace(str(path), "")
    assert "header=True" in said
    for field in RECORDS[name].splitlines()[0].split(","):
        assert len(field) < 3 or field not in said


@pytest.mark.parametrize("name", NAMES)
def test_names_are_names(tmp_path: Path, name: str) -> None:
    text = NAMES[name]
    assert read_frame(written(tmp_path, text)).columns == text.splitlines()[0].split(",")


def test_the_count_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"\(2 of 3 fields are"):
        sh.read(written(tmp_path, RECORDS["numbers"]))


def test_whoever_says_so_gets_these_names(tmp_path: Path) -> None:
    path = written(tmp_path, "1,2\n3,4\n")
    assert sh.read(path, header=True).columns == ["1", "2"]
    with pytest.raises(ReadError, match="needs column names"):
        sh.read(path, header=False)
    frame = pl.DataFrame({"a": [1]})
    frame.write_parquet(tmp_path / "people.parquet")
    with pytest.raises(ReadError, match="'header' does not apply to"):
        sh.read(tmp_path / "people.parquet", header=True)


def test_a_recorded_file_is_not_checked(tmp_path: Path) -> None:
    path = written(tmp_path, "1,2\n3,4\n")
    assert read_frame(path, schema={"1": "int64", "2": "int64"}).columns == ["1", "2"]


@pytest.mark.parametrize(
    "row",
    [
        ["CANARY", 31],
        ["CANARY", 1.5],
        ["CANARY", True],
        ["CANARY", dt.date(2020, 1, 31)],
        ["CANARY", dt.datetime(2020, 1, 31, 12)],
        ["CANARY", 5, 5],
    ],
)
def test_a_row_of_a_workbook_is_not_taken_for_names(tmp_path: Path, row: list[Any]) -> None:
    pytest.importorskip("fastexcel", reason="the extra 'excel' is not installed")
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
    path = tmp_path / "people.xlsx"
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet()
        for number in range(3):
            sheet.write_row(number, 0, ["Bo" if number else "CANARY", *row[1:]])
    with pytest.raises(ReadError, match=r"^The first row of sheet 1 of .* a record") as caught:
        sh.read(path)
    assert "CANARY" not in str(caught.value)
    if len(row) == 2:
        assert sh.read(path, header=True).columns[0] == "CANARY"


# -- names that polars takes for patterns


def test_a_file_with_names_that_are_patterns_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "^a$,zip\n1,2\n,3\n")
    with pytest.raises(ReadError, match=r"begin with \^ and end with \$: '\^a\$'"):
        sh.read(path)
    assert sh.read(written(tmp_path, "^a,*,b$\n1,2,3\n,3,4\n")).columns == ["^a", "*", "b$"]


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "arrow", "xlsx"])
def test_a_release_with_names_that_are_nearly_patterns_comes_back(
    tmp_path: Path, format: str
) -> None:
    if format == "xlsx":
        pytest.importorskip("fastexcel", reason="the extra 'excel' is not installed")
        pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
    frame = pl.DataFrame(
        {
            "a": [1, None],
            "b": [1.5, 2.5],
            "c": ["u", "01"],
            "d": [dt.date(2020, 1, 31), None],
            "e": [dt.datetime(2020, 1, 31, 12), None],
            "f": [True, None],
            "g": [dt.time(12, 30), None],
            "*": [2, 3],
        }
    )
    frame.columns = [name if name == "*" else f"^{name}" for name in frame.columns]
    path = tmp_path / f"data.{format}"
    write_frame(frame, path, format=format)
    assert read_frame(path, format=format, schema=schema_of(frame.schema)).equals(frame)
