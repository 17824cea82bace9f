"""Who does the tasks of a study: processes of this machine, or the workers of a cluster."""

from __future__ import annotations

import concurrent.futures
import functools
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from multiprocessing import resource_tracker
from typing import Any

from shoal import __version__
from shoal.errors import InputError
from shoal.study.running._clusters import Begin, Cluster, dask, spark
from shoal.study.running._store import Result, Store

BACKENDS = ("loky", "dask", "spark")

_PINNED = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_LOOK = 5.0  # seconds after which a cluster is asked again how many workers it has
_LOST = (
    "The workers that tried this died, one after the other; it may need more memory than they "
    "have: retry it with fewer or larger ones."
)


def on_this_machine(
    call: Callable[..., Any], tasks: Iterator[tuple[Any, ...]], jobs: int | None
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
    tasks: Iterator[tuple[Any, ...]],
    *,
    backend: str,
    jobs: int | None,
    lost: Callable[[tuple[Any, ...], str], Any],
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
        begun: dict[concurrent.futures.Future[Any], tuple[Any, ...]] = {}
        while task is not None or begun:
            room = cluster.room() if jobs is None else jobs
            while task is not None and len(begun) < room:
                begun[cluster.submit(begin, pickle.dumps((call, task)))] = task
                task = next(tasks, None)
            ended, _ = concurrent.futures.wait(
                begun, timeout=_LOOK, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for each in ended:
                yield _outcome(cluster, each, begun.pop(each), lost)


def _outcome(
    cluster: Cluster,
    ended: concurrent.futures.Future[Any],
    task: tuple[Any, ...],
    lost: Callable[[tuple[Any, ...], str], Any],
) -> Any:
    error = None if ended.cancelled() else ended.exception()
    if error is not None and cluster.died(error):
        return lost(task, _LOST)
    if ended.cancelled():
        raise InputError(
            f"The {cluster.name} cluster went away; what was done until then is kept, and the "
            "same command goes on from there."
        )
    refusal, found = ended.result()
    if refusal is not None:
        raise InputError(refusal)
    return found


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


#: A cell, what is to be measured of it with the keys, and what a worker needs besides.
Piece = tuple[Any, ...]

DIED = (
    "The process that computed it died, alone as well as among others; it may need more memory "
    "than there is."
)


def in_spite_of_deaths(
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

    while True:
        begun: dict[str, Piece] = {}
        try:
            for results in start(_noted(pieces, begun)):
                for result in results:
                    begun.pop(result.key, None)
                yield results
            return
        except BrokenProcessPool:
            for piece in {id(piece): piece for piece in begun.values()}.values():
                yield from _alone(start, piece, store, BrokenProcessPool)


def _noted(pieces: Iterator[Piece], begun: dict[str, Piece]) -> Iterator[Piece]:
    for piece in pieces:
        begun.update(dict.fromkeys((key for _, key in piece[1]), piece))
        yield piece


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
