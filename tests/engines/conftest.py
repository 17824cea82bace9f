"""A cluster of Spark, and a session on it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from .cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master of Spark and two workers, for all tests of this process."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def session(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two executors; it ends with the module, so others can have their own."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName("tests").master(cluster.url)
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.local.dir": str(tmp_path_factory.mktemp("driver")),
        "spark.log.level": "OFF",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
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
