"""Reading Stata, SPSS and SAS: codes in the cells, labels beside them, reasons in columns."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import InputError, ReadError, ShoalError

from . import samples
from .samples import MARITAL, REFUSED, ROWS, SEX, SILENT, UNKNOWN, ps

pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")


def reasons(first: str, second: str) -> list[str | None]:
    cells: list[str | None] = [None] * ROWS
    for rows, text in ((REFUSED, first), (UNKNOWN, second)):
        for row in rows.tolist():
            cells[row] = text
    return cells


def incomes() -> list[float | None]:
    gaps = {*REFUSED.tolist(), *UNKNOWN.tolist(), *SILENT.tolist()}
    whole = samples.people()["income"].to_list()
    return [None if row in gaps else income for row, income in enumerate(whole)]


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (samples.stata, (".a", ".z")),
        (samples.spss, ("99997", "-1")),
        (lambda folder: samples.spss(folder, "zsav"), ("99997", "-1")),
    ],
)
def test_cells_are_codes_and_reasons_are_a_column(tmp_path, make, codes):
    table = sh.read(make(tmp_path))
    expected = samples.people().with_columns(
        pl.Series("income", incomes()), pl.Series("income_reason", reasons(*codes))
    )
    order = [*expected.columns[:5], "income_reason", "born", "ill"]
    assert table.frame.equals(expected.select(order), null_equal=True)
    found = table.dictionary
    assert found.of("sex").values == SEX
    assert found.of("marital").values == MARITAL
    assert found.of("income").reasons[codes[0]] == "refused"
    assert found.of("income").reasons[codes[1]] == "does not know"
    assert found.labels == {
        "age": "Age in years",
        "income": "Net income",
        "income_reason": "Why income is missing",
    }


def test_a_reason_is_a_class_of_its_own_and_never_a_number(tmp_path):
    table = sh.read(samples.spss(tmp_path), roles=sh.Roles(quasi_identifiers=["income"]))
    assert table.roles.quasi_identifiers == ("income", "income_reason")
    values = table.numbers("income").values[table.present("income")]
    assert values.max() < 10_000
    assert values.min() > 0
    assert table.missing_count("income") == len(REFUSED) + len(UNKNOWN) + len(SILENT)
    sizes = table.classes.record_sizes
    for rows in (REFUSED, UNKNOWN, SILENT):
        assert set(sizes[rows].tolist()) == {len(rows)}


def test_reasons_can_be_dropped(tmp_path):
    table = sh.read(samples.stata(tmp_path), missing_reasons="dropped")
    assert "income_reason" not in table.columns
    assert table.missing_count("income") == len(REFUSED) + len(UNKNOWN) + len(SILENT)
    with pytest.raises(ReadError, match="'kept' or 'dropped'"):
        sh.read(samples.stata(tmp_path), missing_reasons="all")


def test_every_role_is_followed(tmp_path):
    path = samples.stata(tmp_path)
    for role in ("identifiers", "quasi_identifiers", "sensitive", "insensitive"):
        assert sh.read(path, roles=sh.Roles(**{role: ["income"]})).roles.of("income_reason") == role
    assert sh.read(path, roles=sh.Roles(target="income")).roles.of("income_reason") == "sensitive"
    given = sh.Roles(sensitive=["income"], identifiers=["income_reason"])
    assert sh.read(path, roles=given).roles == given


def test_the_dictionary_is_shared_and_shows_no_label(tmp_path):
    table = sh.read(samples.stata(tmp_path))
    for other in (table.drop(["age"]), table.keep(np.arange(ROWS) < 9), table.scrubbed()):
        assert other.dictionary is table.dictionary
    assert "male" not in repr(table.dictionary)
    assert "refused" not in repr(table.dictionary.of("income"))


def test_a_name_that_is_taken(tmp_path):
    frame = pl.DataFrame({"x": pl.Series([1.0, "a"], dtype=pl.Object), "X_reason": [1, 2]})
    ps.write_dta(frame, str(tmp_path / "a.dta"), missing_user_values={"x": ["a"]}, version=14)
    assert sh.read(tmp_path / "a.dta").columns == ["x", "x_reason_", "X_reason"]


def test_declared_values_of_a_portable_file_of_another_program(tmp_path):
    table = sh.read(samples.portable(tmp_path))
    born = ["1970-01-03", "1980-02-04", "1990-03-05", None, "2001-04-06", "2011-05-07"]
    assert table.frame.with_columns(pl.col("BORN").cast(pl.String)).to_dict(as_series=False) == {
        "ID": [1, 2, 3, 4, 5, 6],
        "INCOME": [1200.5, None, None, None, 3000000.25, None],
        "INCOME_reason": [None, "99997", "-1", None, None, "99991"],
        "SEX": [1, 2, 1, None, 2, 1],
        "SEX_reason": [None, None, None, "9", None, None],
        "JOB": ["baker", None, "smith", None, "b/c'd", None],
        "JOB_reason": [None, "NA", None, None, None, "NA"],
        "BORN": born,
        "RATE": [0.125, None, 0.333, None, -1.5, 1e-5],
        "RATE_reason": [None, "99.9", None, None, None, None],
        "SCORE": [5, None, None, 12, None, 7],
        "SCORE_reason": [None, "-5", "-99", None, None, None],
    }
    found = table.dictionary
    assert found.of("SEX").values == SEX
    assert found.of("SEX").reasons == {"9": "not asked"}
    assert found.of("INCOME").reasons == {"99997": "refused", "-1": "does not know"}
    assert found.of("JOB").reasons == {"NA": "no answer"}
    assert found.of("BORN").format == "DATE11"
    without = sh.read(samples.portable(tmp_path), missing_reasons="dropped")
    assert without.frame.equals(table.frame.select(without.columns), null_equal=True)


def test_texts_that_spss_takes_as_missing(tmp_path):
    frame = pl.DataFrame({"job": ["baker", "NA", "", "smith"]})
    ps.write_sav(frame, str(tmp_path / "a.sav"), missing_ranges={"job": ["NA"]})
    assert sh.read(tmp_path / "a.sav").frame.to_dict(as_series=False) == {
        "job": ["baker", None, None, "smith"],
        "job_reason": [None, "NA", None, None],
    }


def test_dates_and_times(tmp_path):
    moment = dt.datetime(2024, 2, 29, 23, 59, 58, 125_000)
    frame = pl.DataFrame(
        {
            "day": [dt.date(1900, 1, 1), None, dt.date(2024, 2, 29)],
            "moment": pl.Series([moment, None, dt.datetime(1582, 12, 1)], dtype=pl.Datetime("ms")),
            "clock": [dt.time(0, 0), None, dt.time(23, 59, 59)],
        }
    )
    for format in ("dta", "sav", "zsav", "xpt"):
        sh.Table(frame).write(tmp_path / f"a.{format}")
        assert sh.read(tmp_path / f"a.{format}").frame.equals(frame, null_equal=True), format
    theirs, _ = ps.read_sav(str(tmp_path / "a.sav"), output_format="polars")
    assert theirs["day"].to_list() == frame["day"].to_list()
    assert theirs["clock"].to_list() == frame["clock"].to_list()


def test_dates_beyond_the_calendar(tmp_path):
    frame = pl.DataFrame({"day": [1e7, 5.0]})
    ps.write_dta(frame, str(tmp_path / "a.dta"), variable_format={"day": "%td"}, version=14)
    with pytest.raises(InputError, match=r"'day'.*years"):
        sh.read(tmp_path / "a.dta")


@pytest.mark.parametrize("format", ["dta", "sav", "zsav", "por", "xpt"])
def test_damaged_files(tmp_path, format):
    whole = tmp_path / f"a.{format}"
    sh.Table(pl.DataFrame({"A": range(2000), "B": ["text"] * 2000})).write(whole)
    content = whole.read_bytes()
    for part in (content[: len(content) // 2], b"secret" * 500, content[:200]):
        (tmp_path / f"b.{format}").write_bytes(part)
        with pytest.raises(ReadError, match="damaged") as caught:
            sh.read(tmp_path / f"b.{format}")
        assert "secret" not in str(caught.value)


def test_a_wrong_ending(tmp_path):
    path = samples.stata(tmp_path)
    path.rename(tmp_path / "people.sav")
    with pytest.raises(ReadError, match="format="):
        sh.read(tmp_path / "people.sav")
    assert len(sh.read(tmp_path / "people.sav", format="stata")) == ROWS


def test_options_of_other_formats(tmp_path):
    with pytest.raises(ReadError, match="'delimiter'"):
        sh.read(samples.stata(tmp_path), delimiter=";")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(ReadError, match="'missing_reasons'"):
        sh.read(tmp_path / "a.csv", missing_reasons="kept")


def test_encodings(tmp_path):
    """Old files of Stata do not say their encoding; those of SPSS may say a wrong one."""
    ps.write_dta(pl.DataFrame({"a": ["Köln", "x"]}), str(tmp_path / "a.dta"), version=12)
    assert sh.read(tmp_path / "a.dta", encoding="utf-8").frame["a"].to_list() == ["Köln", "x"]
    ps.write_sav(pl.DataFrame({"a": ["Köln", "x"]}), str(tmp_path / "a.sav"))
    content = (tmp_path / "a.sav").read_bytes().replace("ö".encode(), b"\xf6n")
    (tmp_path / "b.sav").write_bytes(content)
    with pytest.raises(ReadError, match="encoding=") as caught:
        sh.read(tmp_path / "b.sav")
    assert "ln" not in str(caught.value).replace(str(tmp_path), "")
    assert sh.read(tmp_path / "b.sav", encoding="cp1252").frame["a"].to_list() == ["Könln", "x"]
    with pytest.raises(ReadError, match="no encoding 'nonsense'"):
        sh.read(tmp_path / "a.sav", encoding="nonsense")


def test_an_empty_table(tmp_path):
    frame = pl.DataFrame(schema={"A": pl.Float64, "B": pl.String})
    for format in ("dta", "sav", "zsav", "por", "xpt"):
        sh.Table(frame).write(tmp_path / f"a.{format}")
        assert sh.read(tmp_path / f"a.{format}").shape == (0, 2)


def test_a_version_of_the_library_that_lost_what_portable_files_need(tmp_path, monkeypatch):
    path = samples.portable(tmp_path)
    for part in ("parser", "writer"):
        monkeypatch.setitem(__import__("sys").modules, f"pyreadstat._readstat_{part}", None)
    with pytest.raises(ShoalError, match="missing_reasons='dropped'"):
        sh.read(path)
    table = sh.read(path, missing_reasons="dropped")
    assert len(table) == 6
    with pytest.raises(ShoalError, match=r"1\.3\.7"):
        table.write(tmp_path / "a.por")


def test_without_the_library(tmp_path, monkeypatch):
    path = samples.stata(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(ImportError, match=r"\[stats\]"):
        sh.read(path)
    with pytest.raises(ImportError, match=r"\[stats\]"):
        sh.Table(pl.DataFrame({"a": [1]})).write(Path(tmp_path / "b.dta"))
