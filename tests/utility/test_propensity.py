"""The propensity score against scikit-learn, its null expectation, and its ends."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from shoal import Table
from shoal.errors import InputError
from shoal.utility import propensity
from shoal.utility._columns import sampled_rows

from .tables import masked_as, mixed, quasi, table

DISCRIMINATORS = ["logistic", "tree"]


@pytest.mark.parametrize("discriminator", DISCRIMINATORS)
def test_tables_that_are_the_same_and_tables_that_share_nothing(discriminator):
    people = mixed(300, 0)
    assert propensity(people, people, discriminator=discriminator).value == 0.0
    turned = people.reorder(np.arange(300)[::-1])
    same = propensity(people, turned, discriminator=discriminator).value
    assert same == pytest.approx(0.0, abs=1e-12)
    other = table(x=[0.0] * 300), table(x=[9.0] * 300)
    assert propensity(*other, discriminator=discriminator).value > 0.24


def test_by_definition():
    rng = np.random.default_rng(1)
    before, after = rng.normal(size=(200, 2)), rng.normal(0.3, 1.2, size=(100, 2))
    both = np.vstack([before, after])
    features = (both - both.mean(axis=0)) / both.std(axis=0)
    labels = np.repeat([0, 1], [200, 100])
    scores = LogisticRegression(max_iter=1000, tol=1e-10).fit(features, labels)
    expected = ((scores.predict_proba(features)[:, 1] - 1 / 3) ** 2).mean()
    found = propensity(table(x=before[:, 0], y=before[:, 1]), table(x=after[:, 0], y=after[:, 1]))
    assert found.value == pytest.approx(expected, rel=1e-4)
    assert found.details["share_of_masked"] == pytest.approx(1 / 3)
    # two slopes beside the intercept
    assert found.baseline == pytest.approx(2 * (2 / 3) ** 2 * (1 / 3) / 300)
    assert found.details["ratio"] == pytest.approx(found.value / found.baseline)


@pytest.mark.parametrize(("discriminator", "draws"), [("logistic", 30), ("tree", 8)])
def test_records_drawn_anew_give_the_baseline(discriminator, draws):
    """Snoke et al. (2018): the ratio of pMSE to its expectation is 1 on average, where the new
    table is drawn from what the original tells."""
    people = mixed(400, 0)
    ratios = []
    for seed in range(draws):
        rows = np.random.default_rng(seed).integers(0, 400, 250)
        drawn = Table(people.frame[rows])
        found = propensity(people, drawn, discriminator=discriminator)
        ratios.append(found.details["ratio"])
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.15)


def test_another_sample_gives_twice_the_baseline():
    """The original is a sample too: its own chance comes on top, 1 / (1 - c) in all."""
    ratios = [
        propensity(mixed(400, seed), mixed(400, 1000 + seed)).details["ratio"] for seed in range(20)
    ]
    assert np.mean(ratios) == pytest.approx(2.0, abs=0.3)


def test_the_tree_sees_what_columns_do_together():
    """Equal margins, opposite correlation."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, 400)
    before, after = table(x=x, y=x), table(x=x, y=1 - x)
    assert propensity(before, after).value < 0.01
    assert propensity(before, after, discriminator="tree").value > 0.2


def test_generalized_columns_at_the_released_level():
    people = quasi(age=[20, 24, 31, 35] * 50, sex=list("ab") * 100)
    labels = ["[20, 30)", "[20, 30)", "[30, 40)", "[30, 40)"] * 50
    masked = masked_as(people, age=labels, sex=list("ab") * 100)
    assert propensity(people, masked).value == 0.0
    # who was taken out is taken at what was released for the value
    left = masked.keep(np.arange(200) % 4 != 1)
    assert 0 < propensity(people, left).value < 0.1
    apart = Table(masked.frame)
    found = propensity(people, apart)
    assert found.value > 0.15
    assert found.warnings


def test_missing_values_are_seen():
    people = quasi(x=[1.0, 2.0, 3.0, 4.0] * 20)
    emptied = people.blank({"x": np.arange(80) % 2 == 0})
    assert propensity(people, emptied).value > 0.01


def test_rare_values_share_a_feature():
    many = table(x=[f"v{i}" for i in range(200)])
    assert propensity(many, many).details["features"] == 20
    few = table(x=list("abc") * 3)
    assert propensity(few, few).details["features"] == 2
    wide = Table(pl.DataFrame({f"c{i}": [f"v{j}" for j in range(50)] for i in range(100)}))
    assert propensity(wide, wide).details["features"] == 400


def test_a_sample_is_said():
    people = mixed(300, 4)
    found = propensity(people, people.keep(np.arange(300) < 150), sample=100)
    assert found.details["records"] == [100, 100]
    assert propensity(people, people, sample=100).value == 0.0


def test_the_sample_goes_by_key():
    keys = np.arange(1000)
    chosen = sampled_rows(keys, 100)
    part = keys[keys % 2 == 0]
    again = part[sampled_rows(part, 1000)]
    assert again.tolist() == part.tolist()
    turned = sampled_rows(keys[::-1].copy(), 100)
    assert sorted(keys[::-1][turned]) == sorted(chosen)
    assert 30 < np.count_nonzero(chosen < 500) < 70


def test_nothing_to_tell_apart():
    one = table(x=["a"])
    found = propensity(one, one)
    assert found.value == 0.0
    assert found.details["ratio"] is None
    gone = propensity(table(x=[1, 2]), table(y=[1, 2]))
    assert gone.value == 0.0
    assert gone.details["compared"] == []
    assert "'x' was removed" in gone.warnings[0]


def test_options_are_checked():
    with pytest.raises(InputError, match="discriminator"):
        propensity(table(x=[1]), table(x=[1]), discriminator="forest")
    with pytest.raises(InputError, match="sample"):
        propensity(table(x=[1]), table(x=[1]), sample=0)
