"""Released columns as numbers that a model can learn from, the same for rows that come later."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats
from shoal.masking import TOP, Scale
from shoal.table import NUMBERS, QUANTITIES, Table, quantities, scale_name

ENCODINGS = ("codes", "midpoints", "one-hot", "text")
#: A text that fewer persons have is not kept: of two persons, each could infer the other's.
_FEWEST = 3


class Encoder(Protocol):
    """One released column as columns of numbers."""

    def names(self, column: str) -> list[str]:
        """The columns that come out."""

    def columns(self, column: str, table: Table, scale: Scale | None) -> dict[str, Floats] | None:
        """The column of a table as numbers; None if it already has numbers."""


def encoders_of(encoding: str, masked: Table, scales: Mapping[str, Scale]) -> dict[str, Encoder]:
    """An encoder for each column of a masked table; none if texts stay texts."""
    if encoding == "text":
        return {}
    return {name: _encoder(encoding, masked, name, scales.get(name)) for name in masked.columns}


def _encoder(encoding: str, masked: Table, name: str, scale: Scale | None) -> Encoder:
    if scale is not None:
        # only the texts that were released: the others belong only to suppressed records
        return text_encoder(encoding, scale, {*masked.codes(name).texts})
    if masked.kind(name) in (*QUANTITIES, "boolean"):
        return NumberEncoder(scale_name(masked.codes(name)))
    texts = masked.codes(name).texts
    known = tuple(t for t, n in zip(texts, masked.holders(name), strict=True) if n >= _FEWEST)
    ranks = Scale(known, np.arange(float(len(known))), numeric=False)
    return text_encoder(encoding, ranks, {*known})


@dataclass(frozen=True)
class NumberEncoder:
    """A column of numbers stays unchanged; yes and no are 1 and 0, dates count in days.

    Decimals become floats, since models do not take them.
    """

    measured: str

    def names(self, column: str) -> list[str]:
        """The columns that come out."""
        return [column]

    def columns(self, column: str, table: Table, scale: Scale | None) -> dict[str, Floats] | None:
        """The column as numbers; None if it already has numbers."""
        plain = table.kind(column) in NUMBERS and not table.column(column).dtype.is_decimal()
        if plain and self.measured == "numbers":
            return None
        coded = table.codes(column)
        if self.measured == "boolean" and table.kind(column) == "boolean":
            values = np.array([*coded.levels.to_list(), np.nan], np.float64)[: coded.count]
        elif len(coded.levels) and scale_name(coded) != self.measured:
            raise InputError(
                f"Column '{column}' is {table.kind(column)} but was {self.measured} when the "
                "Protector was fitted. Read it as it was then."
            )
        else:
            values = quantities(coded)
        return {column: values[coded.codes]}


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """The texts of one released column, in their order, with a number for each."""

    encoding: str
    texts: tuple[str, ...]
    numbers: Floats
    numeric: bool

    def names(self, column: str) -> list[str]:
        """The columns that come out."""
        if self.encoding != "one-hot":
            return [column]
        return [f"{column}={text}" for text in self.texts]

    def columns(self, column: str, table: Table, scale: Scale | None) -> dict[str, Floats] | None:
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
        """The rank of each text; for a new text, the rank of its number, or -1."""
        place = {text: float(rank) for rank, text in enumerate(self.texts)}
        if scale is not None and self.numeric:
            for text, number in zip(scale.texts, scale.numbers, strict=True):
                if text is not None and not np.isnan(number):
                    place.setdefault(text, float(np.searchsorted(self.numbers, number)))
        return [-1.0 if text == TOP else place.get(text, -1.0) for text in texts]

    def _middles(self, texts: list[str], scale: Scale | None) -> list[float]:
        numbers = {} if scale is None else dict(zip(scale.texts, scale.numbers, strict=True))
        numbers |= dict(zip(self.texts, self.numbers, strict=True))
        middle = float(self.numbers.mean()) if len(self.numbers) else 0.0
        return [
            middle if np.isnan(found := float(numbers.get(text, np.nan))) else found
            for text in texts
        ]


def text_encoder(encoding: str, scale: Scale, released: Container[str]) -> TextEncoder:
    """The encoder of a column as it was released: each text once, in ascending order."""
    numbers = {
        text: float(number)
        for text, number in zip(scale.texts, scale.numbers, strict=True)
        if text is not None and text in released and text != TOP and not np.isnan(number)
    }
    ordered = sorted(numbers, key=lambda text: (numbers[text], text))
    return TextEncoder(
        encoding, tuple(ordered), np.array([numbers[text] for text in ordered]), scale.numeric
    )
