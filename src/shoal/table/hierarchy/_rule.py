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
from shoal.table.columns._domain import ROOT
from shoal.table.columns._frames import kind_of

if TYPE_CHECKING:
    from shoal.table.columns._domain import Meanings


#: What is done with a value that a listed hierarchy does not have.
Unseen = Literal["refuse", "top", "nearest"]


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


_MASK: Final = "*"


@dataclass(frozen=True)
class Prefixes(Rule):
    """The first characters are kept, the others masked one by one: 12345, 1234*, 123**."""

    lengths: tuple[int, ...]
    pad: int | None = None

    kind = "prefixes"

    @property
    def inner_levels(self) -> int:
        return len(self.lengths)

    def rungs(self, values: pl.Series, unseen: Unseen) -> list[Rung]:
        kind = kind_of(values.dtype)
        if kind not in ("text", "integer"):
            raise InputError(
                f"Column '{values.name}' is {kind}; prefixes are for codes in text or whole "
                "numbers. Take another hierarchy."
            )
        text = values.cast(pl.String).alias("text")
        if kind == "integer" and self.pad is not None:
            text = text.str.zfill(self.pad)
        return [self._rung(text, length) for length in self.lengths]

    def _rung(self, text: pl.Series, length: int) -> Rung:
        hidden = (text.str.len_chars().cast(pl.Int64) - length).clip(0)
        masks = pl.Series([_MASK * n for n in range(int(hidden.max() or 0) + 1)])  # type: ignore[arg-type]
        labels = text.str.slice(0, length) + masks.gather(hidden)
        found = labels.unique().sort()
        nodes = labels.cast(pl.Enum(found)).to_physical().to_numpy().astype(np.int32)
        return Rung(nodes, found.to_list())

    def to_plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = {self.kind: list(self.lengths)}
        return plan if self.pad is None else plan | {"pad": self.pad}

    def describe(self) -> str:
        return f"prefixes of {', '.join(map(str, self.lengths))} characters"


def prefixes(lengths: Sequence[int], *, pad: int | None = None) -> Prefixes:
    """Prefixes whose lengths are checked: from long to short."""
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in lengths)
    if not lengths or not whole or list(lengths) != sorted({*lengths}, reverse=True):
        raise InputError(
            "The lengths of prefixes must be whole numbers from long to short, each once, such "
            "as [4, 3, 2]."
        )
    if min(lengths) < 1:
        raise InputError(f"A prefix has 1 character or more; the root '{ROOT}' is added by itself.")
    if pad is not None and (not isinstance(pad, int) or isinstance(pad, bool) or pad < 1):
        raise InputError("'pad' of prefixes must be the number of digits of a full code.")
    return Prefixes(tuple(int(n) for n in lengths), pad)
