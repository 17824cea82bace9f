"""What a privacy model is: a level that classes must reach, in a form that searches can use."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from shoal.discovery import concrete_subclasses
from shoal.errors import UnreachableLevel
from shoal.kernels.arrays import Flags, Integers
from shoal.parameters import Parametrized, parameters_of
from shoal.table import Table, check_table, owned_pairs

#: Sums of shares are rounded; a level that misses its bound by less than this still meets it.
TOLERANCE = 1e-9

#: The kinds of conditions, with the kernels' names.
Kind = Literal[
    "distinct",
    "entropy",
    "recursive",
    "equal",
    "ordered",
    "hierarchical",
    "largest_share",
    "likeness",
    "enhanced_likeness",
    "disclosure",
    "in_population",
    "presence",
]


class Condition(NamedTuple):
    """One requirement of a model on every group of records, for searches that form groups.

    ``tree[height, value]`` numbers the node above each value of the column, from the values
    themselves up to one root. Only ``hierarchical`` has a tree.
    """

    kind: Kind
    bound: float
    column: str | None = None
    extra: float = 0.0
    tree: Integers | None = None


class PrivacyModel(Parametrized, ABC):
    """Base of the privacy models: frozen dataclasses that measure and never mask."""

    model: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    #: Whether the model may hold because of facts recorded only in the private half of a release.
    needs_audit: ClassVar[bool] = False
    #: Whether a link by the protected columns is right at most 1 time in its level.
    bounds_links: ClassVar[bool] = False
    #: Whether combinations with their counts are enough, without single records.
    by_counts: ClassVar[bool] = False
    #: Whether a higher or a lower level is better.
    direction: ClassVar[Literal["higher", "lower"]] = "higher"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in {"level", "violations", "holds", "explain"} & {*vars(cls)}:
            setattr(cls, name, _of_table(vars(cls)[name]))

    @abstractmethod
    def level(self, table: Table) -> float:
        """What level the table reaches in this model, in the unit of its first parameter.

        It is the best value of that parameter with which the model would hold, and infinite
        if lower is better and no value would do.
        """

    @abstractmethod
    def violations(self, table: Table) -> Flags:
        """Which records violate the model."""

    def holds(self, table: Table) -> bool:
        """Whether no record violates the model."""
        return not bool(self.violations(table).any())

    def check(self, table: Table) -> None:
        """Raise InputError if no masking of this table could ever satisfy the model."""

    def accepts(self, level: Any) -> Any:
        """Whether a level (or each of an array of levels) is at least as good as the threshold."""
        if self.direction == "higher":
            return level >= self.threshold - TOLERANCE
        return level <= self.threshold + TOLERANCE

    @property
    def smallest_class(self) -> int:
        """The fewest records that a class may have; 1 if the model does not restrict it."""
        return 1

    def conditions(self, table: Table) -> tuple[Condition, ...]:
        """What the model requires of each group of records, for searches that form groups."""
        return ()

    @property
    def threshold(self) -> Any:
        """The value of the first parameter, with which ``level`` is compared."""
        return getattr(self, parameters_of(type(self))[0].name)

    @abstractmethod
    def explain(self, table: Table) -> str:
        """One sentence on what the table reaches, without the value of any cell."""


def _of_table(method: Any) -> Any:
    """A method of a model that says how to make a table if it is given something else."""

    @functools.wraps(method)
    def call(self: PrivacyModel, table: Table, *more: Any, **options: Any) -> Any:
        check_table(table, type(self).__name__)
        return method(self, table, *more, **options)

    return call


def check_k(k: int, table: Table) -> None:
    """Raise UnreachableLevel if k exceeds the number of persons."""
    if k > table.person_count:
        raise UnreachableLevel(
            f"k = {k} is larger than the table, which has {counted(table)}. "
            f"Choose k of at most {table.person_count}."
        )


def counted(table: Table) -> str:
    """The number of records of a table, and of persons if there are fewer."""
    if not table.has_persons:
        return f"{table.records} record{'s' * (table.records != 1)}"
    return f"{table.records} records of {table.person_count} persons"


def discover_models() -> dict[str, type[PrivacyModel]]:
    """Every privacy model by its name in plans."""
    found = concrete_subclasses("shoal.models", PrivacyModel)  # type: ignore[type-abstract]
    return {cls.model: cls for cls in sorted(found, key=lambda cls: cls.model)}


class CrowdModel(PrivacyModel):
    """Base of the models that require ``k`` persons around each record."""

    k: int

    @abstractmethod
    def crowds(self, table: Table) -> Integers:
        """The number of persons among whom each record's person is hidden."""

    def level(self, table: Table) -> int:
        """The k that holds for every record; 0 for a table without records."""
        crowds = self.crowds(table)
        return int(crowds.min()) if len(crowds) else 0

    def violations(self, table: Table) -> Flags:
        """Which records are among fewer than k persons."""
        return self.crowds(table) < self.k

    def check(self, table: Table) -> None:
        """Raise UnreachableLevel if k exceeds the number of persons."""
        check_k(self.k, table)


class PartitionModel(PrivacyModel):
    """Base of the models that need only the sizes of all classes together.

    No single record violates such a model: if it does not hold, all records violate it.
    """

    direction = "lower"
    by_counts = True

    @abstractmethod
    def level_of_sizes(
        self, sizes: Integers, classes: Integers | None = None, persons: Integers | None = None
    ) -> float:
        """The level of classes of these sizes; ``classes`` and ``persons`` list their pairs."""

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

    def violations(self, table: Table) -> Flags:
        """All records if the model does not hold, otherwise none."""
        return np.full(len(table), not self.accepts(self.level(table)))
