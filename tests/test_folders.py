"""Every folder is a shelf that one look takes in, and tests are where their subject is."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

#: A folder with more files is two shelves.
MOST_FILES = 15
#: Folders of tests that have no folder of the house for a subject, and what they are about.
OF_THE_WHOLE = {
    "attacks": "what a stranger with a release may try",
    "contracts": "what every method, model and measure promises",
    "fuzz": "random tables, plans and releases",
    "golden": "published numbers",
    "mistakes": "common mistakes and the sentences that answer them",
    "parts": "what several tests share",
    "properties": "what holds for random tables",
    "snapshots": "releases and assessments on record",
}


def files_of(root):
    """The files of each folder, without what running and compiling leave in it."""
    for folder, _, names in os.walk(root):
        if names and Path(folder).name != "__pycache__":
            yield Path(folder), names


@pytest.mark.parametrize("root", ["src", "tests", "benchmarks", "examples"])
def test_no_folder_has_too_many_files(repository, root):
    found = {str(folder): len(files) for folder, files in files_of(repository / root)}
    assert found
    assert not {folder: count for folder, count in found.items() if count > MOST_FILES}


def test_tests_are_where_their_subject_is(repository):
    tests, house = repository / "tests", repository / "src" / "shoal"
    shelves = [folder.relative_to(tests) for folder, _ in files_of(tests)]
    assert {shelf.parts[0] for shelf in shelves if shelf.parts} > set(OF_THE_WHOLE)
    lost = [shelf for shelf in shelves if not (house / shelf).is_dir()]
    assert not [shelf for shelf in lost if not {shelf.parts[0], shelf.name} & set(OF_THE_WHOLE)]


def test_the_paths_in_the_makefile_exist(repository):
    """A test that moved would otherwise stop the run on the built wheel."""
    named = re.findall(r"\btests/[\w/.]+", (repository / "Makefile").read_text("utf-8"))
    assert named
    assert not [path for path in named if not (repository / path).exists()]
