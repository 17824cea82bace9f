"""Groups that satisfy privacy models: for both methods, every partition, plans, and refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import (
    AverageRisk,
    KAnonymity,
    LDiversity,
    Microaggregate,
    Plan,
    ProbabilisticKAnonymity,
    Roles,
    Swap,
    Table,
    TCloseness,
)
from shoal.errors import InputError, ParameterError

ONE_COLUMN = ["individual-ranking", "optimal"]
PARTITIONS = ["mdav", "mdav-random", "v-mdav", "mu-approx", "mondrian"]


def people(rows=300):
    """The young have the flu, so groups by age alone have one illness."""
    draw = np.random.default_rng(7)
    age = draw.integers(18, 90, rows)
    frame = pl.DataFrame(
        {
            "age": age,
            "height": draw.normal(170, 10, rows),
            "sex": draw.choice(["f", "m"], rows),
            "ill": np.where(age < 50, "flu", draw.choice(["gout", "ok", "flu"], rows)),
            "wage": age * 10 + draw.integers(0, 40, rows),
        }
    )
    return Table(frame, Roles(quasi_identifiers=["age", "height", "sex"], sensitive=["ill"]))


def numbers():
    return people().with_roles(Roles(quasi_identifiers=["age", "height"], sensitive=["ill"]))


def fewest_values(table, groups, column="ill"):
    values = table.frame.with_columns(pl.Series("group", groups))
    return values.group_by("group").agg(pl.col(column).n_unique())[column].min()


def test_without_it_groups_share_a_secret():
    method = Microaggregate(5, dissimilarity="gower")
    method.fit_transform(people())
    assert fewest_values(people(), method.groups_) == 1


@pytest.mark.parametrize("dissimilarity", ["gower", "ahmad-dey", "ahmad-dey-squared"])
@pytest.mark.parametrize("wanted", [LDiversity(2), [LDiversity(3), TCloseness(0.2)]])
def test_microaggregated_classes_satisfy_the_models(dissimilarity, wanted):
    method = Microaggregate(5, dissimilarity=dissimilarity, models=wanted)
    masked = method.fit_transform(people())
    assert np.bincount(method.groups_).min() >= 5
    for model in wanted if isinstance(wanted, list) else [wanted]:
        assert model.holds(masked)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_every_partition_of_points(partition):
    method = Microaggregate(4, partition=partition, models=LDiversity(2))
    masked = method.fit_transform(numbers())
    assert LDiversity(2).holds(masked)
    assert KAnonymity(4).holds(masked)


@pytest.mark.parametrize("partition", ONE_COLUMN)
def test_every_partition_of_one_column(partition):
    table = people().with_roles(Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    method = Microaggregate(4, partition=partition, models=LDiversity(2))
    assert LDiversity(2).holds(method.fit_transform(table))


def test_a_model_may_ask_for_larger_groups():
    method = Swap(3, models=KAnonymity(9))
    method.fit_transform(people())
    assert np.bincount(method.groups_).min() >= 9


def test_swapped_groups_are_diverse():
    method = Swap(5, models=LDiversity(2))
    masked = method.fit_transform(people())
    assert fewest_values(people(), method.groups_) >= 2
    assert ProbabilisticKAnonymity(5).holds(masked)


def test_informed_groups_are_diverse_in_what_is_swapped():
    table = people().with_roles(Roles(quasi_identifiers=["age", "sex"], sensitive=["ill", "wage"]))
    method = Swap(5, informed=True, models=LDiversity(3))
    masked = method.fit_transform(table)
    assert [exchange.columns for exchange in masked.exchanges] == [("ill",), ("wage",)]
    for exchange in masked.exchanges:
        assert fewest_values(table, exchange.groups, exchange.columns[0]) >= 3
    with pytest.raises(InputError, match="neighboring ranks"):
        Swap(5, informed=True, partition="individual-ranking", models=LDiversity(2)).fit_transform(
            table
        )


@pytest.mark.parametrize(
    "wanted",
    [
        LDiversity(2),
        LDiversity(2, kind="recursive", c=3.0),
        [TCloseness(0.2, column="ill")],
        [LDiversity(2), TCloseness(0.2), KAnonymity(7)],
    ],
)
@pytest.mark.parametrize("method", [Swap, Microaggregate])
def test_a_plan_carries_the_models(method, wanted):
    plan = Plan([method(5, models=wanted)])
    (back,) = Plan.from_toml(plan.to_toml()).steps
    assert back.models == wanted
    assert Plan.from_toml(plan.to_toml()) == plan


def test_models_in_the_style_of_requirements():
    text = '[[steps]]\nmethod = "swap"\nk = 5\nmodels = {l_diversity = 2, t_closeness = 0.2}'
    (step,) = Plan.from_toml(text).steps
    assert step.models == [LDiversity(2), TCloseness(0.2)]
    with pytest.raises(ParameterError, match=r"'l_diversty'.*Did you mean 'l_diversity'\?"):
        Plan.from_toml(text.replace("l_diversity", "l_diversty"))
    with pytest.raises(ParameterError, match="'models' parameter of Swap"):
        Plan.from_toml(text.replace("{l_diversity = 2, t_closeness = 0.2}", "2"))
    with pytest.raises(ParameterError, match="'models' parameter of Swap"):
        Plan.from_toml(text.replace("{l_diversity = 2, t_closeness = 0.2}", "{}"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (LDiversity(4), "l of at most 3"),
        (LDiversity(2.999, kind="entropy"), r"300 records as one group reach 2\.\d+, and 2\.999"),
        (AverageRisk(0.1), "of the release instead"),
        (LDiversity(2, column="sex"), "'sex' is a quasi-identifier"),
    ],
)
def test_refused_in_one_sentence(wanted, said):
    for method in (Swap, Microaggregate):
        with pytest.raises(InputError, match=said):
            method(5, dissimilarity="gower", models=wanted).fit_transform(people())


def test_what_becomes_one_value_cannot_be_diverse():
    method = Microaggregate(5, dissimilarity="gower", columns=["age", "ill"], models=LDiversity(2))
    with pytest.raises(InputError, match="'ill'"):
        method.fit_transform(people())


def test_no_sensitive_column():
    table = people().with_roles(Roles(quasi_identifiers=["age", "sex"]))
    with pytest.raises(InputError, match="declares none"):
        Swap(5, models=LDiversity(2)).fit_transform(table)


def test_a_missing_secret_is_a_value():
    frame = pl.DataFrame({"age": [1, 2, 3, 50, 51, 52], "ill": ["a", "a", None, None, "a", None]})
    table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    method = Swap(3, models=LDiversity(2))
    method.fit_transform(table)
    assert len(set(method.groups_.tolist())) == 2


@pytest.mark.parametrize("dissimilarity", ["gower", "euclidean"])
def test_refined_groups_still_satisfy_the_models(dissimilarity):
    options = {"dissimilarity": dissimilarity, "models": [LDiversity(2), TCloseness(0.4)]}
    rough, fine = (
        Microaggregate(5, refine=refine, seconds=1.0, **options) for refine in (False, True)
    )
    before = rough.fit_transform(numbers())
    after = fine.fit_transform(numbers())
    assert LDiversity(2).holds(after)
    assert TCloseness(0.4).holds(after)
    assert KAnonymity(5).holds(after)
    if dissimilarity == "euclidean":  # the criterion of the others is not the spread of numbers
        assert spread(numbers(), after) < spread(numbers(), before)


def spread(table, masked):
    """How far ages and heights moved."""
    moved = [
        (masked.numbers(name).values - table.numbers(name).values)
        / table.numbers(name).values.std()
        for name in ("age", "height")
    ]
    return float(np.square(moved).sum())
