"""`import shoal` loads nothing heavy: what takes long to load is loaded when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "duckdb",
    "fastexcel",
    "jinja2",
    "numba",
    "pandas",
    "plotly",
    "pyarrow",
    "scipy",
    "sklearn",
}


def loaded_by(statement: str) -> set[str]:
    """The top-level packages in memory after a statement, in a fresh interpreter."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_what_is_loaded_is_seen():
    assert "csv" in loaded_by("import csv")
    assert "shoal" in loaded_by("import shoal")


@pytest.mark.parametrize("module", ["shoal", "shoal.app.cli"])
def test_import_loads_nothing_heavy(module):
    assert not HEAVY & loaded_by(f"import {module}")
