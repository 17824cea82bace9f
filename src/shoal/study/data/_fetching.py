"""Tables from elsewhere: fetched once, kept as a file, and then read like any other file.

OpenML tables come through scikit-learn, and the American Community Survey through folktables. They
are kept as Parquet in the folder ``shoal`` of scikit-learn's data home, so that workers read them
quickly, a second run needs no network, and the hash of the file names its content. A file of the
same name in the folder ``SHOAL_DATA`` takes precedence. Some tables of built-in studies are in no
archive; ``shoal study fetch`` makes them from a file that somebody else keeps, see :class:`Origin`.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import tempfile
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError

import numpy as np
import numpy.typing as npt

from shoal.errors import MissingExtra, how_to_install, quoted
from shoal.table import Table, records_as_parquet

#: The environment variable that names the folder of tables.
DATA_VARIABLE: Final = "SHOAL_DATA"
_MOST_REASONS: Final = 12  # in one sentence; beyond that, only the names of the tables
_SECONDS: Final = 60
_MOST_BYTES: Final = 50_000_000


def data_folder() -> Path | None:
    """The folder of tables, if one is named."""
    data = os.environ.get(DATA_VARIABLE)
    return Path(data) if data else None


def find(
    path: str, folder: Path | None = None, fits: Callable[[Path], bool] = Path.exists
) -> Path | None:
    """Find a file or folder: here, next to the study, in ``SHOAL_DATA``, or among kept files."""
    places = (Path.cwd(), folder, data_folder(), data_home() / "shoal")
    paths = (place / path for place in places if place is not None)  # keeps an absolute path
    return next((candidate for candidate in paths if fits(candidate)), None)


def not_found(missing: Mapping[str, str]) -> str:
    """One sentence that names all missing tables and, if they are few, what was looked for."""
    reasons: dict[str, list[str]] = {}
    for name, reason in missing.items():
        reasons.setdefault(reason, []).append(name)
    if len(reasons) > _MOST_REASONS:
        names = quoted(missing, len(missing))
    else:
        names = ", ".join(f"{quoted(tables)} ({reason})" for reason, tables in reasons.items())
    subject = "The table {} was" if len(missing) == 1 else "The tables {} were"
    return (
        f"{subject.format(names)} not found: not here, not next to the study, and not in the "
        f"folder named by the environment variable {DATA_VARIABLE}. Put what is missing there."
    )


#: The tasks of folktables, each with the column that it predicts.
TASKS: Final = {
    "ACSIncome": "PINCP",
    "ACSPublicCoverage": "PUBCOV",
    "ACSMobility": "MIG",
    "ACSEmployment": "ESR",
    "ACSTravelTime": "JWMNP",
}
HORIZONS: Final = ("1-Year", "5-Year")
FIRST_YEAR: Final = 2014
STATES: Final = tuple(
    """AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE
NV NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY PR""".split()
)
#: Columns of the survey that count or measure; the others are codes, even if they have digits.
_QUANTITIES: Final = ("AGEP", "JWMNP", "PINCP", "POVPIP", "SCHL", "WKHP")
#: Services that this process could not reach.
_UNREACHABLE: Final[set[type]] = set()


class NotFetched(Exception):
    """Why a table is missing, in words."""


@dataclass(frozen=True)
class OpenML:
    """A data set at OpenML, by its number."""

    number: int

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"set {self.number} at OpenML"

    @property
    def file_name(self) -> str:
        """The name of the kept file."""
        return f"openml-{self.number}.parquet"

    def write(self, path: Path) -> None:
        """Fetch it through scikit-learn, and write it to a file."""
        from sklearn.datasets import fetch_openml

        if OpenML in _UNREACHABLE:
            raise OSError
        try:
            found = fetch_openml(
                data_id=self.number, as_frame=True, parser="auto", n_retries=1, delay=1.0
            )
        except ImportError:  # scikit-learn asks for pandas
            raise MissingExtra(self.label, "study") from None
        except URLError as error:
            if not isinstance(error, HTTPError):
                _UNREACHABLE.add(OpenML)  # do not wait for the other sets
            raise
        Table(found.frame).write(path, format="parquet")


@dataclass(frozen=True)
class Folktables:
    """A task of folktables on the public use microdata of the American Community Survey."""

    task: str
    year: int
    horizon: str
    states: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its name in messages."""
        where = ", ".join(self.states) or "all states"
        return f"{self.task} of folktables, {self.year}, {self.horizon}, {where}"

    @property
    def file_name(self) -> str:
        """The name of the kept file."""
        return "-".join((self.task, str(self.year), self.horizon, *self.states)) + ".parquet"

    def write(self, path: Path) -> None:
        """Fetch missing files of the survey, and write the table of the task.

        It works state by state: the survey has hundreds of columns, and a task has twenty.
        """
        try:
            import folktables
        except ImportError:
            raise MissingExtra(self.label, "study") from None
        folder = survey_folder() / str(self.year) / self.horizon
        folder.mkdir(parents=True, exist_ok=True)
        problem = getattr(folktables, self.task)
        survey = folktables.ACSDataSource(
            str(self.year), self.horizon, "person", root_dir=str(survey_folder())
        )
        parts = []
        with _silent_and_unseeded():
            for state in self.states or STATES:
                self._fetch(folder, state)
                try:
                    parts.append(problem.df_to_numpy(survey.get_data(states=[state]))[:2])
                except KeyError:
                    raise NotFetched(
                        "the survey of that year lacks a column that the task needs"
                    ) from None
        values = np.concatenate([part for part, _ in parts])
        columns = {name: _plain(name, values[:, i]) for i, name in enumerate(problem.features)}
        columns[problem.target] = np.concatenate([target for _, target in parts])
        with path.open("wb") as stream:
            records_as_parquet(stream, columns)

    def _fetch(self, folder: Path, state: str) -> None:
        """Fetch the survey's file for one state, completely or not at all."""
        from folktables.load_acs import initialize_and_download

        given = (state, str(self.year), self.horizon, "person")
        try:
            initialize_and_download(str(folder), *given, download=False)
        except FileNotFoundError:
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                found = Path(initialize_and_download(fresh, *given, download=True))
                found.replace(folder / found.name)


Elsewhere = OpenML | Folktables


def kept_file(wanted: Elsewhere) -> tuple[Path | None, str]:
    """The file of a table from elsewhere, fetched if it is missing; or why there is none."""
    given = data_folder()
    if given is not None and (given / wanted.file_name).is_file():
        return given / wanted.file_name, ""
    try:
        kept = data_home() / "shoal" / wanted.file_name
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None, f"{wanted.label}: scikit-learn's data home is not writable"
    if kept.is_file():
        return kept, ""
    reason = _why_not_fetched(wanted, kept)
    return (None, reason) if reason else (kept, "")


@lru_cache(maxsize=128)
def _why_not_fetched(wanted: Elsewhere, kept: Path) -> str:
    """Fetch a table, or return why that failed; this process does not try again."""
    part = kept.with_name(f".{os.getpid()}-{kept.name}")  # renamed when it is complete
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about retries
            wanted.write(part)
        part.replace(kept)
    except MissingExtra:
        return f"{wanted.label}, which needs the extra 'study': {how_to_install('study')}"
    except NotFetched as why:
        return f"{wanted.label}: {why}"
    except (OSError, ValueError, LookupError):  # no network, no such set, a damaged answer
        return f"{wanted.label}, which could not be fetched"
    finally:
        part.unlink(missing_ok=True)
    return ""


def survey_folder() -> Path:
    """The folder of the survey's files, in the layout of folktables: YEAR/HORIZON/psam_pNN.csv."""
    given = data_folder()
    if given is not None and (given / "folktables").is_dir():
        return given / "folktables"
    return data_home() / "folktables"


def data_home() -> Path:
    """scikit-learn's data folder, by its own rule; this does not create it."""
    given = os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data"
    return Path(given).expanduser()


@contextmanager
def _silent_and_unseeded() -> Iterator[None]:
    """Hide what folktables prints, and restore Python's shared generator, which it seeds."""
    state = random.getstate()
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        random.setstate(state)


def _plain(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column of the survey: whole numbers, or codes as text."""
    whole = np.rint(values.astype(np.float64)).astype(np.int64)
    if name in _QUANTITIES:
        return whole
    codes, places = np.unique(whole, return_inverse=True)
    return codes.astype(str)[places]


@dataclass(frozen=True)
class Origin:
    """A file kept by someone else, and what a study takes from it.

    Parameters
    ----------
    url : str
        The address of the file, a data frame saved by R.
    columns : sequence of str
        The columns to take, in this order.
    checksum : str
        The checksum of the names and values of these columns; see :func:`checksum`.
    licence : str
        The terms of the file.
    """

    url: str
    columns: Sequence[str] = field(repr=False)
    checksum: str = field(repr=False)
    licence: str

    @property
    def file_name(self) -> str:
        """The name of the file at its origin."""
        return self.url.rpartition("/")[2]


def fetch(name: str, path: str, origin: Origin) -> Path:
    """Make the file of a table from its origin.

    If the origin's own file already lies in the table's folder, it is used, so that it also works
    on a machine without a network.
    """
    target = (data_folder() or data_home() / "shoal") / path
    own = target.with_name(origin.file_name)
    content = own.read_bytes() if own.is_file() else _downloaded(name, origin, own)
    columns = _columns_of(name, content, origin)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=target.parent, suffix=".part")
    except OSError:
        raise NotFetched(
            f"The folder {target.parent} for the table '{name}' is not writable; name another one "
            f"in the environment variable {DATA_VARIABLE}."
        ) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            records_as_parquet(stream, columns)
        Path(part).replace(target)
    finally:
        Path(part).unlink(missing_ok=True)
    return target


def _downloaded(name: str, origin: Origin, own: Path) -> bytes:
    try:
        with urllib.request.urlopen(origin.url, timeout=_SECONDS) as answer:
            content: bytes = answer.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        raise NotFetched(
            f"The table '{name}' could not be fetched from {origin.url}; download this file, save "
            f"it as {own}, and run the same command again."
        ) from None
    return content


def _columns_of(name: str, content: bytes, origin: Origin) -> dict[str, list[Any]]:
    """The columns of the study, if their values are those that the study was made with."""
    for frame in _frames_in(content):
        if set(origin.columns) <= set(frame.columns):
            columns = {column: _whole(frame[column].tolist()) for column in origin.columns}
            if checksum(columns) == origin.checksum:
                return columns
    raise NotFetched(
        f"The file {origin.file_name} of the table '{name}' is not the one that the study was made "
        f"with: its checksum differs, so it is not used. Download it from {origin.url}."
    )


def _frames_in(content: bytes) -> list[Any]:
    """The data frames in a file saved by R; none if the file is damaged or of another kind."""
    try:
        import rdata
    except ImportError:
        raise MissingExtra("Reading a table saved by R", "study") from None
    if len(content) > _MOST_BYTES:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rdata.conversion.convert(rdata.parser.parse_data(content))
    except Exception:  # a damaged file can raise any error in the parser
        return []
    return [value for value in found.values() if hasattr(value, "columns")]


def _whole(values: Sequence[Any]) -> list[Any]:
    """Numbers as integers if all of them are whole."""
    if all(isinstance(each, (int, float)) and float(each).is_integer() for each in values):
        return [int(each) for each in values]
    return list(values)


def checksum(columns: Mapping[str, Sequence[Any]]) -> str:
    """A hash of the names and values of columns, independent of their file.

    Examples
    --------
    >>> checksum({"age": [30, 41]}) == checksum({"age": [30, 42]})
    False
    """
    digest = hashlib.sha256()
    for name, values in columns.items():
        for each in (name, *values, "\0"):
            digest.update(f"{each}\n".encode())
    return digest.hexdigest()
