"""Attribute inference: guesses, their baselines, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import (
    Limit,
    Plan,
    Roles,
    Round,
    Swap,
    Table,
    protect,
)
from shoal.errors import InputError
from shoal.risk import attribute_inference
from shoal.risk.linkage._right_links import wilson
from shoal.workflow import assess, verify

from .crowds import BEST, ROLES, crowd, table


class TestByLinkage:
    def test_the_nearest_record_tells_and_ties_count_by_their_share(self):
        """Two records of the same age with different secrets: each is right half of the time."""
        original = table([30, 30, 50, 70], ["a", "b", "b", "b"])
        found = attribute_inference(original, original, attack="distance")
        assert found.per_record.tolist() == [0.5, 0.5, 1, 1]
        assert (found.value, found.baseline) == (0.75, 0.75)
        assert found.details["lift"] == 0
        assert "no better than" in found.warnings[0]

    def test_the_truth_is_the_persons_own_value(self):
        """Secrets that changed hands are wrong guesses, although every row is found."""
        original = table([30, 40, 50, 60], ["a", "b", "b", "b"])
        masked = original.with_cells_of({"ill": np.array([1, 0, 2, 3])})
        assert attribute_inference(original, masked, attack="distance").per_record.tolist() == [
            0,
            0,
            1,
            1,
        ]

    @pytest.mark.parametrize("attack", ["probabilistic", "similarity"])
    def test_other_linkages(self, attack):
        """A person who matches in both columns is found; with equal secrets, either will do."""
        original = table([30, 30, 50, 70], ["a", "a", "b", "c"], list("ffmf"))
        found = attribute_inference(original, original, attack=attack)
        assert found.per_record.tolist() == [1, 1, 1, 1]
        assert found.details["attack"] == attack
        turned = table([30, 30, 50, 70], ["c", "b", "a", "a"], list("ffmf"))
        assert attribute_inference(original, turned, attack=attack).per_record.tolist() == [0] * 4

    def test_rows_need_no_pairs(self):
        original = crowd(60)
        turned = Table(original.frame.reverse(), ROLES)
        assert not turned.pairs_with(original)
        for attack in ("distance", "model", "probabilistic", "similarity"):
            paired = attribute_inference(original, original, attack=attack)
            apart = attribute_inference(original, turned, attack=attack)
            assert apart.per_record.tolist() == paired.per_record.tolist()
            assert apart.value == paired.value


class TestByModel:
    def test_it_generalizes_and_says_so(self):
        """Models that did not see the record also guess secrets that follow from what is known."""
        original = crowd(2000)
        found = attribute_inference(original, original)
        facts = found.details["secrets"]["ill"]
        assert found.value > 0.85
        assert facts["own_accuracy"] == pytest.approx(BEST, abs=0.03)
        assert facts["own_accuracy"] < found.value
        assert facts["learnt_from"] == 2000
        assert found.interval == pytest.approx(wilson(found.value, 2000))
        assert facts["above_baseline"] == pytest.approx(found.value - found.baseline)
        lift = (found.value - found.baseline) / (1 - found.baseline)
        assert found.details["lift"] == pytest.approx(lift)

    def test_what_says_nothing_gives_the_most_frequent_value(self):
        """Sex alone reveals nothing about the illness."""
        original = crowd(2000)
        found = attribute_inference(original, original, known=["sex"])
        assert found.value == pytest.approx(found.baseline, abs=0.02)
        assert found.details["known"] == ["sex"]

    def test_a_control_group_shows_what_is_known_of_people_in_general(self):
        original, others = crowd(1500), crowd(1500, seed=2)
        found = attribute_inference(original, original, control=others)
        control = found.details["secrets"]["ill"]["control"]
        assert control["persons"] == 1500
        assert control["accuracy"] == pytest.approx(BEST, abs=0.03)
        assert control["interval"][0] < control["accuracy"] < control["interval"][1]
        assert control["above_control"] == pytest.approx(
            (found.value - control["accuracy"]) / (1 - control["accuracy"])
        )
        assert found.value == attribute_inference(original, original).value

    def test_a_control_group_from_the_same_draw_as_the_table_is_no_worse(self):
        """An unrelated release: members and control are guessed equally well."""
        original, others, unrelated = crowd(1500), crowd(1500, seed=2), crowd(1500, seed=3)
        facts = attribute_inference(original, unrelated, control=others).details["secrets"]["ill"]
        low, high = facts["control"]["interval"]
        assert low - 0.02 <= facts["accuracy"] <= high + 0.02

    @pytest.mark.parametrize("name", ["LogisticRegression", "KNeighborsClassifier"])
    def test_any_learner_of_scikit_learn(self, name):
        learner = {
            "LogisticRegression": "sklearn.linear_model",
            "KNeighborsClassifier": "sklearn.neighbors",
        }
        module = pytest.importorskip(learner[name], reason="scikit-learn is not installed")
        given = getattr(module, name)()
        before = given.get_params()
        found = attribute_inference(crowd(), crowd(), learner=given)
        assert found.value > found.baseline + 0.2
        assert found.details["secrets"]["ill"]["own_accuracy"] > 0.75
        assert given.get_params() == before
        assert not hasattr(given, "classes_"), "the caller's own is not fitted"

    def test_a_regressor_of_a_quantity(self):
        linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is missing")
        random = np.random.default_rng(3)
        age = random.integers(20, 80, 600)
        original = table(age, 1000.0 * age + random.normal(0, 1, 600))
        found = attribute_inference(original, original, learner=linear.LinearRegression())
        assert found.details["secrets"]["ill"]["parts"] == 10
        assert found.value > 0.7
        assert found.baseline == pytest.approx(0.1, abs=0.02)

    def test_a_learner_that_fails_is_worded_without_its_text(self):
        dummy = pytest.importorskip("sklearn.dummy", reason="scikit-learn is not installed")

        class Failing(dummy.DummyClassifier):
            def fit(self, X, y, sample_weight=None):
                raise ValueError("canary-7d1f in row 3")

        with pytest.raises(InputError, match="ValueError") as caught:
            attribute_inference(crowd(), crowd(), learner=Failing())
        assert "canary" not in str(caught.value)

    def test_one_released_value_is_known_to_everybody(self):
        """Nothing is left to learn; the value is the share of persons who have it."""
        original = table([30, 40, 50, 60], ["a", "a", "a", "b"])
        masked = table([30, 40, 50, 60], ["a"] * 4)
        found = attribute_inference(original, masked)
        assert (found.value, found.baseline, found.details["lift"]) == (0.75, 0.75, 0)

    def test_values_that_nobody_released_are_between_their_neighbours(self):
        """No record has these persons' ages; a record of one age predicts the next one."""
        original = table([21, 29, 61, 69], ["a", "a", "b", "b"])
        masked = table([20, 30, 60, 70] * 30, ["a", "a", "b", "b"] * 30)
        assert attribute_inference(original, masked).value == 1

    def test_rare_values_of_a_secret_without_an_order_are_not_guessed(self):
        """Of 150 names, the model learns the first 100, and the tables stay small."""
        names = [f"name {i:03}" for i in range(150)]
        original = table(np.repeat(np.arange(150), 2), np.repeat(names, 2))
        found = attribute_inference(original, original)
        assert found.per_record[200:].max() == 0
        assert found.per_record[:200].mean() > 0.9


class TestSample:
    def test_the_order_of_what_is_known_does_not_matter(self):
        original = crowd(300)
        first, second = (
            attribute_inference(original, crowd(300, seed=2), known=known).per_record
            for known in (["age", "sex"], ["sex", "age"])
        )
        assert first.tolist() == second.tolist()

    def test_only_persons_are_sampled(self):
        original = crowd(600)
        part = attribute_inference(original, original, sample=100)
        assert part.details["persons"] == 100
        assert (~np.isnan(part.per_record)).sum() == 100
        assert part.details["secrets"]["ill"]["learnt_from"] == 600
        whole = attribute_inference(original, original)
        drawn = ~np.isnan(part.per_record)
        assert part.per_record[drawn].tolist() == whole.per_record[drawn].tolist()

    def test_another_random_state_gives_other_persons(self):
        original = crowd(300)
        first, second = (
            np.isnan(attribute_inference(original, original, sample=50, random_state=i).per_record)
            for i in (1, 2)
        )
        assert (first != second).any()


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"attack": "psychic"}, "must be one of 'model', 'distance'"),
            ({"tolerance": 0}, "> 0 and ≤ 1"),
            ({"tolerance": 1.5}, "> 0 and ≤ 1"),
            ({"secret": "ill"}, "must be a list"),
            ({"secret": ["wage"]}, "no column 'wage'"),
            ({"secret": []}, "must be a list"),
            ({"learner": "boosting"}, "Got 'boosting' instead"),
            ({"learner": 7}, "Got 7 instead"),
            ({"control": 7}, "Got 7 instead"),
        ],
    )
    def test_options(self, options, said):
        with pytest.raises(InputError, match=said):
            attribute_inference(crowd(20), crowd(20), **options)

    def test_a_control_group_is_for_the_model_and_has_other_people(self):
        original = crowd(20)
        with pytest.raises(InputError, match="'model'"):
            attribute_inference(original, original, attack="distance", control=crowd(20, seed=2))
        with pytest.raises(InputError, match="control"):
            attribute_inference(original, original, control=original)
        half = np.arange(20) < 10
        split = attribute_inference(
            original.keep(half), original.keep(half), control=original.keep(~half)
        )
        assert split.details["secrets"]["ill"]["control"]["persons"] == 10
        with pytest.raises(InputError, match="no column 'ill'"):
            attribute_inference(original, original, control=crowd(20, seed=2).drop(["ill"]))

    def test_a_class_is_no_learner(self):
        naive = pytest.importorskip("sklearn.naive_bayes", reason="scikit-learn is not installed")
        with pytest.raises(InputError, match="random-forest"):
            attribute_inference(crowd(20), crowd(20), learner=naive.GaussianNB)

    def test_no_secrets_are_declared(self):
        nobody = crowd(20).with_roles(Roles(quasi_identifiers=["age"]))
        with pytest.raises(InputError, match="no sensitive columns"):
            attribute_inference(nobody, nobody)
        found = assess(nobody, original=nobody)
        assert "declare them" in found.left_out["attribute_inference"]

    def test_an_assessment_has_it(self):
        original = crowd(100)
        found = assess(Round(base=10).fit_transform(original), original=original)
        assert 0 < found["attribute_inference"].value <= 1


class TestInPlans:
    @pytest.mark.filterwarnings("ignore::shoal.errors.DisclosureWarning")
    @pytest.mark.parametrize(
        ("measure", "options"),
        [
            ("attribute_inference", {}),
            ("attribute_inference", {"attack": "distance", "known": ["age"], "sample": 100}),
            ("interval_disclosure", {"interval": "groups", "columns": ["age"]}),
        ],
    )
    def test_a_claim_is_found_again_in_the_files(self, tmp_path, measure, options):
        """A verifier has other rows in another order, but must measure the same."""
        original = crowd(400)
        plan = Plan([Swap(k=4)], require=[Limit(measure, at_most=1, options=options)])
        release = protect(original, plan)
        checks = verify(release.save(tmp_path / "out"), original=original).checks
        assert {c.status for c in checks if c.name == f"claim max_{measure}"} == {"passed"}
        again = plan.require[0].run(release.masked, original)
        assert release.claims[0].measured == again.value

    def test_the_order_of_a_release_does_not_matter(self):
        original = crowd(400)
        masked = Swap(k=4).fit_transform(original)
        turned = masked.reorder(np.random.default_rng(1).permutation(400))
        assert (
            attribute_inference(original, turned).to_dict()
            == attribute_inference(original, masked).to_dict()
        )
