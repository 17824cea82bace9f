"""The course that a table took: whether it was sampled by chance and then treated blindly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

State = Literal["raw", "sampled", "generalized", "other"]


@dataclass(frozen=True)
class Course:
    """What was done to a table, as far as differential privacy by sampling asks.

    A table is ``raw`` at first, ``sampled`` once each record was drawn independently with the
    probability ``fraction``, and ``generalized`` once values were made coarser after that in a
    way that does not depend on the data, and classes of fewer than ``smallest`` records were taken
    out. Everything else makes it ``other``.
    """

    state: State = "raw"
    fraction: float | None = None
    origin: str | None = None
    smallest: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the private audit records it."""
        return {
            "state": self.state,
            "fraction": self.fraction,
            "origin": self.origin,
            "smallest": self.smallest,
        }


OTHER = Course("other")
