"""Plans: what they accept, how they fail, and that both forms are one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shoal import KAnonymity, Limit, Plan, Roles, Round, Suppress, TopBottomCode
from shoal.errors import ParameterError, PlanError, RolesError

from .samples import ROLES, people

COMPLETE = """
keep_order = true

[roles]
identifiers = ["name"]
quasi_identifiers = ["age", "city"]
sensitive = ["diagnosis"]
insensitive = ["visits"]

[[steps]]
method = "suppress"
max_distinct = 0.7

[[steps]]
method = "top_bottom_code"
fence = 1.5
columns = ["age"]

[[steps]]
method = "round"
base = 20

[require]
k_anonymity = 3
max_marketer_risk = 0.25
max_records_at_risk = { value = 0.1, threshold = 0.5 }
min_uniqueness = 0
"""


def test_a_complete_plan():
    plan = Plan.from_toml(COMPLETE)
    assert plan == Plan(
        [Suppress(max_distinct=0.7), TopBottomCode(fence=1.5, columns=["age"]), Round(base=20)],
        require=[
            KAnonymity(3),
            Limit("marketer_risk", at_most=0.25),
            Limit("records_at_risk", at_most=0.1, options={"threshold": 0.5}),
            Limit("uniqueness", at_least=0),
        ],
        roles=ROLES,
        keep_order=True,
    )
    assert Plan.from_toml(plan.to_toml()) == plan
    assert plan != Plan.from_toml(COMPLETE.replace("base = 20", "base = 10"))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("[requires]", PlanError, "no part 'requires'. Did you mean 'require'?"),
        ("[[step]]\nmethod='round'", PlanError, "no part 'step'. Did you mean 'steps'?"),
        ("keep_order = 1", PlanError, "keep_order"),
        ("keep_order = 'yes'", PlanError, "true or false"),
        ("steps = 5", PlanError, "[[steps]]"),
        ("[steps]\nmethod = 'round'", PlanError, "[[steps]]"),
        ("[[steps]]\nbase = 5", PlanError, "method"),
        ("[[steps]]\nmethod = 'rounds'", PlanError, "Did you mean 'round'?"),
        ("[[steps]]\nmethod = 5", PlanError, "There is no method '5'"),
        ("[[steps]]\nmethod = []", PlanError, "There is no method"),
        ("[[steps]]\nmethod = {}", PlanError, "There is no method"),
        ("[[steps]]\nmethod = 'round'", ParameterError, "step 'round' needs a value for 'base'"),
        ("[[steps]]\nmethod = 'round'\nbas = 5", ParameterError, "Did you mean 'base'?"),
        (
            "[[steps]]\nmethod = 'round'\nbase = 0",
            ParameterError,
            "The 'base' parameter of Round must be a number > 0. Got 0 instead.",
        ),
        ("[[steps]]\nmethod = 'round'\nbase = '5'", ParameterError, "Got '5' instead."),
        ("[[steps]]\nmethod = 'round'\nbase = nan", ParameterError, "Got nan instead."),
        ("[[steps]]\nmethod = 'round'\nbase = inf", ParameterError, "Got inf instead."),
        ("[[steps]]\nmethod = 'round'\nbase = true", ParameterError, "Got True instead."),
        ("[[steps]]\nmethod='round'\nbase=5\ncolumns='age'", ParameterError, "a list of different"),
        ("[[steps]]\nmethod='round'\nbase=5\ncolumns=[]", ParameterError, "a list of different"),
        ("[[steps]]\nmethod='round'\nbase=5\ncolumns=['a','a']", ParameterError, "different"),
        ("[[steps]]\nmethod = 'suppress'", ParameterError, "exactly one rule"),
        (
            "[[steps]]\nmethod = 'suppress'\nmin_count = 2\nmax_distinct = 0.5",
            ParameterError,
            "Got 'max_distinct' and 'min_count' instead",
        ),
        (
            "[[steps]]\nmethod = 'suppress'\nmin_count = 2\ntarget = 'records'",
            ParameterError,
            "is for 'where'",
        ),
        (
            "[[steps]]\nmethod = 'suppress'\nmin_class_size = 2\ncolumns = ['age']",
            ParameterError,
            "has no effect when whole records",
        ),
        ("require = 5", PlanError, "[require]"),
        ("[require]\nk_anonimity = 5", PlanError, "Did you mean 'k_anonymity'?"),
        ("[require]\nmax_marketer_risks = 1", PlanError, "Did you mean 'max_marketer_risk'?"),
        ("[require]\nmarketer_risk = 1", PlanError, "Did you mean 'max_marketer_risk'?"),
        ("[require]\nk_anonymity = 1", ParameterError, "an integer ≥ 2. Got 1 instead."),
        ("[require]\nk_anonymity = 2.5", ParameterError, "an integer ≥ 2"),
        ("[require]\nk_anonymity = true", ParameterError, "an integer ≥ 2"),
        ("[require]\nk_anonymity = []", PlanError, "has no value"),
        ("[require]\nmax_uniqueness = []", PlanError, "has no value"),
        ("[require]\nk_anonymity = {}", ParameterError, "needs a value for 'k'"),
        (
            "[require]\nk_anonymity = {k = 2, mising = 'own'}",
            ParameterError,
            "Did you mean 'missing'?",
        ),
        ("[require]\nk_anonymity = {k = 2, missing = 'any'}", ParameterError, "'own', 'wildcard'"),
        ("[require]\nmax_uniqueness = 'low'", ParameterError, "takes one number"),
        ("[require]\nmax_uniqueness = inf", ParameterError, "takes one number"),
        ("[require]\nmax_uniqueness = {threshold = 1}", ParameterError, "takes one number"),
        (
            "[require]\nmax_uniqueness = {value = 0.1, treshold = 1}",
            ParameterError,
            "'uniqueness' has no option 'treshold'",
        ),
        (
            "[require]\nmax_records_at_risk = {value = 0.1, treshold = 1}",
            ParameterError,
            "Did you mean 'threshold'?",
        ),
        ("roles = []", PlanError, "[roles]"),
        ("[roles]\nidentifier = ['a']", RolesError, "Did you mean 'identifiers'?"),
        ("[roles]\nidentifiers = 'name'", RolesError, "Write ['name']."),
        ("[roles]\nidentifiers = 5", RolesError, "a list of column names"),
        ("[roles]\nidentifiers = {a = 1}", RolesError, "a list of column names"),
        ("[roles]\nidentifiers = [5]", RolesError, "column names as text"),
        ("[roles]\nweight = ['w']", RolesError, "one column name"),
        ("[roles]\nidentifiers = ['a']\nsensitive = ['a']", RolesError, "two roles"),
        ("a = ", PlanError, "not valid TOML"),
        ("a = 1\na = 2", PlanError, "not valid TOML"),
    ],
)
def test_what_is_refused(text, error, said):
    with pytest.raises(error) as caught:
        Plan.from_toml(text)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_a_name_required_twice():
    plan = Plan(require=[KAnonymity(2), KAnonymity(3, missing="wildcard"), KAnonymity(4)])
    assert plan.to_dict() == {"require": {"k_anonymity": [2, {"k": 3, "missing": "wildcard"}, 4]}}
    assert Plan.from_toml(plan.to_toml()).require == plan.require


@pytest.mark.parametrize("base", [np.int64(5), np.float64(5), np.float32(5), Fraction(5)])
def test_numbers_of_other_libraries_are_written_as_plain_ones(base):
    assert Plan.from_toml(Plan([Round(base=base)]).to_toml()) == Plan([Round(base=5)])


def test_tuples_of_columns_are_lists_in_the_file():
    plan = Plan([Round(base=5, columns=("age", "city"))])
    assert Plan.from_toml(plan.to_toml()) == plan == Plan([Round(base=5, columns=["age", "city"])])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"steps": Round(base=5)}, r"'steps' .* got Round"),
        ({"steps": "round"}, "'steps' .* got str"),
        ({"require": KAnonymity(3)}, r"'require' .* got KAnonymity"),
        ({"steps": ["round"]}, "masking method; got str"),
        ({"steps": [KAnonymity(2)]}, "got KAnonymity"),
        ({"require": [5]}, "a privacy model or a limit; got int"),
        ({"require": [Round(base=5)]}, "got Round"),
        ({"engine": 5}, "EngineSettings"),
        ({"keep_order": None}, "true or false"),
    ],
)
def test_wrong_objects(arguments, said):
    with pytest.raises(PlanError, match=said):
        Plan(**arguments)


@pytest.mark.parametrize("what", [None, [1], 5, "steps"])
def test_what_is_no_plan(what):
    with pytest.raises(PlanError, match="table of its parts"):
        Plan.from_dict(what)


def test_a_limit_on_several_measures_is_refused():
    with pytest.raises(ParameterError, match="There is no measure"):
        Limit(["uniqueness", "homogeneity"], at_most=0.1)


def test_limits_check_their_options_where_they_are_made():
    with pytest.raises(ParameterError, match=r"no measure 'market_risk'\. Did you mean"):
        Limit("market_risk", at_most=0.1)
    with pytest.raises(ParameterError, match="takes one number"):
        Limit("uniqueness")
    with pytest.raises(ParameterError, match="takes one number"):
        Limit("uniqueness", at_most=0.1, at_least=0.1)
    with pytest.raises(ParameterError, match="has no option 'population'"):
        Limit("journalist_risk", at_most=0.1, options={"population": people()})
    with pytest.raises(ParameterError, match=r"threshold.*got list"):
        Limit("records_at_risk", at_most=0.1, options={"threshold": [0.1]})


def test_files(tmp_path):
    plan = Plan.from_toml(COMPLETE)
    plan.save(tmp_path / "plan.toml")
    assert Plan.load(tmp_path / "plan.toml") == plan
    with pytest.raises(PlanError, match="There is no plan at"):
        Plan.load(tmp_path / "nothing.toml")
    with pytest.raises(PlanError, match="folder"):
        Plan.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes("# größe".encode("latin-1"))
    with pytest.raises(PlanError, match="UTF-8"):
        Plan.load(tmp_path / "latin.toml")


def test_repr_is_one_line():
    assert repr(Plan.from_toml(COMPLETE)).startswith("Plan: suppress, top_bottom_code, round; ")
    assert repr(Plan()) == "Plan: no steps; requires nothing"


def test_repr_shows_no_condition_and_no_seed():
    """A condition may quote a cell; a plan is printed into notebooks and logs."""
    plan = Plan([Suppress(where="city = 'canary-7d1f'")])
    assert "canary" not in repr(plan)


# -- roles in the plan, in the table, or in both


def test_roles_of_the_plan_serve_a_table_without():
    table = people().with_roles(Roles())
    assert Plan(roles=ROLES).roles_for(table) == ROLES
    assert Plan().roles_for(people()) == ROLES
    assert Plan(roles=ROLES).roles_for(people()) == ROLES


def test_roles_that_contradict_are_refused():
    with pytest.raises(RolesError, match="different roles"):
        Plan(roles=ROLES.replacing(insensitive=())).roles_for(people())


# -- applying


def test_apply_runs_the_steps_in_order_and_says_what_they_did():
    plan = Plan([Round(base=20), Suppress(min_count=13), Suppress(max_distinct=0.01)])
    said = []
    masked, records = plan.apply(
        people(), progress=lambda label, share: said.append((label, share))
    )
    assert [record.method for record in records] == ["round", "suppress", "suppress"]
    assert records[0].touched == ("age",)
    assert records[0].skipped == {"city": "text, not integer or float"}
    assert records[2].removed_columns == ("age",)
    assert masked.columns == ["name", "city", "diagnosis", "visits"]
    assert masked.row_key.tolist() == list(range(24))
    assert said == [
        ("Masking: round", 0.0),
        ("Masking: suppress", 1 / 3),
        ("Masking: suppress", 2 / 3),
    ]


def test_apply_stops_when_no_record_is_left():
    plan = Plan([Suppress(where="age > 0", target="records"), Round(base=5)])
    masked, records = plan.apply(people())
    assert len(masked) == 0
    assert len(records) == 1
    assert records[0].removed == 24


def test_steps_work_on_what_the_steps_before_left():
    """Any order and combination: a step without a column left to work on does nothing."""
    masked, records = Plan([Suppress(max_distinct=0), Round(base=5)]).apply(people())
    assert masked.columns == ["name", "diagnosis", "visits"]
    assert records[1].touched == ()


def test_a_rule_over_records_works_without_quasi_identifiers_too():
    plan = Plan([Suppress(max_distinct=0), Suppress(where="visits = 0", target="records")])
    masked, records = plan.apply(people())
    assert masked.columns == ["name", "diagnosis", "visits"]
    assert 0 not in masked.frame["visits"].to_list()
    assert records[1].removed == 5


def test_records_keep_what_is_private_apart():
    plan = Plan([Suppress(where="city = 'canary-7d1f'")])
    (record,) = plan.apply(people())[1]
    assert record.parameters == {}
    assert "canary" not in repr({**vars(record), "private": None})
