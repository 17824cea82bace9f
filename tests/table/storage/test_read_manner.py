"""How a file is written: found out, said in notes, and the same when it is read so again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shoal as sh
from shoal.errors import ReadError
from shoal.table import Manner, ReadOptions, Table

Read = Callable[..., Table]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The table of a file with this content, read again by what was found out the first time."""

    def read(content: str | bytes, **options: Any) -> Table:
        path = tmp_path / "people.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        table = sh.read(path, **options)
        again = sh.read(path, **manner(table).options.to_dict())
        assert again.frame.equals(table.frame)
        assert manner(again).options == manner(table).options
        assert not [note for note in manner(again).notes if "skipped" in note]
        return table

    return read


def manner(table: Table) -> Manner:
    assert table.manner is not None
    return table.manner


def notes(table: Table) -> str:
    return " ".join(manner(table).notes)


GERMAN = "Größe;geboren;Kosten €;Ort\n1,85;01.02.1980;8.074,75;Köln\n1,7;31.12.1999;12;Plön\n"


def test_a_file_of_german_excel(read: Read) -> None:
    table = read(GERMAN.encode("cp1252"))
    assert table.frame.to_dict(as_series=False) == {
        "Größe": [1.85, 1.7],
        "geboren": [dt.date(1980, 2, 1), dt.date(1999, 12, 31)],
        "Kosten €": [8074.75, 12.0],
        "Ort": ["Köln", "Plön"],
    }
    assert manner(table).options == ReadOptions(
        format="csv",
        delimiter=";",
        encoding="cp1252",
        decimal=",",
        thousands=".",
        date_formats={"geboren": "%d.%m.%Y"},
    )
    assert "cp1252" in notes(table)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("name;ort\nИванов;Москва\n", "cp1251"),
        ("name;ort\nΠαπαδοπούλου;Αθήνα\n", "cp1253"),
        ("name;ort\nMärz;Köln\n", "cp850"),
        ("name;ort\nMärz;Köln\n", "mac-roman"),
        ("name;ort\nWałęsa;Łódź\n", "cp1250"),
    ],
)
def test_other_encodings_are_asked_for(read: Read, text: str, encoding: str) -> None:
    with pytest.raises(ReadError, match="Set its encoding"):
        read(text.encode(encoding))
    assert read(text.encode(encoding), encoding=encoding).frame.row(0) == tuple(
        text.split("\n")[1].split(";")
    )


def test_utf8_with_a_broken_byte_is_no_other_encoding(read: Read) -> None:
    with pytest.raises(ReadError, match="line 3 cannot be decoded"):
        read("name;ort\nMärz;Köln\n".encode() + b"M\xe4rz;Ulm\n")


def test_a_mark_is_noticed(read: Read) -> None:
    found = manner(read(GERMAN.encode("utf-8-sig")))
    assert (found.marked, found.options.encoding) == (True, "utf-8")


# -- what stands around the table


@pytest.mark.parametrize(
    ("title", "lines"),
    [("Patients 2024\n\n", 1), ("Patients;;;\n;;;\n", 2), ('"two\nlines"\n', 2), ("\n\nT\n", 3)],
)
def test_titles_above_the_names_are_skipped(read: Read, title: str, lines: int) -> None:
    table = read(title + "name;age;zip;sex\nAnn;31;01234;f\nBo;40;10115;m\n")
    assert table.columns == ["name", "age", "zip", "sex"]
    assert manner(table).options.skip_lines == lines
    assert "skipped" in notes(table)


@pytest.mark.parametrize(
    "text",
    [
        "name;;\nAnn;Bo;Cy\nDi;Ed;Flo\n",  # names may be missing: no record becomes one
        "title;;\nname;age;age\nAnn;31;32\n",
        "title;;\nname;age;sex\nAnn;31\n",
        "title;;\nname;;sex\nAnn;31;f\n",
    ],
)
def test_titles_that_are_not_clear_are_not_skipped(read: Read, text: str) -> None:
    with pytest.raises(ReadError, match="skip_lines"):
        read(text)


def test_lines_to_skip_can_be_said(read: Read) -> None:
    text = "\na title; of two\nname;age\nAnn;31\n"
    assert read(text, skip_lines=2).columns == ["name", "age"]
    with pytest.raises(ReadError, match="line 3"):
        read(
            "a\n" + "b;c\nMärz;2\n".encode("cp437").decode("latin-1"),
            skip_lines=1,
            encoding="ascii",
        )
    with pytest.raises(ReadError, match="is empty"):
        read("a;b\n1;2\n", skip_lines=5)
    for wrong in (-1, True, "1"):
        with pytest.raises(ReadError, match="skip_lines"):
            read(text, skip_lines=wrong)


def test_columns_without_a_name_and_a_value_are_left_out(read: Read) -> None:
    table = read("name;age;;\nAnn;31;;\nBo;40;;\n")
    assert table.frame.to_dict(as_series=False) == {"name": ["Ann", "Bo"], "age": [31, 40]}
    assert "2 columns without a name" in notes(table)
    assert read("name;age;;\nAnn;31;;\n", header=True).columns == ["name", "age"]
    with pytest.raises(ReadError, match="no name for column number 3 of 3"):
        read("name;age;;\nAnn;31;;\nBo;40;x;\n")


# -- dates that are asked for


def test_dates_in_doubt_are_asked_for_by_name(read: Read) -> None:
    text = "name;born;seen\nAnn;01/02/1980;1.2.99\nBo;03/04/1981;3.4.81\n"
    table = read(text)
    assert [table.kind(name) for name in table.columns] == ["text"] * 3
    assert "'born=%d/%m/%Y'" in notes(table)
    assert "'seen=%d.%m.%y'" in notes(table)
    assert "1980" not in notes(table)
    other = read("name;born\nAnn;1-2-80\nBo;12-31-81\n")
    assert "'born=%m-%d-%y'" in notes(other)
    table = read(text, date_formats={"born": "%d/%m/%Y", "seen": "%d.%m.%y"})
    assert table.frame["born"].to_list() == [dt.date(1980, 2, 1), dt.date(1981, 4, 3)]
    assert table.frame["seen"].to_list() == [dt.date(1999, 2, 1), dt.date(1981, 4, 3)]
    assert notes(table) == ""


def test_one_format_is_for_all_columns_that_fit(read: Read) -> None:
    text = "id;born;seen;n\n20240101;01/02/1980;02/03/2024 10:30;7\n20241231;03/04/1981;;8\n"
    table = read(text, date_formats="%m/%d/%Y")
    assert table.frame["born"].to_list() == [dt.date(1980, 1, 2), dt.date(1981, 3, 4)]
    assert table.kind("id") == table.kind("n") == "integer"
    formats = {"id": "%Y%m%d", "seen": "%m/%d/%Y %H:%M"}
    table = read(text, date_formats={"*": "%m/%d/%Y", **formats})
    assert table.frame["id"].to_list() == [dt.date(2024, 1, 1), dt.date(2024, 12, 31)]
    assert table.frame["seen"].to_list() == [dt.datetime(2024, 2, 3, 10, 30), None]


def test_a_format_that_does_not_fit_is_told_without_a_cell(read: Read) -> None:
    text = "name;born\nAnn;01/02/1980\nBo;03/04/1981\nCy;secret\nDi;31/12/1999\n"
    with pytest.raises(ReadError, match=r"'born' .* has 2 different texts") as caught:
        read(text, date_formats={"born": "%m/%d/%Y"})
    assert "secret" not in str(caught.value)
    for text, format in (("1.2.80", "%d.%m.%Y"), ("1.2.1980", "%d.%m.%y"), ("2024131", "%Y%m%d")):
        with pytest.raises(ReadError, match="not fit the date format"):
            read(f"a;b\n{text};x\n", date_formats={"a": format})
    with pytest.raises(ReadError, match="'burn'"):
        read("name;born\nAnn;x\n", date_formats={"burn": "%m/%d/%Y"})


@pytest.mark.parametrize("format", ["", "%d.%m", "dd.mm.yyyy", "%d.%m.%Y %Z", "%d.%d.%m.%Y", "%x"])
def test_a_format_names_day_month_and_year(read: Read, format: str) -> None:
    with pytest.raises(ReadError, match="date format"):
        read("a;b\n1;2\n", date_formats=format)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"thousands": "x"}, "thousands"),
        ({"decimal": ",", "thousands": ","}, "decimal mark"),
        ({"missing_values": "NA"}, "list of texts"),
        ({"missing_values": [1]}, "list of texts"),
        ({"date_formats": 7}, "date_formats"),
        ({"delimiter": 7}, "delimiter"),
    ],
)
def test_options_are_checked(read: Read, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ReadError, match=word):
        read("a;b\n1;2\n", **options)


def test_thousands_can_be_said(read: Read) -> None:
    text = "a;b\n1,234;1.5\n5,678;2\n"
    assert read(text.replace("1.5", "1")).kind("a") == "text"
    assert "'a'" in notes(read(text.replace("1.5", "1")))
    said = read(text.replace("1.5", "1"), thousands=",")
    assert said.frame["a"].to_list() == [1234, 5678]
    assert read("a;b\n1.234;x\n", thousands=".").frame["a"].to_list() == [1234]


def test_options_win_over_others() -> None:
    plan = ReadOptions(delimiter=";", decimal=",", thousands=".", missing_values=("-",))
    call = ReadOptions(decimal=".", only_missing_values=("?",), date_formats={"a": "%d.%m.%Y"})
    assert call.over(plan) == ReadOptions(
        delimiter=";", decimal=".", only_missing_values=("?",), date_formats={"a": "%d.%m.%Y"}
    )
    assert call.over(None) is call
    assert plan.fitting("parquet") == ReadOptions(format="parquet")
    with pytest.raises(ReadError, match="Did you mean 'delimiter'"):
        ReadOptions.from_dict({"delimeter": ";"})
