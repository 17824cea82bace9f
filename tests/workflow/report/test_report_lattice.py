"""A report of generalized data: levels, what became of suppressed records, and the lattice."""

from __future__ import annotations

import html
import re

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Plan, Roles, Table, protect
from shoal.workflow.report._figures import lattice_picture


def people():
    rng = np.random.default_rng(3)
    ages = np.concatenate([rng.integers(20, 60, 395), [95, 96, 97, 98, 99]])
    frame = pl.DataFrame({"age": ages, "zip": rng.integers(10, 14, 400).astype(str)})
    secret = pl.Series("ill", rng.choice(["flu", "gout"], 400))
    return Table(
        frame.with_columns(secret), Roles(quasi_identifiers=["age", "zip"], sensitive=["ill"])
    )


HIERARCHIES = {"age": Hierarchy.intervals([5, 10, 30]), "zip": Hierarchy.prefixes([1])}


def released(tmp_path, **options):
    step = Generalize(k=12, hierarchies=HIERARCHIES, **options)
    release = protect(people(), Plan([step]))
    release.save(tmp_path / "out")
    page = (tmp_path / "out" / "public" / "report.html").read_text(encoding="utf-8")
    (step,) = [record.fitted for record in release.steps]
    return step, release, page, html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\u00a0", " ")


def test_levels_and_lattice_are_told(tmp_path):
    step, release, page, text = released(tmp_path)
    for name, level in step.levels_.items():
        assert re.search(rf"{name}\s+{level}\b", text)
    assert "Of 15 combinations of levels" in text
    assert "proved to lose the least" in text
    (method,) = [record.facts for record in release.steps]
    layers = method["lattice"]["layers"]
    assert [total for _, total, _, _ in layers] == [1, 2, 3, 3, 3, 2, 1]
    assert method["lattice"]["chosen"] == sum(step.levels_.values())
    assert page.count('class="chosen"') == 1
    # no count of records that fail elsewhere leaves the house
    assert set(method["lattice"]) == {"layers", "chosen", "size", "looked_at", "proved"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "are not in the release"),
        ({"suppressed": "kept"}, "their sensitive values were removed"),
        ({"suppressed": "kept", "keep_sensitive": True}, "their sensitive values were kept"),
    ],
)
def test_what_became_of_suppressed_records(tmp_path, options, said):
    step, _, _, text = released(tmp_path, suppression_limit=0.2, **options)
    assert step.suppressed_ > 0
    assert said in text


def test_the_picture_has_a_line_per_layer_within_its_box():
    layers = [[0, 1, 1, 0], [1, 4, 2, 1], [2, 1, 0, 0]]
    facts = {"lattice": {"layers": layers, "chosen": 1, "size": 6, "looked_at": 4, "proved": True}}
    picture = lattice_picture(facts)
    assert [layer.height for layer in picture.layers] == [2, 1, 0]  # the most general on top
    assert [layer.chosen for layer in picture.layers] == [False, True, False]
    middle = picture.layers[1]
    assert middle.whole[1] == pytest.approx(picture.width - 40)
    assert middle.fine[1] == pytest.approx(2 * middle.safe[1])
    assert middle.fine[1] + middle.safe[1] == pytest.approx(middle.whole[1] * 3 / 4)
    assert all(0 < layer.y < picture.height for layer in picture.layers)
    assert lattice_picture({}) is None
