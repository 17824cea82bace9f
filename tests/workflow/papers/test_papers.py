"""Metadata files and pages of a release: what they say, what they never say, and their checks."""

from __future__ import annotations

import datetime as dt
import json
import warnings
from xml.etree import ElementTree

import polars as pl
import pytest
from tests.workflow.samples import people, plan

from shoal import (
    Generalize,
    Hierarchy,
    KAnonymity,
    Plan,
    ProbabilisticKAnonymity,
    Roles,
    Swap,
    Table,
    TopBottomCode,
    k_curve,
    protect,
    read,
    verify,
)
from shoal.errors import InputError, PlanError, ShoalWarning
from shoal.workflow._plan_parts import PAGE_FILES
from shoal.workflow.papers._pages import private_pages
from shoal.workflow.papers._safe_harbor import SMALL_AREAS, safe_harbor
from shoal.workflow.report._words import percent

NAMES = {"frictionless": "datapackage.json", "csvw": "data.csv-metadata.json", "ddi": "ddi.xml"}
EVERYTHING = {"metadata": [*NAMES], "pages": [*PAGE_FILES], "recipient": "the public"}
DDI = "{ddi:codebook:2_5}"


@pytest.fixture(scope="module")
def patients():
    rows = range(200)
    frame = pl.DataFrame(
        {
            "patient": [f"P{n:05d}X" for n in rows],
            "birth_date": [dt.date(1941, 3, 7) + dt.timedelta(days=97 * n) for n in rows],
            "visits": [7_001 + 13 * n for n in rows],
            "rate é": [n / 8 for n in rows],
            "ill": ["yes", "no", "=no"] * 66 + ["yes", "no"],
            "seen": [dt.datetime(2025, 1, 1) + dt.timedelta(hours=31 * n) for n in rows],
        }
    )
    roles = Roles(
        identifiers=["patient"],
        quasi_identifiers=["birth_date", "visits"],
        sensitive=["ill"],
        insensitive=["rate é", "seen"],
    )
    return Table(frame, roles)


@pytest.fixture(scope="module")
def saved(patients, tmp_path_factory):
    made = Plan([Generalize("mondrian", k=5)], require=[KAnonymity(5)], release=EVERYTHING)
    return protect(patients, made).save(tmp_path_factory.mktemp("papers") / "release", format="csv")


def _text(saved, standard):
    return (saved / "public" / NAMES[standard]).read_text("utf-8")


def test_frictionless_accepts_the_package_and_the_data(saved):
    frictionless = pytest.importorskip("frictionless")
    report = frictionless.validate(str(saved / "public/datapackage.json"))
    assert report.valid, report.flatten(["note"])
    assert report.tasks[0].stats["rows"] == 200


def test_csvw_accepts_the_metadata_and_the_data(saved):
    csvw = pytest.importorskip("csvw")
    found = csvw.CSVW(str(saved / "public/data.csv-metadata.json"), validate=True)
    assert found.is_valid, found.warnings
    assert len(found.to_json()["tables"][0]["row"]) == 200


def test_ddi_describes_the_study_the_file_and_its_columns(saved):
    root = ElementTree.fromstring(_text(saved, "ddi"))
    assert [one.tag for one in root] == [f"{DDI}{n}" for n in ("stdyDscr", "fileDscr", "dataDscr")]
    # mandatory in DDI-Codebook 2.5: the study's citation with its title
    assert root.findtext(f"{DDI}stdyDscr/{DDI}citation/{DDI}titlStmt/{DDI}titl") == "data.csv"
    assert {var.get("files") for var in root.iter(f"{DDI}var")} == {"F1"}


@pytest.mark.parametrize("standard", NAMES)
def test_a_release_is_read_back_by_its_metadata(saved, standard):
    table = read(saved / "public/data.csv", metadata=saved / "public" / NAMES[standard])
    facts = json.loads((saved / "public/release.json").read_text("utf-8"))
    assert table.columns == [column["name"] for column in facts["data"]["columns"]]
    assert [table.kind(name) for name in table.columns] == [
        "text", "text", "float", "text", "datetime",
    ]  # fmt: skip


@pytest.mark.parametrize("standard", NAMES)
def test_metadata_hold_nothing_of_the_original(saved, patients, standard):
    text = _text(saved, standard)
    for never in ("patient", "P00000X", "7001", "9588", "1941-03-07", "200 ", "seed", "key"):
        assert never not in text.replace("titles", "")
    assert "Changed by: Generalization." in text
    assert "Not changed." in text


@pytest.mark.parametrize("name", NAMES.values())
def test_a_metadata_file_that_was_changed_fails_verification(saved, tmp_path, name):
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    assert verify(folder).holds
    with (folder / "public" / name).open("a") as file:
        file.write(" ")
    failed = [check.name for check in verify(folder).checks if check.status == "failed"]
    assert failed == ["metadata unchanged"]
    (folder / "public" / name).unlink()
    assert not verify(folder).holds


@pytest.mark.parametrize("name", PAGE_FILES.values())
def test_a_page_that_was_changed_or_lost_fails_verification(saved, tmp_path, name):
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    page = folder / "private" / name
    assert page.stat().st_mode & 0o077 == 0
    page.write_text("changed")
    assert not verify(folder).holds
    page.unlink()
    assert not verify(folder).holds


def test_csvw_does_not_describe_parquet(tmp_path):
    made = plan().replacing(release={"metadata": "csvw"})
    with pytest.raises(InputError, match="CSVW"):
        protect(people(), made).save(tmp_path / "release", format="parquet")
    assert not (tmp_path / "release").exists()


def test_labels_of_the_source_reach_the_release_but_only_for_values_in_it(tmp_path):
    rows = "".join(f"{20 + n},{'x' if n % 2 else 'y'},{n}\n" for n in range(60))
    (tmp_path / "p.csv").write_text(f"age,code,n\n{rows}", "utf-8")
    labels = [{"value": value, "label": f"label of {value}"} for value in ("x", "y", "gone")]
    fields = [
        {"name": "age", "type": "integer", "title": "Age in years", "description": "At entry."},
        {"name": "code", "type": "string", "categories": labels},
    ]
    package = {"resources": [{"path": "p.csv", "schema": {"fields": fields}}]}
    (tmp_path / "datapackage.json").write_text(json.dumps(package), "utf-8")
    roles = Roles(quasi_identifiers=["age"], insensitive=["code", "n"])
    made = Plan([Generalize(k=3)], roles=roles, release={"metadata": ["frictionless", "ddi"]})
    folder = protect(read(tmp_path / "p.csv"), made).save(tmp_path / "release", format="csv")
    written = json.loads((folder / "public/datapackage.json").read_text("utf-8"))
    age, code, _ = written["resources"][0]["schema"]["fields"]
    assert (age["title"], age["description"]) == (
        "Age in years",
        "At entry. Changed by: Generalization.",
    )
    assert [one["value"] for one in code["categories"]] == ["x", "y"]
    assert "gone" not in (folder / "public/ddi.xml").read_text("utf-8")


@pytest.mark.parametrize("format", ["csv", "dta"])
def test_labels_of_a_stata_file_reach_the_metadata(tmp_path, format):
    ps = pytest.importorskip("pyreadstat", reason="the extra 'stats' is not installed")
    frame = pl.DataFrame(
        {
            "age": list(range(20, 60)),
            "sex": [1, 2] * 20,
            "job": [1, 2, 3, 4] * 10,
            "wage": pl.Series(["a", 10.0, 20.0, 30.0] * 10, dtype=pl.Object),
        }
    )
    ps.write_dta(
        frame,
        str(tmp_path / "a.dta"),
        version=14,
        column_labels={"age": "Age in years"},
        variable_value_labels={
            "sex": {1: "male", 2: "female", 3: "nobody"},
            "job": {1: "baker", 2: "smith", 3: "miller", 4: "fisher"},
            "wage": {"a": "refused"},
        },
        missing_user_values={"wage": ["a"]},
    )
    jobs = Hierarchy.from_rows([["1", "{1, 3}"], ["3", "{1, 3}"], ["2", "{2, 4}"], ["4", "{2, 4}"]])
    steps = [
        Generalize(k=10, columns=["age"]),
        Generalize(k=20, levels={"job": 1}, hierarchies={"job": jobs}, columns=["job"]),
    ]
    roles = Roles(quasi_identifiers=["age", "job"], insensitive=["sex", "wage"])
    made = Plan(steps, roles=roles, release={"metadata": ["frictionless", "ddi"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        folder = protect(read(tmp_path / "a.dta"), made).save(tmp_path / "out", format=format)
    package = json.loads((folder / "public/datapackage.json").read_text("utf-8"))
    fields = {one["name"]: one for one in package["resources"][0]["schema"]["fields"]}
    assert fields["age"]["title"] == "Age in years"
    found = {
        n: {c["value"]: c["label"] for c in f.get("categories", [])} for n, f in fields.items()
    }
    assert found["sex"] == {1: "male", 2: "female"}
    assert {*found["job"].values()} == {"baker or miller", "smith or fisher"}
    if format == "csv":
        assert found["wage_reason"] == {".a": "refused"}
        assert {*found["job"]} == {"{1, 3}", "{2, 4}"}
        frictionless = pytest.importorskip("frictionless")
        assert frictionless.validate(str(folder / "public/datapackage.json")).valid
    else:
        assert {*found["job"]} == {1, 2}  # as the file holds them
        assert "wage_reason" not in fields  # its cells are those of the wage
    assert "nobody" not in (folder / "public/ddi.xml").read_text("utf-8")


# -- pages


@pytest.mark.parametrize("name", PAGE_FILES.values())
def test_pages_name_recipient_means_and_context_and_promise_nothing(saved, name):
    page = (saved / "private" / name).read_text("utf-8")
    assert "is anonymous" not in page.lower()
    for word in ("Recipient", "the public", "Means", "Context", "Assumed knowledge", "birth_date"):
        assert word in page
    assert "Not written" in page  # of the means


def test_the_choice_of_k_shows_what_the_other_values_cost(patients, tmp_path):
    made = Plan([Generalize("mondrian", k=5)], release={"pages": "choice_of_k"})
    release = protect(patients, made)
    asked = {point.k: point for point in k_curve(patients, made)}
    assert {point.k: point for point in release.k_curve} == asked
    assert {5, 20} <= {*asked}
    folder = release.save(tmp_path / "release")
    page = (folder / "private/choice-of-k.html").read_text("utf-8")
    assert f"k = {release.after.k})" in page
    assert all(percent(100 * point.loss) in page for point in asked.values())
    assert verify(folder).holds
    assert not protect(patients, Plan(made.steps)).k_curve  # tried only if the plan asks for it


@pytest.mark.parametrize(
    ("steps", "require", "sentence"),
    [
        ([Generalize("mondrian", k=2)], [KAnonymity(2)], "looks like at least 1 other (k = 2)"),
        ([Swap(k=5)], [ProbabilisticKAnonymity(5)], "groups of at least 5 (k = 5)"),
        ([], [KAnonymity(2, missing="wildcard")], "some are unique (k = 1)"),
    ],
    ids=["classes", "swap", "wildcards"],
)
@pytest.mark.filterwarnings("ignore::shoal.errors.UnprotectedColumnWarning")
def test_the_choice_of_k_says_how_the_release_hides_people(tmp_path, steps, require, sentence):
    ages = [*range(20, 60), *range(20, 60)]
    roles = Roles(quasi_identifiers=["age"], unit="row")
    if not steps:
        ages[0] = None
        ages[40] = 90
    release = protect(
        Table(pl.DataFrame({"age": ages}), roles),
        Plan(steps, require=require, release={"pages": "choice_of_k"}),
    )
    folder = release.save(tmp_path / "release")
    page = (folder / "private/choice-of-k.html").read_text("utf-8").replace("\u00a0", " ")
    assert f"{sentence}. The plan was tried" in page


@pytest.mark.filterwarnings("ignore::shoal.errors.DisclosureWarning")
def test_a_label_of_many_k_stays_in_the_picture(patients):
    plan = Plan([Swap(k=5)], require=[ProbabilisticKAnonymity(5)], release={"pages": "choice_of_k"})
    page = private_pages(protect(patients, plan))["choice-of-k.html"]
    assert 'text-anchor="end">k = 2, 3, 5' in page


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_plan_without_k_cannot_show_its_choice(patients, tmp_path, engine):
    capped = TopBottomCode(fence=1.5, columns=["visits"])
    plan = Plan([capped], roles=patients.roles, release={"pages": "choice_of_k"})
    patients.frame.write_parquet(tmp_path / "patients.parquet")
    with pytest.raises(PlanError, match="choice_of_k"):
        protect(tmp_path / "patients.parquet", plan, engine=engine)


def test_no_template_says_that_something_is_anonymous():
    from importlib import resources

    from shoal.workflow import report

    folders = [resources.files(report) / "templates"]
    texts = []
    while folders:
        for one in folders.pop().iterdir():
            if one.is_dir():
                folders.append(one)
            else:
                texts.append(one.read_text("utf-8").lower())
    assert len(texts) > 10
    assert not any("is anonymous" in text for text in texts)


def test_the_criteria_show_the_values_that_the_attacks_measure(patients, saved):
    from shoal import assess

    made = Plan([Generalize("mondrian", k=5)], release={"pages": "criteria"})
    release = protect(patients, made)
    names = ["singling_out", "linkability", "inference"]
    again = assess(release.masked, original=patients, measures=names)
    for name in names:
        assert release.attacks[name].value == again[name].value
        assert release.attacks[name].interval == again[name].interval
    assert protect(patients, made.replacing(release=None)).attacks is None
    page = (saved / "private/criteria.html").read_text("utf-8")
    assert "95 % interval" in page
    assert "not measured" in page
    assert "--measure membership_inference" in page


# -- Safe Harbor


def _found(columns, year=2026, steps=(), **roles):
    table = Table(pl.DataFrame(columns), Roles(quasi_identifiers=[next(iter(columns))], **roles))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = protect(table, Plan(steps))
    items = safe_harbor(release, year)
    assert [item.letter for item in items] == [chr(65 + n) for n in range(18)]
    return {item.letter: [one.column for one in item.found] for item in items if item.found}


@pytest.mark.parametrize(
    ("name", "values", "letters"),
    [
        ("zip", ["12345", "12399"], "B"),
        ("zip", ["123**", "124**"], ""),
        ("zip", ["036**", "124**"], "B"),
        ("zip", ["[01000, 02000)", "*"], "B"),
        ("city", ["Bern", "Jena"], "B"),
        ("city_state", ["Reno NV", "Waco TX"], "B"),
        ("state", ["NV", "TX"], ""),
        ("age", [30, 89], ""),
        ("age", [30, 90], "C"),
        ("age", ["[80, 90)", ">=90"], ""),
        ("age", ["[85, 95)", "[20, 30)"], "C"),
        ("age", [">=95", "[20, 30)"], "C"),
        ("age", ["<40", "90+"], ""),
        ("birth_date", ["1990", "1985"], ""),
        ("birth_date", ["1990", "1930"], "C"),
        ("birth_date", ["1990-05", "1985-01"], "C"),
        ("birth_date", ["[1962-01-01, 1980-01-01)", ">=1980-01-01"], ""),
        ("birth_date", ["[1962-01-01, 1980-06-01)", "*"], "C"),
        ("yob", [1990, 1936], "C"),
        ("visit", [dt.date(2025, 3, 4), dt.date(2025, 3, 5)], "C"),
        ("visit", ["03.04.2025", "05.06.2025"], "C"),
        ("phone", ["12", "13"], "DE"),
        ("web", ["https://a.example/b", "https://c.example/d"], ""),
        ("vin", ["a", "b"], "L"),
        ("fingerprint", ["a", "b"], "P"),
        ("photo", ["a", "b"], "Q"),
        ("pacemaker_serial", ["a", "b"], "M"),
        ("acct", ["a", "b"], "J"),
        ("agegrp", ["85-94", "20-29"], "C"),
        ("kind", ["a", "b"], ""),
    ],
)
def test_safe_harbor_finds_what_the_rule_forbids(name, values, letters):
    found = _found({name: values * 20})
    assert "".join(found) == letters
    assert all(columns == [name] for columns in found.values())


def test_values_are_found_without_a_telling_name():
    mails = [f"user{n}@example.org" for n in range(40)]
    addresses = [f"10.1.{n}.7" for n in range(40)]
    found = _found({"q": [1, 2] * 20, "m": mails, "i": addresses}, insensitive=["m", "i"])
    assert found["F"] == ["m"]
    assert found["O"] == ["i"]


def test_a_reason_is_given_once():
    """The name of a column is a reason by itself, and part of what its values show."""
    frame = pl.DataFrame({"patient_name": ["Ann", "Bo"] * 20, "kind": ["a", "b"] * 20})
    table = Table(
        frame, Roles(insensitive=["patient_name"], quasi_identifiers=["kind"], unit="row")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect(table, Plan([]))
    ((finding,),) = [item.found for item in safe_harbor(release, 2026) if item.found]
    assert finding.why.count("by its name") == 1


def test_ages_that_are_capped_pass():
    ages = {"age": [20 + n % 50 for n in range(199)] + [97]}
    assert "C" in _found(ages)
    assert "C" not in _found(ages, steps=[TopBottomCode(fence=1.5, columns=["age"])])
    assert "C" not in _found(ages, steps=[TopBottomCode(top=90, columns=["age"])])
    assert "C" in _found(ages, steps=[TopBottomCode(top=95, columns=["age"])])


def test_the_small_areas_are_the_17_of_the_guidance():
    # HHS, Guidance Regarding Methods for De-identification (2012): "The 17 restricted ZIP codes"
    assert len(SMALL_AREAS) == 17
    assert {"036", "102", "203", "556", "692", "893"} < SMALL_AREAS
