"""Reasons for missing values in SAS transport files, against bytes as the note TS-140 has them."""

from __future__ import annotations

import importlib
import string
import warnings
from collections import Counter

import polars as pl
import pytest

import shoal as sh
from shoal.errors import ReadError, ShoalWarning

from .samples import ibm, ps, sas, transport, with_codes

pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")

REASONS = ["_", *string.ascii_uppercase]


def gap(mark, width=8):
    return mark.encode().ljust(width, b"\0")


def read_by_library(path):
    """The cells with letters in the gaps, which the library's public function does not give."""
    module = importlib.import_module("pyreadstat._readstat_parser")
    options = {"user_missing": True, "output_format": "polars"}
    frame, _ = module.parser_entry_point(str(path), parser_format="xport", **options)
    return frame


@pytest.mark.parametrize("version", [5, 8])
@pytest.mark.parametrize("width", [3, 8])
def test_every_reason_is_read_and_written(tmp_path, version, width):
    """Of widths that SAS allows; a number that begins with the byte of a reason stays one."""
    likely = 4.5  # its first byte is that of .A
    cells = [gap(mark, width) for mark in (*REASONS, ".")] + [ibm(likely)[:width]]
    rows = len(cells)
    columns = {
        "$who": (3, [f"{row:03}".encode() for row in range(rows)]),
        "income": (width, cells),
        "age": (8, [ibm(row) for row in range(rows)]),
        "$job": (2, [b".A"] * rows),
    }
    (tmp_path / "a.xpt").write_bytes(transport(columns, version))
    table = sh.read(tmp_path / "a.xpt")
    assert table.frame.to_dict(as_series=False) == {
        "who": [f"{row:03}" for row in range(rows)],
        "income": [None] * 28 + [likely],
        "income_reason": [f".{mark}" for mark in REASONS] + [None, None],
        "age": list(range(rows)),
        "job": [".A"] * rows,
    }
    assert table.dictionary.reasons == {"income": "income_reason"}
    table.write(tmp_path / "b.xpt")
    again = read_by_library(tmp_path / "b.xpt")
    assert again["income"].to_list() == [*REASONS, None, likely]
    assert again.columns == ["who", "income", "age", "job"]
    assert sh.read(tmp_path / "b.xpt").frame.equals(table.frame, null_equal=True)
    assert gap("Q") in (tmp_path / "b.xpt").read_bytes()


def test_reasons_can_be_dropped(tmp_path):
    path = sas(tmp_path)
    assert "income_reason" not in sh.read(path, missing_reasons="dropped").columns
    assert sh.read(path).columns[4:6] == ["income", "income_reason"]


def test_a_file_without_reasons_has_no_columns_for_them(tmp_path):
    path = tmp_path / "a.xpt"
    path.write_bytes(transport({"a": (8, [ibm(-0.1), gap("."), ibm(1e6)])}))
    assert sh.read(path).frame.to_dict(as_series=False) == {"a": [-0.1, None, 1e6]}


@pytest.mark.parametrize("version", [5, 8])
def test_a_release_declares_them_again(tmp_path, version):
    roles = sh.Roles(
        identifiers=["pid"],
        quasi_identifiers=["age", "sex"],
        sensitive=["ill"],
        insensitive=["income", "marital"],
    )
    source = sas(tmp_path, version)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        table = sh.read(source, roles=roles)
        plan = sh.Plan([sh.Generalize("mondrian", k=4)], require=[sh.KAnonymity(4)])
        out = sh.protect(table, plan).save(tmp_path / "out", format="xpt", source=source)
        assert sh.verify(out, original=table, source=source).holds
    path = out / "public" / "data.xpt"
    incomes = read_by_library(path)["income"].to_list()
    assert Counter(incomes) == Counter(with_codes("A", "Z"))
    pandas = pytest.importorskip("pandas")
    numbers = pandas.read_sas(path, encoding="utf-8")["income"]
    gaps = [not isinstance(cell, float) for cell in incomes]
    assert numbers.isna().tolist() == gaps
    assert numbers.dropna().tolist() == [cell for cell in incomes if isinstance(cell, float)]


def test_a_column_that_became_text_leaves_its_reasons_in_a_column(tmp_path):
    """SAS has no reasons among texts, and this format has no codes with labels."""
    table = sh.read(sas(tmp_path)).starred(["income"], [True] + [False] * 239)
    assert table.coding("xpt").reasons == {}
    table = table.settled()
    table.write(tmp_path / "b.xpt")
    assert sh.read(tmp_path / "b.xpt").frame.equals(table.frame, null_equal=True)


@pytest.mark.parametrize("version", [5, 8])
def test_several_tables_are_refused(tmp_path, version):
    """The library would read the header of the second one as rows of the first."""
    content = transport({"a": (8, [ibm(1)] * 20)}, version)
    (tmp_path / "a.xpt").write_bytes(content + content[240:])
    with pytest.raises(ReadError, match="several tables"):
        sh.read(tmp_path / "a.xpt")


def test_a_text_that_looks_like_a_header_is_no_second_table(tmp_path):
    text = b"HEADER RECORD*******MEMBER  HEADER"
    columns = {"a": (8, [ibm(1)] * 3), "$b": (len(text), [text] * 3)}
    (tmp_path / "a.xpt").write_bytes(transport(columns))
    assert sh.read(tmp_path / "a.xpt").frame["b"].to_list() == [text.decode()] * 3


@pytest.mark.parametrize("version", [5, 8])
def test_files_that_were_cut_off(tmp_path, version):
    """Version 5 does not count its rows, so a cut at the end of a row and a record is not seen."""
    content = transport({"$a": (60, [b"x" * 60] * 12)}, version)
    begin = content.index(b"HEADER RECORD*******OBS") + 80
    for end in range(begin, len(content), 80):
        (tmp_path / "a.xpt").write_bytes(content[:end])
        if version == 5 and not (end - begin) % 60:
            assert len(sh.read(tmp_path / "a.xpt")) == (end - begin) // 60
            continue
        with pytest.raises(ReadError, match="damaged"):
            sh.read(tmp_path / "a.xpt")
    (tmp_path / "a.xpt").write_bytes(content)
    assert len(sh.read(tmp_path / "a.xpt")) == 12


@pytest.mark.parametrize(
    "columns",
    [
        {"a": (2, [b"\x41\x10"])},  # the library takes numbers of two bytes as missing
        {"a": (9, [ibm(1) + b"\0"])},
    ],
)
def test_numbers_that_the_library_does_not_read_are_not_taken_as_missing(tmp_path, columns):
    (tmp_path / "a.xpt").write_bytes(transport(columns))
    with pytest.raises(ReadError, match="damaged"):
        sh.read(tmp_path / "a.xpt")


@pytest.mark.parametrize("length", [40, 200])
def test_long_labels_and_long_formats(tmp_path, length):
    """Both stand between the descriptions and the rows; only version 8 has them."""
    frame = pl.DataFrame({"a": [1.5, None], "b": ["x", "y"]})
    path = str(tmp_path / "a.xpt")
    shown = {"a": "NUMBERSOFMANY12.2" if length > 40 else "DOLLAR12.2"}
    labels = {"a": "l" * length, "b": "second"}
    version = 8 if length > 40 else 5
    options = {"column_labels": labels, "variable_format": shown, "file_format_version": version}
    ps.write_xport(frame, path, table_name="DATA", **options)
    content = (tmp_path / "a.xpt").read_bytes()
    (tmp_path / "a.xpt").write_bytes(content.replace(gap("."), gap("B")))
    table = sh.read(path)
    assert table.frame["a_reason"].to_list() == [None, ".B"]
    table.write(tmp_path / "b.xpt")
    _, about = ps.read_xport(str(tmp_path / "b.xpt"))
    assert about.original_variable_types["a"] == shown["a"]
    assert about.column_names_to_labels == labels
    assert sh.read(tmp_path / "b.xpt").frame.equals(table.frame, null_equal=True)


def test_blank_rows_at_the_end_are_not_lost(tmp_path):
    """Version 5 fills its last record with blanks, so the other one is written."""
    frame = pl.DataFrame({"a": ["x", None, None]})
    sh.Table(frame).write(tmp_path / "a.xpt")
    assert sh.read(tmp_path / "a.xpt").frame.equals(frame, null_equal=True)
    sh.Table(frame[:1]).write(tmp_path / "b.xpt")
    assert b"LIBRARY HEADER" in (tmp_path / "b.xpt").read_bytes()


def test_reasons_under_another_name_stay_a_column(tmp_path):
    cells = [gap("A"), ibm(1), gap("B")]
    (tmp_path / "a.xpt").write_bytes(transport({"income": (8, cells)}, 8))
    table = sh.read(tmp_path / "a.xpt")
    for name in ("no answer", ".", "x"):
        joined = table.with_labels("income_reason", [name, None], [0, 1, 0])
        joined.write(tmp_path / "b.xpt")
        assert sh.read(tmp_path / "b.xpt").frame.equals(joined.frame)
