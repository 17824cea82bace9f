"""Privacy models against the worked examples of the papers that define them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import DeltaPresence, KAnonymity, KMap, LDiversity, Roles, Table, TCloseness

# -- Machanavajjhala et al. (2007), l-diversity, figures 1 to 3: twelve inpatients

CONDITIONS = "heart heart viral viral cancer heart viral viral cancer cancer cancer cancer".split()


def inpatients(zip_codes, ages):
    frame = pl.DataFrame({"zip": zip_codes, "age": ages, "condition": CONDITIONS})
    return Table(frame, Roles(quasi_identifiers=["zip", "age"], sensitive=["condition"]))


def four_anonymous():
    """Figure 2."""
    return inpatients(
        ["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4, ["<30"] * 4 + ["≥40"] * 4 + ["3*"] * 4
    )


def three_diverse():
    """Figure 3."""
    first, second, other = ("1305*", "≤40"), ("1306*", "≤40"), ("1485*", ">40")
    rows = [first, second, second, first, *[other] * 4, first, first, second, second]
    return inpatients([zip_code for zip_code, _ in rows], [age for _, age in rows])


def test_the_four_anonymous_table_tells_who_has_cancer():
    table = four_anonymous()
    assert KAnonymity(4).holds(table)
    assert LDiversity(2).violations(table).tolist() == [False] * 8 + [True] * 4
    assert LDiversity(2, kind="entropy").level(table) == pytest.approx(1)


def test_the_three_diverse_table():
    """Each class has shares 1/2, 1/4 and 1/4; its entropy is that of 2.8 values."""
    table = three_diverse()
    assert KAnonymity(4).level(table) == 4
    assert LDiversity(3).level(table) == 3
    assert round(LDiversity(2, kind="entropy").level(table), 1) == 2.8
    # counts 2, 1, 1: 2 < c (1 + 1) for l = 2, and 2 < c for l = 3
    assert LDiversity(2, kind="recursive", c=1.01).holds(table)
    assert not LDiversity(2, kind="recursive", c=1).holds(table)
    assert LDiversity(3, kind="recursive", c=2.01).holds(table)
    assert not LDiversity(3, kind="recursive", c=2).holds(table)


# -- Li, Li, Venkatasubramanian (2007), t-closeness, tables 3 to 5: nine patients

SALARIES = [3, 4, 5, 6, 11, 8, 7, 9, 10]
DISEASES = [
    "gastric ulcer",
    "gastritis",
    "stomach cancer",
    "gastritis",
    "flu",
    "bronchitis",
    "bronchitis",
    "pneumonia",
    "stomach cancer",
]


def patients(groups):
    frame = pl.DataFrame({"group": groups, "salary": SALARIES, "disease": DISEASES})
    roles = Roles(quasi_identifiers=["group"], sensitive=["salary", "disease"])
    return Table(frame, roles)


#: The paper's hierarchy: ten diseases under four kinds and two systems.
DISEASE_TREE = {
    "respiratory": {
        "respiratory infection": ["flu", "pneumonia", "bronchitis"],
        "vascular lung": ["pulmonary edema", "pulmonary embolism"],
    },
    "digestive": {
        "stomach": ["gastric ulcer", "stomach cancer", "gastritis"],
        "colon": ["colitis", "colon cancer"],
    },
}


class Diseases:
    """The tree as models read it: height 3, and only the values that a table has."""

    def codes(self, table, column):
        above = {
            disease: (disease, kind, system, "any")
            for system, kinds in DISEASE_TREE.items()
            for kind, diseases in kinds.items()
            for disease in diseases
        }
        chosen = [above[value] for value in table.codes(column).levels.to_list()]
        levels = zip(*chosen, strict=True)
        self.maps = np.array([np.unique(level, return_inverse=True)[1] for level in levels])
        return self


def salary(t):
    return TCloseness(t, distance="ordered", column="salary")


def disease(t):
    return TCloseness(t, distance="hierarchical", column="disease", hierarchy=Diseases())


@pytest.mark.parametrize(
    ("group", "distance"),
    [([0, 1, 2], 0.375), ([3, 4, 5], 0.167)],
    ids=["3k, 4k, 5k", "6k, 8k, 11k"],
)
def test_salaries_by_their_order(group, distance):
    """Section 4.1: {3k, 4k, 5k} is 0.375 away from {3k, …, 11k}, and {6k, 8k, 11k} 0.167."""
    table = patients([row in group for row in range(9)])
    assert not salary(distance + 5e-4).violations(table)[group].any()
    assert salary(distance - 5e-4).violations(table)[group].all()


@pytest.mark.parametrize(
    ("other", "distance"),
    [("bronchitis", 1 / 3), ("pulmonary embolism", 2 / 3), ("stomach cancer", 1)],
)
def test_diseases_by_their_tree(other, distance):
    """Section 4.2: how far flu is from other diseases. Half of a class of flu must move."""
    frame = pl.DataFrame({"group": [0, 1], "disease": ["flu", other]})
    table = Table(frame, Roles(quasi_identifiers=["group"], sensitive=["disease"]))
    assert disease(0.5).level(table) == pytest.approx(distance / 2)


def test_table_5_is_close_in_both_columns():
    """Table 5 is printed with 0.167 for salary and 0.278 for disease.

    By the paper's own tree the second class, gastritis, flu and bronchitis, is further away than
    that: 1/9 moves to gastritis and 1/9 from flu or bronchitis to pneumonia within their kinds
    (2/9 × 1/3), and 2/9 move from digestive to respiratory diseases: 8/27 = 0.296.
    """
    table = patients([0, 2, 0, 1, 1, 1, 2, 0, 2])
    assert salary(0.2).level(table) == pytest.approx(0.167, abs=5e-4)
    assert disease(0.2).level(table) == pytest.approx(8 / 27)


def test_table_4_is_diverse_and_not_close():
    """Table 4: 3-diverse, and yet a class of low salaries and stomach diseases only."""
    table = patients([0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert LDiversity(3).holds(table)
    assert salary(0.2).level(table) == pytest.approx(0.375)
    assert salary(0.3).violations(table).tolist() == [True] * 3 + [False] * 6
    # 5 of 9 records of the table are digestive, all of the first class: 4/9 travel the whole way
    assert disease(0.4).violations(table)[:3].all()


# -- Desfontaines (2018), δ-presence, for when being in the dataset is sensitive


def test_a_five_map_that_tells_who_is_in_the_table():
    """Six patients of one postcode; five people of it are 10 to 19, and ten are 40 to 49."""
    roles = Roles(quasi_identifiers=["zip", "age"])
    ages = {"10-19": 5, "20-29": 5, "30-39": 10, "40-49": 10, "50-": 20}
    everyone = Table(
        pl.DataFrame({"zip": "85535", "age": [age for age, n in ages.items() for _ in range(n)]}),
        roles,
    )
    table = Table(pl.DataFrame({"zip": ["85535"] * 6, "age": ["10-19"] * 5 + ["40-49"]}), roles)
    assert KMap(5, population=everyone).holds(table)
    assert not KMap(6, population=everyone).holds(table)
    presence = DeltaPresence(0.5, population=everyone)
    assert presence.level(table) == 1
    assert presence.violations(table).tolist() == [True] * 5 + [False]
