"""Whether a source is the one that a plan was made for, and a release written like its source."""

from __future__ import annotations

import csv
import dataclasses
import datetime as dt
import hashlib
import io
import json
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal as sh
from shoal.errors import DialectWarning, InputError, PlanError, SourceWarning
from shoal.workflow import Plan, recorded_reading
from shoal.workflow.release._release import _dialect

ROLES = sh.Roles(quasi_identifiers=["age", "sex"], insensitive=["pay", "ort"])
FRAME = pl.DataFrame(
    {
        "age": [31, 31, 40, 40],
        "sex": ["f", "f", "m", "m"],
        "pay": [1.5, 2.25, -3.0, 0.1],
        "ort": ["Köln", "=1+1", "a;b", "Plön"],
    }
)
COLUMNS = {"age": "integer", "sex": "text", "pay": "float", "ort": "text"}


def protected(frame: pl.DataFrame, **parts: Any) -> sh.Release:
    plan = Plan(roles=ROLES, require=[sh.KAnonymity(2)], **parts)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The plan changed no quasi-identifier")
        return sh.protect(sh.Table(frame), plan)


def read(**columns: str) -> sh.ReadOptions:
    return sh.ReadOptions(columns=COLUMNS | columns)


# -- columns that a plan does not know

NEW = FRAME.with_columns(pl.Series("hiv", ["-", "-", "+", "-"]))


def test_a_new_column_is_refused_dropped_or_kept_as_the_plan_says() -> None:
    with pytest.raises(InputError, match="'hiv'"):
        protected(NEW, unlisted="refuse", read=read())
    with pytest.raises(InputError, match="'hiv'"):
        protected(NEW, unlisted="refuse")
    with pytest.warns(SourceWarning, match="left out: 'hiv'"):
        assert "hiv" not in protected(NEW, unlisted="drop").masked.columns
    with pytest.warns(sh.errors.UnprotectedColumnWarning):
        assert "hiv" in protected(NEW, unlisted="keep", read=read()).masked.columns
    with pytest.warns(sh.errors.UnprotectedColumnWarning):
        assert "hiv" in protected(NEW).masked.columns


def test_a_plan_with_columns_and_nothing_else_warns_of_new_ones() -> None:
    with (
        pytest.warns(SourceWarning, match="'hiv'"),
        pytest.warns(sh.errors.UnprotectedColumnWarning),
    ):
        protected(NEW, read=read())


def test_what_a_step_names_is_known() -> None:
    steps = [sh.Round(base=1, columns=["pay"])]
    plan = Plan(steps, roles=ROLES.replacing(insensitive=["ort"]), unlisted="refuse")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.errors.UnprotectedColumnWarning)
        assert sh.protect(sh.Table(FRAME), plan).masked.columns == FRAME.columns


# -- columns that read differently


@pytest.mark.parametrize(
    ("column", "kind"), [("age", "text"), ("sex", "integer"), ("pay", "date"), ("ort", "boolean")]
)
def test_another_kind_is_refused_by_name(column: str, kind: str) -> None:
    with pytest.raises(InputError, match=f"'{column}' is .* was {kind}"):
        protected(FRAME, read=read(**{column: kind}))


def test_numbers_stay_numbers_with_a_warning_and_a_column_may_be_gone() -> None:
    with pytest.warns(SourceWarning, match="'age' is integer.* was float"):
        protected(FRAME, read=read(age="float"))
    with pytest.warns(SourceWarning, match="no longer has .* 'gone'"):
        protected(FRAME, read=read(gone="text"))


def test_a_column_without_a_value_fits_every_kind() -> None:
    empty = FRAME.with_columns(pl.lit(None, pl.String).alias("pay"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SourceWarning)
        protected(empty, read=read(), unlisted="refuse")


# -- the plan


def test_reading_round_trips_in_a_plan() -> None:
    options = sh.ReadOptions(
        format="csv",
        delimiter=";",
        missing_values=("k.A.",),
        date_formats={"born": "%d.%m.%Y"},
        columns=COLUMNS,
    )
    plan = Plan(roles=ROLES, read=options, unlisted="drop")
    assert Plan.from_toml(plan.to_toml()) == plan
    assert Plan.from_toml(plan.to_toml()).read == options


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('unlisted = "refused"\n', "'unlisted'"),
        ("[read]\ndelimeter = ';'\n", "Did you mean 'delimiter'"),
        ("read = 3\n", r"\[read\]"),
        ("[read]\ndecimal = '-'\n", "decimal mark"),
        ("[read]\nmissing_values = 'NA'\n", "list of texts"),
        ("[read]\ndate_formats = { a = '%d' }\n", "date format"),
        ("[read]\nheader = false\n", "header"),
        ("[read]\nskip_lines = 'x'\n", "skip_lines"),
    ],
)
def test_a_plan_says_what_is_wrong_with_its_reading(text: str, word: str) -> None:
    with pytest.raises(PlanError, match=word):
        Plan.from_toml(text)


# -- a release like its source


def release_of(path: Path, text: str, encoding: str) -> sh.Release:
    path.write_bytes(text.encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.errors.UnprotectedColumnWarning)
        return sh.protect(sh.read(path, roles=ROLES), Plan(require=[sh.KAnonymity(2)]))


GERMAN = 'age;sex;pay;ort\n31;f;1,5;Köln\n31;f;2,25;=1+1\n40;m;-3;"a;b"\n40;m;0,1;Plön\n'


def cells(folder: Path, encoding: str, delimiter: str) -> list[tuple[str, ...]]:
    text = (folder / "public" / "data.csv").read_bytes().decode(encoding)
    _, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return sorted(map(tuple, rows))


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16", "iso8859-15"])
def test_the_dialect_of_the_source_is_that_of_the_release(tmp_path: Path, encoding: str) -> None:
    known = {} if encoding != "iso8859-15" else {"encoding": encoding}
    path = tmp_path / "people.csv"
    path.write_bytes(GERMAN.encode(encoding))
    table = sh.read(path, roles=ROLES, **known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.errors.UnprotectedColumnWarning)
        release = sh.protect(table, Plan(require=[sh.KAnonymity(2)]))
    folder = release.save(tmp_path / "out", format="csv", source=path)
    assert cells(folder, encoding, ";") == [
        ("31", "f", "1,5", "Köln"),
        ("31", "f", "2,25", "'=1+1"),
        ("40", "m", "-3,0", "a;b"),
        ("40", "m", "0,1", "Plön"),
    ]
    marked = (folder / "public" / "data.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert marked == (encoding == "utf-8-sig")
    assert recorded_reading(folder) == table.manner.options  # type: ignore[union-attr]
    assert sh.verify(folder, original=table, source=path).holds


def test_a_character_that_the_encoding_lacks(tmp_path: Path) -> None:
    release = release_of(tmp_path / "people.csv", GERMAN, "cp1252")
    other = FRAME.with_columns(pl.Series("ort", ["Łódź", "x", "y", "z"]))
    masked = sh.Table(other).with_roles(ROLES)
    lacking = masked.lacking("cp1252")
    assert lacking == ["ort"]
    with pytest.raises(InputError, match="cp1252 lacks characters of these columns: 'ort'"):
        masked.write(tmp_path / "x.csv", format="csv", dialect=sh.table.Dialect(encoding="cp1252"))
    assert not (tmp_path / "x.csv").exists()
    odd = dataclasses.replace(release, masked=masked.paired(release.masked))
    with pytest.raises(InputError, match="lacks characters"):
        odd.save(tmp_path / "out", format="csv", encoding="cp1252")
    assert not (tmp_path / "out").exists()
    with pytest.warns(DialectWarning, match="cp1252 lacks characters .* 'ort'"):
        found = _dialect(odd, "csv", {})
    assert found is not None
    assert (found.encoding, found.delimiter, found.decimal) == ("utf-8-sig", ";", ",")


def test_an_encoding_that_is_not_written_becomes_utf8(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(GERMAN.encode("mac-roman"))
    table = sh.read(path, roles=ROLES, encoding="mac-roman")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sh.errors.UnprotectedColumnWarning)
        release = sh.protect(table, Plan(require=[sh.KAnonymity(2)]))
    with pytest.warns(DialectWarning, match="not written in mac-roman"):
        folder = release.save(tmp_path / "out", format="csv")
    assert ("31", "f", "1,5", "Köln") in cells(folder, "utf-8-sig", ";")


@pytest.mark.parametrize(
    "asked",
    [{"delimiter": "^"}, {"decimal": "x"}, {"delimiter": ",", "decimal": ","}, {"encoding": "x"}],
)
def test_a_dialect_that_cannot_be_is_refused(tmp_path: Path, asked: dict[str, str]) -> None:
    release = release_of(tmp_path / "people.csv", GERMAN, "cp1252")
    with pytest.raises(InputError, match="cannot be written with"):
        release.save(tmp_path / "out", format="csv", **asked)
    with pytest.raises(InputError, match="parquet does not have"):
        release.save(tmp_path / "out", format="parquet", **asked)
    assert not (tmp_path / "out").exists()


# -- what verify trusts


def edited(folder: Path, change: Any) -> list[str]:
    """The checks that fail when release.json is changed, without the private half."""
    path = folder / "public" / "release.json"
    facts = json.loads(path.read_text("utf-8"))
    change(facts)
    path.write_text(json.dumps(facts), "utf-8")
    found = sh.verify(folder / "public")
    return [check.name for check in found.checks if check.status == "failed"]


@pytest.mark.parametrize(
    "dialect",
    [
        {"delimiter": ";", "decimal": ",", "encoding": "rot13"},
        {"delimiter": ";", "decimal": ",", "encoding": "idna"},
        {"delimiter": "\n", "decimal": ",", "encoding": "cp1252"},
        {"delimiter": ";", "decimal": ";", "encoding": "cp1252"},
        {"delimiter": ";", "decimal": ","},
        {"delimiter": ";", "decimal": ",", "encoding": "cp1252", "more": 1},
        {"delimiter": ",", "decimal": ",", "encoding": "cp1252"},
        {"delimiter": "|", "decimal": ",", "encoding": "cp1252"},
        {"delimiter": ";", "decimal": ".", "encoding": "cp1252"},
        {"delimiter": ";", "decimal": ",", "encoding": "utf-8"},
        None,
    ],
)
def test_a_dialect_that_is_not_that_of_the_file_fails(tmp_path: Path, dialect: Any) -> None:
    release = release_of(tmp_path / "people.csv", GERMAN, "cp1252")
    folder = release.save(tmp_path / "out", format="csv")
    assert edited(folder, lambda facts: None) == []
    assert edited(folder, lambda facts: facts["data"].update(dialect=dialect))


def test_another_spelling_of_an_equal_number_fails(tmp_path: Path) -> None:
    release = release_of(tmp_path / "people.csv", GERMAN, "cp1252")
    folder = release.save(tmp_path / "out", format="csv")
    path = folder / "public" / "data.csv"
    path.write_bytes(path.read_bytes().replace(b"1,5", b"1.5"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert edited(folder, lambda facts: facts["data"].update(sha256=digest))


def test_dates_are_released_in_one_form(tmp_path: Path) -> None:
    text = "age;sex;pay;ort\n" + "".join(f"31;f;{n + 1}.02.1980;x\n" for n in range(4))
    release = release_of(tmp_path / "people.csv", text, "cp1252")
    folder = release.save(tmp_path / "out", format="csv")
    shown = {row[2] for row in cells(folder, "utf-8", ";")}
    assert shown == {dt.date(1980, 2, n + 1).isoformat() for n in range(4)}
    assert sh.verify(folder).holds
