"""``shoal study fetch``: gets the tables of a built-in study before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from shoal.errors import InputError
from shoal.parameters import OneOf, checked
from shoal.study.builtin import PRESETS, BuiltIn, built_in
from shoal.study.data._fetching import not_found
from shoal.study.data._origins import NotFetched, fetch
from shoal.study.data._tables import TableSource


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
        found, missing = source.found()
        origin = published.origins.get(str(source.path))
        try:
            if missing and origin is not None:
                found = fetch(source.name, str(source.path), origin)
            elif missing:
                made_from = published.made_from.get(str(source.path))
                nowhere[source.name] = missing + (f", made from {made_from}" if made_from else "")
                continue
        except NotFetched as why:
            lacking.append(str(why))
            continue
        fetched.append(_fetched(source, found, published))
    if nowhere:
        lacking.append(not_found(nowhere))
    if lacking:
        raise InputError(" ".join(lacking))
    return fetched


def _fetched(source: TableSource, file: Path | None, published: BuiltIn) -> Fetched:
    origin = published.origins.get(str(source.path))
    if origin is not None:
        return Fetched(source.name, file, source.row_count(), origin.url, origin.licence)
    label = "scikit-learn, which ships it" if file is None else "a file that was already here"
    if source.elsewhere is not None:
        label = source.elsewhere.label
    label = published.made_from.get(str(source.path), label)
    return Fetched(source.name, file, source.row_count(), label, "see its publisher")
