"""Kills the studio at random moments while somebody clicks, and checks what is left.

    python tests/app/studio/parts/kills.py --times 30

Between two kills a thread sends one change after the other and writes down what was answered. After
a kill the project must be as the last change that was answered left it, or as the one in flight
would have: by both of its files, with every version that was answered. The exit code is 1 if not.
"""

from __future__ import annotations

import argparse
import http.client
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shoal.app.studio._project import Project

try:
    from .server import Server
except ImportError:  # called as a script
    from server import Server  # type: ignore[import-not-found, no-redef]

PLAN = '[roles]\nquasi_identifiers = ["age"]\nunit = "row"\n[require]\nk_anonymity = {}\n'
LONGEST = 0.6  # seconds of clicking before a kill


@dataclass
class Clicks:
    """The requests and their answers; a state is (k, whose rows, notes)."""

    server: Server
    draw: random.Random
    state: tuple[int, object, str]
    flying: list[tuple[int, object, str]] = field(default_factory=list)
    answered: int = 0
    troubles: list[str] = field(default_factory=list)

    def go_on(self) -> None:
        """Click until nobody answers any more."""
        try:
            while True:
                self._click()
        except (OSError, http.client.HTTPException):
            return

    def _click(self) -> None:
        k, unit, notes = self.state
        kind = self.draw.choice(("text", "whose", "notes"))
        if kind == "text":
            k, unit = self.draw.randint(2, 10_000), "row"
            fields: dict[str, object] = {"text": PLAN.format(k), "version": _version(self.server)}
            path = "/plan/text"
        elif kind == "whose":
            unit = "row" if unit != "row" else ("name",)
            several = unit != "row"
            fields = {"whose": "several", "unit": "name"} if several else {"whose": "once"}
            path = "/data/whose"
        else:
            notes = f"note {self.draw.randint(0, 10_000)}"
            path, fields = "/notes", {"notes": notes}
        self.flying = [(k, unit, notes)]
        answer = self.server.post(path, **fields)
        if answer.code != 303:
            self.troubles.append(f"{path} is answered with {answer.code}")
        self.state, self.flying = self.flying[0], []
        self.answered += 1


def _version(server: Server) -> int:
    """The version that a page shows."""
    return int(server.get("/history").partition('data-version="')[2].partition('"')[0])


def _folder(server: Server) -> Path:
    return server.place.with_name("people-studio")


def _seen(folder: Path) -> tuple[int, object, str]:
    project = Project(folder)
    return project.plan.require[0].k, project.plan.roles.unit, project.notes  # type: ignore


def campaign(times: int, seed: int) -> Iterator[str]:
    """Kill the studio several times; the errors that were found."""
    draw = random.Random(seed)
    place = Path(tempfile.mkdtemp(prefix="kills-")) / "people.csv"
    place.write_text("name,age\n" + "".join(f"p{number},{number % 70}\n" for number in range(50)))
    server = Server(place).enter()
    server.wait_for("/data", "What was read")
    server.post("/plan/text", text=PLAN.format(5), version=_version(server))
    server.post("/notes", notes="begin")
    state: tuple[int, object, str] = (5, "row", "begin")
    total = 0
    for number in range(times):
        clicks = Clicks(server, draw, state)
        thread = threading.Thread(target=clicks.go_on)
        thread.start()
        time.sleep(draw.uniform(0.0, LONGEST))
        server.close()
        thread.join()
        total += clicks.answered
        found = _seen(_folder(server))
        yield from (f"kill {number}: {trouble}" for trouble in clicks.troubles)
        if found not in (clicks.state, *clicks.flying):
            yield f"kill {number}: {clicks.state} or {clicks.flying} was to be there, not {found}"
        if any(version.what.startswith("edited") for version in Project(_folder(server)).versions):
            yield f"kill {number}: a change was done by half"
        server.start()
        server.enter()
        server.wait_for("/data", "What was read")
        if server.post("/notes", notes=found[2]).code != 303:
            yield f"kill {number}: it does not go on"
        state = found
    server.post("/data/whose", whose="several", unit="name")
    server.post("/data/whose", whose="once")
    left = sorted(path.name for path in _folder(server).rglob(".shoal-partial-*"))
    yield from (f"left after the next change: {name}" for name in left)
    server.close()
    print(f"{times} kills, {total} changes answered", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None, help="the moments of an earlier run")
    given = parser.parse_args()
    chosen = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {chosen}")
    failures = list(campaign(given.times, chosen))
    print("\n".join(failures))
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))
