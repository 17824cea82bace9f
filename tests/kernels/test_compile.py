"""Kernels work where nothing can be written: a read-only package, no home, a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import shoal
from shoal.kernels import compile as compiling
from shoal.kernels.compile import always_compiled, is_small, njit, python_if_small

CODE = """
import numpy as np
from shoal.kernels import compile
from shoal.kernels.grouping import group
compile.small_work = 0
assert group(np.array([7, 7, 9], dtype=np.uint64))[1].tolist() == [2, 1]
"""


def run(environment, cwd):
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_without_a_place_for_the_cache(tmp_path):
    """numba finds no folder: the one beside the file and the user's are both no folders."""
    copy = tmp_path / "src" / "shoal"
    shutil.copytree(Path(shoal.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for shelf in {file.parent for file in (copy / "kernels").rglob("*.py")}:
        (shelf / "__pycache__").write_text("a file where numba wants a folder")
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("a file where a home should be")
    run({"PYTHONPATH": str(tmp_path / "src"), "HOME": str(nowhere), "XDG_CACHE_HOME": ""}, tmp_path)


def test_with_a_place_that_takes_nothing(tmp_path):
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the cache should be")
    run({"NUMBA_CACHE_DIR": str(blocked)}, tmp_path)


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
