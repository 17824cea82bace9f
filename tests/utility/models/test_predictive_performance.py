"""Models of the original and of the masked table: against scikit-learn, without a leak."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import shoal as sh
from shoal import Generalize, Hierarchy, Limit, Roles, Round, Sample, Table
from shoal.errors import InputError, NothingLeftWarning
from shoal.utility import predictive_performance, regression_performance
from shoal.utility.models import cross_validated, evaluate, stratified_folds
from shoal.utility.models._intervals import over_folds, over_rows

RNG = np.random.default_rng(11)
ROWS = 120


def people(rows=ROWS, seed=11):
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 80, rows), rng.choice(["Ulm", "Jena", "Bern"], rows)
    rich = age + 20 * (town == "Bern") + rng.normal(0, 12, rows) > 60
    frame = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(rows)],
            "age": pl.Series(age).set(pl.Series(rng.random(rows) < 0.1), None),
            "town": pl.Series(town).set(pl.Series(rng.random(rows) < 0.1), None),
            "rich": np.where(rich, "yes", "no"),
            "pay": age * 50 + rng.normal(0, 400, rows),
        }
    )
    roles = Roles(identifiers=["name"], quasi_identifiers=["age", "town"], target="rich")
    return Table(frame, roles)


def shuffled(table, seed=4):
    """The same persons in another order, ages moved by a few years and towns by one person."""
    rng = np.random.default_rng(seed)
    frame = table.frame.with_columns(
        pl.col("age") + pl.Series(rng.integers(-6, 7, len(table))), pl.col("town").shift(1)
    )
    moved = Table(frame, table.roles).paired(table)
    return moved.reorder(rng.permutation(len(table)))


def by_hand(train, test):
    """The features of two frames, with scikit-learn on strings and floats."""
    ages = [frame["age"].cast(pl.Float64).to_numpy() for frame in (train, test)]
    middle = np.nanmedian(ages[0])
    parts = [
        np.column_stack((np.nan_to_num(values, nan=middle), np.isnan(values))) for values in ages
    ]
    scaler = StandardScaler().fit(parts[0])
    towns = [frame["town"].fill_null("").to_numpy().reshape(-1, 1) for frame in (train, test)]
    hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(towns[0])
    return [
        np.hstack([scaler.transform(part), hot.transform(town)])
        for part, town in zip(parts, towns, strict=True)
    ]


@pytest.mark.parametrize("train", ["masked", "original"])
@pytest.mark.parametrize("test", ["masked", "original"])
def test_each_combination_equals_scikit_learn(train, test):
    table = people()
    masked = shuffled(table)
    found = predictive_performance(
        table, masked, train=train, test=test, features=["age", "town"], splits=4, repeats=2
    )
    frames = {
        "original": table.frame,
        "masked": masked.frame[np.argsort(masked.row_key)],  # in the order of the original
    }
    rich = (table.frame["rich"] == "yes").to_numpy()
    rare = "yes" if rich.mean() <= 0.5 else "no"
    scores, bases = [], []
    for fold in stratified_folds(rich.astype(np.int64), table.row_key, splits=4, repeats=2):
        for kept, learn, ask in ((scores, train, test), (bases, "original", "original")):
            parts = frames[learn][fold.train], frames[ask][fold.test]
            model = LogisticRegression(max_iter=1000, tol=1e-3)
            known, asked = by_hand(*parts)
            with threadpool_limits(1):
                said = model.fit(known, parts[0]["rich"].to_numpy()).predict(asked)
            kept.append(f1_score(parts[1]["rich"].to_numpy(), said, pos_label=rare))
    assert found.value == pytest.approx(np.mean(scores))
    assert found.baseline == pytest.approx(np.mean(bases))
    assert [fold["value"] for fold in found.details["folds"]] == pytest.approx(scores)
    differences = 100 * (np.array(scores) - bases) / bases
    assert found.details["percentage_difference"] == pytest.approx(differences.mean())
    expected = over_folds(differences, 30 / 90)
    assert found.details["percentage_interval"] == pytest.approx(list(expected))
    assert any("flatters" in said for said in found.warnings) == (test == "masked")


def test_the_interval_over_folds_is_nadeau_and_bengios():
    values = np.array([0.7, 0.75, 0.72, 0.8])
    reach = 3.182446305 * np.sqrt((1 / 4 + 1 / 3) * values.var(ddof=1))
    low, high = over_folds(values, 1 / 3)
    assert (low, high) == pytest.approx((values.mean() - reach, values.mean() + reach))
    assert over_folds(values[:1], 1 / 3) is None


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was shown; says what the first training row says."""

    shown: list = []  # noqa: RUF012 - of the class, since a learner is copied
    weights: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        Spy.shown.append(("train", X.copy()))
        Spy.weights.append(sample_weight)
        return self

    def predict(self, X):
        Spy.shown.append(("test", X.copy()))
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def spy():
    Spy.shown.clear()
    Spy.weights.clear()
    return Spy()


def with_numbers(rows=40):
    frame = pl.DataFrame({"number": np.arange(rows) * 1.0, "goal": ["a", "b"] * (rows // 2)})
    return Table(frame, Roles(quasi_identifiers=["number"], target="goal"))


class TestNoLeak:
    def test_no_tested_person_was_seen_in_training(self, spy):
        table = with_numbers()
        masked = table.reorder(RNG.permutation(len(table)))
        predictive_performance(table, masked, learner=spy, splits=4)
        assert len(Spy.shown) == 16  # four of the original, four of the masked table
        tested = 0
        for (_, train), (_, test) in zip(Spy.shown[::2], Spy.shown[1::2], strict=True):
            assert not np.isin(test[:, 0], train[:, 0]).any()
            assert len(train) == 30
            tested += len(test)
        assert tested == 80

    def test_the_hold_out_is_not_trained_on(self, spy):
        table = with_numbers()
        kept = np.arange(len(table)) < 30
        train, rest = table.keep(kept), table.keep(~kept)
        predictive_performance(train, train, learner=spy, holdout=rest)
        for (_, known), (_, asked) in zip(Spy.shown[::2], Spy.shown[1::2], strict=True):
            assert (len(known), len(asked)) == (30, 10)
            assert not np.isin(asked[:, 0], known[:, 0]).any()

    def test_features_are_learned_from_training_rows_alone(self, spy):
        """Whatever the tested rows hold, the training rows reach the learner unchanged."""
        table = with_numbers()
        fold = stratified_folds(np.tile([0, 1], 20), table.row_key, splits=4)[0]
        values = table.frame["number"].to_numpy().copy()
        values[fold.test] = 1e6
        other = Table(table.frame.with_columns(pl.Series("number", values)), table.roles)
        for one in (table, other):
            predictive_performance(one, one, learner=spy, splits=4, train="original")
        trained = [X for what, X in Spy.shown if what == "train"]
        assert np.array_equal(trained[0], trained[4])
        assert not np.array_equal(trained[1], trained[5])


class TestCoarserColumns:
    """A model of bands and regions is asked about raw ages and towns."""

    table = Table(
        pl.DataFrame(
            {
                "age": list(range(20, 60)) * 3,
                "town": ["Ulm", "Jena", "Bern", "Chur"] * 30,
                "old": [age >= 40 for age in range(20, 60)] * 3,
                "swiss": [False, False, True, True] * 30,
            }
        ),
        Roles(quasi_identifiers=["age", "town"]),
    )
    regions = Hierarchy.tree({"German": ["Ulm", "Jena"], "Swiss": ["Bern", "Chur"]})

    def masked(self, algorithm="full-domain", k=2, **options):
        trees = {"age": Hierarchy.intervals([10]), "town": self.regions}
        step = Generalize(algorithm, k=k, hierarchies=trees, **options)
        return step.fit_transform(self.table)

    def test_one_level_for_all(self):
        masked = self.masked(levels={"age": 1, "town": 1})
        for target in ("old", "swiss"):
            found = predictive_performance(
                self.table,
                masked,
                target=target,
                learner="decision-tree",
                features=["age", "town"],
            )
            assert found.value == found.baseline == 1.0
            assert found.details["mapped"] == {"middles": ["age"], "most_frequent": ["town"]}

    def test_boxes(self):
        masked = self.masked("mondrian", k=5)
        assert masked.kind("age") == "text"
        found = predictive_performance(
            self.table, masked, target="old", learner="decision-tree", features=["age", "town"]
        )
        assert found.value > 0.85

    def test_a_column_of_stars_says_nothing(self):
        with pytest.warns(NothingLeftWarning):
            masked = self.masked(levels={"age": 2, "town": 2})
        assert masked.frame["age"].unique().to_list() == ["*"]
        found = predictive_performance(
            self.table, masked, target="old", features=["age", "town"], score="balanced-accuracy"
        )
        assert found.value == 0.5
        assert found.warnings == ("The model is no better than guessing a class.",)

    def test_without_pairs_they_are_left_out_and_that_is_said(self):
        masked = self.masked(levels={"age": 1, "town": 0})
        released = Table(masked.frame, masked.roles)
        found = predictive_performance(
            self.table,
            released,
            target="swiss",
            learner="decision-tree",
            features=["age", "town"],
            holdout=Table(self.table.frame),
        )
        assert found.value == 1.0
        assert found.details["left_out"] == ["age"]
        assert any("'age'" in said for said in found.warnings)


class TestTables:
    def test_a_release_of_fewer_persons(self):
        table = people()
        masked = Sample(fraction=0.5).fit_transform(table)
        found = predictive_performance(table, masked)
        assert found.details["persons"] == ROWS
        assert abs(found.details["rows"]["training"] - 48) <= 1
        assert found.details["rows"]["tested"] == 24

    def test_unpaired_tables_need_a_hold_out(self):
        table = people()
        strange = Table(table.frame, table.roles)
        with pytest.raises(InputError, match="holdout"):
            predictive_performance(table, strange)
        rest = people(seed=3)
        found = predictive_performance(table, strange, holdout=rest)
        assert found.value == found.baseline
        low, high = found.interval
        assert low < found.value < high
        assert found.details["percentage_interval"] == [0.0, 0.0]

    def test_unpaired_tables_by_themselves(self):
        table = people()
        strange = Table(table.frame[:100], table.roles)
        found = predictive_performance(table, strange, test="masked")
        assert found.details["percentage_interval"] is None
        alone = cross_validated("logistic-regression", strange, "rich")
        assert found.value == pytest.approx(np.mean([fold.scores["f1"] for fold in alone]))

    def test_a_hold_out_that_was_masked_is_refused(self):
        table = people()
        with pytest.raises(InputError, match="shares 20 rows"):
            predictive_performance(table, table, holdout=table.keep(np.arange(len(table)) < 20))
        with pytest.raises(InputError, match="cannot be a masked test"):
            predictive_performance(table, table, holdout=people(seed=3), test="masked")
        with pytest.raises(InputError, match="no column 'age'"):
            predictive_performance(table, table, holdout=people(seed=3).drop(["age"]))

    def test_columns_that_were_taken_out(self):
        table = people()
        masked = table.drop(["age", "pay"])
        found = predictive_performance(table, masked)
        assert found.details["columns"] == ["town"]
        assert found.value < found.baseline
        alone = predictive_performance(table, masked.drop(["town"]))
        assert alone.details["columns"] == []
        assert alone.value == 0.0
        assert any("No column is left" in said for said in alone.warnings)

    def test_a_large_table_is_sampled(self):
        table = people(rows=400)
        found = predictive_performance(table, table, sample=100)
        assert found.details["persons"] == 100
        assert found.details["rows"] == {"training": 80, "tested": 20}

    def test_rows_without_a_target_are_left_out(self):
        table = people()
        frame = table.frame.with_columns(
            pl.when(pl.int_range(ROWS) < 10).then(None).otherwise(pl.col("rich")).alias("rich")
        )
        gaps = Table(frame, table.roles)
        assert predictive_performance(gaps, gaps).details["persons"] == ROWS - 10
        masked = Table(frame, table.roles).paired(table)
        found = predictive_performance(table, masked)
        assert found.details["persons"] == ROWS
        assert abs(found.details["rows"]["training"] - 88) <= 1


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
            (["y", "z"] * 20, "no value in the masked table"),
        ):
            masked = Table(table.frame.with_columns(pl.Series("goal", values)), table.roles)
            with pytest.raises(InputError, match=said):
                predictive_performance(table, masked.paired(table))
        with pytest.raises(InputError, match="has no column 'goal'"):
            predictive_performance(table, table.drop(["goal"]))
        with pytest.raises(InputError, match="declare a target"):
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
        with pytest.raises(InputError, match="'auc' cannot be told of the learner 'Spy'"):
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
        with pytest.raises(InputError, match="takes no weights"):
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


def test_an_interval_over_rows_holds_the_value_of_all_of_them():
    """Whether all rows are there is never true of rows that are drawn with replacement."""
    found = over_rows(lambda rows: float(len(set(rows.tolist())) == 100), 100, random_state=0)
    assert found == (0.0, 1.0)
