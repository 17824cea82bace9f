"""What tests and the examples in docstrings share: keys that are the same in every run."""

from __future__ import annotations

import gc
import hashlib
import itertools
import os

import pytest

# Each job of the suite has one processor; threads of libraries would wait for each other on it.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(variable, "1")

#: The suite says the same twice; a word here makes it try other draws and other examples.
EXPLORE = os.environ.get("SHOAL_EXPLORE", "")


def pytest_collection_finish() -> None:
    """What is loaded and collected stays to the end: no garbage is looked for in it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def compiled_kernels() -> None:
    """Kernels run compiled, however small the work: thousands of small tables pay it back.

    The tests of kernels try both ways.
    """
    from shoal.kernels import compile as compiling

    compiling.small_work = 0


@pytest.fixture(autouse=True)
def repeatable_entropy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key is drawn from the test's name, so that no test passes or fails by luck.

    A test marked ``operating_system_entropy`` gets the real thing.
    """
    if request.node.get_closest_marker("operating_system_entropy"):
        return
    calls = itertools.count()
    # An example of the installed wheel draws what the same example of the working tree draws.
    name = request.node.nodeid.rpartition("shoal/")[2]

    def key(length: int) -> bytes:
        assert length == 32
        return hashlib.sha256(f"{EXPLORE}/{name}/{next(calls)}".encode()).digest()

    monkeypatch.setattr("shoal.randomness._entropy", key)
