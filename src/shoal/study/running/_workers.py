"""Who does the tasks of a study: processes of this machine, or the workers of a cluster.

joblib has backends for Dask and Spark too. Its Dask backend waits for ever when a task has killed
its workers, and spreads the models inside of a measure over the cluster once more; its Spark
backend returns no result before all are there, so that a study that is stopped would keep nothing.
Both clusters can be asked for one task at a time instead, which is all that a study needs.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from multiprocessing import resource_tracker
from typing import Any

from shoal import __version__
from shoal.errors import InputError, MissingExtra
from shoal.study.running._store import Result, Store

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
        from pyspark.sql.functions import spark_partition_id

        self._session = session
        if jobs is None:  # by default a table has a partition for each core of the executors
            table = session.range(10_000).select(spark_partition_id())
            jobs = max(table.distinct().count(), 1)
        self._room = jobs
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


BACKENDS = ("loky", "dask", "spark")

#: A cell, what is to be measured of it with the keys, and what a worker needs besides.
Piece = tuple[Any, ...]

_PINNED = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_LOOK = 5.0  # seconds after which a cluster is asked again how many workers it has
_LOST = (
    "The workers that tried this died, one after the other; it may need more memory than they "
    "have: retry it with fewer or larger ones."
)


def on_this_machine(
    call: Callable[..., Any], tasks: Iterator[Piece], jobs: int | None
) -> Generator[Any, None, None]:
    """What the calls return, in the order in which they end."""
    import joblib

    settings = {
        "n_jobs": -1 if jobs is None else jobs,
        "inner_max_num_threads": 1,
        "initializer": _ending_with(
            os.getpid(), threading.current_thread() is threading.main_thread()
        ),
    }
    with _one_thread_each(), joblib.parallel_config("loky", **settings):
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")
        with ExitStack() as stack:
            with _deaf_workers():
                begun = parallel(joblib.delayed(call)(*task) for task in tasks)
                stack.enter_context(closing(begun))
            yield from begun


@functools.cache  # workers are used again only if they began with the same function
def _ending_with(parent: int, at_once: bool) -> Callable[[], None]:
    """What a worker does first, so that it does not live longer than the process that started it.

    Linux ends it at once, even inside a kernel. Elsewhere it looks each second whether its parent
    is still there. Linux would also end it with the thread that started it, so that one which
    may end before the process does not ask for that. It is sent as it is, since a function of a
    module would import Shoal before it can look.
    """

    def begin() -> None:
        import os
        import sys
        import threading
        import time

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(1.0)
            os._exit(1)

        if os.name != "posix":
            return
        if at_once and sys.platform == "linux":
            import ctypes
            import signal

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        threading.Thread(target=watch, daemon=True).start()

    return begin


@contextmanager
def _deaf_workers() -> Iterator[None]:
    """Workers that start here do not hear ctrl-C or a hang-up, which a terminal sends to all.

    They inherit what their parent does not listen to while it starts them. It gets a signal of
    that moment when they have started, and then ends them itself.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # to start it later would let signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers inherit these, so that n of them use n cores and not n times all cores."""
    before = {name: os.environ.get(name) for name in _PINNED}
    os.environ.update(dict.fromkeys(_PINNED, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def on_a_cluster(
    call: Callable[..., Any],
    tasks: Iterator[Piece],
    *,
    backend: str,
    jobs: int | None,
    lost: Callable[[Piece, str], Any],
) -> Generator[Any, None, None]:
    """What the calls return, in the order in which they end.

    In place of a call whose workers died comes what ``lost`` makes of it and the reason.
    """
    task = next(tasks, None)
    if task is None:  # nothing to do is no reason to start a cluster
        return
    chosen: AbstractContextManager[Cluster] = dask() if backend == "dask" else spark(jobs)
    begin = _beginning(__version__)
    with chosen as cluster:
        begun: dict[Future[Any], Piece] = {}
        while task is not None or begun:
            room = cluster.room() if jobs is None else jobs
            while task is not None and len(begun) < room:
                begun[cluster.submit(begin, pickle.dumps((call, task)))] = task
                task = next(tasks, None)
            ended, _ = wait(begun, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for each in ended:
                task_of_it = begun.pop(each)
                if each.cancelled():
                    raise InputError(
                        f"The {cluster.name} cluster went away; what was done until then is kept, "
                        "and the same command goes on from there."
                    )
                error = each.exception()
                if error is not None and cluster.died(error):
                    yield lost(task_of_it, _LOST)
                    continue
                refusal, found = each.result()
                if refusal is not None:
                    raise InputError(refusal)
                yield found


def _beginning(version: str) -> Begin:
    """What a worker does first, sent as it is, since a function of a module would import it.

    polars counts its threads when it is imported, and the worker may have no Shoal to import, or
    another one, whose results are not those of this one.
    """

    def begin(work: bytes) -> tuple[str | None, Any]:
        import os
        import pickle
        import platform
        import sys

        if "polars" not in sys.modules:
            os.environ.setdefault("POLARS_MAX_THREADS", "1")
        try:
            import shoal

            there = f"it has {shoal.__version__}"
            differs = shoal.__version__ != version
            if not differs:
                call, task = pickle.loads(work)
        except ImportError as cause:
            there, differs = str(cause), True
        if differs:
            return (
                f"The worker on '{platform.node()}' has no Shoal {version}, which runs this study "
                f"({there}); install the same version for the Python of every worker.",
                None,
            )
        return None, call(*task)

    return begin


DIED = (
    "The process that computed it died, alone as well as among others; it may need more memory "
    "than there is."
)


def retry_broken_pool(
    start: Callable[[Iterator[Piece]], Iterator[list[Result]]],
    pieces: Iterator[Piece],
    store: Store,
) -> Generator[list[Result], None, None]:
    """What ``start`` makes of the pieces, though a process may die on the way.

    One that dies takes the others of its pool with it, and nobody says which task was the cause.
    So what was in flight is tried again alone, piece by piece; a task that kills its process then
    too is recorded as failed, and all others go on.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    def noted(begun: dict[str, Piece]) -> Iterator[Piece]:
        for piece in pieces:
            begun.update(dict.fromkeys((key for _, key in piece[1]), piece))
            yield piece

    while True:
        begun: dict[str, Piece] = {}
        try:
            for results in start(noted(begun)):
                for result in results:
                    begun.pop(result.key, None)
                yield results
            return
        except BrokenProcessPool:
            for piece in {id(piece): piece for piece in begun.values()}.values():
                yield from _alone(start, piece, store, BrokenProcessPool)


def _alone(
    start: Callable[[Iterator[Piece]], Iterator[list[Result]]],
    piece: Piece,
    store: Store,
    death: type[Exception],
) -> Iterator[list[Result]]:
    cell, todo, *more = piece
    died = False
    while True:
        written = store.read(key for _, key in todo)  # before its process died
        yield list(written.values())
        todo = [each for each in todo if each[1] not in written]
        if not todo:
            return
        if died:
            store.write(Result(todo[0][1], "failed", reason=DIED))
            died = False
            continue
        try:
            yield from start(iter([(cell, todo, *more)]))
            return
        except death:
            died = True
