"""What the tests of models share."""

from __future__ import annotations

import pytest

from .persons import Spy


@pytest.fixture
def spy():
    Spy.shown.clear()
    Spy.weights.clear()
    return Spy()
