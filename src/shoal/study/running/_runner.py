"""Running a study: only tasks without a result, on all cores, without losing results.

A worker gets a cell: one masked table with all its measures, so that it is masked only once. The
store keeps tasks: one measure of a cell, which is on disk before the next task starts.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from threadpoolctl import threadpool_limits

from shoal.errors import InputError, ShoalError
from shoal.parameters import OneOf, checked
from shoal.study._design import Cell, MeasureSpec, Study
from shoal.study._measures import concrete_options, study_measures, table_and_rows_aside
from shoal.study.data._tables import TableSource
from shoal.study.running._store import Result, Store, keys_of, task_key
from shoal.study.running._workers import BACKENDS, on_a_cluster, on_this_machine, retry_broken_pool
from shoal.table import Table
from shoal.workflow import StepRecord
from shoal.workflow._plan import in_released_domain

Progress = Callable[[str, float], None]
#: A cell, and its measures that have no result yet with their keys.
Work = tuple[Cell, list[tuple[MeasureSpec, str]]]

_CHANGED = (
    "The table, a file that a step or option names, or a library changed while the study ran; "
    "run it again."
)


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
        """Whether every task has a result or a reason for its failure."""
        return self.done + self.failed == self.tasks


@checked
def run(
    study: Study,
    folder: str | Path,
    *,
    jobs: int | None = None,
    backend: Annotated[str, OneOf(BACKENDS)] = "loky",
    seconds: float | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Compute the missing results of a study; the parameters are those of ``run_study``.

    Each worker has one thread. Results are stored in the folder, where a stopped study resumes.
    """
    keys = keys_of(study)  # before the folder is created: it raises if the study is wrong
    store = Store(folder)
    if retry:
        store.forget_failed(keys.values())
    known = store.known(keys.values())
    work = list(_open_cells(study, keys, known))
    total = sum(len(todo) for _, todo in work)
    until = None if seconds is None else time.time() + seconds
    done, began = 0, time.monotonic()

    def in_time() -> Iterator[Work]:
        for cell, todo in work:
            if until is not None and time.time() >= until:
                return
            yield cell, todo

    if backend == "loky":
        here = ((cell, todo, study.folder, store.folder, until) for cell, todo in in_time())
        outcomes = retry_broken_pool(
            lambda pieces: on_this_machine(measure_cell, pieces, jobs), here, store
        )
    else:
        away = _for_elsewhere(in_time(), study, until)
        outcomes = on_a_cluster(measure_elsewhere, away, backend=backend, jobs=jobs, lost=_lost)
    with store.kept_open(), closing(outcomes):
        for results in outcomes:
            if backend != "loky":  # other machines may not see the folder; one writer is enough
                store.write(*results)
            done += len(results)
            if progress:
                progress(
                    _progress_label(done, total, time.monotonic() - began), done / max(total, 1)
                )
    stored = store.read(keys.values()).values()
    failed = sum(result.status == "failed" for result in stored)
    return Run(len(set(keys.values())), len(stored) - failed, failed, done, done < total)


def _open_cells(
    study: Study, keys: dict[tuple[str, str, int, str], str], known: set[str]
) -> Iterator[Work]:
    """The cells that lack results, each with the measures it lacks and their keys.

    The order keeps the results balanced at any time: first by seed; then the first variant of
    every family on every table, then the second of every family, and so on.
    """
    seen: Counter[str] = Counter()
    turn: dict[str, int] = {}
    for variant in study.variants:
        turn[variant.name] = seen[variant.family]
        seen[variant.family] += 1
    place, given = {seed: number for number, seed in enumerate(study.seeds)}, set(known)
    cells = sorted(study.cells(), key=lambda cell: (place[cell.seed], turn[cell.variant.name]))
    for cell in cells:
        todo = []
        for measure in cell.measures:
            key = keys[cell.table.name, cell.variant.name, cell.seed, measure.name]
            if key not in given:
                given.add(key)
                todo.append((measure, key))
        if todo:
            yield cell, todo


@dataclass(frozen=True)
class _Masked:
    """A masked table, with the other tables that measures may need."""

    source: TableSource
    folder: Path | None
    original: Table
    table: Table
    steps: Sequence[StepRecord]

    @classmethod
    def of(cls, cell: Cell, folder: Path | None) -> _Masked:
        original, _ = table_and_rows_aside(cell.table, folder)
        masked = cell.variant.plan(cell.seed, folder).apply(original)
        return cls(cell.table, folder, original, *masked)

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a measure, with words replaced by what they stand for.

        ``population = true`` is everyone in the table, sampled or not, at the levels of the
        release. For the other words see :func:`concrete_options`.
        """
        options = concrete_options(given, self.source, self.folder)
        if options.get("population") is True:
            if not len(self.table):
                raise InputError("No record is left, so there is nothing to measure.")
            options["population"] = in_released_domain(self.steps, self.original)
        return options


def measure_cell(
    cell: Cell,
    todo: Sequence[tuple[MeasureSpec, str]],
    folder: Path | None,
    target: Path | None,
    until: float | None = None,
) -> list[Result]:
    """Mask a table and measure it; each result is written to ``target`` at once.

    No measure starts after ``until``, so there may be fewer results than asked for.
    """
    if until is not None and time.time() >= until:
        return []
    store = None if target is None else Store(target)
    began = time.perf_counter()
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a study measures the risks that they warn about
        try:
            masked = _Masked.of(cell, folder)
            reason = None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # recorded, even a library's panic; other tasks continue
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


def _for_elsewhere(
    work: Iterator[Work], study: Study, until: float | None
) -> Iterator[tuple[Any, ...]]:
    """The work with the paths found here: a worker has a different folder and environment."""
    folder = (study.folder or Path()).resolve()
    placed_sources = {}
    for source in study.tables:
        file = source.file(study.folder)
        placed = replace(source, path=None if file is None else str(file.resolve()))
        placed_sources[source.name] = placed, source.fingerprint(study.folder)
    for cell, todo in work:
        source, data = placed_sources[cell.table.name]
        yield replace(cell, table=source), todo, folder, data, until


def measure_elsewhere(
    cell: Cell,
    todo: Sequence[tuple[MeasureSpec, str]],
    folder: Path,
    data: str,
    until: float | None,
) -> list[Result]:
    """Like :func:`measure_cell`, on a worker of a cluster: with one thread and the same table."""
    with threadpool_limits(1):
        absent = _absent(cell.table, data)
        if absent is not None:
            return [Result(key, "failed", reason=absent) for _, key in todo]
        return measure_cell(cell, todo, folder, None, until)


def _absent(source: TableSource, data: str) -> str | None:
    """Why this worker cannot read the table of the study."""
    if source.path is None:
        return None
    where = f"on the worker '{platform.node()}'"
    remedy = "put it there under the same path, or on a disk that all workers share, and retry."
    try:
        if source.fingerprint() == data:
            return None
        lack = f"differs {where}: the file '{source.path}' has other content there"
    except (FileNotFoundError, InputError):
        lack = f"was not found {where}: there is no file '{source.path}' there"
    except OSError as error:
        lack = f"cannot be read {where} ({type(error).__name__}: '{source.path}')"
    return f"The table '{source.name}' {lack}; {remedy}"


def _lost(task: tuple[Any, ...], reason: str) -> list[Result]:
    return [Result(key, "failed", reason=reason) for _, key in task[1]]


def _is_still(cell: Cell, measure: MeasureSpec, key: str, folder: Path | None) -> bool:
    """Whether the table and everything else that a result depends on are unchanged."""
    try:
        return task_key(cell, measure, cell.table.fingerprint(folder), folder) == key
    except (ShoalError, OSError):
        return False


def _measured(measure: MeasureSpec, key: str, masked: _Masked, masking: float) -> Result:
    began = time.perf_counter()
    try:
        options = masked.options(measure.options)
        value = study_measures()[measure.measure].take(masked.original, masked.table, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # recorded, even a library's panic; other tasks continue
        return Result(key, "failed", reason=_reason(error), seconds=time.perf_counter() - began)
    seconds, plain = time.perf_counter() - began, value.to_dict()
    facts = {part: plain[part] for part in ("interval", "baseline", "direction", "details")}
    # what the steps report, for example the levels of a generalization
    facts["steps"] = [{"method": step.method, **step.facts} for step in masked.steps]
    return Result(key, "done", value.value, {**facts, "masking": masking}, seconds=seconds)


def _reason(error: BaseException) -> str:
    """Shoal's own messages quote no cell; those of libraries might."""
    return str(error) if isinstance(error, ShoalError) else type(error).__name__


def _progress_label(done: int, total: int, seconds: float) -> str:
    """The progress of a run, and the remaining time at this pace."""
    label = f"{done:,} of {total:,} tasks"
    if not 0 < done < total:
        return label
    left = seconds * (total - done) / done
    hours, minutes = divmod(round(left / 60), 60)
    if left < 60:
        return f"{label}, {max(round(left), 1)} s left"
    return f"{label}, {f'{hours:,} h ' if hours else ''}{minutes} min left"
