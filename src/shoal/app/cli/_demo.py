"""``shoal demo``: the whole job on a small shipped table, as an intruder and a reader see it."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.app.cli._options import AsJson, Force, command, write_whole
from shoal.app.cli._protect import release_facts
from shoal.app.cli.output import ui
from shoal.app.cli.output._progress import Working

if TYPE_CHECKING:
    from shoal.study.figures import Front
    from shoal.table import Table
    from shoal.workflow import Plan, Release, Verification

_KS: Final = (3, 5, 10, 20, 40)
_MAX_RISK: Final = 0.2
_RISK: Final = "marketer_risk"
_UTILITY: Final = "normalized_certainty_penalty"
_MARK: Final = "this one"
_OWN: Final = "ranges, 3 diagnoses (mondrian)"
_CHOSEN: Final = f"{_OWN} k=5"
_ROWS: Final = 5
_WORK: Final = {
    "care": "a nurse",
    "craft": "a carpenter",
    "office": "an office worker",
    "sales": "a shop assistant",
    "teaching": "a teacher",
    "technical": "an engineer",
    "retired": "a pensioner",
    "unemployed": "without work",
}
_KNOWN: Final = ("birth_date", "zip")


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
    """Run the whole job on a small built-in table and write a release with its report.

    The patients in the table are invented. The demo masks the table with a plan, verifies the
    result, writes the release, and shows what an intruder finds before and after.

    Options
    -------
    out DIR: The folder to create for the release.
    """
    from shoal import read
    from shoal.app.demo import PATIENTS, PLAN
    from shoal.workflow import Plan, protect, verify
    from shoal.workflow.release._folder import check_targets
    from shoal.workflow.report._render import render

    out = Path(os.path.abspath(out))
    check_targets(out, None, force=force)
    plan = Plan.load(PLAN)
    with Working("Reading the data") as working:
        people = read(PATIENTS, roles=plan.roles)
        release = protect(people, plan, progress=working)
        release.save(out, format="csv", force=force, source=PATIENTS, progress=working)
        found = verify(out, original=people)
        plans = _plans(people, plan, release, working)
        picture = out.parent / "demo-plans.html"
        page = render("plans.html.j2", front=plans, chosen=_CHOSEN)
        write_whole(picture, page)
    project = _project(out.parent)
    if as_json:
        facts = {"verified": found.holds, "project": project, "picture": picture}
        ui.print_json({**release_facts(release, out), **facts})
        return
    _show_intruder(people, release)
    _show_rows(people, release)
    _show_verdict(release, found)
    _show_others(plans)
    _show_places(out, picture, project)


def _victim(people: Table, release: Release) -> tuple[int, Any]:
    """Someone unique before and in a typical crowd after: the row, and the crowd."""
    import numpy as np

    after = release.masked.classes
    crowds = after.record_sizes[np.argsort(release.masked.row_key)]
    alone = np.flatnonzero(people.classes.record_sizes == 1)
    usual = np.argsort(np.abs(crowds[alone] - np.median(crowds)), kind="stable")
    row = int(alone[usual[0]])
    place = int(np.flatnonzero(release.masked.row_key == people.row_key[row])[0])
    return row, after.labels == after.labels[place]


def _show_intruder(people: Table, release: Release) -> None:
    row, crowd = _victim(people, release)
    ((born, sex, postcode, occupation, diagnosis),) = people.texts(
        row, 1, ["birth_date", "sex", "zip", "occupation", "diagnosis"]
    )
    match = release.masked.keep(crowd)
    who = {"F": "woman", "M": "man"}[sex or ""]
    ui.say(f"Shoal masked {len(people):,} invented patients with a plan and checked the result.")
    ui.heading("What an intruder finds")
    ui.say(f"You know a {who}, {_WORK[occupation or '']}, born {born}, from {postcode}.")
    rows = ui.count(len(match), "row")
    ui.say(f"  before   1 row fits: {diagnosis}, for certain")
    ui.say(f"  after    {rows} fit, with {ui.count(match.distinct('diagnosis'), 'diagnose')}")


def _show_rows(people: Table, release: Release) -> None:
    """What an intruder may know of five patients, before and after."""
    import numpy as np

    places = np.argsort(release.masked.row_key)[:_ROWS]
    before = people.texts(0, _ROWS, [*_KNOWN, "diagnosis"])
    after = [release.masked.texts(int(place), 1, _KNOWN)[0] for place in places]
    rows = [(*old[:-1], *new, old[-1]) for old, new in zip(before, after, strict=True)]
    ui.heading("Five patients before and after; their diagnoses stay as they are")
    ui.table(("born", "zip", "born, after", "zip, after", "diagnosis"), rows, whole=())


def _show_verdict(release: Release, found: Verification) -> None:
    after = release.after
    lost = release.rows_before - len(release.masked)
    checks = ui.count(sum(check.status == "passed" for check in found.checks), "check")
    ui.heading("What the release promises, checked by separate code")
    chance, chance_before = (ui.percent(one[_RISK].value) for one in (after, release.before))
    for line in (
        f"Each patient looks like at least {after.k - 1} others.",
        "Each group of patients who look alike has at least 3 diagnoses.",
        f"An intruder who tries to find everyone finds {chance} of them; before, {chance_before}.",
        f"{'No patient was' if not lost else ui.count(lost, 'patient') + ' were'} removed. "
        f"{checks} passed.",
    ):
        ui.say(line)


def _show_others(plans: Front) -> None:
    """What the plans nearest to the demo's would give: less risk, or more detail."""
    ordered = sorted(plans.spots, key=lambda one: one.risk)
    place = [one.label for one in ordered].index(_CHOSEN)
    ui.heading(f"Of {len(ordered)} plans tried, those nearest in risk")
    rows = [
        (one.label, ui.percent(one.risk), ui.percent(one.utility), _MARK * (one.label == _CHOSEN))
        for one in ordered[max(0, place - 1) : place + 2]
    ]
    ui.table(("plan", "patients found", "detail left", ""), rows, numeric=(1, 2))


def _show_places(out: Path, picture: Path, project: Path) -> None:
    ui.heading("Files")
    for what, place in (
        ("to publish", out / "public"),
        ("its report", out / "public" / "report.html"),
        ("these plans", picture),
        ("to keep", out / "private"),
    ):
        ui.console().print(f"  {what:<14}{ui.printable(place)}", soft_wrap=True)
    ui.heading("Next: open the studio, or try your own table")
    ui.command_line("shoal studio", shlex.quote(os.path.relpath(project)))
    ui.command_line("shoal init YOUR-DATA")


def _plans(people: Table, plan: Plan, release: Release, working: Working) -> Front:
    """Plans of several methods and sizes of groups, and the demo's own, by risk and utility.

    There are no more of them than a first run tries without compiling anything. All of them leave
    true values, so one measure of utility fits them all.
    """
    from shoal.study.figures import front_of
    from shoal.study.tuning import Family, Tried, compare_plans

    own = plan.to_dict()["steps"][0]
    ranges = {name: value for name, value in own.items() if name != "models"}
    suppress = {"method": "suppress"}
    tried = compare_plans(
        people.drop(people.roles.withheld),
        (
            Family("ranges (mondrian)", (ranges,), {"0.k": _KS}),
            Family("rare values removed (suppress)", (suppress,), {"0.min_count": (4, 5, 10)}),
            Family("columns removed (suppress)", (suppress,), {"0.max_distinct": (0.01,)}),
        ),
        max_risk=_MAX_RISK,
        risk=_RISK,
        utility=_UTILITY,
        progress=working,
    )
    risk, loss = release.after[_RISK].value, release.after[_UTILITY].value
    chosen = Tried(_OWN, ({"k": release.after.k},), risk, None, 1 - loss)
    return front_of([one.to_spot() for one in (chosen, *tried)], _MAX_RISK, None)


def _project(place: Path) -> Path:
    """A project of the studio with the demo's table, and all of the way to go; or as it is."""
    from shoal.app.demo import PATIENTS

    folder = place / "demo-studio"
    if not folder.exists():
        folder.mkdir(mode=0o700)
        shutil.copyfile(PATIENTS, folder / PATIENTS.name)
        source = f'[source]\npath = "{PATIENTS.name}"\n'
        (folder / "studio.toml").write_text(source, encoding="utf-8")
    return folder
