"""What objects show of themselves: short texts, and views that are escaped and hold no cell."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import shoal as sh
from shoal.errors import ShoalWarning
from shoal.hints import Helpful
from shoal.notebook import CLASS, listing, number, picture, view
from shoal.study.tuning import Tried, Tuning
from shoal.workflow import Check, Verification

from .pages import Page

NASTY = "<b>age</b>\u202e"
ROLES = sh.Roles(
    identifiers=["name"], quasi_identifiers=[NASTY, "city"], sensitive=["ill"], unit="row"
)
HIERARCHIES = {
    "intervals": (sh.Hierarchy.intervals([5, 10]), "an interval of 10"),
    "edges": (sh.Hierarchy.intervals(edges=[[18, 30], [30]]), "3 intervals"),
    "one list of edges": (sh.Hierarchy.intervals(edges=[18, 30]), "3 intervals"),
    "rounding": (sh.Hierarchy.rounding([5]), "a multiple of 5"),
    "prefixes": (sh.Hierarchy.prefixes([4, 2]), "the first 2 characters"),
    "dates": (sh.Hierarchy.dates(["month", "year"]), "the year"),
    "listed": (sh.Hierarchy.tree({"low": ["hidden-1"], "high": ["hidden-2"]}), "2 labels"),
    "suppression": (sh.Hierarchy.suppression(), "nothing: *"),
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """One of every kind of object, from a table whose cells can be told from anything else."""
    folder = tmp_path_factory.mktemp("shown")
    frame = pl.DataFrame(
        {
            "name": [f"hidden-name-{n}" for n in range(12)],
            NASTY: [30 + n % 3 for n in range(12)],
            "city": ["hidden-city-a", "hidden-city-b"] * 6,
            "ill": ["hidden-yes", "hidden-no", "hidden-no"] * 4,
        }
    )
    table = sh.Table(frame, ROLES)
    frame.drop("name").rename({NASTY: "age"}).write_parquet(folder / "people.parquet")
    study = sh.Study.from_dict(
        {
            "tables": [{"path": str(folder / "people.parquet"), "target": "ill"}],
            "variants": [{"name": "round", "steps": [{"method": "round", "base": 10}]}],
            "measures": ["uniqueness"],
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = sh.protect(table, k=3)
        outcome = sh.run_study(study, folder / "study", jobs=1)
    return {
        "table": table,
        "roles": ROLES,
        "suggestion": sh.suggest_roles(frame),
        "plan": release.plan.replacing(roles=ROLES),
        "assessment": release.after,
        "measurement": release.after["marketer_risk"],
        "release": release,
        "verification": sh.verify(release.save(folder / "out")),
        "study": study,
        "outcome": outcome,
        "results": outcome.results,
        **{f"hierarchy of {kind}": one for kind, (one, _) in HIERARCHIES.items()},
    }


SHOWN = [
    *"table roles suggestion plan assessment measurement release verification".split(),
    *"study outcome results".split(),
    *(f"hierarchy of {kind}" for kind in HIERARCHIES),
]


@pytest.mark.parametrize("name", SHOWN)
def test_an_object_shows_itself_and_no_cell(objects, name):
    source = objects[name]._repr_html_()
    assert source.startswith(f'<div class="{CLASS}">')
    page = Page(source)
    assert not {"script", "b"} & {tag for tag, _, _ in page.tags}
    assert not {"id", "onload"} & {name for _, attrs, _ in page.tags for name in attrs}
    for said in (source, repr(objects[name])):
        assert "hidden-" not in said
    assert "\u202e" not in source
    assert len(repr(objects[name])) < 300
    assert "\n" not in repr(objects[name])


@pytest.mark.parametrize("name", [n for n in sh.__all__ if isinstance(getattr(sh, n), type)])
def test_every_public_class_shows_itself_and_helps(name):
    cls = getattr(sh, name)
    assert hasattr(cls, "_repr_html_")
    assert issubclass(cls, Helpful)


def test_steps_models_and_limits():
    for one, said in (
        (sh.AddNoise(epsilon=2, random_state=918273), "a number > 0"),
        (sh.LDiversity(2, column="ill"), "'ill'"),
        (sh.Limit("records_at_risk", at_most=0.1, options={"threshold": 0.2}), "at most 0.1"),
    ):
        source = one._repr_html_()
        assert said in Page(source).said
        assert "918273" not in source + repr(one)


@pytest.mark.parametrize("kind", HIERARCHIES)
def test_the_levels_of_a_hierarchy(kind):
    hierarchy, said = HIERARCHIES[kind]
    texts = Page(hierarchy._repr_html_()).said
    assert said in texts
    assert texts.count(str(hierarchy.levels - 1)) == 1
    assert str(hierarchy.levels) not in texts


def test_names_are_shown_as_text(objects):
    texts = "".join(Page(objects["table"]._repr_html_()).said)
    assert "<b>age</b>\ufffd" in texts
    assert "quasi-identifier" in texts


def test_tuning_shows_the_front_and_a_picture_of_it():
    pytest.importorskip("matplotlib", reason="the extra study is not installed")
    risk, utility = (sh.Measurement(name, 0.1) for name in ("distance_linkage", "propensity"))
    tried = tuple(Tried(f"plan {n}", (), n / 10, None, n / 10, on_front=n < 2) for n in range(3))
    found = Tuning(
        sh.Plan(), tried[1], risk, utility, tried, "Why.", 0.3, (risk.name, utility.name)
    )
    source = found._repr_html_()
    assert "data:image/svg+xml;base64," in source
    assert {"plan 0", "plan 1", "Why."} <= {*Page(source).said}
    assert "plan 2" not in Page(source).said


def test_what_a_release_shows_is_what_it_is(objects):
    texts = Page(objects["release"]._repr_html_()).said
    assert "k_anonymity" in texts
    assert "yes" in texts
    assert str(objects["release"].after.k) in texts
    left = objects["release"].left
    assert set(left.values()) <= set(texts)
    assert "changed" not in texts


def test_the_report_without_saving(objects, tmp_path):
    release = objects["release"]
    saved = release.save(tmp_path / "out") / "public" / "report.html"
    unsaved = release.to_html()
    assert "not saved yet" in unsaved
    assert "SHA-256" not in unsaved
    assert "hidden-name" not in unsaved
    lines = saved.read_text(encoding="utf-8").splitlines()
    assert len([line for line in unsaved.splitlines() if line not in lines]) <= 3


def test_of_many_rows_the_first_are_shown():
    source = listing(["column"], [[f"c{n}"] for n in range(1000)], of="columns")
    assert "c59" in source
    assert "c60" not in source
    assert "and 940 more columns" in source


def test_cells_of_every_kind():
    texts = Page(listing(["a", "b", "c", "d"], [(True, None, 0.5, "&")])).said
    assert [text for text in texts if text.strip()] == ["a", "b", "c", "d", "yes", "0.5", "&"]


def test_sentences_and_pictures_are_escaped():
    source = view("a < b", "c > d", picture(b"<svg/>", 'e"f'), quiet="g & h")
    assert "a &lt; b" in source
    assert "c &gt; d" in source
    assert 'alt="e&quot;f"' in source
    assert "g &amp; h" in source


def test_a_failed_verification_says_so():
    found = Verification((Check("data unchanged", "failed", "other"),))
    assert repr(found) == "Verification: does not hold; 1 failed"


def test_numbers_for_people():
    assert [number(value) for value in (1234.0, 0.123456, float("nan"))] == [
        "1,234",
        "0.1235",
        "none",
    ]
