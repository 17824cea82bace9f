"""Errors and warnings: one family, exit codes, and messages that help."""

from __future__ import annotations

import inspect

import pytest

from shoal import errors
from shoal.errors import (
    InputError,
    MissingExtra,
    ReleaseError,
    RequirementNotMet,
    ShoalError,
    ShoalWarning,
    UnreachableLevel,
    VerificationFailed,
    did_you_mean,
    quoted,
)

RAISED = [
    thing
    for _, thing in inspect.getmembers(errors, inspect.isclass)
    if issubclass(thing, Exception) and thing.__module__ == "shoal.errors"
]


@pytest.mark.parametrize("cls", RAISED, ids=lambda cls: cls.__name__)
def test_one_family(cls):
    assert issubclass(cls, (ShoalError, ShoalWarning))
    assert cls.__doc__
    if issubclass(cls, ShoalError):
        assert cls.exit_code in (1, 2)


def test_exit_codes():
    """1: a requirement or a claim does not hold; 2: the input or the call is wrong."""
    ones = {cls for cls in RAISED if getattr(cls, "exit_code", None) == 1}
    assert ones == {RequirementNotMet, UnreachableLevel, VerificationFailed}


def test_errors_are_what_python_users_expect_too():
    assert issubclass(InputError, ValueError)
    assert issubclass(MissingExtra, ImportError)
    assert issubclass(ShoalWarning, UserWarning)
    assert not issubclass(ReleaseError, ValueError)


@pytest.mark.parametrize(
    ("origin", "package"),
    [(None, "shoal[excel]"), ('{"url": "file:///somewhere"}', ".[excel]")],
)
def test_a_missing_extra_says_what_installs_it(monkeypatch, tmp_path, origin, package):
    """Shoal in a package index may be somebody else's, if it was not installed from there."""
    folder = tmp_path / "shoal-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: shoal\nVersion: 0.1.0\n")
    if origin is not None:
        (folder / "direct_url.json").write_text(origin)
    monkeypatch.syspath_prepend(tmp_path)
    error = MissingExtra("Reading Excel files", "excel")
    assert str(error).startswith("Reading Excel files needs")
    assert str(error).endswith(f'pip install "{package}"')


@pytest.mark.parametrize(
    ("names", "limit", "said"),
    [
        ([], 12, "none"),
        (["a"], 12, "'a'"),
        (["a", "b"], 2, "'a', 'b'"),
        (["a", "b", "c", "d"], 2, "'a', 'b' and 2 more"),
        (iter(["a", 1]), 12, "'a', '1'"),
    ],
)
def test_names_are_quoted_and_shortened(names, limit, said):
    assert quoted(names, limit=limit) == said


def test_two_hundred_columns_do_not_fill_the_screen():
    assert len(quoted(f"column_{i}" for i in range(200))) < 250
    assert len(did_you_mean("zzz", [f"column_{i}" for i in range(500)])) < 800


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        ("epsilom", ["epsilon", "columns"], "Did you mean 'epsilon'?"),
        ("x", ["epsilon", "columns"], "Use one of 'epsilon', 'columns'."),
        ("x", [], "There are none."),
        ("", ["a"], "Use 'a'."),
        ("k_anonimity", {"k_anonymity": 1}, "Did you mean 'k_anonymity'?"),
    ],
)
def test_hints(given, known, said):
    assert did_you_mean(given, known) == said
