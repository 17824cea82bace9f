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
    """Not even frames: `shoal --help` answers at once."""
    assert not {*HEAVY, "polars", "numpy"} & loaded_by(f"import {module}")


#: What protects a table and saves the release, in a format and with texts that repeat or not.
PROTECTS = """
import tempfile, polars as pl, shoal as sh
frame = pl.DataFrame({{"sex": ["f", "m", None, "m"] * 5, "age": list(range(30, 50))}})
table = sh.Table(frame, sh.Roles(quasi_identifiers=["sex", "age"]))
sh.protect(table, sh.Plan([sh.Generalize(k=2)])).save(tempfile.mkdtemp() + "/out", format="{}")
"""


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_protecting_loads_no_other_library_of_frames(format):
    """Arrow would import pandas to make an array of numbers, for a quarter of a second."""
    loaded = loaded_by(PROTECTS.format(format))
    assert {"polars", "jinja2"} <= loaded
    assert not {"duckdb", "fastexcel", "pandas", "plotly", "sklearn"} & loaded


def test_the_whole_front_door_loads_nothing_heavy():
    """But for the name that is a part of scikit-learn."""
    import shoal

    names = [name for name in shoal.__all__ if name != "Protector"]
    assert not HEAVY & loaded_by(f"from shoal import {', '.join(names)}")


def test_the_front_door_leads_to_every_name():
    import shoal

    rooms = [name for names in shoal._ROOMS.values() for name in names]
    assert sorted([*rooms, "risk", "utility"]) == sorted(shoal.__all__)
    assert [name for name in shoal.__all__ if not hasattr(shoal, name)] == []
    assert set(shoal.__all__) <= set(dir(shoal))
    with pytest.raises(AttributeError, match="no attribute 'Rond'"):
        shoal.Rond  # noqa: B018 - the access is what fails
