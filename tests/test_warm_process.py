"""A script in the warm process ends as it would in a process of its own."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def run(warm_process, tmp_path):
    def run(code: str, *words: object, **environment: str):
        script = tmp_path / "script.py"
        script.write_text(code)
        return warm_process.run(script, *words, folder=tmp_path, streams=tmp_path, **environment)

    return run


def test_what_it_prints_and_is_told(run, tmp_path):
    code = "import os, sys\nprint(sys.argv[1:], os.getcwd(), os.environ['WORD'])\nprint(__name__)"
    done = run(code, "a", 2, WORD="said")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"['a', '2'] {os.path.realpath(tmp_path)} said\n__main__\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("import sys\nsys.exit(3)", 3, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import warnings\nwarnings.warn('old', stacklevel=1)", 1, "UserWarning: old"),
        ("input()", 1, "EOFError"),
    ],
)
def test_how_it_ends(run, code, status, told):
    done = run(code)
    assert done.returncode == status
    assert told in done.stderr
    assert bool(told) == ("Traceback" in done.stderr)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX are needed")
def test_it_may_be_killed_and_the_next_one_runs(run):
    assert run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)").returncode == -9
    assert run("print('next')").stdout == "next\n"


def test_one_script_knows_nothing_of_another_nor_of_shoal(run):
    assert run("left = 1\nimport sys\nsys.left = 1\nimport shoal").returncode == 0
    code = "import sys\nprint('left' in globals(), hasattr(sys, 'left'), 'shoal' in sys.modules)"
    assert run(code).stdout == "False False False\n"
