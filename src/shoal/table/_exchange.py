"""Which rows exchanged values: the private record that a swap leaves with its table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Exchange:
    """One permutation of a block of columns inside groups of rows. Private.

    Parameters
    ----------
    columns : tuple of str
        The block: columns whose values travelled together.
    groups : numpy.ndarray
        The group of each row.
    source : numpy.ndarray
        The key of the row whose values each row carries now.
    origin : {"entropy", "seed", "key"}
        Where the randomness came from.
    accepted : bool
        Whether the plan accepts another origin than entropy.
    """

    columns: tuple[str, ...]
    groups: npt.NDArray[np.int32]
    source: npt.NDArray[np.int64]
    origin: str
    accepted: bool = False

    @property
    def is_secret(self) -> bool:
        """Whether nobody can draw the permutation again, or the plan takes that for granted."""
        return self.origin == "entropy" or self.accepted

    def at(self, rows: npt.NDArray[Any]) -> Exchange:
        """The same for some rows, or for the rows in another order."""
        return replace(self, groups=self.groups[rows], source=self.source[rows])

    def __repr__(self) -> str:
        return f"Exchange(columns={self.columns}, rows={len(self.groups)})"
