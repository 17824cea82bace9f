"""Kernels are kept where that is possible, found again, and not compiled for small work."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import shoal
from shoal.kernels import compile as compiling
from shoal.kernels import kept
from shoal.kernels.compile import always_compiled, is_small, njit, python_if_small

CODE = """
import sys
import numpy as np
from shoal.kernels import compile, kept
compile.small_work = 0
closed, takes_files = sys.argv[1:], kept._takes_files
kept._takes_files = lambda folder: str(folder) not in closed and takes_files(folder)
from shoal.kernels.grouping import _group_direct, group
assert group(np.array([7, 7, 9], dtype=np.uint64))[1].tolist() == [2, 1]
print(sum(_group_direct.stats.cache_hits.values()))
"""


def found_by(environment, cwd, *closed):
    """How many kernels a process found compiled, with some folders that take no files."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, closed)],
        env={**os.environ, "NUMBA_CACHE_DIR": "", **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture
def package(tmp_path):
    """A copy of the package in which nothing is compiled."""
    copy = tmp_path / "src" / "shoal"
    shutil.copytree(Path(shoal.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def kept_in(folder):
    return sorted(file.name.partition("-")[0] for file in folder.rglob("*.nbi"))


def test_without_a_place_for_the_cache(package, tmp_path):
    """Beside the source, at home and in the folder for temporary files is no room."""
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("a file where a folder should be")
    for shelf in {file.parent for file in (package / "kernels").rglob("*.py")}:
        (shelf / "__pycache__").write_text("a file where numba wants a folder")
    environment = {"PYTHONPATH": str(package.parent), "HOME": str(nowhere), "XDG_CACHE_HOME": ""}
    (tmp_path / f"shoal-{os.getuid()}").write_text("a file where a folder should be")
    assert found_by({**environment, "TMPDIR": str(tmp_path)}, tmp_path) == 0
    assert kept_in(tmp_path) == []


def test_with_a_place_that_takes_nothing(package, tmp_path):
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the cache should be")
    environment = {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(blocked)}
    assert found_by(environment, tmp_path) == 0
    assert kept_in(package) == ["grouping._group_direct"]


def test_a_package_that_cannot_be_written_to(package, tmp_path):
    beside, home = package / "kernels" / "__pycache__", tmp_path / "home"
    environment = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(home)}
    # What is compiled goes to the user's folder, and is found there.
    assert [found_by(environment, tmp_path, beside) for _ in range(2)] == [0, 1]
    assert kept_in(home) == ["grouping._group_direct"]
    assert kept_in(package) == []
    # What was compiled when the package could be written to is found beside the source.
    shutil.rmtree(home)
    assert found_by(environment, tmp_path) == 0
    assert kept_in(package) == ["grouping._group_direct"]
    assert found_by(environment, tmp_path, beside) == 1
    assert kept_in(home) == []
    # Another kernel has changed: whatever it may be called by is compiled again.
    with (package / "kernels" / "persons.py").open("a") as file:
        file.write("# changed\n")
    assert found_by(environment, tmp_path) == 0


def test_kernels_of_an_older_version_are_not_read(package, tmp_path):
    """They may name types in modules that are no more."""
    environment = {"PYTHONPATH": str(package.parent)}
    assert found_by(environment, tmp_path) == 0
    (index,) = package.rglob("*.nbi")
    index.write_bytes(pickle.dumps(numba.__version__, -1) + b"cshoal.kernels.gone\nPairs\n.")
    assert [found_by(environment, tmp_path) for _ in range(2)] == [0, 1]


def test_no_other_user_can_put_kernels_among_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = kept._temporary()
    assert folder.parent == tmp_path
    folder.chmod(0o777)
    with pytest.raises(PermissionError):
        kept._temporary()


@njit(cache=False)
def doubled(value):
    return value * np.uint64(2)


def totals():
    """A kernel that calls another, and how often it was compiled."""

    @python_if_small(lambda values: len(values))
    @njit(cache=False)
    def total(values):
        found = np.uint64(0)
        for value in values:
            found += doubled(value)
        return found

    return total


def test_small_work_is_left_to_python_until_it_adds_up(monkeypatch):
    monkeypatch.setattr(compiling, "small_work", 10)
    total, values = totals(), np.array([3, 2**63 + 1], np.uint64)
    for call in range(1, 5):
        assert total(values) == 8
        assert not total.kernel.signatures, call
    assert total(values) == 8  # the tenth value
    assert len(total.kernel.signatures) == 1


def test_always_compiled_ends_with_its_block(monkeypatch):
    monkeypatch.setattr(compiling, "small_work", 10)
    with always_compiled():
        assert not is_small(0)
    assert is_small(9)
    assert not is_small(10)
