"""Small tables in classes, for the tests of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from shoal import Roles, Table


def in_classes(*classes: Any) -> Table:
    """A table whose classes have these sensitive values."""
    rows = [(place, value) for place, values in enumerate(classes) for value in values]
    frame = pl.DataFrame(
        {"group": [place for place, _ in rows], "ill": [value for _, value in rows]}, strict=False
    )
    return Table(frame, Roles(quasi_identifiers=["group"], sensitive=["ill"]))


class Nodes:
    """A hierarchy as models see it: for each value in its order, its node at each height."""

    def __init__(self, maps: Any) -> None:
        self.maps = np.asarray(maps)

    def codes(self, table: Table, column: str) -> Nodes:
        assert self.maps.shape[1] == table.codes(column).count
        return self
