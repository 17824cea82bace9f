"""Chromium as a person uses it: the studio in a process, a page, and checks for each page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .server import PATIENCE, Server

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT, NARROW = 1280, 900, 390


def program() -> str:
    """The installed browser; without one, the test is skipped."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.skip("there is no Chromium on this machine")
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=flags)
        yield browser
        browser.close()


@dataclass
class Person:
    """A person who uses the studio and notices errors.

    ``troubles`` collects what the console and the network complain about; ``check`` asks for none.
    """

    page: Any
    server: Server
    troubles: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ("422", "409")

    @classmethod
    def of(cls, browser: Any, server: Server, **context: Any) -> Person:
        settings = {"viewport": {"width": WIDTH, "height": HEIGHT}, **context}
        page = browser.new_context(**settings).new_page()
        person = cls(page, server)
        page.on("console", person._hear)
        page.on("pageerror", lambda error: person.troubles.append(f"error: {error}"))
        page.on("request", person._ask)
        return person

    def _hear(self, message: Any) -> None:
        refused = "Failed to load resource" in message.text
        if refused and any(code in message.text for code in self.expected):
            return  # a refusal that the page shows
        if "frame is sandboxed" in message.text:
            return  # the framed report has a script, which must not run there
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _ask(self, request: Any) -> None:
        if not request.url.startswith((self.server.origin, "data:", "about:", "blob:")):
            self.troubles.append(f"asks {request.url}")

    def check(self) -> None:
        assert self.troubles == []

    # -- going about

    def enter(self) -> Person:
        self.page.goto(self.server.entrance)
        self.page.wait_for_url(f"{self.server.origin}/*")
        self.page.wait_for_selector("main")
        return self

    def go(self, room: str) -> None:
        self.page.click(f"#room-{room}")
        self.settle(f"#room-{room}[aria-current]")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server.origin}{path}")
        self.settle()

    def settle(self, selector: str = "main") -> None:
        """Wait until a page is loaded and the table is read."""
        self.page.wait_for_selector(selector)
        self.until("!document.querySelector('.waiting, .htmx-request')")

    def until(self, holds: str) -> None:
        """Wait until an expression is true; the page's policy forbids to have it asked inside."""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(holds):
            assert time.monotonic() < end, f"never: {holds}"
            self.page.wait_for_timeout(25)

    def submit(self, selector: str) -> None:
        """Press a button that sends a form, and wait for the page after it."""
        with self.page.expect_response(lambda answer: answer.request.method == "GET"):
            self.page.click(selector)
        self.settle()

    def text(self, selector: str = "main") -> str:
        """What is to be read, with plain spaces."""
        shown: str = self.page.inner_text(selector)
        return shown.replace("\u00a0", " ").replace("\u202f", " ")

    # -- what must hold on every screen

    def check_for_everybody(self) -> None:
        """axe, numbers for pictures, the width of a telephone, and 200 %."""
        self.check_accessible()
        self.check_pictures()
        self.check_narrow()
        self.check_zoomed()

    def check_accessible(self) -> None:
        """axe finds nothing serious."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
        found = axe.Axe().run(self.page).response["violations"]
        serious = [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"][:3]
        ]
        assert not serious, f"{self.page.url}: {serious}"

    def check_pictures(self) -> None:
        """Each picture has its numbers next to it, for people who cannot see it."""
        bare = self.page.evaluate(
            "() => [...document.querySelectorAll('svg[role=img]')].filter(e => {"
            " const home = e.closest('figure, td, .card, section');"
            " return !home || !home.querySelector('table, .numbers'); })"
            ".map(e => e.outerHTML.slice(0, 120))"
        )
        assert not bare, f"{self.page.url}: pictures without numbers: {bare}"

    def check_narrow(self) -> None:
        """At the width of a telephone the page does not move sideways."""
        self.page.set_viewport_size({"width": NARROW, "height": 844})
        self._check_no_sideways()
        self.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})

    def check_zoomed(self) -> None:
        """At 200 % everything is as on a page of half the width."""
        self.page.set_viewport_size({"width": WIDTH // 2, "height": HEIGHT // 2})
        self._check_no_sideways()
        self.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})

    def _check_no_sideways(self) -> None:
        wide = self.page.evaluate(
            "() => { const root = document.documentElement;"
            " return root.scrollWidth > root.clientWidth"
            " ? [...document.querySelectorAll('body *')]"
            ".filter(e => e.getBoundingClientRect().right > root.clientWidth + 1"
            " && !e.closest('.scroll, .hidden, nav.rooms ol'))"
            ".slice(0, 5).map(e => e.outerHTML.slice(0, 120)).concat('wide') : []; }"
        )
        assert not wide, f"{self.page.url} moves sideways: {wide}"

    def dark(self) -> None:
        self.page.emulate_media(color_scheme="dark")

    def light(self) -> None:
        self.page.emulate_media(color_scheme="light")

    # -- by keyboard alone

    def tab_to(self, selector: str, key: str = "Tab", most: int = 120) -> None:
        """Go on with a key until something has the focus, and can be seen to have it."""
        here = (
            "selector => { const e = document.activeElement; const s = getComputedStyle(e);"
            " return e.matches(selector) &&"
            " (s.outlineStyle !== 'none' || s.boxShadow !== 'none' ? 'seen' : 'unseen'); }"
        )
        for _ in range(most):
            self.page.keyboard.press(key)
            found = self.page.evaluate(here, selector)
            if found:
                assert found == "seen", f"no focus to see on {selector}"
                return
        raise AssertionError(f"{key} never comes to {selector}")

    def press(self, selector: str, key: str = "Enter", after: str = "main") -> None:
        """Move to an element with Tab, press a key there, and wait for the result."""
        self.tab_to(selector)
        with self.page.expect_response(lambda answer: answer.request.method == "GET"):
            self.page.keyboard.press(key)
        self.settle(after)

    def walk_to(self, room: str) -> None:
        """Go to a room and into its content with the keyboard."""
        self.tab_to(f"#room-{room}", "Shift+Tab")
        self.page.keyboard.press("Enter")
        self.settle(f"#room-{room}[aria-current]")
        self.until("!document.querySelector('main').innerText.includes('Counting')")


def messy_table(folder: Path) -> Path:
    """A file as offices send it: semicolons, decimal commas, a mark, signs for missing."""
    lines = ["\ufeffName;Geburtsjahr;Geschlecht;Größe (m);Straße;Einkommen;Diagnose"]
    for number in range(240):
        size = f"{150 + number * 7 % 50}"
        lines.append(
            f"Person {number};{1940 + number * 13 % 60};{'fm'[number % 2]};"
            f"{size[0]},{size[1:]};{'Nord' if number % 3 else 'Süd'};"
            f"{'k. A.' if number % 11 == 0 else f'{1000 + number * 37 % 4000},50'};"
            f"{('Grippe', 'Asthma', 'Krebs', '-')[number * 5 % 4]}"
        )
    path = folder / "Umfrage 2026.csv"
    path.write_text("\r\n".join([*lines, ""]), encoding="utf-8", newline="")
    return path
