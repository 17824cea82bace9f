"""A release read from its files: the public half, and what the private one says of its rows."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import InputError, ReleaseError, quoted
from shoal.table import (
    OTHER,
    Course,
    Exchange,
    Formulas,
    ReleasedFields,
    Roles,
    Sampling,
    Table,
    read_records,
    read_released,
)
from shoal.workflow._release import FORMAT_VERSION, SAMPLING_FILE
from shoal.workflow._verification import clean


@dataclass(frozen=True)
class Place:
    """Where a release lies: a folder with its halves, or its public half alone."""

    root: Path
    public: Path
    private: Path | None

    @classmethod
    def of(cls, root: Path) -> Place:
        if not root.is_dir():
            raise ReleaseError(f"There is no release folder at '{root}'.")
        if (root / "public" / "release.json").is_file():
            private = root / "private"
            return cls(root, root / "public", private if private.is_dir() else None)
        if (root / "release.json").is_file():
            return cls(root, root, None)
        raise ReleaseError(
            f"'{root}' is not a release: it has no public/release.json, nor a release.json."
        )


def read_release(
    folder: str | os.PathLike[str], *, original: Table | None = None
) -> tuple[Table, Table | None]:
    """The table of a release, and its original with the rows of both paired.

    Rows are paired by the private half of the release, which also has the roles. Where only the
    public half is there, the original comes back as it was given, and pairs with nothing.

    Parameters
    ----------
    folder : path
        The release folder, or its public half.
    original : Table, optional
        The table that was released, in its first order of rows.

    Returns
    -------
    masked : Table
        The released table under the roles that the release records.
    original : Table or None
        The original under the roles that it was released with.
    """
    place = Place.of(Path(folder))
    facts = read_facts(place)
    masked = _checked_data(place, facts)
    if place.private is None:
        return masked, original
    try:
        audit = read_audit(place.private)
        masked = on_course(place.private, on_record(place.private, masked))
        roles, rows = Roles.from_dict(audit["roles"]), int(audit["rows_before"])
        sampling = sampling_on_record(place.private)
    except Exception:  # damaged files raise whatever their readers raise
        raise ReleaseError(f"The private half of '{place.root}' cannot be read.") from None
    gone = [name for _, name in roles.items() if name not in masked.columns]
    masked = masked.with_roles(roles.without(gone), released=True)
    if original is None:
        return masked, None
    if len(original) != rows:
        raise InputError(
            f"The original has {len(original):,} records, but the release was made from "
            f"{rows:,}; give the table that was released, in its first order of rows."
        )
    original = original.with_roles(roles)
    masked = masked.paired(original, masked.row_key).with_sampling(sampling)
    left = untouched_columns(facts, masked)
    moved = [name for name in left if masked.changed_cells(name, original).any()]
    if moved:
        raise InputError(
            f"The original is not the one that was released: {quoted(moved)} differ in it, though "
            "no step touched them."
        )
    return masked, original


def _checked_data(place: Place, facts: Mapping[str, Any]) -> Table:
    """The data of a release; what was changed or damaged is refused."""
    try:
        same, detail = same_digest(place, facts["data"])
        if same:
            return read_masked(place, facts)
    except Exception:  # damaged files raise whatever their readers raise
        detail = "the data cannot be read as recorded"
    raise ReleaseError(
        f"The release at '{place.root}' is not as it was written: {detail}; 'shoal verify' says "
        "more."
    )


def untouched_columns(facts: Mapping[str, Any], masked: Table) -> list[str]:
    """The released columns that no step of the release touched."""
    try:
        touched = {name for step in facts["methods"] for name in step["columns"]}
    except (KeyError, TypeError):
        raise ReleaseError(
            "The release.json does not record its methods as a list of steps with their columns; "
            "it is damaged."
        ) from None
    return [name for name in masked.columns if name not in touched]


def read_facts(place: Place) -> dict[str, Any]:
    """What ``release.json`` says."""
    told = f"The release.json in '{place.root}'"
    try:
        facts = json.loads((place.public / "release.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise ReleaseError(f"{told} cannot be read; it is damaged.") from None
    if not isinstance(facts, dict) or facts.get("format_version") != FORMAT_VERSION:
        raise ReleaseError(f"{told} is of a version that this Shoal does not know.")
    return facts


def read_audit(private: Path) -> dict[str, Any]:
    """What ``audit.json`` says."""
    audit = json.loads((private / "audit.json").read_text(encoding="utf-8"))
    return dict(audit)


def read_masked(place: Place, facts: Mapping[str, Any]) -> Table:
    """The released table, with the types and roles on record."""
    columns = facts["data"]["columns"]
    schema = {column["name"]: column["type"] for column in columns}
    roles: dict[str, Any] = {}
    for column in columns:
        role = column["role"]
        if role in ("weight", "target"):
            roles[role] = column["name"]
        elif role is not None:
            roles.setdefault(role, []).append(column["name"])
    path, format = file_of(place, facts["data"]), facts["data"]["format"]
    if path.name != f"data.{format}":
        raise ReleaseError("the recorded format is not that of the recorded file")
    kept = formulas_of(facts)
    return read_released(path, format, schema, Roles.from_dict(roles), formulas=kept)


def fields_of(place: Place, facts: Mapping[str, Any]) -> ReleasedFields:
    """What a reader of the released file sees."""
    return ReleasedFields(file_of(place, facts["data"]), facts["data"]["format"])


def formulas_of(facts: Mapping[str, Any]) -> Formulas:
    """How texts that a spreadsheet would run were written; a release of old kept them."""
    told = facts["data"].get("formulas")
    neutralised = isinstance(told, dict) and told.get("handling") == "neutralised"
    return "neutralise" if neutralised else "keep"


def on_record(private: Path, masked: Table) -> Table:
    """The released table with the row keys and swaps that the audit has of it."""
    swaps = read_audit(private).get("exchanges", [])
    records = read_records(private / "records.parquet")
    exchanges = tuple(
        Exchange(
            tuple(swap["columns"]),
            records[f"group_{i}"],
            records[f"source_{i}"],
            swap["randomness"],
        )
        for i, swap in enumerate(swaps)
    )
    return masked.on_record(records["row_key"], exchanges)


def on_course(private: Path, masked: Table) -> Table:
    """The table with the course that the audit says it took."""
    try:
        return masked.on_course(Course(**read_audit(private)["course"]))
    except (OSError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return masked.on_course(OTHER)  # another check says that the audit is damaged


def sampling_on_record(private: Path) -> Sampling | None:
    """Who was there before the table was sampled, if it was."""
    recorded = read_audit(private).get("sampling")
    if recorded is None:
        return None
    rows = read_records(private / SAMPLING_FILE)
    codes = {name: rows[f"code_{i}"] for i, name in enumerate(recorded["columns"])}
    return Sampling(rows["row_key"], codes)


def file_of(place: Place, entry: Mapping[str, Any]) -> Path:
    """A file that the release records, in its public half and nowhere else."""
    name = str(entry["file"])
    if name != Path(name).name:
        raise ReleaseError("a recorded file lies outside of the release")
    return place.public / name


def same_digest(place: Place, entry: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a recorded file is the one that was written, and what there is to say."""
    path = file_of(place, entry)
    name = clean(path.name)
    if not os.path.lexists(path):
        return False, f"the file '{name}' is missing"
    if not is_plain(path, stat.S_ISREG):
        return False, f"'{name}' is a link or something else than a file"
    with path.open("rb") as file:
        same = hashlib.file_digest(file, "sha256").hexdigest() == entry["sha256"]
    state = "has the recorded checksum" if same else "does not have the recorded checksum"
    return same, f"'{name}' {state}"


def is_plain(path: Path, kind: Callable[[int], bool]) -> bool:
    """A link is not: what it leads to may be another thing tomorrow, or elsewhere."""
    return kind(path.lstat().st_mode)
