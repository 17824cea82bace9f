"""Measures in the order that one reads them: the two sides, and what belongs together on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from shoal.measurement import MeasureInfo
from shoal.workflow._require import discover_all_measures

Side = Literal["risk", "utility"]

#: The groups of each side in their order, with the title of each.
_TITLES: dict[Side, dict[str, str]] = {
    "risk": {
        "found": "Who can be found",
        "secrets": "What crowds tell of sensitive columns",
        "attacks": "Attacks that were tried",
    },
    "utility": {
        "statistics": "What statistics still say",
        "models": "What models still learn",
    },
}
_FOUND_IF = "Who could be found without the swap"


@dataclass(frozen=True)
class MeasureGroup:
    """Measures that are read together."""

    side: Side
    title: str
    names: tuple[str, ...]


def grouped_measures(names: Iterable[str], *, swapped: bool = False) -> list[MeasureGroup]:
    """The named measures by side and group, each group in the order of the names; none is empty.

    Of a table that was ``swapped`` crowds do not say who can be found, and the title tells so.

    Examples
    --------
    >>> [(g.side, g.names) for g in grouped_measures(["total_variation", "uniqueness"])]
    [('risk', ('uniqueness',)), ('utility', ('total_variation',))]
    """
    infos = discover_all_measures()
    placed: dict[tuple[str, str], list[str]] = {}
    for name in names:
        info = infos[name]
        placed.setdefault((info.about, _group_of(info)), []).append(name)
    return [
        MeasureGroup(
            side, _FOUND_IF if swapped and group == "found" else title, tuple(placed[side, group])
        )
        for side, titles in _TITLES.items()
        for group, title in titles.items()
        if (side, group) in placed
    ]


def _group_of(info: MeasureInfo) -> str:
    """What a measure declares tells its group."""
    if info.about == "utility":
        return "models" if info.target else "statistics"
    if info.needs_original:
        return "attacks"
    return "secrets" if info.sensitive else "found"


def by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """The measures under the reason that they share, in the order of the reasons.

    Examples
    --------
    >>> by_reason({"uniqueness": "too slow", "suda": "too slow"})
    {'too slow': ['uniqueness', 'suda']}
    """
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    return found
