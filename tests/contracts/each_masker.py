"""Every masking method, as tests are run for it."""

from __future__ import annotations

import pytest

from shoal.masking import discover_maskers

from .registry import (
    MASKERS,
)

each_example = pytest.mark.parametrize("example", MASKERS, ids=lambda example: example.id)


each_of_columns = pytest.mark.parametrize(
    "example", [e for e in MASKERS if not e.over_records], ids=lambda example: example.id
)


each_class = pytest.mark.parametrize(
    "cls", discover_maskers().values(), ids=lambda cls: cls.__name__
)


each_random = pytest.mark.parametrize(
    "example",
    [e for e in MASKERS if discover_maskers()[e.method].is_random],
    ids=lambda example: example.id,
)
