"""What a refusal advises: tried by the program, so whoever follows it has a release."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import (
    InputError,
    ParameterError,
    PlanError,
    RequirementNotMet,
    UnreachableLevel,
)
from shoal.workflow._protect import mask_by
from shoal.workflow.advice import _advice
from shoal.workflow.advice._advice import advise
from shoal.workflow.advice._nearest import nearest, nearest_that_masks

ROLES = sh.Roles(quasi_identifiers=["age", "town"], sensitive=["ill"])


def people(rows=600):
    rng = np.random.default_rng(5)
    columns = {
        "age": rng.integers(20, 80, rows),
        "town": rng.choice(["north", "south", "east", "west"], rows),
        "ill": rng.choice(["flu", "cold", "asthma", "gout"], rows, p=[0.55, 0.25, 0.15, 0.05]),
    }
    return sh.Table(pl.DataFrame(columns), ROLES)


K5, MONDRIAN = sh.KAnonymity(5), sh.Generalize("mondrian", k=5)
PLANS = {
    "a smaller k than required": sh.Plan([sh.Generalize("mondrian", k=3)], require=[K5]),
    "t-closeness": sh.Plan([MONDRIAN], require=[K5, sh.TCloseness(0.3)]),
    "l-diversity": sh.Plan([MONDRIAN], require=[sh.LDiversity(3, kind="entropy")]),
    "no steps": sh.Plan(require=[K5]),
    "a limit": sh.Plan([MONDRIAN], require=[sh.Limit("marketer_risk", at_most=0.04)]),
    "records at risk": sh.Plan(
        [MONDRIAN], require=[sh.Limit("records_at_risk", at_most=0, options={"threshold": 0.05})]
    ),
    "groups": sh.Plan([sh.Microaggregate(k=3, dissimilarity="gower")], require=[K5]),
    "swapped": sh.Plan([sh.Swap(k=3)], require=[sh.ProbabilisticKAnonymity(5)]),
}


@pytest.mark.filterwarnings("ignore:What the swap does not cover")
@pytest.mark.parametrize("name", PLANS)
def test_whoever_follows_the_advice_has_a_release(name):
    table, plan = people(), PLANS[name]
    first = advise(mask_by(table, plan), plan)[0]
    assert sh.protect(table, first.plan).claims[0].holds
    with pytest.raises(RequirementNotMet, match="it holds") as told:
        sh.protect(table, plan)
    assert first.change in str(told.value)
    assert told.value.facts["advice"][0]["change"] == first.change


def test_the_advice_can_be_written_into_the_plan():
    table = people()
    with pytest.raises(RequirementNotMet) as told:
        sh.protect(table, PLANS["t-closeness"])
    change = told.value.facts["advice"][0]["change"]
    assert change == "models = { t_closeness = 0.3 } in step 1"
    text = PLANS["t-closeness"].to_toml()
    followed = text.replace("k = 5\n", f"k = 5\n{change.removesuffix(' in step 1')}\n", 1)
    assert sh.protect(table, sh.Plan.from_toml(followed)).claims[1].holds


@pytest.mark.filterwarnings("ignore:.*can be filled in:shoal.errors.DisclosureWarning")
def test_a_step_with_wildcards_is_not_enough_if_missing_values_are_values_of_their_own():
    rng = np.random.default_rng(3)
    columns = {name: rng.choice(4, 300, p=[0.55, 0.3, 0.13, 0.02]) for name in ("a", "b", "c")}
    table = sh.Table(pl.DataFrame(columns), sh.Roles(quasi_identifiers=["a", "b", "c"]))
    plan = sh.Plan([sh.Suppress(k=3, missing="wildcard")], require=[sh.KAnonymity(3)])
    found = {one.change: one for one in advise(mask_by(table, plan), plan)}
    change = 'missing = "own" in step 1'
    assert change in found
    assert not found[change].asks_less
    assert sh.protect(table, found[change].plan).claims[0].holds
    agreeing = plan.replacing(require=[sh.KAnonymity(20, missing="wildcard")])
    found = [one.change for one in advise(mask_by(table, agreeing), agreeing)]
    assert "k = 20 in step 1" in found  # the readings agree


def test_what_the_plan_reaches_and_where_it_fails():
    with pytest.raises(RequirementNotMet) as told:
        sh.protect(people(), PLANS["a smaller k than required"])
    measured = told.value.facts["requirements"][0]["measured"]
    assert 3 <= measured < 5
    assert f"reaches k = {measured:g}" in str(told.value)
    with pytest.raises(RequirementNotMet, match="in 'ill'"):
        sh.protect(people(), PLANS["t-closeness"])


def test_what_nothing_can_give_is_not_advised():
    table = people(40)
    plan = sh.Plan([MONDRIAN], require=[sh.Limit("certainty", at_most=0.0)])
    with pytest.raises(RequirementNotMet) as told:
        sh.protect(table, plan)
    assert told.value.facts["advice"] == []


def with_pay(rows=600):
    pay = np.random.default_rng(6).permutation(rows) + 1000
    table = people(rows)
    roles = sh.Roles(quasi_identifiers=["age", "town"], sensitive=["ill", "pay"])
    return sh.Table(table.frame.with_columns(pay=pl.Series(pay)), roles)


CLOSE, DIVERSE = sh.TCloseness(0.05), sh.LDiversity(3.9, kind="entropy", column="ill")
TOO_MUCH = {
    "t of every column": sh.Plan([MONDRIAN], require=[K5, CLOSE]),
    "t in the step": sh.Plan([sh.Generalize("mondrian", k=5, models=CLOSE)], require=[CLOSE]),
    "entropy": sh.Plan([MONDRIAN], require=[DIVERSE]),
    "entropy in the step": sh.Plan([sh.Generalize("mondrian", k=5, models=DIVERSE)]),
    "likeness": sh.Plan([MONDRIAN], require=[sh.BetaLikeness(0.001)]),
    "a limit": sh.Plan([MONDRIAN], require=[sh.Limit("marketer_risk", at_most=0.0005)]),
    "levels that stay": sh.Plan([sh.Round(base=20, columns=["age"])], require=[sh.LDiversity(4)]),
    "a k beyond the table": sh.Plan([sh.Generalize("mondrian", k=900)], require=[K5]),
}


@pytest.mark.filterwarnings("ignore:Every value")
@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_the_plan_reaches_at_best_holds(name):
    """No change to the steps is enough, so the nearest weaker requirement that was tried is."""
    table, plan = with_pay(), TOO_MUCH[name]
    with pytest.raises((RequirementNotMet, UnreachableLevel), match="it holds") as told:
        sh.protect(table, plan)
    assert str(told.value).endswith("Nothing was written.")
    made = None
    with contextlib.suppress(RequirementNotMet, UnreachableLevel):
        made = mask_by(table, plan)
    advice = nearest_that_masks(table, plan) if made is None else nearest(made, plan)
    assert [one.change in str(told.value) for one in advice] == [True] * len(advice)
    for one in advice:
        release = sh.protect(table, one.plan)
        assert all(claim.holds for claim in release.claims)
        assert release.after["normalized_certainty_penalty"].value < 1


@pytest.mark.filterwarnings("ignore:Every value")
def test_the_nearest_is_close_to_what_a_search_by_hand_finds():
    table, plan = with_pay(), TOO_MUCH["t in the step"]
    best = nearest_that_masks(table, plan)[-1].plan.require[0].t

    def holds(t):
        model = sh.TCloseness(t)
        steps = [sh.Generalize("mondrian", k=5, models=model)]
        try:
            return mask_by(table, sh.Plan(steps, require=[model])).claims[0].holds
        except RequirementNotMet:
            return False

    assert holds(best)
    assert not holds(best - 0.05)


def test_numbers_may_be_compared_by_their_order():
    with pytest.raises(RequirementNotMet) as told:
        sh.protect(with_pay(), TOO_MUCH["t of every column"])
    first = told.value.facts["advice"][0]
    assert first["asks_less"]
    assert 'distance = "ordered", column = "pay"' in first["change"]
    assert "in 'pay'" in str(told.value)
    assert "in 'ill'" in str(told.value)  # each column that fails, with what it reaches


def test_a_large_table_is_tried_on_whole_persons(monkeypatch):
    monkeypatch.setattr(_advice, "_MOST_RECORDS", 200)
    table = people()
    stays = sh.Table(
        table.frame.with_columns(who=pl.int_range(pl.len()) // 2),
        sh.Roles(quasi_identifiers=["age", "town"], unit="who"),
    )
    plan = PLANS["a smaller k than required"]
    first = advise(mask_by(stays, plan), plan)[0]
    assert 150 <= first.sampled <= 250
    assert first.sampled % 2 == 0
    assert "tried on" in first.sentence()


def test_the_advice_carries_no_cell():
    with pytest.raises(RequirementNotMet) as told:
        sh.protect(people(), PLANS["l-diversity"])
    assert not any(cell in str(told.value) for cell in ("asthma", "gout", "north"))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('[[steps]]\nmethod = "round"\nbase = 5\n\n[[steps]]\nmethod = "generalize"\nk = "5"\n',
         ParameterError, "Line 7 of the plan: Step 2 (generalize): "),
        ('[[steps]]\nmethod = "rund"\n', PlanError, "Line 1 of the plan: Step 1 (rund): "),
        ('[[steps]]\nbase = 5\n', PlanError, "Line 1 of the plan: Step 1: "),
        ("\n[require]\nk_anonimity = 3\n", PlanError, "Line 3 of the plan: "),
        ("\n[requires]\nk_anonymity = 3\n", PlanError, "Line 2 of the plan: "),
        ('steps = [{ method = "rund" }]\n', PlanError, "Step 1 (rund): "),
    ],
)  # fmt: skip
def test_errors_of_a_plan_name_the_step_and_the_line(text, error, said):
    with pytest.raises(error) as told:
        sh.Plan.from_toml(text)
    assert str(told.value).startswith(said)


def test_an_error_while_masking_names_the_step():
    plan = sh.Plan([sh.Round(base=5, columns=["age"]), sh.Microaggregate(k=3)])
    with pytest.raises(InputError, match=r"^Step 2 \(microaggregate\)"):
        sh.protect(people(), plan)


def test_a_second_change_costs_less_in_another_way():
    """The size of classes is doubled for a limit, but that only loses more if the first holds."""
    require = [sh.KAnonymity(10), sh.Limit("marketer_risk", at_most=0.05)]
    with pytest.raises(RequirementNotMet) as told:
        sh.protect(people(), sh.Plan([MONDRIAN], require=require))
    costs = [(one["loss"], one["records_lost"]) for one in told.value.facts["advice"]]
    assert costs
    assert all(after[1] < before[1] for before, after in itertools.pairwise(costs))


def test_a_change_that_cannot_be_compared_still_names_its_loss():
    with pytest.raises(UnreachableLevel, match=r"it holds \(loss 0\.") as told:
        sh.protect(people(60), sh.Plan([sh.Generalize("mondrian", k=90)]))
    assert "further" not in str(told.value)


@pytest.mark.parametrize("require", [[K5], [K5, sh.LDiversity(2)]])
def test_a_plan_that_removes_everybody_is_advised_to_use_ranges(require):
    table, plan = with_pay(40), sh.Plan([sh.Suppress(min_class_size=5)], require=require)
    with pytest.raises(RequirementNotMet, match=r"every record.*instead of step 1") as told:
        sh.protect(table, plan)
    (advice,) = told.value.facts["advice"]
    options = {} if len(require) == 1 else {"models": require[1]}
    followed = sh.Plan([sh.Generalize("mondrian", k=5, **options)], require=require)
    assert advice["loss"] == pytest.approx(
        sh.protect(table, followed).after["normalized_certainty_penalty"].value
    )
