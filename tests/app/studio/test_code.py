"""The code that a page offers does the same as the page: Python and command lines."""

from __future__ import annotations

import html
import re

import pytest

import shoal
from shoal.app.studio._code import python_of
from shoal.app.studio.planning._beginnings import BEGINNINGS
from shoal.workflow import Plan

from .conftest import ROLES


@pytest.mark.parametrize("name", [each.name for each in BEGINNINGS])
def test_the_python_of_a_plan_makes_that_plan(open_studio, people, name):
    browser = open_studio(people, ROLES)
    shown = browser.post("/plan/begin", name=name, card="begin").text
    script = html.unescape(
        re.search(r'<textarea id="python"[^>]*>(.*?)</textarea>', shown, re.S)[1]
    )
    made = plan_made_by(script)
    given = browser.studio.project.plan
    assert made.steps
    assert made.require
    assert made.to_dict() == {k: v for k, v in given.to_dict().items() if k != "roles"}


def plan_made_by(script):
    """The plan that a script makes; nothing is read and nothing masked."""
    start = script[script.index("plan = ") : script.index("release = ")]
    names = {"sh": shoal}
    exec(start, names)
    return names["plan"]


def test_the_python_of_a_plan_reads_the_table_in_its_way(people):
    script = python_of(Plan(), people, {"missing_values": ["k. A.", '"'], "header": True})
    place = {"sh": shoal}
    exec(script[: script.index("plan = ")].replace(repr(people.name), repr(str(people))), place)
    assert len(place["table"]) == 2000


def test_the_command_line_reads_as_the_plan_says(open_studio, people):
    from typer.testing import CliRunner

    from shoal.app.cli import app

    browser = open_studio(people, ROLES)
    browser.post("/data/read", delimiter=";")
    plan = str(browser.studio.project.folder / "plan.toml")
    assert CliRunner().invoke(app, ["assess", str(people), "--plan", plan]).exit_code == 2
    browser.post("/data/read", delimiter=",", missing_values="-\nk. A.", header="on")
    result = CliRunner().invoke(app, ["assess", str(people), "--plan", plan])
    assert result.exit_code == 0, result.stderr
