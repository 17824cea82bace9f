"""What round ends and proposed hierarchies cost, next to exact ends and to halves of halves."""

from __future__ import annotations

import datetime as dt
import re
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Table, read, suggest_plan
from shoal.utility import normalized_certainty_penalty

ADULT = ["age", "education-num", "capital-gain", "hours-per-week"]


@pytest.fixture(scope="module")
def adult(shared_data):
    return read(shared_data / "uci/adult.parquet")


def exact_penalty(table, masked, columns):
    """The penalty of each column if every class showed its lowest and its highest record."""
    found = {}
    for name in columns:
        series = table.frame[name]
        if not (series.dtype.is_numeric() or series.dtype.is_temporal()):
            continue
        values = series.to_physical().cast(pl.Float64)
        frame = pl.DataFrame({"class": masked.classes.labels, "value": values})
        spread = pl.col("value").max() - pl.col("value").min()
        widths = frame.drop_nulls().with_columns(spread.over("class").alias("width"))["width"]
        found[name] = widths.sum() / (values.max() - values.min()) / len(table)
    return found


def assert_near_exact(table):
    """As 'shoal init' would release it: at most 5 % more than with exact ends."""
    plan = suggest_plan(table)
    table = table.with_roles(plan.roles)
    masked = plan.plan.steps[0].fit_transform(table)
    columns = normalized_certainty_penalty(table, masked).details["columns"]
    exact = columns | exact_penalty(table, masked, columns)
    assert sum(columns.values()) <= 1.05 * sum(exact.values())
    assert_ends_are_nobodys(table, masked, exact)


def ends_of(text):
    return [end for end in re.split(r", |[\[)<]|>=", text) if end]


def holds_all(text, least, most, read_end=float):
    """Whether an interval holds every value of a column, and so says nothing."""
    if not (found := re.fullmatch(r"(?:\[(.+), |>=)(.+?)\)?|<(.+)", text)):
        return False
    low, high, below = found.groups()
    if below is not None:
        return read_end(below) > most
    if text.startswith(">="):
        return read_end(high) <= least
    return read_end(low) <= least and read_end(high) > most


def assert_ends_are_nobodys(table, masked, columns):
    """No end is a value that only one record of the table has, and no interval holds all values."""
    looked_at = 0
    for name in columns:
        if table.kind(name) == "text":
            continue
        counts = table.frame[name].value_counts()
        alone = set(counts.filter(pl.col("count") == 1)[name])
        read_end = float if table.frame[name].dtype.is_numeric() else dt.date.fromisoformat
        texts = masked.frame[name].cast(pl.String).drop_nulls().unique()
        ends = {end for text in texts for end in ends_of(text)}
        least, most = table.frame[name].min(), table.frame[name].max()
        assert not any(holds_all(text, least, most, read_end) for text in texts)
        looked_at += len(ends)
        assert not {read_end(end) for end in ends - {"*"}} & alone
    assert looked_at > 30


@pytest.mark.parametrize("name", ["people", "patients"])
def test_round_ends_cost_little_on_the_demo(name):
    assert_near_exact(read(str(files("shoal.app.demo") / f"{name}.csv")))


def test_round_ends_cost_little_on_adult(adult):
    assert_near_exact(adult)


def test_local_recoding_is_good_with_what_shoal_proposes(adult):
    """With proposals it was worse than with halves of halves, and worse than Mondrian's boxes."""
    table = adult.with_roles(Roles(quasi_identifiers=ADULT))
    step = Generalize("local", k=5, seconds=5)
    assert normalized_certainty_penalty(table, step.fit_transform(table)).value <= 0.014
    widths = [Hierarchy.propose(table, name).to_plan()["intervals"] for name in ADULT]
    tens = [10.0**power for power in range(5)]
    assert all(
        np.any([first == lead * ten for lead in (1, 2, 2.5, 5) for ten in tens])
        for first, *_ in widths
    )


def test_ends_in_a_dense_column_are_calendar_units():
    """Somebody was born on nearly every day, so that a cut lies between two neighbouring days."""
    start, turn = dt.date(1930, 1, 1), 7_919
    days = [at * turn % 33_000 for at in range(6_000)]
    born = [start + dt.timedelta(days=day) for day in [*days, *days]]  # nobody has a day alone
    town = [chr(97 + at % 13) for at in range(len(born))]
    table = Table(
        pl.DataFrame({"born": born, "town": town}), Roles(quasi_identifiers=["born", "town"])
    )
    masked = Generalize("mondrian", k=40).fit_transform(table).frame["born"]
    frame = pl.DataFrame({"born": born, "text": masked})
    wide = frame.group_by("text").agg(days=(pl.max("born") - pl.min("born")).dt.total_days())
    ends = {end for text in wide.filter(pl.col("days") > 365)["text"] for end in ends_of(text)}
    assert len(ends) > 20
    assert {end[-2:] for end in ends} == {"01"}


def test_an_end_near_its_records_is_nobodys_own():
    """Of a wide gap to the next box, only a tenth of the width is left; the ends stay round."""
    ages = [20, *[23] * 2, 24, 26, 29, *[60] * 2, 61, 63, 66, 69, 90]
    table = Table(pl.DataFrame({"age": ages}), Roles(quasi_identifiers=["age"]))
    masked = Generalize("mondrian", k=6).fit_transform(table)
    low, high = masked.frame["age"].unique(maintain_order=True)
    assert low == "<31"  # 29 is one person's age, so the next number is not an end either
    assert high == ">=60"
