"""The learners by name, and the numbers that columns become for them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from shoal.errors import InputError, MissingExtra
from shoal.utility.models import PRESETS, grid, learners
from shoal.utility.models._columns import UNKNOWN, SplitColumn
from shoal.utility.models._learners import MOST, RARE, chosen_learner, matrices, preprocessing

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
        with pytest.raises(InputError, match="without parameters"):
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
        with pytest.raises(MissingExtra, match=rf'\'{name}\'.* pip install ".*\[{extra}\]"'):
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
            ({"n_estimators": 3}, "A learner must be a name"),
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
            (("multi-layer-perceptron",), "Pass it as 'features'"),
        ],
    )
    def test_what_there_is_not_is_refused(self, arguments, said):
        with pytest.raises(InputError, match=said):
            grid(*arguments)


def made(columns, encoding="one-hot"):
    train, test, numbers = matrices(columns, (len(columns[0].train), len(columns[0].test)))
    prepared = preprocessing(numbers, train.shape[1] - numbers, encoding)
    return prepared.fit_transform(train), prepared.transform(test)


def nominal(train, test):
    return SplitColumn("x", False, np.array(train), np.array(test))


class TestNominal:
    def test_rare_and_unknown_values_go_together(self):
        train, test = made([nominal([0] * RARE + [1] * 9 + [2, 3], [0, 1, 3, 7, UNKNOWN])])
        assert train.sum(axis=0).tolist() == [RARE, 9, 2]
        assert test.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]

    def test_unknown_values_are_none_of_them_where_none_is_rare(self):
        _, test = made([nominal([0] * RARE + [1] * RARE, [0, UNKNOWN])])
        assert test.tolist() == [[1, 0], [0, 0]]

    def test_missing_is_a_value_of_its_own(self):
        _, test = made([nominal([-1] * RARE + [1] * RARE, [-1, 1])])
        assert test.tolist() == [[1, 0], [0, 1]]

    def test_many_values_make_a_few_columns(self):
        train, _ = made([nominal(np.repeat(np.arange(300), RARE), [0])])
        assert train.shape[1] == MOST

    def test_trees_get_codes(self):
        train, test = made([nominal([7, 3, 3, 9], [3, 9, 4])], "ordinal")
        assert train.ravel().tolist() == [1, 0, 0, 2]
        assert test.ravel().tolist() == [0, 2, -1]


class TestNumbers:
    def test_the_median_and_a_flag_where_missing(self):
        known = np.array([1.0, 2.0, 9.0, np.nan])
        train, test = made([SplitColumn("x", True, known, np.array([np.nan, 3.5]))])
        filled = np.array([1.0, 2.0, 9.0, 2.0])
        assert np.allclose(train[:, 0], (filled - filled.mean()) / filled.std())
        assert np.allclose(test[:, 0], (np.array([2.0, 3.5]) - filled.mean()) / filled.std())
        assert test[0, 1] > 0 > test[1, 1]

    def test_numbers_come_first(self):
        numbers = SplitColumn("n", True, np.arange(10.0), np.arange(2.0))
        codes = nominal([0] * 5 + [1] * 5, [0, 1])
        train, _, count = matrices([codes, numbers], (10, 2))
        assert count == 1
        assert train[:, 0].tolist() == list(range(10))

    def test_without_columns_there_is_one_constant(self):
        train, test, numbers = matrices([], (3, 2))
        assert (train.shape, test.shape, numbers) == ((3, 1), (2, 1), 1)
        assert not preprocessing(1, 0, "one-hot").fit_transform(train).any()
