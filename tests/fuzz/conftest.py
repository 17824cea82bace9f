"""The fuzzers run kernels as users do: small work is left to Python."""

from __future__ import annotations

import pytest

from shoal.kernels import compile as compiling

AS_USERS_HAVE_IT = compiling.small_work


@pytest.fixture(autouse=True)
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "small_work", AS_USERS_HAVE_IT)
