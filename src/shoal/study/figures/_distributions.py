"""Figures of how values are distributed: violins, and boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.study.figures._style import (
    COLOURS,
    Figure,
    canvas,
    labelled,
    shortened,
    styled,
)

_MOST = 4_000  # values that a density is estimated from: more show nothing more
_WIDEST = 9.0  # inches
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_COLUMNS = ("group", "count", "min", "p5", "p25", "median", "p75", "p95", "max", "mean")


def violins(
    groups: Mapping[str, Any],
    *,
    ylabel: str,
    title: str = "",
    marks: Sequence[float] = (),
) -> Figure:
    """One violin for each group of values, with its median and quartiles; ``marks`` are lines.

    Examples
    --------
    >>> figure = violins({"pre": [0.1, 0.2, 0.2], "post": [0.5, 1.0]}, ylabel="risk")
    >>> figure.rows[0][:2]
    ('pre', 3)
    """
    values = _cleaned(groups)
    with styled():
        drawing, axes = canvas(1.6 + _width(len(values), 3, 0.9), _height(values))
        for place, (name, given) in enumerate(values.items()):
            _violin(axes, place, given, COLOURS[place % 6])
            low, middle, high = np.quantile(given, [0.25, 0.5, 0.75])
            axes.vlines(place, low, high, color="#222222", linewidth=4)
            axes.plot(place, middle, "o", color="white", markersize=4, label=name)
        for mark in marks:
            axes.axhline(mark, color="#444444", linestyle="--", linewidth=1)
        _finish(axes, list(values), ylabel, title)
    return Figure(drawing, _COLUMNS, _summaries(values))


def boxes(groups: Mapping[str, Any], *, ylabel: str, title: str = "") -> Figure:
    """One box for each group of values: quartiles, whiskers at 5 and 95 %, the rest as dots.

    Examples
    --------
    >>> boxes({"rounding": [-3.0, 0.0, 1.0]}, ylabel="difference (%)").rows[0][5]
    0.0
    """
    values = _cleaned(groups)
    with styled():
        drawing, axes = canvas(1.6 + _width(len(values), 4, 0.55), _height(values))
        axes.axhline(0, color="#444444", linewidth=1)
        axes.boxplot(
            list(values.values()),
            positions=range(len(values)) if values else None,
            whis=(5, 95),
            widths=0.6,
            patch_artist=True,
            boxprops={"facecolor": "#CFE3F1", "edgecolor": COLOURS[0]},
            medianprops={"color": COLOURS[1], "linewidth": 2},
            whiskerprops={"color": COLOURS[0]},
            capprops={"color": COLOURS[0]},
            flierprops={"marker": ".", "markersize": 3, "markeredgecolor": "#666666"},
        )
        _finish(axes, list(values), ylabel, title)
    return Figure(drawing, _COLUMNS, _summaries(values))


def _violin(axes: Any, place: int, given: Any, colour: str) -> None:
    """The density of some values, or a bar where they are all the same."""
    few = given if len(given) <= _MOST else np.quantile(given, np.linspace(0, 1, _MOST))
    if np.ptp(few) == 0:
        axes.hlines(few[0], place - 0.35, place + 0.35, color=colour, linewidth=3)
        return
    parts = axes.violinplot([few], positions=[place], widths=0.8, showextrema=False)
    for body in parts["bodies"]:
        body.set(facecolor=colour, edgecolor=colour, alpha=0.45)
        # a density reaches beyond what was seen; the violin must not
        corners = body.get_paths()[0].vertices
        corners[:, 1] = np.clip(corners[:, 1], few.min(), few.max())


def _width(groups: int, fewest: int, each: float) -> float:
    """Room for the groups: narrower where they are many, or a page could not show them."""
    return max(min(each * groups, _WIDEST), each * fewest)


def _height(names: Iterable[str]) -> float:
    """Room for the picture, and for long names below it."""
    return 3.4 + 0.05 * max([0, *(len(shortened(name)) - 12 for name in names)])


def _cleaned(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Without missing values, and without groups that have nothing else."""
    arrays = {name: np.asarray(given, np.float64).ravel() for name, given in groups.items()}
    finite = {name: given[np.isfinite(given)] for name, given in arrays.items()}
    return {name: given for name, given in finite.items() if len(given)}


def _finish(axes: Any, names: list[str], ylabel: str, title: str) -> None:
    axes.set_xticks(range(len(names)), [shortened(name) for name in names])
    longest = max((len(name) for name in names), default=0)
    if longest > 10 or (longest > 5 and len(names) > 8):  # side by side they would overlap
        axes.tick_params(axis="x", rotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    axes.grid(visible=False, axis="x")
    labelled(axes, "", ylabel, title, empty=not names)


def _summaries(values: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (
            name,
            len(given),
            *(float(value) for value in np.quantile(given, _QUANTILES)),
            float(given.mean()),
        )
        for name, given in values.items()
    )
