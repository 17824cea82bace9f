"""Clusters that a study may use: what is asked of one, and how Dask and Spark answer.

joblib has backends for both. Its Dask backend waits for ever when a task has killed its workers,
and spreads the models inside of a measure over the cluster once more; its Spark backend gives no
result before all are there, so that a study that is stopped would keep nothing. Both clusters can
be asked for one task at a time instead, which is all that a study needs.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from shoal.errors import InputError, MissingExtra

Begin = Callable[..., Any]

_PATIENCE = 300.0  # seconds that a study waits for the first worker of a cluster, or the next one


class Dask:
    """The cluster of a client of Dask."""

    name = "Dask"

    def __init__(self, client: Any, executor: Any) -> None:
        self._client, self._executor = client, executor
        self._seen = time.monotonic()

    def room(self) -> int:
        """One for each thread: a task that waits on a worker would be blamed for its death too."""
        threads = sum(self._client.nthreads().values())
        if threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > _PATIENCE:
            address = self._client.scheduler.address
            raise InputError(
                f"The Dask cluster at '{address}' has no workers; start one for each core with: "
                f"dask worker {address} --nthreads 1"
            )
        return max(threads, 1)  # a cluster that grows with its work has none before there is some

    def submit(self, begin: Begin, *given: Any) -> Future[Any]:
        """A worker that dies is replaced by another one, three times."""
        return self._executor.submit(begin, *given)

    def died(self, error: BaseException) -> bool:
        """Whether so many workers died of it that Dask gave it up."""
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)


@contextmanager
def dask() -> Iterator[Cluster]:
    """The client that is there already, or one for the scheduler that Dask was told of."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra("The backend 'dask'", "dask") from None
    try:
        client, is_ours = distributed.Client.current(), False
    except ValueError:
        client, is_ours = _connected(distributed), True
    executor = client.get_executor(pure=False)
    try:
        yield Dask(client, executor)
    finally:
        executor.shutdown(wait=False)  # what is not wanted any more is not begun
        if is_ours:
            client.close()


def _connected(distributed: Any) -> Any:
    from dask import config

    address = config.get("scheduler-address", None)
    if address is None:
        raise InputError(
            "There is no Dask cluster to run on: name its scheduler in the environment variable "
            "DASK_SCHEDULER_ADDRESS, or make a distributed.Client first; to use the cores of this "
            "machine, leave the backend out."
        )
    try:
        return distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as cause:  # a time out is an OSError
        raise InputError(
            f"The Dask scheduler at '{address}' does not answer ({type(cause).__name__}); start it "
            "with: dask scheduler; or correct the environment variable DASK_SCHEDULER_ADDRESS."
        ) from None


class Spark:
    """The cluster of a session of Spark; each task is a job of one partition."""

    name = "Spark"

    def __init__(self, session: Any, jobs: int | None) -> None:
        self._session = session
        self._room = _cores(session) if jobs is None else jobs
        self._threads = ThreadPoolExecutor(self._room, thread_name_prefix="shoal-spark")
        self._tag = f"shoal-study-{uuid.uuid4().hex}"

    def room(self) -> int:
        """What the executors took at once when the study began."""
        return self._room

    def submit(self, begin: Begin, *given: Any) -> Future[Any]:
        """A task that was lost with its executor is repeated by Spark, as it was told to."""
        return self._threads.submit(self._done, begin, given)

    def _done(self, begin: Begin, given: tuple[Any, ...]) -> Any:
        from pyspark.sql.functions import udf

        def once(_: int) -> bytes:
            import pickle

            return pickle.dumps(begin(*given))

        self._session.addTag(self._tag)  # of this thread; it is how the job can be stopped
        task = udf(once, "binary", useArrow=False).asNondeterministic()
        rows = self._session.range(1, numPartitions=1).select(task("id")).collect()
        return pickle.loads(bytes(rows[0][0]))

    def died(self, error: BaseException) -> bool:
        """Whether Spark gave up this job; without executors or a driver it says other things."""
        return "Job aborted due to stage failure" in str(error)

    def close(self) -> None:
        """Stop what still runs, and wait until it has."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.interruptTag(self._tag)
        self._threads.shutdown()


@contextmanager
def spark(jobs: int | None) -> Iterator[Cluster]:
    """The session that is active, or a new one as Spark's own settings say."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("The backend 'spark'", "spark") from None
    session = SparkSession.getActiveSession()
    is_ours = session is None
    if session is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        wanted = SparkSession.builder.appName("shoal study")
        # one bar for the study is enough, and its tasks are what it counts
        session = wanted.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        cluster = Spark(session, jobs)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        if is_ours:
            session.stop()


#: Workers elsewhere, each doing one task at a time.
Cluster = Dask | Spark


def _cores(session: Any) -> int:
    """The partitions that Spark gives a table by default: one for each core of its executors."""
    from pyspark.sql.functions import spark_partition_id

    return max(session.range(10_000).select(spark_partition_id()).distinct().count(), 1)
