"""Published experiments that anyone can run again, also on their own tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from shoal.errors import InputError, did_you_mean
from shoal.parameters import OneOf, checked
from shoal.study.builtin import _mixed_ml, _sampling, _swap_correlations, _tradeoff
from shoal.study.builtin._builtin import PRESETS, BuiltIn
from shoal.study.data._fetching import NotFetched, fetch, not_found

__all__ = ["PRESETS", "BuiltIn", "Fetched", "built_in", "built_in_studies", "fetch_tables"]


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


@dataclass(frozen=True)
class Fetched:
    """A table that is available now: its file (None if a library ships it) and its origin."""

    name: str
    file: Path | None
    rows: int
    origin: str
    licence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        file = None if self.file is None else str(self.file)
        return {**vars(self), "file": file}


@checked
def fetch_tables(study: str, *, preset: Annotated[str, OneOf(PRESETS)] = "quick") -> list[Fetched]:
    """Find the tables of a built-in study, or fetch them from their origin.

    The fetched values are checked against those that the study was made with. Raises InputError
    with a sentence for each table that is not available; the others are kept.
    """
    published = built_in(study)
    fetched, lacking, nowhere = [], [], {}
    for source in published.design(preset).tables:
        path, (file, missing) = str(source.path), source.found()
        origin, made_from = published.origins.get(path), published.made_from.get(path)
        if missing and origin is None:
            nowhere[source.name] = missing + (f", made from {made_from}" if made_from else "")
            continue
        label = "scikit-learn, which ships it" if file is None else "a file that was already here"
        if source.elsewhere is not None:
            label = source.elsewhere.label
        label, licence = made_from or label, "see its publisher"
        if origin is not None:
            label, licence = origin.url, origin.licence
            try:
                file = fetch(source.name, path, origin) if missing else file
            except NotFetched as why:
                lacking.append(str(why))
                continue
        fetched.append(Fetched(source.name, file, source.row_count(), label, licence))
    if nowhere:
        lacking.append(not_found(nowhere))
    if lacking:
        raise InputError(" ".join(lacking))
    return fetched
