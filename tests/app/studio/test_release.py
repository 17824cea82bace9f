"""Release: the checklist, the job that writes it, and what is said of a release afterwards."""

from __future__ import annotations

import json
import stat

import pytest

from shoal import verify


@pytest.fixture
def released(browser):
    """A release of the demo's table."""
    job = browser.studio.start(
        "protect", "Release", format="csv", reasons={"age": "neighbours know it"}
    )
    ended = browser.wait(job)
    assert (ended.state, ended.sentence) == ("done", "")
    return ended


def test_a_release_is_written_and_holds(released):
    folder = released.folder / "release"
    assert released.result()["holds"]
    assert verify(folder).holds
    assert stat.S_IMODE(released.folder.stat().st_mode) == 0o700
    audit = (folder / "private" / "audit.json").read_text(encoding="utf-8")
    assert json.loads(audit)["studio"]["reasons"] == {"age": "neighbours know it"}
    public = [path.read_bytes() for path in (folder / "public").iterdir()]
    assert not any(b"neighbours" in content for content in public)
