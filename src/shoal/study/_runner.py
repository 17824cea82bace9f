"""Running a study: only what has no result yet, on all cores, and never for nothing.

The unit that a worker gets is a cell, one masked table with all its measures, since masking is
paid once. The unit that is kept is a task, one measure of it: it is on disk before the next begins.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import InputError, ShoalError
from shoal.measurement import Measurement
from shoal.study._design import Cell, MeasureSpec, Study
from shoal.study._keys import keys_of, task_key
from shoal.study._measures import study_measures
from shoal.study._options import divided, meant
from shoal.study._store import Result, Store
from shoal.study._survival import in_spite_of_deaths
from shoal.study._tables import TableSource
from shoal.table import Table
from shoal.workflow import Plan, StepRecord

Progress = Callable[[str, float], None]

_BACKENDS = ("loky", "dask", "spark")
_CHANGED = (
    "The table, a file that a step or option names, or a library changed while the study ran; "
    "run it again."
)
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
    keys = keys_of(study)  # before a folder is made: it tells what is wrong with the study
    store = Store(folder)
    if retry:
        store.forget_failed(keys.values())
    known = store.known(keys.values())
    work = list(_open_cells(study, keys, known))
    total = sum(len(todo) for _, todo in work)
    until = None if budget is None else time.time() + budget
    done, began = 0, time.monotonic()

    def pieces() -> Iterator[Any]:
        target = store.folder if backend == "loky" else None
        for cell, todo in work:
            if until is not None and time.time() >= until:
                return
            yield cell, todo, study.folder, target, until

    import joblib

    def start(given: Iterator[Any]) -> Iterator[list[Result]]:
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")
        yield from parallel(joblib.delayed(measure_cell)(*piece) for piece in given)

    with store.kept_open(), _one_thread_each(), _config(joblib, backend, jobs):
        for results in in_spite_of_deaths(start, pieces(), store):
            if backend != "loky":
                store.write(*results)
            done += len(results)
            if progress:
                progress(_told(done, total, time.monotonic() - began), done / max(total, 1))
    found = store.read(keys.values()).values()
    failed = sum(result.status == "failed" for result in found)
    return Run(len(set(keys.values())), len(found) - failed, failed, done, done < total)


def _open_cells(
    study: Study, keys: dict[tuple[str, str, int, str], str], known: set[str]
) -> Iterator[tuple[Cell, list[tuple[MeasureSpec, str]]]]:
    """The cells that lack results, each with the measures it lacks and their keys."""
    given: set[str] = set()
    for cell in _in_turn(study):
        todo = []
        for measure in cell.measures:
            key = keys[cell.table.name, cell.variant.name, cell.seed, measure.name]
            if key not in known and key not in given:
                given.add(key)
                todo.append((measure, key))
        if todo:
            yield cell, todo


def _in_turn(study: Study) -> list[Cell]:
    """The cells in such an order that what is done after any time is balanced.

    First seeds; under each, the first variant of every family on every table, then the second of
    every family, and so on: a long grid of one family does not come before the others.
    """
    seen: Counter[str] = Counter()
    turn: dict[str, int] = {}
    for variant in study.variants:
        turn[variant.name] = seen[variant.family]
        seen[variant.family] += 1
    place = {seed: number for number, seed in enumerate(study.seeds)}
    return sorted(study.cells(), key=lambda cell: (place[cell.seed], turn[cell.variant.name]))


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
    until: float | None = None,
) -> list[Result]:
    """Mask a table and take its measures; each result is written to ``target`` at once.

    No measure is begun after ``until``, so that there may be fewer results than asked for.
    """
    if until is not None and time.time() >= until:
        return []
    store = None if target is None else Store(target)
    began = time.perf_counter()
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a release must be warned of, a study measures
        try:
            masked = _Masked.of(cell, folder)
            reason = None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # recorded, a library's panic too; the other tasks go on
            reason = _reason(error)
        masking = time.perf_counter() - began
        for measure, key in todo:
            if until is not None and time.time() >= until:
                break
            if reason is not None:
                result = Result(key, "failed", reason=f"masking: {reason}", seconds=masking)
            else:
                result = _measured(measure, key, masked, masking)
                if not _is_still(cell, measure, key, folder):
                    result = Result(key, "failed", reason=_CHANGED, seconds=result.seconds)
            if store is not None:
                store.write(result)
            results.append(result)
    return results


def _is_still(cell: Cell, measure: MeasureSpec, key: str, folder: Path | None) -> bool:
    """Whether the table and all else that a result hangs on are what they were at first."""
    try:
        return task_key(cell, measure, cell.table.fingerprint(folder), folder) == key
    except (ShoalError, OSError):
        return False


def _measured(measure: MeasureSpec, key: str, masked: _Masked, masking: float) -> Result:
    began = time.perf_counter()
    try:
        options = masked.options(measure.options)
        found = study_measures()[measure.measure](masked.original, masked.table, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # recorded, a library's panic too; the other tasks go on
        return Result(key, "failed", reason=_reason(error), seconds=time.perf_counter() - began)
    seconds = time.perf_counter() - began
    facts = {**_facts(found), **masked.facts, "masking": masking}
    return Result(key, "done", found.value, facts, seconds=seconds)


def _facts(found: Measurement) -> dict[str, Any]:
    facts = found.to_dict()
    return {part: facts[part] for part in ("interval", "baseline", "direction", "details")}


def _reason(error: BaseException) -> str:
    """Shoal's own sentences tell no cell; what others say might."""
    return str(error) if isinstance(error, ShoalError) else type(error).__name__


def _told(done: int, total: int, seconds: float) -> str:
    """How far a run is, and how long the rest takes if it goes on like this."""
    label = f"{done:,} of {total:,} tasks"
    if not 0 < done < total:
        return label
    left = seconds * (total - done) / done
    hours, minutes = divmod(round(left / 60), 60)
    if left < 60:
        return f"{label}, {max(round(left), 1)} s left"
    return f"{label}, {f'{hours:,} h ' if hours else ''}{minutes} min left"


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
