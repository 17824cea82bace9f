"""Figures: their numbers, their files, and unusual inputs."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from shoal.study.figures import (
    Point,
    against,
    boxes,
    rank_plot,
    risk_utility,
    upset,
    violins,
    win_draw_lose,
)
from shoal.study.figures._style import colour_of

RNG = np.random.default_rng(4)
FIGURES = {
    "violins": lambda: violins(
        {"pre": RNG.beta(2, 60, 9000), "post": RNG.beta(2, 9, 700)}, ylabel="risk", marks=[0.2]
    ),
    "boxes": lambda: boxes(
        {f"technique {n}": RNG.normal(-n, 3, 40) for n in range(7)}, ylabel="difference (%)"
    ),
    "ranks": lambda: rank_plot({c: list(RNG.permutation(9) + 1.0) for c in "abcdef"}),
    "verdicts": lambda: win_draw_lose({"noise": (0.9, 0.1, 0.0), "rounding": (0.2, 0.3, 0.5)}),
    "upset": lambda: upset([["N", "R"], ["N"], ["N", "R", "G"], ["N", "R"], []]),
    "tradeoff": lambda: risk_utility(
        [Point(f"v{n}", *RNG.random(2), "NRS"[n % 3]) for n in range(30)], limit=0.05
    ),
    "against": lambda: against(
        {
            "MDAV-ID": {k: [k / 900] for k in (5, 25, 100, 300)},
            "IR-SWAP": {k: list(RNG.random(4) * k / 3000) for k in (5, 25, 100, 300)},
        },
        xlabel="k",
        ylabel="mean difference of correlations",
        published={"MDAV-ID": {5: 0.006, 25: 0.03}},
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_it_is_kept_as_pictures_and_numbers(name, every_format, tmp_path):
    figure = FIGURES[name]()
    paths = figure.save(tmp_path / "figures", name)
    assert [path.suffix for path in paths] == [".svg", ".png", ".pdf", ".csv"]
    assert all(path.stat().st_size > 0 for path in paths)
    with paths[-1].open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert tuple(rows[0]) == figure.columns
    assert len(rows) == 1 + len(figure.rows)


def test_the_same_numbers_give_the_same_file(every_format, tmp_path):
    for place in "ab":
        violins({"x": [1.0, 2.0, 3.0]}, ylabel="y").save(tmp_path / place, "v")
    for ending in ("svg", "pdf", "csv"):
        first, second = ((tmp_path / place / f"v.{ending}").read_bytes() for place in "ab")
        assert first == second


def test_a_violin_reaches_no_further_than_its_values():
    figure = violins({"x": np.r_[np.zeros(50), np.ones(50)]}, ylabel="y")
    body = figure.drawing.axes[0].collections[0].get_paths()[0].vertices
    assert body[:, 1].min() == 0
    assert body[:, 1].max() == 1


@pytest.mark.parametrize(
    "groups", [{}, {"none": []}, {"one": [0.5]}, {"same": [1.0] * 9}, {"odd": [np.nan, 2.0]}]
)
def test_few_values_are_drawn_all_the_same(groups):
    kept = sum(np.isfinite(values).any() for values in groups.values() if len(values))
    assert len(violins(groups, ylabel="y").rows) == kept
    assert len(boxes(groups, ylabel="y").rows) == kept


def test_the_common_subset_is_where_every_method_has_a_rank():
    figure = rank_plot({"a": [1.0, 2.0, 1.0], "b": [2.0, 1.0, np.nan]})
    assert ("a", "all", 3, pytest.approx(4 / 3), pytest.approx(np.std([1, 2, 1]))) in figure.rows
    assert ("a", "common", 2, 1.5, 0.5) in figure.rows


def test_a_table_without_any_technique_is_counted():
    assert upset([[], ["N"]]).rows == (("none", 1), ("N", 1))


def test_no_two_families_look_alike():
    look = colour_of([str(number) for number in range(49)])
    assert len(set(look.values())) == 49


def test_the_front_is_numbered_and_named_and_the_chosen_one_has_a_ring():
    points = [Point("mild", 0.3, 0.9), Point("strong", 0.1, 0.6), Point("taken", 0.2, 0.55)]
    axes = risk_utility(points, chosen="taken", limit=0.25).drawing.axes[0]
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert told[-3:] == ["strong", "mild", "chosen: taken"]
    assert [(text.get_text(), text.xy) for text in axes.texts] == [
        ("1", (0.1, 0.6)), ("2", (0.3, 0.9)),
    ]  # fmt: skip
    assert "chosen" not in str(risk_utility(points).drawing.axes[0].get_legend().get_texts())


def test_a_point_far_below_the_others_is_told_and_takes_no_room():
    points = [Point(f"{n}", 0.1 + n / 100, 0.6 + n / 1000) for n in range(20)]
    far = Point("far", 0.2, 0.1)
    figure = risk_utility([*points, far])
    axes = figure.drawing.axes[0]
    assert axes.get_ylim()[0] > 0.5
    assert "0.10" in [text.get_text() for text in axes.texts]
    assert ("far", "", 0.2, 0.1, False) in figure.rows
    # for a loss, the lowest are the best and must be visible
    assert risk_utility([*points, far], higher_is_better=False).drawing.axes[0].get_ylim()[0] < 0.1


LONG = [
    f"microaggregation $x_^$ of\n漢字 dissimilarity=gower blocks=mutual k={n}" for n in range(30)
]


@pytest.mark.parametrize("names", [[], LONG])
@pytest.mark.parametrize(
    "draw",
    [
        lambda names: rank_plot({name: RNG.random(60) for name in names}),
        lambda names: win_draw_lose(dict.fromkeys(names, (0.2, 0.3, 0.5))),
        lambda names: violins({name: RNG.random(9) for name in names}, ylabel="risk"),
        lambda names: boxes({name: RNG.random(9) for name in names}, ylabel="risk"),
        lambda names: risk_utility([Point(name, *RNG.random(2), name) for name in names]),
        lambda names: against(
            {name: {k: [RNG.random()] for k in (0, 5, 9)} for name in names}, xlabel="k", ylabel="y"
        ),
    ],
)
def test_none_and_many_and_long_names_leave_room_for_the_picture(
    draw, names, every_format, tmp_path
):
    """Two dollars are no formula, a missing glyph is no warning, and axes stay wide."""
    figure = draw(names)
    assert all(path.stat().st_size for path in figure.save(tmp_path, "figure"))
    if names:
        box = figure.drawing.axes[0].get_window_extent()
        assert min(box.width, box.height) > 90  # of 100 dots an inch


def test_no_two_of_many_families_look_alike():
    from shoal.study.figures._style import colour_of

    look = colour_of([str(n) for n in range(40)])
    assert len(set(look.values())) == 40


def test_numbers_on_an_axis_do_not_run_into_each_other():
    ks = (5, 25, 50, 100, 150, 200, 250, 300)
    axes = against({"a": {k: [1.0] for k in ks}}, xlabel="k", ylabel="y").drawing.axes[0]
    ticks = [float(label.get_text()) for label in axes.get_xticklabels()]
    assert (ticks[0], ticks[-1]) == (5, 300)
    assert len(ticks) < len(ks)
    assert (np.diff(np.log(ticks)) > 0.08 * np.log(60)).all()


def test_a_place_of_zero_is_not_lost_on_an_axis_of_factors():
    figure = against({"a": {0: [1.0], 5: [2.0]}}, xlabel="x", ylabel="y")
    assert figure.drawing.axes[0].get_xscale() == "linear"
