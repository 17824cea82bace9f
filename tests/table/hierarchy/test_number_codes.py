"""Codes that were read as numbers keep their zeros and are generalized by their first digits."""

from __future__ import annotations

import json
import warnings

import polars as pl
import pytest

import shoal as sh
from shoal.errors import CodesWarning, ShoalWarning
from shoal.table import Dictionary, codes_in
from shoal.table.storage.labelled._dictionary import Facts

ZIPS = [1067, 1069, 1097, 10115, 10117, 20140, 20144, 80331, 80333, 99084]


def table(name, values, repeats=6):
    frame = pl.DataFrame({name: values * repeats, "age": list(range(len(values) * repeats))})
    return sh.Table(frame, sh.Roles(quasi_identifiers=[name, "age"]))


@pytest.mark.parametrize("name", ["zip", "PLZ", "post_code", "postcode"])
@pytest.mark.parametrize("kind", [int, float])
def test_postcodes_keep_their_zeros(name, kind):
    one = table(name, [kind(value) for value in ZIPS])
    found = codes_in(one, name)
    assert (found.pad, found.are_codes, found.doubt) == (5, True, None)
    assert sh.Hierarchy.propose(one, name).to_plan() == {"prefixes": [4, 3], "pad": 5}


@pytest.mark.parametrize("algorithm", ["mondrian", "local"])
@pytest.mark.parametrize("kind", [int, float])
def test_no_search_takes_them_as_quantities(algorithm, kind, tmp_path):
    one = table("zip", [kind(value) for value in ZIPS])
    plan = sh.Plan([sh.Generalize(algorithm, k=4)], require=[sh.KAnonymity(4)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = sh.protect(one, plan)
    texts = {str(text) for text in release.masked.frame["zip"].to_list()}
    assert all(text == "*" or len(text) == 5 for text in texts)
    full = {f"{value:05d}" for value in ZIPS}
    for text in texts - {"*"}:
        assert any(code.startswith(text.rstrip("*")) for code in full)
    assert sh.verify(release.save(tmp_path / "out"), original=one).holds


def test_a_classification_lost_zeros_if_the_others_show_it():
    isco = [110, 210, 310, 1111, 1112, 1120, 2111, 2112, 3111, 7115]
    assert codes_in(table("isco08", isco), "isco08").pad == 4


@pytest.mark.parametrize(
    ("name", "codes", "digits"),
    [
        ("AGS", [1001000, 1002000, 9162000, 9163000, 14612000, 11000000], 8),
        ("county_fips", [1001, 1003, 4013, 6037, 36061, 48201], 5),
    ],
)
def test_codes_of_places_begin_with_the_number_of_a_state(name, codes, digits):
    """Otherwise 1 of Schleswig-Holstein would be joined with 11 of Berlin."""
    one = table(name, codes)
    assert codes_in(one, name).pad == digits
    assert codes_in(one, name).doubt is None


def test_coarser_codes_among_finer_ones_are_in_doubt():
    isco = [2, 21, 211, 2111, 2112, 3, 31, 311, 3111, 3112]
    found = codes_in(table("isco", isco), "isco")
    assert found.pad is None
    assert found.are_codes
    with pytest.warns(CodesWarning, match="'isco'.*leading zeros"):
        sh.Generalize("mondrian", k=2).fit(table("isco", isco))


@pytest.mark.parametrize(
    ("name", "values", "keyword"),
    [
        ("nace", [1.11, 1.2, 10.5, 62.01, 62.02], "as text"),
        ("gemeinde", [1000 + 731 * at for at in range(12)], "prefixes"),
    ],
)
def test_what_may_be_codes_is_told(name, values, keyword):
    with pytest.warns(CodesWarning, match=keyword) as warned:
        sh.Generalize("mondrian", k=2).fit(table(name, values))
    assert not any(str(value) in str(one.message) for one in warned for value in values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", [1000 + 731 * at for at in range(12)]),
        ("age", list(range(20, 60))),
        ("zip", [-5, 3, 10115]),
        ("code", [1, 2, 3, 4]),
        ("year", list(range(1950, 1990))),
    ],
)
def test_quantities_stay_quantities(name, values):
    one = sh.Table(pl.DataFrame({name: values}))
    assert codes_in(one, name) is None


def test_a_given_hierarchy_is_not_questioned():
    one = table("isco", [2, 21, 211, 2111, 2112, 3, 31, 311, 3111, 3112])
    hierarchies = {"isco": sh.Hierarchy.intervals([100, 1000])}
    sh.Generalize("mondrian", k=2, hierarchies=hierarchies).fit(one)


def test_a_first_plan_states_the_prefixes():
    plan = sh.suggest_plan(table("zip", ZIPS)).plan
    assert plan.steps[0].hierarchies["zip"].to_plan() == {"prefixes": [4, 3], "pad": 5}


def labelled(labels, measure="unknown"):
    """A column of codes with labels, as a file of SPSS has them."""
    facts = Facts(values=dict(enumerate(labels, 1)), measure=measure)
    return table("answer", list(range(1, 6)), 9).described(Dictionary("spss", {"answer": facts}))


MARITAL = ["single", "married", "divorced", "widowed", "separated"]
HAPPY = ["very unhappy", "unhappy", "neutral", "happy", "very happy"]


def test_codes_whose_labels_have_no_order_are_no_quantities():
    one = labelled(MARITAL, "nominal")
    assert codes_in(one, "answer").are_names
    assert "(other)" in str(sh.Hierarchy.propose(one, "answer").to_plan()["rows"])
    assert "answer" in sh.suggest_plan(one).plan.steps[0].hierarchies
    for algorithm in ("mondrian", "local"):
        texts = sh.Generalize(algorithm, k=5).fit_transform(one).frame["answer"].cast(pl.String)
        assert {*texts} <= {"1", "2", "3", "4", "5", "(other)", "*"}
    with pytest.warns(CodesWarning, match="'answer'.*order"):
        sh.Generalize("mondrian", k=5).fit(labelled(MARITAL))  # the file does not say "nominal"


@pytest.mark.parametrize(
    ("labels", "measure"),
    [
        (HAPPY, "unknown"),
        (HAPPY[::-1], "nominal"),
        (MARITAL, "ordinal"),
        (["18-29", "30-39", "40-49", "50-59", "60-69"], "unknown"),
        (list("12345"), "nominal"),
        (["not at all"], "unknown"),  # only the end of a scale has a label
    ],
)
def test_codes_whose_labels_have_an_order_are_joined_with_their_neighbours(labels, measure):
    one = labelled(labels, measure)
    assert codes_in(one, "answer") is None
    assert "intervals" in sh.Hierarchy.propose(one, "answer").to_plan()


def test_an_order_of_labels_that_is_not_that_of_the_codes_does_not_count():
    assert codes_in(labelled([*HAPPY[2:], *HAPPY[:2]]), "answer").are_names


def test_labels_of_a_metadata_file_say_that_numbers_are_names(tmp_path):
    rows = "".join(f"{1 + n % 4},{n}\n" for n in range(80))
    (tmp_path / "a.csv").write_text(f"marital,age\n{rows}", "utf-8")
    labels = [{"value": n, "label": label} for n, label in enumerate(MARITAL[:4], 1)]
    fields = [{"name": "marital", "type": "integer", "categories": labels}, {"name": "age"}]
    package = {"resources": [{"path": "a.csv", "schema": {"fields": fields}}]}
    (tmp_path / "datapackage.json").write_text(json.dumps(package), "utf-8")
    one = sh.read(tmp_path / "a.csv")
    assert codes_in(one, "marital").are_names
    assert codes_in(one, "age") is None
