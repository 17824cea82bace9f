"""Models of the original and of the masked table: against scikit-learn, without a leak."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from shoal import Generalize, Hierarchy, Roles, Round, Sample, Table
from shoal.errors import InputError, NothingLeftWarning
from shoal.utility import predictive_performance
from shoal.utility.models import cross_validated, stratified_folds
from shoal.utility.models._scores import over_folds, over_rows

from .persons import ROWS, Spy, people, shuffled, with_numbers

RNG = np.random.default_rng(11)


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
    assert any("masked too" in said for said in found.warnings) == (test == "masked")


def test_the_interval_over_folds_is_nadeau_and_bengios():
    values = np.array([0.7, 0.75, 0.72, 0.8])
    reach = 3.182446305 * np.sqrt((1 / 4 + 1 / 3) * values.var(ddof=1))
    low, high = over_folds(values, 1 / 3)
    assert (low, high) == pytest.approx((values.mean() - reach, values.mean() + reach))
    assert over_folds(values[:1], 1 / 3) is None


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

    def test_infinite_numbers_are_missing_and_that_is_said(self):
        table, some = people(), np.arange(ROWS) % 9 == 0
        pay = table.frame["pay"]
        frames = [
            table.frame.with_columns(pay.set(pl.Series(some), value))
            for value in (np.inf, -np.inf, None)
        ]
        tables = [Table(frame, table.roles) for frame in frames]
        found = [predictive_performance(one, one) for one in tables]
        assert found[0].details == found[1].details == found[2].details
        said = "Infinite values of 'pay' count as missing."
        assert [said in one.warnings for one in found] == [True, True, False]
        rounded = Round(base=500, columns=["age"]).fit_transform(tables[2])
        late = tables[0].paired(tables[2])  # in the masked table alone
        assert said in predictive_performance(tables[2], late).warnings
        assert said not in predictive_performance(tables[2], rounded).warnings

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


def test_an_interval_over_rows_holds_the_value_of_all_of_them():
    """Whether all rows are there is never true of rows that are drawn with replacement."""
    found = over_rows(lambda rows: float(len(set(rows.tolist())) == 100), 100, random_state=0)
    assert found == (0.0, 1.0)
