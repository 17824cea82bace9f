"""Options of a measure that stand for something of the table it is taken of.

The options of a study are plain data, so that a file can hold them and a hash can name a task.
What a measure needs of one table alone is therefore written as a word: ``holdout = true`` and
``control = true`` are the rows that were put aside, and ``known = "part"`` are the columns of the
rule of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.study.data._tables import TableSource
from shoal.table import Table

_TAKE_ROWS = ("control", "holdout")


def meant(
    options: Mapping[str, Any], source: TableSource, folder: Path | None = None
) -> dict[str, Any]:
    """The options with what the words in them stand for."""
    out = dict(options)
    for name in _TAKE_ROWS:
        if out.get(name) is True:
            out[name] = _put_aside(source, folder)
    if out.get("known") == "part":
        out["known"] = list(_identifying(source, folder, source.fingerprint(folder)))
    return out


def divided(source: TableSource, folder: Path | None) -> tuple[Table, Table | None]:
    """A table and what was put aside of it, read once by each worker while it stays the same."""
    return _read(source, folder, source.fingerprint(folder))


@lru_cache(maxsize=4)
def _read(source: TableSource, folder: Path | None, data: str) -> tuple[Table, Table | None]:
    return source.load_divided(folder)


def _put_aside(source: TableSource, folder: Path | None) -> Table:
    found = divided(source, folder)[1]
    if found is None:
        raise InputError(
            f"A measure asks for rows that were put aside of the table '{source.name}', and none "
            "were; give the table a share of its rows as held_out."
        )
    return found


@lru_cache(maxsize=64)
def _identifying(source: TableSource, folder: Path | None, data: str) -> tuple[str, ...]:
    return tuple(source.identifying(divided(source, folder)[0]))
