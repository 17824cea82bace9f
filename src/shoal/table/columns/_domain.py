"""What the texts of a released column stand for: themselves, a number, an interval, a set.

Whoever writes such texts says what they stand for here; those that come from a file or a frame are
read (:mod:`shoal.table.released._released_texts`), once. Both must say the same of each text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.table.columns._quantities import NUMBERS
from shoal.table.hierarchy._rule import ROOT

Floats = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """The ends of an interval as they are written, whether they are outside of it, and as numbers.

    None is an open end, which is infinite as a number; an end that is no number has None there.
    """

    low: str | None
    high: str | None
    above_low: bool = False
    below_high: bool = False
    ends: tuple[float | None, float | None] = (None, None)


class Members(NamedTuple):
    """The parts of a set as they are written."""

    parts: tuple[str, ...]


#: A number, an interval or a set; None for a text that is itself, or for ``*``.
Meaning = float | Interval | Members | None


@dataclass(frozen=True)
class Domain:
    """What each of some texts stands for, in a column of one scale.

    Parameters
    ----------
    scale : str
        What the numbers count, by :func:`shoal.table.columns._quantities.scale_of`: the same text
        is an interval beside numbers and a name beside other texts.
    meanings : mapping
        The texts in their order; ``*`` need not be among them.

    Examples
    --------
    >>> texts, domain = Domain.of_intervals("numbers", ["20", None], ["30", "20"],
    ...                                     np.array([[20.0, 30.0], [-np.inf, 20.0]]))
    >>> texts
    ['[20, 30)', '<20']
    >>> domain.at(["<20", "*"]).ends.tolist()
    [[-inf, 20.0], [nan, nan]]
    """

    scale: str
    meanings: Mapping[str, Meaning]

    @classmethod
    def of_intervals(
        cls,
        scale: str,
        low: Sequence[str | None],
        high: Sequence[str | None],
        ends: Floats,
    ) -> tuple[list[str], Domain]:
        """The texts of intervals that are open above, with what they stand for."""
        texts, meanings = [], {}
        for first, last, numbers in zip(low, high, ends.tolist(), strict=True):
            texts.append(_written(first, last))
            meanings[texts[-1]] = Interval(first, last, False, last is not None, tuple(numbers))
        return texts, cls(scale, meanings)

    @classmethod
    def of_values(cls, scale: str, texts: Sequence[str | None]) -> Domain:
        """The texts of values, each of which stands for itself."""
        written = [text for text in texts if text is not None]
        if scale != NUMBERS:
            return cls.of_names(scale, written)
        numbers = pl.Series(written, dtype=pl.String).cast(pl.Float64)
        numbers = numbers.set(numbers.is_infinite(), None)
        return cls(scale, dict(zip(written, numbers.to_list(), strict=True)))

    @classmethod
    def of_names(cls, scale: str, texts: Iterable[str | None]) -> Domain:
        """Texts that are no numbers and no intervals; one in braces is a set for every reader."""
        from shoal.table.released._released_texts import members_of

        names = (text for text in texts if text is not None)
        return cls(scale, {one: members_of(one) if one[:1] == "{" else None for one in names})

    @classmethod
    def joined(cls, parts: Sequence[Domain]) -> Domain:
        """What the texts of all parts stand for."""
        return cls(parts[0].scale, {t: m for part in parts for t, m in part.meanings.items()})

    def at(self, texts: Sequence[str]) -> Domain | None:
        """The same for these texts, in their order; None where it lacks one."""
        known = self.meanings
        if not all(text in known or text == ROOT for text in texts):
            return None
        found = {text: None if text == ROOT else known[text] for text in texts}
        return Domain(self.scale, found)

    @cached_property
    def ends(self) -> Floats | None:
        """The lowest and highest number of each text; None where one is no number or interval.

        An open end is infinite. The root, which says nothing, has NaN.
        """
        found = np.full((len(self.meanings), 2), np.nan)
        for place, (text, meaning) in enumerate(self.meanings.items()):
            if text == ROOT:
                continue
            if isinstance(meaning, Interval):
                low, high = meaning.ends
            else:
                low = high = meaning if isinstance(meaning, float) else None
            if low is None or high is None or low > high:
                return None
            found[place] = low, high
        return found

    def stretches(self, *, whole: bool = False) -> Floats | None:
        """The stretch of the line of numbers that each text covers, up to below its end.

        Of whole numbers each covers the room up to the next one, so that equal texts of neighbours
        neither overlap nor leave a gap. None and NaN as in :attr:`ends`.
        """
        if self.ends is None or not whole:
            return self.ends
        room = [
            (one.above_low, not one.below_high) if isinstance(one, Interval) else (False, True)
            for one in self.meanings.values()
        ]
        return self.ends + np.array(room, np.float64).reshape(-1, 2)

    @property
    def numbers(self) -> Floats | None:
        """The number that each text is, NaN for the root; None where one is something else."""
        single = all(isinstance(one, float) or text == ROOT for text, one in self.meanings.items())
        return self.ends[:, 0] if single and self.ends is not None else None


def _written(low: str | None, high: str | None) -> str:
    if low is None:
        return ROOT if high is None else f"<{high}"
    return f">={low}" if high is None else f"[{low}, {high})"
