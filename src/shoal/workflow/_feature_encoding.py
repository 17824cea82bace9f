"""Generalized columns as numbers, for models that learn from them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shoal.masking import TOP, Scale
from shoal.table import Table

Encoding = Literal["codes", "midpoints", "one-hot"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureEncoder:
    """The texts of one released column, in their order, with a number for each."""

    encoding: Encoding
    texts: tuple[str, ...]
    numbers: Floats
    numeric: bool

    def names(self, column: str) -> list[str]:
        """The columns that come out."""
        if self.encoding != "one-hot":
            return [column]
        return [f"{column}={text}" for text in self.texts]

    def columns(self, column: str, table: Table, scale: Scale) -> dict[str, Floats]:
        """The column of a table as numbers; ``scale`` has the texts that it can hold."""
        coded = table.codes(column)
        if self.encoding == "one-hot":
            ranks = np.array(
                [*self._ranks(coded.texts, None), *([-1] * (coded.missing is not None))]
            )
            hot = ranks[coded.codes][:, None] == np.arange(len(self.texts))
            return dict(zip(self.names(column), hot.T.astype(np.float64), strict=True))
        if self.encoding == "midpoints" and self.numeric:
            values = self._middles(coded.texts, scale)
        else:
            values = self._ranks(coded.texts, scale)
        known = [*values, *([np.nan] * (coded.missing is not None))]
        return {column: np.array(known, np.float64)[coded.codes]}

    def _ranks(self, texts: list[str], scale: Scale | None) -> list[float]:
        """The place of each text; of one that is new, that of its number, or -1."""
        place = {text: float(rank) for rank, text in enumerate(self.texts)}
        if scale is not None and self.numeric:
            for text, number in zip(scale.texts, scale.numbers, strict=True):
                if text is not None and not np.isnan(number):
                    place.setdefault(text, float(np.searchsorted(self.numbers, number)))
        return [-1.0 if text == TOP else place.get(text, -1.0) for text in texts]

    def _middles(self, texts: list[str], scale: Scale) -> list[float]:
        numbers = dict(zip(scale.texts, scale.numbers, strict=True))
        numbers |= dict(zip(self.texts, self.numbers, strict=True))
        middle = float(self.numbers.mean()) if len(self.numbers) else 0.0
        return [
            middle if np.isnan(found := float(numbers.get(text, np.nan))) else found
            for text in texts
        ]


def feature_encoder(encoding: Any, scale: Scale, released: Container[str]) -> FeatureEncoder:
    """The encoder of a column as it was released: each text once, in ascending order."""
    numbers = {
        text: float(number)
        for text, number in zip(scale.texts, scale.numbers, strict=True)
        if text is not None and text in released and text != TOP and not np.isnan(number)
    }
    ordered = sorted(numbers, key=lambda text: (numbers[text], text))
    return FeatureEncoder(
        encoding, tuple(ordered), np.array([numbers[text] for text in ordered]), scale.numeric
    )
