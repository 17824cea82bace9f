"""What a kind of hierarchy has to say: the coarser values of given values, level by level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.errors import InputError
from shoal.kernels.arrays import Floats
from shoal.table.columns._frames import kind_of

if TYPE_CHECKING:
    from shoal.table.columns._domain import Meanings

#: The label of the root: nothing is said about the value.
ROOT: Final = "*"

#: What is done with a value that a listed hierarchy does not have.
Unseen = Literal["refuse", "top", "nearest"]

_TICKS_PER_DAY: Final = {"D": 1, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}


@dataclass(frozen=True, eq=False)
class Rung:
    """One level over the values at hand: the node of each value, and what a node is.

    Nodes are numbered from 0 without gaps. ``bounds`` has the lowest and highest number of each
    node where the values are numbers or dates. ``leaves`` has the number of values of the
    hierarchy under each node, or is None where the values at hand are all that is known of it.
    ``meanings`` has what the labels stand for, where the rule wrote them.
    """

    nodes: npt.NDArray[np.int32]
    labels: Sequence[str]
    bounds: Floats | None = None
    leaves: Floats | None = None
    meanings: Meanings | None = None


class Rule(ABC):
    """A kind of hierarchy, without its level 0 (the value itself) and its root."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def inner_levels(self) -> int:
        """The number of levels between the value itself and the root."""

    @abstractmethod
    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        """The inner levels of distinct values, none missing, in ascending order."""

    @abstractmethod
    def to_plan(self) -> dict[str, Any]:
        """The rule as plain data: its kind, and its options beside it."""

    @abstractmethod
    def describe(self) -> str:
        """The rule in words, without a value of the data."""

    def size(self, values: pl.Series) -> int:
        """The number of values of the hierarchy; those at hand where it is a function."""
        return len(values)


def dense(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The different keys in ascending order, and the position of each key among them."""
    found, nodes = np.unique(keys, return_inverse=True)
    return found, nodes.reshape(len(keys)).astype(np.int32)


def useful_levels(rungs: Sequence[Rung], values: int) -> list[int]:
    """The levels that join something that the one below parts, and leave more than one node."""
    kept, nodes = [], values
    for level, rung in enumerate(rungs):
        if 1 < len(rung.labels) < nodes:
            kept.append(level)
            nodes = len(rung.labels)
    return kept


def numbers_of(values: pl.Series) -> npt.NDArray[Any]:
    """Numbers as 64-bit integers or floats; a duration counts in seconds."""
    kind = kind_of(values.dtype)
    if kind == "duration":
        ticks = {"ms": 1e3, "us": 1e6, "ns": 1e9}[getattr(values.dtype, "time_unit", "us")]
        return values.to_physical().cast(pl.Float64).to_numpy() / ticks
    if kind == "integer":
        return values.cast(pl.UInt64 if values.dtype == pl.UInt64 else pl.Int64).to_numpy()
    if kind != "float":
        raise InputError(
            f"Column '{values.name}' is {kind}, and a hierarchy of numbers does not fit it; take "
            "one for its kind, or the one that is proposed (Hierarchy.propose, 'shoal hierarchy')."
        )
    floats = values.cast(pl.Float64).to_numpy()
    infinite = int(np.isinf(floats).sum())
    if infinite:
        raise InputError(
            f"Column '{values.name}' holds {infinite} infinite values; make them missing first."
        )
    return floats


def bounds_of_values(values: pl.Series) -> Floats | None:
    """Each value as its own lower and upper bound, or None where it is no quantity.

    Dates and datetimes count in days from 1970-01-01, times in parts of a day, durations in
    seconds.
    """
    kind = kind_of(values.dtype)
    if kind in ("text", "boolean"):
        return None
    if kind in ("date", "datetime", "time"):
        numbers = days_of(values)
    else:
        numbers = numbers_of(values).astype(np.float64)
    return np.column_stack((numbers, numbers))


def days_of(values: pl.Series) -> Floats:
    """Dates, datetimes (by the clock of their zone) and times in days."""
    if kind_of(values.dtype) == "time":
        return values.to_physical().cast(pl.Float64).to_numpy() / 86_400e9
    moments = moments_of(values)
    whole = moments.astype("datetime64[D]")
    ticks = _TICKS_PER_DAY[np.datetime_data(moments.dtype)[0]]
    rest = (moments - whole.astype(moments.dtype)).astype(np.float64) / ticks
    return whole.astype(np.float64) + rest


def moments_of(values: pl.Series) -> npt.NDArray[np.datetime64]:
    """Dates and datetimes as numpy has them, without their zone."""
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None:
        # by the clock of the zone, as people read it
        values = values.dt.replace_time_zone(None)
    unit = getattr(values.dtype, "time_unit", "D")
    return values.to_physical().cast(pl.Int64).to_numpy().astype(f"datetime64[{unit}]")


@dataclass(frozen=True)
class Suppression(Rule):
    """Nothing between the value itself and the root."""

    kind = "suppression"

    @property
    def inner_levels(self) -> int:
        return 0

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        return []

    def to_plan(self) -> dict[str, Any]:
        return {self.kind: True}

    def describe(self) -> str:
        return "the value or nothing"
