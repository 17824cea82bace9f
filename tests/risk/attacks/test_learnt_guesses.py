"""What a model learns from a release, and how people are coded for it."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, Roles, Table
from shoal.errors import InputError
from shoal.risk.attacks import _learnt_guesses
from shoal.risk.attacks._learnt_guesses import (
    CodedColumn,
    coded_column,
    features_of,
    learn,
    members_and_control,
    training_rows,
)


def table(**columns):
    return Table(pl.DataFrame(columns, strict=False), Roles(quasi_identifiers=list(columns)))


def terms_of(original, masked, name="x", control=None, **options):
    return coded_column(name, members_and_control(original, masked, control, [name]), **options)


class TestReleasedTerms:
    def test_equal_values_have_equal_codes_in_their_order(self):
        found = terms_of(table(x=[5, None, 7]), table(x=[6.0, 5.0, None]))
        assert found.people.tolist() == [0, -1, 2]
        assert found.records.tolist() == [1, 0, -1]
        assert (found.ordered, found.coarser) == (True, False)

    def test_dates_have_an_order_and_texts_have_not(self):
        days = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
        assert terms_of(table(x=days), table(x=days[::-1])).ordered
        assert not terms_of(table(x=["a", "b"]), table(x=["b"])).ordered
        assert not terms_of(table(x=[True, False]), table(x=[True])).ordered

    def coarse(self):
        original = table(x=[11, 12, 12, 12, 25, None])
        labels = ["[10, 20)", "[20, 30)", "elsewhere", None]
        return original, original.with_labels("x", labels, np.array([0, 0, 2, 2, 1, 3]))

    def test_people_are_mapped_to_the_label_that_most_of_their_value_got(self):
        original, masked = self.coarse()
        usual = terms_of(original, masked, exactly=False)
        own = terms_of(original, masked)
        assert usual.coarser and not usual.ordered  # noqa: PT018
        assert own.people.tolist() == own.records.tolist()
        first, second, other = (usual.records[i] for i in (0, 4, 2))
        assert usual.people.tolist() == [first, other, other, other, second, -1]

    def test_the_lowest_of_labels_that_are_equally_frequent(self):
        original = table(x=[3, 3])
        masked = original.with_labels("x", ["b", "a"], np.array([0, 1]))
        assert len(set(terms_of(original, masked, exactly=False).people.tolist())) == 1
        turned = original.with_labels("x", ["a", "b"], np.array([0, 1]))
        first, second = (terms_of(original, m, exactly=False) for m in (masked, turned))
        assert first.people.tolist() == second.people.tolist()

    def test_others_are_mapped_by_what_was_released_of_members(self):
        """A value between two counts as the lower one, and one below all as the lowest."""
        original, masked = self.coarse()
        control = table(x=[1, 11, 18, 99, None])
        found = terms_of(original, masked, control=control)
        first, second, other = (found.records[i] for i in (0, 4, 2))
        assert found.people[6:].tolist() == [first, first, other, second, -1]

    def test_a_missing_value_is_no_lower_one(self):
        original = table(x=[11, 25])
        masked = Hierarchy.intervals([10]).generalize(original, "x", 1)
        found = terms_of(original, masked, control=table(x=[99, None]))
        assert found.people[2:].tolist() == [found.records[1], -1]

    def test_a_label_that_only_others_have_is_coarser(self):
        original = table(x=["a", "b"])
        masked = original.with_labels("x", ["any"], np.array([0, 0]))
        found = terms_of(original, masked, control=table(x=["any", "b"]))
        assert found.coarser
        assert found.people.tolist() == [found.records[0]] * 2 + [-1, found.records[0]]

    def test_a_text_that_nobody_had_is_missing(self):
        original = table(x=["a", "b"])
        masked = original.with_labels("x", ["vowel", "consonant"], np.array([0, 1]))
        found = terms_of(original, masked, control=table(x=["b", "c"]))
        assert found.people[2:].tolist() == [found.records[1], -1]

    def test_who_was_taken_out_is_mapped_as_others_were(self):
        original = table(x=[11, 12, 25])
        masked = Hierarchy.intervals([10]).generalize(original, "x", 1)
        found = terms_of(original, masked.keep(np.array([True, False, True])))
        assert found.people[1] == found.records[0]

    def test_without_pairs_it_is_refused(self):
        original, masked = self.coarse()
        with pytest.raises(InputError, match="cannot be paired"):
            terms_of(original, Table(masked.frame))


def terms(people, records, *, ordered):
    return CodedColumn(np.array(people), np.array(records), ordered, coarser=False)


class TestFeatures:
    def test_trees_get_ranks_among_what_was_released(self):
        """A value between two released ones lies between their ranks; others count as missing."""
        columns = [
            terms([3, 5, 9, -1, 0], [3, 9, 3], ordered=True),
            terms([3, 5, 9, -1, 0], [3, 9, 3], ordered=False),
        ]
        records, people = features_of(columns, "random-forest")
        assert records.T.tolist() == [[0, 1, 0], [0, 1, 0]]
        assert people.T.tolist() == [[0, 0.5, 1, -1, -0.5], [0, -1, 1, -1, -1]]

    def test_other_learners_get_a_scale_and_marks(self):
        columns = [
            terms([3, 5, -1], [3, 9, -1], ordered=True),
            terms([3, 5, -1], [3, 9, -1], ordered=False),
        ]
        records, people = features_of(columns, object())
        assert records.tolist() == [[0, 0, 0, 1, 0], [1, 0, 0, 0, 1], [0.5, 1, 1, 0, 0]]
        assert people.tolist() == [[0, 0, 0, 1, 0], [0.5, 0, 1, 0, 0], [0.5, 1, 1, 0, 0]]

    def test_only_frequent_values_have_a_column(self):
        codes = [0] * 3 + list(range(1, 200))
        wide = [terms([0, 1, 199], codes, ordered=False)] * 30
        records, people = features_of(wide, object())
        assert records.shape == (202, 30 * 33)
        assert people[0].sum() == 30
        assert people[2].sum() == 0

    def test_a_column_without_any_value(self):
        for learner in ("random-forest", object()):
            for ordered in (True, False):
                records, people = features_of([terms([-1, 4], [-1], ordered=ordered)], learner)
                assert np.isfinite(records).all()
                assert np.isfinite(people).all()


class TestLearned:
    def test_the_order_of_records_does_not_matter(self):
        random = np.random.default_rng(1)
        features = random.integers(0, 9, (300, 3)).astype(float)
        labels = (features[:, 0] + random.integers(0, 4, 300) > 6).astype(np.int64)
        turned = random.permutation(300)
        first = learn("random-forest", features, labels)
        second = learn("random-forest", features[turned], labels[turned])
        assert (first.guesses(features) == second.guesses(features)).all()
        assert first.own_accuracy == second.own_accuracy

    def test_a_certain_model_is_confident(self):
        features = np.repeat([[0.0], [1.0]], 50, axis=0)
        model = learn("random-forest", features, np.repeat([3, 7], 50))
        believed = model.confidence(np.array([[0.0], [0.0], [1.0]]), np.array([3, 7, 99]))
        assert believed.tolist() == [1, 0, 0]
        assert model.own_accuracy == 1

    def test_what_it_learns_from_holds_the_records_of_those_attacked(self, monkeypatch):
        monkeypatch.setattr(_learnt_guesses, "LEARNT_FROM", 40)
        monkeypatch.setattr(_learnt_guesses, "_LEAST_LEARNT_FROM", 20)
        masked = table(x=range(100))
        own = np.array([97, -1, 3])
        rows = training_rows(masked, own)
        assert len(rows) == len(set(rows.tolist())) == 40
        assert {97, 3} <= set(rows.tolist())
        assert training_rows(masked, own).tolist() == rows.tolist()
        assert len(training_rows(masked, own, models=3)) == 20
        assert len(training_rows(masked.keep(np.arange(100) < 15), own[:0])) == 15

    def test_a_learner_that_stops_early_is_told(self):
        linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is missing")
        random = np.random.default_rng(1)
        features, labels = random.normal(size=(200, 5)), random.integers(0, 2, 200)
        model = learn(linear.LogisticRegression(max_iter=1), features, labels)
        assert "stopped before it converged" in model.warnings[0]
