"""What a verification found: one check after the other, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from shoal.errors import ShoalError, VerificationFailed

Status = Literal["passed", "failed", "skipped"]
CLAIM = "claim "
AUTHENTICITY = "audit belongs to this release"


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    status: Status
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks of a release."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not any(check.status == "failed" for check in self.checks)

    @property
    def claims(self) -> tuple[Check, ...]:
        """The checks of claims, also of those that could not be checked."""
        return tuple(check for check in self.checks if check.name.startswith(CLAIM))

    @property
    def authenticity(self) -> Status:
        """Whether release.json is the one that was written; only the private half can tell."""
        found = (check.status for check in self.checks if check.name == AUTHENTICITY)
        return next(found, "skipped")

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
            "checks": [vars(check) for check in self.checks],
        }

    def __str__(self) -> str:
        marks = {"passed": "ok  ", "failed": "FAIL", "skipped": "--  "}
        return "\n".join(f"{marks[c.status]} {c.name}: {c.detail}" for c in self.checks)


class Checks(list[Check]):
    """Collects checks; an error inside one of them is a failure of that check, not of the run."""

    def run(self, name: str, check: Callable[[], tuple[bool | None, str]]) -> None:
        try:
            good, detail = check()
        except Exception as cause:  # damaged files raise whatever their readers raise
            detail = str(cause) if isinstance(cause, ShoalError) else "cannot be checked: malformed"
            good = False
        status: Status = "skipped" if good is None else ("passed" if good else "failed")
        self.append(Check(clean(name), status, clean(detail, longest=200)))


def clean(text: object, *, longest: int = 60) -> str:
    """Text of somebody else's file that cannot steer a terminal, add lines, or flood them."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in str(text)[: longest + 1]
    )
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."
