"""What an engine reads: text in one file or many, tables of DuckDB, partitioned data sets."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from urllib.parse import quote

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal as sh
from shoal.app.cli import app
from shoal.engines import _files, chosen_engine
from shoal.engines._duckdb import DatabaseTable, DuckDb
from shoal.errors import InputError, ReadError
from shoal.workflow import EngineSettings

from .parts.tables import people

ROLES = sh.Roles(quasi_identifiers=["alter", "member"], insensitive=["born", "wage", "ill"])
PLAN = """
[roles]
quasi_identifiers = ["alter", "member"]
insensitive = ["born", "wage", "ill", "Wohn ort"]

[[steps]]
method = "generalize"
algorithm = "mondrian"
k = 3
"""

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")

AWKWARD = pl.DataFrame(
    {
        "number": ["1", "2", " 3", "4"],
        "later a decimal": ["1", "2", "3", "4.5"],
        "code": ["007", "1", "2", "3"],
        "plus": ["1", "2", "3", "+4"],
        "yes": ["true", "FALSE", "true", "NA"],
        "day": ["2020-01-31", "2021-02-28", "", "1999-12-31"],
        "said": ['a "b"', "two\nlines", "x,y", "NULL"],
    }
)


def kinds(engine: DuckDb, source: Path) -> dict[str, str]:
    return sh.Table(pl.DataFrame(schema=dict(engine.source(source).schema))).schema


@pytest.fixture
def engine(tmp_path: Path):
    place = tmp_path / "workshop"
    place.mkdir()
    with DuckDb(EngineSettings(), place) as made:
        yield made


def test_text_has_the_types_that_memory_finds(engine: DuckDb, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    AWKWARD.write_csv(one)
    packed = tmp_path / "one.csv.gz"
    packed.write_bytes(gzip.compress(one.read_bytes()))
    several = tmp_path / "several"
    several.mkdir()
    AWKWARD.head(2).write_csv(several / "a.csv")
    AWKWARD.tail(2).write_csv(several / "b.csv")
    here = sh.read(one)
    for source in (one, packed, several):
        assert kinds(engine, source) == here.schema
        found = engine.collected(engine.source(source)).drop("__shoal_row")
        assert found.equals(here.frame.select(found.columns).cast(found.schema))
    (several / "c.csv").write_text("other,columns\n1,2\n")
    with pytest.raises(ReadError, match="first lines"):
        engine.source(several)


def test_numbers_with_a_comma(engine: DuckDb, tmp_path: Path) -> None:
    path = tmp_path / "comma.csv"
    path.write_text("a;b\n1,5;x\n2,25;y\n")
    assert kinds(engine, path) == sh.read(path).schema
    assert engine.collected(engine.source(path))["a"].to_list() == [1.5, 2.25]


def test_a_table_of_duckdb(tmp_path: Path) -> None:
    frame = people(500)
    place = tmp_path / "people.duckdb"
    with duckdb.connect(str(place)) as database:
        database.register("given", frame.to_arrow())
        database.execute("CREATE TABLE people AS SELECT * FROM given")
    plan = sh.Plan(
        [sh.Generalize("mondrian", k=3)],
        roles=ROLES.replacing(insensitive=["born", "wage", "ill", "Wohn ort"]),
    )
    assert chosen_engine(place, "auto", EngineSettings())[0] == "duckdb"
    assert len(sh.protect(place, plan).masked) == 500
    some = DatabaseTable(f"duckdb:///{place}", "SELECT * FROM people WHERE member")
    with DuckDb(EngineSettings(), tmp_path) as engine:
        assert engine.source(some).count() == frame["member"].sum()
    with duckdb.connect(str(place)) as database:
        database.execute("CREATE TABLE other AS SELECT 1 AS x")
    with pytest.raises(ReadError, match="--query"):
        sh.protect(place, plan)


def test_a_partitioned_data_set_gets_its_column_back(engine: DuckDb, tmp_path: Path) -> None:
    frame = people(300)
    for member in (True, False):
        place = tmp_path / "set" / f"member={str(member).lower()}"
        place.mkdir(parents=True)
        frame.filter(pl.col("member") == member).drop("member").write_parquet(place / "0.parquet")
    rows = engine.source(tmp_path / "set")
    assert "member" in rows.columns
    assert rows.count() == 300


def _set(folder: Path, column: str, frames: dict[str, pl.DataFrame]) -> Path:
    """A partitioned data set."""
    for value, frame in frames.items():
        place = folder / f"{column}={value}"
        place.mkdir(parents=True)
        frame.write_parquet(place / "0.parquet")
    return folder


def test_values_of_partitions(engine: DuckDb, tmp_path: Path) -> None:
    frame = people(60).drop("member")
    for number, names in enumerate((["京都", "a b"], [quote("京都"), quote("a b")])):
        rows = engine.source(_set(tmp_path / str(number), "town", dict.fromkeys(names, frame)))
        assert engine.collected(rows)["town"].unique().sort().to_list() == ["a b", "京都"]
    gone = _set(tmp_path / "gone", "t", {"__HIVE_DEFAULT_PARTITION__": frame, "x": frame})
    assert engine.collected(engine.source(gone))["t"].null_count() == 60
    inside = _set(tmp_path / "year=2026", "t", {"x": frame})
    assert "year" not in engine.source(inside).columns  # it is above the source
    assert "year" not in engine.source(inside / "t=x").columns
    twice = _set(tmp_path / "ill=flu", "t", {"x": frame})
    with pytest.raises(ReadError, match="folder"):
        engine.source(twice)


def _folder(tmp_path: Path, files: dict[str, bytes | pl.DataFrame]) -> Path:
    place = tmp_path / "given"
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            (place / name).write_bytes(content)
        else:
            content.write_parquet(place / name)
    return place


ODD = pl.DataFrame({"alter": ["x"], "member": [True]})
BROKEN = {
    "nothing": ({}, "no file"),
    "hidden files only": ({"_SUCCESS": b"", ".a.parquet": b"x"}, "Parquet"),
    "no Parquet": ({"a.parquet": b"not Parquet"}, "'a.parquet' cannot be read"),
    "the second is damaged": ({"a.parquet": people(9), "b.parquet": b"PAR1x"}, "'b.parquet'"),
    "other types": ({"a.parquet": people(9), "b.parquet": ODD}, "texts in 'b.parquet'"),
    "no record": ({"a.csv": b"alter,member,born,wage,ill,Wohn ort\n"}, "no records"),
    "an empty file": ({"a.csv": b""}, "'a.csv' is empty"),
    "a ragged line": ({"a.csv": b"alter,member\n1,2\n3\n"}, "Line 3 of 'a.csv'"),
    "the same column twice": ({"a.csv": b"alter,alter\n1,2\n"}, "'alter'"),
    "another encoding": ({"a.csv": b"alter,member\n1,\xe9\n"}, "UTF-8"),
    "an open quote": ({"a.csv": b'alter,member\n1,2\n3,"4\n5,6\n'}, "damaged|written as"),
    "no gzip": ({"a.csv.gz": b"alter,member\n"}, "cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_said_in_a_sentence(name: str, tmp_path: Path, monkeypatch) -> None:
    """With exit code 2, no path of the private folder, and nothing left."""
    files, sentence = BROKEN[name]
    _folder(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN)
    call = ["protect", "given", "--plan", "plan.toml", "--out", "out", "--engine", "duckdb"]
    ended = CliRunner().invoke(app, call)
    said = ended.stderr.splitlines()[-1]
    assert ended.exit_code == 2
    assert re.search(sentence, said)
    assert "unexpected" not in said
    assert ".shoal" not in said
    assert {path.name for path in tmp_path.iterdir()} <= {"given", "plan.toml"}


def test_files_that_are_no_data(engine: DuckDb, tmp_path: Path) -> None:
    others = {"_temporary/b.parquet": b"half", ".c.parquet": b"x", "notes.csv": b"a\n1\n"}
    place = _folder(tmp_path, {"a.parquet": people(30), **others})
    assert engine.source(place).count() == 30


def test_a_release_does_not_lie_in_its_source(tmp_path: Path) -> None:
    place = _folder(tmp_path, {"a.parquet": people(30)})
    (tmp_path / "plan.toml").write_text(PLAN)
    call = ["protect", place, "--plan", tmp_path / "plan.toml", "--out", place / "out"]
    ended = CliRunner().invoke(app, [*map(str, call), "--engine", "duckdb"])
    assert (ended.exit_code, "inside the folder" in ended.stderr) == (2, True)
    assert [path.name for path in place.iterdir()] == ["a.parquet"]


def test_a_lazy_frame_comes_back_as_one(tmp_path: Path) -> None:
    frame = people(300)
    roles = ROLES.replacing(insensitive=["born", "wage", "ill", "Wohn ort"])
    plan = sh.Plan([sh.Generalize("mondrian", k=3)], roles=roles)
    release = sh.protect(frame.lazy(), plan)
    assert isinstance(release.masked.frame, pl.LazyFrame)
    release.save(tmp_path / "release")
    assert release.masked.frame.collect().height == 300  # where they were saved


def test_the_command_says_what_it_chose(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    people(400).write_csv("people.csv")
    Path("plan.toml").write_text(PLAN)
    call = ["protect", "people.csv", "--plan", "plan.toml", "--out"]
    said = CliRunner().invoke(app, [*call, "one"])
    assert "Engine: memory, since it needs about" in said.stderr
    said = CliRunner().invoke(app, [*call, "two", "--engine", "duckdb"])
    assert "Engine: duckdb, since it was requested" in said.stderr
    said = CliRunner().invoke(app, ["verify", "two", "--json"])
    assert json.loads(said.stdout)["engine"]["why"] == "the release is in parts"


# -- never read in another way than memory does


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n31.12.1999;x\n1.2.1980;y\n",
        "a;b\n8.074,75;x\n912,5;y\n",
        "a title\na;b;c\n1;2;x\n3;4;y\n",
        "a;b;\n1;2;\n3;4;\n",
    ],
)
def test_what_only_memory_reads_is_refused(engine: DuckDb, tmp_path: Path, text: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    sh.read(path)
    with pytest.raises(ReadError, match="engine 'memory'"):
        engine.source(path)


@pytest.mark.parametrize(
    ("first", "late"),
    [("912,5", "8.074,75"), ("12", "1,234,567"), ("", "31.12.1999"), ("", "8.074,75")],
)
def test_what_only_late_records_show_is_refused(
    engine: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, late: str
) -> None:
    monkeypatch.setattr(_files._first_records, "__defaults__", (3,))
    path = tmp_path / "people.csv"
    path.write_text(f"a;b\n{first};x\n{first};y\n{late};z\n")
    assert sh.read(path).kind("a") != "text"
    with pytest.raises(ReadError, match="'a'"):
        engine.source(path)


def test_codes_among_late_records_are_text_as_in_memory(
    engine: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files._first_records, "__defaults__", (3,))
    path = tmp_path / "people.csv"
    path.write_text("a;b\n10115;x\n20095;y\n01067;z\n")
    assert kinds(engine, path) == sh.read(path).schema == {"a": "string", "b": "string"}


@pytest.mark.parametrize(
    ("read", "word"),
    [
        (sh.ReadOptions(encoding="cp1252"), "encoding"),
        (sh.ReadOptions(missing_values=("-",)), "missing_values"),
        (sh.ReadOptions(delimiter="|"), "delimiter"),
        (sh.ReadOptions(date_formats={"born": "%d.%m.%Y"}), "date_formats"),
        (sh.ReadOptions(skip_lines=1), "skip_lines"),
    ],
)
def test_a_plan_that_an_engine_cannot_read_by_is_refused(
    tmp_path: Path, read: sh.ReadOptions, word: str
) -> None:
    path = tmp_path / "people.csv"
    people(60).write_csv(path)
    plan = sh.Plan([sh.Generalize("mondrian", k=3)], roles=ROLES, read=read)
    with pytest.raises(InputError, match=f"'{word}'"):
        sh.protect(path, plan, engine="duckdb")


def test_a_source_is_compared_with_the_plan_on_an_engine_too(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    frame = people(300)
    frame.write_csv(path)
    here = sh.read(path)
    known = sh.ReadOptions(
        format="csv", delimiter=",", columns={name: here.kind(name) for name in here.columns}
    )
    roles = ROLES.replacing(insensitive=["born", "wage", "ill", "Wohn ort"])
    plan = sh.Plan([sh.Generalize("mondrian", k=3)], roles=roles, read=known, unlisted="refuse")
    sh.protect(path, plan, engine="duckdb").close()
    frame.with_columns(pl.lit("neg").alias("hiv")).write_csv(path)
    with pytest.raises(InputError, match="'hiv'"):
        sh.protect(path, plan, engine="duckdb")
    plan.unlisted = "drop"
    release = sh.protect(path, plan, engine="duckdb")
    assert "hiv" not in release.masked.columns
    release.close()
    frame.with_columns(pl.Series("alter", ["x"] * 300)).write_csv(path)
    with pytest.raises(InputError, match="'alter' is text"):
        sh.protect(path, plan, engine="duckdb")
