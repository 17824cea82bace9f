"""The import contracts catch what they are there for.

``make lint`` shows that the house keeps them; here a violation is planted in a copy of the house
and must be reported, so that a contract that has become empty is noticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("importlinter", reason="import-linter is not installed")

PLANTED = [
    ("errors.py", "import shoal.parameters", "Imports point down only"),
    ("table/__init__.py", "import shoal.masking", "Imports point down only"),
    ("utility/__init__.py", "import shoal.risk", "Imports point down only"),
    ("workflow/__init__.py", "import shoal.app", "Imports point down only"),
    ("stray.py", "", "Imports point down only"),
    ("masking/__init__.py", "import shoal.risk", "Masking does not import risk"),
    ("kernels/__init__.py", "import polars", "Kernels know arrays"),
    ("masking/__init__.py", "import polars", "Only shoal.table knows data frames"),
    ("app/cli/__init__.py", "import pandas", "Only shoal.table knows data frames"),
    ("workflow/__init__.py", "import pyarrow.parquet", "Only shoal.table knows data frames"),
]


def check_imports(house):
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def house(repository, tmp_path):
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(repository / "src", tmp_path / "src", ignore=ignore)
    shutil.copy(repository / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_house_keeps_its_layers(house):
    done = check_imports(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("file", "line", "contract"), PLANTED)
def test_a_planted_violation_is_reported(house, file, line, contract):
    path = house / "src" / "shoal" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as module:
        module.write(f"\n{line}\n")
    done = check_imports(house)
    assert done.returncode == 1, done.stdout + done.stderr
    broken = [row for row in done.stdout.splitlines() if "BROKEN" in row]
    assert any(contract in row for row in broken), done.stdout
