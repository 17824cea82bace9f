"""No masking method leaves a key, a group or anything it learned with the caller."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

from shoal import (
    Generalize,
    Hierarchy,
    KAnonymity,
    LDiversity,
    Limit,
    Microaggregate,
    Plan,
    Pseudonymize,
    RankSwap,
    Redraw,
    Round,
    Sample,
    Swap,
    Table,
    protect,
)
from shoal.errors import ParameterError, RequirementNotMet, ShoalWarning
from shoal.masking import Secrets

from ..snapshots.tables import survey
from .parts.each_masker import each_example, each_random
from .parts.registry import KNOWN_METHODS, MASKERS, masked_by, people, people_columns


def protected(plan, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return protect(table, plan)


def keys_of(release):
    return [step["key"] for step in release.audit["steps"] if "key" in step]


@each_example
def test_protect_leaves_the_plan_as_it_was(example):
    table = people()
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    plan = Plan([example.make(table, **random)])
    (step,) = plan.steps
    before, fields = pickle.dumps(plan), copy.deepcopy(vars(step))
    release = protected(plan, table)
    assert release.plan is plan
    assert vars(step) == fields
    assert pickle.dumps(plan) == before
    assert bool(keys_of(release)) == KNOWN_METHODS[example.method].is_random
    shown = [repr(thing) for thing in (release, plan, step, release.steps, release.audit)]
    for key in keys_of(release):
        assert not any(key in text for text in shown)
        assert key.encode() not in pickle.dumps(plan)


#: Steps that need others, hierarchies or models: what the examples above have not.
NAMES = survey().roles.quasi_identifiers
LONG_PLANS = {
    "redraw": lambda: Plan(
        [Generalize("mondrian", k=3), Redraw(LDiversity(2))], require=[LDiversity(2)]
    ),
    "identifiers": lambda: Plan([Pseudonymize(["region"]), Round(base=5)]),
    "local": lambda: Plan(
        [Generalize("local", k=4, hierarchies={"age": Hierarchy.intervals([10, 20])}, seconds=0.1)],
        require=[KAnonymity(4), Limit("suda", at_most=1)],
        roles=survey().roles,
    ),
    "levels": lambda: Plan(
        [
            Generalize(
                k=2,
                models=[KAnonymity(2)],
                hierarchies=dict.fromkeys(NAMES, Hierarchy.suppression()),
                levels=dict.fromkeys(NAMES, 0) | {"age": 1, "wage": 1},
                suppression_limit=1.0,
            ),
            Sample(fraction=0.5),
        ]
    ),
    "groups": lambda: Plan(
        [
            Microaggregate(3, dissimilarity="gower", models=[LDiversity(2)]),
            Swap(3, informed=True),
        ],
        keep_order=True,
    ),
    "not met": lambda: Plan([Round(base=10), RankSwap(percent=5)], require=[KAnonymity(500)]),
}


def everything_of(plan):
    """The content of a plan, its steps and its requirements, as bytes by name."""
    parts = {"plan": plan} | {
        f"{what} {number}": one
        for what in ("steps", "require")
        for number, one in enumerate(getattr(plan, what))
    }
    return {
        (part, name): None if isinstance(value, Secrets) else pickle.dumps(value)
        for part, thing in parts.items()
        for name, value in vars(thing).items()
    }


@pytest.mark.parametrize("name", LONG_PLANS)
def test_protect_leaves_every_part_of_a_plan_as_it_was(name):
    plan, table = LONG_PLANS[name](), survey()
    before, frame = everything_of(plan), table.frame.clone()
    ids = [id(step) for step in plan.steps]
    for _ in range(2):
        try:
            protected(plan, table)
        except RequirementNotMet:
            assert name == "not met"
        else:
            assert name != "not met"
        assert [id(step) for step in plan.steps] == ids
        assert everything_of(plan) == before
        assert table.frame.equals(frame)


def test_every_method_is_asked_to_leave_its_plan_as_it_was():
    alone = {example.method for example in MASKERS}
    assert alone | {s.method for make in LONG_PLANS.values() for s in make().steps} == {
        *KNOWN_METHODS
    }


def test_a_step_that_learned_is_no_longer_as_it_was():
    """This shows that the tests above can fail."""
    plan = LONG_PLANS["groups"]()
    before = everything_of(plan)
    masked_by(plan.steps[0], survey())
    changed = {name for _, name in set(everything_of(plan)) - set(before)}
    assert {"groups_", "touched_"} <= changed


@each_example
def test_a_release_is_not_pickled(example):
    release = protected(Plan([example.make(people())]), people())
    for held in (release, release.steps, release.audit):
        with pytest.raises(TypeError, match=r"release\.save"):
            pickle.dumps(held)


@each_example
def test_a_pickle_of_a_fitted_step_holds_no_key_and_serves(example):
    table = people()
    masker = example.make(table)
    masked_by(masker, table)
    pickled = pickle.dumps(masker)
    assert masker.audit_.get("key", "no key").encode() not in pickled
    again = pickle.loads(pickled)
    assert again.get_params() == masker.get_params()
    assert not again.audit_
    assert again.transform(table).frame.equals(masker.transform(table).frame)
    assert not hasattr(again, "groups_")


@each_example
def test_a_bad_parameter_changes_nothing(example):
    masker = example.make(people())
    before = dict(vars(masker))
    good, *_ = before
    for bad in ({good: object()}, {good: before[good], "nobody": 1}):
        with pytest.raises(ParameterError):
            masker.set_params(**bad)
        assert vars(masker) == before


# -- a seed is used once


def key_of(masker, table, place=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        masker.fit_transform(table, place=place)
    return masker.audit_["key"]


@each_random
def test_a_seed_gives_each_step_place_and_table_a_key_of_its_own(example, frame):
    table = people()
    first = key_of(example.make(table, random_state=5), table)
    assert key_of(example.make(table, random_state=5), table) == first
    same = Table(frame(people_columns()), table.roles)
    assert key_of(example.make(same, random_state=5), same) == first, "whatever the frame is of"
    columns = people_columns()
    columns["ballast"] = columns["ballast"][::-1]
    other = Table(frame(columns), table.roles)
    keys = {
        first,
        key_of(example.make(table, random_state=6), table),
        key_of(example.make(table, random_state=5), table, place=1),
        key_of(example.make(table, random_state=5), other),
        key_of(example.make(table, random_state=5), table.reorder([*range(1, len(table)), 0])),
    }
    assert len(keys) == 5


@each_random
def test_a_seed_gives_other_parameters_another_key(example):
    table = people()
    first = example.make(table, random_state=5)
    for name, value in first.get_params().items():
        if isinstance(value, float):
            changed = example.make(table, random_state=5).set_params(**{name: value * 0.99})
            assert key_of(changed, table) != key_of(first, table)


@each_random
def test_the_seed_is_not_shown(example):
    assert "918273645" not in repr(example.make(people(), random_state=918273645))
