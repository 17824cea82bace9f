"""A process that is killed leaves no half release, and the next one removes what it spilled."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import shoal as sh
from shoal.workflow.release._folder import WORKSHOP

from .parts.cluster import SHORT_LIVED
from .parts.tables import people, written

#: By hand: SHOAL_KILLS=20 pytest tests/engines/test_killed.py
KILLS = int(os.environ.get("SHOAL_KILLS", "1"))
SHOAL = [sys.executable, "-c", "from shoal.app.cli import main; main()"]
PLAN = """
[engine]
memory_limit = "500MB"
[roles]
quasi_identifiers = ["alter", "Wohn ort", "member"]
sensitive = ["ill"]
insensitive = ["born", "wage"]
[[steps]]
method = "generalize"
algorithm = "mondrian"
k = 5
[require]
k_anonymity = 5
"""


def _started(folder: Path, out: str, engine: str = "duckdb") -> subprocess.Popen[bytes]:
    # Spark keeps text once as Parquet, to number its rows
    source = "people.csv" if engine == "spark" else "people"
    words = ["protect", source, "--plan", "plan.toml", "--out", out, "--engine", engine]
    return subprocess.Popen(
        [*SHOAL, *words],
        cwd=folder,
        env=os.environ | {"SPARK_SUBMIT_OPTS": SHORT_LIVED},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def whole(place: Path) -> float:
    """The seconds that a run takes if it is not killed."""
    began = time.monotonic()
    assert _started(place, "first").wait() == 0
    return time.monotonic() - began


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    frame = pl.concat([people(50_000)] * 3)
    written(frame, folder)
    frame.write_csv(folder / "people.csv")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_killed_while_it_works(ending: signal.Signals, place: Path, whole: float) -> None:
    moments = random.Random(ending.name)
    for number in range(KILLS):
        process = _started(place, f"killed-{ending.name}-{number}")
        time.sleep(whole * moments.uniform(0.4, 1.0))
        process.send_signal(ending)
        process.wait()
        release = place / f"killed-{ending.name}-{number}"
        assert not release.exists() or sh.verify(release).holds
        if ending != signal.SIGKILL:  # it removes what it wrote itself
            assert not list(place.glob(f"{WORKSHOP}*"))
    if ending == signal.SIGKILL:
        assert _started(place, "last").wait() == 0
        assert sh.verify(place / "last").holds
        assert not list(place.glob(f"{WORKSHOP}*"))


def test_the_driver_of_spark_is_killed(place: Path) -> None:
    """Its Java process ends with it, and the next command in the folder removes what both left."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    moments = random.Random("spark")
    for number in range(KILLS):
        process = _started(place, f"spark-{number}", "spark")
        while not list(place.glob(f"{WORKSHOP}*/spill/*")) and process.poll() is None:
            time.sleep(0.05)
        delay = moments.uniform(0, 15)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=delay)
        process.kill()
        process.wait()
        release = place / f"spark-{number}"
        assert not release.exists() or sh.verify(release).holds
        for _ in range(600):
            if not _others_in(place):
                break
            time.sleep(0.1)
        assert not _others_in(place)
    assert _started(place, "after-spark").wait() == 0
    assert not list(place.glob(f"{WORKSHOP}*"))


def _others_in(place: Path) -> list[str]:
    """Processes that were started for a folder and are still running."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(place).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found
