"""How long a partition will take: the same work on a few of the records first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoal.kernels.arrays import Integers
from shoal.masking._base import StepLog
from shoal.masking.grouping._dissimilarity import Space

#: Puts records into groups and shows in a log how far it is.
Forming = Callable[[Space, StepLog], object]

_FEWEST = 50_000  # records below which nobody waits for any partition
_PILOT = 20  # the pilot has one record in so many, so that it takes a percent or two of the run
_FEW = 200  # records of a run before it, which may have to compile
_GROWTH = 1.3  # time grows as this power of the records; seen from 1.1 to 1.5 with the data
_WORTH_TELLING = 3.0  # seconds


def with_estimate(log: StepLog, space: Space, form: Forming) -> StepLog:
    """A log that says, beside what is done, about how long a run on all records will take.

    The given one where nobody listens, or where the run is short.

    Examples
    --------
    >>> log = StepLog()
    >>> space = Space(3, points=np.zeros((3, 1)))
    >>> with_estimate(log, space, lambda part, log: None) is log
    True
    """
    show = log.progress
    if show is None:
        return log
    seconds = estimated_seconds(space, form)
    if seconds is None or seconds < _WORTH_TELLING:
        return log
    return replace(log, progress=lambda label, share: show(f"{label}: {in_words(seconds)}", share))


def estimated_seconds(space: Space, form: Forming) -> float | None:
    """About how many seconds it takes to form groups of all records; None for not worth a trial.

    The work is done on one record in so many and the time scaled up by how it is known to grow.
    Data whose structure changes with their number are off by a factor of about two.

    Parameters
    ----------
    space : Space
        All records.
    form : callable
        Forms groups of a space.
    """
    if space.rows < _FEWEST:
        return None
    from shoal.kernels.compile import always_compiled

    few, part = (
        part_of(space, np.arange(0, space.rows, step)) for step in (space.rows // _FEW, _PILOT)
    )
    with always_compiled():  # as for all records
        form(few, StepLog())
        start = time.monotonic()
        form(part, StepLog())
    return (time.monotonic() - start) * (space.rows / part.rows) ** _GROWTH


def part_of(space: Space, rows: Integers) -> Space:
    """Some of the records, compared as all of them are."""
    points, mixed = space.points, space.mixed
    if points is not None:
        points = np.ascontiguousarray(points[rows])
    if mixed is not None:
        mixed = mixed._replace(
            values=np.ascontiguousarray(mixed.values[:, rows]),
            codes=np.ascontiguousarray(mixed.codes[:, rows]),
            patterns=mixed.patterns[rows],
        )
    return replace(space, rows=len(rows), points=points, mixed=mixed)


def in_words(seconds: float) -> str:
    """A time as it is guessed: two digits would claim too much.

    Examples
    --------
    >>> in_words(3.7), in_words(43.2), in_words(412.0), in_words(9000.0)
    ('about 4 s', 'about 40 s', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 10:
        return f"about {seconds:.0f} s"
    if seconds < 90:
        return f"about {10 * round(seconds / 10)} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.2g} h"
