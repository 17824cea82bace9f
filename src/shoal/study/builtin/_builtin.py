"""What a built-in study is: a published experiment with its design and what it is held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shoal.study._conclusion import Conclusion
from shoal.study._design import Study
from shoal.study._results import Results

PRESETS = ("quick", "full")


@dataclass(frozen=True)
class BuiltIn:
    """A published experiment that anyone can run again.

    ``design`` gives the study of a preset: ``quick`` takes minutes on two cores, ``full`` is the
    paper's grid. ``conclude`` holds the results against what was published. Where later variants
    hang on earlier results there are ``stages``: each gives the study anew, with what was run
    before and what follows from its results.
    """

    name: str
    title: str
    reference: str
    design: Callable[[str], Study]
    conclude: Callable[[Results], Conclusion]
    stages: tuple[Callable[[Study, Results], Study], ...] = ()
