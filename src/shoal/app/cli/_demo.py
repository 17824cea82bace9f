"""``shoal demo``: the whole job on a small shipped table."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.app.cli._options import AsJson, Force, command
from shoal.app.cli._protect import check_place, release_facts, show_before_and_after
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working

if TYPE_CHECKING:
    from shoal.workflow import Release, StepRecord


@command("""
shoal demo
shoal demo --out my-first-release
shoal demo --force
""")
def demo(
    out: Path = Path("demo-release"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Do the whole job on a small shipped table: it ends with a release and its report.

    The people in the table are invented. The demo reads them, declares who is who, measures how
    exposed they are, masks them by a plan, verifies the result and writes the release.

    Options
    -------
    out DIR: The folder of the release to make.
    """
    from shoal import read
    from shoal.app.demo import PEOPLE, PLAN
    from shoal.workflow import Plan, assess, protect, verify

    out = Path(os.path.abspath(out))
    check_place(out, force=force)
    plan = Plan.load(PLAN)
    step = _silent if as_json else _step
    if not as_json:
        ui.heading("The whole job on a small table of invented people")
    with Working("Reading the data"):
        people = read(PEOPLE, roles=plan.roles)
    roles, columns = people.roles, ui.count(len(people.columns), "column")
    step("1. Read the table", f"{PEOPLE.name}: {ui.count(len(people), 'record')}, {columns}")
    step(
        "2. Declare who is who",
        f"identifiers (taken out):          {ui.listed(roles.identifiers)}",
        f"quasi-identifiers (to be masked): {ui.listed(roles.quasi_identifiers)}",
        f"sensitive (nobody should learn):  {ui.listed(roles.sensitive)}",
    )
    with Working("Measuring") as working:
        classes = assess(people, progress=working).classes
    step(
        "3. Measure how exposed they are",
        f"k = {classes.k}: {classes.uniques:,} of {ui.count(len(people), 'record')} "
        f"({ui.percent(classes.uniques / len(people))}) are alone with their quasi-identifiers.",
    )
    with Working("Masking") as working:
        release = protect(people, plan, progress=working)
        release.save(out, format="csv", force=force, source=PEOPLE, progress=working)
        found = verify(out, original=people)
    project = _project(out.parent)
    if as_json:
        facts = {"verified": found.holds, "project": project}
        ui.print_json({**release_facts(release, out), **facts})
        return
    step(f"4. Mask by the plan {ui.printable(PLAN.name)}", *map(_done_by, release.steps))
    step(
        "5. Check what the plan requires, by code that did not mask",
        *(
            f"{claim.key} = {claim.requirement.threshold:g}: measured {claim.measured:g}, "
            + ("it holds" if claim.holds else "it does not hold")
            for claim in release.claims
        ),
    )
    passed = ui.count(sum(check.status == "passed" for check in found.checks), "check")
    skipped = [check.name for check in found.checks if check.status == "skipped"]
    told = f"{passed} passed" + (f"; left out: {ui.listed(skipped)}" if skipped else "")
    step("6. Write the release, and verify it from its files", told)
    show_before_and_after(release.before, release.after, show_all=False)
    _conclude(release, out, project)


def _project(place: Path) -> Path:
    """A project of the studio with the demo's table, and all of the way to go; or as it is."""
    from shoal.app.demo import PEOPLE

    folder = place / "demo-studio"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        shutil.copyfile(PEOPLE, folder / PEOPLE.name)
        (folder / "studio.toml").write_text(f'[source]\npath = "{PEOPLE.name}"\n', encoding="utf-8")
    return folder


def _step(title: str, *lines: str) -> None:
    from rich.padding import Padding

    ui.heading(title)
    for line in lines:
        ui.show(Padding(line, (0, 0, 0, 3)))


def _silent(title: str, *lines: str) -> None:
    """For JSON and nothing else."""


def _done_by(step: StepRecord) -> str:
    given = (f"{name} = {value}" for name, value in step.parameters.items() if name != "columns")
    done = ui.listed(step.touched) if step.touched else "no column"
    if step.removed_columns:
        done += " (taken out)"
    if step.removed:
        done = f"{ui.count(step.removed, 'record')} taken out"
    return f"{step.method} ({', '.join(given)}): {done}"


def _conclude(release: Release, out: Path, project: Path) -> None:
    before, after = release.before, release.after
    risks = [m["marketer_risk"].value for m in (before, after)]
    ui.heading("What it says")
    ui.say(
        f"Of {release.rows_before:,} records {len(release.masked):,} are released. The smallest "
        f"crowd grew from {before.k} to {after.k}. Whoever tries to find everybody in the table "
        f"would be right about {ui.percent(risks[0])} of the records before, and "
        f"{ui.percent(risks[1])} now. "
        + " ".join(
            f"The requirement {c.key} = {c.requirement.threshold:g} is met." for c in release.claims
        )
    )
    ui.heading("Where it is")
    for what, place in (
        ("release", out),
        ("to give away", out / "public"),
        ("to keep", out / "private"),
        ("report", out / "public" / "report.html"),
    ):
        ui.console().print(f"  {what:<14}{ui.printable(place)}", soft_wrap=True)
    ui.heading("Next: try it yourself, in the browser")
    ui.command_line("shoal studio", shlex.quote(os.path.relpath(project)))
    ui.heading("Then the same on your own table")
    ui.command_line("shoal init YOUR-DATA")
    ui.command_line("shoal verify", shlex.quote(str(out)))
