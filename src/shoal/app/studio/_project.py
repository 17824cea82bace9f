"""A project: the folder that is the state of the studio, and the versions of its plan.

``plan.toml`` is the plan that the command line runs. ``studio.toml`` has what a plan does not
contain: where the table is, the reasons for roles, who a release is for. Every change of either is
a version in ``history/``. A version is on disk before the files are replaced, and ``history/head``
records the old and the new version in the meantime. So a kill at any moment loses at most the
current click, and no change is done halfway. A file that was edited elsewhere becomes a version
when it is next read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import ParseError

from shoal.errors import InputError, PlanError, ShoalError
from shoal.masking import Masker
from shoal.table import ReadOptions
from shoal.workflow import Plan
from shoal.workflow.release._folder import complete_files

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PLAN: Final = "plan.toml"
STUDIO: Final = "studio.toml"
NOTES: Final = "notes.md"
_HISTORY, _HEAD, _LOCK = "history", "head", "lock"
_ELSEWHERE: Final = "edited outside the studio"
_LONGEST_NOTES: Final = 200_000

DATABASE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
NO_DATABASES: Final = (
    "The studio reads files, not databases. Write the rows to a file first, such as Parquet."
)


class Conflict(InputError):
    """What a page shows was changed elsewhere in the meantime."""


@dataclass(frozen=True)
class Version:
    """The plan and its settings at one moment."""

    number: int
    parent: int
    when: str
    what: str
    plan: str
    studio: str

    def same_texts(self, plan: str, studio: str) -> bool:
        return (self.plan, self.studio) == (plan, studio)


class Project:
    """The folder of a project.

    Parameters
    ----------
    folder : path
        Created with mode 0700 if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        for place in (folder, folder / _HISTORY, folder / "runs"):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._versions = dict(self._read_versions())
        self._head = self._read_head()
        self._obstacle: InputError | None = None
        self._parsed: tuple[str, Plan | ShoalError] | None = None
        self._settings: tuple[str, dict[str, Any]] | None = None
        #: Refuses a file that the studio was not started for; set by the code that knows the roots.
        self.may_read: Callable[[str], object] = str
        self.refresh()

    @property
    def name(self) -> str:
        return self.folder.name

    @contextlib.contextmanager
    def held(self) -> Iterator[Callable[[int], None]]:
        """Keep the project for one studio: two would use the same version numbers.

        Yields a function that records the port of this studio.
        """
        lock = os.open(self.folder / _HISTORY / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(lock, "r+") as file:
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(_is_open(self.folder, file.read())) from None
            except OSError:  # some file systems have no locks
                pass
            file.truncate(0)

            def say(port: int) -> None:
                file.write(f"{os.getpid()} {port}")
                file.flush()

            yield say

    # -- looking

    def refresh(self) -> Version:
        """The version in force; a file that was edited elsewhere becomes a version first.

        A file that is not text, or a disk that cannot be written, changes nothing: until that is
        fixed, the previous version stays in force, and ``problem`` says why.
        """
        with self._lock:
            head = self._versions.get(self._head)
            if head is None:
                head = self._recorded("opened", *self._texts_if_any())
            try:
                plan, studio = self._text(PLAN), self._text(STUDIO)
                if not head.same_texts(plan, studio):
                    head = self._recorded(_ELSEWHERE, plan, studio)
                self._obstacle = None
            except InputError as cause:
                self._obstacle = cause
            return head

    def _texts_if_any(self) -> tuple[str, str]:
        try:
            return self._text(PLAN), self._text(STUDIO)
        except PlanError:
            return "", ""

    def _recorded(self, what: str, plan: str, studio: str) -> Version:
        """A new version of files that already have its content."""
        version = self._record(what, plan, studio)
        self._point_at(version.number)
        return version

    @property
    def version(self) -> Version:
        return self.refresh()

    @property
    def plan(self) -> Plan:
        """The plan; PlanError if the file does not contain one."""
        text = self.version.plan
        self._check_way()
        if self._parsed is None or self._parsed[0] != text:
            try:
                self._parsed = text, self.understand(text)
            except ShoalError as cause:
                self._parsed = text, cause
        found = self._parsed[1]
        if isinstance(found, ShoalError):
            raise found
        return found

    @property
    def problem(self) -> str | None:
        """Why the plan cannot be read; None if it can."""
        try:
            _ = self.plan, self.settings
        except ShoalError as cause:
            return str(cause)
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """The content of ``studio.toml``."""
        text = self.version.studio
        self._check_way()
        if self._settings is None or self._settings[0] != text:
            self._settings = text, parsed_toml(text, STUDIO).unwrap()
        return self._settings[1]

    @property
    def reading(self) -> ReadOptions:
        """How to read the table according to the plan; detected if the plan is not valid TOML."""
        return _reading_of(self.version.plan)

    @property
    def notes(self) -> str:
        with contextlib.suppress(PlanError):
            return self._text(NOTES)
        return ""

    @property
    def exposure(self) -> str:
        """Who else may open the folder, in words; empty if nobody may."""
        state = self.folder.stat()
        if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
            return "belongs to another user of this machine"
        if hasattr(os, "geteuid") and state.st_mode & 0o077:
            return "can be opened by other users of this machine"
        return ""

    def _check_way(self) -> None:
        if self._obstacle is not None:
            raise self._obstacle

    # -- changing

    @contextlib.contextmanager
    def changing(self, what: str, *, based_on: int | None = None) -> Iterator[tuple[Any, Any]]:
        """The documents of the plan and the settings, to be edited in the block as one version.

        Comments stay. A plan that Shoal does not understand is refused. If a page replaces the
        whole text, ``based_on`` is the version that it shows. If that is no longer in force, the
        change is refused, since it would undo someone else's change.
        """
        with self._lock:
            head = self.refresh()
            self._check_way()
            if based_on is not None and based_on != head.number:
                raise Conflict(
                    "The plan was changed in the meantime, in another tab or in an editor. Look at "
                    "its current state, and repeat your change."
                )
            plan, studio = parsed_toml(head.plan, PLAN), parsed_toml(head.studio, STUDIO)
            yield plan, studio
            texts = tomlkit.dumps(plan), tomlkit.dumps(studio)
            if not head.same_texts(*texts):
                self.understand(texts[0])
                self._put(self._record(what, *texts))

    def replace_plan(self, text: str, *, based_on: int) -> Version:
        """Replace the text of the plan."""
        text = text.replace("\r\n", "\n")
        with self._lock:
            head = self.refresh()
            if based_on != head.number:
                raise Conflict("The plan was changed in the meantime. Look at its current state.")
            self.understand(text)
            return self._put(self._record("plan edited as text", text, head.studio))

    def understand(self, text: str) -> Plan:
        """Parse a plan; files that it names are read only if that is allowed."""
        try:
            self.check_files(parsed_toml(text, PLAN).unwrap())
            return Plan.from_toml(text, folder=self.folder)
        except RecursionError:
            raise PlanError("The text is nested too deeply for a plan.") from None

    def step(self, raw: Mapping[str, Any]) -> Masker:
        """A step as a plan writes it; files that it names are read only if that is allowed."""
        self.check_files(raw)
        return Plan.from_dict({"steps": [dict(raw)]}, folder=self.folder).steps[0]

    def check_files(self, raw: Any) -> None:
        """Refuse a part of a plan that names a file that may not be read."""
        tables = raw if isinstance(raw, list) else [raw]
        for table in tables:
            for value in table.values() if isinstance(table, Mapping) else ():
                self.check_files(value)
                if isinstance(value, str) and (found := self._file_named(value)):
                    self.may_read(found)

    def _file_named(self, text: str) -> str | None:
        for place in (self.folder, Path.cwd()):  # a population is looked for here
            with contextlib.suppress(OSError, ValueError):
                if os.path.lexists(place / text) and not os.path.isdir(place / text):
                    return os.fspath(place / text)
        return None

    def write_notes(self, text: str) -> None:
        if len(text) > _LONGEST_NOTES:
            raise InputError(f"Notes are limited to {_LONGEST_NOTES:,} characters. Shorten them.")
        self._write({NOTES: text.replace("\r\n", "\n")})

    # -- undo and redo

    @property
    def undoable(self) -> Version | None:
        """The version before this one."""
        return self._versions.get(self.version.parent)

    @property
    def redoable(self) -> Version | None:
        """The newest version that came after this one."""
        number = self.version.number
        later = [v for v in self._versions.values() if v.parent == number]
        return max(later, key=lambda version: version.number, default=None)

    @property
    def versions(self) -> list[Version]:
        """All versions, newest first."""
        return sorted(self._versions.values(), key=lambda version: -version.number)

    def go_to(self, number: int) -> Version:
        """Put an earlier or later version in force."""
        with self._lock:
            self.refresh()
            if number not in self._versions:
                raise InputError(f"There is no version {number} of this plan.")
            return self._put(self._versions[number])

    # -- files

    def _put(self, version: Version) -> Version:
        """Put a version in force; if interrupted, that is finished when the project is reopened."""
        self._write({_HEAD: f"{self._head} {version.number}"}, _HISTORY)
        try:
            self._write({PLAN: version.plan, STUDIO: version.studio})
        except InputError:
            with contextlib.suppress(InputError):
                self._point_at(self._head)
            raise
        self._point_at(version.number)
        return version

    def _record(self, what: str, plan: str, studio: str) -> Version:
        number = max(self._versions, default=0) + 1
        when = datetime.now(UTC).isoformat(timespec="seconds")
        version = Version(number, self._head, when, what, plan, studio)
        self._write({f"{number:06}.json": json.dumps(asdict(version))}, _HISTORY)
        self._versions[number] = version
        return version

    def _point_at(self, number: int) -> None:
        self._write({_HEAD: str(number)}, _HISTORY)
        self._head = number

    def _write(self, files: dict[str, str], place: str = "") -> None:
        try:
            with complete_files(self.folder / place) as aside:
                for name, text in files.items():
                    (aside / name).write_text(text, encoding="utf-8", newline="")
        except OSError as cause:
            why = cause.strerror or "the system refuses it"
            raise InputError(
                f"The project cannot be written ({why}), so this change was not saved. Fix that in "
                f"'{self.folder}', and repeat the change."
            ) from None

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError):
            raise PlanError(f"The file '{name}' cannot be read as a UTF-8 text file.") from None

    def _read_versions(self) -> Iterator[tuple[int, Version]]:
        for path in sorted((self.folder / _HISTORY).glob("*.json")):
            with contextlib.suppress(ValueError, TypeError, OSError):
                version = Version(**json.loads(path.read_text(encoding="utf-8")))
                yield version.number, version

    def _read_head(self) -> int:
        """The version in force; a change that was interrupted is finished now."""
        with contextlib.suppress(ValueError, OSError):
            text = (self.folder / _HISTORY / _HEAD).read_text(encoding="utf-8")
            numbers = [int(word) for word in text.split()]
            self._head = numbers[0]
            if len(numbers) == 2 and self._is_between(*numbers):
                self._put(self._versions[numbers[1]])
            return self._head
        return max(self._versions, default=0)

    def _is_between(self, old: int, new: int) -> bool:
        """Whether each file belongs to one of two versions, and was not edited elsewhere."""
        if new not in self._versions:
            return False
        ends = [self._versions[number] for number in (old, new) if number in self._versions]
        plan, studio = self._texts_if_any()
        return plan in {end.plan for end in ends} and studio in {end.studio for end in ends}


@lru_cache(8)
def _reading_of(text: str) -> ReadOptions:
    try:
        said = parsed_toml(text, PLAN).unwrap().get("read")
    except PlanError:
        return ReadOptions()
    return ReadOptions.from_dict(said) if isinstance(said, dict) else ReadOptions()


def parsed_toml(text: str, name: str) -> TOMLDocument:
    try:
        return tomlkit.parse(text)
    except ParseError as cause:
        raise PlanError(f"The file '{name}' is not valid TOML: {cause}.") from None
    except RecursionError:
        raise PlanError(f"The file '{name}' is nested too deeply.") from None


def project_of(given: Path) -> tuple[Path, Path | None]:
    """The project folder for a folder or a data file, and the file if it is one."""
    if DATABASE.match(os.fspath(given)) and not given.exists():
        raise InputError(NO_DATABASES)
    place = Path(os.path.realpath(given))
    if place.is_dir():
        return place, None
    if not place.is_file():
        raise InputError(f"There is no folder or file '{given}'. Pass a data file or a folder.")
    folder = place.with_name(f"{place.name.split('.')[0]}-studio")
    return Path(os.path.realpath(folder)), place


def _is_open(folder: Path, record: str) -> str:
    """A message that another studio has the project, and where, without its token."""
    words = [word for word in record.split()[:2] if word.isdecimal()]
    if len(words) < 2:  # it has only begun
        return f"Another studio is opening the project '{folder}'. Continue there."
    process, port = words
    return (
        f"The project '{folder}' is already open in the studio at http://127.0.0.1:{port} "
        f"(process {process}). Continue in the browser that has it, or stop that studio and start "
        "this one."
    )
