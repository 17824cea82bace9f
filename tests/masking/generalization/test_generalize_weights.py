"""Weights of columns: every search loses least where it counts most, by losses counted anew."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, KAnonymity, Plan, Roles, Table, protect
from shoal.errors import InputError, ParameterError, PlanError, ShoalWarning

ALGORITHMS = ("full-domain", "mondrian", "local")
#: Two or three levels over the values of each column, all of which occur.
TREES = {
    "city": {"North": ["Kiel", "Bremen", "Husum"], "South": ["Ulm", "Passau"]},
    "work": {"Care": ["nurse", "doctor"], "Craft": ["smith", "baker", "mason", "tailor"]},
    "size": {"small": ["XS", "S"], "large": ["M", "L", "XL"]},
}
HIERARCHIES = {name: Hierarchy.tree(tree) for name, tree in TREES.items()}
VALUES = {name: [*itertools.chain(*tree.values())] for name, tree in TREES.items()}
WEIGHTS = [{"city": 9}, {"work": 0.05, "size": 3}, {"city": 1, "work": 40, "size": 7.5}]


def people(seed=0, rows=90):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({name: rng.choice(values, rows) for name, values in VALUES.items()})
    return Table(frame, Roles(quasi_identifiers=list(VALUES)))


def generalized(table, *args, **options):
    step = Generalize(*args, hierarchies=HIERARCHIES, seconds=60.0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return step, step.fit_transform(table)


def leaves(name, label):
    """How many values are under a label."""
    if label == "*":
        return len(VALUES[name])
    return len(TREES[name].get(label, [label]))


def shares(masked):
    """For each column, the share of its values under each cell: 0 if single, 1 if all."""
    return {
        name: np.array([leaves(name, label) - 1 for label in masked.frame[name]])
        / (len(VALUES[name]) - 1)
        for name in VALUES
    }


def weighted_mean(by_column, weights):
    return np.average([by_column[n] for n in VALUES], weights=[weights.get(n, 1) for n in VALUES])


def loss_at(loss, levels, table, weights):
    """The definitions, for a release without suppression at some levels."""
    columns = {
        name: HIERARCHIES[name].generalize(table, name, level).frame[name]
        for name, level in levels.items()
    }
    masked = Table(pl.DataFrame(columns), table.roles)
    if not KAnonymity(4).holds(masked):
        return math.inf
    if loss == "precision":
        return weighted_mean({name: level / 2 for name, level in levels.items()}, weights)
    if loss == "loss":
        by_column = {name: math.log1p(share.mean()) for name, share in shares(masked).items()}
        return math.expm1(weighted_mean(by_column, weights))
    assert loss == "entropy"
    bits = {}
    for name, column in columns.items():
        of_value = table.frame[name].to_frame().select(pl.len().over(name)).to_series()
        of_label = column.to_frame().select(pl.len().over(name)).to_series()
        bits[name] = float((of_label / of_value).log(2).sum())
    return weighted_mean(bits, weights) * len(VALUES)


@pytest.mark.parametrize("loss", ["loss", "precision", "entropy"])
@pytest.mark.parametrize("weights", [{}, *WEIGHTS])
def test_the_levels_are_the_best_of_all(loss, weights):
    for seed in range(3):
        table = people(seed)
        step, _ = generalized(table, k=4, loss=loss, weights=weights)
        nodes = [
            dict(zip(VALUES, levels, strict=True))
            for levels in itertools.product(range(3), repeat=3)
        ]
        losses = [loss_at(loss, levels, table, weights) for levels in nodes]
        assert step.optimal_
        assert step.loss_ == pytest.approx(min(losses), abs=1e-9)
        assert losses[nodes.index(step.levels_)] == pytest.approx(min(losses), abs=1e-9)


def test_weights_change_which_levels_are_best():
    found = {
        tuple(generalized(people(), k=4, loss=loss, weights=weights)[0].levels_.values())
        for loss in ("loss", "precision", "entropy", "ambiguity", "kl-divergence")
        for weights in [{}, *WEIGHTS]
    }
    assert len(found) > 3


@pytest.mark.parametrize("algorithm", ["mondrian", "local"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_loss_is_the_weighted_mean_of_what_is_released(algorithm, weights):
    step, masked = generalized(people(), algorithm, k=4, weights=weights)
    of_columns = {name: share.mean() for name, share in shares(masked).items()}
    assert step.loss_ == pytest.approx(weighted_mean(of_columns, weights))
    assert KAnonymity(4).holds(masked)


def test_with_given_levels_the_loss_is_weighted_as_well():
    levels = {"city": 1, "work": 2, "size": 0}
    step, masked = generalized(people(), k=2, levels=levels, weights=WEIGHTS[2])
    of_columns = {name: share.mean() for name, share in shares(masked).items()}
    assert step.loss_ == pytest.approx(weighted_mean(of_columns, WEIGHTS[2]))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_weights_change_nothing(algorithm):
    table = people()
    step, masked = generalized(table, algorithm, k=4)
    for weights in ({}, {"size": 1}, dict.fromkeys(VALUES, 0.3), dict.fromkeys(VALUES, 10**9)):
        same, released = generalized(table, algorithm, k=4, weights=weights)
        assert released.frame.equals(masked.frame)
        assert (same.loss_, same.levels_) == (step.loss_, step.levels_)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_only_the_proportions_of_weights_matter(algorithm):
    table, weights = people(1), {"city": 1, "work": 3, "size": 7}
    step, masked = generalized(table, algorithm, k=4, weights=weights)
    for factor in (0.1, 3, 1e-200, 1e200):
        scaled = {name: weight * factor for name, weight in weights.items()}
        same, released = generalized(table, algorithm, k=4, weights=scaled)
        assert released.frame.equals(masked.frame)
        assert same.loss_ == step.loss_


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", list(VALUES))
@pytest.mark.parametrize("weight", [1e4, 1e300])
def test_a_column_with_a_huge_weight_keeps_its_detail(algorithm, name, weight):
    """All of it: every value of each column is frequent enough if the others may be '*'."""
    others = dict.fromkeys(set(VALUES) - {name}, weight)
    _, masked = generalized(people(), algorithm, k=4, weights={name: weight})
    assert shares(masked)[name].mean() == 0
    _, masked = generalized(people(), algorithm, k=4, weights=others)
    assert shares(masked)[name].mean() > 0.3


def test_boxes_of_numbers_are_narrow_where_it_counts():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"age": rng.integers(0, 90, 400), "wage": rng.integers(0, 90, 400)})
    table = Table(frame, Roles(quasi_identifiers=["age", "wage"]))
    ages = []  # in the interval of a record
    for weights in ({"age": 100}, None, {"wage": 100}):
        masked = Generalize("mondrian", k=5, weights=weights).fit_transform(table)
        both = frame.select("age", interval=masked.frame["age"])
        ages.append(both.select(pl.col("age").n_unique().over("interval")).mean().item())
    assert 4 * ages[0] < 2 * ages[1] < ages[2]


def test_the_space_of_levels_has_the_weighted_loss():
    table = people()
    step, _ = generalized(table, k=4, weights=WEIGHTS[0])
    space = step.space(table)
    nodes = [
        node for rows in space.grid("city", "work", {"size": step.levels_["size"]}) for node in rows
    ]
    best = min((node for node in nodes if node.allowed), key=lambda node: node.loss)
    assert best.levels == step.levels_
    assert best.loss == step.loss_


@pytest.mark.parametrize("bad", [0, -1, True, "1", None, float("nan"), float("inf")])
def test_a_weight_is_a_positive_number(bad):
    with pytest.raises(ParameterError, match="for 'city'"):
        Generalize(k=2, weights={"work": 2, "city": bad})


@pytest.mark.parametrize("bad", [3, ["city"], "city", [("city", 1)]])
def test_weights_are_a_table(bad):
    with pytest.raises(ParameterError, match="a table of columns"):
        Generalize(k=2, weights=bad)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_weight_of_no_column_of_the_step_is_refused(algorithm):
    table = people()
    for step in (
        Generalize(algorithm, k=4, weights={"ctiy": 2}),
        Generalize(algorithm, k=4, weights={"city": 2}, columns=["work", "size"]),
    ):
        with pytest.raises(InputError, match="'weights' names"):
            step.fit_transform(table)
        with pytest.raises(InputError, match="'weights' names"):
            protect(table, Plan([step]))


@pytest.mark.parametrize(
    "loss", ["discernibility", "discernibility-monotonic", "average-class-size"]
)
def test_losses_that_count_classes_have_no_weights(loss):
    with pytest.raises(ParameterError, match="counts classes"):
        Generalize(k=4, loss=loss, weights={"city": 2})
    step = {"method": "generalize", "k": 4, "loss": loss, "weights": {"city": 2}}
    with pytest.raises((ParameterError, PlanError), match="counts classes"):
        Plan.from_dict({"steps": [step]})
    Generalize(k=4, loss=loss, weights={})
