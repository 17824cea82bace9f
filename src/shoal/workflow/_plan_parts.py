"""Parts of a plan that are neither roles nor steps nor requirements: [engine] and [release]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Self

from shoal.errors import PlanError, did_you_mean, quoted

#: The files that describe the released columns for other programs.
METADATA: Final = ("frictionless", "csvw", "ddi")
#: The private pages that a reviewer asks for.
PAGE_FILES: Final = {
    "criteria": "criteria.html",
    "safe_harbor": "safe-harbor.html",
    "decisions": "decisions.html",
    "choice_of_k": "choice-of-k.html",
}
_LONGEST: Final = 2_000


@dataclass(frozen=True)
class PlanPart:
    """A table of a plan whose entries are texts, unless a subclass reads them itself."""

    part: ClassVar[str] = ""

    @classmethod
    def from_dict(cls, given: Any) -> Self:
        """From a plan; unknown entries are refused."""
        if not isinstance(given, Mapping):
            raise PlanError(f"'{cls.part}' must be a table: write it under [{cls.part}].")
        names = [one.name for one in fields(cls)]
        for name in given:
            if name not in names:
                known = did_you_mean(str(name), names)
                raise PlanError(f"[{cls.part}] has no entry '{name}'. {known}")
        return cls(**given)

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.default is None and getattr(self, one.name) is not None:
                self._check_text(one.name, getattr(self, one.name))

    def _check_text(self, name: str, value: Any) -> None:
        if not isinstance(value, str):
            raise PlanError(
                f"'{name}' under [{self.part}] must be a text; got {type(value).__name__}."
            )
        if not value.strip() or len(value) > _LONGEST:
            raise PlanError(
                f"'{name}' under [{self.part}] must have 1 to {_LONGEST:,} characters; got "
                f"{len(value.strip()):,}."
            )

    def to_dict(self) -> dict[str, Any]:
        """The entries that are set, as in a plan."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {name: dict(v) if isinstance(v, Mapping) else v for name, v in given.items() if v}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}


@dataclass(frozen=True)
class EngineSettings(PlanPart):
    """How an engine runs a plan on a table that does not fit into memory: ``[engine]`` in a plan.

    Parameters
    ----------
    memory_limit : str, optional
        The memory that a run on DuckDB may use, such as ``"2GB"``. DuckDB gets a quarter of it and
        spills the rest to disk.
    temporary : str, optional
        The folder for spilled data; on a cluster, a folder that all workers can reach.
    master : str, optional
        The Spark cluster, such as ``"spark://host:7077"``.
    """

    part: ClassVar[str] = "engine"

    memory_limit: str | None = None
    temporary: str | None = None
    master: str | None = None


@dataclass(frozen=True)
class AboutRelease(PlanPart):
    """What a release is, for whom and why: ``[release]`` in a plan.

    Nothing here has a default: what nobody wrote is reported as not written. The first six texts
    are published with the release. ``context``, ``means`` and ``reasons`` stay in the private half.

    Parameters
    ----------
    title, publisher, contact : str, optional
        The name of the release, who is responsible for it, and who answers questions.
    recipient : str, optional
        Who gets it: the public, or a named person or group.
    purpose, licence : str, optional
        What it may be used for, and the terms of use.
    context : str, optional
        What binds and limits the recipient, such as a contract or a safe room.
    means : str, optional
        What someone might use to recognize people: other data, time, money, knowledge.
    reasons : mapping of str, optional
        Why each column has its role.
    metadata : str or list of str
        The metadata files to write next to the data: frictionless, csvw or ddi.
    pages : str or list of str
        The pages to write into the private half: criteria, safe_harbor, decisions or choice_of_k.

    Examples
    --------
    >>> AboutRelease(title="Visits 2025", metadata="frictionless").metadata
    ('frictionless',)
    """

    part: ClassVar[str] = "release"

    title: str | None = None
    publisher: str | None = None
    contact: str | None = None
    recipient: str | None = None
    purpose: str | None = None
    licence: str | None = None
    context: str | None = None
    means: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    metadata: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.reasons, Mapping):
            raise PlanError("'reasons' under [release] must be a table of columns and texts.")
        for name, text in self.reasons.items():
            self._check_text(f"reasons.{name}", text)
        for name, known in (("metadata", METADATA), ("pages", tuple(PAGE_FILES))):
            given = getattr(self, name)
            listed = [given] if isinstance(given, str) else given
            if not isinstance(listed, (list, tuple)):
                listed = [listed]
            odd = next((one for one in listed if one not in known), None)
            if odd is not None:
                raise PlanError(
                    f"'{name}' under [release] may list {quoted(known)}; got {odd!r}. "
                    f"{did_you_mean(str(odd), known)}"
                )
            object.__setattr__(self, name, tuple(dict.fromkeys(listed)))

    @property
    def public(self) -> dict[str, str]:
        """The texts that the release itself says."""
        return {n: text for n in public_texts() if (text := getattr(self, n)) is not None}


#: The texts of ``[release]``, each with a hint; those that are not published come second.
_PUBLIC_TEXTS: Final = {
    "title": "The name of this release",
    "publisher": "Who is responsible for it",
    "contact": "Who answers questions and takes reports of mistakes",
    "recipient": "Who gets it: the public, or a named person or group",
    "purpose": "What it may be used for",
    "licence": "The terms of use, such as CC-BY-4.0",
}
_PRIVATE_TEXTS: Final = {
    "context": "What binds and limits the recipient, such as a contract or a safe room",
    "means": "What someone might use to recognize people: other data, time, knowledge",
}


def release_texts() -> dict[str, tuple[str, str, bool]]:
    """The texts of ``[release]``: a label, a hint, and whether the text is published."""
    labels = {"licence": "License"}  # the key has the spelling of standards
    return {
        name: (labels.get(name, name.capitalize()), hint, name in _PUBLIC_TEXTS)
        for name, hint in {**_PUBLIC_TEXTS, **_PRIVATE_TEXTS}.items()
    }


def public_texts() -> tuple[str, ...]:
    """The names of the texts that are published."""
    return tuple(_PUBLIC_TEXTS)
