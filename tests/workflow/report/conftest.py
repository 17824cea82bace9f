"""One release and its page, for all tests of reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal import (
    KAnonymity,
    Limit,
    Plan,
    Release,
    Table,
    protect,
)
from shoal.workflow.report import release_page

from .pages import ROLES, STEPS, facts_of, people


@pytest.fixture(scope="session")
def release() -> Release:
    plan = Plan(
        STEPS,
        require=[
            KAnonymity(5),
            Limit("marketer_risk", at_most=0.2),
            Limit("suppressed_cells", at_most=0.5),
        ],
    )
    return protect(Table(people(), ROLES), plan)


@pytest.fixture
def source(release: Release, tmp_path: Path) -> str:
    return release_page(release, facts_of(release, tmp_path))
