"""Membership inference: scores of members and others, and how well they are distinguished."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Generalize, Hierarchy, Roles, Round, Swap, Table
from shoal.errors import InputError
from shoal.risk import membership_inference
from shoal.risk.attacks._membership_inference import Separation
from shoal.workflow import assess

ROLES = Roles(quasi_identifiers=["x", "y", "c"], sensitive=["s"])


def crowd(rows=300, seed=1):
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    return Table(
        pl.DataFrame(
            {
                "x": x,
                "y": random.normal(size=rows).round(2),
                "c": [(None, "a", "b")[i] for i in random.integers(0, 3, rows)],
                "s": np.where(x + random.normal(size=rows) > 0, "ill", "well"),
            }
        ),
        ROLES,
    )


class TestSeparation:
    @settings(max_examples=80)
    @given(
        members=st.lists(st.integers(0, 6), min_size=1, max_size=12),
        others=st.lists(st.integers(0, 6), min_size=1, max_size=12),
    )
    def test_it_is_that_of_all_pairs(self, members, others):
        found = Separation(np.array(members, float), np.array(others, float))
        wins = [[(m > o) + (m == o) / 2 for o in others] for m in members]
        assert found.shares_below == pytest.approx(np.mean(wins, axis=1))
        assert found.area == pytest.approx(np.mean(wins))
        low, high = found.interval
        assert 0 <= low <= found.area <= high <= 1
        assert high - low > 0, "no share of so few people is certain"
        thresholds = [-1, *range(8)]
        best = max(
            np.mean([m >= t for m in members]) - np.mean([o >= t for o in others])
            for t in thresholds
        )
        facts = found.facts()
        assert facts["advantage"] == pytest.approx(best)
        few = max(
            np.mean([m >= t for m in members])
            for t in thresholds
            if np.mean([o >= t for o in others]) <= 0.01
        )
        assert facts["found_at_1_percent_false_alarms"] == pytest.approx(few)

    def test_it_is_scikit_learns_area(self):
        metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
        random = np.random.default_rng(1)
        members, others = random.normal(0.5, 1, 80).round(1), random.normal(0, 1, 120).round(1)
        truth = np.repeat([1, 0], [80, 120])
        expected = metrics.roc_auc_score(truth, np.concatenate([members, others]))
        assert Separation(members, others).area == pytest.approx(expected)

    def test_the_interval_covers(self):
        """Of 200 draws, about 95 % contain the true area, which is 0.76 for one deviation apart."""
        random = np.random.default_rng(3)
        inside = 0
        for _ in range(200):
            low, high = Separation(random.normal(1, 1, 60), random.normal(0, 1, 90)).interval
            inside += low <= 0.7602 <= high
        assert 183 <= inside <= 200

    def test_accuracy_is_not_flattered(self):
        """The best threshold for these people finds something; the other half's does not."""
        random = np.random.default_rng(4)
        drawn = [Separation(random.normal(size=40), random.normal(size=40)) for _ in range(50)]
        facts = [one.facts() for one in drawn]
        assert np.mean([one["advantage"] for one in facts]) > 0.1
        assert np.mean([one["accuracy"] for one in facts]) == pytest.approx(0.5, abs=0.02)

    def test_precision_has_a_base_rate_of_one_half_whatever_the_sizes(self):
        """Everybody scores 1: all are called members, and half of them are."""
        facts = Separation(np.ones(30), np.ones(7)).facts()
        assert facts["precision"] in (0.5, None)
        assert facts["base_rate"] == facts["accuracy"] == 0.5
        apart = Separation(np.ones(30), np.zeros(7)).facts()
        assert (apart["precision"], apart["accuracy"], apart["advantage"]) == (1, 1, 1)

    def test_one_person_on_each_side(self):
        facts = Separation(np.ones(1), np.zeros(1)).facts()
        assert (facts["area"], facts["accuracy"], facts["precision"]) == (1, 0.5, None)


def nearest_by_brute_force(people, records, ranges):
    """Gower's distance to the nearest record, in plain Python; missing values do not count."""
    nearest = []
    for person in people:
        gaps = []
        for record in records:
            terms = []
            for name, span in ranges.items():
                one, other = person[name], record[name]
                if one is not None and other is not None:
                    terms.append(float(one != other) if span is None else abs(one - other) / span)
            gaps.append(np.mean(terms) if terms else 1.0)
        nearest.append(min(gaps))
    return np.array(nearest)


class TestByDistance:
    def test_against_a_brute_force(self):
        original, others = crowd(50), crowd(40, seed=2)
        masked = Round(base=0.5).fit_transform(original)
        found = membership_inference(original, masked, control=others)
        ranges = {
            name: float(original.frame[name].max() - original.frame[name].min()) for name in "xy"
        } | {"c": None}
        sides = [
            -nearest_by_brute_force(t.frame.to_dicts(), masked.frame.to_dicts(), ranges).round(12)
            for t in (original, others)
        ]
        expected = Separation(*sides)
        assert found.value == pytest.approx(expected.area)
        assert found.per_record == pytest.approx(expected.shares_below)
        assert found.interval == pytest.approx(expected.interval)

    def test_members_of_an_unmasked_table_are_all_found(self):
        original = crowd()
        found = membership_inference(original, original, control=crowd(200, seed=2))
        assert found.value == found.details["accuracy"] == found.details["precision"] == 1
        assert found.details["found_at_1_percent_false_alarms"] == 1
        assert found.interval[0] > 0.97

    def test_a_release_of_other_people_says_nothing(self):
        found = membership_inference(crowd(), crowd(seed=3), control=crowd(300, seed=2))
        assert found.interval[0] < 0.5 < found.interval[1]
        assert "no better than by guessing" in found.warnings[0]
        assert found.baseline == 0.5

    def test_a_score_that_is_wrong_for_sure_tells_as_much(self):
        others = crowd(seed=2)
        found = membership_inference(crowd(), others, control=Table(others.frame, ROLES))
        assert found.interval[1] < 0.5
        assert "takes low scores for members" in found.warnings[-1]

    def test_a_joint_swap_hides_no_member(self):
        """Every person's quasi-identifiers still exist, only next to another secret."""
        original = crowd()
        masked = Swap(k=20).fit_transform(original)
        assert membership_inference(original, masked, control=crowd(seed=2)).value == 1

    def test_coarser_values_are_mapped_alike_for_all(self):
        """One interval for everybody reveals nothing; ten reveal little."""
        original, others = crowd(), crowd(300, seed=2)
        hierarchies = {"x": Hierarchy.intervals([1, 50]), "y": Hierarchy.intervals([1, 50])}
        masked = Generalize(k=5, hierarchies=hierarchies, columns=["x", "y"]).fit_transform(
            original
        )
        found = membership_inference(original, masked, control=others, known=["x", "y"])
        assert found.interval[0] <= 0.55

    def test_a_label_of_ones_own_gives_no_member_away(self):
        """All are equal, and the usual labels of the two columns never occur on one record."""
        roles = Roles(quasi_identifiers=["x", "y"])
        original = Table(pl.DataFrame({"x": [3] * 4, "y": [5] * 4}), roles)
        masked = original.with_labels("x", ["x1", "x2", "x3"], np.array([0, 0, 1, 2]))
        masked = masked.with_labels("y", ["y1", "y2", "y3"], np.array([0, 1, 2, 2]))
        others = Table(pl.DataFrame({"x": [3] * 2, "y": [5] * 2}), roles)
        assert membership_inference(original, masked, control=others).value == 0.5

    def test_nothing_known_was_released(self):
        original = crowd(30)
        found = membership_inference(
            original, original.drop(["x", "y", "c"]), control=crowd(30, seed=2)
        )
        assert (found.value, found.details["accuracy"]) == (0.5, 0.5)
        assert "was released" in found.warnings[0]

    def test_persons_and_controls_are_sampled_never_records(self):
        original, others = crowd(), crowd(200, seed=2)
        masked = Round(base=0.5).fit_transform(original)
        part = membership_inference(original, masked, control=others, sample=90)
        assert (part.details["persons"], part.details["control"]) == (90, 90)
        assert part.details["records"] == 300
        assert (~np.isnan(part.per_record)).sum() == 90
        whole = membership_inference(original, masked, control=others)
        assert part.interval[0] <= whole.value <= part.interval[1]


class TestByModel:
    def test_a_model_knows_what_it_learnt_from(self):
        original, others = crowd(500), crowd(500, seed=2)
        found = membership_inference(original, original, control=others, attack="model")
        assert found.details["target"] == "s"
        assert found.value > 0.7
        apart = membership_inference(original, crowd(500, seed=3), control=others, attack="model")
        assert apart.interval[0] < 0.5 < apart.interval[1]

    def test_a_model_that_cannot_overfit_knows_nobody(self):
        linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is missing")
        found = membership_inference(
            crowd(500),
            crowd(500),
            control=crowd(500, seed=2),
            attack="model",
            learner=linear.LogisticRegression(),
        )
        assert found.value == pytest.approx(0.5, abs=0.06)

    def test_a_regressor_is_judged_by_its_error(self):
        tree = pytest.importorskip("sklearn.tree", reason="scikit-learn is not installed")
        found = membership_inference(
            crowd(300),
            crowd(300),
            control=crowd(300, seed=2),
            attack="model",
            target="y",
            known=["x", "c"],
            learner=tree.DecisionTreeRegressor(),
        )
        assert found.value > 0.85

    def test_the_target(self):
        original, others = crowd(60), crowd(60, seed=2)
        aimed = original.with_roles(Roles(quasi_identifiers=["x", "y"], target="c"))
        options = {"control": others, "attack": "model"}
        assert membership_inference(aimed, aimed, **options).details["target"] == "c"
        bare = original.with_roles(Roles(quasi_identifiers=["x"]))
        with pytest.raises(InputError, match="neither a target nor a sensitive column"):
            membership_inference(bare, bare, **options)
        with pytest.raises(InputError, match="must be a column of the original"):
            membership_inference(original, original, target="wage", **options)
        with pytest.raises(InputError, match="'s' was not released"):
            membership_inference(original, original.drop(["s"]), **options)


class TestRefused:
    def test_there_is_nothing_to_measure_without_others(self):
        original = crowd(30)
        with pytest.raises(InputError, match="control"):
            membership_inference(original, original)
        found = assess(original, original=original)
        assert "control" in found.left_out["membership_inference"]

    def test_other_words_for_options(self):
        original, others = crowd(30), crowd(30, seed=2)
        with pytest.raises(InputError, match="must be one of 'distance', 'model'"):
            membership_inference(original, original, control=others, attack="x")
        with pytest.raises(InputError, match="has no persons"):
            membership_inference(original, original, control=others.keep(np.zeros(30, bool)))
        with pytest.raises(InputError, match="no column 'y'"):
            membership_inference(original, original, control=others.drop(["y"]))
        with pytest.raises(InputError, match="random-forest"):
            membership_inference(original, original, control=others, attack="model", learner="x")
