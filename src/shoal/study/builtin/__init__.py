"""Published experiments that anyone can run again, also on their own tables."""

from shoal.errors import InputError, did_you_mean
from shoal.study.builtin import _mixed_ml, _sampling, _swap_correlations, _tradeoff
from shoal.study.builtin._builtin import PRESETS, BuiltIn

__all__ = ["PRESETS", "BuiltIn", "built_in", "built_in_studies"]


def built_in_studies() -> dict[str, BuiltIn]:
    """Every built-in study by name."""
    known = (_swap_correlations.STUDY, _mixed_ml.STUDY, _tradeoff.STUDY, _sampling.STUDY)
    return {study.name: study for study in known}


def built_in(name: str) -> BuiltIn:
    """One built-in study.

    Examples
    --------
    >>> built_in("swap-correlations").title
    'What k-anonymity and swapping do to correlations'
    """
    known = built_in_studies()
    if name not in known:
        raise InputError(f"There is no study '{name}'. {did_you_mean(name, known)}")
    return known[name]
