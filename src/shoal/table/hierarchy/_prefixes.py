"""Codes that are coarse at their beginning: postcodes, occupations, diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.table.columns._frames import kind_of
from shoal.table.hierarchy._rule import ROOT, Rule, Rung, Unseen

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
