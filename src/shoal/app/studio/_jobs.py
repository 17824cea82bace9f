"""Background work: a process for each job, whose folder in ``runs/`` holds all of its state.

``job.json`` says what to do, ``progress.json`` how far the job is, ``outcome.json`` how it ended.
The process holds a lock on the folder while it lives. So a server that was killed finds every job
again: done, still running, or interrupted and ready to continue.
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
_GRACE: Final = 5.0  # seconds for a process to clean up after it was asked to stop
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
        """The estimated time left; None if it is too early to tell."""
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
        """The result; None if there is none yet."""
        return _read_json(self.folder / name)

    def to_dict(self) -> dict[str, Any]:
        """What a page shows while the job runs."""
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
        """Start a job in a process of its own."""
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
            raise InputError(f"The job cannot start in '{self._runs}': {why}.") from None

    def go_on(self, id: str) -> Job:
        """Continue a job where it was stopped; what it has already saved is not repeated."""
        job = self.get(id)
        if not job.can_go_on:
            raise InputError("This job is running or done, so there is nothing to continue.")
        facts = _read_json(job.folder / JOB) | {"started": time.time()}
        self._end(job.folder)  # a process that wrote its outcome may still be exiting
        try:
            write_json(job.folder / JOB, facts)
            for name in (PROCESS, OUTCOME, PROGRESS):
                (job.folder / name).unlink(missing_ok=True)
            return self._run(job.folder)
        except OSError as cause:
            why = cause.strerror or "the system refuses it"
            raise InputError(f"The job cannot continue: {why}.") from None

    def _run(self, folder: Path) -> Job:
        held = _locked(folder)  # passed to the process, so that it holds the lock from the start
        self._ended.pop(folder.name, None)
        try:
            process = subprocess.Popen(
                # -P: import no module from the folder that the studio was started in
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
        """The jobs, newest first."""
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
        alive = self._is_alive(folder)  # checked first: the outcome is written before the end
        try:
            job = self._job(folder, facts, alive)
        except (AttributeError, KeyError, TypeError):  # not a file of the studio
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
        known = ("kind", "title", "options", "version", "plan", "started")
        return Job(
            folder,
            **{name: facts[name] for name in known},
            state=state,
            label=progress.get("label", "Starting"),
            share=1.0 if state == "done" else progress.get("share", 0.0),
            sentence=outcome.get("sentence", ""),
            warnings=tuple(outcome.get("warnings", ())),
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
                with contextlib.suppress(OSError):  # the disk is full: the job stays interrupted
                    write_json(job.folder / OUTCOME, {"state": "stopped", "sentence": "Stopped."})
        return self.get(id)

    def _end(self, folder: Path) -> None:
        """End the process of a job and all its children."""
        with self._lock:
            process = self._processes.get(folder.name)
        own = process is not None and process.poll() is None
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            end = time.monotonic() + _GRACE
            asked = False
            while self._is_alive(folder) and time.monotonic() < end:
                pid = process.pid if own and process else _process_in(folder)
                if pid is not None and not asked:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(pid, number)
                    asked = True
                time.sleep(0.02)

    def remove(self, id: str) -> None:
        """Delete a job that has ended, with its results."""
        job = self.get(id)
        if job.is_running:
            raise InputError("This job is running. Stop it first.")
        shutil.rmtree(job.folder)

    def close(self) -> None:
        """Stop all running jobs; they can be continued later."""
        for job in self.all():
            if job.is_running:
                self.cancel(job.id)
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)


def _process_in(folder: Path) -> int | None:
    """The process of a job that another server started; it records its number at the start."""
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
    with _PROBING:  # the probe holds the lock for a moment, and must not be taken for a process
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
    return False


def write_json(path: Path, facts: Any) -> None:
    """Write facts atomically, readable only by their owner."""
    with complete_files(path.parent) as aside:
        (aside / path.name).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")


def _read_json(path: Path) -> Any:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None
