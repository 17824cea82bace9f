"""Errors of Spark in one sentence, and errors of our own carried home from a task.

What is raised in a task is written to logs all over the cluster. So nothing leaves a task but
what we say ourselves, and of everything else only the name of its class.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator

from shoal import errors
from shoal.errors import InputError, ReadError, ShoalError

_CARRIED = re.compile(r"shoal-error:([A-Za-z0-9_=-]+):")


class TaskFailed(Exception):
    """What leaves a task: the class and the sentence of an error, in letters and digits."""


@contextlib.contextmanager
def in_a_task() -> Iterator[None]:
    """Raise nothing from a task that could quote a cell."""
    try:
        yield
    except Exception as error:
        sentence = str(error) if isinstance(error, ShoalError) else None
        packed = json.dumps([type(error).__name__, sentence]).encode()
        raise TaskFailed(f"shoal-error:{base64.urlsafe_b64encode(packed).decode()}:") from None


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """What Spark raises, in a sentence that quotes no cell."""
    from pyspark.errors import PySparkException

    kinds: tuple[type[Exception], ...] = (PySparkException,)
    with contextlib.suppress(ImportError):  # a client of Spark Connect does without
        from py4j.protocol import Py4JError

        kinds += (Py4JError,)
    try:
        yield
    except kinds as error:
        raise _worded(error) from None


def _worded(error: Exception) -> ShoalError:
    text = str(error)
    carried = _CARRIED.search(text)
    if carried is not None:
        return _rebuilt(*json.loads(base64.urlsafe_b64decode(carried[1])))
    for sign, sentence in _KNOWN.items():
        if sign in text:
            return ReadError(f"{sentence} Nothing was written.")
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return ReadError(f"Spark could not do its part ({condition}). Nothing was written.")


def _rebuilt(kind: str, sentence: str | None) -> ShoalError:
    """An error of a task as it would have been here."""
    if sentence is None:
        return InputError(f"A task of Spark failed ({kind}). Nothing was written.")
    known = getattr(errors, kind, InputError)
    if not (isinstance(known, type) and issubclass(known, ShoalError)):
        known = InputError
    found = known.__new__(known)
    Exception.__init__(found, sentence)
    return found


_KNOWN = {
    "JAVA_GATEWAY_EXITED": "Spark needs Java 17 or newer and did not start; install it.",
    "PATH_NOT_FOUND": "Spark does not find the source under its path.",
    "TABLE_OR_VIEW_NOT_FOUND": "Spark knows no table of that name; give its full name or a path.",
    "UNABLE_TO_INFER_SCHEMA": "There is no file of Parquet under the path of the source.",
    "No space left on device": "The disk is full where Spark spills; free space there.",
    "OutOfMemoryError": "Spark needs more memory than its driver or an executor has; raise "
    "'memory_limit', or give the executors more.",
    "maxResultSize": "The combinations do not fit what Spark's driver takes; raise "
    "'spark.driver.maxResultSize'.",
    "FAILED_READ_FILE": "Spark cannot read a file of the source: it is damaged or was removed.",
    "CANNOT_MERGE_SCHEMAS": "The files of the source do not have the same types.",
    "All masters are unresponsive": "No master of Spark answers under 'master'.",
}
