"""A swapped table in words fit for a public page: what protects it, how well, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.workflow.release._crowds import share_step
from shoal.workflow.report import _words

if TYPE_CHECKING:
    from shoal.workflow._protect import Release


@dataclass(frozen=True)
class SwapWords:
    """What a page says of a swap; ``measured`` is None where the table is too small to tell."""

    k: int
    columns: tuple[str, ...]
    informed: bool
    measured: str | None
    interval: str
    leaks: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def hidden(self) -> str:
        """What the headline says: the bound, and where it comes from."""
        chance = f"at most 1{_words.SPACE}in{_words.SPACE}{self.k:,}"
        by = f"(k{_words.SPACE}={_words.SPACE}{self.k:,}, by swapping)"
        if self.informed:
            return f"a sensitive value is that of its record with a chance of {chance} {by}"
        return f"a link by the quasi-identifiers is right with a chance of {chance} {by}"

    @property
    def what(self) -> str:
        """What was measured, as the title of a number."""
        if self.informed:
            return "sensitive values still at their own record"
        return "links that were right when tried"


def swap_words(release: Release, facts: Mapping[str, Any]) -> SwapWords | None:
    """What a page says of the swap that protects a release; None where none does."""
    swapping, public = release.after.swapping, facts["swapping"]
    if swapping is None or public is None:
        return None
    leaks = []
    for leak, told in zip(swapping.leaks, public["leaks"], strict=True):
        many = len(leak.columns) > 1
        size = _share(told, int(leak.found.details["persons"]))
        # a column's name may hold anything, so that names are listed apart
        sentence = leak.sentence(size=size, named=f"th{'ese columns' if many else 'is column'}")
        leaks.append((f"{sentence[0].upper()}{sentence[1:]}:", leak.columns))
    return SwapWords(
        swapping.k,
        swapping.columns,
        swapping.informed,
        _measured(public["linkage"]),
        _interval(public["linkage"]),
        tuple(leaks),
    )


def _measured(told: Mapping[str, Any]) -> str | None:
    return None if told["percent"] is None else _words.percent(told["percent"])


def _interval(told: Mapping[str, Any]) -> str:
    """Where the chance lies, for the small print beside the number."""
    if told["percent"] is None:
        return ""
    low, high = told["interval"]
    return f"; with 95{_words.SPACE}% confidence {low} to {high}{_words.SPACE}%"


def _share(told: Mapping[str, Any], people: int) -> str:
    """A share as the public may know it; 'some' where a share would tell of a handful."""
    if told["percent"] is None:
        return "some"
    if told["percent"] == 0:
        return f"fewer than {share_step(people)}{_words.SPACE}%"
    return f"about {_words.percent(told['percent'])}"
