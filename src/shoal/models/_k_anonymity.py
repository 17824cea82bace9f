"""k-anonymity: every person shares their quasi-identifiers with at least k - 1 others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from shoal.errors import ParameterError
from shoal.kernels.arrays import Integers
from shoal.models._base import CrowdModel
from shoal.parameters import Integer, OneOf
from shoal.table import Missing, Table


@dataclass(frozen=True)
class KAnonymity(CrowdModel):
    """Every class of equal quasi-identifiers has at least ``k`` persons.

    Each record is a person unless the roles name a unit: then five rows of one person count once.

    Parameters
    ----------
    k : int
        The size of the smallest class allowed, 2 or more.
    missing : {"own", "wildcard"}
        Whether a missing value is a value of its own, or equals every value. Statistics offices
        use the wildcard reading; it gives larger classes and a weaker promise.
    of : {"persons", "histories"}
        What must occur k times: the persons of each class, or the persons with the same history,
        that is, with rows in the same classes, equally often. An intruder who knows several rows
        of a person knows a part of the history.

    References
    ----------
    Samarati (2001), Protecting respondents' identities in microdata release
    <https://doi.org/10.1109/69.971193>, definition 2. Sweeney (2002), k-anonymity: a model for
    protecting privacy <https://doi.org/10.1142/S0218488502001648>.

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

    Ann was here twice. By one stay she is one of two persons; by both she is unique.

    >>> frame = pl.DataFrame({"who": ["Ann", "Ann", "Bo", "Cy"], "age": [30, 41, 30, 41]})
    >>> stays = Table(frame, Roles(unit="who", quasi_identifiers=["age"]))
    >>> KAnonymity(2).level(stays), KAnonymity(2, of="histories").level(stays)
    (2, 1)
    """

    k: Annotated[int, Integer(minimum=2)]
    missing: Annotated[Missing, OneOf(("own", "wildcard"))] = "own"
    of: Annotated[Literal["persons", "histories"], OneOf(("persons", "histories"))] = "persons"

    model = "k_anonymity"
    title = "k-anonymity"
    reference = "Samarati 2001; Sweeney 2002"
    by_counts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of == "histories" and self.missing == "wildcard":
            raise ParameterError(
                "KAnonymity of histories has no wildcard reading, because histories are compared "
                "class by class. Remove 'missing'."
            )

    def crowds(self, table: Table) -> Integers:
        """The persons of each record's class, or those who share its person's history."""
        if self.of == "histories":
            return table.histories.record_sizes[table.persons]
        return table.class_sizes(self.missing)

    @property
    def smallest_class(self) -> int:
        """``k``; classes of that size are enough in both readings of missing values."""
        return self.k

    @property
    def rarest_history(self) -> int:
        """The fewest persons that may share a history; 1 if histories do not matter."""
        return self.k if self.of == "histories" else 1

    def explain(self, table: Table) -> str:
        """How many records are in classes that are too small."""
        short = table.records_at(self.violations(table))
        called = "persons" if table.has_persons else "records"
        if self.of == "histories":
            return (
                f"{self.title} of histories with k = {self.k} requires that at least {self.k} "
                f"{called} have the same history; the rarest history has {self.level(table)}, and "
                f"{short:,} of {table.records:,} records belong to persons with a rarer history"
            )
        return (
            f"{self.title} with k = {self.k} asks for classes of at least {self.k} {called}; the "
            f"smallest class has {self.level(table)}, and {short:,} of {table.records:,} records "
            "are in classes that are too small"
        )
