"""What is predicted, learners that fail, weights, and intervals."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import shoal as sh
from shoal import Limit, Roles, Round, Table
from shoal.errors import InputError
from shoal.utility import predictive_performance, regression_performance
from shoal.utility.models import cross_validated, evaluate, stratified_folds

from .persons import ROWS, Spy, people, with_numbers


class TestTarget:
    @pytest.mark.parametrize(
        ("values", "said"),
        [
            (["a"] * 40, "has 1 class in the original"),
            ([None] * 39 + ["a"], "has 1 class in the original"),
            ([f"c{i}" for i in range(120)], "120 classes"),
        ],
    )
    def test_nothing_to_predict(self, values, said):
        frame = pl.DataFrame({"x": range(len(values)), "goal": values})
        table = Table(frame, Roles(quasi_identifiers=["x"], target="goal"))
        with pytest.raises(InputError, match=said):
            predictive_performance(table, table)

    def test_masked_targets(self):
        table = with_numbers()
        for values, said in (
            (["a"] * 40, "has 1 class in the masked table"),
            (["y", "z"] * 20, "no value of the target"),
        ):
            masked = Table(table.frame.with_columns(pl.Series("goal", values)), table.roles)
            with pytest.raises(InputError, match=said):
                predictive_performance(table, masked.paired(table))
        with pytest.raises(InputError, match="has no column 'goal'"):
            predictive_performance(table, table.drop(["goal"]))
        with pytest.raises(InputError, match="target in the roles"):
            predictive_performance(table.with_roles(Roles()), table)
        with pytest.raises(InputError, match="among the features"):
            predictive_performance(table, table, features=["goal"])

    def test_a_class_that_was_taken_out(self):
        """The first of three classes has no masked record: it is never said, and never found."""
        frame = pl.DataFrame({"x": [0, 50, 99] * 20, "goal": ["a", "b", "c"] * 20})
        table = Table(frame, Roles(quasi_identifiers=["x"], target="goal"))
        masked = table.keep(np.arange(60) % 3 > 0)
        found = predictive_performance(table, masked, learner="decision-tree", score="accuracy")
        assert found.baseline == 1.0
        assert found.value == pytest.approx(2 / 3)
        assert found.details["scores"]["balanced-accuracy"] == pytest.approx(2 / 3)
        assert found.details["scores"]["g-mean"] == 0.0

    def test_each_measure_leaves_the_others_target_alone(self):
        table = people()
        numbers = table.with_roles(table.roles.replacing(target="pay"))
        with pytest.raises(InputError, match="which regression_performance measures"):
            predictive_performance(numbers, numbers)
        with pytest.raises(InputError, match="which predictive_performance measures"):
            regression_performance(table, table)


class TestNumbers:
    def test_ridge_by_hand(self):
        table = people()
        masked = Round(base=20, columns=["age"]).fit_transform(table)
        found = regression_performance(table, masked, target="pay", features=["age", "town"])
        baseline = cross_validated("ridge-regression", table, "pay", features=["age", "town"])
        expected = np.mean([fold.scores["r2"] for fold in baseline])
        assert found.baseline == pytest.approx(expected)
        assert 0.5 < found.value < found.baseline
        assert found.details["scores"]["rmse"] > found.details["scores"]["mae"] > 100

    def test_worse_than_the_mean_is_0(self):
        rng = np.random.default_rng(0)
        frame = pl.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
        table = Table(frame, Roles(quasi_identifiers=["x"], target="y"))
        found = regression_performance(table, table, learner="decision-tree")
        assert found.value == 0.0
        assert found.details["scores"]["r2"] < 0
        assert found.details["percentage_difference"] is None
        assert found.details["percentage_skipped"] == 5
        assert found.warnings == ("The original predicts the target no better than its mean.",)

    def test_evaluate(self):
        table = people()
        rows = np.arange(ROWS) < 80
        train, test = table.keep(rows), table.keep(~rows)
        found = evaluate("decision-tree", train, test, "pay", ["r2", "mae"], features=["age"])
        assert set(found) == {"r2", "mae"}
        with pytest.raises(InputError, match="no score 'f1'"):
            evaluate("decision-tree", train, test, "pay", ["f1"])


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails at the n-th training, with a cell in its error."""

    count = 0

    def __init__(self, at=()):
        self.at = at

    def fit(self, X, y):
        Fragile.count += 1
        if self.at == "always" or Fragile.count in self.at:
            raise ValueError("could not convert 'canary-7d1f'")
        self.classes_, self.inner_ = np.unique(y), LogisticRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)


class TestFailures:
    def test_one_fold_spoils_no_other(self):
        table = people()
        Fragile.count = 0
        whole = predictive_performance(table, table, learner=Fragile())
        Fragile.count = 0
        found = predictive_performance(table, table, learner=Fragile(at=(2, 8)))
        values = [fold["value"] for fold in whole.details["folds"]]
        assert [fold["value"] for fold in found.details["folds"]] == [
            value if place != 2 else None for place, value in enumerate(values)
        ]
        assert found.value == pytest.approx(np.mean([values[i] for i in (0, 1, 3, 4)]))
        assert found.details["failed"] == [
            {"model": "asked", "repeat": 0, "fold": 2, "error": "ValueError"},
            {"model": "baseline", "repeat": 0, "fold": 1, "error": "ValueError"},
        ]
        assert found.details["percentage_skipped"] == 2
        assert any("failed on 1 of 5 splits" in said for said in found.warnings)
        assert "canary" not in json.dumps(found.to_dict()) + repr(found)

    def test_all_folds(self):
        table = people()
        with pytest.raises(InputError, match=r"failed on every split \(ValueError\)") as error:
            predictive_performance(table, table, learner=Fragile(at="always"))
        assert "canary" not in str(error.value)

    def test_a_baseline_that_fails(self):
        table = people()
        Fragile.count = 0
        found = predictive_performance(table, table, learner=Fragile(at=range(1, 6)))
        assert found.baseline is None
        assert found.details["difference"] is None
        assert any("nothing to compare with" in said for said in found.warnings)

    def test_what_does_not_converge_is_counted(self):
        table = people()
        learner = MLPClassifier(max_iter=1)
        found = predictive_performance(table, table, learner=learner, splits=2)
        assert found.details["not_converged"] == 2
        assert any("did not converge on 2 splits" in said for said in found.warnings)

    def test_a_score_that_a_learner_cannot_give(self, spy):
        table = people()
        with pytest.raises(InputError, match="'auc' cannot be computed for the learner 'Spy'"):
            predictive_performance(table, table, learner=spy, score="auc")


class TestWeights:
    def test_they_reach_the_learner(self, spy):
        table = with_numbers()
        frame = table.frame.with_columns(pl.Series("w", np.arange(40.0)))
        table = Table(frame, Roles(quasi_identifiers=["number"], target="goal"))
        predictive_performance(table, table, learner=spy, weight="w", splits=2)
        fold = stratified_folds(np.tile([0, 1], 20), table.row_key, splits=2)[0]
        assert Spy.weights[0].tolist() == fold.train.tolist()
        assert all(X.shape[1] == 1 for _, X in Spy.shown)  # the weight is no feature

    def test_bad_weights_are_refused(self):
        table = with_numbers()
        frame = table.frame.with_columns(pl.Series("w", [-1.0, None] + [1.0] * 38))
        table = Table(frame, table.roles)
        with pytest.raises(InputError, match="in 2 records"):
            predictive_performance(table, table, weight="w")
        with pytest.raises(InputError, match="accepts no weights"):
            predictive_performance(table, table, weight="w", learner="KNeighborsClassifier")


class TestInTheHouse:
    def test_assess_measures_the_target_of_the_roles(self):
        table = people()
        masked = Round(base=10, columns=["age"]).fit_transform(table)
        found = sh.assess(masked, original=table)
        assert found["predictive_performance"].value > 0.5
        assert "which predictive_performance measures" in found.left_out["regression_performance"]

    def test_a_limit_in_a_plan(self):
        table = people()
        options = {"learner": "decision-tree", "score": "accuracy", "features": ["age", "town"]}
        limit = Limit("predictive_performance", at_least=0.5, options=options)
        assert limit.key == "min_predictive_performance"
        assert limit.run(table, table).details["learner"] == "decision-tree"
