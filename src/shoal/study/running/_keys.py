"""The names of tasks: a hash of everything that a result depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shoal import __version__
from shoal.errors import PlanError
from shoal.study._design import Cell, MeasureSpec, Study
from shoal.study.running._store import key_of

#: What fits models and draws noise: another version may give another number.
_LIBRARIES = ("opacus", "opendp", "scikit-learn", "scipy", "torch", "xgboost", "xgboost-cpu")


def task_key(cell: Cell, measure: MeasureSpec, fingerprint: str, folder: Path | None = None) -> str:
    """The hash of all that a task's result depends on, the version of Shoal included."""
    steps, options = [dict(step) for step in cell.variant.steps], dict(measure.options)
    parts = {
        "shoal": __version__,
        "libraries": libraries(),
        "data": fingerprint,
        "table": {k: v for k, v in cell.table.to_dict().items() if k not in ("name", "path")},
        "steps": steps,
        "files": named_files([steps, options], folder),
        "seed": cell.seed,
        "measure": measure.measure,
        "options": options,
    }
    try:
        return key_of(parts)
    except TypeError:
        raise PlanError(
            f"The variant '{cell.variant.name}' or the measure '{measure.name}' has an option that "
            "is no text, number, true or false, or a list or table of these."
        ) from None


def keys_of(study: Study) -> dict[tuple[str, str, int, str], str]:
    """The key of every task, by table, variant, seed and measure."""
    prints = {source.name: source.fingerprint(study.folder) for source in study.tables}
    return {
        (cell.table.name, cell.variant.name, cell.seed, measure.name): task_key(
            cell, measure, prints[cell.table.name], study.folder
        )
        for cell in study.cells()
        for measure in cell.measures
    }


@cache
def libraries() -> Mapping[str, str]:
    """The versions of the libraries that results depend on, as far as they are here."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def named_files(value: Any, folder: Path | None) -> dict[str, str]:
    """The hashes of the files that steps or options name: a hierarchy, a population."""
    return {
        text: content
        for text in sorted(set(_texts(value)))
        if (content := _content(text, folder)) is not None
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def _content(text: str, folder: Path | None) -> str | None:
    """The hash of the file of this name, beside the study or here; None where there is none."""
    for place in (Path() if folder is None else folder, Path()):
        try:
            path = place / text
            if path.is_file():
                stat = path.stat()
                return _hashed(str(path.resolve()), stat.st_mtime_ns, stat.st_ctime_ns)
        except (OSError, ValueError):  # too long for a name, or with signs that no name has
            continue
    return None


@lru_cache(maxsize=1024)
def _hashed(path: str, modified: int, changed: int) -> str:
    """The hash of a file, computed once for each state of it."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
