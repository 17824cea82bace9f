"""A test run for every masking method."""

from __future__ import annotations

import pytest

from .registry import (
    KNOWN_METHODS,
    MASKERS,
)

each_example = pytest.mark.parametrize("example", MASKERS, ids=lambda example: example.id)


each_of_columns = pytest.mark.parametrize(
    "example", [e for e in MASKERS if not e.over_records], ids=lambda example: example.id
)


each_class = pytest.mark.parametrize("cls", KNOWN_METHODS.values(), ids=lambda cls: cls.__name__)


each_random = pytest.mark.parametrize(
    "example",
    [e for e in MASKERS if KNOWN_METHODS[e.method].is_random],
    ids=lambda example: example.id,
)
