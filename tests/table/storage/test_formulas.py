"""Cells of a CSV or TSV file that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
import itertools
import json
import shutil

import polars as pl
import pytest
from typer.testing import CliRunner

from shoal import KAnonymity, Plan, Roles, Suppress, Table, protect, verify
from shoal.app.cli import app
from shoal.errors import InputError, ShoalWarning
from shoal.table.storage._formulas import neutralised, restored, running

pytestmark = pytest.mark.filterwarnings("ignore", category=ShoalWarning)

PAYLOADS = [
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "+1+1",
    "-2+3+cmd|' /C calc'!D2",
    "-5-5",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    '"=1+1',
    "＝1+1",
    "a;=1+1",
    "a\n=1+1",
    "'=1+1",
    "''=1+1",
]
PLAIN = ["-5", "+5", "-1.5e3", "+49 170 1234567", "-1,234.50", "-", "a-b", "'", "5 %", "[-5, 3)"]
BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
NAME = "=HYPERLINK(1)"


def table():
    texts = [text for text in PAYLOADS + PLAIN for _ in range(2)]
    frame = pl.DataFrame({NAME: texts, "wage": range(-len(texts), 0), "same": texts})
    roles = Roles(quasi_identifiers=[NAME], insensitive=["wage", "same"])
    return Table(frame, roles)


def released(folder, format, **options):
    plan = Plan([Suppress(min_class_size=2)], require=[KAnonymity(2)])
    return protect(table(), plan).save(folder, format=format, **options)


def rows_of(out, format):
    with (out / "public" / f"data.{format}").open(newline="") as file:
        return list(csv.reader(file, delimiter="," if format == "csv" else "\t"))


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_no_cell_runs_and_numbers_stay_numbers(tmp_path, format):
    names, *rows = rows_of(released(tmp_path / "out", format), format)
    assert names == [f"'{NAME}", "wage", "same"]
    for text, wage, again in rows:
        assert text == again
        assert text in PLAIN or not text.startswith(BEGINNINGS)
        assert int(wage) < 0
    assert set(PLAIN) <= {row[0] for row in rows}
    assert len({row[0] for row in rows}) == len(PAYLOADS + PLAIN)  # no two have become one


@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize("formulas", ["neutralise", "keep"])
def test_the_release_says_so_and_verifies(tmp_path, format, formulas):
    out = released(tmp_path / "out", format, formulas=formulas)
    found = verify(out, original=table())
    assert found.holds, str(found)
    skipped = [check.name for check in found.checks if check.status == "skipped"]
    assert skipped == ["source of the release"]  # the original is a table in memory
    told = json.loads((out / "public" / "release.json").read_text())["data"]["formulas"]
    assert told["handling"] == {"neutralise": "neutralised", "keep": "kept"}[formulas]
    assert told["names"] == [NAME]
    assert set(told["cells"]) == {NAME, "same"}
    assert told["cells"]["same"] == 2 * (len(PAYLOADS) - 2)  # two have their apostrophe already
    assert "begin like a spreadsheet formula" in (out / "public" / "report.html").read_text()


def test_kept_where_it_is_asked_for(tmp_path):
    names, *rows = rows_of(released(tmp_path / "out", "csv", formulas="keep"), "csv")
    assert names[0] == NAME
    assert {row[0] for row in rows} == set(PAYLOADS + PLAIN)
    with pytest.raises(InputError, match="formulas"):
        released(tmp_path / "other", "csv", formulas="run")


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_other_formats_hold_the_texts_as_they_are(tmp_path, format):
    out = released(tmp_path / "out", format)
    assert json.loads((out / "public" / "release.json").read_text())["data"]["formulas"] is None
    assert verify(out, original=table()).holds


@pytest.mark.parametrize("formulas", ["neutralise", "keep"])
def test_the_command_line_does_and_says_the_same(tmp_path, formulas):
    table().frame.write_parquet(tmp_path / "people.parquet")
    plan = Plan([Suppress(min_class_size=2)], require=[KAnonymity(2)], roles=table().roles)
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    words = ["protect", tmp_path / "people.parquet", "--plan", tmp_path / "plan.toml"]
    words += ["--out", tmp_path / "out", "--format", "tsv", "--formulas", formulas]
    told = CliRunner().invoke(app, [str(word) for word in words])
    assert told.exit_code == 0, told.output
    assert ("do not start" in " ".join(told.output.split())) == (formulas == "keep")
    names, *_ = rows_of(tmp_path / "out", "tsv")
    assert names[0] == (f"'{NAME}" if formulas == "neutralise" else NAME)


def test_verify_finds_a_formula_that_the_release_denies(tmp_path):
    out = released(tmp_path / "out", "csv", formulas="keep")
    shutil.rmtree(out / "private")
    facts = out / "public" / "release.json"
    facts.write_text(facts.read_text().replace('"handling": "kept"', '"handling": "neutralised"'))
    failed = {check.name for check in verify(out).checks if check.status == "failed"}
    assert "formulas in the text" in failed


def test_two_texts_never_become_one():
    """Every text of up to four of these characters, there and back."""
    characters = "'=-5;\t a\"\n+,"
    texts = pl.Series(
        "".join(chosen)
        for length in range(5)
        for chosen in itertools.product(characters, repeat=length)
    )
    written = neutralised(texts)
    assert written.n_unique() == len(texts)
    assert restored(written).equals(texts)
    assert not running(written).any()
    assert (written != texts).sum() > running(texts).sum() > 1000
