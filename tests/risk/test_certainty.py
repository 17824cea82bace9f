"""Certainty of membership: counted by hand, compared with expectation, and its refusals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Microaggregate, Roles, Round, Sample, Swap, Table, assess
from shoal.errors import InputError
from shoal.risk import _certainty, certainty

ROLES = Roles(quasi_identifiers=["x"])


def table(*values, roles=ROLES, **more):
    return Table(pl.DataFrame({"x": list(values), **more}), roles)


def keep(whole, *rows):
    kept = np.zeros(len(whole), bool)
    kept[list(rows)] = True
    return whole.keep(kept)


def test_by_hand():
    """f / F: 2 of 4, 1 of 3, 1 of 1; nobody of the fourth class was released."""
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
    """3 of 4 in one class and 1 of 6 in another: 3 of 4 records, but 4 of 10 people."""
    whole = table(*"aaaabbbbbb")
    found = certainty(whole, keep(whole, 0, 1, 2, 4))
    assert found.details["records_above"] == {"0.5": 0.75, "0.8": 0.0}
    assert found.details["people_above"] == {"0.5": pytest.approx(0.4), "0.8": 0.0}


def test_it_says_when_a_sample_is_no_longer_k_anonymous():
    whole = table(*"aaaabbbb")
    (said,) = certainty(whole, keep(whole, 0, 1, 2, 4, 5, 6, 7)).warnings
    assert "is 4-anonymous; the release is not: 3 of 7 records" in said
    assert "smallest class has 3" in said
    assert "1/3" in said
    assert certainty(whole, keep(whole, 0, 1, 2, 3)).warnings == ()


def test_tables_read_apart_are_compared_by_value():
    whole = table(*"aaaabbbc")
    apart = table(*"aab")
    assert certainty(whole, apart).per_record.tolist() == [0.5, 0.5, 1 / 3]
    with pytest.raises(InputError, match="population"):
        certainty(whole, table("z"))
    with pytest.raises(InputError, match="smaller"):
        certainty(whole, table(*"cc"))


def test_what_became_of_a_value_is_learned_from_who_is_in_both():
    """Ages in tens: 31 and 39 are released, 35 lies between; 52 is alone and not released."""
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


def mixed(rows=120, seed=1, **more):
    """Numbers, names and gaps, with many ties."""
    rng = np.random.default_rng(seed)
    ages = [None if gap else int(age) for age, gap in zip(
        rng.integers(0, 30, rows), rng.random(rows) < 0.1, strict=True
    )]  # fmt: skip
    frame = {"age": ages, "town": rng.choice(list("abcdef"), rows).tolist(), **more}
    roles = Roles(quasi_identifiers=["age", "town"], target="y" if "y" in more else None)
    return Table(pl.DataFrame(frame), roles)


TOWNS = {"town": Hierarchy.suppression()}
TREES = {"town": Hierarchy.suppression(), "age": Hierarchy.intervals([5, 10, 20])}
MASKED = {
    "mondrian": Generalize(algorithm="mondrian", k=5, hierarchies=TOWNS),
    "relaxed": Generalize(algorithm="mondrian", k=5, hierarchies=TOWNS, relaxed=True),
    "local": Generalize(algorithm="local", k=5, hierarchies=TREES),
    "full-domain": Generalize(algorithm="full-domain", k=5, suppression_limit=0.2),
    "microaggregate": Microaggregate(k=3, dissimilarity="gower"),
    "swap": Swap(k=3, dissimilarity="gower"),
}


@pytest.mark.parametrize("missing", ["own", "wildcard"])
@pytest.mark.parametrize("method", MASKED)
def test_sampled_last_it_is_counted_in_the_classes_that_were_sampled(method, missing):
    """The certainty against the original equals that against the table just before sampling."""
    labels = np.random.default_rng(3).integers(0, 2, 120).tolist()
    whole = mixed(y=labels)
    before = MASKED[method].fit_transform(whole)
    sample = Sample(fraction=0.4).fit_transform(before)
    found, expected = (certainty(one, sample, missing=missing) for one in (whole, before))
    assert found.to_dict() == expected.to_dict()
    assert found.per_record.tolist() == expected.per_record.tolist()
    if missing == "own":
        people = Counter(before.frame.select("age", "town").iter_rows())
        rows = sample.frame.select("age", "town").iter_rows()
        assert (1 / journalist(whole, sample)).tolist() == [people[row] for row in rows]


def journalist(whole, sample):
    found = assess(sample, original=whole, measures=["journalist_risk"])["journalist_risk"]
    assert found.details["population"] == "the table before sampling"
    return found.per_record


def test_later_rows_may_go_and_columns_may_not_change():
    whole = mixed()
    coarse = MASKED["mondrian"].fit_transform(whole)
    sample = Sample(fraction=0.6).fit_transform(coarse)
    fewer = sample.keep(np.arange(len(sample)) % 2 == 0).reorder(np.arange(len(sample) // 2)[::-1])
    assert certainty(whole, fewer).value == certainty(coarse, fewer).value
    again = Sample(fraction=0.5).fit_transform(sample)
    assert certainty(whole, again).value == certainty(coarse, again).value
    assert certainty(sample, again).value == certainty(sample.scrubbed(), again).value
    alone = sample.drop(["age"])
    assert certainty(whole, alone).value == certainty(coarse, alone).value
    starred = np.zeros(len(sample), np.int64)
    assert sample.with_labels("town", ["*"], starred).sampling is None
    assert sample.blank({"town": starred == 0}).sampling is None
    assert sample.blank({"town": starred == 1}).sampling is not None, "nothing was made missing"
    assert sample.paired(Table(whole.frame), sample.row_key).sampling is None


def lies_in(value, text):
    if text.startswith("<"):
        return value < float(text[1:])
    if text.startswith(">="):
        return value >= float(text[2:])
    low, _, high = text.strip("[)").partition(", ")
    return float(low) <= value < float(high) if high else value == float(low)


def covers(cell, value, *, wildcard):
    """Whether a released cell may describe a value, read from its text alone."""
    if cell == "*" or (wildcard and None in (cell, value)):
        return True
    if cell is None or value is None:
        return cell == value
    if isinstance(value, str):
        return cell == value
    return lies_in(value, cell)


@pytest.mark.parametrize("missing", ["own", "wildcard"])
@pytest.mark.parametrize("method", ["mondrian", "relaxed", "local"])
@pytest.mark.parametrize("seed", range(3))
def test_sampled_first_people_are_counted_who_lie_in_the_box(method, seed, missing):
    """Brute force over all people and all released records."""
    whole = mixed(seed=seed)
    sample = Sample(fraction=0.5).fit_transform(whole)
    masked = MASKED[method].fit_transform(sample)
    assert masked.sampling is None
    people, records = list(whole.frame.iter_rows()), list(masked.frame.iter_rows())
    wildcard = missing == "wildcard"
    inside = np.array([
        [all(covers(c, v, wildcard=wildcard) for c, v in zip(r, p, strict=True)) for p in people]
        for r in records
    ])  # fmt: skip
    sizes = masked.class_sizes(missing)
    count = np.maximum(inside.sum(1), sizes)
    found = certainty(whole, masked, missing=missing)
    assert found.per_record.tolist() == (sizes / count).tolist()
    assert found.details["journalist_risk"]["highest"] == 1 / count.min()
    assert found.details["unplaced"] == 0
    if not wildcard:
        assert count.min() > sizes.min(), "the class stands for more people than it shows"
        each = np.zeros(len(people))
        for row in np.unique(masked.classes.labels, return_index=True)[1]:
            each += inside[row] * (sizes[row] / count[row])
        assert found.details["people_above"]["0.5"] == (np.minimum(each, 1) > 0.5).mean()
        assert (1 / journalist(whole, masked)).tolist() == count.tolist()


def test_a_wildcard_agrees_with_more_than_it_covers():
    """5 and a blank match, so both may be the only person of 5: 2 of 2, not 2 of 1."""
    whole = table(1, 1, 5, 7)
    masked = keep(whole, 0, 1, 2).with_labels("x", ["[1, 2]", None, "5"], np.arange(3))
    found = certainty(whole, masked, missing="wildcard")
    assert found.per_record.tolist() == [2 / 2, 3 / 4, 2 / 2]
    assert certainty(whole, masked.keep(np.array([True, False, True]))).value == 1.0


def test_sampled_first_with_the_target():
    """The people in a box who also have the target value."""
    labels = np.random.default_rng(3).integers(0, 2, 120).tolist()
    whole = mixed(y=labels)
    masked = MASKED["mondrian"].fit_transform(Sample(fraction=0.5).fit_transform(whole))
    found = certainty(whole, masked).details["with_target"]
    shares, records = [], Counter(masked.frame.iter_rows())
    for cells, f in records.items():
        hits = [
            person
            for person in whole.frame.iter_rows()
            if person[2] == cells[2]
            and all(covers(c, v, wildcard=False) for c, v in zip(cells[:2], person, strict=False))
        ]
        shares.append(f / len(hits))
    assert found["highest"] == max(shares)
    assert {one["people"] for one in found["values"]} == set(Counter(labels).values())


def test_names_of_groups_stand_for_whose_records_have_them():
    """Local recoding by a tree: a value that nobody in the sample had may not belong to a name."""
    tree = Hierarchy.tree({"North": ["a", "b"], "South": ["c", "d"]})
    whole = table(*"aaabbcccdd")
    sample = keep(whole, 0, 1, 5, 6, 8)  # a a c c d
    masked = sample.with_labels("x", ["a", "North", "South"], np.array([0, 1, 2, 2, 2]))
    found = certainty(whole, masked)
    assert found.per_record.tolist() == [1 / 3, 1 / 3, 3 / 5, 3 / 5, 3 / 5]
    assert found.details["unplaced"] == 2
    assert any("2 of 10 people" in said for said in found.warnings)
    assert tree.generalize(whole, "x", 1).frame["x"].to_list()[5] == "South"


def test_rounded_numbers_in_text():
    """20 for 18 and 22, next to an unchanged 22: the text covers the span of its records."""
    whole = table(18, 19, 22, 22, 30)
    masked = keep(whole, 0, 2, 3).with_labels("x", ["20", "22"], np.array([0, 0, 1]))
    assert certainty(whole, masked).per_record.tolist() == [2 / 4, 2 / 4, 1 / 2]


@pytest.mark.parametrize("method", ["microaggregate", "swap"])
def test_sampled_first_and_masked_by_neighbours_needs_the_table_before_sampling(method):
    whole = mixed()
    masked = MASKED[method].fit_transform(Sample(fraction=0.5).fit_transform(whole))
    with pytest.raises(InputError, match="before sampling"):
        certainty(whole, masked)


def test_nobody_was_left_out():
    whole = mixed()
    assert certainty(whole, MASKED["microaggregate"].fit_transform(whole)).value == 1.0


def test_rows_that_the_original_has_not():
    whole = table(*"aabb")
    with pytest.raises(InputError, match="2 of 3"):
        certainty(keep(whole, 0, 3), keep(whole, 0, 1, 2))


def test_missing_values_in_both_readings():
    """x = 1 1 1 * *; the sample has one 1 and one *. Wildcard: 2 of 5 for both."""
    whole = table(1, 1, 1, None, None)
    sample = keep(whole, 0, 3)
    assert certainty(whole, sample).per_record.tolist() == [1 / 3, 1 / 2]
    wildcard = certainty(whole, sample, missing="wildcard")
    assert wildcard.per_record.tolist() == [0.4, 0.4]
    assert wildcard.details["people_above"] == {"0.5": 0.0, "0.8": 0.0}
    # 2 2 * with one 2 released: of three who may be the person, one is released, for each of them
    found = certainty(table(2, 2, None), keep(table(2, 2, None), 0), missing="wildcard")
    assert found.value == 1 / 3


@pytest.mark.parametrize("seed", range(6))
def test_wildcards_never_raise_the_highest_certainty(seed):
    """A crowd consists of whole classes: its share lies between theirs; one record's can rise."""
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
    """One class of 6: 2 sick, both released; 4 well, one released. f/F 1/2; by label 1 and 1/4."""
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
    assert "at most 0.5" in said
    assert "between 0.25 and 1." in said
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


def test_people_are_counted_once_for_an_assessment(monkeypatch):
    """Certainty and journalist risk need the same classes; each alone counts them itself."""
    asked, count = [], _certainty._counted

    def counting(original, masked, columns, missing):
        asked.append(tuple(columns))
        return count(original, masked, columns, missing)

    monkeypatch.setattr(_certainty, "_counted", counting)
    table = Table(pl.DataFrame({"age": [30] * 5 + [41] * 8}), Roles(quasi_identifiers=["age"]))
    masked = table.keep(np.arange(13) % 2 == 0)
    found = assess(masked, original=table, measures=["certainty", "journalist_risk"])
    assert asked == [("age",)]
    assert found["journalist_risk"].value == 1 / 5
    certainty(table, masked), certainty(table, masked)
    assert len(asked) == 3
