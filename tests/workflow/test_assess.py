"""Assessing: plain facts, in three forms, without a cell."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from shoal import Measurement, Roles, Round, Table, assess
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
    assert set(found.left_out) == set(discover_all_measures()) - set(found.measurements)
    assert (found.failed, found.notes) == ({}, ())
    assert found.left_out["journalist_risk"].startswith("pass a population table")
    assert found.left_out["total_variation"].endswith("(--original)")
    with pytest.raises(KeyError, match=r"'total_variation'\. It was left out: the original"):
        found["total_variation"]


def test_a_frame_with_its_roles_is_a_table():
    table = people()
    roles = table.roles.to_dict()
    assert assess(table.frame, roles=roles).to_dict() == assess(table).to_dict()
    assert assess(table, roles=table.roles).k == assess(table).k


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
    assert "cannot be paired" in found.left_out["unchanged_records"]
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
    assert (found.notes, found.left_out, found.failed) == ((), {}, {})
    with pytest.raises(InputError, match=r"no measure 'uniquenes'\. Did you mean 'uniqueness'\?"):
        assess(people(), measures=["uniquenes"])
    with pytest.raises(KeyError, match="Did you mean 'uniqueness'"):
        found["uniquenes"]


def test_forms():
    original = people()
    found = assess(Round(base=20).fit_transform(original), original=original)
    facts = json.loads(found.to_json())
    assert facts == found.to_dict()
    assert facts["k"] == 5
    assert facts["measurements"]["prosecutor_risk"]["value"] == 0.2
    json.dumps(facts, allow_nan=False)
    text = str(found)
    assert "k = 5" in text
    assert "highest prosecutor risk: 0.2" in text
    assert text.index("\nrisk:\n") < text.index("\nutility:\n")
    assert "share of records left unmasked: 0.08333 (baseline 1; lower is better)" in text
    assert "left out: individual_risk: pass a sampling fraction or a weight column" in text
    assert {m["about"] for m in facts["measurements"].values()} == {"risk", "utility"}
    assert facts["left_out"] == dict(found.left_out)
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
        (None, InputError, "needs a shoal.Table; got NoneType"),
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
    with pytest.raises(InputError, match=r"needs a shoal\.Table; got DataFrame"):
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
    assert str(found).count("is 6-anonymous; the release is not") == 1
    whole = assess(table, original=table)
    assert "certainty" not in whole.measurements
    assert whole.left_out["certainty"].startswith("nobody was left out")


def test_a_measure_that_does_not_apply_leaves_the_rest_unharmed():
    """A masked sample that was read apart cannot be counted in its original."""
    original = Table(pl.DataFrame({"x": [11, 12, 13]}), Roles(quasi_identifiers=["x"]))
    masked = Table(pl.DataFrame({"x": ["1*", "1*"]}), Roles(quasi_identifiers=["x"]))
    found = assess(masked, original=original)
    assert "certainty" not in found.measurements
    assert found.failed["certainty"].startswith("2 of 2 records")
    assert found.failed["journalist_risk"] == found.failed["certainty"]
    with pytest.raises(KeyError, match="It could not be measured: 2 of 2 records"):
        found["certainty"]
    assert str(found).count("could not be measured: certainty, journalist_risk: 2 of 2") == 1
    assert found["marketer_risk"].value == 0.5


def test_a_sample_is_counted_in_the_table_before_it():
    """Of 6 and 6 people 6 and 2 are released: 1/F is 1/6 for all, f/F 1 and 1/3."""
    table = Table(pl.DataFrame({"x": [1] * 6 + [2] * 6}), Roles(quasi_identifiers=["x"]))
    found = assess(table.keep(np.arange(12) < 8), original=table)
    assert found["journalist_risk"].per_record.tolist() == [1 / 6] * 8
    assert found["journalist_risk"].details["population"] == "the table before sampling"
    assert found["marketer_risk"].value == 2 / 8  # of who is known to be in it, as ever
    told = {one.measure: one for one in found.distributions}
    assert list(told) == ["journalist_risk", "certainty", "prosecutor_risk"]
    certain = told["certainty"].to_dict()
    assert certain["sampling_fraction"] == 8 / 12
    assert certain["share_above_fraction"] == 6 / 8
    assert certain["mean"] == pytest.approx((6 * 1 + 2 / 3) / 8)
    assert certain["quantiles"]["0.0"] == pytest.approx(1 / 3)
    assert certain["quantiles"]["0.5"] == 1
    assert told["prosecutor_risk"].to_dict()["share_above_fraction"] is None
    assert json.loads(found.to_json())["distributions"]["certainty"] == certain


def test_a_population_that_is_given_goes_before_the_original():
    table = Table(pl.DataFrame({"x": [1] * 6 + [2] * 6}), Roles(quasi_identifiers=["x"]))
    sample = table.keep(np.arange(12) < 8)
    everybody = Table(pl.DataFrame({"x": [1, 2] * 50}), Roles(quasi_identifiers=["x"]))
    found = assess(sample, original=table, population=everybody)
    assert found["journalist_risk"].value == 1 / 50
    assert assess(sample, original=table, sampling_fraction=0.5)["journalist_risk"].value == 1 / 4
    frame = table.frame.with_columns(w=pl.lit(25.0))
    weighted = Table(frame, Roles(quasi_identifiers=["x"], weight="w"))
    found = assess(weighted.keep(np.arange(12) < 8), original=weighted)
    assert found["journalist_risk"].value == 1 / 50


def test_quantiles_are_risks_that_somebody_has():
    table = Table(pl.DataFrame({"x": [1] * 2 + [2] * 2}), Roles(quasi_identifiers=["x"]))
    found = assess(table.keep(np.array([True, False, True, True])), original=table)
    told = {one.measure: one.quantiles for one in found.distributions}
    assert set(told["certainty"].values()) == {0.5, 1.0}
    assert told["certainty"]["0.25"] == 0.5


def test_a_sampling_fraction_reaches_every_measure_that_asks():
    found = assess(people(), sampling_fraction=0.5)
    assert found["population_uniqueness"].details["sampling_fraction"] == 0.5
    assert found["individual_risk"].value == pytest.approx(np.log(2))  # all are unique
    assert "mean_dis" in found["suda"].details


class TestAMapping:
    """An assessment holds its measurements by name, and a measurement is a number."""

    def test_names_and_measurements(self):
        found = assess(people())
        assert "marketer_risk" in found
        assert list(found) == list(found.keys()) == list(found.measurements)
        assert len(found) == len(found.values()) > 3
        assert dict(found)["uniqueness"] is found["uniqueness"]
        assert found
        assert found != assess(people())

    def test_what_is_not_there(self):
        found = assess(people())
        assert found.get("marketer_rsk") is None
        assert 0 not in found
        with pytest.raises(InputError, match="Did you mean 'marketer_risk'") as raised:
            found["marketer_rsk"]
        assert str(raised.value).startswith("The assessment has no measure")
        with pytest.raises(KeyError, match="'0'"):
            found[0]

    def test_a_frame(self):
        found = assess(people(), original=people())
        frame = found.to_frame()
        assert sorted(frame["measure"]) == sorted(found)
        for row in frame.iter_rows(named=True):
            one = found[row["measure"]]
            assert row["value"] == one.value or np.isnan(one.value)
            assert (row["low"], row["high"]) == (one.interval or (None, None))

    def test_a_number(self):
        one, other = Measurement("a", 0.25), Measurement("b", 0.5)
        assert one < 0.3 < other
        assert one <= 0.25 <= one
        assert other > one >= np.float64(0.25)
        assert one == 0.25 != other
        assert max(one, other) is other
        assert (float(one), f"{one:.1%}", hash(one)) == (0.25, "25.0%", hash(0.25))
        assert np.asarray([one, other], float).tolist() == [0.25, 0.5]
        assert not Measurement("a", float("nan")) > 0
        assert (1 - one, one - other, one + 1, 1 + one) == (0.75, -0.25, 1.25, 1.25)
        assert (2 * one, one * 2, one / other, 1 / other, round(one, 1)) == (0.5, 0.5, 0.5, 2, 0.2)
        with pytest.raises(TypeError):
            one < "0.3"  # noqa: B015 - the comparison is what fails
