"""The reference is Markdown, without markup of another language."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from pydoc import locate
from typing import Any

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"
SHOWN = sorted(
    name
    for page in PAGES.glob("*.md")
    for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
)


def docstrings(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    yield name, inspect.getdoc(thing) or ""
    if inspect.isclass(thing) or inspect.ismodule(thing):
        for member, value in vars(thing).items():
            own = getattr(value, "__module__", None) == getattr(thing, "__module__", name)
            if not member.startswith("_") and (own or isinstance(value, property | classmethod)):
                yield f"{name}.{member}", inspect.getdoc(value) or ""


@pytest.mark.skipif(not SHOWN, reason="not a checkout")
def test_no_docstring_of_the_reference_has_markup_of_sphinx_or_open_code():
    assert len(SHOWN) > 100
    found = [
        where
        for name in SHOWN
        for where, text in docstrings(name, locate(name))
        if re.search(r":[a-z]+:`|^\.\. [a-z]+::|`_\b", text, re.MULTILINE) or text.count("``") % 2
    ]
    assert found == []
