"""What is installed is the whole package, and only the studio needs an extra to be imported."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import shoal

SOURCE = Path(__file__).resolve().parents[1] / "src" / "shoal"
INSTALLED = Path(shoal.__file__).resolve().parent
pytestmark = pytest.mark.skipif(SOURCE == INSTALLED, reason="the working tree is what is tested")

#: What is behind the door of the studio is imported when that is opened.
BEHIND = "shoal.app.studio."
IMPORTS = f"""
import importlib, pkgutil, shoal
for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
    if not module.name.startswith({BEHIND!r}):
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


@pytest.mark.skipif(find_spec("starlette") is not None, reason="the extra is installed")
def test_the_studio_names_its_extra(tmp_path):
    program = "from shoal.app.cli import main; main()"
    words = [sys.executable, "-c", program, "studio", "--no-browser"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert 'pip install ".[studio]"' in done.stderr  # from where the wheel was built
    assert list(tmp_path.iterdir()) == []
