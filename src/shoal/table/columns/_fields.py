"""The fields of a file: as they stand in it, each text once where texts repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.kernels.arrays import Integers
from shoal.table.columns._column import Column
from shoal.table.columns._encode import encode
from shoal.table.columns._frames import plain_floats


class Fields:
    """A column of fields: as they come, or numbers of texts where texts repeat.

    Parameters
    ----------
    texts : polars.Series
        The fields; with ``labels`` the texts that these stand for.
    labels : numpy.ndarray, optional
        For each field the number of its text.
    """

    def __init__(self, texts: pl.Series, labels: npt.NDArray[Any] | None = None) -> None:
        self.texts, self.labels = texts, labels
        #: How many fields have each text; None where the texts are as they come.
        self.counts: Integers | None = None
        if labels is not None:
            self.counts = np.bincount(labels, minlength=len(texts))

    @classmethod
    def of(cls, cells: pl.Series) -> Fields:
        """The fields of a column that a reader gave, which has categories where texts repeat."""
        if not isinstance(cells.dtype, pl.Categorical):
            return cls(cells)
        texts, labels = cells.dtype.categories.to_series(), cells.to_physical()
        if cells.null_count():
            texts, labels = texts.extend_constant(None, 1), labels.fill_null(len(texts))
        fields = cls(texts.alias(cells.name), labels.to_numpy())
        assert fields.counts is not None
        unused = fields.counts == 0
        if unused.any():  # of a piece that was parsed twice
            fields.texts = fields.texts.set(pl.Series(unused), None)
        return fields

    def __len__(self) -> int:
        return len(self.texts if self.labels is None else self.labels)

    def head(self, count: int) -> pl.Series:
        """The first of them as text, in the order of the file."""
        if self.labels is None:
            return self.texts.head(count).cast(pl.String)
        return self.texts.gather(self.labels[:count]).cast(pl.String)


def column_of(name: str, values: pl.Series, labels: npt.NDArray[Any] | None) -> Column:
    """A column with these values, or, with labels, in each row the value of its label."""
    values = plain_floats(values.alias(name))
    return Column(values) if labels is None else Column(encode(values).at(labels))
