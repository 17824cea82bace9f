"""Progress on the terminal, for work that takes longer than a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from shoal.app.cli.output.ui import console, is_watched, live, note, printable

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 0.7
_WIDTH = 42
_TOO_EARLY = 0.03  # the share that must be done before the time left is estimated
_UNNOTICED = 2.0  # seconds of compiling that need no message
_FIRST_USE = (
    "Shoal compiles code for large tables on first use and keeps it, so the next run is faster. "
    "'shoal warm' compiles everything in advance."
)
_said: list[str] = []


class Working:
    """Shows the current activity if it takes longer than a moment, on a terminal only.

    It is the ``progress`` of the workflow's functions. They count every phase from 0 again, so
    each phase gets half of what is left of the bar: it never goes back and never ends too early.
    If the share of a phase is known, ``part`` uses it, and the time left is shown.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._base = 0.0
        self._last = 0.0
        self._of_all: float | None = None
        self._progress: Progress | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._done = False
        self._shared = ExitStack()

    def __enter__(self) -> Self:
        if is_watched():
            from shoal.kernels.compile import Compiling

            self._shared.enter_context(Compiling(_UNNOTICED, _say_once))
            self._timer = threading.Timer(_PATIENCE, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._done = True
            if self._timer is not None:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()
            self._shared.close()

    def __call__(self, label: str, share: float) -> None:
        """Report the current activity, and the share of the phase that is done."""
        with self._lock:
            if share < self._last or label.partition(":")[0] != self._label.partition(":")[0]:
                self._base = self._overall
            self._label, self._last = label, min(max(share, 0.0), 1.0)
            if self._progress is not None:
                self._show()

    def part(self, low: float, high: float) -> Callable[[str, float], None] | None:
        """A progress function from one share of all the work to another; None if unwatched."""
        if self._timer is None:
            return None

        def tell(label: str, share: float) -> None:
            with self._lock:
                done = low + (high - low) * min(max(share, 0.0), 1.0)
                self._label, self._of_all = label, max(done, self._of_all or 0.0)
                if self._progress is not None:
                    self._show()

        return tell

    @property
    def if_watched(self) -> Self | None:
        """Itself on a terminal; None if nobody sees it, so that nothing is computed for it."""
        return self if self._timer is not None else None

    @property
    def _overall(self) -> float:
        if self._of_all is not None:
            return self._of_all
        return self._base + (1 - self._base) * self._last / 2

    def _appear(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._done:
                return
            err = console(stderr=True)
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}", markup=False),
                console=err,
                transient=True,
            )
            self._progress.add_task("", total=1.0, left="")
            self._show()
            self._progress.start()
            self._shared.enter_context(live(err))

    def _show(self) -> None:
        assert self._progress is not None
        task = self._progress.task_ids[0]
        description = printable(self._label)[:_WIDTH].ljust(_WIDTH)
        elapsed = self._progress.tasks[0].elapsed or 0.0
        left = "" if self._of_all is None else time_left(self._of_all, elapsed)
        self._progress.update(task, description=description, completed=self._overall, left=left)


def time_left(share: float, elapsed: float) -> str:
    """The share that is done, and about how long the rest takes once that can be estimated."""
    percent = f"{100 * share:.0f} %"
    if share < _TOO_EARLY or elapsed < 1:
        return percent
    seconds = elapsed * (1 - share) / share
    if seconds < 90:
        return f"{percent}, about {max(1, round(seconds))} s left"
    if seconds < 5400:
        return f"{percent}, about {round(seconds / 60)} min left"
    return f"{percent}, about {seconds / 3600:.1f} h left"


def _say_once() -> None:
    if not _said:
        _said.append(_FIRST_USE)
        note(_FIRST_USE)
