"""Figures that compare methods: ranks, verdicts, and which techniques apply to how many tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.study.figures._style import (
    COLOURS,
    VERDICTS,
    Figure,
    canvas,
    labelled,
    listed_on_the_left,
    room_for,
    shortened,
    styled,
)


def rank_plot(ranks: Mapping[str, Sequence[float]], *, title: str = "") -> Figure:
    """The mean rank of each method with its spread: over all tables, and over those all apply to.

    Parameters
    ----------
    ranks : mapping
        For each method its rank on each table, NaN where it does not apply.
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
    shared = np.isfinite(values).all(axis=0)
    order = np.argsort(-np.nanmean(values, axis=1), kind="stable")
    rows: list[tuple[Any, ...]] = []
    with styled():
        drawing, axes = canvas(max(5.2, room_for(names, 3.4, 0)), 0.9 + 0.28 * max(len(names), 3))
        for label, columns, colour, shift in (
            ("all", np.ones(values.shape[1], bool), COLOURS[0], 0.12),
            ("common", shared, COLOURS[1], -0.12),
        ):
            for place, method in enumerate(order):
                given = values[method, columns]
                given = given[np.isfinite(given)]
                if len(given):
                    axes.errorbar(
                        given.mean(),
                        place + shift,
                        xerr=given.std(),
                        fmt="o" if label == "all" else "s",
                        color=colour,
                        markersize=5,
                        linewidth=1.2,
                        label=_counted(label, int(columns.sum())) if place == 0 else None,
                    )
            for name, given in zip(names, values[:, columns], strict=True):
                given = given[np.isfinite(given)]
                if len(given):
                    rows.append((name, label, len(given), float(given.mean()), float(given.std())))
        listed_on_the_left(axes, [names[at] for at in order])
        labelled(axes, "mean rank (1 is the best) ± standard deviation", "", title, empty=not names)
        if names:
            drawing.legend(loc="outside lower center", ncols=2)
    return Figure(drawing, ("method", "tables", "count", "mean_rank", "sd"), tuple(rows))


def _counted(label: str, tables: int) -> str:
    return f"{label} ({tables} {'table' if tables == 1 else 'tables'})"


def win_draw_lose(
    probabilities: Mapping[str, tuple[float, float, float]], *, title: str = ""
) -> Figure:
    """For each candidate how likely it loses against, draws with, or wins over the baseline.

    Examples
    --------
    >>> win_draw_lose({"rounding": (0.9, 0.1, 0.0)}).rows
    (('rounding', 0.9, 0.1, 0.0),)
    """
    names = list(probabilities)[::-1]
    with styled():
        drawing, axes = canvas(max(5.2, room_for(names, 3.4, 0)), 0.9 + 0.3 * max(len(names), 3))
        left = np.zeros(len(names))
        for place, label in enumerate(("lose", "draw", "win")):
            widths = np.array([probabilities[name][place] for name in names])
            axes.barh(
                range(len(names)), widths, left=left, color=VERDICTS[place], label=label, height=0.7
            )
            for at, width in enumerate(widths):
                if width >= 0.08:
                    ink = "white" if place != 1 else "#222222"
                    axes.text(
                        left[at] + width / 2, at, f"{width:.2f}", ha="center", va="center",
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
    """On how many tables exactly which techniques apply.

    References
    ----------
    Lex, Gehlenborg, Strobelt, Vuillemot, Pfister (2014), UpSet: visualization of intersecting sets.

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
    with styled():
        drawing, (bars, dots) = canvas(
            2.4 + max(min(0.4 * len(sets), 10.0), 1.6), 2.2 + 0.28 * len(every),
            nrows=2, sharex=True, height_ratios=(2.0, 0.28 * max(len(every), 2)),
        )  # fmt: skip
        bars.bar(range(len(sets)), [counts[names] for names in sets], color=COLOURS[0], width=0.6)
        for place, names in enumerate(sets):
            bars.text(place, counts[names], str(counts[names]), ha="center", va="bottom")
            heights = [at for at, name in enumerate(every) if name in names]
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
