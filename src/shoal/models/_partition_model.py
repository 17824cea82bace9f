"""Models of a partition as a whole: they hold or not by the sizes of all classes."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from shoal.models._base import PrivacyModel
from shoal.table import Table, owned_pairs

Integers = npt.NDArray[np.int64]


class PartitionModel(PrivacyModel):
    """Base of the models that read nothing but the sizes of the classes, all at once.

    No single record violates such a model: where it does not hold, all of them do.
    """

    direction = "lower"

    @abstractmethod
    def level_of_sizes(
        self, sizes: Integers, classes: Integers | None = None, persons: Integers | None = None
    ) -> float:
        """The level of a partition into classes of these sizes.

        Where a person may be in several, ``classes`` and ``persons`` are the pairs of the two.
        """

    def holds_for_sizes(
        self, sizes: Integers, classes: Integers | None = None, persons: Integers | None = None
    ) -> bool:
        """Whether a partition into classes of these sizes is accepted, for searches."""
        return bool(self.accepts(self.level_of_sizes(sizes, classes, persons)))

    def level(self, table: Table) -> float:
        """The level of the partition by equal quasi-identifiers; 0 without records."""
        if not len(table):
            return 0.0
        pairs = owned_pairs(table.classes.labels, table.persons) if table.has_persons else ()
        return self.level_of_sizes(table.classes.sizes, *pairs)

    def violations(self, table: Table) -> npt.NDArray[np.bool_]:
        """All records where the model does not hold, else none."""
        return np.full(len(table), not self.accepts(self.level(table)))
