"""The space of levels that the screen Search shows: the request, and the counts."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor, TimeoutError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from shoal.app.studio._dataset import Dataset
from shoal.app.studio._jobs import Job
from shoal.app.studio._pages import Studio
from shoal.app.studio._project import Project
from shoal.app.studio.ladder._ladders import Ladders
from shoal.app.studio.planning import _edits as edits
from shoal.app.studio.planning._fields import Place, group_models, number_in
from shoal.errors import InputError, ShoalError
from shoal.masking import Generalize
from shoal.masking.generalization._space import LevelNode, LevelSpace

#: The entries of a generalize step that a search of levels needs.
_KEPT: Final = (
    "k", "models", "hierarchies", "columns", "suppression_limit", "loss", "weights", "whole",
    "extend", "suppressed", "keep_sensitive",
)  # fmt: skip
_SPACE: Final = "space"
_AHEAD: Final = "ahead"
_MOST_KEPT: Final = 64  # grids
T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """A full-domain step as a plan would write it, and where it comes from."""

    step: Mapping[str, Any]
    #: The place of the plan's own generalize step; None if there is none.
    at: int | None
    #: The mark of jobs with the same request.
    digest: str

    @property
    def k(self) -> Any:
        return self.step.get("k", "")

    @property
    def limit(self) -> Any:
        return self.step.get("suppression_limit", 0.0)

    def made(self, project: Project) -> Generalize:
        """The step; raises an error if it is wrong."""
        step = project.step(self.step)
        assert isinstance(step, Generalize)
        return step


def ask_of(studio: Studio, place: Place, query: Mapping[str, str]) -> Ask:
    """What the plan requires, unless the address has another k or limit."""
    raw = edits.raw_plan(studio.project.version.plan)
    steps = edits.steps_in(raw)
    at = next((n for n, one in enumerate(steps) if one.get("method") == "generalize"), None)
    found: dict[str, Any] = {} if at is None else {n: steps[at][n] for n in _KEPT if n in steps[at]}
    if at is None:
        found = _from_requirements(raw.get("require", {}))
    columns = found.get("columns") or list(place.table.roles.quasi_identifiers)
    if not columns:
        raise InputError(
            "No column is a quasi-identifier yet. Declare under Roles what an intruder may know."
        )
    made = {name: place.made[name] for name in columns if name in place.made}
    found["hierarchies"] = made | dict(found.get("hierarchies", {}))
    for name, parameter in (("k", "k"), ("limit", "suppression_limit")):
        if query.get(name, "").strip():
            found[parameter] = number_in(query[name])
    found = {name: value for name, value in found.items() if value not in ({}, 0)}
    step = {"method": "generalize", "algorithm": "full-domain", **found}
    studio.project.check_files(step)
    loaded = studio.dataset.loaded()
    parts = [loaded.key, place.table.roles.to_dict(), step, _file_states(step, studio)]
    digest = hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()
    return Ask(step, at, digest)


def _from_requirements(asked: Any) -> dict[str, Any]:
    asked = asked if isinstance(asked, Mapping) else {}
    k = asked.get("k_anonymity", 5)
    models = {name: asked[name] for name in group_models() if name in asked}
    if isinstance(k, int):
        models.pop("k_anonymity", None)
        return {"k": k, **({"models": models} if models else {})}
    return {"models": models}  # includes the other conditions on a crowd


def _file_states(step: Mapping[str, Any], studio: Studio) -> list[Any]:
    """When the files of hierarchies were written: an edited file is a new request."""
    states = []
    for value in step.get("hierarchies", {}).values():
        path = studio.project.folder / value if isinstance(value, str) else None
        states.append(path.stat().st_mtime_ns if path is not None and path.is_file() else None)
    return states


class Growing(Generic[T]):
    """Results that a thread counts one after the other, readable in the meantime."""

    def __init__(self, threads: Executor, make: Callable[[], Iterable[T]]) -> None:
        self.found: list[T] = []
        self._make = make
        self.future = threads.submit(self._count)

    def _count(self) -> None:
        for one in self._make():
            self.found.append(one)

    def is_whole(self, end: float) -> bool:
        """Whether everything is there, after waiting until ``end`` at most."""
        try:
            self.future.result(max(0.0, end - time.monotonic()))
        except (TimeoutError, CancelledError):
            return False
        return True


class _Counted:
    """The latest space of a dataset and its counts, made in a separate thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "shoal-levels")
        self._lock = threading.Lock()
        self._digest = ""
        self._kept: dict[Any, Growing[Any]] = {}

    def get(self, digest: str, what: Any, make: Callable[[], Iterable[T]]) -> Growing[T]:
        """The result, finished or in progress."""
        with self._lock:
            if digest != self._digest:
                self._digest, self._kept = digest, {}
            for other, one in list(self._kept.items()):
                if other != what and one.future.cancel():
                    del self._kept[other]  # nobody looks at it any more
            if what not in self._kept:
                if len(self._kept) > _MOST_KEPT:
                    del self._kept[next(key for key in self._kept if key != _SPACE)]
                self._kept[what] = Growing(self._threads, make)
            return self._kept[what]


_COUNTED: WeakKeyDictionary[Dataset, _Counted] = WeakKeyDictionary()


def space_of(studio: Studio, place: Place, ask: Ask) -> Growing[LevelSpace]:
    """The space of a request: a single item, once it is there."""
    step, table = ask.made(studio.project), place.table

    def make() -> Iterator[LevelSpace]:
        space = step.space(table)
        space.at(space.heights)  # compiles what is needed before the page asks
        yield space

    return _COUNTED.setdefault(studio.dataset, _Counted()).get(ask.digest, _SPACE, make)


def count_ahead(studio: Studio, place: Place) -> None:
    """Count what the screens about levels show first, before someone opens them."""

    def make() -> Iterator[list[int]]:
        with suppress(ShoalError):
            ladders = Ladders(studio)
            levels = ladders.planned()
            for column in ladders.columns:
                yield ladders.alone(column, levels)
            space_of(studio, place, ask)

    with suppress(ShoalError):  # the screen shows the error
        ask = ask_of(studio, place, {})
        _COUNTED.setdefault(studio.dataset, _Counted()).get(ask.digest, _AHEAD, make)


@dataclass(frozen=True)
class View:
    """Two columns as a grid, the others at their levels."""

    down: str
    across: str
    levels: Mapping[str, int]


def view_of(space: LevelSpace, query: Mapping[str, str], best: Mapping[str, int] | None) -> View:
    """The view in the address; by default the optimum, or the middle of every ladder."""
    names = space.names
    levels = dict(best or {name: (height + 1) // 2 for name, height in space.heights.items()})
    for place, name in enumerate(names):
        text = query.get(f"l{place}", "")
        if text:
            levels[name] = _level(text, name, space)
    tall = sorted(names, key=lambda name: -space.heights[name])
    down = _column(query.get("down", ""), names, tall[0])
    left = [name for name in tall if name != down]
    across = _column(query.get("across", ""), names, left[0] if left else down)
    if across == down and left:
        across = left[0]
    return View(down, across, levels)


def _column(text: str, names: tuple[str, ...], default: str) -> str:
    """Columns are numbered in addresses."""
    if not text:
        return default
    if not text.isdecimal() or int(text[:9]) >= len(names):
        raise InputError("The address names a column that is not generalized. Open Search again.")
    return names[int(text)]


def _level(text: str, name: str, space: LevelSpace) -> int:
    if not text.isdecimal() or int(text[:9]) > space.heights[name]:
        raise InputError(f"Choose one of the levels 0 to {space.heights[name]} of '{name}'.")
    return int(text)


def cells_of(studio: Studio, ask: Ask, space: LevelSpace, view: View) -> Growing[list[LevelNode]]:
    """The rows of the grid; with one cell each if only one column is generalized."""
    others = {name: level for name, level in view.levels.items() if name in space.names}
    down, across = view.down, view.across

    def make() -> Iterable[list[LevelNode]]:
        if down == across:
            return ([node] for node in space.along(down, others))
        return space.rows(down, across, others)

    fixed = tuple(level for name, level in others.items() if name not in (down, across))
    return _COUNTED[studio.dataset].get(ask.digest, (down, across, fixed), make)


def found_by(jobs: list[Job], ask: Ask) -> Job | None:
    """The newest search for the current request."""
    return next((job for job in jobs if job.options.get("digest") == ask.digest), None)
