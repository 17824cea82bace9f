"""Teaching: examples in the help, and the command to run next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from shoal.app.cli._sources import Reading

F = TypeVar("F", bound=Callable[..., Any])


def with_examples(text: str) -> Callable[[F], F]:
    """Give a command the examples that its help ends with."""

    def mark(command: F) -> F:
        vars(command)["examples"] = text
        return command

    return mark


def shown_source(data: str, reading: Reading | None = None) -> list[str]:
    """DATA and the options of reading as words of a command; a password is left out.

    Examples
    --------
    >>> shown_source("my people.csv", Reading(delimiter=";"))
    ["'my people.csv'", '--delimiter', "';'"]
    >>> shown_source("postgresql://ann:secret@host/people")
    ['DATA']
    """
    secret = re.match(r"[^/]+://[^/@]*:[^/@]*@", data) is not None
    options = [] if reading is None else reading.words()
    return ["DATA" if secret else shlex.quote(data), *options]
