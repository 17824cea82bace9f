"""k-anonymity: every record shares its quasi-identifiers with at least k - 1 others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from shoal.models._base import PrivacyModel, check_k
from shoal.parameters import Integer, OneOf
from shoal.table import Missing, Table


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every class of equal quasi-identifiers has at least ``k`` records.

    Parameters
    ----------
    k : int
        The smallest class that is allowed, 2 or more.
    missing : {"own", "wildcard"}
        Whether a missing value is a value of its own, or agrees with every value. The wildcard
        reading of the statistics offices gives larger classes and a weaker promise.

    References
    ----------
    Samarati (2001), Protecting respondents' identities in microdata release, definition 2.
    Sweeney (2002), k-anonymity: a model for protecting privacy.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 30, 41], "sex": ["f", "f", "f", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> KAnonymity(3).level(table), KAnonymity(3).holds(table)
    (1, False)
    >>> KAnonymity(3).violations(table).tolist()
    [False, False, False, True]
    """

    k: Annotated[int, Integer(minimum=2)]
    missing: Annotated[Missing, OneOf(("own", "wildcard"))] = "own"

    model = "k_anonymity"
    title = "k-anonymity"
    reference = "Samarati 2001; Sweeney 2002"

    def level(self, table: Table) -> int:
        """The size of the smallest class; 0 for a table without records."""
        sizes = table.class_sizes(self.missing)
        return int(sizes.min()) if len(sizes) else 0

    def violations(self, table: Table) -> npt.NDArray[np.bool_]:
        """Which records are in a class smaller than k."""
        return table.class_sizes(self.missing) < self.k

    @property
    def smallest_class(self) -> int:
        """``k``; classes of that size hold in both readings of missing values."""
        return self.k

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel when k exceeds the number of records."""
        check_k(self.k, table)

    def explain(self, table: Table) -> str:
        """How many records are in classes that are too small."""
        short = int(self.violations(table).sum())
        return (
            f"{self.title} with k = {self.k} asks for classes of at least {self.k} records; the "
            f"smallest class has {self.level(table)}, and {short} of {len(table)} records are in "
            "classes that are too small"
        )
