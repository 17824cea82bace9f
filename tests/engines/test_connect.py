"""A client of Spark Connect, without a context or Java, protects and verifies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from .parts.tables import people, rows_of

CLIENT = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import shoal as sh

spark = SparkSession.builder.remote(sys.argv[3]).getOrCreate()
assert "connect" in type(spark).__module__
frame = spark.read.parquet(sys.argv[1])
roles = sh.Roles(quasi_identifiers=["alter", "member"], insensitive=["wage", "ill"])
steps = [sh.Generalize("mondrian", k=5), sh.AddNoise(epsilon=2.0, columns=["wage"])]
plan = sh.Plan(steps, require=[sh.KAnonymity(5)], roles=roles)
release = sh.protect(frame, plan)
assert type(release.masked.frame) is type(frame)
release.save(sys.argv[2])
assert sh.verify(sys.argv[2], engine="spark").holds
spark.stop()
"""


def test_a_session_of_connect(session: Any, tmp_path: Path) -> None:
    for needed in ("grpc", "grpc_status", "pandas"):
        pytest.importorskip(needed, reason=f"Spark Connect needs {needed}, which is not installed")
    port = session.conf.get("spark.connect.grpc.binding.port")
    frame = people(300).select("alter", "member", "wage", "ill")  # each costs some jobs
    frame.write_parquet(tmp_path / "people.parquet")
    given = [str(tmp_path / name) for name in ("people.parquet", "release")]
    ended = subprocess.run(
        [sys.executable, "-c", CLIENT, *given, f"sc://127.0.0.1:{port}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    released = pl.read_parquet(tmp_path / "release" / "public" / "data" / "*.parquet")
    assert rows_of(released.select("ill")) == rows_of(frame.select("ill"))
    assert released.group_by("alter", "member").len()["len"].min() >= 5  # type: ignore[operator]
    assert (released["wage"].sort() != frame["wage"].sort()).any()
