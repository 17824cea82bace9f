"""The workers of a study: processes on this machine, or the workers of a cluster.

joblib has backends for Dask and Spark too. Its Dask backend waits forever when a task has killed
its workers, and distributes the models inside a measure over the cluster again. Its Spark backend
returns nothing until all results are there, so a stopped study would keep nothing. A study only
needs to submit one task at a time, which both clusters can do.
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
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from multiprocessing import resource_tracker
from typing import Any

from shoal import __version__
from shoal.errors import InputError, MissingExtra
from shoal.study.running._store import Result, Store

Begin = Callable[..., Any]

_PATIENCE = 300.0  # seconds that a study waits for the next worker of a cluster


class Dask:
    """The cluster of a client of Dask."""

    name = "Dask"

    def __init__(self, client: Any, executor: Any) -> None:
        self._client, self._executor = client, executor
        self._seen = time.monotonic()

    def room(self) -> int:
        """One task per thread: a waiting task would also be blamed if its worker dies."""
        threads = sum(self._client.nthreads().values())
        if threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > _PATIENCE:
            address = self._client.scheduler.address
            raise InputError(
                f"The Dask cluster at '{address}' has no workers; start one for each core with: "
                f"dask worker {address} --nthreads 1"
            )
        return max(threads, 1)  # a cluster that scales with its work starts with none

    def submit(self, begin: Begin, *given: Any) -> Future[Any]:
        """Dask replaces a worker that dies, three times."""
        return self._executor.submit(begin, *given)

    def died(self, error: BaseException) -> bool:
        """Whether the task killed so many workers that Dask gave up on it."""
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)


@contextmanager
def dask() -> Iterator[Cluster]:
    """The current client, or a new one for the configured scheduler."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra("The backend 'dask'", "dask") from None
    try:
        client, is_ours = distributed.Client.current(), False
    except ValueError:
        client, is_ours = _connected(distributed), True
    with closing(client) if is_ours else nullcontext():
        executor = client.get_executor(pure=False)
        try:
            yield Dask(client, executor)
        finally:
            executor.shutdown(wait=False)  # do not start tasks that are no longer needed


def _connected(distributed: Any) -> Any:
    from dask import config

    address = config.get("scheduler-address", None)
    if address is None:
        raise InputError(
            "There is no Dask cluster to run on. Name its scheduler in the environment variable "
            "DASK_SCHEDULER_ADDRESS, or create a distributed.Client first. To use the cores of "
            "this machine, leave the backend out."
        )
    try:
        return distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as cause:  # a time out is an OSError
        raise InputError(
            f"The Dask scheduler at '{address}' does not answer ({type(cause).__name__}). Start it "
            "with 'dask scheduler', or correct the environment variable DASK_SCHEDULER_ADDRESS."
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
        """How many tasks the executors ran at once when the study started."""
        return self._room

    def submit(self, begin: Begin, *given: Any) -> Future[Any]:
        """Spark repeats a task that was lost with its executor."""
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
        """Whether Spark gave up on this job; its message differs without executors or a driver."""
        return "Job aborted due to stage failure" in str(error)

    def close(self) -> None:
        """Stop running tasks and wait until they end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.interruptTag(self._tag)
        self._threads.shutdown()


@contextmanager
def spark(jobs: int | None) -> Iterator[Cluster]:
    """The active session, or a new one by Spark's own settings."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("The backend 'spark'", "spark") from None
    with ExitStack() as stack:
        session = SparkSession.getActiveSession()
        if session is None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = SparkSession.builder.appName("shoal study")
            # the study shows its own progress bar, which counts tasks
            session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
            stack.callback(session.stop)
        yield stack.enter_context(closing(Spark(session, jobs)))


#: Workers elsewhere, each doing one task at a time.
Cluster = Dask | Spark


BACKENDS = ("loky", "dask", "spark")

#: A cell, its measures with their keys, and the other arguments of a worker.
Piece = tuple[Any, ...]

_PINNED = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_LOOK = 5.0  # seconds after which a cluster is asked again how many workers it has
_LOST = (
    "The workers that tried this task died, one after the other. It may need more memory than they "
    "have; retry with fewer or larger workers."
)


def on_this_machine(
    call: Callable[..., Any], tasks: Iterator[Piece], jobs: int | None
) -> Generator[Any, None, None]:
    """The results of the calls, in the order in which they end."""
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
            with _workers_without_signals():
                begun = parallel(joblib.delayed(call)(*task) for task in tasks)
                stack.enter_context(closing(begun))
            yield from begun


@functools.cache  # joblib reuses workers only if they started with the same function
def _ending_with(parent: int, at_once: bool) -> Callable[[], None]:
    """A worker's first function: it makes the worker end together with its parent process.

    Linux ends the worker at once, even inside a kernel. On other systems, the worker checks every
    second whether its parent still runs. Linux would also end it with the thread that started it,
    so a thread that may end before its process does not use this. The function is sent by value,
    because a function of a module would import Shoal before it can check.
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
def _workers_without_signals() -> Iterator[None]:
    """Workers that start here ignore ctrl-C and a hang-up, which a terminal sends to all processes.

    They inherit the signals that their parent blocks while it starts them. The parent receives such
    a signal once they have started, and then ends them itself.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it later would unblock the signals
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
    """The results of the calls, in the order in which they end.

    If the workers of a call died, ``lost`` makes its result from the call and the reason.
    """
    task = next(tasks, None)
    if task is None:  # do not start a cluster without tasks
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
                        f"The {cluster.name} cluster went away. The results so far are stored; run "
                        "the same command to resume."
                    )
                error = each.exception()
                if error is not None and cluster.died(error):
                    yield lost(task_of_it, _LOST)
                    continue
                refusal, result = each.result()
                if refusal is not None:
                    raise InputError(refusal)
                yield result


def _beginning(version: str) -> Begin:
    """A worker's first function, sent by value: a function of a module would import the module.

    polars sets its number of threads when it is imported. The worker may lack Shoal, or have
    another version whose results differ.
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
                f"The worker on '{platform.node()}' does not have Shoal {version}, which runs this "
                f"study ({there}); install the same version in the Python of every worker.",
                None,
            )
        return None, call(*task)

    return begin


DIED = (
    "The process that computed this task died, even when it ran alone; the task may need more "
    "memory than is available."
)


def retry_broken_pool(
    start: Callable[[Iterator[Piece]], Iterator[list[Result]]],
    pieces: Iterator[Piece],
    store: Store,
) -> Generator[list[Result], None, None]:
    """The results of ``start``, even if a process dies.

    A dying process ends its whole pool, and the cause is unknown. The pieces in progress are
    therefore tried again, one at a time. A task that kills its process again is recorded as failed,
    and all others continue.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    def recorded(begun: dict[str, Piece]) -> Iterator[Piece]:
        for piece in pieces:
            begun.update(dict.fromkeys((key for _, key in piece[1]), piece))
            yield piece

    while True:
        begun: dict[str, Piece] = {}
        try:
            for results in start(recorded(begun)):
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
