"""The figures of studies: each a picture with the numbers it was drawn from."""

from shoal.study.figures._charts import (
    Point,
    against,
    boxes,
    rank_plot,
    risk_utility,
    upset,
    violins,
    win_draw_lose,
)
from shoal.study.figures._plans import Front, front_of, plans_svg
from shoal.study.figures._style import Figure

__all__ = [
    "Figure",
    "Front",
    "Point",
    "against",
    "boxes",
    "front_of",
    "plans_svg",
    "rank_plot",
    "risk_utility",
    "upset",
    "violins",
    "win_draw_lose",
]
