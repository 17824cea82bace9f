"""Suggested roles: the rules one by one, and tables whose roles are known."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from shoal.errors import ParameterError
from shoal.table._roles import Roles
from shoal.table._table import Table
from shoal.table.suggestion._column_sets import distinction_and_separation, pool_size
from shoal.table.suggestion._suggest import suggest_roles

ROWS = 400


@pytest.fixture
def people():
    draw = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "mail": [f"p{i}@example.org" for i in range(ROWS)],
            "member_no": range(5000, 5000 + ROWS),
            "age": draw.integers(18, 90, ROWS),
            "gender": draw.choice(["f", "m"], ROWS),
            "visited": [date(2020, 1, 1) + timedelta(int(d)) for d in draw.integers(0, 300, ROWS)],
            "reading_rounded": draw.normal(5, 1, ROWS).round(1),
            "branch_code": draw.integers(0, 30, ROWS),
            "rare_flag": draw.random(ROWS) < 0.02,
            "reading": draw.normal(0, 1, ROWS),
            "diagnosis": draw.choice(["a", "b", "c"], ROWS),
            "final_weight": draw.uniform(1, 900, ROWS),
            "constant": ["x"] * ROWS,
            "empty": pl.Series([None] * ROWS, dtype=pl.Int64),
        }
    )


def test_every_rule(people):
    found = suggest_roles(people)
    assert found.roles == Roles(
        identifiers=["mail", "member_no"],
        quasi_identifiers=["age", "gender", "visited", "branch_code", "reading"],
        sensitive=["diagnosis"],
        weight="final_weight",
    )
    reasons = {facts.name: facts.reason for facts in found.columns}
    assert reasons["mail"].startswith("e-mail address (100.0 %")
    assert "refers to age" in reasons["age"]
    assert "date" in reasons["visited"]
    assert "best set" in reasons["branch_code"]
    assert "100.0 distinct" in reasons["reading"]
    assert "measurement" in reasons["reading_rounded"]
    assert "same value" in reasons["constant"]
    assert "missing" in reasons["empty"]
    assert all(reasons.values())


def test_facts_of_a_column():
    frame = pl.DataFrame({"code": ["a", "a", "b", None]})
    facts = suggest_roles(frame).column("code")
    assert (facts.kind, facts.distinct, facts.missing) == ("text", 2, 0.25)
    assert facts.distinction == 0.75  # missing counts as a value
    assert facts.separation == pytest.approx(5 / 6)


def test_the_roles_fit_the_table(people):
    roles = suggest_roles(people).roles
    assert Table(people, roles).roles == roles


def test_takes_a_table_and_every_frame(frame):
    made = frame({"email": ["a@example.org", "b@example.org", None], "age": [30, 41, 30]})
    expected = {"identifiers": ["email"], "quasi_identifiers": ["age"]}
    assert suggest_roles(made).roles.to_dict() == expected
    assert suggest_roles(Table(made)).roles.to_dict() == expected


def test_the_grown_set_is_suggested_if_names_mean_nothing():
    draw = np.random.default_rng(2)
    frame = pl.DataFrame({f"v{i}": draw.integers(0, 6, 2000) for i in range(8)})
    found = suggest_roles(frame)
    assert set(found.sets[-1].columns) <= set(found.roles.quasi_identifiers)
    assert found.sets[-1].grown


def test_a_name_next_to_its_number_is_an_identifier_too():
    draw = np.random.default_rng(3)
    who = draw.integers(0, 100, 1000)
    frame = pl.DataFrame(
        {
            "utility_id": who,
            "plant": [f"plant {w}" for w in who],
            "month": draw.integers(0, 12, 1000),
        }
    )
    found = suggest_roles(frame)
    assert found.roles.identifiers == ("utility_id", "plant")
    assert "'utility_id'" in found.column("plant").reason


def test_an_amount_next_to_a_number_is_not_an_identifier():
    draw = np.random.default_rng(3)
    frame = pl.DataFrame({"record_id": range(1000), "spent": draw.permutation(9000)[:1000]})
    assert suggest_roles(frame).roles.identifiers == ("record_id",)


def test_a_weight_must_be_positive_everywhere():
    frame = pl.DataFrame({"pwgtp": [0, 3, 9, 4], "sampling_weight": [1.0, None, 2.0, 3.0]})
    assert suggest_roles(frame).roles.weight is None
    frame = pl.DataFrame({"pwgtp": [5, 3, 9, 4], "wgtp": [1, 2, 2, 4]})
    assert suggest_roles(frame).roles.weight == "pwgtp"
    assert "'pwgtp'" in suggest_roles(frame).column("wgtp").reason


def test_the_weight_of_a_body_is_not_a_sampling_weight():
    bodies = pl.DataFrame({"weight": np.random.default_rng(0).normal(75, 12, 300).round(1)})
    assert suggest_roles(bodies).roles.weight is None
    spread = pl.DataFrame({"weight": np.random.default_rng(0).lognormal(5, 2, 300)})
    assert suggest_roles(spread).roles.weight == "weight"


def test_a_class_label_is_the_target():
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "class": ["x", "y", "x", "y"]})
    assert suggest_roles(frame).roles.target == "class"


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame(),
        pl.DataFrame({"age": []}, schema={"age": pl.Int64}),
        pl.DataFrame({"age": [31]}),
        pl.DataFrame({"größe": [1, 2], "名前": ["x", "y"]}),
        pl.DataFrame({"a": [None, None]}),
        pl.DataFrame({"t": [timedelta(1), timedelta(2)], "b": [True, None]}),
        pl.DataFrame({"d": pl.Series(["1.25", "2.50"]).cast(pl.Decimal(10, 2))}),
    ],
)
def test_odd_frames(frame):
    found = suggest_roles(frame)
    assert [facts.name for facts in found.columns] == frame.columns
    assert json.loads(json.dumps(found.to_dict()))["rows"] == frame.height
    assert str(found)
    found.roles.check(frame.columns)


def test_a_wide_table_is_bounded_and_says_so():
    draw = np.random.default_rng(4)
    frame = pl.DataFrame({f"v{i}": draw.integers(0, 2 + i, 100) for i in range(60)})
    found = suggest_roles(frame, max_set_size=2)
    assert any("compared in sets" in note for note in found.notes)
    compared = {name for one in found.sets for name in one.columns}
    assert len(compared) <= pool_size(100, 2)


@pytest.mark.parametrize("rows", [0, 10, 10**5, 10**6, 10**8])
def test_the_pool_shrinks_with_the_rows(rows):
    assert 8 <= pool_size(rows, 3) <= pool_size(max(rows // 10, 0), 3)


def test_a_million_rows_of_twelve_columns_are_compared_whole():
    assert pool_size(1_121_894, 3) >= 12


def test_the_sets_are_ranked():
    draw = np.random.default_rng(5)
    frame = pl.DataFrame({f"v{i}": draw.integers(0, 3 + 4 * i, 500) for i in range(6)})
    sets = suggest_roles(frame).sets
    assert {len(one.columns) for one in sets} >= {1, 2, 3}
    for size in (1, 2, 3):
        strengths = [s.distinction + s.separation for s in sets if len(s.columns) == size]
        assert strengths == sorted(strengths, reverse=True)


def test_max_set_size_is_checked():
    for size in (0, 6, 2.5):
        with pytest.raises(ParameterError, match=f"integer from 1 to 5. Got {size} instead"):
            suggest_roles(pl.DataFrame({"a": [1]}), max_set_size=size)


def test_ratios_of_no_record_and_of_one():
    assert distinction_and_separation(np.array([], dtype=np.int64)) == (0.0, 0.0)
    assert distinction_and_separation(np.array([1])) == (1.0, 0.0)


def test_no_output_shows_a_cell():
    secret = [f"Zebulon-{i:03d}" for i in range(50)]
    found = suggest_roles(pl.DataFrame({"who": secret, "age": range(50)}))
    for view in (str(found), repr(found), json.dumps(found.to_dict())):
        assert "Zebulon" not in view


def test_reads_well_in_a_terminal(people):
    lines = str(suggest_roles(people)).splitlines()
    assert lines[0] == "Suggested roles (400 records, 13 columns)"
    assert "  identifiers: mail, member_no" in lines
    assert any(line.startswith("column ") and line.endswith("because") for line in lines)


KNOWN = {
    "uci/adult": Roles(
        quasi_identifiers=[
            "age", "workclass", "education", "education-num", "marital-status", "occupation",
            "relationship", "race", "sex", "hours-per-week", "native-country",
        ],
        sensitive=["capital-gain", "capital-loss", "income"],
        weight="fnlwgt",
    ),
    "microdata/sdcmicro_testdata": Roles(
        identifiers=["ori_hid"],
        quasi_identifiers=["urbrur", "water", "relat", "sex", "age", "hhcivil"],
        sensitive=["expend", "income", "savings"],
        weight="sampling_weight",
        household="ori_hid",
    ),
}  # fmt: skip
IDENTIFIERS = {
    "large/diabetes_130us": ("encounter_id", "patient_nbr"),
    "large/cps_taxunits": ("h_seq", "RECID"),
    "openml/nass_cds": ("caseid",),
    "openml/splice": ("Instance_name",),
    "openml/bank_marketing": (),
    "openml/churn": (),
    "microdata/gss_wages": (),
    "casc/eia": ("UTILITYID", "UTILNAME"),
    "casc/census": (),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_roles(shared_data, name):
    frame = pl.read_parquet(shared_data / f"{name}.parquet")
    assert suggest_roles(frame).roles == KNOWN[name]


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_known_identifiers(shared_data, name):
    frame = pl.read_parquet(shared_data / f"{name}.parquet")
    if frame.height > 50_000:
        frame = frame.head(50_000)
    assert suggest_roles(frame, max_set_size=1).roles.identifiers == IDENTIFIERS[name]
