"""The Dockerfile copies what a build needs, compiles the kernels, and does not run as root."""

from __future__ import annotations

import re
import tomllib

import pytest


@pytest.fixture(scope="module")
def lines(repository) -> list[str]:
    text = (repository / "Dockerfile").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_it_copies_what_the_wheel_is_built_from(lines, repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    needed |= {path.partition("/")[0] for path in (*wheel["packages"], *wheel["force-include"])}
    copied = {word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]}
    assert copied == needed
    ignored = (repository / ".dockerignore").read_text("utf-8")
    assert set(re.findall(r"^!(\S+)$", ignored, flags=re.M)) == needed


def test_it_has_extras_that_there_are(lines, repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    (named,) = [line.partition("=")[2] for line in lines if line.startswith("ARG EXTRAS")]
    assert set(named.split(",")) <= set(project["optional-dependencies"])


def test_it_warms_as_root_and_runs_as_nobody_special(lines):
    at = {
        what: i for i, line in enumerate(lines) for what in ("shoal warm", "USER") if what in line
    }
    assert at["shoal warm"] < at["USER"]
    (user,) = [line.split()[1] for line in lines if line.startswith("USER")]
    assert user not in ("root", "0")
    assert lines[-2] == 'ENTRYPOINT ["shoal"]'
