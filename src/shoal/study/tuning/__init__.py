"""Tuning: the plan with the most utility under a limit of risk."""

from shoal.study.tuning._tune import Family, compare_plans, default_space, tune
from shoal.study.tuning._tuning import Tried, Tuning, utility_title

__all__ = ["Family", "Tried", "Tuning", "compare_plans", "default_space", "tune", "utility_title"]
