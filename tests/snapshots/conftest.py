"""What every recorded run has: keys from its own name, and a clock that ticks by being read."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from shoal.errors import ShoalWarning

Fixed = Callable[[str], AbstractContextManager[list[str]]]


@pytest.fixture(scope="session")
def record() -> bool:
    """Whether outcomes are put on record, by SHOAL_RECORD=1, and not compared."""
    return os.environ.get("SHOAL_RECORD", "") not in ("", "0")


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> Fixed:
    """A block under keys of a name, whatever the test is called and wherever it is.

    Searches that go on for a time see a clock of their own: a thousandth of a second passes
    whenever it is read. The block gives the classes of the warnings that were given.
    """

    @contextmanager
    def under(name: str) -> Iterator[list[str]]:
        calls, ticks, said = itertools.count(), itertools.count(1), []

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
