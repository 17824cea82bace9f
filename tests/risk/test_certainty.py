"""Certainty of membership: counted by hand, against expectation, and what it refuses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from shoal import Generalize, Microaggregate, Roles, Round, Sample, Table
from shoal.errors import InputError
from shoal.risk import certainty

ROLES = Roles(quasi_identifiers=["x"])


def table(*values, roles=ROLES, **more):
    return Table(pl.DataFrame({"x": list(values), **more}), roles)


def keep(whole, *rows):
    kept = np.zeros(len(whole), bool)
    kept[list(rows)] = True
    return whole.keep(kept)


def test_by_hand():
    """f / F: 2 of 4, 1 of 3, 1 of 1; the fourth class left nobody in."""
    whole = table(*"aaaabbbcdd")
    sample = keep(whole, 0, 2, 5, 7)
    found = certainty(whole, sample)
    assert found.value == 1.0
    assert found.per_record.tolist() == [0.5, 0.5, 1 / 3, 1.0]
    assert found.details["mean"] == pytest.approx((1 + 1 / 3 + 1) / 4)
    assert found.details["records_above"] == {"0.5": 0.25, "0.8": 0.25}
    assert found.details["people_above"] == {"0.5": 0.1, "0.8": 0.1}
    assert found.details["quantiles"]["0.0"] == 1 / 3
    assert found.details["quantiles"]["0.5"] == 0.5
    assert found.details["journalist_risk"] == {
        "highest": 1.0,
        "mean": pytest.approx((1 / 4 + 1 / 4 + 1 / 3 + 1) / 4),
    }
    assert found.details["unplaced"] == 0
    assert "with_target" not in found.details
    assert found.warnings == ()  # the whole table was not 2-anonymous either


def test_people_above_counts_people_and_records_above_counts_records():
    """3 of 4 of one class and 1 of 6 of another: 3 of 4 records, but 4 of 10 people."""
    whole = table(*"aaaabbbbbb")
    found = certainty(whole, keep(whole, 0, 1, 2, 4))
    assert found.details["records_above"] == {"0.5": 0.75, "0.8": 0.0}
    assert found.details["people_above"] == {"0.5": pytest.approx(0.4), "0.8": 0.0}


def test_it_says_when_a_sample_is_no_longer_k_anonymous():
    whole = table(*"aaaabbbb")
    (said,) = certainty(whole, keep(whole, 0, 1, 2, 4, 5, 6, 7)).warnings
    assert "is 4-anonymous; the release is not: 3 of 7 records" in said
    assert "the smallest of 3" in said
    assert "1/3" in said
    assert certainty(whole, keep(whole, 0, 1, 2, 3)).warnings == ()


def test_tables_read_apart_are_compared_by_value():
    whole = table(*"aaaabbbc")
    apart = table(*"aab")
    assert certainty(whole, apart).per_record.tolist() == [0.5, 0.5, 1 / 3]
    with pytest.raises(InputError, match="1 of 1 records have quasi-identifiers that do not occur"):
        certainty(whole, table("z"))
    with pytest.raises(InputError, match="smaller in the population"):
        certainty(whole, table(*"cc"))


def test_what_became_of_a_value_is_learned_from_who_is_in_both():
    """Ages in tens: 31 and 39 are seen, 35 lies between; 52 is alone in its ten and not seen."""
    whole = table(31, 35, 39, 39, 44, 44, 52)
    coarse = Round(base=20).fit_transform(whole)  # 40 40 40 40 40 40 60
    assert certainty(coarse, keep(coarse, 0, 2, 4)).per_record.tolist() == [0.5] * 3
    found = certainty(whole, keep(coarse, 0, 2, 4))
    assert found.per_record.tolist() == [0.5] * 3
    assert any("smallest class has 6 people, in the release 3" in said for said in found.warnings)
    assert found.details["unplaced"] == 1
    (said,) = [warning for warning in found.warnings if "nobody in the release" in warning]
    assert "1 of 7 people" in said


def test_between_two_different_values_nothing_is_known():
    whole = table(10, 20, 30, 40)
    coarse = Round(base=20).fit_transform(whole)  # 20 20 40 40 (ties to the even multiple)
    found = certainty(whole, keep(coarse, 0, 3))
    assert found.details["unplaced"] == 2
    assert found.per_record.tolist() == [1.0, 1.0], "rather too high than too low"


def test_text_has_no_between():
    whole = table(*"abc")
    coarse = whole.with_labels("x", ["*"], np.zeros(3, np.int64))
    found = certainty(whole, keep(coarse, 0, 2))
    assert (found.details["unplaced"], found.value) == (1, 1.0)


def test_masking_by_neighbours_needs_the_table_before_sampling():
    rng = np.random.default_rng(1)
    roles = Roles(quasi_identifiers=["x", "y"])
    whole = Table(pl.DataFrame({"x": rng.integers(0, 9, 60), "y": rng.normal(0, 1, 60)}), roles)
    crowds = Microaggregate(k=3).fit_transform(whole)
    sample = Sample(fraction=0.5).fit_transform(crowds)
    with pytest.raises(InputError, match="just before sampling"):
        certainty(whole, sample)
    assert 0 < certainty(crowds, sample).value <= 1
    assert certainty(whole, crowds).value == 1.0, "nobody was left out"


def test_rows_that_the_original_has_not():
    whole = table(*"aabb")
    with pytest.raises(InputError, match="2 of 3 masked records are not in the original"):
        certainty(keep(whole, 0, 3), keep(whole, 0, 1, 2))


def test_missing_values_in_both_readings():
    """x = 1 1 1 * *; the sample has one 1 and one *. Wildcard: 2 of 5 for both."""
    whole = table(1, 1, 1, None, None)
    sample = keep(whole, 0, 3)
    assert certainty(whole, sample).per_record.tolist() == [1 / 3, 1 / 2]
    wildcard = certainty(whole, sample, missing="wildcard")
    assert wildcard.per_record.tolist() == [0.4, 0.4]
    assert "people_above" not in wildcard.details


def test_without_quasi_identifiers_everybody_is_one_class():
    whole = table(*"abcd", roles=Roles())
    assert certainty(whole, keep(whole, 0)).value == 0.25


# -- who knows the label


def test_who_knows_the_label():
    """One class of 6: 2 sick, both in; 4 well, one in. f/F is 1/2, with the label 1 and 1/4."""
    roles = Roles(quasi_identifiers=["x"], target="y")
    whole = table(*"aaaaaa", roles=roles, y=["sick", "sick", "well", "well", "well", "well"])
    found = certainty(whole, keep(whole, 0, 1, 3))
    assert found.value == 0.5
    assert found.details["with_target"] == {
        "highest": 1.0,
        "certain_records": pytest.approx(2 / 3),
        "values": [
            {"people": 2, "inclusion": 1.0, "highest": 1.0, "certain_people": 1.0},
            {"people": 4, "inclusion": 0.25, "highest": 0.25, "certain_people": 0.0},
        ],
    }
    (said,) = [warning for warning in found.warnings if "target" in warning]
    assert "at most 0.5 without the target" in said
    assert "between 0.25 and 1," in said
    assert "sick" not in str(found.to_dict())


def test_a_target_of_many_values_is_told_of_as_a_whole():
    roles = Roles(quasi_identifiers=["x"], target="y")
    whole = table(*"a" * 60, roles=roles, y=list(range(60)))
    known = certainty(whole, keep(whole, *range(30))).details["with_target"]
    assert known == {"highest": 1.0, "certain_records": 1.0}


def test_balanced_samples_by_brute_force():
    rng = np.random.default_rng(2)
    ages, labels = rng.integers(0, 90, 900), (rng.random(900) < 0.25).astype(int)
    roles = Roles(quasi_identifiers=["age"], target="label")
    whole = Table(pl.DataFrame({"age": ages, "label": labels}), roles)
    sample = Sample(fraction=0.5, strategy="balanced").fit_transform(whole)
    found = certainty(whole, sample)
    assert found.value <= 0.5
    everyone, kept = Counter(zip(ages, labels, strict=True)), Counter(sample.frame.iter_rows())
    assert found.details["with_target"]["highest"] == max(
        kept[cell] / everyone[cell] for cell in kept
    )
    by_label = {}
    for label in (0, 1):
        sure = sum(n for cell, n in kept.items() if cell[1] == label and everyone[cell] == n)
        by_label[int((labels == label).sum())] = sure / (labels == label).sum()
    said = {one["people"]: one["certain_people"] for one in found.details["with_target"]["values"]}
    assert said == pytest.approx(by_label)
    assert 0 < max(said.values()) < 1


# -- published numbers


@pytest.mark.parametrize(
    ("size", "above_half", "above_most"),
    [
        (5, 0.5, 0.031),
        (6, 0.344, 0.109),
        (7, 0.5, 0.0625),
        (10, 0.377, 0.0107),
        (20, 0.412, 0.0013),
    ],
)
def test_random_samples_of_equal_classes(size, above_half, above_most):
    """Half of the records, drawn one by one: f is binomial, which fixes how often f/F is high."""
    classes = 3_000
    assert binom.sf(size / 2, size, 0.5) == pytest.approx(above_half, abs=5e-4)
    whole = Table(pl.DataFrame({"x": np.repeat(np.arange(classes), size)}), ROLES)
    sample = Sample(fraction=0.5, strategy="bernoulli").fit_transform(whole)
    found = certainty(whole, sample).details["people_above"]
    for bound, expected in (("0.5", above_half), ("0.8", above_most)):
        spread = np.sqrt(expected * (1 - expected) / classes)
        assert found[bound] == pytest.approx(expected, abs=5 * spread)


def test_stratified_never_exceeds_the_fraction():
    """Verdonck et al.: floor(s F) of each class stay, so certainty is at most s, and reaches it."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(rng.lognormal(3, 1, 150).astype(int), 5)
    whole = Table(pl.DataFrame({"x": np.repeat(np.arange(150), sizes)}), ROLES)
    sample = Sample(fraction=0.5, strategy="stratified").fit_transform(whole)
    assert certainty(whole, sample).value == 0.5


def test_random_samples_of_lognormal_classes():
    """Lognormal (3.5, 1.2) from 5 on: 48.2 % of the people above 0.5 and 0.11 % above 0.8."""
    rng = np.random.default_rng(3)
    sizes = np.maximum(rng.lognormal(3.5, 1.2, 3_000).astype(int), 5)
    whole = Table(pl.DataFrame({"x": np.repeat(np.arange(3_000), sizes)}), ROLES)
    sample = Sample(fraction=0.5).fit_transform(whole)
    found = certainty(whole, sample).details["people_above"]
    assert found["0.5"] == pytest.approx(0.482, abs=0.04)
    assert found["0.8"] == pytest.approx(0.0011, abs=0.0008)


@pytest.fixture(scope="module")
def adult(shared_data):
    """Adult with seven quasi-identifiers, the salary class as target, and how it is masked."""
    frame = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    names = [name for name in frame.columns if name not in ("occupation", "salary-class")]
    folder = shared_data / "hierarchies" / "adult_arx"
    trees = {name: str(folder / f"{name}.csv") for name in names}
    table = Table(frame, Roles(quasi_identifiers=names, target="salary-class"))
    return table, lambda k: Generalize(k=k, hierarchies=trees, suppression_limit=0.05)


def test_before_and_after_generalization(adult):
    """Adult, k = 20, an eighth, measured with other levels: 1/F is .0036 (at most .05) on average
    where the sample is drawn last, a fraction of it where it is drawn first, and 13 to 15 % of
    the released records are then in classes below 20, the smallest of 1.
    """
    whole, masking = adult
    coarse = masking(20).fit_transform(whole)
    sample = Sample(fraction=0.125).fit_transform(coarse)
    post = certainty(coarse, sample)
    assert post.details["journalist_risk"]["mean"] == pytest.approx(0.0036, abs=0.001)
    assert post.details["journalist_risk"]["highest"] <= 0.05
    assert (sample.class_sizes() < 20).mean() == pytest.approx(0.14, abs=0.03)
    assert any("is 20-anonymous; the release is not" in said for said in post.warnings)
    pre = certainty(whole, masking(20).fit_transform(Sample(fraction=0.125).fit_transform(whole)))
    assert pre.details["journalist_risk"]["mean"] < 0.0018
    assert pre.details["journalist_risk"]["highest"] < 0.02


def test_a_balanced_sample_gives_the_rare_label_away(adult):
    """Adult, a half, measured with other levels: .85 of label 1 and .38 of label 0 stay, and 45 %
    of the people with label 1 are in the release with certainty 1, although f/F is at most .5.
    """
    whole, masking = adult
    coarse = masking(5).fit_transform(whole)
    found = certainty(coarse, Sample(fraction=0.5, strategy="balanced").fit_transform(coarse))
    assert found.value == 0.5
    rare, frequent = found.details["with_target"]["values"]
    assert rare["inclusion"] == pytest.approx(0.85, abs=0.05)
    assert frequent["inclusion"] == pytest.approx(0.38, abs=0.03)
    assert rare["certain_people"] == pytest.approx(0.45, abs=0.06)
