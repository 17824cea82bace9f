"""Privacy models against the values of pyCANON 1.3.6 (Sáinz-Pardo Díaz, López García 2022).

Each expected number was computed with that version, on the tables here and on Adult. Where its
definition is the literature's, the levels are equal. Where it is not, the test says what differs:

- entropy l is cut down to a whole number after a rounding error: three even values give 2;
- the counts for recursive (c, l) are sorted in ascending order, the definition wants descending;
- δ-disclosure leaves out values that a class lacks, where the definition allows no δ at all;
- enhanced β is min(β, the largest -ln q) and not a bound that every value satisfies;
- records with a missing quasi-identifier are dropped.
"""

from __future__ import annotations

import math

import polars as pl
import pytest

from shoal import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    Roles,
    Table,
    TCloseness,
)


def table(x, s):
    frame = pl.DataFrame({"x": list(x), "s": s})
    return Table(frame, Roles(quasi_identifiers=["x"], sensitive=["s"]))


ILLNESSES = "flu flu gout hiv flu gout gout hiv hiv flu".split()
INPATIENTS = "heart heart viral viral cancer heart viral viral cancer cancer cancer cancer".split()

#: The table, then pyCANON's k, distinct l, t, α, β and δ, and the distance of t that it takes.
TABLES = {
    "ten": (
        table("aaaabbbccc", ILLNESSES),
        (3, 2, 0.3666666666666667, 0.6666666666666666, 1.222222222222222, 0.7985076962177716),
        "equal",
    ),
    "ten numbers": (
        table("aaaabbbccc", [3.0, 4.0, 5.0, 9.0, 6.0, 11.0, 8.0, 7.0, 9.0, 10.0]),
        (3, 3, 0.24374999999999997, 0.3333333333333333, 2.333333333333333, 1.203972804325936),
        "ordered",
    ),
    # Li, Li, Venkatasubramanian (2007), table 4
    "salaries": (
        table("aaabbbccc", [3, 4, 5, 6, 11, 8, 7, 9, 10]),
        (3, 3, 0.375, 0.3333333333333333, 2.0, 1.0986122886681098),
        "ordered",
    ),
    # Machanavajjhala et al. (2007), figure 3
    "inpatients": (
        table("abbaccccaabb", INPATIENTS),
        (4, 3, 0.16666666666666669, 0.5, 0.5, 0.5108256237659907),
        "equal",
    ),
}
#: Of Adult by quasi-identifiers: the same, with the sensitive column.
ADULT = {
    ("sex", "race", "marital-status"): (
        "occupation",
        (1, 1, 0.8766328492805519, 1.0, 36.23703703703704, 3.9912776564959493),
    ),
    ("sex", "race"): (
        "salary-class",
        (87, 2, 0.20294547375208355, 0.9540229885057471, 0.38366751560398815, 1.6890000223204622),
    ),
    (
        "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
    ): ("occupation", (1, 1, 0.9997016112989857, 1.0, 3350.3333333333335, 8.11711355558441)),
}  # fmt: skip


def same_levels(people, numbers, distance):
    k, distinct, t, alpha, beta, delta = numbers
    assert KAnonymity(2).level(people) == k
    assert LDiversity(2).level(people) == distinct
    assert TCloseness(0.5, distance=distance).level(people) == pytest.approx(t, rel=1e-12)
    if k > 1:  # of a class below k the model has no share
        assert AlphaKAnonymity(alpha=0.5, k=k).level(people) == pytest.approx(alpha, rel=1e-12)
    assert BetaLikeness(1).level(people) == pytest.approx(beta, rel=1e-12)
    lacking = math.isinf(DeltaDisclosure(1).level(people))
    if not lacking:
        assert DeltaDisclosure(1).level(people) == pytest.approx(delta, rel=1e-12)
    return lacking


@pytest.mark.parametrize("name", TABLES)
def test_equal_levels(name):
    """Where every class has every value, δ too; elsewhere the definition has no δ."""
    people, numbers, distance = TABLES[name]
    assert same_levels(people, numbers, distance) == (name != "inpatients")


@pytest.mark.parametrize("columns", ADULT, ids=len)
def test_equal_levels_on_adult(columns, shared_data):
    frame = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    sensitive, numbers = ADULT[columns]
    people = Table(frame, Roles(quasi_identifiers=columns, sensitive=[sensitive]))
    lacking = same_levels(people, numbers, "equal")
    assert lacking == (sensitive == "occupation")


def test_values_that_a_class_lacks():
    """The δ of those that it has is pyCANON's; of a share of 0 the logarithm has no bound."""
    people, numbers, _ = TABLES["ten"]
    assert not DeltaDisclosure(100).holds(people)
    shares = {"flu": 0.4, "gout": 0.3, "hiv": 0.3}
    classes = {"a": {"flu": 2 / 4, "gout": 1 / 4, "hiv": 1 / 4}}
    classes |= {"b": {"flu": 1 / 3, "gout": 2 / 3}, "c": {"hiv": 2 / 3, "flu": 1 / 3}}
    found = [abs(math.log(p / shares[s])) for one in classes.values() for s, p in one.items()]
    assert max(found) == pytest.approx(numbers[5])


@pytest.mark.parametrize(
    ("name", "theirs", "true"),
    [("ten", 1, 1.8898815748423097), ("inpatients", 2, 2.82842712474619), ("salaries", 2, 3.0)],
)
def test_entropy_l(name, theirs, true):
    """Not whole numbers: three values of a third each are as uncertain as three, not as two."""
    level = LDiversity(2, kind="entropy").level(TABLES[name][0])
    assert level == pytest.approx(true, rel=1e-12)
    assert theirs == int(level - 1e-9)
    assert LDiversity(true, kind="entropy").holds(TABLES[name][0])


def test_recursive_l():
    """Each class of the inpatients has counts 2, 1, 1. pyCANON says (c, l) = (1, 3).

    With the most frequent first, 2 < c × 1 needs a c above 2. Only from the rarest on, 1 / 1 is 1.
    """
    people = TABLES["inpatients"][0]
    assert not LDiversity(3, kind="recursive", c=1).holds(people)
    assert not LDiversity(3, kind="recursive", c=2).holds(people)
    assert LDiversity(3, kind="recursive", c=2.01).holds(people)


def test_enhanced_likeness():
    """Gout is 2/3 of class b and 3/10 of the table: a gain of 1.22, above -ln 0.3 = 1.204.

    pyCANON gives 1.204 as the level; but no β allows a gain above -ln of the share.
    """
    people, numbers, _ = TABLES["ten"]
    assert min(numbers[4], -math.log(0.3)) == pytest.approx(1.2039728043259361)
    assert math.isinf(BetaLikeness(1, enhanced=True).level(people))
    assert BetaLikeness(1, enhanced=True).level(TABLES["salaries"][0]) == pytest.approx(2.0)


def test_a_record_with_a_missing_quasi_identifier():
    """pyCANON says k = 2: the fourth record is not counted, though it is released."""
    people = table(["a", "a", "a", None, "b", "b"], list("pqppqp"))
    assert KAnonymity(2).level(people) == 1
    assert KAnonymity(2, missing="wildcard").level(people) == 3
