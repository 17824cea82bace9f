"""What we show runs: the scripts in examples/, and the Python code in README.md and docs/.

A script runs by itself in an empty folder. The code blocks of a page run one after the other in one
process, in an empty folder that holds only the demo's ``people.csv``. What a block prints is what
the ``text`` block right below it shows. A block that cannot run is marked in the line above it,
with the reason: ``<!-- not run: needs a database server -->``.
"""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((REPOSITORY / "examples").glob("*.py"))
PAGES = [
    page
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
    if page.is_file()
]
BLOCK = re.compile(
    r"(?P<mark><!-- not run: [^>]+-->\s*\n)?^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```)?",
    re.M | re.S,
)
END_OF_BLOCK = "@@@ end of block @@@"


def blocks_of(text: str) -> list[tuple[str, str]]:
    """The Python code blocks of a page that are to be run, and what the page shows below each."""
    found = BLOCK.finditer(text)
    return [(block["code"], block["shown"] or "") for block in found if not block["mark"]]


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def test_blocks_are_found():
    page = (
        "Text\n```python\na\n```\n\n```text\n1\n```\n"
        "<!-- not run: x -->\n```python\nb\n```\n```sh\nc\n```\n```python\nd\n```\n"
    )
    assert blocks_of(page) == [("a\n", "1\n"), ("d\n", "")]


def test_there_is_something_to_run():
    assert SCRIPTS
    assert any(blocks_of(page.read_text("utf-8")) for page in PAGES if page.name == "README.md")


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_example_runs(script, warm_process, tmp_path, tmp_path_factory):
    beside = tmp_path_factory.mktemp("script")
    done = warm_process.run(script, folder=tmp_path, streams=beside)
    assert done.returncode == 0, f"{script.name} failed:\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_of(page.read_text("utf-8"))], ids=name_of
)
def test_page_runs(page, warm_process, tmp_path, tmp_path_factory):
    from shoal.app.demo import PEOPLE

    blocks = blocks_of(page.read_text("utf-8"))
    beside = tmp_path_factory.mktemp("page")
    script = beside / f"{page.stem}.py"
    code = "\n".join(f"{code}\nprint({END_OF_BLOCK!r})\n" for code, _ in blocks)
    script.write_text(code, "utf-8")
    shutil.copy(PEOPLE, tmp_path)
    done = warm_process.run(script, folder=tmp_path, streams=beside)
    assert done.returncode == 0, f"{page.name} failed:\n{done.stdout}\n{done.stderr}"
    printed = done.stdout.split(f"{END_OF_BLOCK}\n")
    for (_, shown), found in zip(blocks, printed, strict=False):
        same = doctest.OutputChecker().check_output(
            f"{shown.rstrip()}\n", f"{found.rstrip()}\n", doctest.ELLIPSIS
        )
        assert same, f"{page.name} shows\n{shown}\nbut this is printed:\n{found}"
