"""Certainty of membership: counted by hand, against expectation, and what it refuses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Microaggregate, Roles, Round, Sample, Table
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
    assert wildcard.details["people_above"] == {"0.5": 0.0, "0.8": 0.0}
    # 2 2 * with one 2 in: of three who may be the person one is in, for whichever of them
    found = certainty(table(2, 2, None), keep(table(2, 2, None), 0), missing="wildcard")
    assert found.value == 1 / 3


@pytest.mark.parametrize("seed", range(6))
def test_wildcards_never_raise_the_highest_certainty(seed):
    """A crowd is made of whole classes, so its share is between theirs; one record's can rise."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (60, 2)).astype(object)
    values[rng.random(values.shape) < 0.2] = None
    frame = pl.DataFrame({"x": values[:, 0].tolist(), "y": values[:, 1].tolist()})
    whole = Table(frame, Roles(quasi_identifiers=["x", "y"]))
    sample = whole.keep(rng.random(60) < 0.4)
    own, wildcard = (certainty(whole, sample, missing=m) for m in ("own", "wildcard"))
    assert wildcard.value <= own.value
    assert (wildcard.per_record > own.per_record).any()


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
