"""Common mistakes in plans: each is answered by one sentence that holds the place and the cure."""

# ruff: noqa: E501 - a mistake is a line

from __future__ import annotations

import re

import polars as pl
import pytest
from typer.testing import CliRunner

import shoal as sh
from shoal.app.cli import app
from shoal.errors import (
    InputError,
    ParameterError,
    PlanError,
    ReadError,
    RolesError,
    UnknownName,
    UnreachableLevel,
)

R = '[roles]\nquasi_identifiers = ["age", "city"]\nsensitive = ["ill"]\n'
STEP = '[[steps]]\nmethod = "generalize"\n'
G = f"{STEP}k = 3\n"  # with the roles before it, its head is line 4 and its k line 6
REQUIRE = f"{R}{G}[require]\n"
FRAME = pl.DataFrame(
    {
        "age": [20 + n % 12 for n in range(24)],
        "city": ["here", "there"] * 12,
        "ill": ["y", "n"] * 12,
    }
)

# what is wrong, the plan, the error, where it is, a word of the cure
MISTAKES = [
    # the file
    ("a bracket left open", f"{R}[require\n", PlanError, "line 4", "']'"),
    ("a text without marks", "[roles]\nquasi_identifiers = [age]\n", PlanError, "line 2", "quotation marks"),
    ("True", f"keep_order = True\n{R}{G}", PlanError, "line 1", "small letters"),
    ("a key twice in a step", f"{R}{G}k = 5\n", PlanError, "line 7", "once"),
    ("a part twice", f"{REQUIRE}k_anonymity = 3\n[require]\n", PlanError, "line 9", "once"),
    ("an empty plan", "", RolesError, "", "quasi_identifiers"),
    # parts
    ("a part with a slip", f"{R}{G}[requires]\nk_anonymity = 3\n", PlanError, "Line 7", "'require'"),
    ("[[step]]", f'{R}[[step]]\nmethod = "round"\nbase = 5\n', PlanError, "Line 4", "'steps'"),
    ("[steps]", f'{R}[steps]\nmethod = "round"\nbase = 5\n', PlanError, "Line 4", "[[steps]]"),
    ("require as a number", "require = 3\n", PlanError, "Line 1", "[require]"),
    ("a switch below a table", f"{R}keep_order = true\n", PlanError, "Line 4", "above the first [table]"),
    ("a switch as text", f'keep_order = "yes"\n{R}', PlanError, "Line 1", "true or false"),
    ("unlisted of another word", f'unlisted = "ignore"\n{R}', PlanError, "Line 1", "'refuse'"),
    ("unlisted as a list", f'unlisted = ["drop"]\n{R}', PlanError, "Line 1", "'drop'"),
    ("an engine as text", f'engine = "duckdb"\n{R}', PlanError, "Line 1", "[engine]"),
    ("memory as a number", f"{R}{G}[engine]\nmemory_limit = 2\n", PlanError, "Line 8", "text"),
    # roles
    ("a role with a slip", R.replace("sensitive", "sensitiv"), RolesError, "Line 3", "'sensitive'"),
    ("one column without a list", '[roles]\nquasi_identifiers = "age"\n', RolesError, "Line 2", "['age']"),
    ("columns by number", "[roles]\nquasi_identifiers = [1]\n", RolesError, "Line 2", "text"),
    ("a column with two roles", f'[read.columns]\nill = "text"\n{R}identifiers = ["ill"]\n', RolesError, "Line 6", "one"),
    ("a column twice", '[roles]\nquasi_identifiers = ["age", "age"]\n', RolesError, "Line 2", "once"),
    ("a column that is not there", R.replace("city", "cty") + G, RolesError, "", "'city'"),
    # steps
    ("a step without a method", f"{R}[[steps]]\nk = 3\n", PlanError, "Line 4 of the plan: Step 1", "'generalize'"),
    ("methd", f'{R}[[steps]]\nmethd = "generalize"\n', PlanError, "Line 5 of the plan: Step 1", "'method'"),
    ("an unknown method", f'{R}[[steps]]\nmethod = "generalise"\n', PlanError, "Step 1", "'generalize'"),
    ("a model as a method", f'{R}[[steps]]\nmethod = "k_anonymity"\nk = 3\n', PlanError, "Step 1", "[require]"),
    ("an algorithm as a method", f'{R}[[steps]]\nmethod = "mondrian"\nk = 3\n', PlanError, "Step 1", "algorithm ="),
    ("a slip in the second step", f'{R}{G}[[steps]]\nmethod = "round"\nbse = 5\n', ParameterError, "Line 9 of the plan: Step 2", "'base'"),
    ("k as text", f'{R}{STEP}k = "5"\n', ParameterError, "Line 6 of the plan: Step 1", "integer"),
    ("k = 1", f"{R}{STEP}k = 1\n", ParameterError, "Line 6 of the plan: Step 1", "≥ 2"),
    ("two k", f"{R}{STEP}k = [3, 5]\n", ParameterError, "Line 6 of the plan: Step 1", "integer"),
    ("no k", f"{R}{STEP}", ParameterError, "Line 4 of the plan: Step 1", "'k'"),
    ("a share in percent", f"{R}{G}suppression_limit = 5\n", ParameterError, "Line 7 of the plan: Step 1", "≤ 1"),
    ("a column of a step as text", f'{R}[[steps]]\nmethod = "round"\nbase = 5\ncolumns = "age"\n', ParameterError, "Line 7", "list"),
    ("a column of a step that is not there", f'{R}[[steps]]\nmethod = "round"\nbase = 5\ncolumns = ["agee"]\n', UnknownName, "Step 1 (round)", "'age'"),
    ("a negative budget", f'{R}[[steps]]\nmethod = "add_noise"\nepsilon = -1\n', ParameterError, "Line 6 of the plan: Step 1", "> 0"),
    # models of a step
    ("models by name", f'{R}{G}models = "l_diversity"\n', ParameterError, "Line 7 of the plan: Step 1", "list"),
    ("a model with a slip", f"{R}{G}models = {{ l_divresity = 2 }}\n", ParameterError, "Step 1", "'l_diversity'"),
    ("a model with text", f'{R}{G}models = {{ l_diversity = "2" }}\n', ParameterError, "'l_diversity'", "number"),
    ("models in a part of their own", f"{R}{G}[models]\nl_diversity = 2\n", PlanError, "Line 7", "'require'"),
    ("models nested by a key", f'{R}{G}models = {{ model = "l_diversity", l = 2 }}\n', ParameterError, "Step 1", "'l_diversity'"),
    # hierarchies
    ("a hierarchy as a list", f"{R}{G}hierarchies.age = [5, 10]\n", PlanError, "Line 7 of the plan: Step 1", "{ intervals = [5, 10] }"),
    ("a kind with a slip", f"{R}{G}hierarchies.age = {{ interval = [5] }}\n", PlanError, "'age'", "'intervals'"),
    ("widths that do not nest", f"{R}{G}hierarchies.age = {{ intervals = [5, 8] }}\n", InputError, "'age'", "5, 10, 20"),
    ("a negative width", f"{R}{G}hierarchies.age = {{ intervals = [-5] }}\n", InputError, "'age'", "above 0"),
    ("a file that is not there", f'{R}{G}hierarchies.city = "no.csv"\n', ReadError, "'city'", "'no.csv'"),
    ("a hierarchy for no column", f"{R}{G}hierarchies.agee = {{ intervals = [5] }}\n", InputError, "Step 1", "'age'"),
    # requirements
    ("a requirement with a slip", f"{REQUIRE}k_anonimity = 3\n", PlanError, "Line 8", "'k_anonymity'"),
    ("require k", f"{REQUIRE}k = 3\n", PlanError, "Line 8", "'k_anonymity'"),
    ("k = 1 is required", f"{REQUIRE}k_anonymity = 1\n", ParameterError, "Line 8", "≥ 2"),
    ("k is required as text", f'{REQUIRE}k_anonymity = "5"\n', ParameterError, "Line 8", "integer"),
    ("models under require", f"{R}{G}[require.models]\nl_diversity = 2\n", PlanError, "Line 7", "'l_diversity'"),
    ("a limit without max", f"{REQUIRE}marketer_risk = 0.1\n", PlanError, "Line 8", "'max_marketer_risk'"),
    ("a limit as text", f'{REQUIRE}max_marketer_risk = "10 %"\n', ParameterError, "Line 8", "such as 0.1"),
    ("a limit in percent", f"{REQUIRE}max_marketer_risk = 10\n", ParameterError, "Line 8", "0.1"),
    ("a negative limit", f"{REQUIRE}max_marketer_risk = -0.1\n", ParameterError, "Line 8", "between 0 and 1"),
    ("an option with a slip", f"{REQUIRE}max_records_at_risk = {{ value = 0.1, treshold = 0.1 }}\n", ParameterError, "Line 8", "'threshold'"),
    # reading
    ("delimeter", f'[read]\ndelimeter = ";"\n{R}', PlanError, "Line 2", "'delimiter'"),
    ("read as a path", f'read = "people.csv"\n{R}', PlanError, "Line 1", "[read]"),
    ("a format with a slip", f'[read]\nformat = "cvs"\n{R}', PlanError, "[read]", "'csv'"),
    ("one missing value without a list", f'[read]\nmissing_values = "k.A."\n{R}', PlanError, "Line 2", "list"),
    ("dates in another spelling", f'[read]\ndate_formats = {{ age = "dd.mm.yyyy" }}\n{R}', PlanError, "[read]", "%d.%m.%Y"),
    ("a kind of another name", f'[read.columns]\nage = "number"\n{R}', PlanError, "Line 2", "'integer'"),
    ("lines below none", f"[read]\nskip_lines = -1\n{R}", PlanError, "Line 2", "0 or more"),
    # what other files look like
    ("a plan in YAML", "roles:\n  quasi_identifiers: [age]\n", PlanError, "line 1", "name = value"),
    ("a plan in JSON", '{"roles": {"quasi_identifiers": ["age"]}}', PlanError, "line 1", "name = value"),
    ("a comment of another language", f"// a plan\n{R}", PlanError, "line 1", "#"),
    ("a merge that is not done", f"<<<<<<< HEAD\n{R}", PlanError, "line 1", "name = value"),
    ("curly quotation marks", "[roles]\nquasi_identifiers = [“age”]\n", PlanError, "line 2", "quotation marks"),
    ("a decimal comma", f"{R}{G}suppression_limit = 0,05\n", PlanError, "line 7", "0.05"),
    ("a percent sign", f"{R}{G}suppression_limit = 5%\n", PlanError, "line 7", "0.05"),
    ("[[roles]]", '[[roles]]\nquasi_identifiers = ["age"]\n', PlanError, "Line 1", "[roles]"),
    ("[[require]]", f"{R}{G}[[require]]\nk_anonymity = 3\n", PlanError, "Line 7", "[require]"),
    ("a role by column", '[roles]\nage = "quasi"\n', RolesError, "Line 2", "quasi_identifiers"),
    ("steps by name", f'steps = ["generalize"]\n{R}', PlanError, "Line 1", "[[steps]]"),
    ("an algorithm with a capital", f'{R}{G}algorithm = "Mondrian"\n', ParameterError, "Line 7 of the plan: Step 1", "'mondrian'"),
    ("a level too high", f"{R}{G}levels = {{ age = 9, city = 1 }}\nhierarchies.age = {{ intervals = [5] }}\nhierarchies.city = {{ prefixes = [1] }}\n", InputError, "'age'", "0 to 2"),
    ("a hierarchy of another kind", f"{R}{G}hierarchies.city = {{ intervals = [5] }}\n", InputError, "Step 1", "text"),
    ("two kinds in a hierarchy", f"{R}{G}hierarchies.age = {{ intervals = [5], prefixes = [1] }}\n", PlanError, "'age'", "one kind"),
    ("a model without its number", f'{REQUIRE}l_diversity = {{ column = "ill" }}\n', ParameterError, "Line 8", "'l'"),
    ("a model of no column", f'{REQUIRE}l_diversity = {{ l = 2, column = "il" }}\n', UnknownName, "", "'ill'"),
    ("more values than there are", f"{REQUIRE}l_diversity = 5\n", UnreachableLevel, "'ill'", "at most 2"),
    ("a limit on half a name", f"{REQUIRE}max_marketer = 0.1\n", PlanError, "Line 8", "'max_marketer_risk'"),
    ("an engine in [engine]", f'{R}{G}[engine]\nname = "spark"\n', PlanError, "Line 8", "'memory_limit'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "error", "place", "cure"), [row[1:] for row in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_one_sentence_with_the_cure(plan, error, place, cure):
    with pytest.raises(error, match=re.escape(cure)) as raised:
        sh.protect(sh.Table(FRAME), sh.Plan.from_toml(plan))
    said = str(raised.value)
    assert place in said
    assert len(said) < 500
    assert "\n" not in said
    assert raised.value.__cause__ is None, "one sentence, and no second traceback"


@pytest.mark.parametrize(
    "name", ["k as text", "a limit in percent", "[steps]", "delimeter", "an empty plan", "methd"]
)
def test_the_program_answers_with_exit_code_2(tmp_path, monkeypatch, name):
    plan, place, cure = next((row[1], *row[3:]) for row in MISTAKES if row[0] == name)
    FRAME.write_csv(tmp_path / "data.csv")
    (tmp_path / "plan.toml").write_text(plan, "utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["protect", "data.csv", "--plan", "plan.toml", "--out", "release"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert place in result.stderr
    assert cure in result.stderr
    assert not (tmp_path / "release").exists()


def test_a_mark_that_an_editor_puts_first_does_no_harm():
    plan = f"\ufeff{R}{G}"
    assert sh.Plan.from_toml(plan) == sh.Plan.from_toml(R + G)


def test_there_are_many():
    assert len(MISTAKES) >= 50
    assert len({row[0] for row in MISTAKES}) == len(MISTAKES)
