"""The process of a job: it reads the table, does one thing, and writes the result.

It is started as ``python -m shoal.app.studio._work FOLDER`` and prints nothing, since a traceback
may contain a value of the data.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from shoal.app.studio._jobs import JOB, OUTCOME, PROCESS, PROGRESS, RESULT, write_json
from shoal.errors import RequirementNotMet, ShoalError, ShoalWarning, UnreachableLevel
from shoal.table import Table, read
from shoal.workflow import Plan

_OFTEN: Final = 0.2  # seconds between two progress reports of a job


@dataclass
class Task:
    """What a job has to do, and where it reports its progress."""

    folder: Path
    facts: dict[str, Any]
    _reported: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.facts["options"]
        return options

    @property
    def source(self) -> Path:
        return Path(self.facts["source"])

    @cached_property
    def plan(self) -> Plan:
        """The plan as it was when the job started; its paths are relative to the project."""
        return Plan.from_toml(self.facts["plan"], folder=self.folder.parent.parent)

    @cached_property
    def table(self) -> Table:
        """The table with the plan's roles."""
        self.progress("Reading the table", 0.0)
        table = read(self.source, **self.facts["reading"])
        return table if self.plan.roles is None else table.with_roles(self.plan.roles)

    def progress(self, label: str, share: float) -> None:
        """Report the current activity and the share that is done, as often as a page looks."""
        if share < 1.0 and time.monotonic() - self._reported < _OFTEN:
            return
        self._reported = time.monotonic()
        aside = self.folder / f".{PROGRESS}"
        facts = {"label": label, "share": min(max(share, 0.0), 1.0)}
        aside.write_text(json.dumps(facts), encoding="utf-8")
        os.replace(aside, self.folder / PROGRESS)

    def part(self, low: float, high: float) -> Any:
        """A progress function for the part of the job from one share to another."""
        return lambda label, share: self.progress(label, low + (high - low) * share)


def outcome_of(folder: Path) -> dict[str, Any]:
    """Do the job of a folder, write the result, and return how it ended."""
    from shoal.app.studio._tasks import TASKS

    facts = json.loads((folder / JOB).read_text(encoding="utf-8"))
    if (run := TASKS.get(facts["kind"])) is None:
        return {"state": "failed", "sentence": "There is no job of this kind."}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ShoalWarning)
        try:
            write_json(folder / RESULT, run(Task(folder, facts)))
        except (RequirementNotMet, UnreachableLevel) as cause:
            outcome = {"state": "refused", "sentence": str(cause)}
        except ShoalError as cause:
            outcome = {"state": "failed", "sentence": str(cause)}
        except KeyboardInterrupt:
            outcome = {"state": "stopped", "sentence": "Stopped."}
        except MemoryError:
            outcome = {"state": "failed", "sentence": "There is not enough memory for this."}
        except BaseException as cause:  # a panic of a library is not an Exception
            outcome = {"state": "failed", "sentence": _unexpected(cause)}
        else:
            outcome = {"state": "done", "sentence": ""}
    said = dict.fromkeys(str(warning.message) for warning in warned)
    return outcome | {"warnings": list(said)}


def _unexpected(cause: BaseException) -> str:
    """The place of an error without its message, which may quote the data."""
    trace = cause.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {Path(trace.tb_frame.f_code.co_filename).name}"
    line = "" if trace is None else f", line {trace.tb_lineno}"
    return (
        f"An unexpected error occurred: {type(cause).__name__}{place}{line}. Nothing was released."
    )


def _stop(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> None:
    """Do the job of the folder given on the command line."""
    folder = Path(sys.argv[1])
    os.umask(0o077)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    write_json(folder / PROCESS, {"pid": os.getpid()})
    write_json(folder / OUTCOME, outcome_of(folder))


if __name__ == "__main__":
    main()
