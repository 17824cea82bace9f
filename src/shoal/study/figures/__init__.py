"""The figures of studies: each a picture with the numbers it was drawn from."""

from shoal.study.figures._comparisons import rank_plot, upset, win_draw_lose
from shoal.study.figures._distributions import boxes, violins
from shoal.study.figures._style import Figure
from shoal.study.figures._tradeoffs import Point, against, risk_utility

__all__ = [
    "Figure",
    "Point",
    "against",
    "boxes",
    "rank_plot",
    "risk_utility",
    "upset",
    "violins",
    "win_draw_lose",
]
