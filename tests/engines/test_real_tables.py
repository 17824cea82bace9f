"""Real tables on every engine: the results of memory, counted again by independent SQL.

By hand: ``SHOAL_WHOLE=1`` takes all 46 states of the census and not the smallest ones.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import shoal as sh
from shoal.engines import _engine
from shoal.engines.steps import _chunked
from shoal.errors import InputError, RequirementNotMet

from .parts.kinds import EngineKind

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")

WHOLE = bool(os.environ.get("SHOAL_WHOLE"))
QUASI = ["AGEP", "SCHL", "MAR", "SEX", "RAC1P"]


@pytest.fixture(scope="module")
def census(shared_data: Path) -> pl.DataFrame:
    """The American census of 2018: some small states, or all of them."""
    frame = pl.read_parquet(shared_data / "acs" / "acs_income_2018.parquet")
    return frame if WHOLE else frame.filter(pl.col("ST").is_in(["AK", "VT", "WY"]))


def _levels(shared_data: Path) -> dict[str, sh.Hierarchy]:
    folder = shared_data / "hierarchies" / "acs_income_2018"
    return {name: sh.Hierarchy.from_csv(folder / f"{name}.csv") for name in QUASI}


def _plans(shared_data: Path) -> dict[str, sh.Plan]:
    others = ["ST", "COW", "POBP", "RELP", "WKHP", "PINCP"]
    roles = sh.Roles(quasi_identifiers=QUASI, sensitive=["OCCP"], insensitive=others)
    levels = sh.Generalize(
        "full-domain",
        k=5,
        models=sh.LDiversity(3),
        hierarchies=_levels(shared_data),
        suppression_limit=0.05,
    )
    return {
        "levels": sh.Plan(
            [levels, sh.Round(base=10, columns=["WKHP"])],
            require=[sh.KAnonymity(5), sh.LDiversity(3)],
            roles=roles,
        ),
        "cuts": sh.Plan(
            [sh.Generalize("mondrian", k=10)], require=[sh.KAnonymity(10)], roles=roles
        ),
    }


def _counted(files: Any, quasi: list[str], secret: str) -> tuple[int, int, int, int]:
    """The smallest class, the fewest different values in one, classes and rows, by plain SQL."""
    listed = ", ".join(f"'{file}'" for file in files)
    names = ", ".join(f'"{name}"' for name in quasi)
    found = duckdb.sql(
        "SELECT min(n), min(l), count(*), sum(n) FROM (SELECT count(*) AS n, "
        f'count(DISTINCT "{secret}") AS l FROM read_parquet([{listed}]) GROUP BY {names})'
    ).fetchall()[0]
    return tuple(map(int, found))  # type: ignore[return-value]


@pytest.mark.parametrize("name", ["levels", "cuts"])
def test_a_census(
    name: str, session: Any, census: pl.DataFrame, shared_data: Path, tmp_path: Path
) -> None:
    """Memory, DuckDB and Spark, side by side."""
    plan = _plans(shared_data)[name]
    memory, duck, spark = (
        EngineKind(kind, _new(tmp_path / kind), session) for kind in ("memory", "duckdb", "spark")
    )
    source = duck.written(census, files=4)
    here = memory.protect(census, plan)
    for engine in (duck, spark):
        there = engine.protect(source, plan)
        assert there.steps[0].parameters == here.steps[0].parameters
        assert there.steps[0].facts == here.steps[0].facts
        assert there.steps[0].removed == here.steps[0].removed
        assert there.after.classes == here.after.classes
        released = engine.released(there)
        assert _sorted(released).equals(_sorted(here.masked.frame.select(released.columns)))
        folder = there.save(engine.folder / "release")
        parts = (folder / "public" / "data").iterdir()
        k, diversity, classes, rows = _counted(parts, QUASI, "OCCP")
        assert k >= (5 if name == "levels" else 10)
        assert diversity >= 3 or name == "cuts"
        assert (classes, rows) == (here.after.classes.count, len(here.masked))
        assert sh.verify(folder, engine=engine.name).holds  # type: ignore[arg-type]


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows as texts in their order: what rows there are, and how many of each."""
    return frame.select(pl.all().cast(pl.String)).sort(frame.columns)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("engine", ["duckdb", "spark"], indirect=True)
def test_k_is_large_against_the_fragment(
    engine: EngineKind, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the one published Mondrian on Spark released most rows in classes below k.

    Adult has many small files, its combinations do not fit, and chunks are small.
    """
    frame = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    frame = frame.head(20_000) if engine.name == "spark" else frame
    quasi = ["age", "education", "marital-status", "race"]
    others = [name for name in frame.columns if name not in quasi]
    roles = sh.Roles(quasi_identifiers=quasi, insensitive=others)
    source = engine.written(frame, files=40)  # of 754 rows, or 500
    monkeypatch.setattr(_engine, "MOST_COMBINATIONS", 2000)
    monkeypatch.setattr(_chunked, "CHUNK", 300)
    for k in (1000,) if engine.name == "spark" else (1000, 5000, 30_162):
        plan = sh.Plan([sh.Generalize("mondrian", k=k)], require=[sh.KAnonymity(k)], roles=roles)
        release = engine.protect(source, plan)
        smallest, _, classes, rows = _counted(release.masked.files, quasi, quasi[0])  # type: ignore[attr-defined]
        assert (smallest >= k, rows) == (True, frame.height)
        if k <= 1000:
            assert classes > 1
            assert release.steps[0].facts["chunks"] > 1
        release.close()
    k = frame.height + 1
    plan = sh.Plan([sh.Generalize("mondrian", k=k)], require=[sh.KAnonymity(k)], roles=roles)
    with pytest.raises((InputError, RequirementNotMet)):
        engine.protect(source, plan)
