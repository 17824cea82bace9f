"""What an assessment is asked for: measures by name, their options, and what an intruder knows."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from shoal.errors import InputError, did_you_mean, quoted
from shoal.measurement import MeasureInfo
from shoal.risk import KNOWN_WORDS
from shoal.table import Table
from shoal.workflow._require import discover_all_measures

Measures = Sequence[str] | Literal["all"]
Options = Mapping[str, Mapping[str, Any]]


def asked_by_name(measures: Measures | None) -> list[str]:
    """The measures that are asked for by name; ``"all"`` asks for every one."""
    known = discover_all_measures()
    if measures is None:
        return []
    if measures == "all":
        return list(known)
    if isinstance(measures, str) or not isinstance(measures, Sequence) or not measures:
        raise InputError(
            f"The measures must be a list of their names, 'all' or None; got {measures!r} instead."
        )
    for name in measures:
        _check_measure(name)
    return list(measures)


def _check_measure(name: Any) -> None:
    known = discover_all_measures()
    if not isinstance(name, str) or name not in known:
        raise InputError(f"There is no measure '{name}'. {did_you_mean(str(name), known)}")


def chosen_measures(measures: Measures | None, options: Options | None) -> list[MeasureInfo]:
    """The measures to take; where some are named, those with options of their own, too."""
    asked = {*asked_by_name(measures), *(options or ())}
    return [
        info for name, info in discover_all_measures().items() if measures is None or name in asked
    ]


def checked_options(options: Options | None) -> dict[str, dict[str, Any]]:
    """Only options that their measure has; what is wrong with a value the measure says itself."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(
            "The options must be a dict with the options of each measure under its name; got "
            f"{type(options).__name__} instead."
        )
    for name, given in (options or {}).items():
        _check_measure(name)
        if not isinstance(given, Mapping):
            raise InputError(
                f"The options of '{name}' must be a dict of option and value; got "
                f"{type(given).__name__} instead."
            )
        discover_all_measures()[name].check_names(given)
    return {name: dict(given) for name, given in (options or {}).items()}


def check_known(known: Any, where: Table) -> None:
    """Raise InputError unless it is None, a word for columns, or columns that the table has."""
    if known is None or (isinstance(known, str) and known in KNOWN_WORDS):
        return
    listed = isinstance(known, (list, tuple)) and all(isinstance(name, str) for name in known)
    if not listed or not known:
        raise InputError(
            "What an intruder knows must be a list of column names, or one of the words "
            f"{quoted(KNOWN_WORDS)}; got {known!r} instead."
        )
    absent = [name for name in known if name not in where.columns]
    if absent:
        raise InputError(
            f"There is no column {quoted(absent)} that an intruder could know. "
            f"{did_you_mean(absent[0], where.columns)}"
        )


def check_numbers(threshold: Any, missing: Any, sampling_fraction: Any) -> None:
    """What is wrong for every measure is an error, where a measure that fails is only marked."""
    if missing not in ("own", "wildcard"):
        raise InputError("The reading of missing values must be 'own' or 'wildcard'.")
    for name, value in (("threshold", threshold), ("sampling fraction", sampling_fraction)):
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < value <= 1):
            raise InputError(
                f"The {name} must be a number above 0 and at most 1; got {value!r} instead."
            )
