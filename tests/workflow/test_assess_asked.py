"""What an assessment is asked for: measures by name, their options, columns known, a control."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Measurement, Round, Swap, Table, assess, protect
from shoal.errors import InputError
from shoal.measurement import MeasureInfo
from shoal.workflow import discover_all_measures
from shoal.workflow._assess import _OF_A_RELEASE

from .samples import ROLES, people, plan


@pytest.fixture
def invented(monkeypatch):
    """A measure that is found by discovery in place of another, and tells what it was given."""
    calls = []

    def add(function, name="total_variation", **declared):
        infos = dict(discover_all_measures())
        infos[name] = MeasureInfo(name, "invented", "lower", (0, 1), function, **declared)
        for module in ("_assess", "_assessment", "report._assessment"):
            monkeypatch.setattr(f"shoal.workflow.{module}.discover_all_measures", lambda: infos)
        return calls

    return add


def telling(calls):
    def measure(original, masked, *, known=None, control=None, sample=10):
        calls.append({"known": known, "control": control, "sample": sample})
        return Measurement("total_variation", 0.5)

    return measure


def masked_people():
    original = people()
    return Round(base=20).fit_transform(original), original


def test_all_are_also_those_on_request():
    masked, original = masked_people()
    usual = assess(masked, original=original)
    everything = assess(masked, original=original, measures="all")
    assert "household_risk" in usual.left_out
    assert "household_risk" in everything.failed  # it was tried, and says what it lacks
    assert set(usual.measurements) <= set(everything.measurements)


def test_all_are_no_choice_of_some():
    original = people()
    masked = Swap(k=3).fit_transform(original)
    assert assess(masked, original=original, measures="all").swapping is not None
    assert assess(masked, original=original, measures=["suda"]).swapping is None


def test_options_reach_their_measure():
    masked, original = masked_people()
    found = assess(
        masked,
        original=original,
        options={"distance_linkage": {"known": ["visits"]}, "suda": {"size": 1}},
    )
    assert found["distance_linkage"].details["known"] == ["visits"]
    assert found["suda"].value == 0
    assert "uniqueness" in found.measurements  # options ask for one measure more, not for less


def test_options_ask_for_what_is_left_out_otherwise():
    frame = people().frame.with_columns(home=pl.Series([i // 2 for i in range(24)]))
    table = Table(frame, ROLES.replacing(insensitive=["visits", "home"]))
    options = {"household_risk": {"household": "home", "sampling_fraction": 0.5}}
    assert "household_risk" in assess(table, options=options).measurements
    only = assess(table, measures=["uniqueness"], options=options)
    assert set(only.measurements) == {"uniqueness", "household_risk"}


def test_the_threshold_stays_beside_other_options():
    found = assess(people(), threshold=0.5, options={"records_at_risk": {"missing": "wildcard"}})
    assert found["records_at_risk"].details["threshold"] == 0.5
    found = assess(people(), threshold=0.5, options={"records_at_risk": {"threshold": 0.9}})
    assert found["records_at_risk"].details["threshold"] == 0.9


def test_what_an_intruder_knows_and_a_control_reach_all_that_ask(invented):
    masked, original = masked_people()
    calls = invented([].append)
    invented(telling(calls))
    assess(masked, original=original)
    assess(masked, original=original, known=["visits"], control=original)
    own = {"total_variation": {"known": ["age"], "sample": 3}}
    found = assess(masked, original=original, known=["visits"], options=own)
    assert calls == [
        {"known": None, "control": None, "sample": 10},
        {"known": ["visits"], "control": original, "sample": 10},
        {"known": ["age"], "control": None, "sample": 3},
    ]
    assert found["distance_linkage"].details["known"] == ["visits"]


def test_a_word_for_what_is_known_is_left_to_the_attacks(invented):
    masked, original = masked_people()
    calls = invented([].append)
    invented(telling(calls))
    assess(masked, original=original, known="informed")
    assert calls[0]["known"] == "informed"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"measures": "uniqueness"}, "uniqueness"),
        ({"measures": []}, "measures"),
        ({"measures": 3}, "measures"),
        ({"measures": [3]}, "There is no measure '3'"),
        ({"options": [1]}, "options"),
        ({"options": {"sudda": {}}}, "There is no measure 'sudda'. Did you mean 'suda'?"),
        ({"options": {"suda": 3}}, "The options of 'suda' must be a dict"),
        ({"options": {"suda": {"siz": 3}}}, "has no option 'siz'. Did you mean 'size'?"),
        ({"options": {"suda": {"table": 3}}}, "has no option 'table'"),
        ({"known": ["agee"]}, "agee"),
        ({"known": "age"}, "or one of the words 'quasi-identifiers', 'left-in-place'"),
        ({"known": []}, "must be a list of column names"),
        ({"known": [1]}, "must be a list of column names"),
        ({"control": pl.DataFrame({"age": [1]})}, "needs a shoal.Table; got DataFrame"),
        ({"control": people().keep(np.zeros(24, bool))}, "The control table has no records"),
        ({"original": people().keep(np.zeros(24, bool))}, "The original has no records"),
        (
            {"measures": ["certainty"]},
            "Nothing could be measured. certainty: the original is needed",
        ),
    ],
)
def test_a_wrong_question_is_an_error(asked, said):
    with pytest.raises(InputError) as caught:
        assess(people(), **asked)
    assert said in str(caught.value)


def test_a_measure_that_breaks_spoils_no_other_one_and_quotes_no_cell(invented):
    def broken(original, masked):
        raise ZeroDivisionError("canary-7d1f")

    invented(broken)
    masked, original = masked_people()
    found = assess(masked, original=original)
    assert found.failed == {
        "total_variation": "An unexpected error occurred (ZeroDivisionError); please report it."
    }
    assert "suppressed_cells" in found.measurements
    said = str(found) + found.to_json() + found.to_html() + found._repr_html_()
    assert "canary" not in said
    assert said.count("unexpected error occurred (ZeroDivisionError)") == 4


def test_a_release_takes_what_is_quick_and_nothing_that_was_not_asked_for():
    found = protect(people(), plan())
    for assessment in (found.before, found.after):
        assert set(assessment.measurements) | set(assessment.left_out) == set(_OF_A_RELEASE)
        assert assessment.failed == {}
    assert found.after["total_variation"].value > 0


def test_a_user_who_stops_is_heard(invented):
    def stopped(original, masked):
        raise KeyboardInterrupt

    invented(stopped)
    masked, original = masked_people()
    with pytest.raises(KeyboardInterrupt):
        assess(masked, original=original)


def test_no_measure_breaks_on_an_ordinary_table():
    """What is left out or refused is said in words; an unexpected error is a defect."""
    masked, original = masked_people()
    table = original.with_roles(ROLES.replacing(target="diagnosis"))
    for given in (table, masked, table.keep(np.arange(24) < 9)):
        found = assess(given, original=table, measures="all")
        assert not [said for said in found.failed.values() if "unexpected" in said]
