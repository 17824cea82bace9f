"""[release] in a plan: what it accepts, and where its texts go."""

from __future__ import annotations

import json

import pytest
from tests.workflow.samples import people, plan

from shoal import Plan, protect, verify
from shoal.errors import InputError, PlanError
from shoal.workflow import AboutRelease
from shoal.workflow._plan_parts import PAGE_FILES, public_texts

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'too' \u202e"
TEXTS = dict.fromkeys(("title", "publisher", "contact", "recipient", "purpose", "licence"), HOSTILE)


def test_a_plan_with_a_release_comes_back_from_its_file(tmp_path):
    about = {**TEXTS, "means": "a\nb", "metadata": ["ddi"], "reasons": {"a.b": "c", "city": "d"}}
    made = plan().replacing(release=about)
    made.save(tmp_path / "plan.toml")
    assert Plan.load(tmp_path / "plan.toml") == made
    assert Plan.from_dict(made.to_dict()).release == AboutRelease.from_dict(about)


def test_nothing_is_said_that_nobody_wrote(tmp_path):
    folder = protect(people(), plan()).save(tmp_path / "release")
    assert "about" not in json.loads((folder / "public/release.json").read_text("utf-8"))
    assert plan().release.to_dict() == {}


@pytest.mark.parametrize(
    ("given", "keyword"),
    [
        ({"licens": "x"}, "licence"),
        ({"title": 5}, "text"),
        ({"title": " "}, "characters"),
        ({"title": "x" * 2001}, "characters"),
        ({"metadata": "dddi"}, "ddi"),
        ({"metadata": 5}, "metadata"),
        ({"pages": ["safe-harbor"]}, "safe_harbor"),
        ({"reasons": "x"}, "table"),
        ({"reasons": {"age": 5}}, "text"),
        ("x", "table"),
    ],
)
def test_what_is_wrong_is_refused(given, keyword):
    with pytest.raises(PlanError, match=keyword):
        Plan.from_dict({"release": given})


def test_published_texts_are_escaped_and_the_others_stay_private(tmp_path):
    secret = {"context": "a locked room", "means": "the voter list", "reasons": {"age": "seen"}}
    about = {**TEXTS, **secret, "pages": list(PAGE_FILES)}
    folder = protect(people(), plan().replacing(release=about)).save(tmp_path / "release")
    public = {path.name: path.read_bytes() for path in (folder / "public").iterdir()}
    for name in ("report.html", "release.json"):
        assert b"alert(1)" in public[name]
    assert b"<script>alert" not in public["report.html"]
    for text in (b"locked room", b"voter list"):
        assert not any(text in content for content in public.values())
    for name in PAGE_FILES.values():
        page = (folder / "private" / name).read_text("utf-8")
        assert "alert(1)" in page
        assert "<script>alert" not in page
        assert "locked room" in page
        assert "voter list" in page


def test_a_reason_for_a_column_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="'city'"):
        protect(people(), plan().replacing(release={"reasons": {"citty": "known"}}))


@pytest.mark.parametrize("name", public_texts())
def test_a_text_that_was_changed_later_fails_verification(tmp_path, name):
    folder = protect(people(), plan().replacing(release=TEXTS)).save(tmp_path / "release")
    path = folder / "public/release.json"
    facts = json.loads(path.read_text("utf-8"))
    facts["about"][name] = "another"
    path.write_text(json.dumps(facts), "utf-8")
    assert not verify(folder).holds
