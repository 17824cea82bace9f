"""First use: small tables compile nothing, and ``shoal warm`` leaves nothing to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from shoal.app.cli.output import _progress
from shoal.kernels import compile as compiling
from shoal.kernels.compile import Compiling

SMALL = """
import sys
import shoal as sh
from shoal.app.cli import app
from shoal.app.demo import PEOPLE
from shoal.kernels.compile import Compiling

ROLES = sh.Roles(
    identifiers=["name", "email"],
    quasi_identifiers=["age", "sex", "marital", "zip", "occupation"],
    sensitive=["income", "diagnosis"],
    insensitive=["height_cm", "hours_per_week"],
)

def shoal(*words):
    try:
        app(list(words))
    except SystemExit as done:
        assert not done.code, words

with Compiling() as compiling:
    shoal("roles", str(PEOPLE))
    shoal("init", str(PEOPLE), "--out", "plan.toml")
    shoal("assess", str(PEOPLE), "--plan", "plan.toml")
    shoal("protect", str(PEOPLE), "--plan", "plan.toml", "--out", "release")
    shoal("verify", "release", "--original", str(PEOPLE))
    people = sh.read(PEOPLE, roles=ROLES)
    sh.Microaggregate(k=5, columns=["age", "income", "height_cm"]).fit_transform(people)
    sh.Swap(k=5).fit_transform(people)
print(compiling.kernels, file=sys.stderr)
"""

COMMAND = "import sys; from shoal.app.cli import app; app(sys.argv[1:])"
FORCED = """
import sys
import shoal as sh
from shoal.app.demo import PEOPLE
from shoal.kernels.compile import Compiling, always_compiled

roles = sh.Roles(identifiers=["name", "email", "zip"], quasi_identifiers=["age", "sex"])
people = sh.read(PEOPLE, roles=roles)
plan = sh.Plan([sh.Round(base=500, columns=["income"])], require=[])
with Compiling() as compiling, always_compiled():
    sh.protect(people, plan).save("release")
print(compiling.kernels, file=sys.stderr)
"""


def run(folder, *words):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_small_table_compiles_nothing(tmp_path):
    assert run(tmp_path, "-c", SMALL).stderr.split()[-1] == "0"
    run(tmp_path, "-c", COMMAND, "demo")
    assert not list((tmp_path / "kernels").rglob("*.nbc"))


def test_nothing_is_left_to_compile(tmp_path):
    first = json.loads(run(tmp_path, "-c", COMMAND, "warm", "round", "--json").stdout)
    assert [part["for"] for part in first["compiled"]] == ["round"]
    assert first["kernels"] > 10
    assert run(tmp_path, "-c", FORCED).stderr.split()[-1] == "0"
    assert "already compiled" in run(tmp_path, "-c", COMMAND, "warm", "round").stdout


def test_a_method_that_does_not_exist(shoal):
    done = shoal("warm", "rond")
    assert done.exit_code == 2
    assert "round" in done.output


class Kernel:
    def __init__(self):
        self.data = {"dispatcher": self}
        self.py_func = compiling.njit


def test_compiling_is_mentioned_once_when_it_takes_long(monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr(compiling, "monotonic", lambda: clock[0])
    found = Compiling(2.0, lambda: said.append(clock[0]))
    for start, end in [(10.0, 11.0), (20.0, 20.5)]:  # what lies between is no compiling
        clock[0] = start
        found.on_start(Kernel())
        clock[0] = end
        found.on_end(Kernel())
    assert (found.kernels, found.seconds, said) == (2, 1.5, [])
    clock[0] = 30.0
    found.on_start(Kernel())
    clock[0] = 30.4
    found.on_start(Kernel())  # which the first one calls
    assert said == []
    clock[0] = 30.6
    found.on_end(Kernel())
    clock[0] = 40.0
    found.on_end(Kernel())
    assert (found.kernels, found.seconds, said) == (4, 11.5, [30.6])


def test_the_terminal_says_so_once(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_said", [])
    for _ in range(2):
        _progress._say_once()
    assert capsys.readouterr().err.count("shoal warm") == 1
