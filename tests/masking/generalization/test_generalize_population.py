"""Generalization among a population, judged from the released texts, person by person."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import partial

import numpy as np
import polars as pl
import pytest

from shoal import (
    DeltaPresence,
    Generalize,
    Hierarchy,
    KAnonymity,
    KMap,
    LDiversity,
    Plan,
    Roles,
    Round,
    Table,
    protect,
    verify,
)
from shoal.errors import NothingLeftWarning, RequirementNotMet
from shoal.workflow._plan import in_released_domain
from shoal.workflow._require import make_claim

CITIES = {"North": ["Kiel", "Bremen", "Lübeck"], "South": ["Ulm", "Passau", "Lindau"]}
HIERARCHIES = {"age": Hierarchy.intervals([5, 10, 30, 90]), "city": Hierarchy.tree(CITIES)}
ROLES = Roles(quasi_identifiers=["age", "city"], sensitive=["ill"])
SEARCHES = [
    {"algorithm": "full-domain", "hierarchies": HIERARCHIES},
    {"algorithm": "mondrian", "hierarchies": {"city": HIERARCHIES["city"]}},
    {"algorithm": "mondrian", "hierarchies": HIERARCHIES},
    {"algorithm": "mondrian", "relaxed": True, "hierarchies": {"city": HIERARCHIES["city"]}},
    {"algorithm": "local", "hierarchies": HIERARCHIES},
]
NAMES = ["full-domain", "mondrian", "mondrian by trees", "relaxed", "local"]


def register(people=400, seed=0):
    """Ages with ties and gaps, cities that are unevenly frequent, and an illness."""
    rng = np.random.default_rng(seed)
    cities = [city for group in CITIES.values() for city in group]
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 60, people) // 3 * 3,
            "city": rng.choice(cities, people, p=[0.4, 0.2, 0.05, 0.2, 0.1, 0.05]),
            "ill": rng.choice(["flu", "gout", "ok"], people),
        }
    )
    return frame.with_columns(frame["age"].set(pl.Series(rng.random(people) < 0.05), None))


def fits(value, text):
    """Whether a reader would say that a person's value may be behind a released text."""
    if text == "*" or value is None or text is None:
        return text == "*" or (value is None and text is None)
    if isinstance(value, str):
        return text == value or value in CITIES.get(text, ())
    if str(text).startswith("<"):
        return value < float(text[1:])
    if str(text).startswith(">="):
        return value >= float(text[2:])
    if not str(text).startswith("["):
        return value == int(text)
    low, high = (float(end) for end in text[1:-1].split(", "))
    assert text.endswith(")")
    return low <= value < high


def counted(masked, everyone):
    """The people whom each released class covers, and the presence of each person."""
    classes = Counter(masked.frame.select("age", "city").rows())
    persons = everyone.select("age", "city").rows()
    covered = {cells: [all(map(fits, person, cells)) for person in persons] for cells in classes}
    presence = [
        sum(classes[c] / sum(inside) for c, inside in covered.items() if inside[i])
        for i in range(len(persons))
    ]
    return {cells: sum(inside) for cells, inside in covered.items()}, presence


def generalized(table, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        return Generalize(**options).fit_transform(table)


@pytest.mark.parametrize("search", SEARCHES, ids=NAMES)
def test_every_record_fits_enough_people(search):
    everyone = register()
    table = Table(everyone[:90], ROLES)
    model = KMap(12, population=Table(everyone))
    masked = generalized(table, models=[model, LDiversity(2)], **search)
    people, _ = counted(masked, everyone)
    assert min(people.values()) >= 12
    assert LDiversity(2).holds(masked)
    assert masked.classes.k < 12  # finer than k-anonymity with the same k
    anonymous = generalized(table, k=12, models=LDiversity(2), **search)
    assert masked.classes.count > anonymous.classes.count


@pytest.mark.parametrize("search", SEARCHES, ids=NAMES)
@pytest.mark.parametrize("bounds", [(0.4, 0.0), (0.5, 0.05)])
def test_nobody_is_too_surely_in_the_table_or_out_of_it(search, bounds):
    everyone = register(300, seed=2)
    table = Table(everyone[::5], ROLES)
    model = DeltaPresence(*bounds, population=Table(everyone))
    masked = generalized(table, k=2, models=model, **search)
    _, presence = counted(masked, everyone)
    assert max(presence) <= bounds[0] + 1e-9
    assert min(presence) >= bounds[1] - 1e-9
    assert sum(presence) == pytest.approx(len(table))
    assert KAnonymity(2).holds(masked)
    # local classes have the cells of their records, which leave people out, unless there is one
    assert masked.classes.count > 1 or (search["algorithm"] == "local" and bounds[1] > 0)


@pytest.mark.parametrize("seed", range(4))
def test_who_is_suppressed_is_surely_absent(seed):
    """A lower bound of presence leaves nothing to suppress, whatever the limit says."""
    everyone = register(60, seed)
    table, people = Table(everyone[:40], ROLES), Table(everyone)
    options = {"k": 4, "models": DeltaPresence(0.9, 0.1, population=people)}
    masked = generalized(table, suppression_limit=0.5, hierarchies=HIERARCHIES, **options)
    _, presence = counted(masked, everyone)
    assert len(masked) == 40
    assert min(presence) >= 0.1 - 1e-9
    free = options | {"models": DeltaPresence(0.9, population=people)}
    assert len(generalized(table, suppression_limit=0.5, hierarchies=HIERARCHIES, **free)) < 40


def test_given_levels_leave_nobody_surely_absent():
    everyone = pl.DataFrame({"age": [21] * 6 + [33] * 6 + [47] * 6})
    roles = Roles(quasi_identifiers=["age"])
    given = {"hierarchies": {"age": Hierarchy.intervals([10, 30])}, "suppression_limit": 1.0}
    for records, k in (([21] * 3 + [33] * 3, 2), ([21] * 3 + [33] * 3 + [47], 2)):
        table = Table(pl.DataFrame({"age": records}), roles)
        model = DeltaPresence(0.9, 0.1, population=Table(everyone))
        with pytest.raises(RequirementNotMet, match="δ-presence"):
            Generalize(k=k, models=model, levels={"age": 1}, **given).fit_transform(table)
    table = Table(pl.DataFrame({"age": [21] * 3 + [33] * 3 + [47] * 2}), roles)
    step = Generalize(k=2, models=model, levels={"age": 1}, **given)
    assert len(step.fit_transform(table)) == 8


@pytest.fixture
def saved(tmp_path):
    """The path of a population, as a plan names it."""

    def save(frame):
        path = tmp_path / "everyone.parquet"
        frame.write_parquet(path)
        return str(path)

    return save


@pytest.mark.parametrize("search", SEARCHES, ids=NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_a_claim_counts_people_as_a_reader_does(search, seed):
    """Also where the search knew nothing of the population, and boxes leave people out."""
    everyone = register(200, seed)
    table, population = Table(everyone[:60], ROLES), Table(everyone)
    plan = Plan([Generalize(k=2, **search)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        masked, records = plan.apply(table)
    covered, presence = counted(masked, everyone)
    for fewest in (2, min(covered.values()), min(covered.values()) + 1):
        claim = make_claim(
            KMap(fewest, population=population),
            masked,
            table,
            served=partial(in_released_domain, records),
        )
        assert claim.measured == min(covered.values())
        assert claim.holds == (fewest <= claim.measured)
    model = DeltaPresence(1.0, population=population)
    claim = make_claim(model, masked, table, served=partial(in_released_domain, records))
    assert claim.measured == pytest.approx(min(1.0, max(presence)))


def test_people_outside_every_box_are_nobody_s_crowd(saved):
    """Served, they would go to the nearest box; they do not fit its records all the same."""
    table = Table(pl.DataFrame({"age": [20, 22, 24, 40, 42, 44]}), Roles(quasi_identifiers=["age"]))
    strangers = pl.DataFrame({"age": [*table.frame["age"], *[27] * 50, *[28] * 50]})
    step = Generalize("mondrian", k=3)
    assert set(step.fit_transform(table).frame["age"]) == {"<26", ">=38"}
    covered = step.cover(Table(strangers))
    assert covered.frame["age"].value_counts().sort("count")["count"].to_list() == [3, 3, 100]
    plan = Plan([Generalize("mondrian", k=3)], require=[KMap(4, population=saved(strangers))])
    with pytest.raises(RequirementNotMet, match="some fit only 3"):
        protect(table, plan)


def test_a_person_in_several_boxes_is_one_person():
    """Two of four people are shown as such, and one as anybody: more than half a presence each."""
    roles = Roles(quasi_identifiers=["town"])
    towns = Hierarchy.from_rows([("a", "*"), ("b", "*"), ("c", "*")])
    table = Table(pl.DataFrame({"town": ["a", "a", "b"]}), roles)
    people = Table(pl.DataFrame({"town": ["a"] * 4 + ["b"] * 4}), roles)
    step = Generalize("local", models=KMap(4, population=people), hierarchies={"town": towns})
    masked = step.fit_transform(table)
    assert masked.frame["town"].to_list() == ["a", "a", "b"]
    shown = Table(pl.DataFrame({"town": ["a", "a", "*"]}), roles)
    both = pl.DataFrame({"town": ["a"] * 4 + ["*"] * 8})
    keys = np.array([*range(4), *range(8)])
    seen = Table(both, roles).paired(people, keys)
    # 2 of 4, and one record spread over 8 people
    assert DeltaPresence(0.9, population=seen).level(shown) == pytest.approx(0.5 + 0.125)
    assert DeltaPresence(0.6, population=seen).violations(shown).all()
    assert KMap(5, population=seen).violations(shown).tolist() == [True, True, False]


def test_a_record_that_is_kept_as_stars_fits_everybody():
    everyone = register(200, seed=6)
    table, people = Table(everyone[:60], ROLES), Table(everyone)
    step = Generalize(k=4, hierarchies=HIERARCHIES, suppression_limit=0.4, suppressed="kept")
    plan = Plan([step])
    masked, records = plan.apply(table)
    assert 0 < records[0].fitted.suppressed_ < 60
    covered, presence = counted(masked, everyone)
    assert covered["*", "*"] == 200
    claim = make_claim(
        KMap(2, population=people), masked, table, served=partial(in_released_domain, records)
    )
    assert claim.measured == min(covered.values())
    claim = make_claim(
        DeltaPresence(1.0, population=people),
        masked,
        table,
        served=partial(in_released_domain, records),
    )
    assert claim.measured == pytest.approx(min(1.0, max(presence)))


def test_a_star_covers_everybody_at_whatever_level_it_stands():
    """Cities that a hierarchy lacks are stars from level 1 on; a reader sees a star, no more."""
    roles = Roles(quasi_identifiers=["city"])
    table = Table(pl.DataFrame({"city": ["Kiel", "Kiel", "Oslo", "Bergen"]}), roles)
    rows = [("Kiel", "North"), ("Bremen", "North"), ("Ulm", "South")]
    regions = {"city": Hierarchy.from_rows(rows)}
    step = Generalize("local", k=2, hierarchies=regions, extend=True)
    assert step.fit_transform(table).frame["city"].to_list() == ["Kiel", "Kiel", "*", "*"]
    people = Table(pl.DataFrame({"city": ["Kiel", "Bremen", "Oslo", "Bergen", "Kiel"]}))
    cities = step.cover(people).frame["city"].to_list()
    assert (cities.count("*"), cities.count("Kiel"), len(cities)) == (5, 2, 7)


def test_steps_before_map_the_people_as_well():
    everyone = register(300, seed=4)
    table = Table(everyone[:80], ROLES)
    local = Generalize("local", k=12, hierarchies={"city": HIERARCHIES["city"]}, columns=["city"])
    plan = Plan([Round(base=20, columns=["age"]), local])
    masked, records = plan.apply(table)
    assert len(set(masked.frame["city"]) & {*CITIES, "*"}) > 1  # cells that cover each other
    rounded = [
        (age if age is None else int(np.floor(age / 20 + 0.5)) * 20, city)
        for age, city in everyone.select("age", "city").rows()
    ]
    covered = [
        sum(a == age and fits(c, city) for a, c in rounded)
        for age, city in masked.frame.select("age", "city").rows()
    ]
    model = KMap(2, population=Table(everyone))
    assert make_claim(
        model, masked, table, served=partial(in_released_domain, records)
    ).measured == min(covered)


@pytest.mark.parametrize("search", SEARCHES[2:], ids=NAMES[2:])
def test_through_a_release(search, saved, tmp_path):
    everyone = register(300, seed=5)
    model = KMap(10, population=saved(everyone))
    plan = Plan([Generalize(models=model, **search)], require=[model])
    release = protect(Table(everyone[:70], ROLES), plan)
    assert release.claims[0].measured >= 10
    release.save(tmp_path / "out")
    assert "everyone" not in (tmp_path / "out" / "public" / "release.json").read_text("utf-8")
    assert verify(tmp_path / "out").holds
