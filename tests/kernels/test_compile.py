"""Kernels work where nothing can be written: a read-only package, no home, a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import shoal

CODE = """
import numpy as np
from shoal.kernels.grouping import group
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
