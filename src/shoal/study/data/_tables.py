"""The tables of a study: where they are found, and which column plays which part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, PlanError, did_you_mean, quoted
from shoal.randomness import SecretStream
from shoal.study.data._fetching import (
    TASKS,
    Elsewhere,
    Folktables,
    OpenML,
    find,
    kept_file,
    not_found,
)
from shoal.table import (
    Roles,
    Table,
    frame_of_array,
    identifying_columns,
    read,
    renamed,
    whole_as_floats,
)

_RULES = ("all", "part")
_ENTRIES = (
    "name", "path", "openml", "openml_target", "folktables", "year", "horizon", "states",
    "scikit_learn", "roles", "target", "hierarchies", "rows", "held_out", "only", "without",
    "floats",
)  # fmt: skip
_LISTS = ("states", "only", "without")
_SHIPPED = ("breast_cancer", "digits", "iris", "wine")
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
        The number of a data set at OpenML, fetched and kept where there is no such file.
    openml_target : str, optional
        What the target is called there, where that is not its name here.
    folktables : {"ACSIncome", "ACSPublicCoverage", "ACSMobility", "ACSEmployment", \
"ACSTravelTime"}, optional
        A task of folktables on the American Community Survey, fetched and kept likewise.
    year : int, optional
        Of the survey; 2018 without it.
    horizon : {"1-Year", "5-Year"}, optional
        Of the survey; one year without it.
    states : tuple of str
        Of the survey, by two letters; all without it.
    scikit_learn : {"breast_cancer", "digits", "iris", "wine"}, optional
        A data set that comes with scikit-learn; its class is the column ``target``.
    roles : Roles or {"all", "part"}
        The roles of the columns, or a rule: every column but the target is a quasi-identifier, or
        the fewest that tell more than 99 % of the records apart. The target is then sensitive.
    target : str, optional
        The column that models predict; that of the task for folktables.
    hierarchies : str, optional
        A folder with a file COLUMN.csv for each column that has a hierarchy, for a built-in study
        that generalizes; found as a path is. The steps of a study's file name their own.
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
    openml_target: str | None = None
    folktables: str | None = None
    year: int | None = None
    horizon: str | None = None
    states: tuple[str, ...] = ()
    hierarchies: str | None = None
    rows: int | None = None
    held_out: float | None = None
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    floats: bool = False

    def __post_init__(self) -> None:
        if self.target is None and self.folktables in TASKS:
            object.__setattr__(self, "target", TASKS[self.folktables])

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> TableSource:
        """A source from an entry of a study's file."""
        for part in given:
            if part not in _ENTRIES:
                raise PlanError(
                    f"A table of a study has no part '{part}'. {did_you_mean(part, _ENTRIES)}"
                )
        entry = dict(given)
        for part in _LISTS:
            entry[part] = _names(part, entry.get(part, ()))
        _check_origin(entry)
        entry.setdefault("name", _name_of(entry))
        roles = entry.get("roles", "all")
        entry["roles"] = Roles.from_dict(roles) if isinstance(roles, Mapping) else roles
        if not isinstance(entry["roles"], Roles) and roles not in _RULES:
            raise PlanError(
                f"The roles of a table are a table of roles, or a rule: 'all' or 'part'; got "
                f"{roles!r}."
            )
        rows, share = entry.get("rows"), entry.get("held_out")
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise PlanError(f"The 'rows' of a table are a whole number ≥ 1; got {rows!r}.")
        if share is not None and (not isinstance(share, float) or not 0 < share < 1):
            raise PlanError(f"The share 'held_out' of a table is between 0 and 1; got {share!r}.")
        return cls(**entry)

    def to_dict(self) -> dict[str, Any]:
        """The source as plain data: what its results depend on, besides the file itself."""
        given = {part: getattr(self, part) for part in _ENTRIES}
        if isinstance(self.roles, Roles):
            given["roles"] = self.roles.to_dict()
        for part in _LISTS:
            given[part] = list(given[part]) or None
        given["floats"] = self.floats or None
        return {part: value for part, value in given.items() if value is not None}

    @property
    def elsewhere(self) -> Elsewhere | None:
        """What is asked for where there is no file."""
        if self.openml is not None:
            return OpenML(self.openml)
        if self.folktables is not None:
            return Folktables.checked(self.folktables, self.year, self.horizon, self.states)
        return None

    def file(self, folder: Path | None = None) -> Path | None:
        """Where the file is, fetched if need be; None where scikit-learn has the table itself."""
        found, missing = self.found(folder)
        if missing:
            raise InputError(not_found({self.name: missing}))
        return found

    def found(self, folder: Path | None = None) -> tuple[Path | None, str]:
        """Where the file is, and what there is not if it is nowhere."""
        lacking = []
        if self.path is not None:
            place = find(self.path, folder, Path.is_file)
            if place is not None:
                return place, ""
            lacking.append(f"file '{self.path}'")
        if self.scikit_learn is not None:
            return None, ""
        if self.elsewhere is not None:
            kept, why = kept_file(self.elsewhere)
            if kept is not None:
                return kept, ""
            lacking.append(why)
        return None, "; ".join(lacking)

    def fingerprint(self, folder: Path | None = None) -> str:
        """A hash of the data, so that results of other data are not taken for these."""
        file = self.file(folder)
        if file is None:
            return f"scikit-learn:{self.scikit_learn}"
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
        owned = table
        if isinstance(self.roles, Roles) and (self.roles.unit or self.roles.household):
            whose = Roles(unit=self.roles.unit, household=self.roles.household)
            owned = table.with_roles(whose)
        apart = drawn_whole(owned, self.held_out, "held out")
        kept = table.keep(~apart)
        roles = self._roles_of(kept)  # a rule sees what is masked, and nothing else
        return kept.with_roles(roles), table.keep(apart).with_roles(roles)

    def _load(self, folder: Path | None) -> Table:
        file = self.file(folder)
        table = _from_scikit_learn(str(self.scikit_learn)) if file is None else read(file)
        theirs = self.openml_target
        if theirs in table.columns and self.target not in (None, *table.columns):
            table = renamed(table, {str(theirs): str(self.target)})
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


def _check_origin(entry: Mapping[str, Any]) -> None:
    """One place at least that a table comes from, and nothing about another one."""
    number, task, shipped = (entry.get(part) for part in ("openml", "folktables", "scikit_learn"))
    if all(entry.get(part) is None for part in ("path", "openml", "folktables", "scikit_learn")):
        raise PlanError(
            "A table of a study needs a path, the number of a set at OpenML, a task of folktables, "
            "or the name of one that comes with scikit-learn."
        )
    if sum(part is not None for part in (number, task, shipped)) > 1:
        raise PlanError(
            "A table of a study comes from one of openml, folktables and scikit_learn; give one."
        )
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise PlanError(f"A set at OpenML is named by its number; got {number!r}.")
    if shipped is not None and shipped not in _SHIPPED:
        raise PlanError(
            f"No table '{shipped}' comes with scikit-learn. {did_you_mean(shipped, _SHIPPED)}"
        )
    if task is not None:
        Folktables.checked(task, entry.get("year"), entry.get("horizon"), entry["states"])
    for part in ("year", "horizon", "states"):
        if task is None and entry.get(part):
            raise PlanError(f"The '{part}' of a table belongs to folktables, and none is named.")


def _name_of(entry: Mapping[str, Any]) -> str:
    """What a table without a name is called."""
    if entry.get("path") is not None:
        return Path(entry["path"]).stem
    if entry.get("openml") is not None:
        return f"openml-{entry['openml']}"
    return str(entry.get("folktables") or entry.get("scikit_learn"))


def _names(part: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PlanError(f"The part '{part}' of a table is a list of names; got {given!r}.")
    return tuple(given)


@lru_cache(maxsize=256)
def _hashed(path: str, modified: int, changed: int) -> str:
    """The hash of a file, computed once for each state of it."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def drawn_whole(table: Table, share: float, purpose: str) -> npt.NDArray[np.bool_]:
    """A share of the rows, the same ones every time; of persons or households, who stay whole."""
    together = table.together
    if together is None:
        return chosen_rows(len(table), max(1, round(share * len(table))), purpose)
    groups, member = np.unique(together, return_inverse=True)
    return chosen_rows(len(groups), max(1, round(share * len(groups))), purpose)[member]


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
