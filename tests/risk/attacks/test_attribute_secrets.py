"""Attribute inference: secrets of every kind, and released labels that are coarser."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import (
    Generalize,
    Hierarchy,
    Roles,
    Swap,
    Table,
)
from shoal.errors import InputError
from shoal.risk import attribute_inference
from shoal.risk.attacks._learnt_guesses import secret_labels

from .crowds import ROLES, crowd, table


class TestSecrets:
    def test_the_one_with_the_largest_lift_is_the_value(self):
        """A rare secret is guessed most often, which is no achievement."""
        ages = [30, 30, 40, 40, 50, 50, 60, 60]
        roles = Roles(quasi_identifiers=["age"], sensitive=["rare", "ill", "blind"])
        original = Table(
            pl.DataFrame(
                {
                    "age": ages,
                    "rare": list("xyxxxxxx"),
                    "ill": list("aabbababs"[:8]),
                    "blind": list("abababab"),
                }
            ),
            roles,
        )
        found = attribute_inference(original, original, attack="distance")
        rates = {name: facts["accuracy"] for name, facts in found.details["secrets"].items()}
        assert rates == {"rare": 0.875, "ill": 0.75, "blind": 0.5}
        assert found.details["columns"] == rates
        assert (found.details["secret"], found.value, found.baseline) == ("ill", 0.75, 0.5)
        alone = attribute_inference(original, original, attack="distance", secret=["rare"])
        assert alone.value == 0.875

    def test_a_secret_is_not_known(self):
        roles = Roles(quasi_identifiers=["age"], sensitive=["ill"])
        original = table([30, 30, 40, 40], ["a", "b", "a", "b"], roles=roles)
        found = attribute_inference(original, original, known=["age", "ill"], attack="distance")
        assert found.value == 0.5
        with pytest.raises(InputError, match="nothing but the secret 'ill' itself"):
            attribute_inference(original, original, known=["ill"])

    def test_a_secret_that_was_taken_out_is_not_told(self):
        original = crowd(50)
        found = attribute_inference(original, original.drop(["ill"]))
        assert (found.value, found.baseline) == (0, 0)
        assert found.details["secrets"]["ill"]["released"] is False

    def test_a_secret_that_was_taken_out_is_no_excuse_for_another(self):
        """The other secret is guessed worse than blindly, but a removed one has 0."""
        roles = Roles(quasi_identifiers=["age"], sensitive=["ill", "sex"])
        original = table([30] * 4 + [40] * 3, list("aaabbba"), roles=roles)
        masked = table([40] * 4 + [30] * 3, list("aaaabbb"), roles=roles).paired(original)
        found = attribute_inference(original, masked.drop(["sex"]), attack="distance")
        assert found.details["secret"] == "ill"
        assert found.details["lift"] < 0 < found.value

    def test_a_sample_is_said(self):
        original = crowd(50)
        found = attribute_inference(original, original.keep(np.arange(50) < 40), attack="distance")
        assert "40 records of 50 persons" in found.warnings[0]

    def test_nothing_known_was_released(self):
        original = crowd(50)
        found = attribute_inference(original, original.drop(["age", "sex"]))
        assert found.value == found.baseline > 0.5
        assert "the guess is blind" in found.warnings[0]

    def test_a_missing_secret_is_a_value(self):
        original = table([30, 31, 60, 61], [None, None, "b", "b"])
        found = attribute_inference(original, original, attack="distance")
        assert (found.value, found.baseline) == (1, 0.5)

    @pytest.mark.parametrize("kind", ["numbers", "dates", "large"])
    def test_a_quantity_is_right_in_the_right_part(self, kind):
        """100 values in 4 parts of 25: a guess 20 off is right for 5 of 25, at any scale."""
        values = {
            "numbers": [float(i) for i in range(100)],
            "dates": [dt.date(2000, 1, 1) + dt.timedelta(days=i) for i in range(100)],
            "large": [2**63 - 101 + i for i in range(100)],
        }[kind]
        original = table(range(100), values)
        masked = original.with_cells_of({"ill": np.maximum(np.arange(100) - 20, 0)})
        found = attribute_inference(original, masked, attack="distance", tolerance=0.25)
        assert found.details["secrets"]["ill"]["parts"] == 4
        assert found.value == pytest.approx((25 + 3 * 5) / 100)
        assert found.baseline == pytest.approx(0.25)

    def test_parts_are_of_the_ranks_in_their_middle(self):
        """Compared with a plain count on values with ties, including released values nobody had."""
        from shoal.risk.attacks._learnt_guesses import members_and_control

        random = np.random.default_rng(4)
        values = np.round(random.exponential(20, 90)).tolist()
        released = [*values[:40], *(np.arange(50) - 5.5).tolist()]
        original, masked = table(range(90), values), table(range(90), released)
        labels = secret_labels("ill", members_and_control(original, masked, None, ["ill"]), 1 / 7)
        for found, given in ((labels.people, values), (labels.records, released)):
            below = np.array([sum(v < one for v in values) for one in given])
            equal = np.array([sum(v == one for v in values) for one in given])
            middle = (below + equal / 2) / 90
            assert found.tolist() == np.minimum(np.floor(7 * middle + 1e-12), 6).tolist()

    def test_parts_keep_equal_values_together(self):
        from shoal.risk.attacks._learnt_guesses import members_and_control

        values = [0] * 60 + list(range(1, 41))
        original = table(range(100), values)
        labels = secret_labels("ill", members_and_control(original, original, None, ["ill"]), 0.1)
        assert len(set(labels.people[:60].tolist())) == 1
        assert labels.people[60:].min() > labels.people[0]
        assert np.bincount(labels.people).max() == 60


class TestCoarser:
    def people(self):
        return table([21, 24, 33, 38, 52, 57], ["a", "a", "b", "b", "a", "b"])

    @pytest.mark.parametrize("attack", ["model", "distance"])
    def test_an_intruder_knows_how_values_became_coarser(self, attack):
        original = self.people()
        masked = Hierarchy.intervals([10]).generalize(original, "age", 1)
        found = attribute_inference(original, masked, attack=attack)
        assert "'age' was made coarser" in found.warnings[0]
        assert found.per_record[:4].tolist() == [1, 1, 1, 1]
        assert found.per_record[4:].sum() == 1, "two of one interval with different secrets"

    @pytest.mark.parametrize("attack", ["model", "distance"])
    def test_without_pairs_labels_are_read(self, attack):
        original = self.people()
        masked = Hierarchy.intervals([10]).generalize(original, "age", 1)
        apart = Table(masked.frame, masked.roles)
        found, paired = (attribute_inference(original, m, attack=attack) for m in (apart, masked))
        assert "'age' was made coarser" in found.warnings[0]
        assert found.per_record.tolist() == paired.per_record.tolist()

    @pytest.mark.parametrize("attack", ["model", "distance"])
    def test_without_pairs_nothing_says_what_a_name_stands_for(self, attack):
        original = self.people()
        names = original.with_labels("age", ["young", "[20, 90)"], np.array([0, 0, 0, 1, 1, 1]))
        apart = Table(names.frame, names.roles)
        with pytest.raises(InputError, match="'age' was made coarser"):
            attribute_inference(original, apart, attack=attack)

    def test_others_and_members_are_mapped_alike(self):
        """Labels that depend on the secret reveal members, who alone have their own label."""
        original = table([30] * 6, list("aaaabb"))
        codes = np.array([0, 0, 0, 0, 1, 1])
        masked = original.with_labels("age", ["[30, 31)", "[30, 32)"], codes)
        others = table([30] * 4, list("abab"))
        assert attribute_inference(original, masked).value == 1
        found = attribute_inference(original, masked, control=others)
        assert found.value == pytest.approx(4 / 6)
        assert found.details["secrets"]["ill"]["control"]["accuracy"] == 0.5

    def test_a_secret_that_was_made_coarser(self):
        """The guess is the interval, and it is right if the person's value lies in it."""
        roles = Roles(quasi_identifiers=["age"], sensitive=["ill"])
        original = table([1, 2, 3, 4], [11, 12, 25, 38], roles=roles)
        masked = Hierarchy.intervals([10]).generalize(original, "ill", 1)
        found = attribute_inference(original, masked, attack="distance")
        assert (found.value, found.baseline) == (1, 0.5)

    def test_a_generalized_release_with_a_control_group(self):
        original, others = crowd(500), crowd(500, seed=2)
        masked = Generalize(k=5, hierarchies={"age": Hierarchy.intervals([5, 10])}).fit_transform(
            original
        )
        facts = attribute_inference(original, masked, control=others).details["secrets"]["ill"]
        assert facts["control"]["accuracy"] == pytest.approx(facts["accuracy"], abs=0.06)


class TestRankMatching:
    def test_it_is_that_of_the_groups(self):
        from shoal.risk import rank_matching

        random = np.random.default_rng(2)
        age = random.permutation(400)
        original = table(age, 900 + 20 * age + random.normal(0, 15, 400), roles=ROLES)
        masked = Swap(k=4).fit_transform(original)
        found = attribute_inference(original, masked, attack="rank-matching")
        direct = rank_matching(original, masked, "ill", known=["age", "sex"])
        assert (found.value, found.baseline) == (direct.value, direct.baseline)
        assert found.per_record.tolist() == direct.per_record.tolist()
        assert 0.5 < found.value < 1
        turned = masked.reorder(random.permutation(400))
        again = attribute_inference(original, turned, attack="rank-matching")
        assert again.per_record.tolist() == found.per_record.tolist()

    def test_it_needs_a_swap_and_pairs(self):
        original = crowd(50)
        with pytest.raises(InputError, match="No swap hides column 'ill'"):
            attribute_inference(original, original, attack="rank-matching")
        with pytest.raises(InputError, match="rank-matching"):
            attribute_inference(original, crowd(50), attack="rank-matching")
