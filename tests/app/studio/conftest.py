"""A studio in the test's own process: a project on disk, and a client that acts like a browser."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio needs its extra")

from starlette.testclient import TestClient

from shoal.app.demo import PEOPLE
from shoal.app.studio._app import make_app, make_studio
from shoal.app.studio._jobs import Job
from shoal.app.studio._pages import Studio
from shoal.app.studio._project import Project
from shoal.app.studio.screens import hierarchies
from shoal.app.studio.screens.data import choose

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
TOKEN = "token-of-the-test"

ROLES = """\
[roles]
identifiers = ["name", "email"]
quasi_identifiers = ["age", "sex", "marital", "zip", "occupation"]
sensitive = ["income", "diagnosis"]
insensitive = ["height_cm", "hours_per_week"]
unit = "row"
"""
FEW_ROLES = """\
# who is who
[roles]
identifiers = ["name", "email"]
quasi_identifiers = ["age", "sex", "zip"]
sensitive = ["diagnosis"]
insensitive = ["income", "marital", "occupation", "height_cm", "hours_per_week"]
unit = "row"
"""
PLAN = (
    ROLES
    + """
[[steps]]
method = "generalize"
algorithm = "mondrian"
k = 5

[require]
k_anonymity = 5
"""
)


@dataclass
class Browser:
    """A client that sends what a browser of the studio sends."""

    client: TestClient
    studio: Studio

    def get(self, path: str, **more: Any) -> Any:
        answer = self.client.get(path, **more)
        assert answer.status_code == 200, answer.text
        return answer

    def post(self, path: str, /, code: int = 200, **fields: Any) -> Any:
        """Send a form; redirects are followed."""
        answer = self.client.post(path, data=fields, headers={"origin": ORIGIN})
        assert answer.status_code == code, answer.text
        return answer

    def wait(self, job: Job, seconds: float = 60.0) -> Job:
        """The job when it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen = self.studio.jobs.get(job.id)
            if not seen.is_running:
                return seen
            time.sleep(0.05)
        raise AssertionError(f"{job.kind} runs on: {job.label}")


def client_of(studio: Studio) -> TestClient:
    client = TestClient(make_app(studio, port=PORT, token=TOKEN), base_url=ORIGIN)
    assert client.get(f"/enter/{TOKEN}").status_code == 200
    return client


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """The demo's table in a folder of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    return Path(shutil.copy(PEOPLE, folder / "people.csv"))


@pytest.fixture
def open_studio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Browser]]:
    """Open a project: with a table, and with a plan as text; its pages wait for their numbers."""
    monkeypatch.setattr(hierarchies, "_PATIENCE", 60.0)
    opened: list[Studio] = []

    def make(source: Path | None = None, plan: str = "", folder: str = "project") -> Browser:
        project = Project(tmp_path / folder)
        studio = make_studio(project, () if source is None else (source.parent,))
        opened.append(studio)
        if source is not None:
            choose(studio, source)
            studio.dataset.loaded(60)
        if plan:
            project.replace_plan(plan, based_on=project.version.number)
        return Browser(client_of(studio), studio)

    yield make
    for studio in opened:
        studio.jobs.close()
        studio.dataset.close()


@pytest.fixture
def browser(open_studio: Callable[..., Browser], people: Path) -> Browser:
    """A studio with the demo's table and a plan that holds."""
    return open_studio(people, PLAN)
