"""What microaggregation gives to a group is not the value of one of its people."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

import shoal as sh


def people(rows=150):
    """Ages that make the groups; a wage that few tell, a birth date, a moment, a title of one."""
    rng = np.random.default_rng(6)
    days = rng.permutation(20_000)[:rows]
    earned = rng.exponential(3_000, rows).round(2)
    wages = [float(wage) if row % 10 == 0 else None for row, wage in enumerate(earned)]
    frame = pl.DataFrame(
        {
            "age": np.arange(rows),
            "wage": wages,
            "born": [dt.date(1940, 1, 1) + dt.timedelta(days=int(day)) for day in days],
            "seen": [dt.datetime(2020, 1, 1) + dt.timedelta(seconds=int(day)) for day in days],
            "title": [f"title {day}" for day in days],
        }
    )
    return sh.Table(frame, sh.Roles(quasi_identifiers=frame.columns))


@pytest.mark.parametrize("partition", ["mdav", "mondrian"])
@pytest.mark.parametrize("k", [2, 5])
def test_nobody_s_value_is_the_value_of_a_group(partition, k):
    """4 of 15 wages were published as they are, and a date, a moment and a title of each group."""
    table = people()
    step = sh.Microaggregate(k, partition=partition, dissimilarity="gower")
    masked = step.fit_transform(table)
    present = table.present("wage")
    for name in ("wage", "title"):
        own, shown = table.frame[name].to_list(), masked.frame[name].to_list()
        assert not [1 for pair in zip(own, shown, strict=True) if pair[0] == pair[1] is not None]
    known = np.bincount(step.groups_, weights=present)
    assert not masked.present("wage")[known[step.groups_] < max(k, 3)].any()
    for name in ("born", "seen"):
        # a mean may fall on somebody by chance, a median always does
        quoted = set(table.frame[name]) & set(masked.frame[name])
        assert len(quoted) < len(set(step.groups_)) / 4


def test_a_member_cannot_subtract_their_own_value():
    """From the mean of two, each of them knows the value of the other."""
    table = sh.Table(pl.DataFrame({"wage": [10.0, 14.0]}), sh.Roles(quasi_identifiers=["wage"]))
    assert sh.Microaggregate(2).fit_transform(table).frame["wage"].to_list() == [None, None]
    wages = pl.DataFrame({"wage": [10.0, 14.0, 30.0, 34.0, 90.0, 95.0]})
    step = sh.Microaggregate(2)
    step.fit_transform(sh.Table(wages, sh.Roles(quasi_identifiers=["wage"])))
    assert np.bincount(step.groups_).min() >= 3
