"""Utility of tables in which a person has several rows: a person is on one side of every split."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Suppress, Table
from shoal.errors import InputError
from shoal.risk.attacks._learnt_guesses import learn
from shoal.utility import (
    average_class_size,
    chi_square,
    discernibility,
    predictive_performance,
    suppressed_cells,
    total_variation,
    variance_ratio,
)
from shoal.utility.models import cross_validated, stratified_folds, stratified_sample
from shoal.utility.models._scores import over_rows

PERSONS, ROWS = 200, 5
WHO = np.repeat(np.arange(PERSONS), ROWS)


def leaky(*, unit):
    """A random label and a random number of each person: nothing is to be learned from it."""
    rng = np.random.default_rng(11)
    label, noise = rng.integers(0, 2, PERSONS), rng.normal(size=PERSONS)
    frame = pl.DataFrame(
        {"who": WHO, "noise": noise[WHO], "label": np.where(label[WHO] == 1, "yes", "no")}
    )
    roles = Roles(quasi_identifiers=["noise"], target="label", unit="who" if unit else ())
    return Table(frame, roles)


def leaky_features(*, unit):
    """The features of the model: the number of the person, and not the column of the unit."""
    table = leaky(unit=unit)
    return table if unit else table.drop(["who"])


def test_a_model_is_not_asked_about_people_it_knows():
    known = predictive_performance(
        leaky_features(unit=False), leaky_features(unit=False), learner="decision-tree",
        score="accuracy", train="original",
    )  # fmt: skip
    assert known.value > 0.95
    table = leaky_features(unit=True)
    masked = table.drop(["who"])
    for options in ({}, {"train": "original"}, {"test": "masked"}):
        found = predictive_performance(
            table, masked, learner="decision-tree", score="accuracy", **options
        )
        assert found.value == pytest.approx(0.5, abs=0.12)  # three standard errors of 200 persons
        assert found.baseline == pytest.approx(0.5, abs=0.12)
        assert found.details["persons"] == PERSONS
        assert found.details["columns"] == ["noise"]  # and not the unit


def test_cross_validation_keeps_a_person_on_one_side():
    folds = cross_validated("decision-tree", leaky(unit=True), "label")
    assert np.mean([fold.scores["accuracy"] for fold in folds]) == pytest.approx(0.5, abs=0.12)
    folds = cross_validated("decision-tree", leaky_features(unit=False), "label")
    assert np.mean([fold.scores["accuracy"] for fold in folds]) > 0.95


def test_an_attacker_judges_a_model_by_people_it_does_not_know():
    rng = np.random.default_rng(5)
    noise, label = rng.normal(size=PERSONS)[WHO][:, None], rng.integers(0, 2, PERSONS)[WHO]
    assert learn("random-forest", noise, label).own_accuracy > 0.95
    assert learn("random-forest", noise, label, WHO).own_accuracy == pytest.approx(0.5, abs=0.12)
    alone = learn("random-forest", noise, label, np.arange(len(WHO)))
    assert alone.own_accuracy == learn("random-forest", noise, label).own_accuracy


def test_a_holdout_has_other_people():
    table = leaky(unit=True)
    first = np.arange(len(WHO)) < 503  # in the middle of a person
    with pytest.raises(InputError, match="hold-out"):
        predictive_performance(table.keep(first), table.keep(first), holdout=table.keep(~first))
    first = table.whole(first)
    found = predictive_performance(
        table.keep(first), table.keep(first), holdout=table.keep(~first), score="accuracy",
        learner="decision-tree",
    )  # fmt: skip
    assert found.value == pytest.approx(0.5, abs=0.2)
    low, high = found.interval
    assert high - low > 0.15  # of 99 persons, and not of 495 rows


class TestSplits:
    persons = np.random.default_rng(1).integers(0, 60, 300)
    strata = persons % 3
    keys = np.random.default_rng(2).permutation(300)

    def test_folds_are_of_persons_and_in_balance(self):
        folds = stratified_folds(self.strata, self.keys, self.persons, splits=4, repeats=2)
        for fold in folds:
            train, test = (set(self.persons[rows].tolist()) for rows in (fold.train, fold.test))
            assert not train & test
            assert len(fold.train) + len(fold.test) == 300
            assert abs(len(test) - len(train | test) / 4) < 1
        share = stratified_folds(self.strata, self.keys, self.persons, test_share=0.2)[0]
        assert not set(self.persons[share.train].tolist()) & set(self.persons[share.test].tolist())

    def test_the_order_of_rows_does_not_matter(self):
        turned = np.random.default_rng(3).permutation(300)
        one = stratified_folds(self.strata, self.keys, self.persons)[0]
        other = stratified_folds(self.strata[turned], self.keys[turned], self.persons[turned])[0]
        assert set(self.keys[one.test]) == set(self.keys[turned][other.test])

    def test_one_row_each_is_as_without_persons(self):
        alone = np.arange(300) + 7
        for size in (10, 77):
            one = stratified_sample(self.strata, self.keys, size)
            assert one.tolist() == stratified_sample(self.strata, self.keys, size, alone).tolist()
        for one, other in zip(
            stratified_folds(self.strata, self.keys),
            stratified_folds(self.strata, self.keys, alone),
            strict=True,
        ):
            assert one.test.tolist() == other.test.tolist()

    def test_a_sample_takes_a_person_whole(self):
        drawn = stratified_sample(self.strata, self.keys, 60, self.persons)
        inside = np.isin(self.persons, self.persons[drawn])
        assert inside.sum() == len(drawn)
        assert 40 <= len(drawn) <= 80

    def test_no_more_folds_than_persons(self):
        with pytest.raises(InputError, match="2 persons"):
            stratified_folds(np.zeros(6, int), np.arange(6), np.array([0, 0, 0, 1, 1, 1]), splits=3)


def test_an_interval_over_persons_is_wider():
    right = np.repeat(np.arange(50) % 2, 20)
    persons = np.repeat(np.arange(50), 20)

    def share(rows):
        return float(right[rows].mean())

    low, high = over_rows(share, persons, 0)
    assert high - low > 0.2
    low, high = over_rows(share, len(right), 0)
    assert high - low < 0.1


def test_class_sizes_are_of_persons_and_discernibility_of_records():
    frame = pl.DataFrame({"who": [1, 1, 2, 3, 3, 4], "age": [1, 1, 1, 2, 2, 2]})
    table = Table(frame, Roles(quasi_identifiers=["age"], unit="who"))
    found = average_class_size(table, table.drop(["who"]))
    assert found.value == found.baseline == 2.0
    assert discernibility(table, table.drop(["who"])).value == (9 + 9) / 36
    gone = Suppress(where="age = 2", target="records").fit_transform(table)
    found = average_class_size(table, gone)
    assert found.value == 2.0  # two persons in the one class, and two who are gone
    assert found.details == {"classes": 1, "suppressed": 2}


def test_a_unit_that_is_withheld_is_no_loss():
    frame = pl.DataFrame({"who": [1, 1, 2], "age": [1, 2, 3]})
    table = Table(frame, Roles(quasi_identifiers=["age"], unit="who"))
    assert suppressed_cells(table, table.drop(["who"])).value == 0.0
    assert total_variation(table, table.drop(["who"])).value == 0.0


def test_p_values_of_dependent_records_are_warned_of():
    table = leaky(unit=True)
    for measure in (chi_square, variance_ratio):
        assert any("persons" in said for said in measure(table, table).warnings)
        alone = leaky_features(unit=False)
        assert not any("persons" in said for said in measure(alone, alone).warnings)
