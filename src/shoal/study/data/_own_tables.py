"""Tables that somebody names: a file, a folder of files, or a TOML file with a list of tables."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import InputError, PlanError, quoted
from shoal.study._shape import check_shape
from shoal.study.data._fetching import find
from shoal.study.data._tables import TableSource
from shoal.table import Roles

_ENDINGS = (".parquet", ".csv", ".tsv", ".feather", ".arrow")


def tables_at(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    without: Sequence[str] = (),
    hierarchies: str | os.PathLike[str] | None = None,
) -> list[TableSource]:
    """The tables at a place, for a study that is to be run on them.

    Parameters
    ----------
    path : path
        A file with a table, a folder of such files, or a TOML file with ``[[tables]]`` as in the
        file of a study, which then says everything about them.
    target : str, optional
        The column that models predict.
    quasi_identifiers : list of str
        The columns that an intruder may know; all but the target without any role.
    sensitive : list of str
        The columns that an intruder wants to learn; the target without it.
    without : list of str
        Columns that are left out: names and numbers of people, for example.
    hierarchies : path, optional
        A folder with a file COLUMN.csv for each column that has a hierarchy.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> folder = tempfile.mkdtemp()
    >>> pl.DataFrame({"age": [30, 41], "ill": ["y", "n"]}).write_csv(f"{folder}/people.csv")
    >>> [(one.name, one.target) for one in tables_at(f"{folder}/people.csv", target="ill")]
    [('people', 'ill')]
    """
    said: dict[str, Any] = {
        "target": target,
        "without": list(without) or None,
        "hierarchies": None if hierarchies is None else _absolute(os.fspath(hierarchies)),
    }
    if quasi_identifiers or sensitive:
        secret = list(sensitive) or ([] if target is None else [target])
        roles = Roles(quasi_identifiers=quasi_identifiers, sensitive=secret)
        said["roles"] = roles.to_dict()
    said = {part: value for part, value in said.items() if value is not None}
    place = Path(path)
    if place.suffix == ".toml":
        if said:
            raise InputError(
                f"The file '{path}' says which roles its tables have; give them there, not in the "
                "call."
            )
        return _listed_in(place)
    return sources_of({"folder" if place.is_dir() else "path": os.fspath(place), **said})


def sources_of(entry: Mapping[str, Any], folder: Path | None = None) -> list[TableSource]:
    """The tables of one entry of a study's file: one, or all in a folder."""
    if "folder" not in entry:
        return [TableSource.from_dict(entry)]
    common = {part: value for part, value in entry.items() if part != "folder"}
    for part in ("name", "path", "openml", "folktables", "scikit_learn"):
        if part in common:
            raise PlanError(f"A folder of tables has no part '{part}'; name the tables singly.")
    beside = None if folder is None else folder / str(entry["folder"])
    inside = beside if beside is not None and beside.is_dir() else find(str(entry["folder"]))
    paths = sorted(inside.iterdir()) if inside is not None and inside.is_dir() else []
    tables = [path for path in paths if path.suffix in _ENDINGS]
    if not tables:
        raise InputError(
            f"There is no table in the folder '{entry['folder']}'; a table is a file that ends in "
            f"{quoted(_ENDINGS)}."
        )
    return [TableSource.from_dict({"path": str(path.resolve()), **common}) for path in tables]


def _listed_in(path: Path) -> list[TableSource]:
    """The tables that a TOML file lists; what it names is found beside it too."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(f"There is no file of tables at '{path}'.") from None
    except (OSError, UnicodeDecodeError):
        raise PlanError(f"The tables at '{path}' cannot be read as a UTF-8 text file.") from None
    except tomllib.TOMLDecodeError as cause:
        raise PlanError(f"The file of tables is not valid TOML: {cause}.") from None
    entries = given.get("tables")
    listed = isinstance(entries, list) and all(isinstance(one, Mapping) for one in entries)
    if not entries or not listed:
        raise PlanError(f"The file '{path}' lists no tables; write [[tables]] for each.")
    check_shape({"tables": entries})
    return [
        source
        for entry in entries
        for source in sources_of(
            {
                part: _absolute(value, path.parent) if part in ("path", "hierarchies") else value
                for part, value in entry.items()
            },
            path.parent,
        )
    ]


def _absolute(path: Any, folder: Path | None = None) -> Any:
    """A path that stays the same from anywhere, where there is such a file; else as it is."""
    found = find(path, folder) if isinstance(path, str) else None
    return path if found is None else str(found.resolve())
