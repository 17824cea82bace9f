"""Values, sheets and files at the far ends of what their types allow get an answer."""

from __future__ import annotations

import importlib.util
import json
import zipfile

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal import KAnonymity, Microaggregate, Plan, Roles, Round, Table, protect, read
from shoal.errors import InputError, PlanError, ReadError, ReleaseError, ShoalError, ShoalWarning
from shoal.study import Study
from shoal.workflow import read_release

pytestmark = pytest.mark.filterwarnings("ignore", category=ShoalWarning)
excel = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fastexcel", "xlsxwriter")),
    reason="the extra 'excel' is not installed",
)

# -- workbooks


def workbook(path, cells):
    """A workbook of two sheets, of which the first has these cells."""
    import xlsxwriter

    with xlsxwriter.Workbook(path) as book:
        for name, written in (("first", cells), ("second", {(0, 0): "age", (1, 0): 31})):
            sheet = book.add_worksheet(name)
            for place, value in sorted(written.items()):
                sheet.write(*place, value)
    return path


@excel
def test_a_cell_in_the_far_corner_is_no_table(tmp_path):
    """The reader would set aside memory for every cell up to there, and abort the process."""
    path = workbook(tmp_path / "dim.xlsx", {(0, 0): "age", (1, 0): 31, (1_048_575, 16_383): 1})
    with pytest.raises(ReadError, match="stray"):
        read(path)
    assert read(path, sheet=2).frame.to_dicts() == [{"age": 31}]


@excel
@pytest.mark.parametrize(
    "cells",
    [
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="99999"><c r="XFD99999"><v>1</v></c></row>',
        "<row r='1'><c s='1' r='A1'/><c r='XFD1'/></row><row r='999999'><c><v>1</v></c></row>",
    ],
    ids=["as usual", "as nobody writes it"],
)
def test_whatever_the_sheet_says_of_its_dimension(tmp_path, cells):
    path = workbook(tmp_path / "dim.xlsx", {(0, 0): "age", (1, 0): 31})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    begin, _, rest = parts["xl/worksheets/sheet1.xml"].partition(b"<sheetData>")
    _, _, end = rest.partition(b"</sheetData>")
    sheet = begin + f"<sheetData>{cells}</sheetData>".encode() + end
    assert b'<dimension ref="A1:A2"/>' in sheet
    parts["xl/worksheets/sheet1.xml"] = sheet
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(ReadError, match="stray"):
        read(path)


@excel
def test_a_sparse_table_of_ordinary_size_is_one(tmp_path):
    cells = {(0, 0): "age", (0, 40): "zip", (1, 0): 31, (50_000, 40): 1234}
    assert read(workbook(tmp_path / "sparse.xlsx", cells)).frame.height == 2


# -- dates


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**31 - 1, 0, None], pa.int32()).cast(pa.date32()),
        pa.array([-(2**31), 0, None], pa.int32()).cast(pa.date32()),
        pa.array([2**63 - 1, 0, None], pa.int64()).cast(pa.timestamp("ms")),
        pa.array([2**60, 0, None], pa.int64()).cast(pa.timestamp("us", "Asia/Tokyo")),
        pa.array([2**63 - 1, 0, None], pa.int64()).cast(pa.duration("ms")),
    ],
    ids=["last day", "first day", "moment", "moment of a zone", "duration"],
)
def test_dates_beyond_the_calendar_are_refused_by_name(tmp_path, values):
    pq.write_table(pa.table({"born": values}), tmp_path / "people.parquet")
    with pytest.raises(InputError, match=r"'born'.*1 of 3 cells"):
        read(tmp_path / "people.parquet")


def test_the_ends_of_the_calendar_are_dates_like_others():
    ends = ["0001-01-01", "9999-12-31"]
    days = pl.Series("day", ends).str.to_date()
    moments = pl.Series("moment", [f"{end}T23:59:59" for end in ends]).str.to_datetime()
    table = Table(pl.DataFrame([days, moments]))
    assert table.frame["day"].cast(pl.String).to_list() == ends


# -- numbers


def aggregated(values, **options):
    table = Table(pl.DataFrame({"x": values}), Roles(quasi_identifiers=["x"]))
    return Microaggregate(3, **options).fit_transform(table).frame["x"].to_list()


@pytest.mark.parametrize("partition", ["mdav", "v-mdav", "mondrian"])
def test_raw_distances_at_the_end_of_the_range(partition):
    values = [1.7e308] * 5 + [-1.7e308] * 4 + [-1.0, 0.0, 1.0]
    found = aggregated(values, standardize=False, partition=partition)
    assert np.isfinite(found).all()
    assert min(found.count(value) for value in found) >= 3


def test_means_keep_their_digits_beside_huge_values():
    assert aggregated([2**53 + 1] * 3 + [1] * 3)[3:] == [1] * 3
    assert aggregated([10**18 - 1] * 3 + [1, 2, 3, 7, 8, 9])[3:] == [2, 2, 2, 8, 8, 8]
    found = aggregated([1.7e308] * 3 + [-1.7e308] * 3 + [1e-10, 2e-10, 3e-10])
    assert found[:6] == [1.7e308] * 3 + [-1.7e308] * 3
    assert found[6:] == pytest.approx([2e-10] * 3, rel=1e-15)


# -- files


@pytest.mark.parametrize("methods", [5, None, "abc", [5], [{"columns": 5}], [{}]])
def test_a_release_whose_methods_are_no_list(tmp_path, methods):
    """What ``shoal assess DIR`` reads."""
    table = Table(pl.DataFrame({"age": [31, 32, 58, 61]}), Roles(quasi_identifiers=["age"]))
    out = protect(table, Plan([Round(base=20)], require=[KAnonymity(2)])).save(tmp_path / "out")
    facts = out / "public" / "release.json"
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"methods": methods}))
    with pytest.raises(ReleaseError, match="methods"):
        read_release(out, original=table)


def test_more_seeds_than_there_are():
    study = {
        "name": "seeds",
        "seeds": 2**63,
        "tables": [{"name": "people", "path": "people.csv"}],
        "variants": [{"name": "rounded", "steps": [{"method": "round", "base": 5}]}],
        "measures": ["prosecutor_risk"],
    }
    with pytest.raises(PlanError, match="seeds"):
        Study.from_dict(study)
    assert len(Study.from_dict(study | {"seeds": [2**63, 0]}).seeds) == 2


def test_a_workbook_damaged_anywhere_gets_a_sentence(tmp_path):
    path = tmp_path / "people.xlsx"
    pl.DataFrame({"age": [31, 41, 59]}).write_excel(path)
    whole = path.read_bytes()
    refused = 0
    for at in range(0, len(whole), 23):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read(path)
        except ShoalError:  # anything else fails the test
            refused += 1
    assert refused > 0
