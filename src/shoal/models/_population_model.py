"""Models that compare the classes of a table with those of a population it is drawn from."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from shoal.models._base import PrivacyModel
from shoal.table import Table, read

Integers = npt.NDArray[np.int64]


class PopulationModel(PrivacyModel):
    """Base of the models that ask how many people of a population share a class.

    The population is private input: a plan and a release name its file and nothing else.
    """

    population: Table | str
    needs_audit = True

    def people(self) -> Table:
        """The population as a table; a path is read once."""
        if isinstance(self.population, Table):
            return self.population
        changed = os.stat(self.population).st_mtime_ns if os.path.isfile(self.population) else 0
        return _read(self.population, changed)

    def people_of(self, table: Table) -> Table:
        """The population, owned by persons as the table is where it has the same columns."""
        return self.people().owned_like(table)

    def sizes_in_population(self, table: Table) -> Integers:
        """How many people of the population share each record's class."""
        return table.class_sizes_in(self.people())


@lru_cache(maxsize=1)
def _read(path: str, changed: int) -> Table:
    """Read a file once, and again only after it ``changed``."""
    return read(path)
