"""A long run over all cores: ``make fuzz MINUTES=60``, or from ``tests/``::

    python -m fuzz.campaign --minutes 60 --from 1000
    python -m fuzz.campaign --number 1234   # one case, with all that it found

Every number is a case, so whatever fails is found again by its number. A worker that ends or
hangs is a failure of the case it was at.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import sys
import time
from collections import Counter
from typing import Any

from .cases import SECONDS, Verdict, run_case

#: A worker that says nothing for so long is ended; most of it may be waiting for the processor.
SILENT = 20 * SECONDS


def _work(numbers: Any, done: Any) -> None:
    """Try the numbers that are given, until there is none."""
    while True:
        number = numbers.get()
        if number is None:
            return
        done.put(run_case(number))


class Worker:
    """A process that tries one case after the other."""

    def __init__(self, context: Any, done: Any) -> None:
        self.numbers = context.Queue()
        self.since = time.monotonic()
        self.process = context.Process(target=_work, args=(self.numbers, done))
        self.process.start()

    def give(self, number: int | None) -> None:
        self.since = time.monotonic()
        self.numbers.put(number)

    def lost(self) -> str | None:
        """Why the process will never report its case, or None if it still may."""
        if not self.process.is_alive():
            return f"the process ended with {self.process.exitcode}"
        if time.monotonic() - self.since > SILENT:
            self.process.kill()
            self.process.join()
            return f"nothing was heard for {SILENT} seconds"
        return None


class Tally:
    """What all cases came to, in ratios."""

    def __init__(self) -> None:
        self.cases = Counter[tuple[str, str]]()
        self.failed: list[Verdict] = []
        self.releases = self.claims = 0

    def add(self, verdict: Verdict) -> None:
        self.cases[verdict.kind, verdict.came_to] += 1
        self.releases += verdict.releases
        self.claims += verdict.claims
        if sum(self.cases.values()) % 1000 == 0:
            print(f"... {self.summary}", flush=True)
        if verdict.failures:
            self.failed.append(verdict)
            print(f"{verdict.number} {verdict.kind}: {'; '.join(verdict.failures)}", flush=True)

    def __str__(self) -> str:
        lines = []
        for kind in sorted({kind for kind, _ in self.cases}):
            came = {to: n for (of, to), n in sorted(self.cases.items()) if of == kind}
            ways = ", ".join(f"{to} {n}" for to, n in came.items())
            lines.append(f"{kind:10} {sum(came.values()):7} cases: {ways}")
        return "\n".join([*lines, self.summary])

    @property
    def summary(self) -> str:
        return (
            f"{self.releases} releases counted again, {self.claims} claims and measured values; "
            f"{len(self.failed)} of {sum(self.cases.values())} cases failed"
        )


def campaign(seconds: float, first: int, jobs: int) -> Tally:
    """Try numbers from ``first`` on until the time is over."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # one core for each worker
    context = multiprocessing.get_context("spawn")
    done, tally = context.Queue(), Tally()
    workers = [Worker(context, done) for _ in range(jobs)]
    number, end = first, time.monotonic() + seconds
    at: dict[int, Worker] = {}
    free = list(workers)
    while at or time.monotonic() < end:
        while free and time.monotonic() < end:
            worker = free.pop()
            worker.give(number)
            at[number] = worker
            number += 1
        try:
            verdict = done.get(timeout=1)
            tally.add(verdict)
            free.append(at.pop(verdict.number))
        except queue.Empty:
            for lost, worker in list(at.items()):
                reason = worker.lost()
                if reason is not None:
                    tally.add(Verdict(lost, "process", "lost", [reason]))
                    del at[lost]
                    free.append(Worker(context, done))
    for worker in free:
        worker.give(None)
        worker.process.join()
    print(f"numbers {first} to {number - 1}")
    return tally


def main() -> int:
    """The program; 1 if anything failed."""
    told = argparse.ArgumentParser(prog="fuzz.campaign", description=__doc__)
    told.add_argument("--minutes", type=float, default=10)
    told.add_argument("--from", type=int, default=0, dest="first")
    told.add_argument("--jobs", type=int, default=os.cpu_count())
    told.add_argument("--number", type=int, help="try one case")
    given = told.parse_args()
    if given.number is not None:
        tally = Tally()
        tally.add(run_case(given.number))
    else:
        tally = campaign(60 * given.minutes, given.first, given.jobs)
    print(tally)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
