"""The studio in a browser: from a messy file on, forwards and back, by mouse and by keyboard."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from shoal import verify
from shoal.app.demo import PATIENTS

from .parts.browser import Person, chromium, messy_table
from .parts.server import PATIENCE, Server
from .parts.walk import decide, finish, walk

ROOMS = ("data", "roles", "risk", "hierarchies", "plan", "search", "compare", "release")


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    found = Server(messy_table(tmp_path_factory.mktemp("walk")))
    yield found
    found.close()


@pytest.fixture(scope="module")
def person(browser, server):
    return Person.of(browser, server).enter()


def test_a_messy_file_is_understood_and_mended(person):
    person.go("data")
    assert "240 rows and 7 columns" in person.text()
    assert "semicolons between fields, a decimal comma, a byte order mark" in person.text()
    assert "Person 1" not in person.text()
    person.page.click("#show-values")
    person.page.wait_for_selector("#hide-values")
    assert "Person 1" in person.text()
    person.page.click("#look-further")
    person.page.wait_for_selector("#from-next")
    person.page.click("#from-next")
    person.page.wait_for_selector("#from-before")
    assert "Person 99" in person.text()
    person.page.reload()
    assert "Person 99" in person.text()
    person.page.go_back()
    person.page.wait_for_selector("#look-further, #from-next")
    assert "Person 99" not in person.text()
    person.page.click("#hide-values")
    person.page.wait_for_selector("#show-values")
    person.page.fill("#missing_values", "k. A.\n-")
    person.submit("#read-so")
    assert "k. A." in person.page.input_value("#missing_values")
    row = person.page.locator("tr", has_text="Einkommen").first.inner_text()
    assert "float" in row
    person.check()


def test_whose_a_row_is_and_undo(person):
    person.open("/data")
    person.page.check("#whose-once")
    person.submit("#keep-whose")
    person.page.wait_for_selector("#room-data.done")
    assert person.page.is_checked("#whose-once")
    person.submit("#undo")
    person.page.wait_for_selector("#room-data.attention")
    assert not person.page.is_checked("#whose-once")
    person.submit("#redo")
    person.page.wait_for_selector("#room-data.done")
    person.check()


def test_a_refusal_is_shown_in_its_place_and_keeps_what_was_typed(person):
    person.open("/data")
    person.page.fill("#path", "nothing.csv")
    person.page.click("#read-file")
    person.page.wait_for_selector("#problem #sentence")
    assert "no file" in person.text("#problem")
    assert person.page.input_value("#path") == "nothing.csv"
    person.check()


def test_what_a_field_got_by_being_resized_stops_no_page(person):
    """A browser writes the size into the field, and a copied style would break the policy."""
    person.open("/data")
    person.page.evaluate("document.getElementById('toml').style.height = '321px'")
    person.go("roles")
    person.go("data")
    person.check()


def test_many_tabs_do_not_use_up_the_connections(person):
    """A browser has six to a server; a tab in the background gives its own back."""
    tabs = [person.page.context.new_page() for _ in range(7)]
    for tab in tabs:
        tab.goto(f"{person.server.origin}/history")
        hide = "Object.defineProperty(document, 'visibilityState', {value: 'hidden'});"
        tab.evaluate(hide + "document.dispatchEvent(new Event('visibilitychange'))")
    person.open("/data")
    for tab in tabs:
        tab.close()
    person.check()


def test_two_tabs_see_each_other(person):
    """The other tab shows the change by itself; a field that is being typed into is left alone."""
    person.open("/data")
    other = Person(person.page.context.new_page(), person.server)
    other.open("/roles")
    other.page.evaluate("document.getElementById('notes-drawer').open = true")
    other.page.fill("#notes", "half a thought")
    person.page.check("#whose-several")
    person.page.select_option("#unit", "Name")
    person.submit("#keep-whose")
    other.page.wait_for_selector("#news .note")
    assert other.page.input_value("#notes") == "half a thought"
    other.page.fill("#notes", "")
    other.page.click("#news button")
    other.until("!document.querySelector('#news .note')")
    person.page.check("#whose-once")
    person.submit("#keep-whose")
    number = person.page.get_attribute("#page", "data-version")
    other.page.wait_for_selector(f"#page[data-version='{number}']")
    other.page.close()
    person.check()


def test_an_edit_in_an_editor_shows_up_by_itself(person):
    person.open("/data")
    plan = person.server.place.with_name("Umfrage 2026-studio") / "plan.toml"
    before = person.page.get_attribute("#page", "data-version")
    plan.write_text(plan.read_text() + "\n[require]\nk_anonymity = 3\n")
    person.until(f"document.querySelector('#page').dataset.version != '{before}'")
    assert "k_anonymity = 3" in person.page.input_value("#toml")
    person.check()


def test_a_click_is_not_lost_while_the_page_renews_itself(person):
    """Requests that the page makes by itself may arrive at any time, before or after the click."""
    held = []
    person.open("/data")
    for path in ("data", "roles"):
        person.page.route(f"**/{path}", lambda route: held.append(route))
    plan = person.server.place.with_name("Umfrage 2026-studio") / "plan.toml"
    plan.write_text(plan.read_text() + "# another thought\n")
    waiting = time.monotonic() + PATIENCE
    while not held and time.monotonic() < waiting:
        person.page.wait_for_timeout(20)
    person.page.click("#room-roles")
    while len(held) < 2 and time.monotonic() < waiting:
        person.page.wait_for_timeout(20)
    renewing, clicked = held
    assert (renewing.request.url[-5:], clicked.request.url[-6:]) == ("/data", "/roles")
    with person.page.expect_response("**/data"):
        renewing.continue_()
    person.page.wait_for_timeout(50)  # it is not to be shown
    clicked.continue_()
    person.settle("#room-roles[aria-current]")
    person.page.unroute_all()
    person.check()


@pytest.mark.parametrize("room", ROOMS)
def test_every_screen_is_for_everybody(person, room):
    """axe in light and dark, the width of a telephone, and 200 %."""
    person.open(f"/{room}?show=values")
    person.dark()
    person.check_accessible()
    person.light()
    person.check_for_everybody()
    person.check()


def test_by_keyboard_alone(person):
    """Something is done in each of the eight rooms without a mouse."""
    page, keys = person.page, person.page.keyboard
    person.open("/data")
    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    person.tab_to("#whose-once")
    keys.press("ArrowDown")
    assert page.is_checked("#whose-several")
    keys.press("ArrowUp")
    person.press("#keep-whose")
    person.press("#show-values", after="#hide-values")
    person.walk_to("roles")
    person.press("#take-all")
    person.tab_to("#role-4")
    before = page.get_attribute("#page", "data-version")
    keys.type("quasi")
    person.until(f"document.querySelector('#page').dataset.version != '{before}'")
    assert page.input_value("#role-4") == "quasi_identifiers"
    assert page.evaluate("document.activeElement.id") == "role-4"
    person.walk_to("risk")
    person.press("#known-0", "Space")
    assert "known=" in page.url
    person.walk_to("hierarchies")
    person.press(".rungs a[id$='-1']")
    assert "levels=" in page.url
    person.walk_to("plan")
    person.press("#begin-statistics")
    person.tab_to("#step-0-keep, #step-1-keep")
    person.walk_to("search")
    person.press("td.allowed a, td.refused a")
    person.press("input[type=range]", "ArrowLeft")
    person.walk_to("compare")
    person.press("#compare-now", after=".job.running")
    person.tab_to(".job.running button")
    keys.press("Enter")
    finish(person)
    person.walk_to("release")
    person.tab_to("#about-recipient")
    keys.type("Researchers")
    assert page.input_value("#about-recipient") == "Researchers"
    person.press("#room-data", after="#room-data[aria-current]")
    person.check()


def test_the_theme_is_a_switch(person):
    person.open("/data")
    paper = "getComputedStyle(document.body).backgroundColor"
    before = person.page.evaluate(paper)
    person.page.click("#theme")
    assert person.page.evaluate(paper) != before
    person.go("roles")
    assert person.page.evaluate(paper) != before
    person.page.click("#theme")


# -- the whole way


def test_somebody_new_reaches_a_release(browser, tmp_path):
    """From the demo's table to a release with k = 5 and l-diversity, and on after a kill."""
    server = Server(Path(shutil.copy(PATIENTS, tmp_path / "patients.csv")))
    try:
        person = Person.of(browser, server).enter()
        folder = walk(person, lambda room: person.check_for_everybody())
        facts = json.loads((folder / "public" / "release.json").read_text())
        claims = {claim["claim"]: claim for claim in facts["claims"]}
        assert set(claims) == {"k_anonymity", "l_diversity"}
        assert claims["k_anonymity"]["measured"] >= 5
        assert verify(folder, source=PATIENTS).holds
        person.go("roles")
        decide(person, "occupation", "sensitive")
        person.go("search")
        person.page.click("text=Whole plans")
        person.settle("#start-tune")
        person.page.fill("#tune-max-risk", "0.1")
        person.page.select_option("#tune-target", "diagnosis")
        person.submit("#start-tune")
        person.page.wait_for_selector(".job.running button")
        person.page.locator(".job.running button").first.click()
        finish(person)
        assert "Resume" in person.text()
        person.check()
        server.stop(signal.SIGKILL)
        server.start()
        again = Person.of(browser, server).enter()
        again.go("roles")
        assert (
            again.page.get_by_label("Role of occupation", exact=True).input_value() == "sensitive"
        )
        again.go("release")
        assert "changed" in again.text() or "not what it was" in again.text()
        again.check()
    finally:
        server.close()


# -- what another page of the same browser can do


def test_a_page_of_another_origin_neither_reads_nor_frames_nor_changes(person, tmp_path):
    """Another port of this machine is the same site for cookies."""
    import http.server
    import threading

    origin = person.server.origin
    text = (
        f'<iframe src="{origin}/data"></iframe><img src="{origin}/static/icon.svg">'
        f'<form method="post" action="{origin}/notes" target="f"><input name="notes" value="evil">'
        '</form><iframe name="f"></iframe>'
    )
    (tmp_path / "evil.html").write_text(text)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *given):
            pass

    def handler(*given):
        return Quiet(*given, directory=str(tmp_path))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        page = person.page.context.new_page()
        page.goto(f"http://127.0.0.1:{evil.server_address[1]}/evil.html")
        frame = page.frames[1]
        assert "Umfrage" not in frame.content()
        read = f"fetch('{origin}/data', {{credentials: 'include'}}).then(r => r.text())"
        failed = page.evaluate(f"{read}.then(() => 'read', () => 'refused')")
        opaque = read.replace("'include'", "'include', mode: 'no-cors'")
        blind = page.evaluate(f"{opaque}.then(text => text, () => '')")
        assert (failed, blind) == ("refused", "")
        page.evaluate("document.forms[0].submit()")
        page.wait_for_timeout(300)
        page.close()
        evil.shutdown()
    person.open("/data")
    assert person.page.input_value("#notes") != "evil"
