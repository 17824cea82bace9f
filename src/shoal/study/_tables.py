"""The tables of a study: where they are found, and which column plays which part."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, PlanError, did_you_mean, quoted
from shoal.randomness import SecretStream
from shoal.table import Roles, Table, frame_of_array, identifying_columns, read, whole_as_floats

#: The environment variable that names the folder of tables.
DATA_VARIABLE = "SHOAL_DATA"

_RULES = ("all", "part")
_ENTRIES = (
    "name", "path", "openml", "scikit_learn", "roles", "target", "rows", "held_out", "only",
    "without", "floats",
)  # fmt: skip
_SHIPPED = ("breast_cancer", "digits", "iris", "wine")
_ENDINGS = (".parquet", ".csv", ".tsv", ".feather", ".arrow")
_PUBLIC_KEY = "00" * 32  # which rows a study takes of a large table is no secret


@dataclass(frozen=True)
class TableSource:
    """One table of a study.

    Parameters
    ----------
    name : str
        What results and figures call it.
    path : str, optional
        A file: as it is, beside the study, or in the folder that ``SHOAL_DATA`` names.
    openml : int, optional
        The number of a data set at OpenML, where there is no such file; kept by scikit-learn.
    scikit_learn : {"breast_cancer", "digits", "iris", "wine"}, optional
        A data set that comes with scikit-learn; its class is the column ``target``.
    roles : Roles or {"all", "part"}
        The roles of the columns, or a rule: every column but the target is a quasi-identifier, or
        the fewest that tell more than 99 % of the records apart. The target is then sensitive.
    target : str, optional
        The column that models predict.
    rows : int, optional
        Only so many rows, chosen by a public hash, always the same ones.
    held_out : float, optional
        The share of these rows that is put aside before anything is masked; a measure with the
        option ``holdout = true``, or ``control = true``, is given them.
    only : tuple of str
        The columns that are taken; all without it.
    without : tuple of str
        Columns that are left out.
    floats : bool
        Take whole numbers as numbers with fractions, so that means are not rounded.
    """

    name: str
    path: str | None = None
    openml: int | None = None
    scikit_learn: str | None = None
    roles: Roles | str = "all"
    target: str | None = None
    rows: int | None = None
    held_out: float | None = None
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    floats: bool = False

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> TableSource:
        """A source from an entry of a study's file."""
        for part in given:
            if part not in _ENTRIES:
                raise PlanError(
                    f"A table of a study has no part '{part}'. {did_you_mean(part, _ENTRIES)}"
                )
        entry = dict(given)
        path = entry.get("path")
        shipped, number = entry.get("scikit_learn"), entry.get("openml")
        if path is None and number is None and shipped is None:
            raise PlanError(
                "A table of a study needs a path, the number of a set at OpenML, or the name of "
                "one that comes with scikit-learn."
            )
        if shipped is not None and shipped not in _SHIPPED:
            raise PlanError(
                f"No table '{shipped}' comes with scikit-learn. {did_you_mean(shipped, _SHIPPED)}"
            )
        entry.setdefault("name", Path(path).stem if path else shipped or f"openml-{number}")
        roles = entry.get("roles", "all")
        entry["roles"] = Roles.from_dict(roles) if isinstance(roles, Mapping) else roles
        if isinstance(entry["roles"], str) and roles not in _RULES:
            raise PlanError(
                f"The roles of a table are a table of roles, or a rule: 'all' or 'part'; got "
                f"{roles!r}."
            )
        for part in ("only", "without"):
            entry[part] = tuple(entry.get(part, ()))
        share = entry.get("held_out")
        if share is not None and (not isinstance(share, float) or not 0 < share < 1):
            raise PlanError(f"The share 'held_out' of a table is between 0 and 1; got {share!r}.")
        return cls(**entry)

    def to_dict(self) -> dict[str, Any]:
        """The source as plain data: what its results depend on, besides the file itself."""
        roles = self.roles.to_dict() if isinstance(self.roles, Roles) else self.roles
        given = {
            "name": self.name,
            "path": self.path,
            "openml": self.openml,
            "scikit_learn": self.scikit_learn,
            "roles": roles,
            "target": self.target,
            "rows": self.rows,
            "held_out": self.held_out,
            "only": list(self.only) or None,
            "without": list(self.without) or None,
            "floats": self.floats or None,
        }
        return {part: value for part, value in given.items() if value is not None}

    def file(self, folder: Path | None = None) -> Path | None:
        """Where the file is; None where there is none and the table comes from OpenML."""
        if self.path is None:
            return None
        places = [Path(self.path)]
        if not places[0].is_absolute():
            places = [place / self.path for place in _places(folder)]
        for place in places:
            if place.is_file():
                return place
        if self.openml is not None or self.scikit_learn is not None:
            return None
        raise InputError(
            f"The table '{self.name}' was not found: there is no file '{self.path}' here, beside "
            f"the study, or in the folder that the environment variable {DATA_VARIABLE} names."
        )

    def fingerprint(self, folder: Path | None = None) -> str:
        """A hash of the data, so that results of other data are not taken for these."""
        file = self.file(folder)
        if file is None:
            shipped = self.scikit_learn
            return f"openml:{self.openml}" if shipped is None else f"scikit-learn:{shipped}"
        stat = file.stat()
        return _hashed(str(file.resolve()), stat.st_mtime_ns, stat.st_ctime_ns)

    def load(self, folder: Path | None = None) -> Table:
        """The table to mask, with its roles."""
        return self.load_divided(folder)[0]

    def load_divided(self, folder: Path | None = None) -> tuple[Table, Table | None]:
        """The table to mask, and the rows that were put aside, which nothing masks."""
        table = self._load(folder)
        if self.held_out is None:
            return table.with_roles(self._roles_of(table)), None
        apart = chosen_rows(len(table), max(1, round(self.held_out * len(table))), "held out")
        kept = table.keep(~apart)
        roles = self._roles_of(kept)  # a rule sees what is masked, and nothing else
        return kept.with_roles(roles), table.keep(apart).with_roles(roles)

    def _load(self, folder: Path | None) -> Table:
        file = self.file(folder)
        if file is not None:
            table = read(file)
        elif self.scikit_learn is not None:
            table = _from_scikit_learn(self.scikit_learn)
        else:
            table = _from_openml(self.openml, self.name)
        absent = [name for name in (*self.only, *self.without) if name not in table.columns]
        if absent:
            raise InputError(f"The table '{self.name}' has no column {quoted(absent)}.")
        kept = self.only or table.columns
        table = table.drop(n for n in table.columns if n not in kept or n in self.without)
        if self.floats:
            table = whole_as_floats(table)
        if self.rows is not None and self.rows < len(table):
            table = table.keep(chosen_rows(len(table), self.rows, "rows"))
        return table

    def _roles_of(self, table: Table) -> Roles:
        if isinstance(self.roles, Roles):
            return self.roles if self.target is None else self.roles.replacing(target=self.target)
        if self.target is not None and self.target not in table.columns:
            raise InputError(
                f"The table '{self.name}' has no column '{self.target}' to predict. "
                f"{did_you_mean(self.target, table.columns)}"
            )
        others = [name for name in table.columns if name != self.target]
        if self.roles == "part":
            others = self.identifying(table)
        secret = [] if self.target is None else [self.target]
        return Roles(quasi_identifiers=others, sensitive=secret, target=self.target)

    def identifying(self, table: Table) -> list[str]:
        """The fewest columns but the target that tell more than 99 % of the records apart."""
        return identifying_columns(table, [name for name in table.columns if name != self.target])


def tables_in(folder: str | Path, **common: Any) -> list[TableSource]:
    """Every table in a folder, under one rule for the roles."""
    paths = sorted(path for path in Path(folder).iterdir() if path.suffix in _ENDINGS)
    if not paths:
        raise InputError(f"There is no table in the folder '{folder}'.")
    return [TableSource(path.stem, str(path.resolve()), **common) for path in paths]


def _places(folder: Path | None) -> list[Path]:
    data = os.environ.get(DATA_VARIABLE)
    return [
        Path.cwd(),
        *([folder] if folder is not None else []),
        *([Path(data)] if data else []),
    ]


@lru_cache(maxsize=256)
def _hashed(path: str, modified: int, changed: int) -> str:
    """The hash of a file, computed once for each state of it."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def chosen_rows(rows: int, count: int, purpose: str) -> npt.NDArray[np.bool_]:
    """So many of the rows, the same ones every time."""
    stream = SecretStream.from_key_hex(_PUBLIC_KEY).derive(purpose)
    chosen = np.zeros(rows, dtype=bool)
    chosen[stream.choose(rows, count)] = True
    return chosen


def _from_scikit_learn(name: str) -> Table:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    values = np.column_stack((found.data, found.target))
    return Table(frame_of_array(values, [*map(str, found.feature_names), "target"]))


def _from_openml(number: int | None, name: str) -> Table:
    found = _fetched(number)
    if found is None:
        raise InputError(
            f"The table '{name}' (set {number} at OpenML) is not here and could not be fetched; "
            f"put its file into the folder that the environment variable {DATA_VARIABLE} names."
        )
    return found


@lru_cache(maxsize=8)
def _fetched(number: int | None) -> Table | None:
    """A set from OpenML, or None; a worker that has no network does not wait for it again."""
    from urllib.error import URLError

    from sklearn.datasets import fetch_openml

    try:
        found = fetch_openml(data_id=number, as_frame=True, parser="auto")
    except (URLError, OSError, ValueError):
        return None
    return Table(found.frame)
