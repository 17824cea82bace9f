"""Work grows with the number of columns, not with its square."""

from __future__ import annotations

import pickle
import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest

from shoal import KAnonymity, Plan, Roles, Suppress, Table, protect, verify
from shoal.errors import ShoalWarning

pytestmark = pytest.mark.filterwarnings("ignore", category=ShoalWarning)


def wide(columns):
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            f"c{i}": draw.integers(0, 3, 30) if i % 2 else draw.choice(["a", "b"], 30)
            for i in range(columns)
        }
    )
    names = frame.columns
    return Table(
        frame,
        Roles(quasi_identifiers=names[:2], sensitive=names[2:3], insensitive=names[3:]),
    )


def release(table, folder):
    plan = Plan([Suppress(min_class_size=2)], require=[KAnonymity(2)])
    out = protect(table, plan).save(folder, format="csv")
    assert verify(out, original=table).holds


def work(table, folder, monkeypatch):
    """How many names were listed, roles gone through and functions called to make a release."""
    done = Counter()
    columns, items = pl.DataFrame.columns, Roles.items

    def listed(frame):
        names = columns.fget(frame)
        done["names"] += len(names)
        return names

    def gone_through(roles):
        pairs = items(roles)
        done["roles"] += len(pairs)
        return pairs

    def called(frame, event, argument):
        done["calls"] += event in ("call", "c_call")

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "columns", property(listed, columns.fset))
        patch.setattr(Roles, "items", gone_through)
        before = sys.getprofile()
        sys.setprofile(called)
        try:
            release(table, folder)
        finally:
            sys.setprofile(before)
    return done


def test_twice_the_columns_are_twice_the_work(tmp_path, monkeypatch):
    release(wide(10), tmp_path / "first")  # what is loaded and compiled once
    half = work(wide(30), tmp_path / "half", monkeypatch)
    whole = work(wide(60), tmp_path / "whole", monkeypatch)
    for part, count in half.items():
        assert whole[part] < 2.3 * count, part


def test_the_columns_of_a_table_are_a_list_that_nobody_changes():
    table = wide(5)
    names = table.columns
    assert names == ["c0", "c1", "c2", "c3", "c4"]
    assert "c4" in names
    assert "c5" not in names
    assert pickle.loads(pickle.dumps(table)).columns == names
    for change in (names.clear, names.pop, names.sort, lambda: names.append("c5")):
        with pytest.raises(TypeError, match="frozen"):
            change()
    assert [*names, "c5"] == [*table.columns, "c5"]
