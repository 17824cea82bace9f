"""Figures of one thing against another: risk against utility, and anything against k."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.study._statistics import pareto_front
from shoal.study.figures._style import (
    COLOURS,
    Figure,
    canvas,
    colour_of,
    labelled,
    room_for,
    shortened,
    styled,
)

_TOLD = 12  # points of the front that are named
_FAR = 3  # points far below the others that are told in numbers


@dataclass(frozen=True)
class Point:
    """One masked table: its risk and its utility."""

    label: str
    risk: float
    utility: float
    family: str = ""


def risk_utility(
    points: Sequence[Point],
    *,
    risk: str = "risk",
    utility: str = "utility",
    higher_is_better: bool = True,
    limit: float | None = None,
    chosen: str | None = None,
    title: str = "",
) -> Figure:
    """Every masked table by its risk and utility, and the front that no other one beats.

    Examples
    --------
    >>> points = [Point("a", 0.1, 0.6), Point("b", 0.3, 0.9), Point("c", 0.4, 0.8)]
    >>> [row[-1] for row in risk_utility(points).rows]
    [True, True, False]
    """
    at = np.array([(point.risk, point.utility) for point in points], np.float64).reshape(-1, 2)
    front = pareto_front(at, higher_is_better=[False, higher_is_better])
    look = colour_of([point.family for point in points])
    best = np.flatnonzero(front)[np.argsort(at[front, 0], kind="stable")]
    names = [*look, *(points[place].label for place in best[:_TOLD])]
    if chosen is not None:
        names.append(f"chosen: {chosen}")
    with styled():
        drawing, axes = canvas(room_for(names, 5.2, 14), max(3.8, 0.2 * (len(names) + 4)))
        for family, (colour, mark) in look.items():
            mine = [place for place, point in enumerate(points) if point.family == family]
            axes.scatter(
                at[mine, 0], at[mine, 1], c=colour, marker=mark, s=26, alpha=0.8,
                edgecolors="white", linewidths=0.4, label=shortened(family) or None,
            )  # fmt: skip
        axes.step(at[best, 0], at[best, 1], where="post", color="#222222", linewidth=1.2,
                  label="front")  # fmt: skip
        if limit is not None:
            axes.axvline(limit, color=COLOURS[1], linestyle="--", linewidth=1.2, label="limit")
        _tell(axes, points, best, chosen)
        if higher_is_better:
            _leave_out_far_below(axes, at)
        better = "higher" if higher_is_better else "lower"
        labelled(axes, f"{risk} (lower is better)", f"{utility} ({better} is better)", title)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    rows = tuple(
        (point.label, point.family, float(point.risk), float(point.utility), bool(on))
        for point, on in zip(points, front, strict=True)
    )
    return Figure(drawing, ("label", "family", "risk", "utility", "on_front"), rows)


def _tell(axes: Any, points: Sequence[Point], front: Iterable[int], chosen: str | None) -> None:
    """Number the points of the front, ring the chosen one, and name them beside the picture."""
    for number, place in enumerate(itertools.islice(front, _TOLD), 1):
        point = points[place]
        axes.annotate(
            str(number), (point.risk, point.utility), xytext=(0, 5), textcoords="offset points",
            fontsize=7, color="#222222", ha="center",
        )  # fmt: skip
        axes.plot([], [], linestyle="none", marker=f"${number}$", markersize=5, color="#222222",
                  label=point.label)  # fmt: skip
    for point in (point for point in points if point.label == chosen):
        axes.scatter(
            point.risk, point.utility, s=80, facecolors="none", edgecolors="#222222",
            linewidths=1.4, label=f"chosen: {chosen}",
        )  # fmt: skip


def _leave_out_far_below(axes: Any, at: npt.NDArray[np.float64]) -> None:
    """Let a few points far below all others not take the room of these; say where they are."""
    first, third = np.percentile(at[:, 1], [25, 75]) if len(at) else (0.0, 0.0)
    below = at[:, 1] < first - 3 * (third - first)
    if not 0 < below.sum() <= _FAR:
        return
    lowest, highest = at[~below, 1].min(), at[~below, 1].max()
    margin = 0.08 * (highest - lowest)
    axes.set_ylim(lowest - 2 * margin, highest + margin)
    for x, y in at[below]:
        axes.annotate(
            f"{y:.2f}", (x, lowest - 2 * margin), xytext=(0, 14), textcoords="offset points",
            fontsize=7, color="#555555", ha="center",
            arrowprops={"arrowstyle": "->", "color": "#555555"},
        )  # fmt: skip


def against(
    series: Mapping[str, Mapping[float, Sequence[float]]],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    published: Mapping[str, Mapping[float, float]] | None = None,
) -> Figure:
    """Lines of the mean over runs, with the range of all runs; crosses are published values.

    Parameters
    ----------
    series : mapping
        For each line its runs' values by the place on the axis.
    xlabel, ylabel, title : str
    published : mapping, optional
        For some lines what was printed.

    Examples
    --------
    >>> figure = against({"swap": {5: [0.1, 0.3], 50: [0.5]}}, xlabel="k", ylabel="loss")
    >>> [row[:4] for row in figure.rows]
    [('swap', 5.0, 2, 0.2), ('swap', 50.0, 1, 0.5)]
    """
    look = colour_of(list(series))
    printed = published or {}
    rows: list[tuple[Any, ...]] = []
    with styled():
        drawing, axes = canvas(room_for(look, 5.2, 14), max(3.6, 0.2 * (len(look) + 1)))
        for name, runs in series.items():
            colour, mark = look[name]
            places = sorted(runs)
            values = [np.asarray(runs[place], np.float64) for place in places]
            means = np.array([given.mean() for given in values])
            axes.plot(places, means, color=colour, marker=mark, markersize=4, label=shortened(name))
            axes.fill_between(
                places, [g.min() for g in values], [g.max() for g in values],
                color=colour, alpha=0.15, linewidth=0,
            )  # fmt: skip
            known = printed.get(name, {})
            axes.plot(list(known), list(known.values()), "x", color=colour, markersize=7)
            rows += [
                (name, float(place), len(given), round(float(mean), 12), known.get(place))
                for place, given, mean in zip(places, values, means, strict=True)
            ]
        if printed:
            axes.plot([], [], "x", color="#444444", label="published")
        every = sorted({place for runs in series.values() for place in runs})
        if every and every[0] > 0:  # k grows by factors
            axes.set_xscale("log")
            ticks = _apart(every)
            axes.set_xticks(ticks, [f"{place:g}" for place in ticks])
            axes.minorticks_off()
        labelled(axes, xlabel, ylabel, title, empty=not series)
        if series:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return Figure(drawing, ("line", xlabel, "runs", "mean", "published"), tuple(rows))


def _apart(places: Sequence[float]) -> list[float]:
    """Those of the places, on an axis of factors, that leave room for the number at each."""
    room = 0.09 * np.log(places[-1] / places[0])
    ticks = [places[-1]]
    for place in reversed(places[:-1]):
        if np.log(ticks[-1] / place) >= room:
            ticks.append(place)
    return ticks[::-1]
