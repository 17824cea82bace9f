"""Tuning: the plan with the most utility under a limit of risk."""

from shoal.study.tuning._tune import Family, default_space, tune
from shoal.study.tuning._tuning import Tried, Tuning

__all__ = ["Family", "Tried", "Tuning", "default_space", "tune"]
