"""Homogeneity, similarity and skewness: the published attacks, compared with slow references."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Hierarchy, LDiversity, Roles, Table, TCloseness
from shoal.errors import InputError
from shoal.risk import homogeneity, similarity, skewness

ROLES = Roles(quasi_identifiers=["x"], sensitive=["s"])


def table(x, s, roles=ROLES, **more):
    return Table(pl.DataFrame({"x": list(x), "s": list(s), **more}), roles)


#: Li, Li and Venkatasubramanian 2007, table 4: a 3-diverse version of nine records.
SALARIES = table("aaabbbccc", [3, 4, 5, 6, 11, 8, 7, 9, 10])
DISEASES = table(
    "aaabbbccc",
    [
        "gastric ulcer",
        "gastritis",
        "stomach cancer",
        "gastritis",
        "flu",
        "bronchitis",
        "bronchitis",
        "pneumonia",
        "stomach cancer",
    ],
)
ORGANS = Hierarchy.from_rows(
    [
        ("gastric ulcer", "stomach", "digestive", "*"),
        ("gastritis", "stomach", "digestive", "*"),
        ("stomach cancer", "stomach", "digestive", "*"),
        ("flu", "infection", "respiratory", "*"),
        ("bronchitis", "lung", "respiratory", "*"),
        ("pneumonia", "lung", "respiratory", "*"),
    ]
)


def test_homogeneity_attack():
    """Machanavajjhala et al. 2006, figure 2: all four of the third class have cancer."""
    diseases = ["heart", "heart", "viral", "viral", "cancer", "heart", "viral", "viral"]
    found = homogeneity(table("aaaabbbbcccc", [*diseases, *["cancer"] * 4]))
    assert found.value == 4 / 12
    assert found.per_record.tolist() == [0] * 8 + [1] * 4
    assert found.details == {"records": 4, "columns": {"s": 4 / 12}}


def test_similarity_attack():
    """Li et al. 2007, section 3.2: the first class has low salaries and stomach diseases only."""
    assert homogeneity(SALARIES).value == homogeneity(DISEASES).value == 0.0
    # spans of 2, 5 and 3 of 8
    for closeness, classes in ((0.1, 0), (0.24, 0), (0.25, 1), (0.375, 2), (0.6, 2), (0.625, 3)):
        assert similarity(SALARIES, closeness=closeness).value == pytest.approx(classes / 3)
    found = similarity(DISEASES, hierarchy=ORGANS)
    assert found.per_record.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert similarity(DISEASES).value == 0.0
    assert similarity(DISEASES, hierarchy=ORGANS, level=2).value == pytest.approx(1 / 3)


def test_skewness_attack():
    """Li et al. 2007, section 3.1: 1 % positive, and a class in which it is half of the people."""
    people = table("a" * 20 + "b" * 1980, ["+"] * 10 + ["-"] * 10 + ["+"] * 10 + ["-"] * 1970)
    found = skewness(people)
    assert found.value == 20 / 2000
    assert found.details["highest"] == pytest.approx(0.49)
    assert found.details["threshold"] == 0.2
    assert skewness(people, threshold=0.49).value == 0.0, "at the threshold is not above it"
    assert skewness(people, threshold=0.489).value == 0.01
    assert LDiversity(2).holds(people)


@pytest.mark.parametrize("seed", range(6))
def test_brute_force(seed):
    rng = np.random.default_rng(seed)
    x, s = rng.integers(0, 60, 120), rng.integers(0, 4, 120) ** 2
    people = table(x, s)
    groups = {value: s[x == value] for value in set(x.tolist())}
    one = [len(set(groups[value].tolist())) == 1 for value in x]
    near = [np.ptp(groups[value]) <= 0.12 * np.ptp(s) for value in x]
    far = [
        sum(abs((groups[value] == v).mean() - (s == v).mean()) for v in set(s.tolist())) / 2 > 0.501
        for value in x
    ]
    assert homogeneity(people).per_record.tolist() == one
    assert similarity(people, closeness=0.12).per_record.tolist() == near
    assert skewness(people, threshold=0.501).per_record.tolist() == far
    assert 0 < sum(one) < sum(near) < 120
    assert 0 < sum(far) < 120


def test_they_agree_with_the_models():
    """Records that fail 2-diversity are certain; records that fail t-closeness are skewed."""
    rng = np.random.default_rng(9)
    people = table(rng.integers(0, 30, 100), rng.choice(list("abc"), 100))
    certain = homogeneity(people).per_record.astype(bool)
    assert (certain == LDiversity(2).violations(people)).all()
    skewed = skewness(people, threshold=0.3).per_record.astype(bool)
    assert (skewed == TCloseness(0.3).violations(people)).all()
    assert skewness(people).details["highest"] == pytest.approx(TCloseness(0.3).level(people))


def test_several_sensitive_columns():
    """One certain column is enough; each column is also reported separately."""
    roles = Roles(quasi_identifiers=["x"], sensitive=["s", "t"])
    people = table("aabbcc", [1, 1, 1, 2, 1, 2], roles=roles, t=[1, 2, 3, 3, 4, 5])
    found = homogeneity(people)
    assert found.per_record.tolist() == [1, 1, 1, 1, 0, 0]
    assert found.details["columns"] == {"s": pytest.approx(1 / 3), "t": pytest.approx(1 / 3)}
    assert homogeneity(people, column="t").per_record.tolist() == [0, 0, 1, 1, 0, 0]


def test_a_missing_sensitive_value_is_a_value():
    """Flu and missing are two values, two missing ones are one; missing is close to nothing."""
    people = table("aabbcc", ["flu", None, None, None, "flu", "flu"])
    assert homogeneity(people).per_record.tolist() == [0, 0, 1, 1, 1, 1]
    numbers = table("aabbcc", [1, None, None, None, 1, 9])
    assert similarity(numbers, closeness=0.99).per_record.tolist() == [0, 0, 1, 1, 0, 0]
    assert skewness(people, threshold=0).details["highest"] == pytest.approx(0.5)


def test_wildcards():
    """x = 1 1 * 2: the gap joins both crowds and brings its own disease."""
    people = table([1, 1, None, 2], ["flu", "flu", "flu", "gout"])
    assert homogeneity(people).per_record.tolist() == [1, 1, 1, 1]
    wildcard = homogeneity(people, missing="wildcard")
    assert wildcard.per_record.tolist() == [1, 1, 0, 0]
    # a missing sensitive value stays a value of its own
    people = table([1, 1], ["flu", None])
    assert homogeneity(people, missing="wildcard").value == 0.0


def agree(one, other):
    """Equal in every column in which neither is missing."""
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gaps", [0.0, 0.1, 0.4])
def test_wildcards_by_their_definition(seed, gaps):
    """The records that match a record, one by one, then the definition of each measure."""
    rng = np.random.default_rng(seed)
    records, columns = int(rng.integers(1, 90)), int(rng.integers(1, 4))
    keys = rng.integers(0, 4, (records, columns)).astype(object)
    keys[rng.random(keys.shape) < gaps] = None
    secrets = rng.integers(0, 6, records).astype(object)
    secrets[rng.random(records) < 0.05] = None
    names = [f"q{i}" for i in range(columns)]
    frame = {name: keys[:, i].tolist() for i, name in enumerate(names)}
    roles = Roles(quasi_identifiers=names, sensitive=["s"])
    people = Table(pl.DataFrame(frame | {"s": secrets.tolist()}, strict=False), roles)
    crowds = [[other for other in range(records) if agree(keys[row], keys[other])] for row in
              range(records)]  # fmt: skip
    told = [value for value in secrets if value is not None]
    span = (max(told) - min(told)) or 1 if told else 1
    certain, alike, distances = [], [], []
    for crowd in crowds:
        values = [secrets[other] for other in crowd]
        certain.append(len(set(values)) == 1)
        numbers = [value for value in values if value is not None]
        near = None not in values and (max(numbers) - min(numbers)) / span <= 0.4
        alike.append(near or len(set(values)) == 1)
        shares = [values.count(v) / len(values) - list(secrets).count(v) / records
                  for v in set(secrets)]  # fmt: skip
        distances.append(sum(map(abs, shares)) / 2)
    wildcard = {"missing": "wildcard"}
    assert homogeneity(people, **wildcard).per_record.tolist() == certain
    assert similarity(people, closeness=0.4, **wildcard).per_record.tolist() == alike
    found = skewness(people, threshold=0.25, **wildcard)
    assert found.per_record.tolist() == [distance > 0.25 + 1e-9 for distance in distances]
    assert found.details["highest"] == pytest.approx(max(distances), abs=1e-12)


def test_a_larger_crowd_can_be_more_skewed():
    """x = 1 1 * 2 2 2 with a b a b b a: alone the first class is as the table, half and half.

    With the gap it has two a of three; so the wildcard reading is no bound of the other.
    """
    people = table([1, 1, None, 2, 2, 2], list("ababba"))
    own, wildcard = (skewness(people, threshold=0, missing=m) for m in ("own", "wildcard"))
    assert own.per_record.tolist() == [0, 0, 1, 1, 1, 1]
    assert wildcard.per_record.tolist() == [1, 1, 0, 0, 0, 0]
    assert wildcard.details["highest"] == pytest.approx(1 / 6)


def test_a_column_of_too_many_values_for_wildcards(monkeypatch):
    monkeypatch.setattr("shoal.risk._sensitive_classes._MOST_WORK", 5)
    people = table([1, None, 2], [1, 2, 3])
    assert skewness(people).value == 1.0
    with pytest.raises(InputError, match="3 values of column 's'"):
        skewness(people, missing="wildcard")


def test_dates_and_text_and_constants():
    days = pl.Series([0, 10, 50, 100, 100, 100]).cast(pl.Date)
    assert similarity(table("aabbcc", days)).per_record.tolist() == [1, 1, 0, 0, 1, 1]
    text = table("aabbcc", ["a", "b", "a", "z", "z", "z"])
    assert similarity(text, closeness=0.9).per_record.tolist() == [0, 0, 0, 0, 1, 1]
    constant = table("aab", [7, 7, 7])
    assert similarity(constant, closeness=0).value == homogeneity(constant).value == 1.0
    assert skewness(constant, threshold=0).value == 0.0


def test_a_hierarchy_by_path(tmp_path):
    path = tmp_path / "organs.csv"
    ORGANS.to_csv(path)
    assert similarity(DISEASES, hierarchy=str(path)).value == pytest.approx(1 / 3)


@pytest.mark.parametrize("risk", [homogeneity, similarity, skewness])
def test_what_is_refused(risk):
    with pytest.raises(InputError, match="sensitive"):
        risk(table("ab", "cd", roles=Roles(quasi_identifiers=["x"])))
    with pytest.raises(InputError, match="'x'"):
        risk(table("ab", "cd"), column="x")
    with pytest.raises(InputError, match="has no column 'y'"):
        risk(table("ab", "cd"), column="y")
    with pytest.raises(InputError, match="no records"):
        risk(table("", ""))


def test_what_similarity_refuses():
    with pytest.raises(InputError, match=r"'closeness' .* must be a number ≥ 0 and < 1"):
        similarity(SALARIES, closeness=1)
    with pytest.raises(InputError, match=r"'threshold' .* must be a number ≥ 0 and < 1"):
        skewness(SALARIES, threshold=-0.1)
    with pytest.raises(InputError, match="Level 3"):
        similarity(DISEASES, hierarchy=ORGANS, level=3)
    with pytest.raises(InputError, match="integer ≥ 1"):
        similarity(DISEASES, hierarchy=ORGANS, level=0)
    with pytest.raises(InputError, match=r"a hierarchy or the path of its file. Got dict"):
        similarity(DISEASES, hierarchy={})
    roles = Roles(quasi_identifiers=["x"], sensitive=["s", "t"])
    with pytest.raises(InputError, match="'column'"):
        similarity(table("ab", "cd", roles=roles, t=[1, 2]), hierarchy=ORGANS)
