"""Nothing that is released changes unless somebody means it to.

``SHOAL_RECORD=1 pytest tests/snapshots`` records anew; the difference then shows in version
control, entry by entry.
"""

from __future__ import annotations

import pytest

from shoal import protect
from shoal.masking import discover_maskers

from .outcome import RECORDED, compare, names_on_record, of_assessment, of_release
from .runs import RUNS
from .tables import TABLES


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_release_is_as_recorded(run, fixed, record, tmp_path):
    if run.format == "xlsx":
        pytest.importorskip("xlsxwriter")
    plan, table = run.plan(), TABLES[run.table]()
    with fixed(run.name) as warned:
        release = protect(table, plan)
        folder = release.save(tmp_path / "release", format=run.format)
    compare(run.name, of_release(release, table, folder, warned), record=record)
    # whatever the plan is: one record for all runs of a table
    compare(f"before-{run.table}", of_assessment(release.before), record=record)


def test_the_runs_have_every_method_table_and_format():
    assert len({run.name for run in RUNS}) == len(RUNS) >= 60
    used = {step.method for run in RUNS for step in run.plan().steps}
    assert used == set(discover_maskers())
    assert {run.table for run in RUNS} == set(TABLES)
    assert {run.format for run in RUNS} == {"csv", "tsv", "parquet", "arrow", "xlsx"}


def test_nothing_is_on_record_that_no_run_gives():
    from .test_assessments import NAMES

    given = {run.name for run in RUNS} | {f"before-{name}" for name in TABLES} | set(NAMES)
    assert names_on_record() == given
    assert sum(path.stat().st_size for path in RECORDED.rglob("*.json")) < 600_000
