"""A release read from its files: the public half, and what the private one says about its rows."""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from shoal.errors import DisclosureWarning, InputError, ReleaseError, quoted
from shoal.table import (
    Coding,
    Course,
    Dialect,
    Exchange,
    Formulas,
    ReadOptions,
    ReleasedFile,
    Roles,
    Sampling,
    Table,
    check_file_size,
    owned_pairs,
    read_records,
)
from shoal.workflow.release._release import FORMAT_VERSION, SAMPLING_FILE
from shoal.workflow.release._release_shape import AUDIT, FACTS, check_shape, parse_json
from shoal.workflow.release._verification import clean

#: The largest files that are read as JSON; nested lists need thirty times as much memory.
_LARGEST_FACTS: Final = 1 << 24
_LARGEST_AUDIT: Final = 1 << 26
#: At most this many files of a folder are looked at; a release has seven.
_MOST_FILES: Final = 1000


@dataclass(frozen=True)
class Place:
    """Where a release lies: a folder with both halves, or its public half with the private one
    elsewhere."""

    root: Path
    public: Path
    private: Path | None

    @classmethod
    def of(cls, root: Path, private: str | os.PathLike[str] | None = None) -> Place:
        if not root.is_dir():
            raise ReleaseError(f"There is no release folder at '{root}'. Check its name.")
        public, beside = root / "public", root / "private"
        apart = None if private is None else Path(private)
        if apart is not None and not apart.is_dir():
            raise ReleaseError(f"There is no private half at '{apart}'. Check its name.")
        if os.path.lexists(public / "release.json"):
            if not os.path.lexists(beside):
                return cls(root, public, apart)
            if apart is not None:
                raise ReleaseError(f"'{root}' has a private half. Do not pass another one.")
            return cls(root, public, beside)
        if os.path.lexists(root / "release.json"):
            return cls(root, root, apart)
        raise ReleaseError(
            f"'{root}' is not a release: it has neither public/release.json nor release.json."
        )

    def check_plain(self) -> None:
        """Raise ReleaseError if anything in the folder is a link, a device or the like.

        A link may point to another file tomorrow, or to one outside of the release, so this check
        comes before anything is opened.
        """
        halves = [half for half in (self.public, self.private) if half not in (None, self.root)]
        odd = [half.name for half in halves if half and not is_plain(half, stat.S_ISDIR)]
        for half in (self.public, self.private) if not odd else ():
            entries = entries_of(half) if half else []
            odd += [entry.name for entry in entries if not entry.is_file(follow_symlinks=False)]
            if len(entries) > _MOST_FILES:
                raise ReleaseError(f"it contains more than {_MOST_FILES:,} files")
        if odd:
            raise ReleaseError(f"'{clean(odd[0])}' is a link, or not a regular file")


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of a folder, up to a number that no release reaches."""
    with os.scandir(folder) as entries:
        return list(islice(entries, _MOST_FILES + 1))


def read_plain(path: Path, *, largest: int = _LARGEST_FACTS) -> bytes:
    """The content of a file of a release; ReleaseError if it is a link, missing or too large."""
    try:
        if not is_plain(path, stat.S_ISREG):
            raise ReleaseError(f"'{path.name}' is a link, or not a regular file")
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except OSError:
        raise ReleaseError(f"'{path.name}' is missing or cannot be read") from None
    if len(content) > largest:
        raise ReleaseError(f"'{path.name}' is too large: more than {largest >> 20} MiB")
    return content


def read_release(
    folder: str | os.PathLike[str], *, original: Table | None = None
) -> tuple[Table, Table | None]:
    """Read the table of a release, and pair its rows with the original.

    The private half of the release pairs the rows, and also has the roles. If only the public half
    is there, the original is returned unchanged and unpaired.

    Parameters
    ----------
    folder : path
        The release folder, or its public half.
    original : Table, optional
        The table that was released, in its original row order.

    Returns
    -------
    masked : Table
        The released table with the roles that the release records.
    original : Table or None
        The original with the roles under which it was released.
    """
    place = Place.of(Path(folder))
    try:
        place.check_plain()
        facts = read_facts(place)
    except ReleaseError as cause:
        raise ReleaseError(f"The release at '{place.root}' cannot be used: {cause}.") from None
    masked = _checked_data(place, facts)
    if place.private is None:
        if facts["data"]["persons"] is not None and not masked.has_persons:
            warnings.warn(
                "The release counts persons, but only its private half knows whose the rows are. "
                "Here every row counts as a person, so k and risk look better than they are.",
                DisclosureWarning,
                stacklevel=2,
            )
        return masked, original
    try:
        audit = Audit.read(place.private)
        masked = audit.on_record(masked)
        roles, rows = Roles.from_dict(audit.facts["roles"]), audit.facts["rows_before"]
        sampling = audit.sampling()
    except Exception:  # damaged files raise whatever their readers raise
        raise ReleaseError(f"The private half of '{place.root}' cannot be read.") from None
    gone = [name for _, name in roles.items() if name not in masked.columns]
    masked = masked.with_roles(roles.without(gone), released=True)
    if original is None:
        return masked, None
    if len(original) != rows:
        raise InputError(
            f"The original has {len(original):,} records, but the release was made from "
            f"{rows:,}. Pass the table that was released, in its original row order."
        )
    original = original.with_roles(roles)
    masked = masked.paired(original, masked.row_key).with_sampling(sampling)
    left = untouched_columns(facts, masked)
    moved = [name for name in left if masked.changed_count(name, original)]
    if moved:
        raise InputError(
            f"The original is not the one that was released: {quoted(moved)} differ in it, "
            "although no step touched them."
        )
    return masked, original


def recorded_reading(
    folder: str | os.PathLike[str], private: str | os.PathLike[str] | None = None
) -> ReadOptions | None:
    """How the original of a release was read, according to its private half, or None.

    Damaged files also give None; ``verify`` reports the damage.
    """
    place = Place.of(Path(folder), private)
    try:
        place.check_plain()
        return None if place.private is None else Audit.read(place.private).reading
    except (ReleaseError, InputError, OSError):
        return None


def _checked_data(place: Place, facts: Mapping[str, Any]) -> Table:
    """The data of a release; changed or damaged data are refused."""
    try:
        file = data_file(place, facts)
        same, detail = same_digest(file.path, facts["data"], lambda: file.sha256)
        if same:
            return read_masked(file, facts)
    except Exception:  # damaged files raise whatever their readers raise
        detail = "the data cannot be read as recorded"
    raise ReleaseError(
        f"The release at '{place.root}' is not as it was written: {detail}; 'shoal verify' says "
        "more."
    )


def untouched_columns(facts: Mapping[str, Any], masked: Table) -> list[str]:
    """The released columns that no step of the release touched."""
    touched = {name for step in facts["methods"] for name in step["columns"]}
    touched |= set(masked.roles.unit_columns)  # pseudonyms
    return [name for name in masked.columns if name not in touched]


def read_facts(place: Place) -> dict[str, Any]:
    """The content of ``release.json``; ReleaseError if it is not as Shoal writes it."""
    facts = read_json(place.public / "release.json", _LARGEST_FACTS)
    if isinstance(facts, dict) and facts.get("format_version") != FORMAT_VERSION:
        raise ReleaseError("release.json has a version that this Shoal does not know")
    return check_shape(facts, FACTS, "release.json")


def read_json(path: Path, largest: int = _LARGEST_AUDIT) -> Any:
    """The content of a JSON file; ReleaseError if it is damaged, a link or too large."""
    try:
        return parse_json(read_plain(path, largest=largest))
    except (ValueError, RecursionError):
        raise ReleaseError(f"{path.name} cannot be read; it is damaged") from None


def data_file(place: Place, facts: Mapping[str, Any]) -> ReleasedFile:
    """The data file; it is read once, when its content is first needed."""
    data = facts["data"]
    dialect = Dialect(**data["dialect"]) if "dialect" in data else None
    coding = Coding.from_dict(data["coding"]) if "coding" in data else None
    return ReleasedFile(file_of(place, data), data["format"], dialect, coding)


def read_masked(file: ReleasedFile, facts: Mapping[str, Any]) -> Table:
    """The released table, with the recorded types and roles."""
    columns = facts["data"]["columns"]
    schema = {column["name"]: column["type"] for column in columns}
    roles: dict[str, Any] = {}
    for column in columns:
        role = column["role"]
        if role in ("weight", "target"):
            roles[role] = column["name"]
        elif role is not None:
            roles.setdefault(role, []).append(column["name"])
    if file.path.name != f"data.{file.format}":
        raise ReleaseError("the recorded format does not match the recorded file")
    return file.table(schema, Roles.from_dict(roles), formulas=formulas_of(facts))


def formulas_of(facts: Mapping[str, Any]) -> Formulas:
    """How texts that a spreadsheet would run were written."""
    formulas = facts["data"]["formulas"]
    neutral = formulas is not None and formulas["handling"] == "neutralised"
    return "neutralise" if neutral else "keep"


@dataclass(frozen=True)
class Audit:
    """The private half: the content of ``audit.json``, read once, and the records next to it."""

    folder: Path
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, private: Path) -> Audit:
        """Read the audit; ReleaseError if it is not as Shoal writes it."""
        facts = read_json(private / "audit.json", _LARGEST_AUDIT)
        return cls(private, check_shape(facts, AUDIT, "audit.json"))

    @cached_property
    def records(self) -> dict[str, npt.NDArray[Any]]:
        """For each released row: its row key and class size, and what swaps did to it."""
        return read_records(self.folder / "records.parquet", without=("class", "prosecutor_risk"))

    @property
    def reading(self) -> ReadOptions | None:
        """How the original was read; ReadError if that is not recorded properly."""
        read = self.facts.get("read")
        return None if read is None else ReadOptions.from_dict(read)

    def on_record(self, masked: Table) -> Table:
        """The released table with the row keys, swaps and history that the audit records."""
        exchanges = tuple(
            Exchange(
                tuple(swap["columns"]),
                self.records[f"group_{i}"],
                self.records[f"source_{i}"],
                swap["randomness"],
            )
            for i, swap in enumerate(self.facts["exchanges"])
        )
        table = masked.on_record(self.records["row_key"], exchanges)
        owners = [self.records.get(name) for name in ("person", "household")]
        persons, homes = (None if one is None else one.astype("int64") for one in owners)
        if persons is not None and masked.has_persons and not same_owners(masked.persons, persons):
            raise ReleaseError("the pseudonyms do not match the recorded persons")
        if persons is not None or homes is not None:
            table = table.owned_by(persons, homes)
        return table.on_course(Course(**self.facts["course"]))

    def sampling(self) -> Sampling | None:
        """Who was in the table before it was sampled; None if it was not."""
        recorded = self.facts["sampling"]
        if recorded is None:
            return None
        rows = read_records(self.folder / SAMPLING_FILE)
        codes = {name: rows[f"code_{i}"] for i, name in enumerate(recorded["columns"])}
        return Sampling.of_codes(rows["row_key"], codes)


def same_owners(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether two numberings of persons give the same rows to the same persons."""
    both, _ = owned_pairs(one, other)
    return len(both) == len(set(one.tolist())) == len(set(other.tolist()))


def file_of(place: Place, entry: Mapping[str, Any]) -> Path:
    """A file that the release records, in its public half and nowhere else."""
    name = entry["file"]
    if name != Path(name).name:
        raise ReleaseError("a recorded file lies outside the release")
    return place.public / name


def same_digest(
    path: Path, entry: Mapping[str, Any], digest: Callable[[], str] | None = None
) -> tuple[bool, str]:
    """Whether a recorded file is the one that was written, with the reason."""
    name = clean(path.name)
    if not os.path.lexists(path):
        return False, f"the file '{name}' is missing"
    if not is_plain(path, stat.S_ISREG):
        return False, f"'{name}' is a link, or not a regular file"
    same = (digest_of(path) if digest is None else digest()) == entry["sha256"]
    state = "has the recorded checksum" if same else "does not have the recorded checksum"
    return same, f"'{name}' {state}"


def digest_of(path: Path) -> str:
    """The SHA-256 of a file; ReadError if it is so large that it can only be meant to harm."""
    check_file_size(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_plain(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether a path is a file of this kind, not a link, which may point elsewhere tomorrow."""
    return kind(path.lstat().st_mode)
