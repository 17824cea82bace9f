"""The screen Plan: steps as cards, requirements in words, good beginnings, two tabs."""

from __future__ import annotations

import re
import warnings
from html import unescape

import pytest

from shoal.app.studio.planning._beginnings import BEGINNINGS
from shoal.app.studio.planning._fields import group_models
from shoal.app.studio.planning._methods import WORDS
from shoal.app.studio.planning._requirements import in_words, offers_for, usual_of
from shoal.errors import ShoalWarning
from shoal.masking import discover_maskers
from shoal.models import discover_models
from shoal.parameters import parameters_of
from shoal.workflow import protect

from ..conftest import FEW_ROLES

TWO_STEPS = (
    FEW_ROLES
    + """
# first the ages
[[steps]]
method = "round"
base = 5  # years
columns = ["age"]

[[steps]]
method = "generalize"
algorithm = "mondrian"
k = 5

[require]
k_anonymity = 5  # a crowd
"""
)


@pytest.fixture
def two(open_studio, people):
    """A studio with a plan of two steps."""
    return open_studio(people, TWO_STEPS)


@pytest.fixture
def dated(open_studio, tmp_path):
    """A studio with a table of dates, and two steps."""
    source = tmp_path / "data" / "stays.csv"
    source.parent.mkdir(exist_ok=True)
    lines = [f"{n % 20},2023-0{1 + n % 9}-1{n % 7},{30 + n % 5}" for n in range(60)]
    source.write_text("\n".join(["who,came,age", *lines]) + "\n", encoding="utf-8")
    steps = '[[steps]]\nmethod = "round"\nbase = 5\ncolumns = ["age"]\n' * 2
    plan = f'[roles]\nunit = "who"\nquasi_identifiers = ["came", "age"]\n{steps}'
    return open_studio(source, plan, folder="dated")


def version_of(browser):
    return browser.studio.project.version.number


def steps_of(browser):
    return browser.studio.project.plan.to_dict().get("steps", [])


def required_of(browser):
    return browser.studio.project.plan.to_dict().get("require", {})


def step_form(browser, number, **fields):
    return {"step": number, "card": f"step-{number}", "version": version_of(browser), **fields}


def text_of(answer):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text)))


# -- looking


def test_every_method_and_model_has_its_words():
    assert set(WORDS["methods"]) == set(discover_maskers())
    assert set(WORDS["models"]) == set(discover_models())


def test_cards_show_steps_in_order_with_their_columns(two):
    text = text_of(two.get("/plan"))
    assert text.index("1 Round") < text.index("2 Generalization")
    assert "Nobody is in a crowd smaller than 5." in text
    assert two.get("/plan").text.count("Works on") == 2


def test_only_methods_that_fit_are_offered(open_studio, people):
    plan = FEW_ROLES.replace('sensitive = ["diagnosis"]\n', "").replace('"income"', '"diagnosis"')
    browser = open_studio(people, plan)
    page = browser.get("/plan")
    assert 'value="redraw"' not in page.text
    assert "needs a sensitive column" in page.text
    assert 'value="round"' in page.text
    assert "l_diversity" not in {o.key for group in _offers(browser).values() for o in group}
    browser.post("/plan/steps/add", 422, method="redraw", card="add")
    assert steps_of(browser) == []


def _offers(browser):
    table = browser.studio.dataset.loaded().with_roles(browser.studio.project.plan.roles)
    return offers_for(table)


def test_a_page_without_a_table_says_so(open_studio):
    answer = open_studio().client.get("/plan")
    assert answer.status_code == 422
    assert "No table is chosen" in answer.text


def test_script_in_a_column_name_stays_text(open_studio, tmp_path):
    source = tmp_path / "data" / "odd.csv"
    source.parent.mkdir()
    name = "<script>alert(1)</script>"
    source.write_text(f"{name},b\n" + "1,2\n3,4\n" * 20, encoding="utf-8")
    plan = f'[roles]\nquasi_identifiers = ["{name}", "b"]\n[[steps]]\nmethod = "round"\nbase = 5\n'
    browser = open_studio(source, plan)
    page = browser.get("/plan").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


# -- steps


@pytest.mark.parametrize("method", sorted(discover_maskers()))
def test_every_method_can_be_added_and_its_form_kept(two, dated, method):
    """The form, as the page shows it, writes the same plan: nothing is lost."""
    two = dated if "date" in method else two
    two.post("/plan/steps/add", method=method, card="add")
    steps = steps_of(two)
    assert steps[2]["method"] == method
    two.post("/plan/steps/change", **step_form(two, 2, **_shown_form(two, "step-2")))
    assert steps_of(two) == steps


def _shown_form(browser, card):
    """What a browser would send of a card that nobody touched."""
    page = browser.get("/plan").text
    block = page.split(f'id="{card}"')[1].split("</form>\n</li>")[0].split('class="settings">')[1]
    fields = {}
    for tag in re.findall(r"<input[^>]*>", block):
        found = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if found.get("type") == "hidden" or (found.get("type") == "checkbox") != ("checked" in tag):
            continue
        if found.get("type") != "checkbox":
            fields[found["name"]] = unescape(found.get("value", ""))
        else:
            fields.setdefault(found["name"], []).append(unescape(found["value"]))
    for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', block, re.S):
        chosen = re.findall(r'<option value="([^"]*)" selected', options)
        fields[name] = unescape(chosen[0])
    return fields


def test_a_change_keeps_comments_and_other_lines(two):
    form = step_form(two, 0, **_shown_form(two, "step-0")) | {"p.base": "10"}
    two.post("/plan/steps/change", **form)
    text = two.studio.project.version.plan
    assert "base = 10" in text
    assert "# first the ages" in text
    assert "# who is who" in text
    assert "k_anonymity = 5  # a crowd" in text


def test_weights_have_a_field_for_each_column(two):
    two.post("/plan/steps/add", method="generalize", card="add")
    form = _shown_form(two, "step-2")
    two.post("/plan/steps/change", **step_form(two, 2, **form | {"p.weights.1": "2,5"}))
    asked = two.studio.project.plan.roles.quasi_identifiers[1]
    assert steps_of(two)[2]["weights"] == {asked: 2.5}
    two.post("/plan/steps/change", 422, **step_form(two, 2, **form | {"p.weights.1": "0"}))


def test_sets_of_columns_are_typed_as_in_a_plan(two):
    two.post("/plan/steps/add", method="suppress", card="add")
    form = _shown_form(two, "step-2") | {"p.k": "3", "p.min_class_size": "", "p.min_count": ""}
    form |= {"p.max_distinct": "", "p.where": ""}
    two.post("/plan/steps/change", **step_form(two, 2, **form | {"p.combinations": '[1, ["age"]]'}))
    for typed in ("2", "[2", "2020-01-01", "[" * 900):
        sent = step_form(two, 2, **form | {"p.combinations": typed})
        assert "sets of columns" in two.post("/plan/steps/change", 422, **sent).text


def test_columns_and_a_comma_are_read(two):
    two.post("/plan/steps/change", **step_form(two, 0, **{"p.base": "2,5", "p.columns": ["age"]}))
    assert steps_of(two)[0] == {"method": "round", "base": 2.5, "columns": ["age"]}


@pytest.mark.parametrize(
    ("fields", "models"),
    [
        ({"l_diversity.l": "2"}, {"l_diversity": 2}),
        (
            {"l_diversity.l": "2", "l_diversity.kind": "recursive", "l_diversity.c": "3"},
            {"l_diversity": {"l": 2, "kind": "recursive", "c": 3}},
        ),
        (
            {"t_closeness.t": "0,4", "t_closeness.column": "diagnosis", "l_diversity.l": "2"},
            [{"l_diversity": 2}, {"t_closeness": {"t": 0.4, "column": "diagnosis"}}],
        ),
        (
            {"k_anonymity.k": "3", "k_anonymity.of": "histories"},
            {"k_anonymity": {"k": 3, "of": "histories"}},
        ),
        (
            {"alpha_k_anonymity.alpha": ".6", "alpha_k_anonymity.k": "4"},
            {"alpha_k_anonymity": {"alpha": 0.6, "k": 4}},
        ),
        ({"l_diversity.kind": "entropy"}, "none"),
    ],
)
def test_models_of_a_step_are_asked_for_with_all_they_declare(two, fields, models):
    form = step_form(two, 1, **_shown_form(two, "step-1"))
    two.post("/plan/steps/change", **form | {f"p.models.{n}": value for n, value in fields.items()})
    assert steps_of(two)[1].get("models", "none") == models
    steps = steps_of(two)
    two.post("/plan/steps/change", **step_form(two, 1, **_shown_form(two, "step-1")))
    assert steps_of(two) == steps  # what nobody touched stays
    form = step_form(two, 1, **_shown_form(two, "step-1"))
    two.post("/plan/steps/change", **form | {f"p.models.{name}": "" for name in fields})
    assert "models" not in steps_of(two)[1]


def test_every_declared_parameter_of_a_model_has_a_field(two):
    page = two.get("/plan").text
    assert {"l_diversity", "t_closeness", "k_anonymity", "k_map"} <= set(group_models())
    for name, model in group_models().items():
        for parameter in parameters_of(model):
            assert f'name="p.models.{name}.{parameter.name}"' in page


def test_models_that_a_plan_lists_are_shown_too(two):
    now = two.studio.project.version
    listed = "models = [{ l_diversity = 2 }, { t_closeness = 0.5 }]"
    text = now.plan.replace("k = 5\n", f"k = 5\n{listed}\n", 1)
    two.studio.project.replace_plan(text, based_on=now.number)
    form = step_form(two, 1, **_shown_form(two, "step-1"))
    assert (form["p.models.l_diversity.l"], form["p.models.t_closeness.t"]) == ("2", "0.5")
    two.post("/plan/steps/change", **form | {"p.models.t_closeness.t": ""})
    assert steps_of(two)[1]["models"] == {"l_diversity": 2}


@pytest.mark.filterwarnings("ignore::shoal.errors.RenamedWarning")
def test_models_under_their_old_name_are_shown_and_written_under_the_new_one(two):
    now = two.studio.project.version
    old = 'method = "swap"\ngroups_satisfy = { l_diversity = 2 }\n'
    text = now.plan.replace('method = "generalize"\nalgorithm = "mondrian"\n', old)
    two.studio.project.replace_plan(text, based_on=now.number)
    form = step_form(two, 1, **_shown_form(two, "step-1"))
    assert form["p.models.l_diversity.l"] == "2"
    two.post("/plan/steps/change", **form | {"p.k": "6"})
    assert steps_of(two)[1]["models"] == {"l_diversity": 2}
    assert "groups_satisfy" not in two.studio.project.version.plan


def test_a_model_that_is_asked_for_twice_stays_as_it_is_written(two):
    text = two.studio.project.version.plan.replace(
        "k = 5\n", "k = 5\nmodels = { l_diversity = [2, 3] }\n", 1
    )
    two.studio.project.replace_plan(text, based_on=two.studio.project.version.number)
    two.post("/plan/steps/change", **step_form(two, 1, **_shown_form(two, "step-1")))
    assert "models = { l_diversity = [2, 3] }" in two.studio.project.version.plan


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"p.k": "1"}, "≥ 2"),
        ({"p.k": "five"}, "integer"),
        ({"p.k": ""}, "needs 'k' or 'models'"),
        ({"p.algorithm": "magic"}, "one of"),
        ({"p.seconds": "-3", "p.k": "5"}, "> 0"),
        ({"p.k": "9" * 3000}, "too long"),
    ],
)
def test_what_is_wrong_is_said_beside_the_card(two, fields, word):
    form = step_form(two, 1, **_shown_form(two, "step-1")) | fields
    answer = two.post("/plan/steps/change", 422, **form)
    card = answer.text.split('id="step-1"')[1].split("</li>")[0]
    assert word in unescape(card.split('role="alert">')[1].split("</p>")[0])
    assert answer.headers["hx-push-url"] == "false"
    assert steps_of(two)[1]["k"] == 5


def test_steps_move_and_go(two):
    two.post("/plan/steps/move", **step_form(two, 1, by=-1))
    assert [step["method"] for step in steps_of(two)] == ["generalize", "round"]
    two.post("/plan/steps/move", **step_form(two, 0, by=-1))
    assert [step["method"] for step in steps_of(two)] == ["generalize", "round"]
    two.post("/plan/steps/remove", **step_form(two, 0))
    two.post("/plan/steps/remove", **step_form(two, 0))
    assert steps_of(two) == []
    assert "# who is who" in two.studio.project.version.plan
    two.post("/plan/steps/add", method="round", card="add")
    assert steps_of(two) == [{"method": "round", "base": 5}]


@pytest.mark.parametrize("number", ["7", "-1", "x", ""])
def test_a_step_that_is_not_there_is_refused(two, number):
    form = {"step": number, "card": "", "version": version_of(two)}
    two.post("/plan/steps/remove", 422, **form)
    assert len(steps_of(two)) == 2


def test_an_unknown_method_is_refused(two):
    answer = two.post("/plan/steps/add", 422, method="magic", card="add")
    assert "no such method" in answer.text
    assert "magic" not in answer.text


# -- two tabs and an editor


def test_a_step_that_another_tab_changed_is_not_overwritten(two):
    stale = step_form(two, 1, **_shown_form(two, "step-1")) | {"p.k": "3"}
    other = step_form(two, 1, **_shown_form(two, "step-1")) | {"p.k": "7"}
    two.post("/plan/steps/change", **other)
    answer = two.post("/plan/steps/change", 409, **stale)
    assert "changed in the meantime" in answer.text
    assert steps_of(two)[1]["k"] == 7


def test_a_change_of_another_step_is_no_conflict(two):
    stale = step_form(two, 1, **_shown_form(two, "step-1")) | {"p.k": "3"}
    two.post("/plan/steps/change", **step_form(two, 0, **{"p.base": "10", "p.columns": ["age"]}))
    two.post("/plan/steps/change", **stale)
    assert [step.get("base") or step.get("k") for step in steps_of(two)] == [10, 3]


def test_a_step_that_moved_meanwhile_is_not_removed(two):
    stale = step_form(two, 0)
    two.post("/plan/steps/move", **step_form(two, 0, by=1))
    two.post("/plan/steps/remove", 409, **stale)
    two.post("/plan/require/remove", key="k_anonymity", place=0, version=version_of(two))
    assert len(steps_of(two)) == 2


def test_a_step_broken_in_an_editor_is_shown_and_can_be_mended(two):
    project = two.studio.project
    broken = TWO_STEPS.replace("k = 5\n", "k = 1\n").replace('"round"', '"rouns"')
    (project.folder / "plan.toml").write_text(broken, encoding="utf-8")
    text = text_of(two.get("/plan"))
    assert "must be an integer ≥ 2" in text
    assert "Did you mean 'round'" in text
    two.post("/plan/steps/remove", 422, **step_form(two, 1))  # the other one is wrong still
    project.replace_plan(TWO_STEPS.replace("k = 5\n", "k = 6\n"), based_on=version_of(two))
    (project.folder / "plan.toml").write_text(TWO_STEPS + "[[steps", encoding="utf-8")
    assert "not valid TOML" in text_of(two.get("/plan"))
    two.post("/plan/steps/remove", 422, **step_form(two, 0))


# -- requirements


def test_requirements_are_said_in_words():
    assert in_words("k_anonymity", {"k": 5}) == "Nobody is in a crowd smaller than 5."
    asked = {"k": 5, "of": "histories"}
    assert in_words("k_anonymity", asked) == "Nobody is in a crowd smaller than 5 (of histories)."
    linkage = in_words("max_linkage_rate", {"value": 0.05})
    assert linkage == "At most 5\u00a0% right links by distance."
    assert in_words("beta_likeness", {"beta": 1}).count("2 times") == 1
    assert in_words("max_suda", {"value": 0.2}).endswith(": at most 0.2.")


def test_every_offer_opens_a_form_and_most_can_be_kept(two):
    offers = [offer for group in _offers(two).values() for offer in group]
    assert {"k_anonymity", "l_diversity", "max_linkage_rate"} <= {offer.key for offer in offers}
    rare = ("max_", "min_")  # one of them stands for all: their forms are made in one way
    for offer in (o for o in offers if not o.key.startswith(rare) or o.key == "max_linkage_rate"):
        form = {f"p.{name}": value for name, value in usual_of(offer.key).items()}
        needs_file = "population" in usual_of(offer.key)
        two.post("/plan/require/add", 422 if needs_file else 200, key=offer.key, card="new", **form)
    asked = required_of(two)
    assert asked["k_anonymity"] == [5, 5]
    assert asked["max_linkage_rate"] == 0.05
    assert 'id="new"' in two.get("/plan?require=k_map").text
    assert all(usual_of(offer.key) for offer in offers)


def test_requirements_are_changed_and_removed(two):
    form = {"key": "k_anonymity", "place": 0, "card": "require-k_anonymity-0"}
    two.post("/plan/require/change", **form, version=version_of(two), **{"p.k": "8"})
    assert required_of(two) == {"k_anonymity": 8}
    more = {"p.k": "8", "p.missing": "wildcard"}
    two.post("/plan/require/change", **form, version=version_of(two), **more)
    assert required_of(two) == {"k_anonymity": {"k": 8, "missing": "wildcard"}}
    stale = version_of(two)
    two.post("/plan/require/remove", **form, version=stale)
    assert required_of(two) == {}
    assert "requires nothing" in two.get("/plan").text
    two.post("/plan/require/remove", 409, **form, version=stale)


@pytest.mark.parametrize(
    ("key", "fields"),
    [("k_anonymity", {"p.k": "1"}), ("max_linkage_rate", {"p.value": "much"}), ("magic", {})],
)
def test_a_bad_requirement_is_refused(two, key, fields):
    two.post("/plan/require/add", 422, key=key, card="new", **fields)
    assert required_of(two) == {"k_anonymity": 5}
    assert two.client.get("/plan?require=magic").status_code == 422


# -- good beginnings


@pytest.mark.parametrize("beginning", BEGINNINGS, ids=lambda one: one.name)
def test_a_beginning_is_one_version_and_leads_to_a_release(two, beginning):
    before = version_of(two)
    two.post("/plan/begin", name=beginning.name)
    assert version_of(two) == before + 1
    plan, asked = two.studio.project.plan, required_of(two)
    assert asked["k_anonymity"] == beginning.k
    assert asked["l_diversity"] == beginning.diversity
    table = two.studio.dataset.loaded().with_roles(plan.roles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        assert all(claim.holds for claim in protect(table, plan).claims)


def test_a_beginning_asks_for_no_diversity_without_a_secret(open_studio, people):
    plan = FEW_ROLES.replace('sensitive = ["diagnosis"]\n', "").replace('"income"', '"diagnosis"')
    browser = open_studio(people, plan)
    browser.post("/plan/begin", name="hospital")
    assert required_of(browser) == {"k_anonymity": 11}
    browser.post("/plan/begin", 422, name="circus", card="begin")


def test_a_beginning_without_quasi_identifiers_says_where_to_go(open_studio, people):
    browser = open_studio(people)
    answer = browser.post("/plan/begin", 422, name="open", card="begin")
    assert "under Roles" in text_of(answer)


def test_hierarchies_that_were_made_are_used(two):
    with two.studio.project.changing("hierarchy made") as (_, settings):
        settings["hierarchies"] = {"age": {"intervals": [7, 21]}}
    two.post("/plan/begin", name="statistics")
    assert steps_of(two)[0]["hierarchies"]["age"] == {"intervals": [7, 21]}
    two.post("/plan/steps/add", method="generalize", card="add")
    assert steps_of(two)[1]["hierarchies"]["age"] == {"intervals": [7, 21]}
