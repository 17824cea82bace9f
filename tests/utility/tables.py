"""Tables for the tests of utility measures."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal import Roles, Table


def table(**columns):
    """A table of these columns without roles."""
    return Table(pl.DataFrame(columns))


def quasi(**columns):
    """A table whose columns are all quasi-identifiers."""
    return Table(pl.DataFrame(columns), Roles(quasi_identifiers=list(columns)))


def masked_as(original, **columns):
    """These columns, row by row descended from the original."""
    return Table(pl.DataFrame(columns), original.roles).paired(original)


def mixed(rows, seed):
    """Numbers with ties, dates, texts; some cells missing."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "whole": rng.integers(0, 60, rows),
            "tied": rng.integers(0, 4, rows) / 2,
            "real": rng.lognormal(size=rows),
            "day": pl.Series(rng.integers(0, 9000, rows)).cast(pl.Date),
            "text": np.array(list("abcdefg"))[rng.integers(0, 7, rows)],
        }
    )
    gaps = [pl.Series(rng.random(rows) < 0.1) for _ in frame.columns]
    frame = frame.with_columns(
        column.set(gap, None)
        if column.dtype != pl.String
        else column.zip_with(~gap, pl.Series([None] * rows, dtype=pl.String))
        for column, gap in zip(frame, gaps, strict=True)
    )
    return Table(frame, Roles(quasi_identifiers=frame.columns))
