"""A released table that does not fit its original: one sentence each, and the rest unharmed."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table, assess

ROLES = Roles(quasi_identifiers=["age", "city"], sensitive=["illness"], target="illness")


def original() -> Table:
    draw = np.random.default_rng(3)
    return Table(
        pl.DataFrame(
            {
                "age": draw.integers(20, 60, 60),
                "city": draw.choice(["Bern", "Jena"], 60),
                "wage": draw.normal(50, 9, 60),
                "illness": draw.choice(["flu", "gout"], 60),
            }
        ),
        ROLES,
    )


def released(frame: pl.DataFrame) -> Table:
    named = [name for _, name in ROLES.items()]
    return Table(frame, ROLES.without([name for name in named if name not in frame.columns]))


MISFITS = {
    "other columns": lambda f: f.drop("wage", "city").with_columns(extra=pl.lit("x")),
    "no column in common": lambda f: f.rename({name: f"{name}_" for name in f.columns}),
    "other row counts": lambda f: f.head(25),
    "more rows than the original": lambda f: pl.concat([f, f]),
    "numbers as text": lambda f: f.with_columns(pl.col("age").cast(str) + " years"),
    "text as numbers": lambda f: f.with_columns(city=pl.lit(1.5), illness=pl.lit(3)),
    "missing values": lambda f: f.with_columns(
        age=pl.when(pl.col("wage") > 50).then("age"), city=pl.lit(None, dtype=pl.String)
    ),
    "a target with one class": lambda f: f.with_columns(illness=pl.lit("flu")),
    "one record": lambda f: f.head(1),
}


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("name", MISFITS)
def test_the_rest_is_unharmed_and_what_fails_is_marked(name, paired):
    before = original()
    frame = MISFITS[name](before.frame)
    if name == "no column in common":
        after = Table(frame, Roles(quasi_identifiers=["age_", "city_"]))
    else:
        after = released(frame) if name != "missing values" else released_with_gaps(frame)
    if paired:
        keys = np.arange(len(after)) % len(before)
        after = after.paired(before, keys) if len(after) <= len(before) else after
    found = assess(after, original=before)
    assert found["prosecutor_risk"].value == 1 / after.classes.k
    assert not set(found.measurements) & (set(found.failed) | set(found.left_out))
    for said in [*found.failed.values(), *found.left_out.values()]:
        assert "unexpected" not in said
        assert "\n" not in said
    facts = json.loads(found.to_json())
    assert facts["failed"] == dict(found.failed)
    text, page = str(found), found.to_html()
    for measure in found.failed:
        assert measure in text
        assert f"<code>{measure}</code>" in page


def released_with_gaps(frame: pl.DataFrame) -> Table:
    """A quasi-identifier may be empty after masking."""
    return Table(frame).with_roles(ROLES, released=True)


def test_a_target_with_one_class_in_the_original_too():
    frame = original().frame.with_columns(illness=pl.lit("flu"))
    table = Table(frame, ROLES)
    found = assess(table, original=table)
    assert found["uniqueness"].value >= 0
    assert not [said for said in found.failed.values() if "unexpected" in said]
