"""Where files of tables are looked for, and what is said when they are nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from shoal.errors import quoted

#: The environment variable that names the folder of tables.
DATA_VARIABLE: Final = "SHOAL_DATA"
_MOST_REASONS: Final = 12  # in one sentence; of more tables the names must do


def data_folder() -> Path | None:
    """The folder of tables, if one is named."""
    data = os.environ.get(DATA_VARIABLE)
    return Path(data) if data else None


def find(
    path: str, folder: Path | None = None, fits: Callable[[Path], bool] = Path.exists
) -> Path | None:
    """A file or folder: as it is, here, beside the study, or where ``SHOAL_DATA`` says."""
    places = (Path.cwd(), folder, data_folder())
    found = (place / path for place in places if place is not None)  # an absolute path stays so
    return next((place for place in found if fits(place)), None)


def not_found(missing: Mapping[str, str]) -> str:
    """One sentence about all tables that are nowhere, by name, a few with what there is not."""
    reasons: dict[str, list[str]] = {}
    for name, reason in missing.items():
        reasons.setdefault(reason, []).append(name)
    if len(reasons) > _MOST_REASONS:
        told = quoted(missing, len(missing))
    else:
        told = ", ".join(f"{quoted(names)} ({reason})" for reason, names in reasons.items())
    subject = "The table {} was" if len(missing) == 1 else "The tables {} were"
    return (
        f"{subject.format(told)} not found, neither here, nor beside the study, nor in the folder "
        f"that the environment variable {DATA_VARIABLE} names; put what is missing there."
    )
