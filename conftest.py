"""Fixtures for tests and doctests, such as keys that are the same in every run."""

from __future__ import annotations

import gc
import hashlib
import itertools
import os
import signal

import pytest

# Each job of the suite has one processor, on which threads of libraries would wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(variable, "1")

# A run in the background, or under nohup, ignores these signals, and so would every process that a
# test starts and stops.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

#: Every run of the suite is the same; any word here selects other draws and other examples.
EXPLORE = os.environ.get("SHOAL_EXPLORE", "")


def pytest_collection_finish() -> None:
    """Loaded modules and collected tests stay until the end, so exclude them from collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def compiled_kernels() -> None:
    """Run kernels compiled, even for small tables: with thousands of them, compiling pays off.

    The tests of kernels try both ways.
    """
    from shoal.kernels import compile as compiling

    compiling.small_work = 0


@pytest.fixture(autouse=True)
def repeatable_entropy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive every key from the test's name, so that no test passes or fails by luck.

    A test marked ``operating_system_entropy`` gets real entropy.
    """
    if request.node.get_closest_marker("operating_system_entropy"):
        return
    calls = itertools.count()
    # an example of the installed wheel gets the same keys as in the working tree
    name = request.node.nodeid.rpartition("shoal/")[2]

    def key(length: int) -> bytes:
        assert length == 32
        return hashlib.sha256(f"{EXPLORE}/{name}/{next(calls)}".encode()).digest()

    monkeypatch.setattr("shoal.randomness._entropy", key)
