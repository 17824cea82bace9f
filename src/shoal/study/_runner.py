"""Running a study: only what has no result yet, on all cores, and never for nothing.

The unit that a worker gets is a cell, one masked table with all its measures, since masking is
paid once. The unit that is kept is a task, one measure of it: it is on disk before the next begins.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal import __version__
from shoal.errors import InputError, ShoalError
from shoal.measurement import Measurement
from shoal.study._design import Cell, MeasureSpec, Study
from shoal.study._measures import study_measures
from shoal.study._options import divided, meant
from shoal.study._store import Result, Store, key_of
from shoal.study._tables import TableSource
from shoal.table import Table
from shoal.workflow import Plan, StepRecord

Progress = Callable[[str, float], None]

_BACKENDS = ("loky", "dask", "spark")
_PINNED = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Run:
    """How a run of a study ended."""

    tasks: int
    done: int
    failed: int
    computed: int
    stopped: bool = False

    @property
    def complete(self) -> bool:
        """Whether every task has a result, if only the reason why there is none."""
        return self.done + self.failed == self.tasks


def task_key(cell: Cell, measure: MeasureSpec, fingerprint: str) -> str:
    """The hash of all that a task's result depends on, the version of Shoal included."""
    return key_of(
        {
            "shoal": __version__,
            "data": fingerprint,
            "table": {k: v for k, v in cell.table.to_dict().items() if k not in ("name", "path")},
            "steps": [dict(step) for step in cell.variant.steps],
            "seed": cell.seed,
            "measure": measure.measure,
            "options": dict(measure.options),
        }
    )


def keys_of(study: Study) -> dict[tuple[str, str, int, str], str]:
    """The key of every task, by table, variant, seed and measure."""
    prints = {source.name: source.fingerprint(study.folder) for source in study.tables}
    return {
        (cell.table.name, cell.variant.name, cell.seed, measure.name): task_key(
            cell, measure, prints[cell.table.name]
        )
        for cell in study.cells()
        for measure in cell.measures
    }


def run(
    study: Study,
    folder: str | Path,
    *,
    jobs: int | None = None,
    backend: str = "loky",
    budget: float | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Compute what a study has no result of yet.

    Parameters
    ----------
    study : Study
    folder : path
        Where results are kept; a study that was stopped goes on there.
    jobs : int, optional
        How many workers, each with one thread; all cores without it.
    backend : {"loky", "dask", "spark"}
        Where workers run: on this machine, or on the cluster that joblib was told of.
    budget : float, optional
        Seconds after which nothing new is begun.
    retry : bool
        Compute tasks anew that failed before.
    progress : callable, optional
        Called with what was done and the share that is done.

    Returns
    -------
    Run
        How many tasks have results, and whether the time ran out.
    """
    if backend not in _BACKENDS:
        raise InputError(f"The backend of a study is one of {', '.join(_BACKENDS)}.")
    store, keys = Store(folder), keys_of(study)
    known = store.known(keys.values(), failed=not retry)
    work = list(_open_cells(study, keys, known))
    total = sum(len(todo) for _, todo in work)
    deadline = None if budget is None else time.monotonic() + budget
    begun: list[int] = []
    done = 0

    def calls() -> Iterator[Any]:
        for cell, todo in work:
            if deadline is not None and time.monotonic() >= deadline:
                return
            begun.append(len(todo))
            target = store.folder if backend == "loky" else None
            yield joblib.delayed(measure_cell)(cell, todo, study.folder, target)

    import joblib

    with store.kept_open(), _one_thread_each(), _config(joblib, backend, jobs):
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")
        for results in parallel(calls()):
            if backend != "loky":
                store.write(*results)
            done += len(results)
            if progress:
                progress(f"{done:,} of {total:,} tasks", done / max(total, 1))
    found = store.read(keys.values()).values()
    failed = sum(result.status == "failed" for result in found)
    return Run(len(set(keys.values())), len(found) - failed, failed, done, sum(begun) < total)


def _open_cells(
    study: Study, keys: dict[tuple[str, str, int, str], str], known: set[str]
) -> Iterator[tuple[Cell, list[tuple[MeasureSpec, str]]]]:
    """The cells that lack results, each with the measures it lacks and their keys."""
    given: set[str] = set()
    for cell in study.cells():
        todo = []
        for measure in cell.measures:
            key = keys[cell.table.name, cell.variant.name, cell.seed, measure.name]
            if key not in known and key not in given:
                given.add(key)
                todo.append((measure, key))
        if todo:
            yield cell, todo


@dataclass(frozen=True)
class _Masked:
    """A table that was masked, with what measures may ask for besides."""

    source: TableSource
    folder: Path | None
    original: Table
    table: Table
    plan: Plan
    steps: Sequence[StepRecord]

    @classmethod
    def of(cls, cell: Cell, folder: Path | None) -> _Masked:
        original, _ = divided(cell.table, folder)
        plan = cell.variant.plan(cell.seed, folder)
        table, steps = plan.apply(original)
        return cls(cell.table, folder, original, table, plan, steps)

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a measure: words stand for what only the runner has.

        ``population = true`` is everybody in the table, sampled or not, as coarse as the release;
        for the others see :func:`meant`.
        """
        options = meant(given, self.source, self.folder)
        if options.get("population") is True:
            if not len(self.table):
                raise InputError("No record was left, so that there is nothing to measure.")
            options["population"] = self.plan.served(self.original)
        return options

    @property
    def facts(self) -> dict[str, Any]:
        """What the steps told of themselves, the levels of a generalization for example."""
        return {"steps": [{"method": step.method, **step.facts} for step in self.steps]}


def measure_cell(
    cell: Cell,
    todo: Sequence[tuple[MeasureSpec, str]],
    folder: Path | None,
    target: Path | None,
) -> list[Result]:
    """Mask a table and take its measures; each result is written to ``target`` at once."""
    store = None if target is None else Store(target)
    began = time.perf_counter()
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a release must be warned of, a study measures
        try:
            masked = _Masked.of(cell, folder)
            reason = None
        except Exception as error:  # recorded; the other tasks go on
            reason = _reason(error)
        masking = time.perf_counter() - began
        for measure, key in todo:
            if reason is not None:
                result = Result(key, "failed", reason=f"masking: {reason}", seconds=masking)
            else:
                result = _measured(measure, key, masked, masking)
            if store is not None:
                store.write(result)
            results.append(result)
    return results


def _measured(measure: MeasureSpec, key: str, masked: _Masked, masking: float) -> Result:
    began = time.perf_counter()
    try:
        options = masked.options(measure.options)
        found = study_measures()[measure.measure](masked.original, masked.table, **options)
    except Exception as error:  # recorded; the other tasks go on
        return Result(key, "failed", reason=_reason(error), seconds=time.perf_counter() - began)
    seconds = time.perf_counter() - began
    facts = {**_facts(found), **masked.facts, "masking": masking}
    return Result(key, "done", found.value, facts, seconds=seconds)


def _facts(found: Measurement) -> dict[str, Any]:
    facts = found.to_dict()
    return {part: facts[part] for part in ("interval", "baseline", "direction", "details")}


def _reason(error: Exception) -> str:
    """Shoal's own sentences tell no cell; what others say might."""
    return str(error) if isinstance(error, ShoalError) else type(error).__name__


def _config(joblib: Any, backend: str, jobs: int | None) -> Any:
    count = -1 if jobs is None else jobs
    if backend == "loky":
        return joblib.parallel_config("loky", n_jobs=count, inner_max_num_threads=1)
    return joblib.parallel_config(backend, n_jobs=count)


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
