"""A page as a reader gets it, and releases to make pages of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import (
    AddNoise,
    Plan,
    Recode,
    Release,
    Roles,
    Round,
    Suppress,
    Table,
    TopBottomCode,
    protect,
)
from shoal.workflow.release._release import public_facts, written_file
from shoal.workflow.report import release_page

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page as a reader gets it: its text, its tags with attributes, and whether it is sound."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.said: list[str] = []
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute of <{tag}> is given twice"
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.code:
            self.code[self.open[-1]].append(data)
        else:
            self.said.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.said))

    def find(self, tag: str) -> Iterator[tuple[dict[str, str | None], tuple[str, ...]]]:
        return ((attrs, inside) for name, attrs, inside in self.tags if name == tag)


def facts_of(release: Release, tmp_path: Path) -> dict[str, Any]:
    data = tmp_path / "data.csv"
    release.masked.write(data, format="csv")
    return public_facts(release, written_file(release, data, "csv"))


def page_of(table: Table, plan: Plan, tmp_path: Path) -> str:
    release = protect(table, plan)
    return release_page(release, facts_of(release, tmp_path))


def people(rows: int = 1200, *, seed: int = 7) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "who": [f"person-{i}" for i in range(rows)],
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["f", "m"], rows),
            "region": [f"R{int(r)}" for r in draw.exponential(3, rows)],
            "income": draw.lognormal(10, 0.5, rows).round(2),
            "illness": draw.choice(["flu", "asthma", "none"], rows),
        }
    )


ROLES = Roles(
    identifiers=["who"],
    quasi_identifiers=["age", "sex", "region"],
    sensitive=["illness"],
    insensitive=["income"],
)


STEPS = (
    TopBottomCode(fence=1.5, columns=["income"]),
    AddNoise(epsilon=2.0, columns=["income"]),
    Round(base=1000, columns=["income"]),
    Recode(magnitude=1.5),
    Suppress(min_class_size=5),
)
NASTY = [
    "<script>alert(1)</script>",
    "\"quoted\" 'single' & <b>bold</b>",
    "{{ 7 * 7 }}{% raw %}",
    "عمر الشخص",
    "年齢 🐟",
    "one\x01 bell\x07 turn\u202earound",
    "long " * 400,
    "--></style></script>",
]
