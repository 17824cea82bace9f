"""A job in a process of its own: the whole way from a plan to a release."""

from __future__ import annotations

from shoal import verify


def test_a_release_is_written_and_holds(browser):
    job = browser.studio.start("protect", "Release", format="csv", reasons={"age": "known"})
    ended = browser.wait(job)
    assert (ended.state, ended.sentence) == ("done", "")
    found = ended.result()
    assert found["holds"]
    assert verify(found["folder"]).holds
    audit = (ended.folder / "release" / "private" / "audit.json").read_text(encoding="utf-8")
    assert "known" in audit
