"""How it looks: help, plain output, JSON, warnings, failures; and never a cell or a markup."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings

import pytest

from shoal import __version__
from shoal.app.cli import app
from shoal.app.cli._options import Reading, kind_of_source, split_names
from shoal.app.cli.output import _errors, ui
from shoal.app.cli.output._progress import Working
from shoal.errors import InputError, OptionError, ReadError, ShoalError, ShoalWarning

COMMANDS = ["demo", "roles", "init", "hierarchy", "assess", "protect", "verify", "methods"]
ANSI = "\x1b["


def test_the_version(shoal):
    result = shoal("--version")
    assert (result.exit_code, result.stdout) == (0, f"shoal {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(shoal, command):
    result = shoal(command, "--help")
    assert result.exit_code == 0
    _, _, examples = result.stdout.partition(" Examples\n")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert any(line.startswith(f"shoal {command}") for line in lines)
    assert all(line.startswith(("shoal ", "#")) for line in lines)


def test_help_lists_the_commands(shoal):
    result = shoal("--help")
    assert [name for name in COMMANDS if f" {name} " not in result.stdout] == []
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_in_the_examples_exists(shoal, command):
    text = shoal(command, "--help").stdout
    head, _, examples = text.partition(" Examples\n")
    assert set(re.findall(r"(--[a-z-]+)", examples)) <= set(re.findall(r"(--[a-z-]+)", head))


def test_a_table_that_continues_below_still_tells_its_rows_apart(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    names = [(f"a long name of a variant {k}", table) for k in (5, 25) for table in ("one", "two")]
    numbers = [f"{n}.25 ({n}.1234567 to {n}.7654321)" for n in range(4)]
    rows = [(*name, number, number) for name, number in zip(names, numbers, strict=True)]
    ui.table(("variant", "table", "first", "second"), rows, numeric=(2, 3))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 60
    for number in numbers:
        lines = [line for line in text.splitlines() if number in line]
        assert len(lines) == 2
        assert all(" one " in line or " two " in line for line in lines)


def test_without_a_command_the_help_is_shown(shoal):
    result = shoal()
    assert result.exit_code == 2
    assert "Usage" in result.stdout + result.stderr


@pytest.mark.parametrize("command", [("roles",), ("assess", "--quasi", "a,[red]b[/red]")])
def test_a_column_name_is_no_markup_and_no_control(shoal, tmp_path, command):
    rows = "".join(f"{n % 3},{n % 2},{n % 5}\n" for n in range(30))
    (tmp_path / "data.csv").write_text(f"a,[red]b[/red],c\x1b[31mc\n{rows}")
    result = shoal(command[0], "data.csv", *command[1:])
    assert result.exit_code == 0, result.stderr
    assert "[red]b[/red]" in result.stdout
    assert ANSI not in result.stdout


def test_a_column_name_in_an_error_is_no_markup(shoal, tmp_path):
    (tmp_path / "data.csv").write_text("[red]a,[red]a\n1,2\n")
    result = shoal("roles", "data.csv")
    assert "'[red]a'" in result.stderr


def test_output_into_a_pipe_is_plain(shoal_process, people):
    result = shoal_process("assess", people, "--quasi", "age,sex")
    assert result.returncode == 0, result.stderr
    assert ANSI not in result.stdout + result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_no_color_is_heeded(shoal_process, people):
    forced = {"FORCE_COLOR": "1", "TERM": "xterm"}
    assert ANSI in shoal_process("methods", **forced).stdout
    coloured = shoal_process("methods", NO_COLOR="1", **forced).stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", coloured)


def test_a_poor_terminal_does_not_fail(shoal_process):
    poor = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = shoal_process("methods", "round", **poor)
    assert result.returncode == 0, result.stderr
    result = shoal_process("methods", "--json", **poor)
    assert "≥ 2" in json.dumps(json.loads(result.stdout), ensure_ascii=False)


def test_whoever_reads_may_leave(tmp_path):
    program = "from shoal.app.cli import main; main()"
    reader = subprocess.Popen(
        [sys.executable, "-c", program, "methods", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert reader.stdout is not None
    assert reader.stderr is not None
    reader.stdout.close()
    assert reader.stderr.read() == b""
    reader.stderr.close()
    assert reader.wait(60) in (0, 141)


CELL = "CANARY"


def failing_with(cause):
    def fail(*_args, **_options):
        raise cause

    return fail


class Panic(BaseException):
    """What a library written in another language may raise."""


@pytest.mark.parametrize("cause", [ValueError(CELL), Panic(CELL), AssertionError(CELL)])
def test_the_unexpected_is_one_line_without_its_message(shoal, people, monkeypatch, cause):
    monkeypatch.setattr("shoal.workflow.assess", failing_with(cause))
    result = shoal("assess", people, "--quasi", "age")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert type(cause).__name__ in result.stderr
    assert "shoal/app/cli/_assess.py, line " in result.stderr
    assert CELL not in result.stdout + result.stderr


def test_debug_shows_the_traceback(shoal, people, monkeypatch):
    monkeypatch.setattr("shoal.workflow.assess", failing_with(ValueError(CELL)))
    assert "Traceback" in shoal("--debug", "assess", people, "--quasi", "age").stderr
    monkeypatch.setenv("SHOAL_DEBUG", "1")
    result = shoal("assess", people, "--quasi", "age")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device", "release"), "No space left on device"),
        (ShoalError("two\nlines"), "two\\nlines"),
    ],
)
def test_failures_of_the_system_are_one_line(shoal, people, monkeypatch, cause, said):
    monkeypatch.setattr("shoal.workflow.assess", failing_with(cause))
    result = shoal("assess", people, "--quasi", "age")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def test_warnings_are_one_line_each(shoal, people, monkeypatch):
    from shoal.workflow import assess

    def warn(*args, **options):
        for _ in range(2):
            warnings.warn("be careful [bold]", ShoalWarning, stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"of a library: {CELL}", stacklevel=1)
        return assess(*args, **options)

    monkeypatch.setattr("shoal.workflow.assess", warn)
    result = shoal("assess", people, "--quasi", "age", "--json")
    assert result.exit_code == 0
    json.loads(result.stdout)
    assert result.stderr == "shoal: warning: be careful [bold]\n"


def test_json_holds_no_number_that_json_has_not(capsys):
    ui.print_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": {1: None}})
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"schema": 1, "a": None, "b": [None, 1.5], "c": {"1": None}}


def test_progress_never_goes_back():
    with Working("Reading") as working:
        seen = []
        for label, share in [
            ("Reading", 0.5),
            ("Masking: a", 0.0),
            ("Masking: b", 0.9),
            ("Verifying", 0.0),
            ("Measuring: x", 0.0),
            ("Measuring: y", 0.7),
            ("Measuring: x", 0.0),
            ("Writing", 5.0),
        ]:
            working(label, share)
            seen.append(working._overall)
    assert seen == sorted(seen)
    assert seen[-1] < 1


def test_progress_is_silent_outside_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("shoal.app.cli.output._progress._PATIENCE", 0.0)
    with Working("Reading") as working:
        working("Masking", 0.5)
    assert capsys.readouterr() == ("", "")


def test_options_fit_the_further_tables(tmp_path):
    reading = Reading(delimiter=";", query="SELECT 1", sheet="2", input_format="csv")
    path = tmp_path / "other.parquet"
    pytest.importorskip("polars").DataFrame({"age": [1]}).write_parquet(path)
    assert len(reading.read_other(str(path))) == 1
    text = tmp_path / "other.csv"
    text.write_text("age;zip\n1;2\n")
    assert reading.read_other(str(text)).columns == ["age", "zip"]
    assert len(Reading(delimiter=";").read(str(path), str(text), None)) == 1
    with pytest.raises(ReadError, match="delimiter"):
        Reading(delimiter=";").read(str(path))


@pytest.mark.parametrize(
    ("source", "kind", "format"),
    [
        ("people.csv", "csv", "csv"),
        ("people.CSV.gz", "csv", "csv"),
        ("people.feather", "arrow", "arrow"),
        ("people.xls", "xlsx", "xlsx"),
        ("sqlite:///people.csv", "database", "parquet"),
        ("people", None, "parquet"),
    ],
)
def test_the_format_of_a_release_follows_the_data(source, kind, format):
    assert kind_of_source(source) == kind
    assert Reading().output_format(source) == format


def test_names_with_commas_can_be_given():
    columns = ["age", "last, first", " padded "]
    assert split_names(['age,"last, first"'], columns) == ["age", "last, first"]
    assert split_names(["last, first", "age"], columns) == ["last, first", "age"]
    assert split_names(["age, padded "], columns) == ["age", "padded"]
    assert split_names([" padded "], columns) == [" padded "]
    assert split_names(["age\nlast\r\nfirst,city"], []) == ["age", "last", "first", "city"]
    assert split_names(['age,"in two\nlines"'], []) == ["age", "in two\nlines"]
    assert split_names(["in two\nlines"], ["in two\nlines"]) == ["in two\nlines"]


def test_every_command_is_guarded():
    assert app.info.cls is _errors.Group
    assert all(command.cls is _errors.Command for command in app.registered_commands)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            ReadError("Use encoding='utf-16-le' or encoding='utf-16-be'."),
            "Use --encoding utf-16-le or --encoding utf-16-be.",
        ),
        (
            ReadError("Column 'header' is new; use header=True."),
            "Column 'header' is new; use --header.",
        ),
        (OptionError("'date_formats' does not apply."), "--date-format does not apply."),
        (InputError("'sheet' has no header=."), "'sheet' has no header=."),
    ],
)
def test_options_have_their_command_line_names(error, shown):
    assert _errors.in_options(error) == shown
