"""Learners by name, and the papers' grids."""

from __future__ import annotations

import sys

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from shoal.errors import InputError, MissingExtra
from shoal.utility.models import PRESETS, grid, learners
from shoal.utility.models._learners import chosen_learner

#: RF 12, bagging 3, XGBoost 36, logistic regression 6, perceptron 42: what the study counts.
COUNTS = {
    "random-forest": 12,
    "bagging": 3,
    "xgboost": 36,
    "logistic-regression": 6,
    "multi-layer-perceptron": 42,
}


class TestNames:
    def test_the_learners_of_the_papers(self):
        assert set(learners()) == {
            *COUNTS,
            "decision-tree",
            "dp-sgd",
            "gradient-boosting",
            "svm",
        }
        assert set(learners("regression")) == {*learners(), "ridge-regression"} - {
            "dp-sgd",
            "logistic-regression",
        }

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_each_can_be_made(self, task):
        if "xgboost" in learners(task):
            pytest.importorskip("xgboost")
        for name, make in learners(task).items():
            if name == "dp-sgd":
                continue  # of the extra dp: test_dp_sgd.py
            estimator = make()
            assert hasattr(estimator, "fit"), name
            assert estimator is not make()

    def test_a_class_of_scikit_learn(self):
        for name in ("GaussianNB", "sklearn.naive_bayes.GaussianNB"):
            chosen = chosen_learner(name, "classification", 0)
            assert isinstance(chosen.estimator, GaussianNB)
            assert chosen.name == "GaussianNB"

    @pytest.mark.parametrize(
        "name",
        [
            "GaussianNb",
            "os.GaussianNB",
            "sklearn.svm.GaussianNB",
            "LinearRegression",
            "",
            "os.path",
        ],
    )
    def test_what_is_no_classifier_is_refused(self, name):
        with pytest.raises(InputError, match="There is no learner"):
            chosen_learner(name, "classification", 0)

    def test_one_that_needs_parameters_is_refused_by_name(self):
        with pytest.raises(InputError, match="cannot be made without parameters"):
            chosen_learner("VotingClassifier", "classification", 0)

    def test_an_estimator_is_copied(self):
        mine = RandomForestClassifier(n_estimators=3)
        chosen = chosen_learner(mine, "classification", 7)
        assert chosen.estimator is not mine
        assert chosen.estimator.n_estimators == 3
        assert chosen.estimator.random_state == 7
        assert mine.random_state is None

    def test_the_seed_of_an_estimator_stays(self):
        mine = RandomForestClassifier(random_state=3)
        assert chosen_learner(mine, "classification", 7).estimator.random_state == 3

    @pytest.mark.parametrize("wrong", [LinearRegression(), GaussianNB, 3, None])
    def test_what_is_no_learner_is_refused(self, wrong):
        with pytest.raises(InputError):
            chosen_learner(wrong, "classification", 0)

    @pytest.mark.parametrize(
        ("name", "library", "extra"), [("xgboost", "xgboost", "study"), ("dp-sgd", "opacus", "dp")]
    )
    def test_a_missing_extra_says_how_to_install_it(self, monkeypatch, name, library, extra):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtra, match=rf'\'{name}\'.* pip install "shoal\[{extra}\]"'):
            learners()[name]()

    def test_a_name_with_parameters(self):
        mine = {"name": "random-forest", "n_estimators": 3}
        chosen = chosen_learner(mine, "classification", 7)
        assert chosen.name == "random-forest"
        assert chosen.encoding == "ordinal"
        assert chosen.estimator.n_estimators == 3
        assert chosen.estimator.random_state == 7
        assert mine == {"name": "random-forest", "n_estimators": 3}
        seeded = {"name": "RandomForestClassifier", "random_state": 3}
        assert chosen_learner(seeded, "classification", 7).estimator.random_state == 3

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"name": "random-forest", "trees": 3}, "'random-forest' has no parameter 'trees'"),
            ({"n_estimators": 3}, "A learner is a name"),
            ({"name": "forest"}, "There is no learner 'forest'"),
        ],
    )
    def test_a_name_with_wrong_parameters_is_refused(self, wrong, said):
        with pytest.raises(InputError, match=said):
            chosen_learner(wrong, "classification", 0)

    def test_a_third_task_is_refused(self):
        with pytest.raises(InputError, match="'classification' or 'regression'"):
            learners("clustering")


class TestGrids:
    def test_carvalho_has_99_configurations(self):
        assert set(PRESETS["carvalho"]) == set(COUNTS)
        for name, count in COUNTS.items():
            found = grid(name, features=27)
            assert len(found) == count
            assert len({str(one) for one in found}) == count
        assert sum(COUNTS.values()) == 99

    def test_without_repeated_iterations_75(self):
        assert sum(len(grid(name, "carvalho-distinct", features=27)) for name in COUNTS) == 75

    def test_every_configuration_is_one_of_its_learner(self):
        pytest.importorskip("xgboost")
        for preset, choices in PRESETS.items():
            for name in choices:
                for one in grid(name, preset, features=27):
                    made = learners()[name](**one)
                    assert made.get_params().items() >= one.items()

    def test_layers(self):
        layers = {one["hidden_layer_sizes"] for one in grid("multi-layer-perceptron", features=27)}
        expected = {(27,), (13,), (18,), (27, 13), (27, 18), (13, 18), (27, 13, 18)}
        assert layers == expected
        thin = grid("multi-layer-perceptron", features=1)
        assert all(min(one["hidden_layer_sizes"]) == 1 for one in thin)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("svm",), "has no learner 'svm'"),
            (("svm", "nobody"), "no preset 'nobody'"),
            (("multi-layer-perceptron",), "give it as features"),
        ],
    )
    def test_what_there_is_not_is_refused(self, arguments, said):
        with pytest.raises(InputError, match=said):
            grid(*arguments)
