"""The charts of studies: each draws a picture and keeps its numbers."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.study._statistics import pareto_front
from shoal.study.figures._style import (
    COLOURS,
    VERDICTS,
    Figure,
    canvas,
    colour_of,
    labelled,
    listed_on_the_left,
    room_for,
    shortened,
)


def rank_plot(ranks: Mapping[str, Sequence[float]], *, title: str = "") -> Figure:
    """The mean rank of each method with its spread: on all tables, and on those all apply to.

    Parameters
    ----------
    ranks : mapping
        For each method, its rank on each table, or NaN if it does not apply.
    title : str

    Examples
    --------
    >>> figure = rank_plot({"a": [1.0, 1.0], "b": [2.0, float("nan")]})
    >>> [row[:4] for row in figure.rows]
    [('a', 'all', 2, 1.0), ('b', 'all', 1, 2.0), ('a', 'common', 1, 1.0), ('b', 'common', 1, 2.0)]
    """
    names = list(ranks)
    tables = max((len(each) for each in ranks.values()), default=0)
    values = np.array([ranks[name] for name in names], np.float64).reshape(len(names), tables)
    order = np.argsort(-np.nanmean(values, axis=1), kind="stable")
    heights = {names[method]: height for height, method in enumerate(order)}
    shared = np.isfinite(values).all(axis=0)
    rows: list[tuple[Any, ...]] = []
    size = max(5.2, room_for(names, 3.4, 0)), 0.9 + 0.28 * max(len(names), 3)
    with canvas(*size) as (drawing, axes):
        for label, columns, colour, mark, shift in (
            ("all", np.ones(tables, bool), COLOURS[0], "o", 0.12),
            ("common", shared, COLOURS[1], "s", -0.12),
        ):
            count = int(columns.sum())
            legend = f"{label} ({count} {'table' if count == 1 else 'tables'})"
            for name, given in zip(names, values[:, columns], strict=True):
                given = given[np.isfinite(given)]
                if not len(given):
                    continue
                mean, spread = float(given.mean()), float(given.std())
                rows.append((name, label, len(given), mean, spread))
                axes.errorbar(
                    mean, heights[name] + shift, xerr=spread, fmt=mark, color=colour, markersize=5,
                    linewidth=1.2, label=legend if heights[name] == 0 else None,
                )  # fmt: skip
        listed_on_the_left(axes, [names[method] for method in order])
        labelled(axes, "mean rank (1 is the best) ± standard deviation", "", title, empty=not names)
        if names:
            drawing.legend(loc="outside lower center", ncols=2)
    return Figure(drawing, ("method", "tables", "count", "mean_rank", "sd"), tuple(rows))


def win_draw_lose(
    probabilities: Mapping[str, tuple[float, float, float]], *, title: str = ""
) -> Figure:
    """How likely each candidate loses against, draws with, or wins against the baseline.

    Examples
    --------
    >>> win_draw_lose({"rounding": (0.9, 0.1, 0.0)}).rows
    (('rounding', 0.9, 0.1, 0.0),)
    """
    names = list(probabilities)[::-1]
    size = max(5.2, room_for(names, 3.4, 0)), 0.9 + 0.3 * max(len(names), 3)
    with canvas(*size) as (drawing, axes):
        left = np.zeros(len(names))
        for place, label in enumerate(("lose", "draw", "win")):
            widths = np.array([probabilities[name][place] for name in names])
            axes.barh(
                range(len(names)), widths, left=left, color=VERDICTS[place], label=label, height=0.7
            )
            for height, width in enumerate(widths):
                if width >= 0.08:
                    ink = "white" if place != 1 else "#222222"
                    axes.text(
                        left[height] + width / 2, height, f"{width:.2f}", ha="center", va="center",
                        color=ink, fontsize=8,
                    )  # fmt: skip
            left = left + widths
        listed_on_the_left(axes, names)
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="y")
        labelled(axes, "posterior probability", "", title, empty=not names)
        drawing.legend(loc="outside lower center", ncols=3)
    rows = tuple((name, *map(float, probabilities[name])) for name in probabilities)
    return Figure(drawing, ("candidate", "lose", "draw", "win"), rows)


def upset(
    applied: Iterable[Iterable[str]], *, order: Sequence[str] = (), title: str = ""
) -> Figure:
    """The number of tables to which exactly a combination of techniques applies.

    References
    ----------
    Lex, Gehlenborg, Strobelt, Vuillemot, Pfister (2014), UpSet: visualization of intersecting sets
    <https://doi.org/10.1109/TVCG.2014.2346248>.

    Examples
    --------
    >>> upset([["noise"], ["noise", "rounding"], ["noise"]]).rows
    (('noise', 2), ('noise & rounding', 1))
    """
    given = [tuple(dict.fromkeys(names)) for names in applied]
    every = list(order) or sorted({name for names in given for name in names})
    counts = Counter(tuple(name for name in every if name in names) for names in given)
    sets = sorted(counts, key=lambda names: (-counts[names], names))
    totals = [sum(name in names for names in given) for name in every]
    size = 2.4 + max(min(0.4 * len(sets), 10.0), 1.6), 2.2 + 0.28 * len(every)
    ratios = (2.0, 0.28 * max(len(every), 2))
    with canvas(*size, nrows=2, sharex=True, height_ratios=ratios) as (drawing, (bars, dots)):
        bars.bar(range(len(sets)), [counts[names] for names in sets], color=COLOURS[0], width=0.6)
        for place, names in enumerate(sets):
            bars.text(place, counts[names], str(counts[names]), ha="center", va="bottom")
            heights = [height for height, name in enumerate(every) if name in names]
            dots.plot([place] * len(every), range(len(every)), "o", color="#DDDDDD", markersize=7)
            dots.plot([place] * len(heights), heights, "o-", color=COLOURS[0], markersize=7)
        bars.margins(y=0.12)  # room for the counts on top
        bars.set_ylabel("tables")
        bars.yaxis.get_major_locator().set_params(integer=True)
        bars.set_title(title)
        bars.grid(visible=False, axis="x")
        labels = [f"{shortened(name)} ({total})" for name, total in zip(every, totals, strict=True)]
        dots.set_yticks(range(len(every)), labels)
        dots.set_xticks([])
        dots.set_ylim(-0.6, len(every) - 0.4)
        dots.grid(visible=False)
        dots.spines[:].set_visible(False)
    rows = tuple((" & ".join(names) or "none", counts[names]) for names in sets)
    return Figure(drawing, ("techniques", "tables"), rows)


_MOST = 4_000  # values for the estimate of a density: more do not change the picture
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
    """One violin per group of values, with median and quartiles; ``marks`` are horizontal lines.

    Examples
    --------
    >>> figure = violins({"pre": [0.1, 0.2, 0.2], "post": [0.5, 1.0]}, ylabel="risk")
    >>> figure.rows[0][:2]
    ('pre', 3)
    """
    values = _cleaned(groups)
    with canvas(1.6 + _width(len(values), 3, 0.9), _height(values)) as (drawing, axes):
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
    """One box per group of values: quartiles, whiskers at 5 and 95 %, all others as dots.

    Examples
    --------
    >>> boxes({"rounding": [-3.0, 0.0, 1.0]}, ylabel="difference (%)").rows[0][5]
    0.0
    """
    values = _cleaned(groups)
    with canvas(1.6 + _width(len(values), 4, 0.55), _height(values)) as (drawing, axes):
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
    """The density of the values, or a bar if they are all the same."""
    few = given if len(given) <= _MOST else np.quantile(given, np.linspace(0, 1, _MOST))
    if np.ptp(few) == 0:
        axes.hlines(few[0], place - 0.35, place + 0.35, color=colour, linewidth=3)
        return
    parts = axes.violinplot([few], positions=[place], widths=0.8, showextrema=False)
    for body in parts["bodies"]:
        body.set(facecolor=colour, edgecolor=colour, alpha=0.45)
        # the estimated density extends beyond the values; the violin must not
        corners = body.get_paths()[0].vertices
        corners[:, 1] = np.clip(corners[:, 1], few.min(), few.max())


def _width(groups: int, fewest: int, each: float) -> float:
    """Room for the groups: narrower if there are many, so that they fit on a page."""
    return max(min(each * groups, _WIDEST), each * fewest)


def _height(names: Iterable[str]) -> float:
    """Room for the picture and for long names below it."""
    return 3.4 + 0.05 * max([0, *(len(shortened(name)) - 12 for name in names)])


def _cleaned(groups: Mapping[str, Any]) -> dict[str, Any]:
    """The groups without missing values, and without groups that have no other values."""
    arrays = {name: np.asarray(given, np.float64).ravel() for name, given in groups.items()}
    finite = {name: given[np.isfinite(given)] for name, given in arrays.items()}
    return {name: given for name, given in finite.items() if len(given)}


def _finish(axes: Any, names: list[str], ylabel: str, title: str) -> None:
    axes.set_xticks(range(len(names)), [shortened(name) for name in names])
    longest = max((len(name) for name in names), default=0)
    if longest > 10 or (longest > 5 and len(names) > 8):  # horizontal labels would overlap
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


_MOST_NAMED = 12  # points of the front
_MOST_OUTLIERS = 3  # points far below the others that are shown as numbers


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
    """Every masked table by risk and utility, and the front that no other table beats.

    Examples
    --------
    >>> points = [Point("a", 0.1, 0.6), Point("b", 0.3, 0.9), Point("c", 0.4, 0.8)]
    >>> [row[-1] for row in risk_utility(points).rows]
    [True, True, False]
    """
    pairs = np.array([(point.risk, point.utility) for point in points], np.float64).reshape(-1, 2)
    front = pareto_front(pairs, higher_is_better=[False, higher_is_better])
    look = colour_of([point.family for point in points])
    best = np.flatnonzero(front)[np.argsort(pairs[front, 0], kind="stable")]
    names = [*look, *(points[place].label for place in best[:_MOST_NAMED])]
    if chosen is not None:
        names.append(f"chosen: {chosen}")
    size = room_for(names, 5.2, 14), max(3.8, 0.2 * (len(names) + 4))
    with canvas(*size) as (drawing, axes):
        for family, (colour, mark) in look.items():
            mine = [place for place, point in enumerate(points) if point.family == family]
            axes.scatter(
                pairs[mine, 0], pairs[mine, 1], c=colour, marker=mark, s=26, alpha=0.8,
                edgecolors="white", linewidths=0.4, label=shortened(family) or None,
            )  # fmt: skip
        axes.step(pairs[best, 0], pairs[best, 1], where="post", color="#222222", linewidth=1.2,
                  label="front")  # fmt: skip
        if limit is not None:
            axes.axvline(limit, color=COLOURS[1], linestyle="--", linewidth=1.2, label="limit")
        _mark_front(axes, points, best, chosen)
        if higher_is_better:
            _cut_off_outliers(axes, pairs)
        better = "higher" if higher_is_better else "lower"
        labelled(axes, f"{risk} (lower is better)", f"{utility} ({better} is better)", title)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    rows = tuple(
        (point.label, point.family, float(point.risk), float(point.utility), bool(on))
        for point, on in zip(points, front, strict=True)
    )
    return Figure(drawing, ("label", "family", "risk", "utility", "on_front"), rows)


def _mark_front(
    axes: Any, points: Sequence[Point], front: Iterable[int], chosen: str | None
) -> None:
    """Number the points of the front, circle the chosen one, and list their names in the legend."""
    for number, place in enumerate(itertools.islice(front, _MOST_NAMED), 1):
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


def _cut_off_outliers(axes: Any, pairs: npt.NDArray[np.float64]) -> None:
    """Cut off a few points far below all others, and show where they are as numbers."""
    first, third = np.percentile(pairs[:, 1], [25, 75]) if len(pairs) else (0.0, 0.0)
    below = pairs[:, 1] < first - 3 * (third - first)
    if not 0 < below.sum() <= _MOST_OUTLIERS:
        return
    lowest, highest = pairs[~below, 1].min(), pairs[~below, 1].max()
    margin = 0.08 * (highest - lowest)
    axes.set_ylim(lowest - 2 * margin, highest + margin)
    for x, y in pairs[below]:
        axes.annotate(
            f"{y:.2f}", (x, lowest - 2 * margin), xytext=(0, 14), textcoords="offset points",
            fontsize=7, color="#555555", ha="center",
            arrowprops={"arrowstyle": "->", "color": "#555555"},
        )  # fmt: skip


def against(
    series: Mapping[str, Mapping[float, Any]],
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
        For each line, the values of its runs by the place on the axis.
    xlabel, ylabel, title : str
    published : mapping, optional
        The printed values of some lines.

    Examples
    --------
    >>> figure = against({"swap": {5: [0.1, 0.3], 50: [0.5]}}, xlabel="k", ylabel="loss")
    >>> [row[:4] for row in figure.rows]
    [('swap', 5.0, 2, 0.2), ('swap', 50.0, 1, 0.5)]
    """
    look = colour_of(list(series))
    printed = published or {}
    rows: list[tuple[Any, ...]] = []
    size = room_for(look, 5.2, 14), max(3.6, 0.2 * (len(look) + 1))
    with canvas(*size) as (drawing, axes):
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
    """The places on a logarithmic axis that leave room for their numbers."""
    room = 0.09 * np.log(places[-1] / places[0])
    ticks = [places[-1]]
    for place in reversed(places[:-1]):
        if np.log(ticks[-1] / place) >= room:
            ticks.append(place)
    return ticks[::-1]
