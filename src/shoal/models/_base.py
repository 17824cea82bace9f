"""What every privacy model answers: how far a table goes, whether it suffices, and who fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shoal.discovery import concrete_subclasses
from shoal.parameters import Parametrized, parameters_of
from shoal.table import Table


class PrivacyModel(Parametrized, ABC):
    """Base of the privacy models: frozen dataclasses that measure and never mask."""

    model: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    #: Whether the model may hold by what only the private half of a release records.
    needs_audit: ClassVar[bool] = False

    @abstractmethod
    def level(self, table: Table) -> float:
        """How far the table goes in this model, in the unit of its first parameter."""

    @abstractmethod
    def violations(self, table: Table) -> npt.NDArray[np.bool_]:
        """Which records violate the model."""

    def holds(self, table: Table) -> bool:
        """Whether no record violates the model."""
        return not bool(self.violations(table).any())

    def check(self, table: Table) -> None:
        """Raise InputError if no masking of this table could ever satisfy the model."""

    @property
    def threshold(self) -> Any:
        """The value of the first parameter: what ``level`` is compared with."""
        return getattr(self, parameters_of(type(self))[0].name)

    @abstractmethod
    def explain(self, table: Table) -> str:
        """One sentence on how the table stands, without any value of a cell."""


def discover_models() -> dict[str, type[PrivacyModel]]:
    """Every privacy model by its name in plans."""
    found = concrete_subclasses("shoal.models", PrivacyModel)  # type: ignore[type-abstract]
    return {cls.model: cls for cls in sorted(found, key=lambda cls: cls.model)}
