"""The recount is right by hand, and finds a claim that is wrong by a hair."""

from __future__ import annotations

import math

import pytest

from .public_half import Public, WrongFile, records
from .recount import NotPublic, Recount, level_of, recount

#: Two classes: 30 with a, a, b, c and 41 with a, a; the last row has no age.
AGES = ["30", "30", "30", "30", "41", "41"]
ILLS = ["a", "a", "b", "c", "a", "a"]


def public(ages=AGES, ills=ILLS, claims=(), **measured):
    columns = {"age": list(ages), "ill": list(ills)}
    facts = {
        "data": {"format": "csv"},
        "claims": list(claims),
        "measured": measured,
        "swapping": None,
    }
    types = {"age": "int64", "ill": "string"}
    return Public(facts, columns, types, {"age": "quasi_identifiers", "ill": "sensitive"})


def claim(name, requirement, measured=0.0):
    return {
        "claim": name,
        "requirement": requirement,
        "measured": measured,
        "holds": True,
        "needs_original": False,
    }


def level(name, requirement, persons=None, hierarchies=None, **given):
    found = Recount(public(**given), persons, hierarchies)
    return level_of(found, claim(name, requirement))


BY_HAND = {
    "k": (("k_anonymity", 2), 2, True),
    "k too small": (("k_anonymity", 3), 2, False),
    "l": (("l_diversity", 2), 1, False),
    "entropy": (("l_diversity", {"l": 1.5, "kind": "entropy"}), 1.0, False),
    "alpha": (("alpha_k_anonymity", {"alpha": 1, "k": 2}), 1.0, True),
    "alpha and a small class": (("alpha_k_anonymity", {"alpha": 1, "k": 3}), math.inf, False),
    # a: 4/6 in the table, 1/2 and 1 in the classes
    "t": (("t_closeness", 0.4), 1 / 3, True),
    "t, ordered": (("t_closeness", {"t": 0.3, "distance": "ordered"}), (1 / 3 + 1 / 6) / 2, True),
    # b and c: 1/6 in the table, 1/4 in a class
    "beta": (("beta_likeness", 0.4), 0.5, False),
    "beta, enhanced": (("beta_likeness", {"beta": 0.5, "enhanced": True}), math.inf, False),
    "delta": (("delta_disclosure", 9), math.inf, False),
    "average": (("average_risk", 0.3), 1 / 3, False),
    "prosecutor": (("max_prosecutor_risk", 0.5), 0.5, True),
    "marketer": (("max_marketer_risk", 0.3), 1 / 3, False),
    "journalist": (("max_journalist_risk", {"value": 0.1, "sampling_fraction": 0.2}), 0.1, True),
    "at risk": (("max_records_at_risk", {"value": 0.5, "threshold": 0.4}), 1 / 3, True),
    "uniqueness": (("max_uniqueness", 0), 0.0, True),
    "homogeneity": (("max_homogeneity", 0.3), 1 / 3, False),
    "skewness": (("max_skewness", {"value": 0.5, "threshold": 0.3}), 1 / 3, True),
    "no uniques": (("population_uniqueness", {"max": 0, "sampling_fraction": 0.1}), 0.0, True),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    asked, expected, holds = BY_HAND[name]
    found, held = level(*asked)
    assert found == pytest.approx(expected, abs=1e-12)
    assert held is holds


def test_recursive_diversity_and_disclosure():
    # r = 3, 2, 1: 3 < c (2 + 1) asks for c above 1, 3 < c 1 for c above 3
    ills = list("aaabbc")
    for c, expected in ((0.9, 1), (1.1, 2), (3.1, 3)):
        found, _ = level(
            "l_diversity", {"l": 2, "kind": "recursive", "c": c}, ages=["1"] * 6, ills=ills
        )
        assert found == expected
    found, held = level("delta_disclosure", 0.41, ages=list("111222"), ills=list("aababb"))
    assert found == pytest.approx(math.log(3 / 2))
    assert held


def test_hierarchical_closeness():
    """Li et al. 2007: what moves between siblings is half as far as what crosses the root."""
    paths = {"flu": ["lung", "*"], "cough": ["lung", "*"], "ulcer": ["stomach", "*"]}
    given = {"ages": list("1122"), "ills": ["flu", "flu", "cough", "ulcer"]}
    asked = {"t": 1, "distance": "hierarchical", "column": "ill"}
    with pytest.raises(NotPublic):
        level("t_closeness", asked, **given)
    found, _ = level("t_closeness", asked, hierarchies={"ill": paths}, **given)
    # of the half that is too much flu, a quarter goes to cough (1/2) and a quarter over the root
    assert found == pytest.approx(0.25 / 2 + 0.25)


def test_nothing_agrees_with_everything_as_a_wildcard():
    ages = ["30", "30", None, "41"]
    assert level("k_anonymity", 2, ages=ages, ills="abcd") == (1, False)
    asked = {"k": 2, "missing": "wildcard"}
    assert level("k_anonymity", asked, ages=ages, ills="abcd") == (2, True)


def test_zayatz():
    """Two uniques and a pair; half of the population: by hypergeometric probabilities."""
    ages = ["1", "2", "3", "3"]
    asked = {"max": 1, "sampling_fraction": 0.5, "estimator": "zayatz"}
    # of 8 people 4 are drawn: 4/8 for a class of one, 2 × C(6, 3) / C(8, 4) for one of two
    once, twice = 2 * 0.5, 1 * 2 * 20 / 70
    found, _ = level("population_uniqueness", asked, ages=ages, ills="abcd")
    assert found == pytest.approx(once / (once + twice) * 2 / 4)


def test_people_with_several_rows_count_once():
    """Five rows of one person are a class of one, and one value."""
    persons = ["p", "p", "p", "p", "q", "r"]
    assert level("k_anonymity", 2, persons=persons) == (1, False)
    assert level("max_prosecutor_risk", 1, persons=persons)[0] == 1.0
    found = Recount(public(), persons)
    assert found.counts("ill", [0, 1, 2, 3]) == {"a": 1, "b": 1, "c": 1}


def test_wrong_claims_are_found():
    right = [claim("k_anonymity", 2, 2), claim("average_risk", 0.5, 1 / 3)]
    measured = {"k": 2, "classes": 2, "uniqueness": 0.0}
    assert recount(public(claims=right, **measured)).wrong == ()
    for wrong in (
        [claim("k_anonymity", 3, 3)],
        [claim("k_anonymity", 2, 3)],
        [claim("k_anonymity", 3, 2)],
        [claim("average_risk", 0.5, 1 / 3 - 1e-8)],
        [{**right[0], "holds": False}],
    ):
        assert recount(public(claims=wrong, **measured)).wrong
    assert recount(public(claims=right, **measured | {"classes": 1})).wrong
    assert recount(public(ages=["0.0", "-0.0", *AGES[2:]], claims=right, **measured)).wrong


def test_text_files_are_read_to_the_letter():
    assert records('a;b\n"x;\ny";""\n;\n', ";") == [["a", "b"], ["x;\ny", ""], [None, None]]
    assert records('a\n""\n\n', ",") == [["a"], [""], [None]]
    for broken in ('"a"b\n', "a\rb\n", "a"):
        with pytest.raises(WrongFile):
            records(broken, ",")
