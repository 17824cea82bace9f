"""Released texts that are intervals of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: The value that says nothing.
TOP = "*"

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_INTERVAL = re.compile(rf"[\[(]\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*[\])]")
_FROM_TO = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.)\s*({_NUMBER})")
_BELOW = re.compile(rf"(?:<=?|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(?:>=?|≥)\s*({_NUMBER})")
_SINGLE = re.compile(_NUMBER)


def ends_of_labels(texts: Sequence[str]) -> npt.NDArray[np.float64] | None:
    """The lowest and highest number of each text, or None where one is no number or interval.

    An open end is infinite. The root, which says nothing, has NaN.

    Examples
    --------
    >>> ends_of_labels(["[20, 30)", "<18", "65-69", "*"]).tolist()
    [[20.0, 30.0], [-inf, 18.0], [65.0, 69.0], [nan, nan]]
    >>> ends_of_labels(["[20, 30)", "Europe"]) is None
    True
    """
    ends = np.full((len(texts), 2), np.nan)
    for place, text in enumerate(texts):
        if text == TOP:
            continue
        found = _ends(text.strip())
        if found is None or found[0] > found[1]:
            return None
        ends[place] = found
    return ends


def _ends(text: str) -> tuple[float, float] | None:
    if _SINGLE.fullmatch(text):
        return float(text), float(text)
    for form in (_INTERVAL, _FROM_TO):
        if both := form.fullmatch(text):
            return float(both[1]), float(both[2])
    if below := _BELOW.fullmatch(text):
        return -np.inf, float(below[1])
    if above := _ABOVE.fullmatch(text):
        return float(above[1]), np.inf
    return None
