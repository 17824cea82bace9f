"""The picture of a search: the lattice of levels, how much of it was looked at, what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WIDTH = 330.0
_ROW = 13.0
_LEFT = 40.0


@dataclass(frozen=True)
class Layer:
    """All combinations with one sum of levels, drawn as a centred line."""

    height: int
    y: float
    total: int
    coarse_enough: int
    too_fine: int
    whole: tuple[float, float]
    fine: tuple[float, float]
    safe: tuple[float, float]
    chosen: bool


@dataclass(frozen=True)
class LatticePicture:
    """The layers from the most general one down to the original values."""

    width: float
    height: float
    middle: float
    layers: tuple[Layer, ...]
    size: int
    looked_at: int
    proved: bool

    @property
    def outline(self) -> str:
        """The shape of the whole lattice."""
        left = [f"{layer.whole[0]:.1f} {layer.y:.1f}" for layer in self.layers]
        right = [f"{sum(layer.whole):.1f} {layer.y:.1f}" for layer in reversed(self.layers)]
        return "M" + "L".join([*left, *right]) + "Z"


def lattice_picture(facts: Mapping[str, Any]) -> LatticePicture | None:
    """The geometry, from what a release records of the search; None where there was none."""
    lattice = facts.get("lattice")
    if not lattice:
        return None
    widest = max(total for _, total, _, _ in lattice["layers"])
    room, middle = _WIDTH - _LEFT, (_WIDTH + _LEFT) / 2

    def span(count: int) -> tuple[float, float]:
        width = room * count / widest
        return middle - width / 2, width

    layers = []
    for place, (height, total, fine, safe) in enumerate(reversed(lattice["layers"])):
        start, width = span(fine + safe)
        share = fine / max(1, fine + safe)
        layers.append(
            Layer(
                height=height,
                y=_ROW * (place + 1),
                total=total,
                coarse_enough=safe,
                too_fine=fine,
                whole=span(total),
                fine=(start, width * share),
                safe=(start + width * share, width * (1 - share)),
                chosen=height == lattice["chosen"],
            )
        )
    return LatticePicture(
        width=_WIDTH,
        height=_ROW * (len(layers) + 1),
        middle=middle,
        layers=tuple(layers),
        size=lattice["size"],
        looked_at=lattice["looked_at"],
        proved=lattice["proved"],
    )
