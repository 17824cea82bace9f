"""Tables from elsewhere: fetched once, kept as a file, and read as any other file from then on.

OpenML is asked through scikit-learn, and the American Community Survey through folktables. What
they give is kept as Parquet in the folder ``shoal`` of scikit-learn's data home, so that workers
read it quickly, a second run needs no network, and the hash of the file names its content. A file
of the same name in the folder that ``SHOAL_DATA`` names is taken before.
"""

from __future__ import annotations

import io
import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.error import HTTPError, URLError

import numpy as np
import numpy.typing as npt

from shoal.errors import MissingExtra, quoted
from shoal.table import Table, records_as_parquet

#: The environment variable that names the folder of tables.
DATA_VARIABLE: Final = "SHOAL_DATA"
_MOST_REASONS: Final = 12  # in one sentence; of more tables the names must do


def data_folder() -> Path | None:
    """The folder of tables, if one is named."""
    data = os.environ.get(DATA_VARIABLE)
    return Path(data) if data else None


def kept_folder() -> Path:
    """Where what ``shoal study fetch`` makes is kept."""
    return data_folder() or data_home() / "shoal"


def find(
    path: str, folder: Path | None = None, fits: Callable[[Path], bool] = Path.exists
) -> Path | None:
    """A file or folder: as it is, here, beside the study, where ``SHOAL_DATA`` says, or kept."""
    places = (Path.cwd(), folder, data_folder(), data_home() / "shoal")
    found = (place / path for place in places if place is not None)  # an absolute path stays so
    return next((place for place in found if fits(place)), None)


def not_found(missing: Mapping[str, str]) -> str:
    """One sentence about all tables that are nowhere, by name, a few with what there is not."""
    reasons: dict[str, list[str]] = {}
    for name, reason in missing.items():
        reasons.setdefault(reason, []).append(name)
    if len(reasons) > _MOST_REASONS:
        told = quoted(missing, len(missing))
    else:
        told = ", ".join(f"{quoted(names)} ({reason})" for reason, names in reasons.items())
    subject = "The table {} was" if len(missing) == 1 else "The tables {} were"
    return (
        f"{subject.format(told)} not found, neither here, nor beside the study, nor in the folder "
        f"that the environment variable {DATA_VARIABLE} names; put what is missing there."
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
#: Columns of the survey that count or measure; the others are codes, whatever digits they have.
_QUANTITIES: Final = ("AGEP", "JWMNP", "PINCP", "POVPIP", "SCHL", "WKHP")
#: Whom this process could not reach.
_UNREACHABLE: Final[set[type]] = set()


class _UnexpectedContent(Exception):
    """What was fetched is not what was asked for; the text says why."""


@dataclass(frozen=True)
class OpenML:
    """A data set at OpenML, by its number."""

    number: int

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"set {self.number} at OpenML"

    @property
    def file_name(self) -> str:
        """What the kept file is called."""
        return f"openml-{self.number}.parquet"

    def write(self, path: Path) -> None:
        """Fetch it, through scikit-learn's own copy, and write it down."""
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
                _UNREACHABLE.add(OpenML)  # other sets need not be waited for
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
        """What messages call it."""
        where = ", ".join(self.states) or "all states"
        return f"{self.task} of folktables, {self.year}, {self.horizon}, {where}"

    @property
    def file_name(self) -> str:
        """What the kept file is called."""
        return "-".join((self.task, str(self.year), self.horizon, *self.states)) + ".parquet"

    def write(self, path: Path) -> None:
        """Fetch what is not there of the survey's files, and write the task's table down.

        State by state: the survey has hundreds of columns, and a task has twenty.
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
                    raise _UnexpectedContent(
                        "the survey of that year lacks a column of the task"
                    ) from None
        values = np.concatenate([part for part, _ in parts])
        columns = {name: _plain(name, values[:, i]) for i, name in enumerate(problem.features)}
        columns[problem.target] = np.concatenate([target for _, target in parts])
        with path.open("wb") as stream:
            records_as_parquet(stream, columns)

    def _fetch(self, folder: Path, state: str) -> None:
        """The survey's file of one state: whole in its place, or not there."""
        from folktables.load_acs import initialize_and_download

        given = (state, str(self.year), self.horizon, "person")
        try:
            initialize_and_download(str(folder), *given, download=False)
        except FileNotFoundError:
            with TemporaryDirectory(dir=folder) as fresh:
                found = Path(initialize_and_download(fresh, *given, download=True))
                found.replace(folder / found.name)


Elsewhere = OpenML | Folktables


def kept_file(wanted: Elsewhere) -> tuple[Path | None, str]:
    """The file of a table from elsewhere, fetched where it is not there; or why there is none."""
    given = data_folder()
    if given is not None and (given / wanted.file_name).is_file():
        return given / wanted.file_name, ""
    try:
        kept = data_home() / "shoal" / wanted.file_name
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None, f"{wanted.label}, for which scikit-learn's data home cannot be written"
    if kept.is_file():
        return kept, ""
    reason = _why_not_fetched(wanted, kept)
    return (None, reason) if reason else (kept, "")


@lru_cache(maxsize=128)
def _why_not_fetched(wanted: Elsewhere, kept: Path) -> str:
    """Fetch a table; the reason where that fails, which is not tried again by this process."""
    part = kept.with_name(f".{os.getpid()}-{kept.name}")  # complete, or not there
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a library says of its retries
            wanted.write(part)
        part.replace(kept)
    except MissingExtra:
        return f'{wanted.label}, which needs: pip install "shoal[study]"'
    except _UnexpectedContent as why:
        return f"{wanted.label}: {why}"
    except (OSError, ValueError, LookupError):  # no network, no such set, a damaged answer
        return f"{wanted.label}, which could not be fetched"
    finally:
        part.unlink(missing_ok=True)
    return ""


def survey_folder() -> Path:
    """Where the survey's files are, in the layout of folktables: YEAR/HORIZON/psam_pNN.csv."""
    given = data_folder()
    if given is not None and (given / "folktables").is_dir():
        return given / "folktables"
    return data_home() / "folktables"


def data_home() -> Path:
    """scikit-learn's folder of data, by its own rule; it is not made here."""
    given = os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data"
    return Path(given).expanduser()


@contextmanager
def _silent_and_unseeded() -> Iterator[None]:
    """folktables prints what it fetches, and seeds the generator that all of Python shares."""
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
