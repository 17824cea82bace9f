"""The path of a new user of the studio: from a table to a release, by clicking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .browser import Person

See = Callable[[str], None]


def walk(person: Person, see: See = lambda room: None) -> Path:
    """Protect the demo's table with k = 5 and l-diversity; gives the folder of the release.

    ``see`` is called with the name of each screen when there is something to see on it.
    """
    page = person.page
    person.go("data")
    page.check("#whose-once")
    person.submit("#keep-whose")
    see("data")
    person.go("roles")
    person.submit("#take-all")
    page.wait_for_selector("#room-roles.done")
    see("roles")
    person.go("risk")
    person.until("!document.querySelector('main').innerText.includes('Counting')")
    see("risk")
    person.go("plan")
    person.submit("#begin-statistics")
    assert "crowd" in person.text()
    see("plan")
    person.go("hierarchies")
    person.until("!document.querySelector('main').innerText.includes('Counting')")
    see("hierarchies")
    person.go("search")
    person.until("!!document.querySelector('main table')")
    see("search")
    person.go("compare")
    person.submit("#compare-now")
    finish(person)
    page.wait_for_selector("#candidate-A")
    see("compare")
    person.go("release")
    page.fill("#about-recipient", "Researchers of the university")
    page.fill("#about-purpose", "Teaching")
    person.submit("#release-now")
    finish(person)
    page.wait_for_selector("#checks-head")
    see("release")
    return Path(page.inner_text(".path bdi")).parent


def finish(person: Person) -> None:
    """Wait until no job runs and the page shows it."""
    person.until("!document.querySelector('nav .jobs .job.running, main .job.running')")


def decide(person: Person, column: str, role: str) -> None:
    """Choose a role, which is sent at once, and wait until it is kept."""
    before = person.page.get_attribute("#page", "data-version")
    person.page.get_by_label(f"Role of {column}", exact=True).select_option(role)
    person.until(f"document.querySelector('#page').dataset.version != '{before}'")
    person.settle()
