"""Behavior of Spark beyond the contract of engines, with executors in separate processes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.engines import _measures
from shoal.engines._engine import HIDDEN, ROW, Rows
from shoal.engines._protect import LargeRelease, protect_on
from shoal.engines.steps._functions import Noise, Redrawn
from shoal.engines.steps._values import _ranges
from shoal.errors import InputError, ReadError, ReleaseError, RequirementNotMet
from shoal.workflow import EngineSettings, protect

from .parts.tables import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")

ROLES = sh.Roles(
    quasi_identifiers=["age", "sex", "region"], sensitive=["illness"], insensitive=["amount"]
)
HIERARCHIES = {
    "age": sh.Hierarchy.intervals([5, 10, 20]),
    "sex": sh.Hierarchy.suppression(),
    "region": sh.Hierarchy.prefixes([1]),
}


def people(rows: int) -> pl.DataFrame:
    """People with missing keys, missing amounts and both zeros."""
    draw = np.random.default_rng(rows)
    regions = draw.choice([f"{letter}{digit}" for letter in "ab" for digit in range(4)], rows)
    amounts = np.round(draw.lognormal(6, 1, rows), 2)
    amounts[::50], amounts[1::50], amounts[2::50] = 0.0, -0.0, np.nan
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["f", "m"], rows),
            "region": pl.Series(regions).set(pl.Series(draw.random(rows) < 0.05), None),
            "amount": amounts,
            "illness": draw.choice(["flu", "gout", "none", "ulcer"], rows),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two Parquet files."""
    folder = tmp_path_factory.mktemp("a [folder]")
    frame = people(3000)
    frame[:1700].write_parquet(folder / "a.parquet")
    frame[1700:].write_parquet(folder / "b.parquet", row_group_size=200)
    return folder


@pytest.fixture(autouse=True, scope="module")
def sent_by_value() -> None:
    """The executors do not have this module, so its functions are sent whole."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="pyspark is not installed")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def spark(session: Any, tmp_path: Path) -> Any:
    from shoal.engines._spark import Spark

    with Spark(EngineSettings(), _folder(tmp_path / "private"), session) as engine:
        yield engine
    assert list((tmp_path / "private").iterdir()) == []


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def _protected(engine: Any, source: Any, plan: sh.Plan, folder: Path) -> LargeRelease:
    return protect_on(engine, source, plan, _folder(folder), contextlib.ExitStack())


def _halves(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All parts of both halves, joined row by row."""
    public, private = (
        pl.concat([pl.read_parquet(file) for file in sorted((folder / "parts" / half).iterdir())])
        for half in ("public", "private")
    )
    return public, private


SUPPRESS = sh.Plan([sh.Suppress(min_class_size=5)], require=[sh.KAnonymity(5)], roles=ROLES)


def test_noise_and_categories_are_drawn_alike_in_any_number_of_tasks(spark, session, table):
    rows = spark.source(str(table))
    ranges = _ranges(rows, ["sex"], "amount")
    amounts = {"amount": (ranges, 0.0, 50000.0)}
    noise = Noise("1f" * 32, "add_noise", 2.0, ("sex",), amounts, {"amount": pl.Float64()})
    drawn = Redrawn("2e" * 32, "pram", 0.5, {"sex": (pl.Series(["f", "m"]), np.array([1, 2]))})
    found = []
    for tasks in ("4", "1"):
        session.conf.set("spark.sql.shuffle.partitions", tasks)
        session.conf.set("spark.sql.files.maxPartitionBytes", "4k" if tasks == "4" else "64m")
        made = rows.mapped(noise, whole_parts=True)
        made = made.mapped(drawn, whole_parts=True)
        found.append(spark.collected(made).sort(ROW))
    session.conf.set("spark.sql.shuffle.partitions", "4")
    assert found[0].equals(found[1])
    assert found[0]["amount"].null_count() == people(3000)["amount"].is_nan().sum()
    plain = spark.collected(rows).sort(ROW)
    assert (found[0]["sex"] != plain["sex"]).any()


def test_groups_hold_in_every_chunk(spark, table, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.engines.steps._chunked.CHUNK", 500)
    monkeypatch.setattr("shoal.engines._parts.ROWS_OF_A_PART", 1000)
    plan = sh.Plan(
        [sh.Microaggregate(k=5, columns=["age"]), sh.Swap(k=5, columns=["amount"])], roles=ROLES
    )
    release = _protected(spark, table, plan, tmp_path / "shop")
    assert release.steps[0].facts["chunks"] > 1
    for half in ("public", "private"):
        files = sorted(file.name for file in (tmp_path / "shop" / "parts" / half).iterdir())
        assert files == [f"part-0000{number}.parquet" for number in range(3)]
    public, private = _halves(tmp_path / "shop")
    before = spark.collected(spark.source(table))
    assert public["amount"].sort().equals(before["amount"].sort())
    origin = private.select(pl.col("1_source_0").alias(ROW)).join(
        before, on=ROW, how="left", maintain_order="left"
    )
    assert origin["amount"].equals(public["amount"])
    assert (private["1_source_0"] != private["row_key"]).any()
    groups = private.group_by("1_chunk", "1_group_0").len()
    assert groups["len"].min() >= 5
    sizes = pl.concat([public, private], how="horizontal").group_by("0_chunk", "age").len()
    assert sizes["len"].min() >= 5


class Stalled:
    """Report which executor runs the task, then wait until an executor is killed."""

    def __init__(self, folder: Path) -> None:
        self.asked, self.killed = str(folder / "asked"), str(folder / "killed")

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        with open(f"/proc/{os.getppid()}/stat") as stat:
            executor = stat.read().rpartition(")")[2].split()[1]
        if not os.path.exists(self.killed):
            with open(self.asked + executor, "w"), contextlib.suppress(OSError):
                os.rename(self.asked + executor, self.asked)
                with open(self.asked, "w") as file:
                    file.write(executor + ".")
            for _ in range(600):
                if os.path.exists(self.killed):
                    break
                time.sleep(0.1)
        return frame


def test_a_lost_executor_changes_nothing(session, table, tmp_path, monkeypatch):
    from shoal.engines._spark import Spark

    class Interrupted(Spark):
        def write(self, rows: Rows, *others: Any) -> None:
            stalled = rows.mapped(Stalled(tmp_path))
            super().write(stalled, *others)

    def kill() -> None:
        for _ in range(1200):
            text = (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""
            if text.endswith("."):
                os.kill(int(text[:-1]), signal.SIGKILL)
                (tmp_path / "killed").touch()
                return
            time.sleep(0.05)

    plan = sh.Plan([sh.AddNoise(epsilon=2.0, columns=["amount"]), SUPPRESS.steps[0]], roles=ROLES)
    found = []
    for number, kind in enumerate((Spark, Interrupted)):
        calls = itertools.count()
        monkeypatch.setattr(
            "shoal.randomness._entropy",
            lambda length, calls=calls: hashlib.sha256(str(next(calls)).encode()).digest(),
        )
        killer = threading.Thread(target=kill)
        if kind is Interrupted:
            killer.start()
        with kind(EngineSettings(), _folder(tmp_path / f"private-{number}"), session) as engine:
            _protected(engine, table, plan, tmp_path / f"shop-{number}")
        files = sorted((tmp_path / f"shop-{number}").rglob("*.parquet"))
        found.append([file.read_bytes() for file in files])
        assert not list((tmp_path / f"shop-{number}").rglob("attempt-*"))
    killer.join()
    assert (tmp_path / "killed").exists()
    assert found[0] == found[1]


def test_a_frame_of_spark_gets_keys_that_stay(spark, session):
    given = session.range(100, numPartitions=3).selectExpr(
        "id", "CAST(id % 3 AS FLOAT) * -0.0F AS zero", "CAST('nan' AS DOUBLE) AS none"
    )
    rows = spark.source(given)
    assert rows.schema == {"id": pl.Int64(), "zero": pl.Float32(), "none": pl.Float64()}
    once, again = (spark.collected(rows).sort(ROW) for _ in range(2))
    assert once.equals(again)
    assert once[ROW].n_unique() == 100
    assert not np.signbit(once["zero"].to_numpy()).any()
    assert once["none"].null_count() == 100
    some = once[ROW].gather([0, 50, 99])
    assert (
        spark.picked(rows, pl.DataFrame({ROW: some.to_numpy()}))
        .sort(ROW)
        .equals(once.gather([0, 50, 99]))
    )
    with pytest.raises(InputError, match="'many' holds array<bigint>"):
        spark.source(given.selectExpr("array(id) AS many"))
    with pytest.raises(InputError, match="reserved"):
        spark.source(given.withColumnRenamed("id", HIDDEN + "id"))
    with pytest.raises(ReadError, match="table"):
        spark.source("nowhere.people")
    with pytest.raises(ReadError, match="Parquet"):
        spark.source("people.csv")


class Waiting:
    """Report that a task runs, and continue for a minute."""

    def __init__(self, folder: Path) -> None:
        self.asked = str(folder / "asked")

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        Path(self.asked).touch()
        time.sleep(60)
        return frame


def test_ctrl_c_cancels_the_jobs(spark, session, table, tmp_path):
    rows = spark.source(table)

    def interrupt() -> None:
        for _ in range(600):
            if (tmp_path / "asked").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.1)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        spark.collected(rows.mapped(Waiting(tmp_path)))
    thread.join()
    for _ in range(200):
        if not session.sparkContext.statusTracker().getActiveJobsIds():
            break
        time.sleep(0.1)
    assert not session.sparkContext.statusTracker().getActiveJobsIds()
    assert spark.query("SELECT 1 AS one")["one"].to_list() == [1]


def test_a_frame_of_spark_goes_through_the_doors(session, tmp_path):
    from shoal.engines._spark import Spark

    frame = people(900).drop("age", "amount")
    roles = sh.Roles(quasi_identifiers=["sex", "region"], sensitive=["illness"])
    plan = sh.Plan([sh.Suppress(min_class_size=40)], require=[sh.KAnonymity(40)], roles=roles)
    frame.write_parquet(tmp_path / "people.parquet")
    given = session.read.parquet(str(tmp_path / "people.parquet")).repartition(3)
    given.createOrReplaceTempView("people_as_table")
    with Spark(EngineSettings(), _folder(tmp_path / "private"), session) as engine:
        assert engine.source("people_as_table").count() == 900
        staged = list((tmp_path / "private").iterdir())
        assert [path.stat().st_mode & 0o777 for path in staged] == [0o700]
    session.catalog.dropTempView("people_as_table")
    release = sh.protect(given, plan)
    assert type(release.masked.frame) is type(given)
    expected: pl.DataFrame = protect(sh.Table(frame, roles), plan).masked.frame
    place = release.save(tmp_path / "out")
    assert sh.verify(place, engine="spark").holds
    shown = pl.read_parquet(place / "public" / "data" / "part-00000.parquet")
    assert rows_of(shown) == rows_of(expected)
    release.close()
    assert not [one for one in session.catalog.listTables() if one.name.startswith("shoal_")]


def test_every_type_goes_to_the_executors_and_back(spark, session):
    given = session.range(4).selectExpr(
        "id AS `a b``c.d`",
        "CAST(id AS TINYINT) AS tiny",
        "CAST(id AS DECIMAL(12, 3)) AS exact",
        "id > 1 AS flag",
        "CAST(id AS FLOAT) AS short",
        "IF(id = 2, NULL, DATE'2024-02-29') AS day",
        "TIMESTAMP'2024-02-29 12:30:00' AS moment",
        "TIMESTAMP_NTZ'2024-02-29 12:30:00' AS clock",
        "'京都' AS town",
    )
    rows = spark.source(given)
    kinds = dict(rows.schema) | {"tiny": pl.UInt8(), "town": pl.Enum(["京都"])}

    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        assert frame.schema == {ROW: pl.Int64(), **rows_schema}
        return frame.cast({"tiny": pl.UInt8(), "town": pl.Enum(["京都"])})

    rows_schema = dict(rows.schema)
    before = spark.collected(rows).sort(ROW)
    for whole in (False, True):
        made = rows.mapped(changed, kinds, whole_parts=whole)
        again = spark.collected(made).sort(ROW)
        assert again.schema == {ROW: pl.Int64(), **kinds}
        assert again.cast(before.schema).equals(before)


def test_what_fails_in_a_task_says_nothing_of_the_data(spark, table):
    rows = spark.source(table)

    def ours(frame: pl.DataFrame) -> pl.DataFrame:
        raise RequirementNotMet("The source changed.")

    def another(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col("illness").cast(pl.Int64))

    def full(frame: pl.DataFrame) -> pl.DataFrame:
        raise OSError(errno.ENOSPC, "No space left")

    with pytest.raises(RequirementNotMet, match=r"^The source changed\.$"):
        spark.collected(rows.mapped(ours))
    with pytest.raises(ReleaseError, match="disk"):
        spark.collected(rows.mapped(full))
    with pytest.raises(InputError) as caught:
        spark.collected(rows.mapped(another, whole_parts=True))
    assert str(caught.value) == "A Spark task failed (InvalidOperationError). Nothing was written."
    assert caught.value.__cause__ is None


def test_text_is_read_as_memory_reads_it(spark, tmp_path):
    frame = pl.DataFrame(
        {
            "number": ["1", "2", " 3", "4"],
            "later a decimal": ["1", "2", "3", "4.5"],
            "code": ["007", "1", "2", "3"],
            "yes": ["true", "FALSE", "true", "NA"],
            "day": ["2020-01-31", "2021-02-28", "", "1999-12-31"],
            "said": ['a "b"', "two\nlines", "x,y", "NULL"],
        }
    )
    folder = tmp_path / "texts"
    folder.mkdir()
    frame.head(2).write_csv(folder / "a.csv")
    frame.tail(2).write_csv(folder / "b.csv")
    frame.write_csv(tmp_path / "one.csv")
    here = sh.read(tmp_path / "one.csv")
    for source in (folder, tmp_path / "one.csv"):
        found = spark.collected(spark.source(source)).drop(ROW)
        assert sh.Table(found).schema == here.schema
        assert rows_of(found) == rows_of(here.frame)
    for wrong in ('1,"2\n3,4\n', '1,"2\n3,4\n5,"6\n', "1\n"):
        (folder / "b.csv").unlink(missing_ok=True)
        head = "a,b\n" + "1,2\n" * 20_000  # as far as is looked at first
        (folder / "a.csv").write_text(head + wrong)
        with pytest.raises(ReadError, match=r"'a\.csv'"):
            spark.source(folder)


def test_folders_are_read_as_duckdb_reads_them(spark, tmp_path):
    frame = pl.DataFrame({"a": [1, 2]})
    for name in ("t=京都", "t=a b", "_temporary"):
        (tmp_path / "set" / name).mkdir(parents=True)
        frame.write_parquet(tmp_path / "set" / name / "0.parquet")
    (tmp_path / "set" / "notes.txt").write_text("no data")
    found = spark.collected(spark.source(tmp_path / "set"))
    assert found["t"].unique().sort().to_list() == ["a b", "京都"]
    (tmp_path / "set" / "t=%E4%BA%AC").mkdir()
    frame.write_parquet(tmp_path / "set" / "t=%E4%BA%AC" / "0.parquet")
    with pytest.raises(ReadError, match="escaped letters"):
        spark.source(tmp_path / "set")


def test_a_sample_of_persons_is_measured(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(_measures, "SAMPLED", 800)
    frame = people(3000).with_columns(owner=pl.Series(np.arange(3000) // 3))
    folder = tmp_path / "rows"
    folder.mkdir()
    frame.write_parquet(folder / "0.parquet")
    step = sh.Generalize("full-domain", k=5, suppression_limit=0.05, hierarchies=HIERARCHIES)
    names = ["distance_linkage", "singling_out", "suda", "linkability"]
    limits = [sh.Limit(name, at_most=0.5) for name in names]
    roles = ROLES.replacing(unit="owner")
    plan = sh.Plan([step], require=limits, roles=roles)
    release = _protected(spark, folder, plan, tmp_path / "shop")
    here = protect(sh.Table(frame, roles), plan)
    for found, known in zip(release.claims[1:3], here.claims[1:3], strict=True):
        assert found.measured == pytest.approx(known.measured)
    assert release.claims[3].sampled is not None
    found = release.after["distance_linkage"]
    assert found.details["records"] == release.after.rows
    assert found.details["sampled_persons"] < 1200
    assert 0 < release.after["total_variation"].value < 0.3
