"""Common mistakes in Python: each is answered by one sentence that holds the cure."""

# ruff: noqa: E501 - a mistake is a line

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import (
    CallError,
    InputError,
    ParameterError,
    PlanError,
    ReadError,
    ReleaseError,
    RequirementNotMet,
    RolesError,
    ShoalError,
    ShoalWarning,
    UnknownAttribute,
    UnknownName,
    UnreachableLevel,
)

QUASI = ["age", "city"]


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    """What somebody has at hand: a frame, a table, a release, and a folder."""
    frame = pl.DataFrame(
        {
            "name": [f"p{n:02d}" for n in range(24)],
            "age": [20 + n % 12 for n in range(24)],
            "city": ["here", "there"] * 12,
            "ill": ["yes", "no", "no"] * 8,
        }
    )
    roles = sh.Roles(identifiers=["name"], quasi_identifiers=QUASI, sensitive=["ill"])
    table = sh.Table(frame, roles)
    folder = tmp_path_factory.mktemp("mistakes")
    frame.write_csv(folder / "people.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = sh.protect(table, k=3)
        release.save(folder / "out")
    step = sh.Generalize("mondrian", k=3)
    plan = sh.Plan([step], require=[sh.KAnonymity(3)])
    return SimpleNamespace(
        frame=frame, roles=roles, table=table, release=release, folder=folder, step=step, plan=plan
    )


MISTAKES = [
    # what people look for on objects
    ("release.frame", lambda w: w.release.frame, UnknownAttribute, "release.masked.frame"),
    ("release.data", lambda w: w.release.data, UnknownAttribute, "release.masked.frame"),
    ("release.to_csv", lambda w: w.release.to_csv("x.csv"), UnknownAttribute, "save(folder"),
    ("release.k", lambda w: w.release.k, UnknownAttribute, "release.after.k"),
    ("release.report", lambda w: w.release.report, UnknownAttribute, "to_html()"),
    ("release.verify", lambda w: w.release.verify(), UnknownAttribute, "sh.verify"),
    ("release.clams", lambda w: w.release.clams, UnknownAttribute, "'claims'"),
    ("table.data", lambda w: w.table.data, UnknownAttribute, "table.frame"),
    ("table.to_pandas", lambda w: w.table.to_pandas(), UnknownAttribute, "table.frame"),
    ("table.iloc", lambda w: w.table.iloc[0], UnknownAttribute, "table.frame"),
    ("table.role", lambda w: w.table.role, UnknownAttribute, "'roles'"),
    ("table['agee']", lambda w: w.table["agee"], UnknownName, "'age'"),
    ("table[0]", lambda w: w.table[0], UnknownName, "table.frame"),
    ("a mask of rows", lambda w: w.table[w.table["age"] > 30], UnknownName, "table.frame"),
    ("a column by its place", lambda w: w.table.column(0), UnknownName, "text"),
    ("table.age", lambda w: w.table.age, UnknownAttribute, "table['age']"),
    ("table['age'] = ...", lambda w: w.table.__setitem__("age", 1), CallError, "sh.Table("),
    ("table.frame = ...", lambda w: setattr(w.table, "frame", 1), UnknownAttribute, "sh.Table("),
    ("plan.fit", lambda w: w.plan.fit(w.table), UnknownAttribute, "sh.protect"),
    ("plan.requirements", lambda w: w.plan.requirements, UnknownAttribute, "plan.require"),
    ("assessment['risk']", lambda w: w.release.after["risk"], UnknownName, "marketer_risk"),
    ("assessment[0]", lambda w: w.release.after[0], UnknownName, "marketer_risk"),
    ("assessment.uniques", lambda w: w.release.after.uniques, UnknownAttribute, "classes"),
    ("suggestion.sensitive", lambda w: sh.suggest_roles(w.frame).sensitive, UnknownAttribute, "roles"),
    ("verification.ok", lambda w: sh.verify(w.folder / "out").ok, UnknownAttribute, "holds"),
    ("a measure of another name", lambda w: sh.risk.marketer(w.table), UnknownAttribute, "marketer_risk"),
    ("a name of another library", lambda w: sh.KAnonymizer, UnknownAttribute, "KAnonymity"),
    ("a method in lower case", lambda w: sh.generalize, UnknownAttribute, "Generalize"),
    ("what is not learned yet", lambda w: sh.Generalize(k=3).levels_, UnknownAttribute, "fit"),
    ("step.mask", lambda w: w.step.mask(w.table), UnknownAttribute, "fit_transform"),
    # parameters of other names, in other places, of other types
    ("Roles(quasi=...)", lambda w: sh.Roles(quasi=QUASI), CallError, "quasi_identifiers"),
    ("Roles(qi=...)", lambda w: sh.Roles(qi=QUASI), CallError, "quasi_identifiers"),
    ("Roles(id=...)", lambda w: sh.Roles(id=["name"]), CallError, "identifiers"),
    ("Roles without names", lambda w: sh.Roles(QUASI), CallError, "by name"),
    ("Roles of a text", lambda w: sh.Roles(quasi_identifiers="age"), RolesError, "['age']"),
    ("Roles of a number", lambda w: sh.Roles(quasi_identifiers=3), RolesError, "list"),
    ("a column with two roles", lambda w: sh.Roles(identifiers=["age"], sensitive=["age"]), RolesError, "one role"),
    ("a column twice", lambda w: sh.Roles(sensitive=["ill", "ill"]), RolesError, "once"),
    ("AddNoise(seed=...)", lambda w: sh.AddNoise(epsilon=1, seed=3), CallError, "random_state"),
    ("AddNoise(eps=...)", lambda w: sh.AddNoise(eps=1), CallError, "epsilon"),
    ("Generalize(5)", lambda w: sh.Generalize(5), ParameterError, "k=5"),
    ("Generalize()", lambda w: sh.Generalize(), ParameterError, "'k'"),
    ("Generalize('datafly')", lambda w: sh.Generalize("datafly", k=3), ParameterError, "mondrian"),
    ("k as text", lambda w: sh.Generalize(k="5"), ParameterError, "integer"),
    ("k = 0", lambda w: sh.KAnonymity(0), ParameterError, "≥ 2"),
    ("k = 1", lambda w: sh.Microaggregate(1), ParameterError, "≥ 2"),
    ("k as a share", lambda w: sh.KAnonymity(0.1), ParameterError, "integer"),
    ("KAnonymity()", lambda w: sh.KAnonymity(), CallError, "KAnonymity(k=...)"),
    ("KAnonymity of a table", lambda w: sh.KAnonymity(w.table), ParameterError, "integer"),
    ("Round(10)", lambda w: sh.Round(10), CallError, "Round(base=...)"),
    ("columns as text", lambda w: sh.Round(base=5, columns="age"), ParameterError, "list"),
    ("hierarchies of lists", lambda w: sh.Generalize(k=3, hierarchies={"age": [5, 10]}), ParameterError, "Hierarchy.intervals"),
    ("hierarchies as a list", lambda w: sh.Generalize(k=3, hierarchies=["age"]), ParameterError, "dict"),
    ("models by name", lambda w: sh.Generalize(k=3, models="l_diversity"), ParameterError, "LDiversity(2)"),
    ("a share in percent", lambda w: sh.Generalize(k=3, suppression_limit=5), ParameterError, "≤ 1"),
    ("Limit(max=...)", lambda w: sh.Limit("marketer_risk", max=0.1), CallError, "at_most"),
    ("a limit on no measure", lambda w: sh.Limit("marketer_rsk", at_most=0.1), InputError, "marketer_risk"),
    ("Hierarchy of numbers", lambda w: sh.Hierarchy([5, 10]), InputError, "Hierarchy.intervals("),
    ("Hierarchy()", lambda w: sh.Hierarchy(), InputError, "Hierarchy.intervals("),
    ("widths without a list", lambda w: sh.Hierarchy.intervals(5, 10), CallError, "intervals([...])"),
    ("a level as text", lambda w: sh.Hierarchy.intervals([5]).generalize(w.table, "age", "1"), InputError, "integer"),
    ("a hierarchy for a frame", lambda w: sh.Hierarchy.propose(w.frame, "age"), InputError, "sh.Table("),
    ("widths that do not nest", lambda w: sh.Hierarchy.intervals([5, 8]), InputError, "multiple"),
    # tables
    ("a table of a dict", lambda w: sh.Table({"age": [1]}), InputError, "pl.DataFrame"),
    ("a table of an array", lambda w: sh.Table(np.zeros((3, 2))), InputError, "pl.DataFrame"),
    ("a table of a path", lambda w: sh.Table("people.csv"), InputError, "sh.read"),
    ("roles as a list", lambda w: sh.Table(w.frame, QUASI), RolesError, "sh.Roles("),
    ("a role for no column", lambda w: sh.Table(w.frame, sh.Roles(sensitive=["il"])), RolesError, "'ill'"),
    ("a file that is not there", lambda w: sh.read(w.folder / "peple.csv"), ReadError, "no file"),
    ("read(sep=...)", lambda w: sh.read(w.folder / "people.csv", sep=";"), CallError, "delimiter"),
    ("a frame that is assessed", lambda w: sh.assess(w.frame), InputError, "sh.Table"),
    ("roles twice", lambda w: sh.assess(w.table, roles={"quasi_identifiers": ["age"]}), RolesError, "Leave out 'roles'"),
    ("a frame that is measured", lambda w: sh.risk.marketer_risk(w.frame), InputError, "sh.Table("),
    ("a frame for a plan", lambda w: w.plan.apply(w.frame), InputError, "sh.Table("),
    ("a frame that is read", lambda w: sh.read(w.frame), InputError, "sh.Table("),
    ("one table of two", lambda w: sh.utility.total_variation(w.table), CallError, "'masked'"),
    ("tables of two inputs", lambda w: sh.risk.distance_linkage(w.table, sh.Table(w.frame, w.roles)), InputError, "paired("),
    ("a frame that is masked", lambda w: w.step.fit_transform(w.frame), InputError, "sh.Table"),
    ("serving before fitting", lambda w: sh.Round(base=5).transform(w.table), InputError, "fit"),
    ("masking an identifier", lambda w: sh.Suppress(columns=["name"], min_count=2).fit_transform(w.table), InputError, "identifier"),
    ("a column that is not there", lambda w: sh.Round(base=5, columns=["agee"]).fit_transform(w.table), UnknownName, "'age'"),
    # plans
    ("a plan of a model", lambda w: sh.Plan([sh.KAnonymity(3)]), PlanError, "require=[sh.KAnonymity"),
    ("a plan of a name", lambda w: sh.Plan(["generalize"]), PlanError, "sh.Generalize("),
    ("a plan of one step", lambda w: sh.Plan(w.step), PlanError, "steps=["),
    ("a plan of a class", lambda w: sh.Plan([sh.Round]), PlanError, "sh.Round("),
    ("one requirement", lambda w: sh.Plan([], require=sh.KAnonymity(3)), PlanError, "require=["),
    ("a step that is required", lambda w: sh.Plan([], require=[w.step]), PlanError, "steps"),
    ("Plan(requirements=...)", lambda w: sh.Plan([], requirements=[]), CallError, "'require'"),
    ("a plan that is not there", lambda w: sh.protect(w.table, "plan.tml"), PlanError, "shoal init"),
    ("roles of plan and table", lambda w: sh.protect(w.table, w.plan.replacing(roles=sh.Roles(quasi_identifiers=["age"]))), RolesError, "one of the two"),
    # protecting and saving
    ("neither plan nor k", lambda w: sh.protect(w.table), PlanError, "k=5"),
    ("protect(seed=...)", lambda w: sh.protect(w.table, w.plan, seed=1), CallError, "'progress'"),
    ("no roles", lambda w: sh.protect(w.frame, k=3), RolesError, "quasi_identifiers"),
    ("nothing is masked", lambda w: sh.protect(w.table, sh.Plan([], require=[sh.KAnonymity(3)])), RequirementNotMet, "a last step"),
    ("k beyond the table", lambda w: sh.protect(w.table, k=100), UnreachableLevel, "24"),
    ("save('x.csv')", lambda w: w.release.save(w.folder / "x.csv"), ReleaseError, "format='csv'"),
    ("save(fmt=...)", lambda w: w.release.save(w.folder / "x", fmt="csv"), CallError, "'format'"),
    ("save in a format of its own", lambda w: w.release.save(w.folder / "x", format="sas"), ReleaseError, "parquet"),
    ("save()", lambda w: w.release.save(), CallError, "'out'"),
    ("save(5)", lambda w: w.release.save(5), InputError, "folder"),
    ("an engine of another name", lambda w: sh.protect(w.table, k=3, engine="sparc"), InputError, "spark"),
    ("verifying a release", lambda w: sh.verify(w.release), InputError, "release.save("),
    ("a plan of nothing", lambda w: sh.Plan.load(None), InputError, "from_toml"),
    ("a plan of a dict", lambda w: sh.Plan.from_toml({}), PlanError, "from_dict"),
    ("save twice", lambda w: w.release.save(w.folder / "out"), ReleaseError, "force=True"),
    ("verifying nothing", lambda w: sh.verify(w.folder / "nothing"), ReleaseError, "folder"),
    ("tuning without a goal", lambda w: sh.tune(w.table), InputError, "max_risk"),
    ("assess(measure=...)", lambda w: sh.assess(w.table, measure=["uniqueness"]), CallError, "'measures'"),
    ("assess of no measure", lambda w: sh.assess(w.table, measures=["uniquenes"]), InputError, "'uniqueness'"),
    ("measures as text", lambda w: sh.assess(w.table, measures="uniqueness"), InputError, "list"),
    ("an option of no measure", lambda w: sh.risk.suda(w.table, sice=2), CallError, "'size'"),
    # what a clumsy hand does
    ("the plan first", lambda w: sh.protect(w.plan, w.table), PlanError, "table comes first"),
    ("k in the place of a plan", lambda w: sh.protect(w.table, 5), PlanError, "k=5"),
    ("a plan as a dict", lambda w: sh.protect(w.table, {"steps": []}), PlanError, "from_dict"),
    ("a plan as its text", lambda w: sh.protect(w.table, "[[steps]]\nmethod = 'round'\n"), PlanError, "from_toml"),
    ("a release that is protected", lambda w: sh.protect(w.release, k=3), InputError, "release.masked"),
    ("a release that is assessed", lambda w: sh.assess(w.release), InputError, "release.masked"),
    ("a release that is measured", lambda w: sh.risk.uniqueness(w.release), InputError, "release.masked"),
    ("a path that is assessed", lambda w: sh.assess("people.csv"), InputError, "sh.read"),
    ("a path that is measured", lambda w: sh.risk.uniqueness("people.csv"), InputError, "sh.read"),
    ("roles by column", lambda w: sh.Table(w.frame, {"age": "quasi"}), RolesError, "quasi_identifiers"),
    ("roles of a step's list", lambda w: sh.Plan([w.step], roles=["age"]), RolesError, "sh.Roles("),
    ("columns by number", lambda w: sh.Roles(quasi_identifiers=[0, 1]), RolesError, "text"),
    ("a list in a list", lambda w: sh.Roles(quasi_identifiers=[QUASI]), RolesError, "text"),
    ("a role that is None", lambda w: sh.Roles(quasi_identifiers=None), RolesError, "list"),
    ("a frame for a model", lambda w: sh.KAnonymity(3).level(w.frame), InputError, "sh.Table("),
    ("a release for a model", lambda w: sh.LDiversity(2).holds(w.release), InputError, "release.masked"),
    ("an array that is served", lambda w: sh.Round(base=5).fit(w.table).transform(np.zeros((2, 2))), InputError, "sh.Table("),
    ("fit(X, y)", lambda w: w.step.fit(w.table, w.table), CallError, "only by name: 'progress'"),
    ("drop(axis=1)", lambda w: w.table.drop("name", axis=1), CallError, "'columns'"),
    ("head('5')", lambda w: w.table.head("5"), ParameterError, "integer"),
    ("groupby", lambda w: w.table.groupby("age"), UnknownAttribute, "table.frame"),
    ("a plan that is required by a dict", lambda w: sh.Plan([w.step], require={"k_anonymity": 3}), PlanError, "require=["),
    ("a plan into a folder", lambda w: w.plan.save(w.folder), PlanError, "name of a file"),
    ("a folder of a plan", lambda w: sh.Plan.load(w.folder), PlanError, ".toml"),
    ("a function as a measure", lambda w: sh.assess(w.table, measures=[sh.risk.uniqueness]), InputError, "'uniqueness'"),
    ("a function that is limited", lambda w: sh.Limit(sh.risk.marketer_risk, at_most=0.1), ParameterError, "'marketer_risk'"),
    ("assessment['k']", lambda w: w.release.after["k"], UnknownName, "assessment.k"),
    ("assessment.plot", lambda w: w.release.after.plot(), UnknownAttribute, "to_html()"),
    ("one k for a curve", lambda w: sh.k_curve(w.table, ks=5), ParameterError, "list"),
    ("a frame for a curve", lambda w: sh.k_curve(w.frame), InputError, "sh.Table("),
    ("a frame for a suggestion", lambda w: sh.suggest_plan(w.frame), InputError, "sh.Table("),
    ("a frame that is tuned", lambda w: sh.tune(w.frame, max_risk=0.1), InputError, "sh.Table("),
    ("a study as a dict", lambda w: sh.run_study({"tables": []}, w.folder / "s"), InputError, "from_dict"),
    ("a study with a slip", lambda w: sh.run_study("tradeof", w.folder / "s"), InputError, "'tradeoff'"),
    ("l as half a value", lambda w: sh.LDiversity(2.5), ParameterError, "whole"),
    ("a column in the place of a kind", lambda w: sh.LDiversity(2, "ill"), ParameterError, "'distinct'"),
    ("a class as a requirement", lambda w: sh.Plan([w.step], require=[sh.KAnonymity]), PlanError, "sh.KAnonymity(5)"),
    ("a list of paths", lambda w: sh.read([w.folder / "people.csv"]), InputError, "one file at a time"),
    ("read(na_values=...)", lambda w: sh.read(w.folder / "people.csv", na_values=["x"]), CallError, "missing_values"),
    ("read(url)", lambda w: sh.read("https://example.org/people.csv"), ReadError, "local files"),
    ("save(format='CSV')", lambda w: w.release.save(w.folder / "y", format="CSV"), ReleaseError, "csv"),
    ("a frame as the original", lambda w: sh.verify(w.folder / "out", original=w.frame), InputError, "sh.Table("),
    # scikit-learn
    ("Protector of an array", lambda w: sh.Protector(w.plan, roles=w.roles).fit(np.zeros((9, 2))), InputError, "names=["),
    ("Protector(seed=...)", lambda w: sh.Protector(w.plan, seed=1), CallError, "'encode'"),
    ("Protector(encode=...)", lambda w: sh.Protector(w.plan, encode="onehot").fit(w.frame), InputError, "one-hot"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "error", "cure"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_one_sentence_with_the_cure(w, make, error, cure):
    with pytest.raises(error, match=re.escape(cure)) as raised:
        make(w)
    said = str(raised.value)
    assert isinstance(raised.value, ShoalError)
    assert len(said) < 500
    assert "\n" not in said
    assert raised.value.__cause__ is None, "one sentence, and no second traceback"


def test_an_index_of_pandas_is_no_column(w):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"age": [1, 2]}, index=pandas.Index(["a", "b"], name="id"))
    with pytest.raises(RolesError, match="reset_index"):
        sh.Table(frame, sh.Roles(identifiers=["id"], quasi_identifiers=["age"]))


def test_column_names_that_a_table_cannot_have():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"age": [1, 2], "pay": [3, 4]})
    levels = frame.set_axis(pandas.MultiIndex.from_tuples([("a", "b"), ("a", "c")]), axis=1)
    with pytest.raises(InputError, match="levels"):
        sh.Table(levels)
    with pytest.raises(InputError, match="Rename"):
        sh.Table(pandas.concat([frame, frame], axis=1))
    roles = sh.Roles(quasi_identifiers=np.array(["age"]))
    assert type(roles.quasi_identifiers[0]) is str


def test_there_are_many():
    assert len(MISTAKES) >= 100
    assert len({row[0] for row in MISTAKES}) == len(MISTAKES)
