"""Going on when a process dies: out of memory, or by a fault of a library."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from shoal.study.running._store import Result, Store

#: A cell, what is to be measured of it with the keys, and what a worker needs besides.
Piece = tuple[Any, ...]

DIED = (
    "The process that computed it died, alone as well as among others; it may need more memory "
    "than there is."
)


def in_spite_of_deaths(
    start: Callable[[Iterator[Piece]], Iterator[list[Result]]],
    pieces: Iterator[Piece],
    store: Store,
) -> Generator[list[Result], None, None]:
    """What ``start`` makes of the pieces, though a process may die on the way.

    One that dies takes the others of its pool with it, and nobody says which task was the cause.
    So what was in flight is tried again alone, piece by piece; a task that kills its process then
    too is recorded as failed, and all others go on.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    while True:
        begun: dict[str, Piece] = {}
        try:
            for results in start(_noted(pieces, begun)):
                for result in results:
                    begun.pop(result.key, None)
                yield results
            return
        except BrokenProcessPool:
            for piece in {id(piece): piece for piece in begun.values()}.values():
                yield from _alone(start, piece, store, BrokenProcessPool)


def _noted(pieces: Iterator[Piece], begun: dict[str, Piece]) -> Iterator[Piece]:
    for piece in pieces:
        begun.update(dict.fromkeys((key for _, key in piece[1]), piece))
        yield piece


def _alone(
    start: Callable[[Iterator[Piece]], Iterator[list[Result]]],
    piece: Piece,
    store: Store,
    death: type[Exception],
) -> Iterator[list[Result]]:
    cell, todo, *more = piece
    died = False
    while True:
        written = store.read(key for _, key in todo)  # before its process died
        yield list(written.values())
        todo = [each for each in todo if each[1] not in written]
        if not todo:
            return
        if died:
            store.write(Result(todo[0][1], "failed", reason=DIED))
            died = False
            continue
        try:
            yield from start(iter([(cell, todo, *more)]))
            return
        except death:
            died = True
