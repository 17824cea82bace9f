"""A small number of removed records cannot be computed from everything that a release states.

The intruder has the public half and knows the code: the rows, the total and the parts that were
taken out, the fraction of a sample, the limit of a suppression, the steps of the percents and the
claims. Every size of the original and every small count is tried; what contradicts nothing stays.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from fractions import Fraction

import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Plan, Roles, Sample, Suppress, Table, protect
from shoal.errors import ShoalWarning
from shoal.workflow import Limit
from shoal.workflow.release._crowds import SMALLEST_CROWD, crowded_percent, share_step

FEW = range(1, SMALLEST_CROWD)


def table(rows, few):
    """Crowds of ten by age, and a few people to remove."""
    ages = [20 + place // 10 % 40 for place in range(rows - few)] + [99] * few
    frame = pl.DataFrame({"age": ages, "sex": ["f", "m"] * (rows // 2) + ["f"] * (rows % 2)})
    return Table(frame, Roles(quasi_identifiers=["age", "sex"]))


def public_half(release, folder):
    """What is published: release.json, and the text of the report."""
    public = release.save(folder / "out", format="csv") / "public"
    page = (public / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    return json.loads((public / "release.json").read_text(encoding="utf-8")), page


def told(count):
    """The counts that a published number may stand for."""
    if count == "some":
        return range(1, 10**9)
    return FEW if count == f"fewer than {SMALLEST_CROWD}" else range(count, count + 1)


def candidates(facts, page):
    """The small counts of the first step that contradict nothing that was published."""
    rows, total = facts["data"]["rows"], told(facts["records_removed"])
    steps = facts["methods"]
    step = re.search(r"in steps of (\d+) %", page)
    found = set()
    for few in FEW:
        for original in range(rows + few, 4 * rows + 40):
            left = original - few
            if few not in told(steps[0]["records_removed"]) or original - rows not in total:
                continue
            if len(steps) > 1 and left - rows not in told(steps[1]["records_removed"]):
                continue
            sample = steps[-1]["parameters"].get("fraction")
            if sample is not None and int(Fraction(repr(sample)) * left) != rows:
                continue
            limit = steps[0]["parameters"].get("suppression_limit")
            if limit is not None and few > limit * original:
                continue
            # the steps of the percents, unless they follow from the rows that everybody counts
            if step is not None and int(step[1]) not in (share_step(rows), share_step(original)):
                continue
            for claim in facts["claims"]:
                share = (original - rows) / original
                if claim["measured"] is not None and not math.isclose(
                    claim["measured"], (crowded_percent(share, rows) or 0) / 100
                ):
                    break
            else:
                found.add(few)
                break
    return found


@pytest.mark.parametrize("few", [1, 9])
@pytest.mark.parametrize("rows", [103, 2007])
@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_before_a_sample(few, rows, fraction, tmp_path):
    """The total without the removals of a sample of known fraction is that of the other step."""
    steps = [Suppress(where="age = 99", target="records"), Sample(fraction=fraction)]
    limit = Limit("suppressed_records", at_most=1.0)
    release = released(table(rows, few), steps, [limit])
    assert len(candidates(*public_half(release, tmp_path))) == len(FEW)


@pytest.mark.parametrize("few", [1, 2])
def test_within_a_limit_of_suppression(few, tmp_path):
    """At most a hundredth of three hundred is three, unless the limit is not published."""
    ages = {"age": Hierarchy.suppression(), "sex": Hierarchy.suppression()}
    step = Generalize(k=4, hierarchies=ages, suppression_limit=0.01)
    release = released(table(300, few), [step])
    assert release.steps[0].removed == few
    facts, page = public_half(release, tmp_path)
    assert len(candidates(facts, page)) == len(FEW)
    assert "0.01" not in page


def test_crowds_are_told(tmp_path):
    """Numbers as large as a crowd are published, for each step and in total."""
    steps = [Suppress(where="age = 99", target="records"), Sample(fraction=0.5)]
    facts, _ = public_half(released(table(400, 20), steps), tmp_path)
    assert [step["records_removed"] for step in facts["methods"]] == [20, 190]
    assert facts["records_removed"] == 210


def released(original, steps, require=()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return protect(original, Plan(steps, require=list(require)))
