"""Work in the background: a process for each job, whose folder in ``runs/`` is all of its state.

``job.json`` says what is to be done, ``progress.json`` how far it is, ``outcome.json`` how it
ended. While the process lives it holds a lock on the folder. So a server that was killed finds
every job again: done, still running, or interrupted and ready to go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from shoal.errors import InputError
from shoal.workflow.release._folder import complete_files

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

JOB, PROGRESS, OUTCOME, LOCK, RESULT, PROCESS = (
    "job.json", "progress.json", "outcome.json", "lock", "result.json", "process.json"
)  # fmt: skip
_ID: Final = re.compile(r"\d{8}-\d{6}-[a-z]+-[0-9a-f]{4}")
_GRACE: Final = 5.0  # seconds that a process has to clean up after it was asked to stop
_SEEN_TOO_EARLY: Final = 0.03

_PROBING: Final = threading.Lock()

State = Literal["running", "done", "refused", "failed", "stopped", "interrupted"]


@dataclass(frozen=True)
class Job:
    """A job as its folder shows it."""

    folder: Path
    kind: str
    title: str
    options: Mapping[str, Any]
    version: int
    plan: str
    started: float
    state: State
    label: str = ""
    share: float = 0.0
    sentence: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    @property
    def can_go_on(self) -> bool:
        return self.state in ("stopped", "interrupted", "failed")

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.started).strftime("%Y-%m-%d %H:%M")

    @property
    def seconds_left(self) -> float | None:
        """About how long it still takes; None where it is too early to say."""
        if not self.is_running or self.share < _SEEN_TOO_EARLY:
            return None
        return (time.time() - self.started) * (1 - self.share) / self.share

    @property
    def left(self) -> str:
        """The time left in words."""
        seconds = self.seconds_left
        if seconds is None:
            return ""
        if seconds < 90:
            return f"about {max(1, round(seconds))} s left"
        return f"about {round(seconds / 60)} min left"

    def result(self, name: str = RESULT) -> Any:
        """What it found; None where there is nothing yet."""
        return _read_json(self.folder / name)

    def to_dict(self) -> dict[str, Any]:
        """What the page shows while it runs."""
        return {
            "id": self.id,
            "state": self.state,
            "label": self.label,
            "share": round(self.share, 3),
            "left": self.left,
        }


class Jobs:
    """The jobs of a project."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(
        self,
        kind: str,
        title: str,
        *,
        source: Path,
        reading: Mapping[str, Any],
        plan: str,
        version: int,
        options: Mapping[str, Any] | None = None,
    ) -> Job:
        """Begin a job in a process of its own."""
        name = f"{datetime.now():%Y%m%d-%H%M%S}-{kind}-{secrets.token_hex(2)}"
        folder = self._runs / name
        facts = {
            "kind": kind,
            "title": title,
            "source": str(source),
            "reading": dict(reading),
            "plan": plan,
            "version": version,
            "options": dict(options or {}),
            "started": time.time(),
        }
        try:
            folder.mkdir(mode=0o700)
            write_json(folder / JOB, facts)
            return self._run(folder)
        except OSError as cause:
            shutil.rmtree(folder, ignore_errors=True)
            why = cause.strerror or "the system refuses it"
            raise InputError(f"The job cannot begin in '{self._runs}': {why}.") from None

    def go_on(self, id: str) -> Job:
        """Begin again where a job was stopped; what it keeps as it goes is not done again."""
        job = self.get(id)
        if not job.can_go_on:
            raise InputError("This job runs or is done; there is nothing to go on with.")
        facts = _read_json(job.folder / JOB) | {"started": time.time()}
        self._end(job.folder)  # one that has told its outcome may still be leaving
        try:
            write_json(job.folder / JOB, facts)
            for name in (PROCESS, OUTCOME, PROGRESS):
                (job.folder / name).unlink(missing_ok=True)
            return self._run(job.folder)
        except OSError as cause:
            why = cause.strerror or "the system refuses it"
            raise InputError(f"The job cannot go on: {why}.") from None

    def _run(self, folder: Path) -> Job:
        held = _locked(folder)  # handed to the process: held from the first moment on
        self._ended.pop(folder.name, None)
        try:
            process = subprocess.Popen(
                # -P: no module from the folder that the studio happens to be started in
                [sys.executable, "-P", "-m", "shoal.app.studio._work", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=() if held is None else (held,),
            )
        finally:
            if held is not None:
                os.close(held)
        with self._lock:
            self._processes[folder.name] = process
        return self.get(folder.name)

    def all(self, *kinds: str) -> list[Job]:
        """The jobs, the newest first."""
        names = sorted(filter(_ID.fullmatch, os.listdir(self._runs)), reverse=True)
        found = [self._seen(self._runs / name) for name in names]
        return [job for job in found if job is not None and (not kinds or job.kind in kinds)]

    def latest(self, *kinds: str) -> Job | None:
        """The newest job of a kind."""
        return next(iter(self.all(*kinds)), None)

    def get(self, id: str) -> Job:
        found = self._seen(self._runs / id) if _ID.fullmatch(id) else None
        if found is None:
            raise InputError("There is no such job in this project.")
        return found

    def _seen(self, folder: Path) -> Job | None:
        if folder.name in self._ended and (folder / OUTCOME).exists():
            return self._ended[folder.name]
        facts = _read_json(folder / JOB)
        if facts is None:
            return None
        alive = self._is_alive(folder)  # asked first: an outcome is written before the end
        try:
            job = self._job(folder, facts, alive)
        except (AttributeError, KeyError, TypeError):  # somebody else's file
            return None
        if not alive and job.state != "interrupted":
            self._ended[folder.name] = job
        return job

    def _job(self, folder: Path, facts: Mapping[str, Any], alive: bool) -> Job:
        outcome = _read_json(folder / OUTCOME)
        progress = _read_json(folder / PROGRESS) or {}
        state: State = "running" if alive else "interrupted"
        if outcome is not None:
            state = outcome["state"]
        outcome = outcome or {}
        return Job(
            folder,
            facts["kind"],
            facts["title"],
            facts["options"],
            facts["version"],
            facts["plan"],
            facts["started"],
            state,
            progress.get("label", "Starting"),
            1.0 if state == "done" else progress.get("share", 0.0),
            outcome.get("sentence", ""),
            tuple(outcome.get("warnings", ())),
        )

    def _is_alive(self, folder: Path) -> bool:
        with self._lock:
            process = self._processes.get(folder.name)
        return (process is not None and process.poll() is None) or _is_locked(folder)

    def cancel(self, id: str) -> Job:
        """Ask the process of a job to stop, and end it if it does not."""
        job = self.get(id)
        if job.is_running:
            self._end(job.folder)
            if self.get(id).state == "interrupted":
                with contextlib.suppress(OSError):  # a full disk: it stays interrupted
                    write_json(job.folder / OUTCOME, {"state": "stopped", "sentence": "Stopped."})
        return self.get(id)

    def _end(self, folder: Path) -> None:
        """End the process of a job and all that it started."""
        with self._lock:
            process = self._processes.get(folder.name)
        own = process is not None and process.poll() is None
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            end = time.monotonic() + _GRACE
            told = False
            while self._is_alive(folder) and time.monotonic() < end:
                pid = process.pid if own and process else _process_in(folder)
                if pid is not None and not told:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(pid, number)
                    told = True
                time.sleep(0.02)

    def remove(self, id: str) -> None:
        """Take away a job that has ended, with all that it found."""
        job = self.get(id)
        if job.is_running:
            raise InputError("This job is running; stop it first.")
        shutil.rmtree(job.folder)

    def close(self) -> None:
        """Stop what runs: it goes on when somebody asks for it."""
        for job in self.all():
            if job.is_running:
                self.cancel(job.id)
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)


def _process_in(folder: Path) -> int | None:
    """The process of a job that another server began; it says its number when it begins."""
    facts = _read_json(folder / PROCESS)
    pid = facts.get("pid") if isinstance(facts, dict) else None
    return pid if isinstance(pid, int) and pid > 1 else None


def _locked(folder: Path) -> int | None:
    if fcntl is None:
        return None
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with _PROBING:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_locked(folder: Path) -> bool:
    if fcntl is None:
        return False
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    with _PROBING:  # whoever asks holds the lock for a moment, and must not be taken for a process
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
    return False


def write_json(path: Path, facts: Any) -> None:
    """Write facts in one step, readable by their owner alone."""
    with complete_files(path.parent) as aside:
        (aside / path.name).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")


def _read_json(path: Path) -> Any:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None
