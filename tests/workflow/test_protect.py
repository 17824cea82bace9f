"""Protecting: what is refused, what is warned about, and what a release holds."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import polars as pl
import pytest

from shoal import (
    AddNoise,
    KAnonymity,
    Limit,
    Plan,
    Roles,
    Round,
    Suppress,
    Table,
    protect,
)
from shoal.errors import (
    InputError,
    PlanError,
    RequirementNotMet,
    RolesError,
    UnprotectedColumnWarning,
)

from .samples import COLUMNS, ROLES, people, plan, thorough_plan


def test_a_release_in_memory():
    table = people()
    release = protect(table, plan())
    masked = release.masked
    assert masked.columns == ["age", "city", "diagnosis", "visits"]
    assert sorted(set(masked.frame["age"])) == [20, 40]
    assert (release.rows_before, len(masked)) == (24, 24)
    assert release.removed_identifiers == ("name",)
    (claim,) = release.claims
    assert (claim.key, claim.measured, claim.holds) == ("k_anonymity", 5, True)
    assert release.before.k == 1
    assert release.after.k == 5
    assert repr(release) == "Release: 24 rows; k_anonymity: 5"
    assert table.frame.equals(people().frame), "the original is as it was"


def test_requirements_of_every_kind():
    release = protect(people(), thorough_plan())
    assert [claim.key for claim in release.claims] == [
        "k_anonymity",
        "k_anonymity",
        "max_records_at_risk",
        "max_unchanged_records",
        "max_suppressed_cells",
    ]
    assert all(claim.holds for claim in release.claims)
    # ages 20 and 40 exist already, one record of each
    assert release.claims[3].measured == pytest.approx(2 / 24)


@pytest.mark.parametrize(
    ("require", "said"),
    [
        (KAnonymity(6), "the smallest class has 5, and 10 of 24 records are in classes"),
        (Limit("prosecutor_risk", at_most=0.1), "must be at most 0.1 and is 0.2"),
        (Limit("uniqueness", at_least=0.5), "must be at least 0.5 and is 0"),
        (Limit("unchanged_records", at_most=0), "share of records left unmasked must be at most 0"),
    ],
)
def test_a_requirement_that_does_not_hold(require, said):
    with pytest.raises(RequirementNotMet) as caught:
        protect(people(), Plan([Round(base=20)], require=[require]))
    assert said in str(caught.value)
    assert "Nothing was written." in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1


def test_all_reasons_are_given():
    with pytest.raises(RequirementNotMet) as caught:
        protect(people(), Plan(require=[KAnonymity(3), Limit("uniqueness", at_most=0)]))
    assert "k-anonymity" in str(caught.value)
    assert "unique records" in str(caught.value)


def test_every_record_taken_out():
    with pytest.raises(RequirementNotMet, match="every record"):
        protect(people(), Plan([Suppress(min_class_size=2)], require=[KAnonymity(2)]))


def test_every_column_taken_out():
    table = people().drop(["name", "diagnosis", "visits"])
    with pytest.raises(RequirementNotMet, match="every column"):
        protect(table, Plan([Suppress(max_distinct=0)], require=[KAnonymity(2)]))


def test_every_quasi_identifier_taken_out():
    """Nothing is left that an intruder knows: all records are one class."""
    release = protect(people(), Plan([Suppress(max_distinct=0)], require=[KAnonymity(24)]))
    assert release.masked.columns == ["diagnosis", "visits"]
    assert release.claims[0].measured == 24
    assert release.after["prosecutor_risk"].value == 1 / 24
    with pytest.raises(RequirementNotMet):
        protect(
            people(),
            Plan([Suppress(max_distinct=0)], require=[Limit("marketer_risk", at_most=0.01)]),
        )


def test_k_larger_than_the_table():
    with pytest.raises(InputError, match="k = 25 is larger than the table, which has 24 records"):
        protect(people(), plan(k=25))


@pytest.mark.parametrize("what", [None, COLUMNS, np.zeros((3, 2))])
def test_what_is_not_a_table(what):
    with pytest.raises(InputError, match="frame"):
        protect(what, plan())


@pytest.mark.parametrize(
    ("what", "cure"), [(5, "k=5"), ({"k": 5}, "from_dict"), (KAnonymity(5), r"sh\.Plan\(")]
)
def test_what_is_not_a_plan(what, cure):
    with pytest.raises(PlanError, match=cure):
        protect(people(), what)


class TestTheShortWays:
    """A frame for a table, a list or a path for a plan, k for both."""

    def test_a_list_of_steps_and_a_path(self, tmp_path):
        steps = [Round(base=20), Suppress(min_class_size=2)]
        Plan(steps).save(tmp_path / "plan.toml")
        for given in (steps, tuple(steps), tmp_path / "plan.toml", str(tmp_path / "plan.toml")):
            assert protect(people(), given).plan == Plan(steps)
        assert protect(people(), Round(base=20)).plan == Plan([Round(base=20)])

    @pytest.mark.parametrize("roles", [ROLES, ROLES.to_dict()])
    def test_a_frame_with_roles_and_k(self, frame, roles):
        release = protect(frame(COLUMNS), roles=roles, k=3)
        assert type(release.masked.frame) is frame.type
        assert [claim.key for claim in release.claims] == ["k_anonymity", "l_diversity"]
        assert release.after.k >= 3
        assert all(claim.holds for claim in release.claims)

    def test_without_a_sensitive_column_only_the_crowd_counts(self):
        roles = Roles(identifiers=["name"], quasi_identifiers=["age", "city"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprotectedColumnWarning)
            release = protect(pl.DataFrame(COLUMNS), roles=roles, k=4)
        assert [claim.key for claim in release.claims] == ["k_anonymity"]

    def test_k_takes_the_place_of_that_of_a_plan(self):
        with pytest.raises(RequirementNotMet, match="k = 9"):
            protect(people(), plan(k=5), k=9)

    def test_a_file(self, tmp_path):
        people().frame.write_parquet(tmp_path / "people.parquet")
        release = protect(tmp_path / "people.parquet", roles=ROLES, k=3)
        assert release.after.k >= 3

    def test_neither_a_plan_nor_k(self):
        with pytest.raises(PlanError, match="k=5"):
            protect(people())

    def test_roles_are_given_once(self):
        with pytest.raises(RolesError, match="already"):
            protect(people(), plan(), roles=Roles(quasi_identifiers=["age"]))
        with pytest.raises(RolesError, match="dict"):
            protect(people().frame, k=3, roles=["age"])


def test_no_records_and_no_quasi_identifiers():
    with pytest.raises(InputError, match="no records"):
        protect(people().keep(np.zeros(24, dtype=bool)), plan())
    with pytest.raises(RolesError, match="No quasi-identifiers"):
        protect(people().with_roles(Roles(insensitive=people().columns)), plan())


# -- roles


def test_identifiers_never_reach_the_masked_table():
    """Also where a step names every column, and where the name is a pattern to polars."""
    frame = pl.DataFrame({"^b": ["canary-7d1f"] * 4, "b": [1, 1, 2, 2], "*": list("wxyz")})
    roles = Roles(identifiers=["^b", "*"], quasi_identifiers=["b"], unit="row")
    release = protect(Table(frame, roles), Plan([Round(base=10)]))
    assert release.masked.columns == ["b"]


def test_an_undeclared_identifier_is_refused():
    frame = people().frame.with_columns(
        pl.Series("contact", [f"canary{i}@example.org" for i in range(24)])
    )
    with pytest.raises(RolesError, match="'contact'") as caught:
        protect(Table(frame, ROLES), plan())
    assert "canary" not in str(caught.value)
    assert "insensitive" in str(caught.value), "says how to let it pass"
    knowingly = ROLES.replacing(insensitive=("visits", "contact"))
    assert "contact" in protect(Table(frame, knowingly), plan()).masked.columns


def test_roles_from_the_plan():
    bare = Table(pl.DataFrame(COLUMNS))
    release = protect(bare, Plan([Round(base=20)], require=[KAnonymity(3)], roles=ROLES))
    assert release.masked.columns == ["age", "city", "diagnosis", "visits"]
    assert release.audit["roles"] == ROLES.to_dict()


def test_roles_of_plan_and_table_that_contradict():
    with pytest.raises(RolesError, match="different roles"):
        protect(people(), Plan(roles=Roles(quasi_identifiers=["age"])))


def test_roles_of_the_plan_that_do_not_fit():
    with pytest.raises(RolesError, match="'zip', which the table does not have"):
        protect(Table(pl.DataFrame(COLUMNS)), Plan(roles=Roles(quasi_identifiers=["zip"])))


# -- warnings


def test_columns_without_a_role_are_warned_about():
    table = people().with_roles(ROLES.replacing(insensitive=()))
    with pytest.warns(UnprotectedColumnWarning, match=r"'visits'.* single out 0 of 24 records"):
        protect(table, plan())


def test_the_warning_about_a_weight_can_be_obeyed():
    frame = people().frame.with_columns(visits=10 + 10 * pl.col("visits"))
    table = Table(frame, ROLES.replacing(insensitive=(), weight="visits"))
    with pytest.warns(UnprotectedColumnWarning, match="'round'") as told:
        protect(table, plan())
    assert not any("insensitive" in str(one.message) for one in told)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprotectedColumnWarning)
        protect(table, plan().replacing(steps=[*plan().steps, Round(base=20, columns=["visits"])]))


def test_a_plan_that_changes_nothing_is_warned_about():
    with pytest.warns(UnprotectedColumnWarning, match="changed no quasi-identifier"):
        protect(people(), Plan([Round(base=0.5)]))


def test_no_warning_where_all_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        protect(people(), plan())


# -- order


def test_rows_are_shuffled_differently_each_time():
    orders = {tuple(protect(people(), plan()).masked.row_key) for _ in range(3)}
    assert len(orders) == 3
    for order in orders:
        assert sorted(order) == list(range(24))
        assert order != tuple(range(24))


def test_keep_order():
    release = protect(people(), plan(keep_order=True))
    assert release.masked.row_key.tolist() == list(range(24))
    assert release.masked.frame["diagnosis"].to_list() == COLUMNS["diagnosis"]


def test_a_row_stays_whole_in_the_shuffle():
    release = protect(people(), plan())
    for key, row in zip(
        release.masked.row_key, release.masked.frame.iter_rows(named=True), strict=True
    ):
        assert row["diagnosis"] == COLUMNS["diagnosis"][key]
        assert row["city"] == COLUMNS["city"][key]
        assert row["visits"] == COLUMNS["visits"][key]


# -- the rest of what a release holds


def test_frames_of_every_kind(frame):
    release = protect(Table(frame(COLUMNS), ROLES), plan())
    assert type(release.masked.frame) is frame.type
    rows = zip(*frame.columns(release.masked.frame).values(), strict=True)
    expected = [
        (20 if age < 30 else 40, city, diagnosis, visits)
        for _, age, city, diagnosis, visits in zip(*COLUMNS.values(), strict=True)
    ]
    # 30 / 20 is 1.5, which goes to the even multiple: 40
    assert sorted(rows) == sorted(expected)


def test_columns_of_every_kind():
    """A profile, a measure and a file exist for each kind of column."""
    import datetime as dt
    from decimal import Decimal

    frame = pl.DataFrame(
        {
            "age": [1, 2] * 6,
            "span": [dt.timedelta(days=i) for i in range(12)],
            "clock": [dt.time(i) for i in range(12)],
            "moment": [dt.datetime(2020, 1, 1 + i) for i in range(12)],
            "day": [dt.date(2020, 1, 1 + i) for i in range(12)],
            "flag": [True, False, None] * 4,
            "wage": [Decimal(i) / 4 for i in range(12)],
            "huge": [2**63 - 1 - i for i in range(12)],
            "long": [1e16 + 2 * i for i in range(12)],
            "tiny": [5e-324 * i for i in range(12)],
            "wide": [1.7e308 * (-1) ** i for i in range(12)],
        }
    )
    roles = Roles(quasi_identifiers=frame.columns)
    for step in (Suppress(min_count=2), Round(base=4), Suppress(where="age = 1")):
        release = protect(Table(frame, roles), Plan([step]))
        assert {column.name for column in release.columns} == set(frame.columns)


def test_the_seed_and_the_condition_are_in_the_audit_only():
    steps = [
        Suppress(where="city = 'Jena'", target="records"),
        AddNoise(epsilon=1, random_state=987654321987),
    ]
    with pytest.warns():
        release = protect(people(), Plan(steps))
    audit = json.dumps(release.audit)
    assert "Jena" in audit
    assert "987654321987" in audit
    public = (
        repr(release)
        + repr(release.audit)
        + str([{**vars(s), "private": None} for s in release.steps])
    )
    assert "Jena" not in public
    assert "987654321987" not in public


def test_progress_is_told():
    said = []
    protect(people(), plan(), progress=lambda label, share: said.append((label, share)))
    assert said[0] == ("Masking: round", 0.0)
    assert ("Verifying what the plan requires", 0.0) in said
    assert all(0 <= share <= 1 for _, share in said)


def test_a_copy_of_an_identifier_is_refused():
    """Whatever its role, and also where one is a text and the other a number."""
    keys = [9_000_001 + 37 * i for i in range(60)]
    frame = pl.DataFrame({"pid": keys, "x": [str(key) for key in keys], "age": [30, 40] * 30})
    for extra in ({}, {"sensitive": ["x"]}, {"target": "x"}):
        table = Table(frame, Roles(identifiers=["pid"], quasi_identifiers=["age"], **extra))
        with pytest.raises(RolesError, match="'x' \\(a copy of the identifier 'pid'\\)"):
            protect(table, Plan([Round(base=20)]))
    known = Roles(identifiers=["pid"], quasi_identifiers=["age"], insensitive=["x"])
    assert "x" in protect(Table(frame, known), Plan([Round(base=20)])).masked.columns


def test_an_identifier_as_target_is_refused():
    frame = pl.DataFrame({"mail": [f"p{i}@example.org" for i in range(40)], "age": [30, 50] * 20})
    table = Table(frame, Roles(quasi_identifiers=["age"], target="mail"))
    with pytest.raises(RolesError, match="e-mail"):
        protect(table, Plan([Round(base=20)]))


def test_a_plan_that_changes_nothing_warns():
    table = Table(pl.DataFrame({"age": [30] * 5}), Roles(quasi_identifiers=["age"]))
    with pytest.warns(UnprotectedColumnWarning, match="changed no quasi-identifier"):
        protect(table, Plan(require=[KAnonymity(5)]))


def test_the_release_forgets_categories_that_no_row_has():
    towns = ["Aa", "Bb"] * 10 + ["RARECANARY"]
    frame = pl.DataFrame({"town": pl.Series(towns, dtype=pl.Enum(["Aa", "Bb", "RARECANARY"]))})
    table = Table(frame, Roles(quasi_identifiers=["town"]))
    release = protect(table, Plan([Suppress(min_class_size=2)], require=[KAnonymity(2)]))
    assert b"RARECANARY" not in pickle.dumps(release.masked)
