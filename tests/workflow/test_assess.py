"""Assessing: plain facts, in three forms, without a cell."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Round, Table, assess
from shoal.errors import InputError, RolesError
from shoal.workflow import discover_all_measures

from .samples import COLUMNS, ROLES, people


def rounded():
    return Round(base=20).fit_transform(people())


def test_the_facts_by_hand():
    """Ages 20 and 40 in two cities: classes of 5, 5, 7 and 7."""
    found = assess(rounded())
    assert (found.rows, found.columns, found.k) == (24, 5, 5)
    assert found.classes.count == 4
    assert found.classes.average == 6.0
    assert found.classes.largest == 7
    assert found.classes.uniques == 0
    assert {k: v for k, v in found.classes.records_by_size.items() if v} == {"5-9": 24}
    assert found["prosecutor_risk"].value == 0.2
    assert found["marketer_risk"].value == pytest.approx(4 / 24)
    assert found["records_at_risk"].value == 0.0
    assert found.roles == ROLES.to_dict()


def test_class_sizes_are_told_in_steps():
    """One class of each size around the steps: 1, 2, 3, 4, 5, 99, 100 and 101 records."""
    sizes = [1, 2, 3, 4, 5, 99, 100, 101]
    values = [place for place, size in enumerate(sizes) for _ in range(size)]
    table = Table(pl.DataFrame({"x": values}), Roles(quasi_identifiers=["x"]))
    assert assess(table).classes.records_by_size == {
        "1": 1,
        "2": 2,
        "3-4": 7,
        "5-9": 5,
        "10-19": 0,
        "20-49": 0,
        "50-99": 99,
        "100+": 201,
    }


def test_what_is_left_out_is_said():
    found = assess(people())
    assert set(found.measurements) == {
        "homogeneity",
        "marketer_risk",
        "prosecutor_risk",
        "records_at_risk",
        "similarity",
        "skewness",
        "suda",
        "uniqueness",
    }
    assert len(found.notes) == len(discover_all_measures()) - len(found.measurements)
    assert any("give a population table" in note for note in found.notes)
    assert any("give it as original" in note for note in found.notes)


def test_against_the_original():
    original = people()
    masked = Round(base=20).fit_transform(original)
    found = assess(masked, original=original)
    assert found["unchanged_records"].details == {"records": 2}
    assert found["suppressed_cells"].value == 0.0
    assert found["total_variation"].value > 0


def test_against_an_original_that_was_read_apart():
    found = assess(Table(rounded().frame, ROLES), original=people())
    assert "unchanged_records" not in found.measurements
    assert any("cannot be paired" in note for note in found.notes)
    assert "total_variation" in found.measurements


def test_with_a_population():
    everybody = Table(pl.concat([rounded().frame] * 4), ROLES)
    found = assess(rounded(), population=everybody)
    assert found["journalist_risk"].value == 1 / 20
    assert assess(rounded(), sampling_fraction=0.25)["journalist_risk"].value == 1 / 20
    weighted = Table(rounded().frame.with_columns(w=pl.lit(4.0)), ROLES.replacing(weight="w"))
    assert assess(weighted)["journalist_risk"].value == 1 / 20


def test_the_threshold_is_used():
    assert assess(rounded(), threshold=0.15)["records_at_risk"].details["records"] == 10
    with pytest.raises(InputError, match="above 0 and at most 1"):
        assess(rounded(), threshold=2)


def test_chosen_measures():
    found = assess(people(), measures=["uniqueness"])
    assert list(found.measurements) == ["uniqueness"]
    assert found.notes == ()
    with pytest.raises(InputError, match=r"no measure 'uniquenes'\. Did you mean 'uniqueness'\?"):
        assess(people(), measures=["uniquenes"])
    with pytest.raises(KeyError, match="Did you mean 'uniqueness'"):
        found["uniquenes"]


def test_forms():
    found = assess(rounded(), original=people())
    facts = json.loads(found.to_json())
    assert facts == found.to_dict()
    assert facts["k"] == 5
    assert facts["measurements"]["prosecutor_risk"]["value"] == 0.2
    json.dumps(facts, allow_nan=False)
    text = str(found)
    assert "k = 5" in text
    assert "highest prosecutor risk: 0.2" in text
    page = found.to_html()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert found._repr_html_()


def test_no_form_tells_a_cell():
    frame = pl.DataFrame({"x": ["canary-7d1f", "b", "b"], "y": [918273645, 1, 1]})
    table = Table(frame, Roles(quasi_identifiers=["x", "y"]))
    found = assess(table, original=table)
    said = str(found) + repr(found) + found.to_json() + found.to_html() + found._repr_html_()
    assert "canary" not in said
    assert "918273645" not in said


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        (None, InputError, "A shoal.Table is needed; got NoneType"),
        (pl.DataFrame(COLUMNS), InputError, "got DataFrame"),
        (people().keep(np.zeros(24, dtype=bool)), InputError, "no records"),
        (people().with_roles(Roles()), RolesError, "No quasi-identifiers are declared"),
    ],
)
def test_what_is_refused(table, error, said):
    with pytest.raises(error) as caught:
        assess(table)
    assert said in str(caught.value)


@pytest.mark.parametrize("which", ["original", "population"])
def test_frames_where_tables_belong(which):
    with pytest.raises(InputError, match=r"A shoal\.Table is needed; got DataFrame"):
        assess(people(), **{which: pl.DataFrame(COLUMNS)})


def test_frames_of_every_kind(frame):
    found = assess(Table(frame(COLUMNS), ROLES))
    assert found.to_dict() == assess(people()).to_dict()


def test_progress_is_told():
    said = []
    assess(people(), progress=lambda label, share: said.append(share))
    assert said == sorted(said)
    assert all(0 <= share < 1 for share in said)


def test_the_population_counts_for_everybody_who_links():
    roles = Roles(quasi_identifiers=["age"])
    sample = Table(pl.DataFrame({"age": [30, 41]}), roles)
    everyone = Table(pl.DataFrame({"age": [30, 30, 41, 41, 41]}), roles)
    found = assess(sample, population=everyone)
    assert found["marketer_risk"].value == pytest.approx((1 / 2 + 1 / 3) / 2)
    with pytest.raises(InputError, match="not both"):
        assess(sample, population=everyone, sampling_fraction=0.5)


def test_a_sample_says_what_it_lost():
    """Certainty is measured where somebody was left out, and its warnings are said in words."""
    table = Table(pl.DataFrame({"x": [1] * 6 + [2] * 6}), Roles(quasi_identifiers=["x"]))
    sample = table.keep(np.arange(12) < 8)
    found = assess(sample, original=table)
    assert found["certainty"].value == 1.0
    assert any("is 6-anonymous; the release is not" in note for note in found.notes)
    whole = assess(table, original=table)
    assert "certainty" not in whole.measurements
    assert any("nobody was left out" in note for note in whole.notes)


def test_a_measure_that_does_not_apply_leaves_the_rest_unharmed():
    """A masked sample that was read apart cannot be counted in its original."""
    original = Table(pl.DataFrame({"x": [11, 12, 13]}), Roles(quasi_identifiers=["x"]))
    masked = Table(pl.DataFrame({"x": ["1*", "1*"]}), Roles(quasi_identifiers=["x"]))
    found = assess(masked, original=original)
    assert "certainty" not in found.measurements
    assert any("certainty of membership was left out: 2 of 2" in note for note in found.notes)
    assert found["marketer_risk"].value == 0.5


def test_a_sampling_fraction_reaches_every_measure_that_asks():
    found = assess(people(), sampling_fraction=0.5)
    assert found["population_uniqueness"].details["sampling_fraction"] == 0.5
    assert found["individual_risk"].value == pytest.approx(np.log(2))  # all are unique
    assert "mean_dis" in found["suda"].details
