"""What the tests of the command line share: running it, in this process and in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shoal.app.cli import app

PROGRAM = "from shoal.app.cli import main; main()"


@pytest.fixture
def shoal(tmp_path, monkeypatch) -> Callable[..., Any]:
    """Run a command in this process, inside a folder of its own; gives the result of CliRunner."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("SHOAL_DEBUG", raising=False)

    def run(*words: object) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


@pytest.fixture
def shoal_process(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as a program of its own; ``program`` may wrap it."""

    def run(
        *words: object, program: str = PROGRAM, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name != "SHOAL_DEBUG"}
        return subprocess.run(
            [sys.executable, "-c", program, *(str(word) for word in words)],
            cwd=tmp_path,
            env={**kept, "COLUMNS": "80", **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def people(tmp_path) -> Path:
    """Forty invented records: eight classes of five."""
    rows = [
        f"person-{number}@example.org,{20 + 10 * (number % 4)},{'fm'[number // 4 % 2]},flu"
        for number in range(40)
    ]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["email,age,sex,diagnosis", *rows]) + "\n")
    return path


@pytest.fixture
def plan(tmp_path) -> Path:
    """A plan that the forty records satisfy."""
    path = tmp_path / "plan.toml"
    path.write_text(
        '[roles]\nidentifiers = ["email"]\nquasi_identifiers = ["age", "sex"]\n'
        'sensitive = ["diagnosis"]\n[[steps]]\nmethod = "round"\nbase = 20\n'
        "[require]\nk_anonymity = 5\n"
    )
    return path
