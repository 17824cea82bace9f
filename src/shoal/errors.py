"""Everything that Shoal raises or warns, and how a message is worded.

A message says what is wrong, what was given and what to do. It names columns and counts, never
the value of a cell: logs travel further than data.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


class ShoalError(Exception):
    """Base of every error of Shoal.

    ``exit_code`` is what the command line returns: 2 if the input or the call is wrong, 1 if
    a requirement or a claim does not hold.
    """

    exit_code = 2
    #: The part of a plan that the error concerns, such as "roles", and the number of the step.
    plan_part: tuple[str, int] | None = None


class InputError(ShoalError, ValueError):
    """The data or the arguments cannot be used as they are."""


class DoesNotApply(InputError):
    """A measure needs something that these tables do not have; another measure fits them."""


class ReadError(InputError):
    """A source of data cannot be read."""


class OptionError(ReadError):
    """An option of reading is wrong or does not apply; the names in quotes are options."""


class RolesError(InputError):
    """The roles do not fit the columns of the table."""


class ParameterError(InputError):
    """A parameter of a method or model is outside its declared range."""


class PlanError(InputError):
    """A plan cannot be understood."""


class UnknownName(InputError, KeyError):
    """A table has no such column, or an assessment no such measure."""

    __str__ = Exception.__str__  # KeyError would put the sentence in quotes


class UnknownAttribute(ShoalError, AttributeError):
    """An object has no such attribute; the text names the one to use."""


class CallError(ParameterError, TypeError):
    """A class or a function was called with arguments that it does not accept."""


class ReleaseError(ShoalError):
    """A release folder is missing or damaged, or already exists."""


class UnreachableLevel(InputError):
    """No masking of this table could satisfy the requirement; the text says what is possible."""

    exit_code = 1


class RequirementNotMet(ShoalError):
    """The masked table does not satisfy what the plan requires; nothing was released.

    ``facts`` are for programs: what was required and measured, what each step did, and changes of
    the plan that were tried and work, if these are known.
    """

    exit_code = 1

    def __init__(self, message: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.facts = dict(facts or {})


class VerificationFailed(ShoalError):
    """A release does not hold what it claims."""

    exit_code = 1


class MissingExtra(ShoalError, ImportError):
    """An optional dependency is needed but not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional dependency that is not installed. {how_to_install(extra)}"
        )


def how_to_install(extra: str) -> str:
    """What installs an extra.

    If Shoal did not come from a package index, its name may be somebody else's package there.
    """
    from importlib import metadata

    try:
        named = metadata.distribution("shoal").read_text("direct_url.json") is None
    except metadata.PackageNotFoundError:
        named = False
    if named:
        return f'Install it with: pip install "shoal[{extra}]"'
    return f'Install it from the folder of Shoal\'s source: pip install ".[{extra}]"'


class ShoalWarning(UserWarning):
    """Base of every warning of Shoal."""


class RenamedWarning(ShoalWarning, FutureWarning):
    """A parameter has a new name; the old one works for one more version."""


class NothingLeftWarning(ShoalWarning):
    """A step had to remove all the information in its columns."""


class NotProvedWarning(ShoalWarning):
    """A search ended before it could prove that its result is the best."""


class ModelMissedWarning(ShoalWarning):
    """A step kept to a model, but what it releases does not satisfy the model."""


class SeedWarning(ShoalWarning):
    """A seed was used: anyone who learns it can undo the randomness of the release."""


class UnprotectedColumnWarning(ShoalWarning):
    """A column reaches the release unchanged."""


class CodesWarning(ShoalWarning):
    """Numbers may be codes that lost their leading zeros."""


class SourceWarning(ShoalWarning):
    """A source differs from the one for which the plan was made."""


class DialectWarning(ShoalWarning):
    """A release is written in another format or dialect than its source."""


class DisclosureWarning(ShoalWarning):
    """An attack that the claim does not cover was tried and succeeded."""


def quoted(names: Iterable[object], limit: int = 12) -> str:
    """Column names for a message: quoted, separated by commas, shortened after ``limit``."""
    listed = [f"'{name}'" for name in names]
    shown = ", ".join(listed[:limit]) or "none"
    return shown if len(listed) <= limit else f"{shown} and {len(listed) - limit} more"


def columns_that(names: Iterable[object], one: str, several: str) -> str:
    """A sentence about one column, or about several.

    Examples
    --------
    >>> columns_that(["age", "zip"], "was removed", "were removed")
    "The columns 'age', 'zip' were removed"
    """
    listed = list(names)
    if len(listed) == 1:
        return f"The column {quoted(listed)} {one}"
    return f"The columns {quoted(listed)} {several}"


@contextmanager
def about(what: str) -> Iterator[None]:
    """Prefix every error inside with what it concerns, unless it already names that."""
    try:
        yield
    except ShoalError as cause:
        if what.split("'")[1] not in str(cause).split("'")[1::2]:
            cause.args = (f"{what}: {cause}", *cause.args[1:])
        raise


#: At most this many names are listed: a message stays readable.
_MOST_KNOWN = 16


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """A hint with the nearest known name, or with all of them if none is near."""
    names = list(known)
    if (name := getattr(given, "__name__", None)) in names:  # a function, or a class
        return f"Write its name as text: '{name}'."
    near = nearest_name(given, names)
    if near is not None:
        return f"Did you mean '{near}'?"
    if not names:
        return "There are none."
    one = "Use" if len(names) == 1 else "Use one of"
    return f"{one} {quoted(names, limit=_MOST_KNOWN)}."


def nearest_name(given: object, names: Sequence[str]) -> str | None:
    """The name that was probably meant by an unknown one: another word, a beginning, a typo."""
    wanted = str(given)
    synonyms = [name for name in _OTHER_WORDS.get(wanted.lower(), ()) if name in names]
    longer = [name for name in names if len(wanted) > 2 and name.startswith(wanted)]
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    return next(iter((*synonyms, *near, *longer[:1])), None)


#: Words of other libraries, and Shoal's names for them, used where these exist.
_OTHER_WORDS = {
    **dict.fromkeys(["qi", "qid", "qids", "qis", "quasi"], ("quasi_identifiers",)),
    **dict.fromkeys(["id", "ids", "direct", "direct_identifiers"], ("identifiers",)),
    **dict.fromkeys(["sa", "secret", "confidential"], ("sensitive",)),
    **dict.fromkeys(["ignore", "exclude", "remove", "removed", "dropped"], ("drop",)),
    **dict.fromkeys(["hash", "pseudonym", "pseudonymise", "tokenize"], ("pseudonymize",)),
    **dict.fromkeys(["date_shift", "shift", "jitter"], ("shift_dates",)),
    **dict.fromkeys(["person", "person_id", "entity", "patient"], ("unit",)),
    **dict.fromkeys(["seed", "rng", "random_seed"], ("random_state",)),
    **dict.fromkeys(["eps", "budget"], ("epsilon",)),
    **dict.fromkeys(["cols", "column", "features", "attributes"], ("columns",)),
    **dict.fromkeys(["hierarchy", "generalization"], ("hierarchies",)),
    **dict.fromkeys(["requirements", "requires", "privacy_models"], ("require", "models")),
    **dict.fromkeys(["n", "k_anonymity", "min_k", "size"], ("k",)),
    **dict.fromkeys(["n_jobs", "workers"], ("jobs",)),
    **dict.fromkeys(["overwrite", "exist_ok"], ("force",)),
    **dict.fromkeys(["fmt", "type", "file_format"], ("format",)),
    **dict.fromkeys(["sep"], ("delimiter", "separator")),
    **dict.fromkeys(["max", "limit", "below", "less_than"], ("at_most",)),
    **dict.fromkeys(["min", "above", "more_than"], ("at_least",)),
    **dict.fromkeys(["steps_", "methods", "maskers"], ("steps",)),
    **dict.fromkeys(["mask", "anonymize", "anonymise", "apply"], ("fit_transform", "protect")),
}
