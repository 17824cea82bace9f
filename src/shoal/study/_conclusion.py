"""The conclusion of a study: published next to measured, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.notebook import Html, listing, picture, view
from shoal.study.figures import Figure
from shoal.study.figures._style import finite, write_rows


@dataclass(frozen=True)
class Finding:
    """One published number, next to the measured one.

    Parameters
    ----------
    name : str
        What the number is.
    published : float or str, optional
        The printed number; None if a claim has no number.
    measured : float
        The number that this run found; NaN if it was not measured.
    tolerance : float
        How far apart the two may be: a share of the published number, or, if ``absolute``, a
        difference.
    absolute : bool
        Whether the tolerance is a difference instead of a share.

    Examples
    --------
    >>> Finding("mean", 0.055, 0.0556, 0.07).within_tolerance
    True
    """

    name: str
    published: float | None
    measured: float
    tolerance: float
    absolute: bool = False

    @property
    def within_tolerance(self) -> bool | None:
        """Whether they agree; None if one of the two is missing."""
        if self.published is None or math.isnan(self.measured):
            return None
        room = self.tolerance if self.absolute else self.tolerance * abs(self.published)
        return bool(abs(self.measured - self.published) <= room + 1e-12)

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "name": self.name,
            "published": self.published,
            "measured": finite(self.measured),
            "tolerance": self.tolerance,
            "tolerance_is": "absolute" if self.absolute else "relative",
            "within_tolerance": self.within_tolerance,
        }


@dataclass(frozen=True)
class Claim:
    """A claim in words, whether it holds here, the evidence, and a remark."""

    text: str
    holds: bool | None
    evidence: str
    remark: str = ""

    def under_preset(self, preset: str, with_full: bool | None) -> Claim:
        """The claim with the preset that judged it, and the verdict of the paper's whole grid.

        Examples
        --------
        >>> Claim("Fish swim.", True, "three did").under_preset("quick", False).remark
        'with the preset quick; with the preset full it does not hold'
        """
        if preset == "full" or self.holds is None:
            return self
        remark = f"with the preset {preset}"
        if with_full is not None:
            other = "it holds" if with_full else "it does not hold"
            same = with_full == self.holds
            remark += " and full" if same else f"; with the preset full {other}"
        return replace(self, remark=remark)

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        facts = {"claim": self.text, "holds": self.holds, "evidence": self.evidence}
        return {**facts, "remark": self.remark}


@dataclass(frozen=True)
class Statistic:
    """A test or summary over the tables of a study: a sentence, and its numbers row by row."""

    name: str
    sentence: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "columns": list(self.columns),
            "rows": finite(self.rows),
        }

    def save(self, folder: Path) -> None:
        """Write the rows as CSV."""
        folder.mkdir(parents=True, exist_ok=True)
        write_rows(folder / f"{self.name}.csv", self.columns, self.rows)


@dataclass(frozen=True)
class Conclusion:
    """The verdict of a study, with its figures.

    ``terms`` spells out the short names of its variants. ``relation`` explains how the numbers of
    the verdict follow from those of the results.
    """

    findings: Sequence[Finding] = ()
    claims: Sequence[Claim] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    notes: Sequence[str] = ()
    statistics: Sequence[Statistic] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    relation: str = ""

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        met = [f.within_tolerance for f in self.findings if f.within_tolerance is not None]
        parts = []
        if met:
            parts.append(f"{sum(met)} of {len(met)} published numbers are within tolerance")
        if len(met) < len(self.findings):
            parts.append(f"{len(self.findings) - len(met)} were not measured")
        held = [claim.holds for claim in self.claims if claim.holds is not None]
        if held:
            parts.append(f"{sum(held)} of {len(held)} claims that could be judged hold here")
        if not parts:
            return "There is nothing published to compare with."
        sentence = "; ".join(parts) + "."
        return sentence[0].upper() + sentence[1:]

    @property
    def views(self) -> list[Html]:
        """For a notebook: the numbers and the claims as tables, and the figures."""
        numbers = [
            (f.name, f.published, measured, f.within_tolerance)
            for f in self.findings
            for measured in [None if math.isnan(f.measured) else f.measured]
        ]
        claims = [(claim.text, claim.holds, claim.evidence, claim.remark) for claim in self.claims]
        parts = []
        if numbers:
            parts.append(listing(("number", "published", "measured", "within tolerance"), numbers))
        if claims:
            head = ("claim", "holds", "evidence", "remark")
            width = 4 if any(claim.remark for claim in self.claims) else 3
            rows = (row[:width] for row in claims)
            parts.append(listing(head[:width], rows, of="claims"))
        if self.terms:
            parts.append(listing(("short name", "what it is"), self.terms.items(), of="names"))
        return parts + [picture(figure.to_svg(), name) for name, figure in self.figures.items()]

    def _repr_html_(self) -> str:
        return view(self.sentence, *self.views, *self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain facts for JSON."""
        return {
            "verdict": [finding.to_dict() for finding in self.findings],
            "claims": [claim.to_dict() for claim in self.claims],
            "sentence": self.sentence,
            "statistics": [statistic.to_dict() for statistic in self.statistics],
            "figures": list(self.figures),
            "notes": list(self.notes),
            "terms": dict(self.terms),
            "relation": self.relation,
        }
