"""The documentation and the program name the same commands and options."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from shoal.app.cli import app

GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands
#: Options of every command.
EVERYWHERE = {"--help"}
#: Where the options of a command are told, besides its own section.
PAGES = {"tune": "tune.md", "study": "studies/index.md"}


def options_of(command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name[:2] == "--"}


def pages(repository):
    return [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]


#: Lines of pages that call something else.
OTHER_PROGRAMS = ("dask ", "dbt ", "docker ", "python benchmarks/", "export PYSPARK_SUBMIT_ARGS=")


@pytest.fixture(scope="module")
def command_line(repository) -> dict[str, str]:
    """The page about the command line: the general part, and the section of each command."""
    text = (repository / "docs" / "command-line.md").read_text("utf-8")
    general, *sections = re.split(r"^## shoal ", text, flags=re.M)
    return {"": general} | {part.split("\n", 1)[0].strip(): part for part in sections}


def test_every_command_has_a_section_and_a_line_in_the_list(command_line):
    assert set(command_line) == {"", *COMMANDS}
    assert set(re.findall(r"^\| \[`shoal (\w+)`", command_line[""], flags=re.M)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name, command_line, repository):
    told = command_line[""] + command_line[name]
    if name in PAGES:
        told += (repository / "docs" / PAGES[name]).read_text("utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", told))
    assert sorted(options_of(COMMANDS[name]) - EVERYWHERE - named) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_not_cut_off(name):
    """A line of a docstring that is not indented would be lost."""
    helps = {p.name: p.help for p in COMMANDS[name].params if getattr(p, "help", None)}
    assert len(helps) > 1
    assert {key: help for key, help in helps.items() if help.rstrip()[-1] not in ".)"} == {}


def test_options_of_the_program_itself_are_documented(command_line):
    assert options_of(GROUP) - EVERYWHERE <= set(re.findall(r"--[a-z-]+", command_line[""]))


def test_no_page_names_an_option_that_does_not_exist(repository):
    known = EVERYWHERE.union(options_of(GROUP), *map(options_of, COMMANDS.values()))
    unknown = {
        (page.relative_to(repository).as_posix(), name)
        for page in pages(repository)
        for line in page.read_text("utf-8").splitlines()
        if not line.startswith(OTHER_PROGRAMS)
        for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", line)
        if name not in known
    }
    assert sorted(unknown) == []


def test_every_command_that_a_page_calls_takes_the_options_that_it_gives(repository):
    wrong = []
    for page in pages(repository):
        text = page.read_text("utf-8").replace("\\\n", " ")
        for call in re.findall(r"(?:^|`)\s*(shoal [a-z].*?)(?:`|$)", text, flags=re.M):
            words = shlex.split(call.partition("  ")[0].replace("…", ""), comments=True)
            name = words[1]
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            if name in COMMANDS and options - options_of(COMMANDS[name]) - EVERYWHERE:
                wrong.append((page.name, call))
            if name not in COMMANDS and options:
                wrong.append((page.name, call))
    assert wrong == []
