"""Tuning: the recommended plan holds for people and draws that the search has not seen."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal.errors import InputError, UnreachableLevel
from shoal.study.data._tables import chosen_rows
from shoal.study.running._store import Store
from shoal.study.tuning import Family, default_space, tune
from shoal.study.tuning import _judge as judging
from shoal.study.tuning._tune import searched_and_held_out
from shoal.study.tuning._tuning import Goal, Tried

SWAP = Family("swap", ({"method": "swap", "dissimilarity": "gower"},), {"0.k": (2, 5, 12)})
ROUND = Family("round", ({"method": "round"},), {"0.base": (2, 40)})
SMALL = [SWAP, ROUND]


@pytest.fixture
def table():
    rng = np.random.default_rng(11)
    age = rng.integers(18, 90, 400)
    pay = np.round(age * 50 + rng.normal(0, 400, 400), 2)
    frame = pl.DataFrame(
        {
            "age": age,
            "pay": pay,
            "city": rng.choice(["Bern", "Graz", "Jena"], 400),
            "ill": np.where(age + rng.normal(0, 12, 400) > 55, "yes", "no"),
        }
    )
    roles = sh.Roles(quasi_identifiers=["age", "pay", "city"], sensitive=["ill"], target="ill")
    return sh.Table(frame, roles)


def test_the_recommended_plan_holds_on_a_fresh_draw(table):
    found = tune(table, max_risk=0.2, space=SMALL)
    assert found.plan.steps[0].method == "swap"
    assert found.risk.value <= 0.2
    for seed in (1, 2, 3):
        plan = judging.seeded(found.chosen.steps, seed)
        with pytest.warns(sh.errors.ShoalWarning):
            masked = plan.apply(table)[0]
        assert sh.risk.distance_linkage(table, masked).value <= 0.2
    assert {one.label for one in found.tried} == {
        "swap k=2", "swap k=5", "swap k=12", "round base=2", "round base=40",
    }  # fmt: skip
    assert "5 plans" in found.reason
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_it_is_the_most_useful_of_those_under_the_limit(table):
    found = tune(table, max_risk=0.3, space=SMALL)
    under = [o for o in found.tried if o.risk_interval[1] <= 0.3 and math.isfinite(o.utility)]
    assert len(under) >= 2
    assert found.chosen.utility == max(one.utility for one in under)
    sure = replace(found, utility=replace(found.utility, interval=(0.0, 0.0)))
    unsure = replace(found, utility=replace(found.utility, interval=(0.0, 1.0)))
    measured = [one for one in found.tried if one.risk <= 0.3 and math.isfinite(one.utility)]
    assert (sure.not_told_apart, unsure.not_told_apart) == (0, len(measured) - 1)
    # no model is trained for a plan far above the limit
    given_up = [one for one in found.tried if one.risk > 0.9]
    assert given_up
    assert all(math.isnan(one.utility) for one in given_up)
    assert any(one.on_front for one in found.tried)


def test_the_plan_carries_its_limit_and_runs(table):
    found = tune(table, max_risk=0.2, space=SMALL)
    again = sh.Plan.from_toml(found.plan.to_toml())
    assert again == found.plan
    assert again.roles == table.roles
    assert [(r.key, r.threshold) for r in again.require] == [("max_linkage_rate", 0.2)]
    with pytest.warns(sh.errors.DisclosureWarning):  # some groups have one value of 'ill'
        release = sh.protect(sh.Table(table.frame), again)
    assert release.claims[0].holds
    assert all(step.get_params().get("random_state") is None for step in again.steps)


def test_the_search_never_sees_those_who_are_held_out(table, monkeypatch):
    masked_people, tested = [], []
    real_apply, real_measure = sh.Plan.apply, judging.Judge._measure

    def apply(self, given, **more):
        masked_people.append(set(given.row_key.tolist()))
        return real_apply(self, given, **more)

    def measure(self, choice, masked, **more):
        people = set(self.people.row_key.tolist()) | set(masked.row_key.tolist())
        held = set(more["holdout"].row_key.tolist()) if "holdout" in more else set()
        tested.append((people, held))
        return real_measure(self, choice, masked, **more)

    monkeypatch.setattr(sh.Plan, "apply", apply)
    monkeypatch.setattr(judging.Judge, "_measure", measure)
    found = tune(table, max_risk=0.2, space=SMALL, search_rows=200, random_state=1)
    held = [(people, out) for people, out in tested if out]
    assert len(held) == 1  # only once, at the very end
    assert tested[-1] == held[0]
    out = held[0][1]
    assert len(out) == found.held_out == 100
    for people in [*masked_people, *(people for people, _ in tested)]:
        assert not people & out
    # the search uses a sample, later steps use everyone except those held out
    sizes = [len(people) for people in masked_people]
    assert sizes == sorted(sizes)
    assert set(sizes) == {200, 300}
    assert sizes.count(300) == len(found.finals) + 1
    assert found.of == 300
    assert found.searched_on == 200
    assert "200 of 300 people" in found.reason


def test_the_best_of_some_people_are_tried_again_with_all_and_the_best_of_these_is_taken(
    table, monkeypatch
):
    """The best plan on a sample may be luck: with everybody, the order differs."""
    real = judging.Judge._compute

    def measured(self, steps, seed, with_utility, holdout):
        found = real(self, steps, seed, with_utility, holdout)
        if found.utility is None or holdout is not None:
            return found
        k, few = steps[0]["k"], len(self.people) == 200
        value = {5: 0.9, 8: 0.8, 12: 0.7}[k] if few else {5: 0.6, 8: 0.5, 12: 0.95}[k]
        return judging.Judgment(found.risk, sh.Measurement("x", value, direction="higher"))

    monkeypatch.setattr(judging.Judge, "_compute", measured)
    space = [Family("swap", SWAP.steps, {"0.k": (5, 8, 12)})]
    found = tune(table, max_risk=0.3, space=space, search_rows=200, random_state=2)
    assert [one.label for one in found.finals] == ["swap k=12", "swap k=5", "swap k=8"]
    assert [one.utility for one in found.finals] == [0.95, 0.6, 0.5]
    assert found.chosen.label == "swap k=12"
    assert found.chosen.utility == 0.7  # as the search saw it
    assert "Of the 3 best, tried again with all 300, 'swap k=12' has the most" in found.reason
    assert found.to_dict()["finals"][0]["utility"] == 0.95
    everybody = tune(table, max_risk=0.3, space=space)
    assert everybody.finals == ()


def test_a_plan_that_misses_the_limit_with_everybody_is_passed_over(table, monkeypatch):
    real = judging.Judge._compute

    def measured(self, steps, seed, with_utility, holdout):
        found = real(self, steps, seed, with_utility, holdout)
        risky = len(self.people) == 300 and steps[0]["k"] == 5
        high = sh.Measurement("distance_linkage", 0.9, direction="lower")
        return judging.Judgment(high, found.utility) if risky else found

    monkeypatch.setattr(judging.Judge, "_compute", measured)
    space = [Family("swap", SWAP.steps, {"0.k": (5, 12)})]
    found = tune(table, max_risk=0.3, space=space, search_rows=200, random_state=2)
    assert found.chosen.label == "swap k=12"
    assert [one.label for one in found.finals] == ["swap k=12"]
    assert found.reason.endswith("1 that looked better did not.")


def test_stopped_and_started_again_it_ends_the_same(table, tmp_path, monkeypatch):
    whole = tune(table, max_risk=0.2, space=SMALL, folder=tmp_path / "whole")
    real, count = judging.Judge._compute, []

    def killed(self, *given):
        count.append(1)
        if len(count) == 4:
            raise KeyboardInterrupt
        return real(self, *given)

    monkeypatch.setattr(judging.Judge, "_compute", killed)
    with pytest.raises(KeyboardInterrupt):
        tune(table, max_risk=0.2, space=SMALL, folder=tmp_path / "part")
    monkeypatch.setattr(judging.Judge, "_compute", real)
    rest = tune(table, max_risk=0.2, space=SMALL, folder=tmp_path / "part")
    assert whole.computed == 5 + 3 + 1  # the plans, three fresh seeds, and everybody
    assert rest.computed == whole.computed - 3
    assert rest.to_dict() == whole.to_dict()
    again = tune(table, max_risk=0.2, space=SMALL, folder=tmp_path / "part")
    assert again.computed == 0
    assert again.to_dict() == whole.to_dict()


def test_a_large_space_is_searched_by_proposals_that_repeat(table, tmp_path):
    ks = tuple(range(2, 40))
    space = [Family("swap", SWAP.steps, {"0.k": ks}), ROUND]
    one, two = (
        tune(table, max_risk=0.2, space=space, trials=8, folder=folder)
        for folder in (tmp_path, None)
    )
    assert len(one.tried) == 8
    assert one.to_dict() == two.to_dict()
    other = tune(table, max_risk=0.2, space=space, trials=8, random_state=5)
    assert [o.label for o in other.tried] != [o.label for o in one.tried]


def test_without_a_limit_of_risk_it_is_the_least_risk_that_is_useful_enough(table):
    found = tune(table, min_utility=0.6, space=SMALL)
    useful = [one for one in found.tried if one.utility >= 0.6]
    assert found.chosen.risk == min(one.risk for one in useful)
    assert found.limit is None
    assert found.plan.require == ()
    assert found.figure().rows


def test_what_a_given_plan_requires_is_required_of_every_plan(table):
    given = sh.Plan([sh.Generalize("mondrian", k=8)], require=[sh.KAnonymity(8)])
    found = tune(table, max_risk=0.3, space=[SWAP], plan=given)
    assert found.chosen.family == "given plan"
    assert [type(r).__name__ for r in found.plan.require] == ["KAnonymity", "Limit"]
    assert found.failures == {"it does not satisfy k_anonymity, which the plan requires": 3}


def test_a_plan_that_fails_is_counted_with_its_reason(table):
    space = [SWAP, Family("too large", SWAP.steps, {"0.k": (1000,)})]
    found = tune(table, max_risk=0.3, space=space)
    assert sum(found.failures.values()) == 1
    assert len(found.tried) == 4


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_risk": 0.001}, r"0\.001.* least risk .* 'round"),
        ({"min_utility": 0.999}, r"a utility of at least 0.999; the most utility was"),
        ({"max_risk": 0.99, "min_utility": 0.9999}, "and a utility of at least 0.9999"),
    ],
)
def test_what_cannot_be_reached_is_said_with_the_closest(table, limits, said):
    with pytest.raises(UnreachableLevel, match=said):
        tune(table, space=[ROUND], **limits)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "max_risk, min_utility, or both"),
        ({"max_risk": 1.5}, "'max_risk' .* must be a number > 0 and < 1. Got 1.5"),
        ({"max_risk": True}, "'max_risk' parameter of tune must be"),
        ({"max_risk": 0.1, "risk": "wealth"}, "no measure of risk called 'wealth'"),
        ({"max_risk": 0.1, "utility": "uniqueness"}, "no measure of utility called 'uniqueness'"),
        ({"max_risk": 0.1, "utility": "chi_square"}, "chi_square"),
        ({"max_risk": 0.1, "held_out": 1.0}, "'held_out' .* must be"),
        ({"max_risk": 0.1, "trials": 0}, "'trials' .* must be an integer ≥ 1"),
        ({"max_risk": 0.1, "search_rows": 2.5}, "'search_rows' .* must be"),
    ],
)
def test_a_call_that_is_wrong_is_told_in_a_sentence(table, options, said):
    with pytest.raises(InputError, match=said):
        tune(table, **options)


def test_without_a_target_the_utility_is_what_is_not_lost(table):
    roles = sh.Roles(quasi_identifiers=["age", "pay", "city"], sensitive=["ill"])
    bare = sh.Table(table.frame, roles)
    found = tune(bare, max_risk=0.3, space=SMALL, utility="nonuniform_entropy")
    assert found.utility.name == "1 - nonuniform_entropy"
    assert found.utility.direction == "higher"
    assert found.utility.value == 1 - found.utility.details["loss"]
    assert not found.is_on_unseen
    by_label = {one.label: one.utility for one in found.tried}
    assert by_label["swap k=2"] > by_label["swap k=5"] > by_label["swap k=12"] > 0
    seen = searched_and_held_out(bare)[0]
    with pytest.warns(sh.errors.SeedWarning):
        masked = judging.seeded(found.chosen.steps, 0).apply(seen)[0]
    loss = sh.utility.nonuniform_entropy(seen, masked).value
    assert by_label[found.chosen.label] == pytest.approx(1 - loss)


def test_a_table_that_cannot_be_tuned(table):
    for roles, said in (
        (sh.Roles(quasi_identifiers=["age"]), "nonuniform_entropy"),
        (sh.Roles(target="ill"), "needs quasi-identifiers"),
    ):
        with pytest.raises(InputError, match=said):
            tune(sh.Table(table.frame, roles), max_risk=0.1)
    with pytest.raises(InputError, match="20 records"):
        tune(sh.Table(table.frame.head(19), table.roles), max_risk=0.1)


def test_the_default_space_suits_the_table_and_every_family_is_a_plan(table):
    space = default_space(table)
    names = {family.name for family in space}
    assert {"swap", "microaggregate", "mondrian", "noise", "round", "recode", "code"} <= names
    for family in space:
        for chosen in family.all():
            assert sh.Plan.from_dict({"steps": family.steps_with(chosen)}).steps
    assert sum(family.size for family in space) <= 100  # so that all of it is tried by default
    for column, absent in (("age", "noise"), ("pay", "recode")):  # they would change nothing
        roles = sh.Roles(quasi_identifiers=[column, "city"], target="ill")
        some = {family.name for family in default_space(table.with_roles(roles))}
        assert "round" in some
        assert not any(absent in name for name in some)
    few = default_space(table.keep(np.arange(400) < 8))
    assert max(max(f.choices.get("0.k", (2,))) for f in few) <= 4


def test_a_goal_reads_the_whole_interval():
    goal = Goal(max_risk=0.1)
    near = Tried("a", (), 0.09, (0.08, 0.11), 0.5)
    below = Tried("b", (), 0.08, (0.07, 0.1), 0.4)
    blind = Tried("c", (), 0.01, None, math.nan)
    assert goal.best_first([near, below, blind]) == [below]
    assert goal.allows(0.09, None)
    assert not goal.allows(0.09, (0.08, 0.11))


def test_a_recommended_plan_has_no_seed_though_what_was_tried_had_one(table):
    seeded = Family("swap", ({"method": "swap", "random_state": 5},), {"0.k": (12,)})
    found = tune(table, max_risk=0.3, space=[seeded])
    assert "random_state" not in found.plan.to_toml()
    assert "random_state" not in json.dumps(found.to_dict())
    given = sh.Plan([sh.Swap(k=12, random_state=5)])
    assert "random_state" not in tune(table, max_risk=0.3, space=[], plan=given).plan.to_toml()
    assert given.steps[0].random_state == 5


def test_where_no_plan_is_found_it_says_why_plans_failed(table):
    with pytest.raises(UnreachableLevel, match="k = 1000"):
        tune(table, max_risk=0.3, space=[Family("too large", SWAP.steps, {"0.k": (1000,)})])


def test_those_who_are_held_out_change_nothing_in_the_search(table):
    out = chosen_rows(len(table), 100, "held out")
    poisoned = table.frame.with_columns(
        pl.when(pl.Series(out)).then(999).otherwise(pl.col("age")).alias("age")
    )
    one = tune(table, max_risk=0.2, space=SMALL)
    two = tune(sh.Table(poisoned, table.roles), max_risk=0.2, space=SMALL)
    assert [o.label for o in one.tried] == [o.label for o in two.tried]
    np.testing.assert_equal(
        [(o.risk, o.utility) for o in one.tried], [(o.risk, o.utility) for o in two.tried]
    )
    assert (one.plan, one.risk.value) == (two.plan, two.risk.value)
    assert one.utility.value != two.utility.value


def test_a_hierarchy_that_changed_is_judged_anew(table, tmp_path):
    tree = tmp_path / "city.csv"
    tree.write_text("Bern;x;*\nGraz;x;*\nJena;z;*\n")
    step = {"method": "generalize", "algorithm": "full-domain", "k": 2, "max_suppressed": 0.9}
    steps = [{**step, "hierarchies": {"city": str(tree)}, "columns": ["city"]}]
    asked = {"risk": ("uniqueness", {}), "utility": ("predictive_performance", {})}
    store = Store(tmp_path / "out")
    judges = [judging.Judge(table, goal=Goal(max_risk=0.9), store=store, **asked) for _ in "ab"]
    judges[0].judged(steps, seed=1, with_utility=False)
    tree.write_text("Bern;x;*\nGraz;z;*\nJena;z;*\n")
    judges[1].judged(steps, seed=1, with_utility=False)
    assert [judge.computed for judge in judges] == [1, 1]
