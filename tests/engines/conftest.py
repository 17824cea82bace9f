"""A Spark cluster, a session on it, and each engine in turn."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from .parts.cluster import SHORT_LIVED, Cluster, free_port
from .parts.kinds import EngineKind


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark come first, so that the process that has the first ones has them all.

    Others steal from its end, and there is one cluster and not one in each process.
    """
    items.sort(key=lambda item: not _needs_spark(item))


def _needs_spark(item: pytest.Item) -> bool:
    given = getattr(getattr(item, "callspec", None), "params", {})
    named = getattr(item, "fixturenames", ())
    return "cluster" in named or "session" in named or given.get("engine") == "spark"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Spark master and two workers, for all tests of this process."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture(scope="package")
def session(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two executors, which clients of Spark Connect can reach.

    It ends with this folder, so that others can have their own.
    """
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName("tests").master(cluster.url)
    for name, value in {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(free_port()),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.executor.memory": "600m",
        "spark.local.dir": str(tmp_path_factory.mktemp("driver")),
        "spark.log.level": "OFF",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of pandas 3, which Spark names
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        before = signal.getsignal(signal.SIGINT)
        made = builder.getOrCreate()
        signal.signal(signal.SIGINT, before)  # Spark has put its own in place
        yield made
        made.stop()


@pytest.fixture(params=["memory", "duckdb", "spark"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EngineKind:
    """One engine after the other; one that is not installed is skipped."""
    name: str = request.param
    if name == "duckdb":
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    session = request.getfixturevalue("session") if name == "spark" else None
    return EngineKind(name, tmp_path_factory.mktemp(name), session)
