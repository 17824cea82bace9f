"""Who does the tasks of a study: processes of this machine, or the workers of a cluster."""

from __future__ import annotations

import concurrent.futures
import os
import pickle
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from shoal import __version__
from shoal.errors import InputError
from shoal.study._clusters import Begin, Cluster, dask, spark

BACKENDS = ("loky", "dask", "spark")

_PINNED = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_LOOK = 5.0  # seconds after which a cluster is asked again how many workers it has
_DIED = (
    "The workers that tried this died, one after the other; it may need more memory than they "
    "have: retry it with fewer or larger ones."
)


def on_this_machine(
    call: Callable[..., Any], tasks: Iterator[tuple[Any, ...]], jobs: int | None
) -> Generator[Any, None, None]:
    """What the calls return, in the order in which they end."""
    import joblib

    count = -1 if jobs is None else jobs
    with _one_thread_each(), joblib.parallel_config("loky", n_jobs=count, inner_max_num_threads=1):
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")
        yield from parallel(joblib.delayed(call)(*task) for task in tasks)


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
        return lost(task, _DIED)
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
