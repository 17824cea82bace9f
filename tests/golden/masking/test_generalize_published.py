"""Searches and models against worked examples of papers, and optima that ARX's own tests record."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import polars as pl
import pytest

from shoal import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    Generalize,
    Hierarchy,
    KMap,
    Roles,
    Table,
)
from shoal.errors import ShoalWarning
from shoal.models import delta_for_class, smallest_class_for

# -- Nergiz, Atzori, Clifton (2007), Hiding the presence of individuals from shared databases:
# nine people of a public table, five of whom are in the private one. ARX has the same example
# (Example11) and, in its tests, the generalization with the least precision lost.

PUBLIC = [
    ("47906", 35, "USA", 0),
    ("47903", 59, "Canada", 1),
    ("47906", 42, "USA", 1),
    ("47630", 18, "Brazil", 0),
    ("47630", 22, "Brazil", 0),
    ("47633", 63, "Peru", 1),
    ("48973", 33, "Spain", 0),
    ("48972", 47, "Bulgaria", 1),
    ("48970", 52, "France", 1),
]
COUNTRIES = {
    "America": {"N. America": ["Canada", "USA"], "S. America": ["Peru", "Brazil"]},
    "Europe": {"E. Europe": ["Bulgaria"], "W. Europe": ["France", "Spain"]},
}
ROLES = Roles(quasi_identifiers=["zip", "age", "country"])


def nergiz():
    """The people, those of them in the private table, and hierarchies as ARX has them."""
    frame = pl.DataFrame(PUBLIC, schema=["zip", "age", "country", "private"], orient="row")
    inside = frame.filter(pl.col("private") == 1).drop("private")
    ages = [
        (str(age), f"{age // 10}*", "<=40" if age <= 40 else ">40")
        for age in sorted(frame["age"].to_list())
    ]
    hierarchies = {
        "zip": Hierarchy.prefixes([4, 3, 2, 1]),
        "age": Hierarchy.from_rows(ages),
        "country": Hierarchy.tree(COUNTRIES),
    }
    return Table(frame.drop("private"), ROLES), Table(inside, ROLES), hierarchies


def test_half_and_two_thirds_of_the_people_are_present():
    """Postcodes 47*, any age, America: three of six; 48*, Europe: two of three."""
    everyone, inside, hierarchies = nergiz()
    for name, level in (("zip", 3), ("age", 3), ("country", 2)):
        everyone = hierarchies[name].generalize(everyone, name, level)
        inside = hierarchies[name].generalize(inside, name, level)
    assert DeltaPresence(2 / 3, 1 / 2, population=everyone).holds(inside)
    assert DeltaPresence(1, population=everyone).level(inside) == pytest.approx(2 / 3)
    assert DeltaPresence(0.66, population=everyone).violations(inside).sum() == 2
    assert not DeltaPresence(2 / 3, 0.51, population=everyone).holds(inside)
    assert KMap(3, population=everyone).level(inside) == 3


def test_the_search_finds_what_arx_finds():
    """δ = (1/2, 2/3) and k = 2 without suppression, by precision."""
    everyone, inside, hierarchies = nergiz()
    model = DeltaPresence(2 / 3, 1 / 2, population=everyone)
    step = Generalize(k=2, models=model, hierarchies=hierarchies, loss="precision")
    masked = step.fit_transform(inside)
    assert step.levels_ == {"zip": 3, "age": 3, "country": 2}
    expected = [("47***", "*", "America")] * 3 + [("48***", "*", "Europe")] * 2
    assert masked.frame.rows() == expected


# -- Cao, Karras (2012), β-likeness: the optima on Adult in ARX's TestAnonymizationBLikeness


@pytest.mark.parametrize(
    ("model", "limit", "levels", "loss"),
    [
        (BetaLikeness(2, enhanced=True), 0.0, [1, 4, 1, 1, 3, 2, 2, 0], 0.759176305345683),
        (BetaLikeness(5), 0.4, [0, 2, 0, 0, 2, 0, 1, 0], 0.23350465152356303),
    ],
    ids=["enhanced 2", "basic 5"],
)
def test_the_beta_like_optimum_of_arx(model, limit, levels, loss, shared_data):
    names = "sex age race marital-status education native-country workclass salary-class".split()
    frame = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")
    folder = shared_data / "hierarchies" / "adult_arx"
    step = Generalize(
        models=model,
        hierarchies={name: str(folder / f"{name}.csv") for name in names},
        suppression_limit=limit,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        step.fit_transform(Table(frame, Roles(quasi_identifiers=names, sensitive=["occupation"])))
    assert list(step.levels_.values()) == levels
    assert step.loss_ == pytest.approx(loss, rel=1e-9)
    assert step.optimal_


# -- Models whose papers' examples were not at hand, on the published tables of l-diversity
# (Machanavajjhala et al. 2007, figures 2 and 3), by their definitions in exact fractions

CONDITIONS = "heart heart viral viral cancer heart viral viral cancer cancer cancer cancer".split()
FIGURES = {2: [*"aaaabbbbcccc"], 3: [*"abbaccccaabb"]}


def shares_of(figure):
    """For each class and condition the share in the class and in the table."""
    classes = FIGURES[figure]
    for name in sorted(set(classes)):
        members = [c for c, of in zip(CONDITIONS, classes, strict=True) if of == name]
        for value in sorted(set(CONDITIONS)):
            overall = Fraction(CONDITIONS.count(value), 12)
            yield Fraction(members.count(value), len(members)), overall


def inpatients(figure):
    frame = pl.DataFrame({"group": FIGURES[figure], "condition": CONDITIONS})
    return Table(frame, Roles(quasi_identifiers=["group"], sensitive=["condition"]))


@pytest.mark.parametrize(("figure", "alpha"), [(2, Fraction(1)), (3, Fraction(1, 2))])
def test_alpha_of_twelve_inpatients(figure, alpha):
    """Wong et al. (2006): the largest share of a value in a class of at least k."""
    assert max(share for share, _ in shares_of(figure)) == alpha
    table = inpatients(figure)
    assert AlphaKAnonymity(0.9, 4).level(table) == float(alpha)
    assert AlphaKAnonymity(0.9, 5).level(table) == math.inf


@pytest.mark.parametrize(("figure", "beta"), [(2, Fraction(7, 5)), (3, Fraction(1, 2))])
def test_beta_of_twelve_inpatients(figure, beta):
    """Cao and Karras (2012): the largest (q - p) / p; 5 of 12 have cancer, and 4 a virus."""
    assert max((share - overall) / overall for share, overall in shares_of(figure)) == beta
    assert BetaLikeness(1).level(inpatients(figure)) == pytest.approx(float(beta), abs=1e-12)


def test_delta_of_twelve_inpatients():
    """Brickell and Shmatikov (2008): the largest |ln(q / p)|; figure 2 lacks values in classes."""
    ratios = [share / overall for share, overall in shares_of(3)]
    widest = max(max(ratios), 1 / min(ratios))
    assert widest == Fraction(5, 3)  # cancer: 1 of 4 where 5 of 12 have it
    assert DeltaDisclosure(1).level(inpatients(3)) == pytest.approx(math.log(5 / 3), abs=1e-12)
    assert any(share == 0 for share, _ in shares_of(2))
    assert DeltaDisclosure(1).level(inpatients(2)) == math.inf


# -- Bild, Kuhn, Prasser (2018), SafePub: the k that a fraction, ε and δ ask for, by its definition


def exact_k(epsilon, delta, beta):
    """The smallest k with a δ of at most this, from the sums of binomial probabilities."""
    gamma = 1 - (1 - beta) * Fraction(math.exp(-epsilon))
    tails = []
    for n in range(1, 250):
        first = math.floor(gamma * n) + 1
        terms = (
            math.comb(n, j) * float(beta) ** j * float(1 - beta) ** (n - j)
            for j in range(first, n + 1)
        )
        tails.append(math.fsum(terms))
    k = 1
    while max(tails[max(1, math.ceil(k / gamma - 1)) - 1 :]) > delta:
        k += 1
    return k


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(2.0, 1e-5), (math.log(2), 1e-7), (math.log(3), 1e-8)],
)
def test_the_k_of_safepub(epsilon, delta):
    """The pairs of ARX's tests, each at the largest fraction that ε allows: 1 - exp(-ε)."""
    beta = math.nextafter(1 - math.exp(-epsilon), 0)
    k = smallest_class_for(epsilon, delta, sampling=beta)
    assert k == exact_k(epsilon, delta, Fraction(beta))
    assert delta_for_class(k, epsilon, sampling=beta) <= delta


# -- Wong, Li, Fu, Wang (2006), (alpha, k)-anonymity: six patients, and the same with job and birth
# taken away, which the paper calls (0.5, 2)-anonymous. The rows are from memory: no copy of the
# paper was at hand, so they show the definition at work and are not to be cited.

PATIENTS = [
    ("cat1", 1975, "4350", "HIV"),
    ("cat1", 1955, "4350", "HIV"),
    ("cat1", 1955, "5432", "flu"),
    ("cat2", 1955, "5432", "fever"),
    ("cat2", 1975, "4350", "flu"),
    ("cat2", 1975, "4350", "fever"),
]


def test_half_of_a_class_and_two_records():
    frame = pl.DataFrame(PATIENTS, schema=["job", "birth", "postcode", "illness"], orient="row")
    raw = Table(frame, Roles(quasi_identifiers=["job", "birth", "postcode"], sensitive=["illness"]))
    coarse = Table(
        frame.with_columns(pl.lit("*").alias("job"), pl.lit("*").alias("birth")), raw.roles
    )
    model = AlphaKAnonymity(0.5, k=2)
    assert not model.holds(raw)
    assert model.holds(coarse)
    assert not AlphaKAnonymity(0.49, k=2).holds(coarse)
    assert not AlphaKAnonymity(0.5, k=3).holds(coarse)
