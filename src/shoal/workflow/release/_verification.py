"""The result of a verification: all checks, and what follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from shoal.errors import ShoalError, VerificationFailed
from shoal.hints import Helpful, instead
from shoal.notebook import listing, printable, view

Status = Literal["passed", "failed", "skipped"]
CLAIM = "claim "
AUTHENTICITY = "audit belongs to this release"
SIGNATURE = "signature"

T = TypeVar("T")
#: Whether a check passed (None: it could not be made), and what there is to say.
Outcome = tuple[bool | None, str]


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    status: Status
    detail: str


@dataclass(frozen=True, repr=False)
class Verification(Helpful):
    """All checks of a release.

    ``signed_by`` is the fingerprint of the key that signed it. It proves who released it only if
    the check of the signature passed, which needs a signer to compare with.
    """

    _instead = instead({"verification.holds": "ok passed valid success verified is_valid"})

    checks: tuple[Check, ...]
    signed_by: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not any(check.status == "failed" for check in self.checks)

    @property
    def claims(self) -> tuple[Check, ...]:
        """The checks of claims, including those that were skipped."""
        return tuple(check for check in self.checks if check.name.startswith(CLAIM))

    @property
    def authenticity(self) -> Status:
        """Whether release.json is the one that was written; only the private half shows it."""
        return self._status_of(AUTHENTICITY) or "skipped"

    @property
    def signature(self) -> Status | None:
        """Whether the named signer has signed; None if the release is not signed and none named."""
        return self._status_of(SIGNATURE)

    def _status_of(self, name: str) -> Status | None:
        return next((check.status for check in self.checks if check.name == name), None)

    def raise_if_failed(self) -> None:
        """Raise VerificationFailed with the first reasons."""
        failed = [f"{c.name}: {c.detail}" for c in self.checks if c.status == "failed"]
        if failed:
            raise VerificationFailed(f"The release does not verify; {'; '.join(failed)}.")

    def to_dict(self) -> dict[str, Any]:
        """The checks as plain data."""
        skipped = sum(check.status == "skipped" for check in self.claims)
        return {
            "holds": self.holds,
            "claims_checked": len(self.claims) - skipped,
            "claims_skipped": skipped,
            "authenticity": self.authenticity,
            "signature": self.signature,
            "signed_by": self.signed_by,
            "checks": [vars(check) for check in self.checks],
        }

    def __repr__(self) -> str:
        counts = Counter(check.status for check in self.checks)
        summary = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"Verification: {'holds' if self.holds else 'does not hold'}; {summary}"

    def _repr_html_(self) -> str:
        rows = ((check.status, check.name, check.detail) for check in self.checks)
        return view(repr(self), listing(("status", "check", "detail"), rows, of="checks"))

    def __str__(self) -> str:
        marks = {"passed": "ok  ", "failed": "FAIL", "skipped": "--  "}
        return "\n".join(f"{marks[c.status]} {c.name}: {c.detail}" for c in self.checks)


class Checks(list[Check]):
    """Collects checks; an error inside one of them is a failure of that check, not of the run."""

    def run(self, name: str, check: Callable[[], tuple[bool | None, str]]) -> bool:
        """Record the outcome of a check (passed, failed or, for None, skipped); True if passed."""
        outcome = self.read(name, check)
        if outcome is not None:
            good, detail = outcome
            self._note(
                name, "skipped" if good is None else ("passed" if good else "failed"), detail
            )
        return outcome is not None and bool(outcome[0])

    def read(self, name: str, reader: Callable[[], T], *, passed: str | None = None) -> T | None:
        """The result of the reader; if it raises, None, and the check of this name fails."""
        try:
            found = reader()
        except BaseException as cause:  # damaged files raise whatever their readers raise
            if isinstance(cause, (KeyboardInterrupt, SystemExit, GeneratorExit)):
                raise
            self._note(name, "failed", _worded(cause))
            return None
        if passed is not None:
            self._note(name, "passed", passed)
        return found

    def _note(self, name: str, status: Status, detail: str) -> None:
        self.append(Check(clean(name), status, clean(detail, longest=200)))


def _worded(cause: BaseException) -> str:
    if isinstance(cause, ShoalError):
        return str(cause).rstrip(".")
    if isinstance(cause, MemoryError):
        return "cannot be checked: there is not enough memory"
    return "cannot be checked: malformed"


def clean(text: object, *, longest: int = 60) -> str:
    """Text from someone else's file, made unable to steer a terminal, add lines or flood it."""
    shown = printable(str(text)[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."
