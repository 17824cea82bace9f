"""k counts persons, not rows: what a release with several rows per person may claim.

The classes are counted by plain SQL (sqlite), which knows nothing of Shoal.
"""

from __future__ import annotations

import json
import re
import sqlite3

import numpy as np
import polars as pl
import pytest

import shoal as sh
from shoal import Plan, Roles
from shoal.errors import DisclosureWarning, RequirementNotMet, RolesError

ROLES = {
    "identifiers": ["patient_id"],
    "quasi_identifiers": ["age", "zip"],
    "sensitive": ["diagnosis"],
}


def stays(patients=400, rows=5, seed=20261116):
    draw = np.random.default_rng(seed)
    who, turn = np.repeat(np.arange(patients), rows), np.tile(np.arange(rows), patients)
    return pl.DataFrame(
        {
            "patient_id": [f"P{n:05}" for n in who],
            "age": np.repeat(draw.integers(20, 90, patients), rows) + 7 * turn,
            "zip": np.repeat(draw.integers(10, 30, patients), rows),
            "diagnosis": draw.choice(["flu", "gout", "asthma", "hiv"], patients * rows),
        }
    )


def persons_per_class(release, original):
    """The smallest number of patients in a class of the released file, by SQL."""
    masked = release.masked
    whose = original["patient_id"].to_list()
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE r (age TEXT, zip TEXT, patient TEXT)")
    rows = zip(
        masked.frame["age"].to_list(),
        masked.frame["zip"].to_list(),
        (whose[key] for key in masked.row_key.tolist()),
        strict=True,
    )
    database.executemany("INSERT INTO r VALUES (?, ?, ?)", rows)
    query = "SELECT MIN(n) FROM (SELECT COUNT(DISTINCT patient) AS n FROM r GROUP BY age, zip)"
    return database.execute(query).fetchone()[0]


def table(frame, **more):
    return sh.Table(frame, Roles(**ROLES, **more))


def test_two_patients_with_five_rows_each_are_not_five():
    frame = pl.DataFrame(
        {
            "patient_id": ["P1"] * 5 + ["P2"] * 5,
            "age": [30] * 5 + [61] * 5,
            "zip": [10] * 5 + [20] * 5,
            "diagnosis": ["hiv", "flu"] * 5,
        }
    )
    plan = Plan([], require=[sh.KAnonymity(5), sh.LDiversity(2)])
    with pytest.raises(RolesError, match="unit") as refused:
        sh.protect(table(frame), plan)
    assert "10 rows" in str(refused.value)
    assert "2 different" in str(refused.value)
    with pytest.raises(sh.errors.UnreachableLevel, match="2 persons"):
        sh.protect(table(frame, unit="patient_id"), plan)


@pytest.mark.parametrize("algorithm", ["mondrian", "full-domain", "local"])
def test_four_hundred_patients_have_five_in_every_class(algorithm):
    frame = stays()
    plan = Plan(
        [sh.Generalize(algorithm, k=5, models=sh.LDiversity(2))],
        require=[sh.KAnonymity(5), sh.LDiversity(2)],
    )
    release = sh.protect(table(frame, unit="patient_id"), plan)
    assert persons_per_class(release, frame) >= 5
    assert "patient_id" not in release.masked.columns


def test_each_row_a_person_all_the_same():
    frame = stays(patients=40)
    release = sh.protect(
        table(frame, unit="row"), Plan([sh.Generalize("mondrian", k=5)], require=[sh.KAnonymity(5)])
    )
    assert persons_per_class(release, frame) < 5
    assert release.after.classes.persons is None


@pytest.mark.filterwarnings("ignore::shoal.errors.UnprotectedColumnWarning")
def test_rows_of_one_person_are_refused_as_a_crowd():
    """Every row is five-fold, and every class is one patient: USERS.md A1."""
    frame = pl.DataFrame(
        {
            "patient_id": [f"P{n // 5}" for n in range(50)],
            "age": [20 + n // 5 for n in range(50)],
            "zip": [10] * 50,
            "diagnosis": ["flu", "gout", "flu", "hiv", "flu"] * 10,
        }
    )
    with pytest.raises(RequirementNotMet, match="persons"):
        sh.protect(table(frame, unit="patient_id"), Plan([], require=[sh.KAnonymity(5)]))


def saved(tmp_path, frame, plan, **more):
    release = sh.protect(table(frame, unit="patient_id"), plan)
    return release.save(tmp_path / "out", **more), release


PLAN = Plan(
    [sh.Generalize("mondrian", k=5, models=sh.LDiversity(2))],
    require=[sh.KAnonymity(5), sh.LDiversity(2)],
)


class TestVerification:
    @pytest.fixture
    def frame(self):
        return stays(patients=60, rows=3)

    def test_both_halves_and_the_original_agree(self, tmp_path, frame):
        folder, _ = saved(tmp_path, frame, PLAN, format="csv")
        checked = sh.verify(folder, original=sh.Table(frame))
        assert checked.holds
        assert {c.name: c.status for c in checked.checks}["whose rows they are"] == "passed"
        facts = json.loads((folder / "public/release.json").read_text())
        assert facts["data"]["persons"] == 60

    def test_the_public_half_alone_shows_no_persons(self, tmp_path, frame):
        folder, _ = saved(tmp_path, frame, PLAN, format="csv")
        statuses = {c.name: c.status for c in sh.verify(folder / "public").checks}
        assert statuses["claim k_anonymity"] == "skipped"
        assert statuses["measured values"] == "skipped"

    def test_more_persons_than_rows_are_a_lie(self, tmp_path, frame):
        folder, _ = saved(tmp_path, frame, PLAN, format="csv")
        path = folder / "public/release.json"
        facts = json.loads(path.read_text())
        facts["claims"][0]["measured"] = 500
        path.write_text(json.dumps(facts))
        assert not sh.verify(folder / "public").holds

    def test_rows_given_to_other_persons_are_found(self, tmp_path, frame):
        folder, _ = saved(tmp_path, frame, PLAN, format="csv")
        other = frame.with_columns(patient_id=frame["patient_id"].shuffle(seed=1))
        checked = sh.verify(folder, original=sh.Table(other))
        assert {c.name: c.status for c in checked.checks}["whose rows they are"] == "failed"


class TestPseudonyms:
    def test_a_pseudonym_tells_rows_of_a_person_and_nothing_else(self, tmp_path):
        frame = stays(patients=60, rows=3)
        plan = Plan(PLAN.steps, require=PLAN.require, pseudonyms=True)
        with pytest.warns(DisclosureWarning, match="histories"):
            folder, release = saved(tmp_path, frame, plan, format="csv")
        names = release.masked.frame["patient_id"].to_list()
        whose = [frame["patient_id"][key] for key in release.masked.row_key.tolist()]
        assert len(set(zip(names, whose, strict=True))) == len(set(names)) == 60
        assert not set(names) & set(whose)
        # the order of the names is not that of the persons
        by_person = [name for _, name in sorted(set(zip(whose, names, strict=True)))]
        assert by_person != sorted(by_person)
        assert {c.status for c in sh.verify(folder / "public").checks} <= {"passed", "skipped"}
        claims = {c.name: c.status for c in sh.verify(folder / "public").checks}
        assert claims["claim k_anonymity"] == "passed"
        assert sh.verify(folder, original=sh.Table(frame)).holds

    def test_pseudonyms_differ_from_release_to_release(self):
        frame = stays(patients=60, rows=2)
        plan = Plan(PLAN.steps, require=PLAN.require, pseudonyms=True, keep_order=True)
        with pytest.warns(DisclosureWarning):
            one, two = (
                sh.protect(table(frame, unit="patient_id"), plan).masked.frame for _ in range(2)
            )
        assert one["patient_id"].to_list() != two["patient_id"].to_list()

    def test_without_a_unit_there_is_nobody_to_name(self):
        frame = stays(patients=60, rows=1)
        with pytest.raises(RolesError, match="unit"):
            sh.protect(table(frame), Plan(PLAN.steps, pseudonyms=True))


@pytest.mark.parametrize(
    ("entry", "value"), [("persons", 1), ("persons", 10**9), ("rarest_history", 10**6)]
)
def test_impossible_numbers_of_persons_fail_without_the_private_half(tmp_path, entry, value):
    folder, _ = saved(tmp_path, stays(patients=60, rows=3), PLAN, format="csv")
    path = folder / "public/release.json"
    facts = json.loads(path.read_text())
    facts["data" if entry == "persons" else "measured"][entry] = value
    path.write_text(json.dumps(facts))
    assert not sh.verify(folder / "public").holds


def test_an_audit_that_denies_the_unit_of_the_original_fails(tmp_path):
    frame = stays(patients=60, rows=3)
    release = sh.protect(table(frame, unit="row"), PLAN)
    folder = release.save(tmp_path / "out", format="csv")
    assert not sh.verify(folder, original=table(frame, unit="patient_id")).holds


def test_the_first_order_shows_histories():
    plan = Plan(PLAN.steps, require=PLAN.require, keep_order=True)
    with pytest.warns(DisclosureWarning, match="histories"):
        sh.protect(table(stays(patients=60, rows=3), unit="patient_id"), plan)


def test_a_pipeline_gives_out_no_identifier_and_stops_where_protect_does():
    frame = stays(patients=60, rows=3)
    plan = Plan([sh.Generalize("mondrian", k=5)], require=[sh.KAnonymity(5)])
    with pytest.raises(RolesError, match="unit"):
        sh.Protector(plan, roles=Roles(**ROLES)).fit(frame)
    given = sh.Protector(plan, roles=Roles(**ROLES, unit="patient_id"), encode="text")
    masked = given.fit_transform(frame)
    assert "patient_id" not in masked.columns
    assert "patient_id" not in given.transform(frame).columns


def test_a_public_half_alone_says_that_it_counts_rows(tmp_path):
    from shoal.workflow import read_release

    folder, _ = saved(tmp_path, stays(patients=60, rows=3), PLAN, format="csv")
    with pytest.warns(DisclosureWarning, match="private half"):
        read_release(folder / "public")


def test_people_are_held_out_whole():
    from shoal.study.tuning._tune import searched_and_held_out

    frame = pl.DataFrame(
        {"pid": [n % 60 for n in range(1200)], "age": [n % 40 for n in range(1200)]}
    )
    seen, apart = searched_and_held_out(
        sh.Table(frame, Roles(unit="pid", quasi_identifiers=["age"])), 0.25
    )
    assert (seen.person_count, apart.person_count) == (45, 15)


def test_assessments_report_both_readings():
    found = sh.assess(table(stays(patients=30, rows=2), unit="patient_id"))
    facts = found.to_dict()["classes"]
    assert (facts["count_of"], facts["persons"]) == ("persons", 30)
    assert facts["rarest_history"] == 1
    assert any("history" in note for note in found.notes)
    rows = sh.assess(table(stays(patients=30, rows=2)))
    assert any("unit" in note for note in rows.notes)


def test_no_person_in_any_public_byte(tmp_path):
    frame = stays(patients=60, rows=3)
    for format in ("csv", "parquet"):
        folder, _ = saved(tmp_path / format, frame, PLAN, format=format)
        content = b"".join(path.read_bytes() for path in (folder / "public").iterdir())
        assert not any(name.encode() in content for name in frame["patient_id"].unique())


@pytest.mark.parametrize(
    "step",
    [sh.Generalize("mondrian", k=5), sh.TopBottomCode(fence=0.2)],
    ids=lambda step: step.method,
)
def test_no_end_is_the_value_of_one_person_with_several_rows(step):
    ages = [21 + 3 * p for p in range(60)]
    frame = pl.DataFrame({"pid": [p for p in range(60) for _ in "ab"], "age": np.repeat(ages, 2)})
    given = sh.Table(frame, Roles(unit="pid", quasi_identifiers=["age"]))
    masked = step.fit_transform(given).frame["age"]
    changed = masked.filter(masked.cast(pl.String) != frame["age"].cast(pl.String))
    ends = {end for text in changed.cast(pl.String) for end in re.findall(r"[0-9.]+", text)}
    assert ends
    assert not ends & {str(age) for age in ages}
    recode = sh.Recode(magnitude=0.5)
    recode.fit_transform(given)
    assert recode.ranges_["age"][0] not in ages


def test_the_rows_of_one_person_who_was_taken_out_are_not_counted(tmp_path):
    rows = [(0, 99)] * 25 + [(p, 30 + p % 3) for p in range(1, 300) for _ in range(1 + p % 3)]
    frame = pl.DataFrame(rows, schema=["pid", "age"], orient="row")
    given = sh.Table(frame, Roles(unit="pid", quasi_identifiers=["age"]))
    release = sh.protect(given, Plan([sh.Suppress(min_class_size=2)], require=[sh.KAnonymity(2)]))
    folder = release.save(tmp_path / "out", format="csv")
    facts = json.loads((folder / "public/release.json").read_text())
    assert facts["records_removed"] == "some"
    assert facts["methods"][0]["records_removed"] == "some"


def test_redraw_counts_the_persons_who_have_a_value():
    rows = []
    for p in range(300):
        fails = p // 15 % 3 == 0
        value = "lo" if fails or p % 2 == 0 else "hi"
        rows += [(p, 30 + p // 15, value, 7919 * p % 100_003)] * (1 if fails else 12)
    frame = pl.DataFrame(rows, schema=["pid", "age", "income", "salary"], orient="row")
    given = Roles(unit="pid", quasi_identifiers=["age"], sensitive=["income", "salary"])
    with pytest.raises(RequirementNotMet, match="copy"):
        sh.Redraw(sh.LDiversity(2, column="income")).fit_transform(sh.Table(frame, given))
