"""What is installed is the whole package, and none of its modules needs an extra to be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import shoal

SOURCE = Path(__file__).resolve().parents[1] / "src" / "shoal"
INSTALLED = Path(shoal.__file__).resolve().parent
pytestmark = pytest.mark.skipif(SOURCE == INSTALLED, reason="the working tree is what is tested")

IMPORTS = """
import importlib, pkgutil, shoal
for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
    importlib.import_module(module.name)
"""


def files_of(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder): path.read_bytes()
        for path in paths
        if "__pycache__" not in path.parts
    }


def test_every_file_is_there_as_it_is_in_the_source():
    source, installed = files_of(SOURCE), files_of(INSTALLED)
    assert {path for path, content in source.items() if installed.get(path) != content} == set()


def test_every_module_is_imported_without_extras():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
