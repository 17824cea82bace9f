"""Models of a partition as a whole: they hold or not by the sizes of all classes."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from shoal.models._base import PrivacyModel
from shoal.table import Table

Integers = npt.NDArray[np.int64]


class PartitionModel(PrivacyModel):
    """Base of the models that read nothing but the sizes of the classes, all at once.

    No single record violates such a model: where it does not hold, all of them do.
    """

    direction = "lower"

    @abstractmethod
    def level_of_sizes(self, sizes: Integers) -> float:
        """The level of a partition into classes of these sizes."""

    def holds_for_sizes(self, sizes: Integers) -> bool:
        """Whether a partition into classes of these sizes is accepted, for searches."""
        return bool(self.accepts(self.level_of_sizes(sizes)))

    def level(self, table: Table) -> float:
        """The level of the partition by equal quasi-identifiers; 0 without records."""
        return self.level_of_sizes(table.classes.sizes) if len(table) else 0.0

    def violations(self, table: Table) -> npt.NDArray[np.bool_]:
        """All records where the model does not hold, else none."""
        return np.full(len(table), not self.accepts(self.level(table)))
