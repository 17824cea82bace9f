"""What every test may use: frames of each kind, the shared tables, hypothesis' settings."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from shoal.errors import ShoalWarning

from .parts.warm_process import WarmProcess

REPOSITORY = Path(__file__).resolve().parents[1]

# No deadline: the first call compiles a kernel.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile("explore" if os.environ.get("SHOAL_EXPLORE") else "repeatable")


@dataclass(frozen=True)
class FrameKind:
    """Turns columns into a frame of one library, and back into columns to compare.

    ``frame({"age": [1, None]})`` makes a frame; ``frame.columns(made)`` gives the columns back
    as lists in which a missing value is None; ``frame.type`` is the class of what is made.
    """

    name: str
    library: Any

    @property
    def type(self) -> type:
        return self.library.Table if self.name == "pyarrow" else self.library.DataFrame

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        if self.name == "pyarrow":
            return self.library.table(dict(columns))
        if self.name == "polars":
            return self.library.DataFrame(dict(columns))
        made = self.library.DataFrame(
            {name: _pandas_column(self.library, values) for name, values in columns.items()}
        )
        # Labels that are not positions: code that confuses the two fails here.
        return made.set_axis(range(1000 + len(made), 1000, -1), axis="index")

    def columns(self, made: Any) -> dict[str, list[Any]]:
        if self.name == "pyarrow":
            return made.to_pydict()
        if self.name == "polars":
            return made.to_dict(as_series=False)
        missing = self.library.isna
        return {
            name: [None if missing(value) else value for value in made[name].tolist()]
            for name in made.columns
        }


def _pandas_column(pandas: Any, values: Sequence[Any]) -> Any:
    """A column as pandas users have it; whole numbers with gaps stay whole."""
    gaps = any(value is None for value in values)
    whole = all(value is None or isinstance(value, (bool, int)) for value in values)
    return pandas.array(list(values)) if gaps and whole else list(values)


@pytest.fixture(params=["polars", "pandas", "pyarrow"])
def frame(request: pytest.FixtureRequest) -> FrameKind:
    """One kind of data frame after the other; a kind that is not installed is skipped."""
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return FrameKind(request.param, library)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public tables: SHOAL_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("SHOAL_DATA") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the public tables are not here (SHOAL_DATA can name their folder)")
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the working tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmProcess]:
    """Runs scripts without the time that libraries take to load."""
    process = WarmProcess()
    yield process
    process.close()


Fixed = Callable[[str], AbstractContextManager[list[str]]]


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> Fixed:
    """A block under keys of a name, whatever the test is called and wherever it is.

    Searches that go on for a time see a clock of their own: a thousandth of a second passes
    whenever it is read. The block gives the classes of the warnings that were given.
    """

    @contextmanager
    def under(name: str) -> Iterator[list[str]]:
        calls, ticks = itertools.count(), itertools.count(1)
        said: list[str] = []

        def key(length: int) -> bytes:
            assert length == 32
            return hashlib.sha256(f"recorded/{name}/{next(calls)}".encode()).digest()

        with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always", ShoalWarning)
            patch.setattr("shoal.randomness._entropy", key)
            patch.setattr(time, "monotonic", lambda: next(ticks) / 1000)
            yield said
        said += [one.category.__name__ for one in given if issubclass(one.category, ShoalWarning)]

    return under
