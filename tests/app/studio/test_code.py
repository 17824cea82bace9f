"""What a page offers to copy is what does the same: the plan as Python, and the command lines."""

from __future__ import annotations

import html
import re
import shlex

import pytest

import shoal
from shoal.app.studio._code import python_of
from shoal.app.studio.planning._beginnings import BEGINNINGS
from shoal.app.studio.releasing._releases import _words
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


def test_the_way_of_reading_is_repeated_on_the_command_line(shoal_reading):
    options = {"format": "csv", "delimiter": ",", "missing_values": ["-", "k. A."], "header": True}
    result = shoal_reading(shlex.split(_words(options)))
    assert result.exit_code == 0, result.stderr


@pytest.fixture
def shoal_reading(people):
    from typer.testing import CliRunner

    from shoal.app.cli import app

    return lambda words: CliRunner().invoke(app, ["roles", str(people), *words])
