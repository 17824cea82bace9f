"""A built-in study: a published experiment with its design and the numbers to compare with."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.study._conclusion import Claim, Conclusion
from shoal.study._design import Study
from shoal.study._results import Results
from shoal.study.data._fetching import Origin
from shoal.study.data._tables import TableSource
from shoal.table import Roles
from shoal.utility.models._columns import MOST_CLASSES, natural_task

PRESETS = ("quick", "full")

#: Whether a claim holds (None if the run cannot decide it), and the evidence.
Verdict = tuple[bool | None, str]


@cache
def paper(name: str) -> dict[str, Any]:
    """A published experiment and its presets: tables, numbers, claims and notes."""
    text = Path(__file__).with_name("papers.toml").read_text(encoding="utf-8")
    published: dict[str, Any] = tomllib.loads(text)[name]
    return published


@dataclass(frozen=True)
class OnOtherTables:
    """How to run the experiment on the user's own tables.

    ``design`` takes the study of a preset, the tables and the preset, and returns the same study
    for these tables. ``conclude`` judges the paper's claims and leaves out the published numbers,
    which belong to other tables. ``takes_hierarchies`` is true if a table may bring its own.
    """

    design: Callable[[Study, Sequence[TableSource], str], Study]
    conclude: Callable[[Results], Conclusion]
    takes_hierarchies: bool = False


@dataclass(frozen=True)
class BuiltIn:
    """A published experiment that anyone can run again.

    ``design`` makes the study of a preset: ``quick`` takes minutes on two cores, ``full`` is the
    paper's grid. ``conclude`` compares the results with the published ones. If later variants
    depend on earlier results, there are ``stages``: each returns the study with the variants so far
    and those that follow from their results. ``elsewhere`` is for tables other than the paper's.
    ``verdicts_of_full`` has the verdicts of a run of the whole grid, by the text of the claim.
    ``origins`` says where tables come from, by their path, and ``made_from`` names the sources of
    tables that were made by hand.
    """

    name: str
    title: str
    reference: str
    design: Callable[[str], Study]
    conclude: Callable[[Results], Conclusion]
    stages: tuple[Callable[[Study, Results], Study], ...] = ()
    elsewhere: OnOtherTables | None = None
    verdicts_of_full: Mapping[str, bool] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    made_from: Mapping[str, str] = field(default_factory=dict)


def judge_claims(
    study: str, judges: Mapping[str, Callable[[Any], Verdict | None]], given: Any
) -> list[Claim]:
    """The claims of a paper, each with the verdict of its judge, or undecided."""
    texts = paper(study)["claims"]
    undecided = (None, texts["undecided"])
    return [Claim(texts[name], *(judge(given) or undecided)) for name, judge in judges.items()]


def mean_of_known(values: Iterable[float | None]) -> float:
    """The mean of the values that are finite numbers; NaN if there are none."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def with_target(study: Study, source: TableSource) -> TableSource:
    """A table for a study that predicts, with its target, which must have classes."""
    declared = source.roles.target if isinstance(source.roles, Roles) else None
    target = declared if source.target is None else source.target
    if target is None:
        raise InputError(
            f"The study '{study.name}' predicts a column, but the table '{source.name}' has no "
            "target; name one (--target COLUMN)."
        )
    table = source.load(study.folder)
    classes = table.distinct(target)
    if natural_task(table, target) == "regression" or not 2 <= classes <= MOST_CLASSES:
        raise InputError(
            f"The study '{study.name}' predicts classes, but the target '{target}' of the table "
            f"'{source.name}' has {classes:,} different value{'s' * (classes != 1)}; name a column "
            "with at least two classes, or group its values."
        )
    return replace(source, target=target)


def at_most(source: TableSource, rows: int | None) -> TableSource:
    """A table limited to this number of rows, unless it sets a number itself."""
    return source if source.rows is not None or rows is None else replace(source, rows=rows)
