"""A full disk and a machine without memory: one sentence, and no half release."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import shoal as sh
from shoal.app.cli.output._progress import time_left
from shoal.errors import ShoalError
from shoal.workflow import EngineSettings

from .parts.tables import people

ROLES = sh.Roles(
    quasi_identifiers=["alter", "member"], insensitive=["born", "wage", "ill", "Wohn ort", "note"]
)
PLAN = sh.Plan([sh.Generalize("mondrian", k=3)], roles=ROLES)
RUN = """
import resource, sys, warnings
import shoal as sh
from shoal.engines._duckdb import DuckDb
warnings.simplefilter("ignore")
plan = sh.Plan.load(sys.argv[2])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
import duckdb, pyarrow, numba, sklearn
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[4]),) * 2)
try:
    sh.protect(sys.argv[1], plan, engine="duckdb").save(sys.argv[3])
except sh.errors.ShoalError as error:
    print(type(error).__name__, error)
"""

pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def wide(rows: int) -> pl.DataFrame:
    """People with a column that cannot be packed."""
    notes = [os.urandom(150).hex() for _ in range(rows)]
    return people(rows).with_columns(note=pl.Series(notes))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 6 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True
    )
    if done.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    source = tmp_path / "wide.parquet"
    wide(40_000).write_parquet(source)
    plan = sh.Plan(
        PLAN.steps, roles=ROLES, engine=EngineSettings(temporary=str(small_disk / "work"))
    )
    with pytest.raises(ShoalError, match=r"full|No space"):
        sh.protect(source, plan, engine="duckdb")
    assert list((small_disk / "work").iterdir()) == []
    release = sh.protect(source, PLAN, engine="duckdb")
    with pytest.raises(ShoalError, match=r"full|No space"):
        release.save(small_disk / "release")
    release.close()
    assert not (small_disk / "release").exists()
    assert not [p for p in small_disk.iterdir() if p.name.startswith(".shoal")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_a_driver_without_memory(tmp_path: Path) -> None:
    source, out = tmp_path / "wide.parquet", tmp_path / "release"
    wide(60_000).write_parquet(source)
    PLAN.save(tmp_path / "plan.toml")
    call = [sys.executable, "-c", RUN, str(source), str(tmp_path / "plan.toml"), str(out)]
    done = subprocess.run([*call, "100000000"], capture_output=True, text=True, cwd=tmp_path)
    assert not out.exists()
    assert "Nothing was written" in done.stdout or done.returncode != 0
    assert "Traceback" not in done.stdout
    assert resource.getrlimit(resource.RLIMIT_AS)[0] < 0  # only the other process was limited


def test_how_much_time_is_left() -> None:
    assert time_left(0.01, 10) == "1 %"
    assert time_left(0.5, 60) == "50 %, about 60 s left"
    assert time_left(0.1, 300) == "10 %, about 45 min left"
    assert time_left(0.05, 3600) == "5 %, about 19.0 h left"


def test_what_executors_have_written_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from shoal.engines._spark import Spark

    told, heard = [], threading.Event()

    def hear(share: float) -> None:
        told.append(share)
        heard.set()

    engine = Spark(EngineSettings(), tmp_path)
    engine.progress = hear
    (tmp_path / "part-00000.parquet").touch()
    with engine._watched(tmp_path, 4):
        assert heard.wait(60)
    assert told[0] == 0.25


def test_stages_are_told_with_growing_shares(tmp_path: Path) -> None:
    source = tmp_path / "people.parquet"
    wide(3000).write_parquet(source)
    told: list[tuple[str, float]] = []
    sh.protect(source, PLAN, engine="duckdb", progress=lambda *what: told.append(what))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    labels = [label.partition(":")[0] for label, _ in told]
    assert list(dict.fromkeys(labels)) == [
        "Looking at the source",
        "Masking",
        "Writing the parts",
        "Verifying what the plan requires",
        "Measuring",
    ]
