"""Everything that Shoal raises or warns, and how a message is worded.

A message says what is wrong, what was given and what to do. It names columns and counts, never
the value of a cell: logs travel further than data.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShoalError(Exception):
    """Base of every error of Shoal.

    ``exit_code`` is what the command line returns: 2 when the input or the call is wrong, 1 when
    a requirement or a claim does not hold.
    """

    exit_code = 2


class InputError(ShoalError, ValueError):
    """The data or the arguments cannot be used as they are."""


class DoesNotApply(InputError):
    """A measure is about something that these tables do not have; another one measures them."""


class ReadError(InputError):
    """A source of data cannot be read."""


class RolesError(InputError):
    """The roles do not fit the columns of the table."""


class ParameterError(InputError):
    """A parameter of a method or model is outside its declared range."""


class PlanError(InputError):
    """A plan cannot be understood."""


class ReleaseError(ShoalError):
    """A release folder is missing, damaged or in the way."""


class UnreachableLevel(InputError):
    """No masking of this table could satisfy what is asked; the text says what could be."""

    exit_code = 1


class RequirementNotMet(ShoalError):
    """The masked table does not satisfy what the plan requires; nothing was released."""

    exit_code = 1


class VerificationFailed(ShoalError):
    """A release does not hold what it claims."""

    exit_code = 1


class MissingExtra(ShoalError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional dependency that is not installed; "
            f'install it with: pip install "shoal[{extra}]"'
        )


class ShoalWarning(UserWarning):
    """Base of every warning of Shoal."""


class NothingLeftWarning(ShoalWarning):
    """A step had to take away all that its columns say."""


class NotProvedWarning(ShoalWarning):
    """A search ended before it could prove that nothing better exists."""


class ModelMissedWarning(ShoalWarning):
    """A step kept to a model, and what it releases does not hold it all the same."""


class SeedWarning(ShoalWarning):
    """A seed was given: whoever learns it can undo the randomness of the release."""


class UnprotectedColumnWarning(ShoalWarning):
    """A column reaches the release exactly as it came."""


class SourceWarning(ShoalWarning):
    """A source is not quite the one that the plan was made for."""


class DialectWarning(ShoalWarning):
    """A release is written in another way than its source."""


class DisclosureWarning(ShoalWarning):
    """An attack that the claim does not cover was tried, and it succeeds."""


def quoted(names: Iterable[object], limit: int = 12) -> str:
    """Column names for a message: quoted, comma separated, shortened after ``limit``."""
    listed = [f"'{name}'" for name in names]
    shown = ", ".join(listed[:limit]) or "none"
    return shown if len(listed) <= limit else f"{shown} and {len(listed) - limit} more"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A hint with the nearest known name, or all of them when none is near."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
    return f"Did you mean '{near[0]}'?" if near else f"Known are {quoted(names, limit=40)}."
