"""Whether outcomes are compared, or recorded."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def record() -> bool:
    """Whether outcomes are put on record, by SHOAL_RECORD=1, and not compared."""
    return os.environ.get("SHOAL_RECORD", "") not in ("", "0")
