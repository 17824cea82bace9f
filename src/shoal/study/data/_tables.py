"""The tables of a study: where they are, and the roles of their columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, PlanError, did_you_mean, quoted
from shoal.parameters import (
    Fits,
    Flag,
    Integer,
    OneOf,
    Parametrized,
    Real,
    Text,
    check_parameter_name,
)
from shoal.randomness import SecretStream
from shoal.study.data._fetching import (
    FIRST_YEAR,
    HORIZONS,
    STATES,
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
from shoal.workflow._plan import read_toml

_SHIPPED = ("breast_cancer", "digits", "iris", "wine")
_ORIGINS = ("path", "openml", "folktables", "scikit_learn")


def _names(words: str = "a list of names", known: Sequence[str] = ()) -> Fits:
    """A list of names, or of known names only."""

    def accepts(value: Any) -> bool:
        listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        return listed and all(isinstance(n, str) and (not known or n in known) for n in value)

    return Fits(words, accepts, read=lambda v: tuple(dict.fromkeys(v)) if accepts(v) else v)


NAMES = _names()
_ROLES_OR_RULE = Fits(
    "a table of roles, or a rule: 'all' or 'part'",
    lambda value: isinstance(value, Roles) or value in ("all", "part"),
    read=lambda value: Roles.from_dict(value) if isinstance(value, Mapping) else value,
)


@dataclass(frozen=True)
class TableSource(Parametrized):
    """One table of a study.

    Parameters
    ----------
    name : str
        Its name in results and figures.
    path : str, optional
        A file: here, next to the study, or in the folder ``SHOAL_DATA``.
    openml : int, optional
        The number of a data set at OpenML; it is fetched and kept if there is no such file.
    openml_target : str, optional
        The target's name at OpenML, if it differs from the name here.
    folktables : {"ACSIncome", "ACSPublicCoverage", "ACSMobility", "ACSEmployment", \
"ACSTravelTime"}, optional
        A task of folktables on the American Community Survey; it is also fetched and kept.
    year : int, optional
        The year of the survey; default: 2018.
    horizon : {"1-Year", "5-Year"}, optional
        The horizon of the survey; default: one year.
    states : tuple of str
        The states of the survey, as two letters; default: all.
    scikit_learn : {"breast_cancer", "digits", "iris", "wine"}, optional
        A data set that comes with scikit-learn; its class is the column ``target``.
    roles : Roles or {"all", "part"}
        The roles of the columns, or a rule for the quasi-identifiers: every column except the
        target (``"all"``), or the fewest columns that distinguish more than 99 % of the records
        (``"part"``). With a rule, the target is sensitive.
    target : str, optional
        The column that models predict; default: that of the folktables task.
    hierarchies : str, optional
        For a built-in study that generalizes: a folder with a file COLUMN.csv for each column that
        has a hierarchy, found in the same places as ``path``. In a study's file, the steps name
        their hierarchies.
    rows : int, optional
        The number of rows to take. A public hash chooses them, always the same ones.
    held_out : float, optional
        The share of these rows that is held out before masking. Measures with the option
        ``holdout = true`` or ``control = true`` get these rows.
    only : tuple of str
        The columns to take; default: all.
    without : tuple of str
        Columns to leave out.
    floats : bool
        Read whole numbers as floats, so that means are not rounded.
    """

    called: ClassVar[str] = "a table of a study"

    name: Annotated[str, Text()]
    path: Annotated[str | None, Text()] = None
    openml: Annotated[int | None, Integer(1)] = None
    scikit_learn: Annotated[str | None, OneOf(_SHIPPED)] = None
    roles: Annotated[Roles | str, _ROLES_OR_RULE] = "all"
    target: Annotated[str | None, Text()] = None
    openml_target: Annotated[str | None, Text()] = None
    folktables: Annotated[str | None, OneOf(tuple(TASKS))] = None
    year: Annotated[int | None, Integer(FIRST_YEAR)] = None
    horizon: Annotated[str | None, OneOf(HORIZONS)] = None
    states: Annotated[tuple[str, ...], _names("a list of states such as 'CA' or 'PR'", STATES)] = ()
    hierarchies: Annotated[str | None, Text()] = None
    rows: Annotated[int | None, Integer(1)] = None
    held_out: Annotated[float | None, Real(above=0, below=1)] = None
    only: Annotated[tuple[str, ...], NAMES] = ()
    without: Annotated[tuple[str, ...], NAMES] = ()
    floats: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is None and self.folktables is not None:
            object.__setattr__(self, "target", TASKS[self.folktables])

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> TableSource:
        """A source from an entry of a study's file."""
        for part in given:
            check_parameter_name(cls, part, called="table of a study")
        _check_origin(given)
        return cls.from_params({"name": _name_of(given), **given}, called="table of a study")

    def to_dict(self) -> dict[str, Any]:
        """The source as plain data: everything its results depend on, except the file itself."""
        given = self.get_params()
        if isinstance(self.roles, Roles):
            given["roles"] = self.roles.to_dict()
        for part in ("states", "only", "without"):
            given[part] = list(given[part]) or None
        given["floats"] = self.floats or None
        return {part: value for part, value in given.items() if value is not None}

    @property
    def elsewhere(self) -> Elsewhere | None:
        """What to fetch if there is no file."""
        if self.openml is not None:
            return OpenML(self.openml)
        if self.folktables is not None:
            year, horizon = self.year or 2018, self.horizon or HORIZONS[0]
            return Folktables(self.folktables, year, horizon, self.states)
        return None

    def file(self, folder: Path | None = None) -> Path | None:
        """The file, fetched if needed; None if scikit-learn ships the table."""
        found, missing = self.found(folder)
        if missing:
            raise InputError(not_found({self.name: missing}))
        return found

    def found(self, folder: Path | None = None) -> tuple[Path | None, str]:
        """The file, and what is missing if there is none."""
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
        """A hash of the data, so that results of other data are not mistaken for these."""
        file = self.file(folder)
        return f"scikit-learn:{self.scikit_learn}" if file is None else content_hash(file)

    def load(self, folder: Path | None = None) -> Table:
        """The table to mask, with its roles."""
        return self.load_divided(folder)[0]

    def load_divided(self, folder: Path | None = None) -> tuple[Table, Table | None]:
        """The table to mask, and the held-out rows, which stay unmasked."""
        table = self._load(folder)
        if self.held_out is None:
            return table.with_roles(self._roles_of(table)), None
        owned = table
        if isinstance(self.roles, Roles) and (self.roles.unit or self.roles.household):
            owned = table.with_roles(Roles(unit=self.roles.unit, household=self.roles.household))
        apart = drawn_whole(owned, self.held_out, "held out")
        kept = table.keep(~apart)
        roles = self._roles_of(kept)  # a rule only looks at the rows to mask
        return kept.with_roles(roles), table.keep(apart).with_roles(roles)

    def row_count(self, folder: Path | None = None) -> int:
        """The number of rows, including those held out."""
        return len(self._load(folder))

    def _load(self, folder: Path | None) -> Table:
        file = self.file(folder)
        table = _from_scikit_learn(str(self.scikit_learn)) if file is None else read(file)
        original_name = self.openml_target
        if original_name in table.columns and self.target not in (None, *table.columns):
            table = renamed(table, {str(original_name): str(self.target)})
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
        """The fewest columns, target excluded, that distinguish more than 99 % of records."""
        return identifying_columns(table, [name for name in table.columns if name != self.target])


def _check_origin(entry: Mapping[str, Any]) -> None:
    """Require one origin of a table, and no options of another."""
    named = [part for part in _ORIGINS if entry.get(part) is not None]
    if not named:
        raise PlanError(
            "A table of a study needs one of: path, openml (the number of a data set), folktables "
            "(a task), or scikit_learn (a data set that it ships)."
        )
    if len([part for part in named if part != "path"]) > 1:
        raise PlanError(
            "A table of a study has one origin: openml, folktables or scikit_learn; name only one."
        )
    for part in ("year", "horizon", "states"):
        if "folktables" not in named and entry.get(part):
            raise PlanError(f"The '{part}' of a table needs a folktables task; none is named.")


def _name_of(entry: Mapping[str, Any]) -> str:
    """The name of a table that does not state one."""
    if entry.get("path") is not None:
        return Path(str(entry["path"])).stem
    if entry.get("openml") is not None:
        return f"openml-{entry['openml']}"
    return str(entry.get("folktables") or entry.get("scikit_learn"))


def content_hash(path: Path) -> str:
    """The hash of a file, computed once per version."""
    stat = path.stat()
    return _hashed(str(path.resolve()), stat.st_mtime_ns, stat.st_ctime_ns)


@lru_cache(maxsize=1024)
def _hashed(path: str, modified: int, changed: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def drawn_whole(table: Table, share: float, purpose: str) -> npt.NDArray[np.bool_]:
    """A share of the rows, always the same ones; persons and households stay whole."""
    together = np.arange(len(table)) if table.together is None else table.together
    groups, member = np.unique(together, return_inverse=True)
    return chosen_rows(len(groups), max(1, round(share * len(groups))), purpose)[member]


def chosen_rows(rows: int, count: int, purpose: str) -> npt.NDArray[np.bool_]:
    """A number of rows, always the same ones."""
    chosen = np.zeros(rows, dtype=bool)
    chosen[SecretStream.public(purpose).choose(rows, count)] = True
    return chosen


def _from_scikit_learn(name: str) -> Table:
    from sklearn import datasets

    data = getattr(datasets, f"load_{name}")()
    values = np.column_stack((data.data, data.target))
    return Table(frame_of_array(values, [*map(str, data.feature_names), "target"]))


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
    """The tables at a path, to run a study on.

    Parameters
    ----------
    path : path
        A file with a table, a folder of such files, or a TOML file with ``[[tables]]``. Such a
        file declares the roles itself, as the file of a study does.
    target : str, optional
        The column that models predict.
    quasi_identifiers : list of str
        The columns that an intruder may know; default: all except the target.
    sensitive : list of str
        The columns that an intruder wants to learn; default: the target.
    without : list of str
        Columns to leave out, for example people's names and numbers.
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
    declared: dict[str, Any] = {
        "target": target,
        "without": list(without) or None,
        "hierarchies": None if hierarchies is None else _absolute(os.fspath(hierarchies)),
    }
    if quasi_identifiers or sensitive:
        secret = list(sensitive) or ([] if target is None else [target])
        roles = Roles(quasi_identifiers=quasi_identifiers, sensitive=secret)
        declared["roles"] = roles.to_dict()
    declared = {part: value for part, value in declared.items() if value is not None}
    place = Path(path)
    if place.suffix == ".toml":
        if declared:
            raise InputError(
                f"The file '{path}' declares the roles of its tables; write them there, not in the "
                "call."
            )
        return _listed_in(place)
    return sources_of({"folder" if place.is_dir() else "path": os.fspath(place), **declared})


def sources_of(entry: Mapping[str, Any], folder: Path | None = None) -> list[TableSource]:
    """The tables of one entry of a study's file: one, or all in a folder."""
    if "folder" not in entry:
        return [TableSource.from_dict(entry)]
    common = {part: value for part, value in entry.items() if part != "folder"}
    for part in ("name", *_ORIGINS):
        if part in common:
            raise PlanError(f"A folder of tables cannot have '{part}'; list the tables one by one.")
    near = None if folder is None else folder / str(entry["folder"])  # next to the study
    place = near if near is not None and near.is_dir() else find(str(entry["folder"]))
    paths = sorted(place.iterdir()) if place is not None and place.is_dir() else []
    tables = [path for path in paths if path.suffix in _ENDINGS]
    if not tables:
        raise InputError(
            f"There is no table in the folder '{entry['folder']}'; the name of a table ends in "
            f"{quoted(_ENDINGS)}."
        )
    return [TableSource.from_dict({"path": str(path.resolve()), **common}) for path in tables]


def _listed_in(path: Path) -> list[TableSource]:
    """The tables listed in a TOML file; the files it names may lie next to it."""
    given = read_toml(path, "file of tables")
    entries = given.get("tables")
    listed = isinstance(entries, list) and all(isinstance(one, Mapping) for one in entries)
    if not entries or not listed:
        raise PlanError(f"The file '{path}' lists no tables; write [[tables]] above each.")
    sources = []
    for entry in entries:
        paths = {p: _absolute(entry[p], path.parent) for p in ("path", "hierarchies") if p in entry}
        sources += sources_of({**entry, **paths}, path.parent)
    return sources


def _absolute(path: Any, folder: Path | None = None) -> Any:
    """The absolute path if there is such a file; else the path as it is."""
    found = find(path, folder) if isinstance(path, str) else None
    return path if found is None else str(found.resolve())
