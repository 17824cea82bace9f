"""Kills commands at random moments and looks at what they leave behind.

    python tests/fuzz/kills.py --times 60

starts `protect`, `study` and `tune` and sends each of SIGKILL, SIGTERM and SIGHUP to so many runs
of each of them, after a random part of the time that the command takes. Then nothing may be left
of the private half once the next command has run, every release that is there is whole, no process
lives on or keeps the output open, and what a command says about its end is one of the sentences
that it has for it. It needs Linux or macOS. The exit code is 1 if a run was not as it should be.
"""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

COMMANDS = ("protect", "study", "tune")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGHUP")
PATIENCE = 20.0  # seconds after which a process that should have ended is taken for an orphan

PLAN = """
[roles]
identifiers = ["email"]
quasi_identifiers = ["age", "height"]
sensitive = ["ill"]
target = "ill"
[[steps]]
method = "rank_swap"
percent = 5
"""

STUDY = """
measures = ["uniqueness"]
seeds = 4
[[tables]]
path = "people.csv"
target = "ill"
without = ["email"]
[[variants]]
name = "swap"
steps = [{method = "rank_swap", percent = 5}]
"""


@dataclass
class Ended:
    """How a run ended."""

    code: int
    err: str
    seconds: float
    orphans: list[str] = field(default_factory=list)


class Case:
    """A folder with a table, a plan and a study, and the commands to run in it."""

    def __init__(self, folder: Path, rows: int = 300) -> None:
        self.folder = folder
        draw = random.Random(0)
        lines = [
            f"person-{i}@example.org,{draw.randint(18, 90)},{draw.gauss(170, 10):.1f},"
            f"{draw.choice(['yes', 'no'])}"
            for i in range(rows)
        ]
        (folder / "people.csv").write_text("\n".join(["email,age,height,ill", *lines, ""]))
        (folder / "plan.toml").write_text(PLAN)
        (folder / "study.toml").write_text(STUDY)
        (folder / "place").mkdir()

    def words(self, command: str, number: int) -> list[str]:
        out = ["--out", f"place/{command}-{number}"]
        if command == "protect":
            return ["protect", "people.csv", "--plan", "plan.toml", *out]
        if command == "study":
            return ["study", "study.toml", "--jobs", "2", *out]
        search = ["--max-risk", "0.9", "--trials", "2", "--learner", "decision-tree"]
        return ["tune", "people.csv", "--plan", "plan.toml", *search, *out]

    def left(self) -> list[Path]:
        """What a run did not clear away."""
        return sorted((self.folder / "place").rglob(".*"))

    def run(self, words: Sequence[str], number: int = 0, after: float | None = None) -> Ended:
        """Run a command in a session of its own; send it a signal after some seconds."""
        outputs, out = os.pipe()
        errors, err = os.pipe()
        sys.stdout.flush()
        began = time.monotonic()
        child = os.fork()
        if not child:
            _be_the_program(words, self.folder, out, err)
        os.close(out)
        os.close(err)
        told: dict[int, bytes] = {}
        readers = [_reader(each, told) for each in (outputs, errors)]
        if after is not None:
            time.sleep(after)
            os.kill(child, number)  # not yet waited for, so that no other process has its number
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seconds = time.monotonic() - began
        for reader in readers:
            reader.join(PATIENCE)
        orphans = _living(child)
        if any(reader.is_alive() for reader in readers):
            orphans.append("somebody keeps the output open")
        return Ended(code, told.get(errors, b"").decode(errors="replace"), seconds, orphans)


def _be_the_program(words: Sequence[str], folder: Path, out: int, err: int) -> None:
    """Become ``shoal``, in a copy of a process that has loaded its libraries already."""
    try:
        os.setsid()
        for name in SIGNALS[1:]:  # whoever started this may have it ignore them
            signal.signal(signal.Signals[name], signal.SIG_DFL)
        os.chdir(folder)
        for stream, descriptor in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, err)):
            os.dup2(descriptor, stream)
        os.closerange(3, 256)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        sys.argv = ["shoal", *words]
        from shoal.app.cli import main

        main()
    except SystemExit as end:
        threading._shutdown()  # type: ignore[attr-defined]  # as at the end of a program
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)


def _reader(descriptor: int, told: dict[int, bytes]) -> threading.Thread:
    def read() -> None:
        with os.fdopen(descriptor, "rb") as stream:
            told[descriptor] = stream.read()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _living(session: int) -> list[str]:
    """The processes that a command started and that are still there, after some patience."""
    until = time.monotonic() + PATIENCE
    while True:
        wanted = ["ps", "-A", "-ww", "-o", "pgid=,stat=,args="]
        listed = subprocess.run(wanted, capture_output=True, text=True, check=True).stdout
        parts = [line.split(None, 2) for line in listed.splitlines()]
        found = [p[-1] for p in parts if p[0] == str(session) and not p[1].startswith("Z")]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def kill_one(case: Case, command: str, number: int, signal_name: str, after: float) -> list[str]:
    """Send a signal to a run; what is not as it should be then, and after the next command."""
    sent = signal.Signals[signal_name]
    words = case.words(command, number)
    ended = case.run(words, sent, after)
    wrong = [f"lives on: {each}" for each in ended.orphans]
    # before it listens the system ends it, which a shell calls the same
    allowed = {0, -sent} if sent == signal.SIGKILL else {0, -sent, 128 + sent}
    if ended.code not in allowed:
        wrong.append(f"exit code {ended.code}")
    if ended.code == 128 + sent and f"stopped by {signal_name}" not in ended.err:
        wrong.append(f"says {ended.err!r}")
    if ended.code != -sent:
        usual = ("shoal: ", "Engine: ", "The report is at ", "The front is at ")
        lines = ended.err.splitlines()
        wrong += [f"says {line!r}" for line in lines if not line.startswith(usual)]
        if ended.code > 0:
            wrong += [f"left {path.name}" for path in case.left()]
    wrong += _after_the_next(case, command, number, words)
    return wrong


def _after_the_next(case: Case, command: str, number: int, words: list[str]) -> Iterator[str]:
    """What is wrong once a later command has run: another target, or the same study again."""
    out = case.folder / "place" / f"{command}-{number}"
    if command == "protect" and out.exists():
        yield from _wrong_with(case, out)
    if case.left() or number % 10 == 0:
        if command == "protect":
            words = case.words(command, -number - 1)
        elif (out / "plan.toml").exists():
            words = [*words, "--force"]
        ended = case.run(words)
        if ended.code:
            yield f"the next command ends with {ended.code}: {ended.err}"
        yield from (f"left after the next command: {path}" for path in case.left())
        if command == "protect":
            yield from _wrong_with(case, case.folder / "place" / f"{command}-{-number - 1}")


def _wrong_with(case: Case, release: Path) -> Iterator[str]:
    if case.run(["verify", str(release)]).code:
        yield f"{release.name} is not whole"
    for path in (release, *release.rglob("*")):
        name, mode = path.relative_to(release), path.stat().st_mode & 0o777
        own = 0o700 if name.parts[:1] == ("private",) else 0o777
        if mode != (0o755 if path.is_dir() else 0o644) & own:
            yield f"{release.name}/{name} has mode {mode:o}"


def campaign(
    times: int,
    *,
    commands: Sequence[str] = COMMANDS,
    signals: Sequence[str] = SIGNALS,
    seed: int = 0,
    told: bool = True,
) -> list[str]:
    """Kill so many runs of each command by each signal; what was wrong, with what repeats it."""
    draw = random.Random(seed)
    failures = []
    for command in commands:
        case = Case(Path(tempfile.mkdtemp(prefix="kills-")))
        try:
            case.run(case.words(command, 0))  # kernels are compiled, files are in memory
            whole = case.run(case.words(command, 1))
            assert whole.code == 0, whole.err
            ends: Counter[str] = Counter()
            for number in range(2, 2 + times * len(signals)):
                name = signals[number % len(signals)]
                after = draw.uniform(0.0, 1.05 * whole.seconds)
                wrong = kill_one(case, command, number, name, after)
                ends[f"{name} {'wrong' if wrong else 'right'}"] += 1
                failures += [f"{command} {name} after {after:.3f} s: {each}" for each in wrong]
                for each in wrong if told else ():
                    print(f"{command} {name} after {after:.3f} s: {each}", flush=True)
                if told and (number % 10 == 0 or number == 1 + times * len(signals)):
                    print(f"{command} ({whole.seconds:.1f} s): {dict(ends)}", flush=True)
        finally:  # by this process alone, and not by its copies when they end
            shutil.rmtree(case.folder)
    return failures


def load_libraries() -> None:
    """Load ahead what takes seconds, so that kills fall on the work and not on imports."""
    import polars
    import sklearn.ensemble
    import sklearn.tree

    import shoal.app.cli
    import shoal.study.tuning
    import shoal.workflow

    del polars, sklearn, shoal


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=60, help="runs for each command and signal")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=SIGNALS)
    parser.add_argument("--seed", type=int, default=None, help="the moments of an earlier run")
    given = parser.parse_args()
    chosen = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {chosen}")
    load_libraries()
    found = campaign(given.times, commands=given.commands, signals=given.signals, seed=chosen)
    print(f"{len(found)} failures")
    sys.exit(bool(found))
