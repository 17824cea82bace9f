"""Help without noise, a list of methods that fits a few screens, and completion in the shells."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer

from shoal.app.cli import app

COMMANDS = list(typer.main.get_command(app).commands)
PROGRAM = "from shoal.app.cli import main; main()"
#: What completion prints is asked for by the environment; HEAVY must not be in memory after it.
WATCHED = """
import sys
try:
    from shoal.app.cli import main; main()
finally:
    print({"numpy", "polars", "numba"} & set(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_what_to_type(shoal, command):
    text = shoal(command, "--help").stdout
    usage = next(line for line in text.splitlines() if "Usage:" in line)
    assert not re.search(r"[{}]|\[\[", usage)
    assert not re.search(r"<(bool|str|int|float|path|file|list.*)>", text)


def test_methods_are_a_name_and_what_it_is(shoal):
    short, whole = shoal("methods").stdout, shoal("methods", "--all").stdout
    assert len(short.splitlines()) < 160 < len(whole.splitlines())
    assert "Reference:" not in short
    assert "Reference:" in whole
    names = re.findall(r"^  (\w+)$", whole, flags=re.M)
    assert [name for name in names if not re.search(rf"^{name} ", short, flags=re.M)] == []
    assert len(names) > 40


@pytest.mark.parametrize(
    ("shell", "given"),
    [
        ("bash", {"COMP_WORDS": "shoal prot", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "shoal prot"}),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "shoal prot",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
        ),
    ],
)
def test_completion_answers_every_shell(shoal_process, shell, given):
    asked = {"_SHOAL_COMPLETE": f"complete_{shell}", **given}
    done = shoal_process(program=WATCHED, **asked)
    assert done.stdout.split()[0].strip("\"(':").startswith(("protect", "_arguments"))
    assert "protect" in done.stdout
    assert done.stderr == "set()\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(shoal_process, shell):
    done = shoal_process(_SHOAL_COMPLETE=f"source_{shell}")
    assert "complete_" + shell in done.stdout
    assert done.stderr == ""


def test_bash_completes_options_with_the_installed_script(tmp_path):
    """A real shell installs the completion and finds it again."""
    home = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    program = tmp_path / "shoal"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
    program.chmod(0o700)
    script = """
    shoal --install-completion >/dev/null || exit 9
    source ~/.bashrc
    COMP_WORDS=(shoal verify --orig) COMP_CWORD=2
    _shoal_completion shoal
    echo "${COMPREPLY[@]}"
    """
    environment = {**{k: v for k, v in os.environ.items() if k == "PYTHONPATH"}, **home}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "--original\n"), done.stderr
