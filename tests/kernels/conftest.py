"""Kernels are tested compiled; what Python runs itself for small tables, in both ways."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from shoal.kernels import compile as compiling

BOTH = {
    "test_grouping",
    "test_minimal_uniques",
    "test_mixed_linkage",
    "test_mondrian_boxes",
    "test_shuffling",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    ways = ["compiled"]
    if metafunc.module.__name__.rpartition(".")[2] in BOTH:
        ways.append("python")
    metafunc.parametrize("way", ways, indirect=True, scope="module", ids=ways)


@pytest.fixture(scope="module", autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "small_work", 0 if request.param == "compiled" else math.inf)
        yield request.param
