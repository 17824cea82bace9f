"""Behavior of DuckDB beyond the contract of engines: randomness, chunks, spilling, edits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import shoal as sh
from shoal.engines import chosen_engine
from shoal.engines._duckdb import DuckDb
from shoal.engines._engine import HIDDEN
from shoal.engines.steps import _chunked
from shoal.errors import InputError, RequirementNotMet, RolesError, VerificationFailed
from shoal.workflow import EngineSettings
from shoal.workflow import protect as in_memory

from .parts.plans import PLANS, QUASI, ROLES
from .parts.plans import plan_of as plan
from .parts.tables import people, rows_of, written

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return people(3000)


@pytest.fixture
def source(frame: pl.DataFrame, tmp_path: Path) -> Path:
    return written(frame, tmp_path)


def test_local_recoding(frame: pl.DataFrame, source: Path) -> None:
    """Refinement runs until its time is up, so only the result that it reaches is compared."""
    asked = plan(sh.Generalize("local", k=7), require=[sh.KAnonymity(7)])
    here = in_memory(sh.Table(frame, ROLES), asked)
    there = sh.protect(source, asked, engine="duckdb")
    assert there.claims[0].measured >= 7
    measure = "normalized_certainty_penalty"
    assert there.after[measure].value == pytest.approx(here.after[measure].value, rel=0.1)


def test_persons_with_several_rows_are_named(tmp_path: Path) -> None:
    owners = np.random.default_rng(3).integers(0, 500, 2000)
    frame = people(2000).with_columns(patient=pl.Series(owners))
    unsaid = plan(sh.Generalize("mondrian", k=5), roles=ROLES.replacing(identifiers=["patient"]))
    with pytest.raises(RolesError, match="several rows"):
        sh.protect(written(frame, tmp_path), unsaid, engine="duckdb")


def test_chance_depends_on_keys_only(frame: pl.DataFrame, tmp_path: Path, monkeypatch) -> None:
    """A row draws the same numbers in any batches, because numbers are drawn for whole parts."""
    from shoal.engines import _duckdb
    from shoal.engines.steps import _functions, _values

    monkeypatch.setattr("shoal.randomness._entropy", lambda length: bytes(range(length)))
    asked = plan(
        sh.AddNoise(epsilon=2.0, columns=["wage"]),
        sh.Pram(keep=0.6, columns=["Wohn ort"]),
        sh.Sample(fraction=0.5),
    )
    found = []
    for name, part in (("one", 512), ("other", 512), ("another", 256)):
        for module in (_duckdb, _functions, _values):
            monkeypatch.setattr(module, "PART", part)
        (tmp_path / name).mkdir()
        source = written(frame, tmp_path / name, files=1)
        release = sh.protect(source, asked, engine="duckdb")
        found.append(rows_of(pl.DataFrame(release.masked.frame.to_arrow_table())))
        assert len(release.masked) == 1500
    assert found[0] == found[1] != found[2]
    assert {row[1] for row in found[0]} <= {*map(str, frame["Wohn ort"].unique())}


def test_chunks(frame: pl.DataFrame, source: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 400)
    numbers = plan(
        sh.Microaggregate(5, columns=["alter", "wage"]),
        roles=sh.Roles(quasi_identifiers=["alter", "wage"], insensitive=["ill", "born", "member"]),
        require=[sh.KAnonymity(5)],
    )
    kept = written(frame.drop("Wohn ort").drop_nulls(), _new(tmp_path))
    release = sh.protect(kept, numbers, engine="duckdb")
    assert release.steps[0].facts["chunks"] > 3
    released = release.masked.frame.pl()
    assert released.group_by("alter", "wage").len()["len"].min() >= 5
    assert released["alter"].mean() == pytest.approx(frame["alter"].mean(), rel=0.05)


def _new(folder: Path) -> Path:
    place = folder / "kept"
    place.mkdir()
    return place


def test_swapping_in_chunks(frame: pl.DataFrame, source: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 400)
    asked = plan(sh.Swap(5), require=[sh.ProbabilisticKAnonymity(5)])
    release = sh.protect(source, asked, engine="duckdb")
    assert release.claims[0].measured >= 5
    folder = release.save(tmp_path / "release")
    assert sh.verify(folder).holds
    released = pl.read_parquet(folder / "public" / "data" / "*.parquet")
    for name in frame.columns:
        assert rows_of(released.select(name)) == rows_of(frame.select(name))
    records = pl.read_parquet(folder / "private" / "records" / "*.parquet")
    groups = records.group_by("0_chunk", "0_group_0")
    assert groups.len()["len"].min() >= 5
    carried = groups.agg((pl.col("0_source_0").sort() == pl.col("row_key").sort()).all())
    assert carried["0_source_0"].all()


def test_nothing_is_written_where_a_requirement_fails(source: Path, tmp_path: Path) -> None:
    asked = plan(sh.Round(base=2, columns=["alter"]), require=[sh.KAnonymity(50)])
    with pytest.raises(RequirementNotMet, match="k-anonymity"):
        sh.protect(source, asked, engine="duckdb")
    assert [path.name for path in tmp_path.iterdir()] == ["people"]


def test_doors(frame: pl.DataFrame, source: Path) -> None:
    asked = PLANS["mondrian"]
    relation = duckdb.from_arrow(frame.to_arrow())
    given = (relation, frame.lazy(), source, str(source))
    frames = [sh.protect(one, asked).masked.frame for one in given]
    assert isinstance(frames[1], pl.LazyFrame)
    found = [f.collect() if isinstance(f, pl.LazyFrame) else f.pl() for f in frames]
    assert all(rows_of(one) == rows_of(found[0]) for one in found)
    assert chosen_engine(source, "auto", EngineSettings())[0] == "duckdb"
    assert chosen_engine(source / "0.parquet", "auto", EngineSettings())[0] == "memory"
    assert chosen_engine(source / "0.parquet", "local", EngineSettings())[0] == "memory"
    with pytest.raises(InputError, match="engine"):
        chosen_engine(source, "ray", EngineSettings())


def test_reserved_and_doubled_names(tmp_path: Path) -> None:
    for number, name in enumerate((HIDDEN + "row", "ALTER")):
        place = tmp_path / str(number)
        place.mkdir()
        source = written(people(50).with_columns(pl.lit(1).alias(name)), place)
        with pytest.raises(InputError, match="name"):
            sh.protect(source, PLANS["mondrian"], engine="duckdb")


def test_edits_are_found(source: Path, tmp_path: Path) -> None:
    folder = sh.protect(source, PLANS["mondrian"], engine="duckdb").save(tmp_path / "release")
    part = next((folder / "public" / "data").iterdir())
    kept = tmp_path / "kept"
    for edit in ("cell", "rows", "other", "claim", "private", "link"):
        shutil.copytree(folder, kept)
        if edit == "cell":
            frame = pl.read_parquet(part).with_columns(pl.lit("18").alias("alter"))
            frame.write_parquet(part)
        elif edit == "rows":
            part.unlink()
        elif edit == "other":
            (folder / "public" / "data" / "part-00007.parquet").write_bytes(part.read_bytes())
        elif edit == "claim":
            file = folder / "public" / "release.json"
            file.write_text(file.read_text("utf-8").replace('"measured": 10', '"measured": 11'))
        elif edit == "link":
            (folder / "public" / "report.html").unlink()
            (folder / "public" / "report.html").symlink_to("/etc/passwd")
        else:
            record = next((folder / "private" / "records").iterdir())
            pl.read_parquet(record).reverse().write_parquet(record)
        assert not sh.verify(folder).holds, edit
        with pytest.raises(VerificationFailed):
            sh.verify(folder).raise_if_failed()
        shutil.rmtree(folder)
        kept.rename(folder)
    assert sh.verify(folder / "public").holds  # the public half alone


def test_no_order_and_no_names(frame: pl.DataFrame, source: Path, tmp_path: Path) -> None:
    """Rows are not in the order of the source, and files are named by numbers."""
    asked = plan(sh.Suppress(where="wage < 0", target="records"), roles=ROLES)
    folder = sh.protect(source, asked, engine="duckdb").save(tmp_path / "release")
    records = pl.read_parquet(folder / "private" / "records" / "*.parquet")
    ranks = records["row_key"].rank().to_numpy()
    assert abs(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]) < 0.1
    names = sorted(path.name for path in (folder / "public" / "data").iterdir())
    assert names == [f"part-{number:05d}.parquet" for number in range(len(names))]
    part = folder / "public" / "data" / names[0]
    group = pq.read_metadata(part).row_group(0)
    for column in map(group.column, range(group.num_columns)):
        told, shown = column.statistics, pq.read_table(part)[column.path_in_schema].to_pylist()
        assert told.distinct_count is None
        assert {told.min, told.max} <= {*shown}  # what the values show, and nothing else


def test_spilled_under_a_cap_and_nothing_left(tmp_path: Path, monkeypatch) -> None:
    """A table three times as large as DuckDB's memory is spilled to files that nobody can read."""
    draw = np.random.default_rng(5)
    rows, marker = 420_000, "a name that nobody may read "
    notes = pl.Series([f"{marker * 40}{number}" for number in range(500)])
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 90, rows),
            "town": draw.integers(0, 50, rows).astype(str),
            "note": notes.gather(draw.integers(0, 500, rows)),
        }
    )
    source = written(frame, tmp_path)
    spill, seen = tmp_path / "spill", []
    asked = sh.Plan(
        [sh.Generalize("mondrian", k=10)],
        require=[sh.KAnonymity(10)],
        roles=sh.Roles(quasi_identifiers=["age", "town"], insensitive=["note"]),
        engine=EngineSettings(memory_limit="500MB", temporary=str(spill)),
    )

    def looked(self: DuckDb, *given: Any) -> None:
        files = [file for file in spill.rglob("spill/*") if file.is_file()]
        seen.append(sum(file.stat().st_size for file in files))
        assert not any(marker.encode() in file.read_bytes() for file in files)
        write(self, *given)

    write = DuckDb.write
    monkeypatch.setattr(DuckDb, "write", looked)
    release = sh.protect(pl.scan_parquet(source), asked)
    assert seen[0] > 50_000_000
    folder = release.save(tmp_path / "release")
    assert len(list((folder / "public" / "data").iterdir())) > 1  # no part is larger than memory
    assert sh.verify(folder, settings=asked.engine).holds
    assert list(spill.iterdir()) == []


def test_combinations_that_do_not_fit(source: Path, tmp_path: Path, monkeypatch) -> None:
    """Mondrian runs in chunks, and the original is counted by the sizes of its classes."""
    from shoal.engines import _engine

    asked = PLANS["mondrian"]
    whole = sh.protect(source, asked, engine="duckdb")
    monkeypatch.setattr(_engine, "MOST_COMBINATIONS", 300)
    monkeypatch.setattr(_chunked, "CHUNK", 700)
    cut = sh.protect(source, asked, engine="duckdb")
    assert cut.steps[0].facts["chunks"] > 1
    assert cut.claims[0].measured >= 10
    assert cut.before.classes == whole.before.classes
    for name in ("prosecutor_risk", "marketer_risk", "records_at_risk", "uniqueness"):
        assert cut.before[name].value == pytest.approx(whole.before[name].value)
    folder = cut.save(tmp_path / "release")
    assert sh.verify(folder).holds
    released = pl.read_parquet(folder / "public" / "data" / "*.parquet")
    assert released.group_by(QUASI).len()["len"].min() >= 10
    with pytest.raises(InputError, match="combinations"):
        sh.protect(source, PLANS["full-domain"], engine="duckdb")


def test_what_chunks_cost_is_in_the_report(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_chunked, "CHUNK", 400)
    monkeypatch.setattr(_chunked, "_LEAST", 1000)
    draw = np.random.default_rng(2)
    frame = pl.DataFrame({"x": draw.normal(size=3000), "y": draw.normal(size=3000)})
    roles = sh.Roles(quasi_identifiers=["x", "y"])
    asked = sh.Plan([sh.Microaggregate(5)], require=[sh.KAnonymity(5)], roles=roles)
    release = sh.protect(written(frame, tmp_path), asked, engine="duckdb")
    assert 0 < release.steps[0].facts["extra_loss"] < 0.2
    folder = release.save(tmp_path / "release")
    page = (folder / "public" / "report.html").read_text("utf-8")
    assert "chunks of similar records" in page


def test_what_chunks_cost_is_told_neither_too_high_nor_too_low(monkeypatch) -> None:
    """Values on samples of sorted rows, compared with the values on all rows."""
    monkeypatch.setattr(_chunked, "_LEAST", 200)
    draw = np.random.default_rng(2)
    rows = np.sort(draw.normal(size=(24_000, 3)), axis=0)[:, :1] + draw.normal(size=(24_000, 3))
    frame = pl.DataFrame({name: rows[:, place] for place, name in enumerate("xyz")})
    frame = frame.select(pl.all() / pl.all().std())
    tree = _chunked.cuts_of(frame, frame.columns, len(frame), chunk=3000)
    truth = _chunked._lost_in(frame, 8, 5)
    samples = [frame.gather_every(8, offset) for offset in range(4)]
    told = [
        _chunked._lost_at_cuts(sh.Microaggregate(5), some, some.columns, tree, len(frame))
        for some in samples
    ]
    found = float(np.mean([one["extra_loss"] for one in told]))
    assert found == pytest.approx(truth, rel=0.4)
    assert abs(found - truth) < abs(np.mean([_chunked._lost_in(s, 8, 5) for s in samples]) - truth)


def test_chunks_are_cut_by_the_column_that_counts() -> None:
    draw = np.random.default_rng(2).normal(size=(8000, 2))
    frame = pl.DataFrame({"x": draw[:, 0], "y": draw[:, 1]})
    for weights, cut in ((None, {0, 1}), ({"x": 100}, {0}), ({"x": 0.01}, {1})):
        tree = _chunked.cuts_of(frame, frame.columns, 8000, chunk=1000, weights=weights)
        assert {one.column for one in tree.cuts} == cut


def test_a_limit_that_is_too_small_or_no_size(source: Path) -> None:
    for limit in ("1MB", "a lot", "-2GB"):
        asked = plan(sh.Round(base=5), engine=EngineSettings(memory_limit=limit))
        with pytest.raises(InputError, match="memory limit"):
            sh.protect(source, asked, engine="duckdb")
