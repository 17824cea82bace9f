"""What an engine reads: text in one file or many, tables of DuckDB, partitioned data sets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal as sh
from shoal.app.cli import app
from shoal.engines import chosen_engine
from shoal.engines._duckdb import DatabaseTable, DuckDb
from shoal.errors import ReadError
from shoal.workflow import EngineSettings

from .tables import people

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
    assert "Engine: duckdb, since it was asked for" in said.stderr
    said = CliRunner().invoke(app, ["verify", "two", "--json"])
    assert json.loads(said.stdout)["engine"]["why"] == "the release is in parts"
