"""People whose illness follows their age."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal import (
    Roles,
    Table,
)

ROLES = Roles(quasi_identifiers=["age", "sex"], sensitive=["ill"])


#: What the best rule gets of a crowd: an age of 50 divides it, with an error of 8 over 60 years.
BEST = 1 - 8 * np.sqrt(2 / np.pi) / 60


def table(age, ill, sex=None, roles=ROLES):
    columns = {"age": age, "sex": ["f"] * len(age) if sex is None else sex, "ill": ill}
    return Table(pl.DataFrame(columns, strict=False), roles)


def crowd(rows=400, seed=1):
    """Illness follows age, apart from noise; sex is unrelated."""
    random = np.random.default_rng(seed)
    age = random.integers(20, 80, rows)
    ill = np.where(age + random.normal(0, 8, rows) > 50, "yes", "no")
    return table(age, ill, random.choice(["f", "m"], rows))
