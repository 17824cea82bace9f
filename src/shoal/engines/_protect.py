"""Protecting rows that an engine holds: the plan that memory runs, counted and verified the same.

The masked rows are written in parts into a private workshop first. What the plan requires is then
counted in these parts, so that what is claimed is claimed of what was written, and a release that
does not satisfy its plan never appears.
"""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines._engine import ROW, Engine, Rows, TooManyCombinations, as_table, roles_on
from shoal.engines._parts import OWNER, parts_for
from shoal.engines._steps import Course, check_steps, run_step
from shoal.engines._swaps import swap_claim
from shoal.errors import (
    InputError,
    RequirementNotMet,
    RolesError,
    UnprotectedColumnWarning,
    quoted,
)
from shoal.masking import Progress, Secrets
from shoal.models import PrivacyModel
from shoal.models._sensitive_model import SensitiveModel
from shoal.randomness import SecretStream
from shoal.table import Roles, Table
from shoal.workflow import Assessment, Claim, Limit, Plan, Release, discover_all_measures
from shoal.workflow._assess import assess_release
from shoal.workflow._protect import refuse_unknown_owners, refuse_unless_all_hold
from shoal.workflow._require import make_claim, told_claims, value_on_record
from shoal.workflow.release._crowds import crowded_total
from shoal.workflow.release._profile import ColumnProfile, class_size_profile, column_profile

#: What compares records with their originals, and is measured on a sample.
_BY_RECORDS = ("normalized_certainty_penalty", "suppressed_cells", "unchanged_records")
#: So many rows are looked at where single records must be: for names of people, for utility.
SAMPLED = 100_000


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A masked table that an engine holds: its roles, its columns, and where its parts are."""

    roles: Roles
    kinds: Mapping[str, pl.DataType]
    rows: int
    files: tuple[Path, ...]
    engine: Engine
    #: The combinations of its quasi-identifiers and sensitive columns, with their counts.
    tally: Table = field(repr=False)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.kinds)

    @property
    def frame(self) -> Any:
        """The rows in the type that came in, not collected."""
        return self.engine.given_back(self.files)

    @property
    def schema(self) -> dict[str, str]:
        """The type of each column, as a release records it."""
        return Table(pl.DataFrame(schema=dict(self.kinds))).schema

    @property
    def has_persons(self) -> bool:
        return self.tally.has_persons

    @property
    def person_count(self) -> int:
        return self.tally.person_count

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"LargeTable: {self.rows} rows, {len(self.kinds)} columns, on {self.engine.name}"


@dataclass(frozen=True, eq=False, repr=False)
class LargeRelease(Release):
    """A release whose rows are in parts; ``save`` puts them in place, ``close`` lets them go."""

    masked: LargeTable  # type: ignore[assignment]
    workshop: Path = field(default=Path(), repr=False)
    closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    def save(self, out: Any, **options: Any) -> Path:
        """Write the release folder, complete or not at all; its rows are moved there."""
        from shoal.engines._release import save_in_parts

        return save_in_parts(self, out, **options)

    def close(self) -> None:
        """Remove what was not saved, and end the engine's work."""
        self.closing.close()


def protect_on(
    engine: Engine,
    source: Any,
    plan: Plan,
    workshop: Path,
    closing: contextlib.ExitStack,
    progress: Progress | None = None,
) -> LargeRelease:
    """Mask the rows of a source by a plan and verify what the plan requires."""
    tell = progress or (lambda label, share: None)
    tell("Looking at the source", 0.0)
    rows = engine.source(source)
    roles = _checked(rows, plan)
    total = rows.count()
    if total == 0:
        raise InputError("The source has no records.")
    _check_people(rows, roles, total)
    before, assessed = _before(rows, roles, plan)
    for requirement in plan.require:
        if isinstance(requirement, PrivacyModel):
            requirement.check(before)
    unit = list(roles.unit_columns)
    left = rows.hide(unit).drop(roles.withheld)
    course = Course(left, roles.without([n for n in roles.withheld if n not in unit]), total)
    for number, step in enumerate(plan.steps):
        tell(f"Masking: {step.method}", 0.1 + 0.5 * number / len(plan.steps))
        run_step(step, course)
    _refuse_nothing(course)
    tell("Writing the parts", 0.6)
    order = SecretStream.from_state(None).derive("row-order")
    engine.write(course.rows, workshop / "parts", order, parts_for(course.total))
    files = tuple(sorted((workshop / "parts" / "public").iterdir()))
    tell("Verifying what the plan requires", 0.85)
    written = engine.read(files)
    after = _written_tally(course, written, workshop, plan)
    private = engine.read(sorted((workshop / "parts" / "private").iterdir()))
    claims = tuple(_claim(requirement, after, private, course) for requirement in plan.require)
    refuse_unless_all_hold(claims)
    records = course.records
    lost = [r.removed for r in records], [r.losing for r in records]
    claims = told_claims(claims, crowded_total(*lost))
    _warn_about_columns_left(course)
    tell("Measuring", 0.9)
    some = _sampled(rows, files, roles, workshop)
    public = course.roles.without(unit)
    masked = LargeTable(public, dict(course.rows.schema), after.records, files, engine, tally=after)
    return LargeRelease(
        masked=masked,
        plan=plan,
        claims=claims,
        steps=tuple(records),
        before=assessed,
        after=_with_sampled(assess_release(after, None), *some),
        class_sizes=class_size_profile(before, after),
        columns=tuple(_profiles(rows, written, roles, course, some)),
        removed_identifiers=roles.withheld,
        rows_before=total,
        audit=Secrets(
            plan=plan.to_dict(),
            roles=roles.to_dict(),
            steps=[dict(record.private) for record in records],
            requirements=[value_on_record(requirement) for requirement in plan.require],
            order=order.key_hex,
            engine=engine.name,
        ),
        workshop=workshop,
        closing=closing,
    )


def _checked(rows: Rows, plan: Plan) -> Roles:
    """The roles of the plan, if the source has these columns and the engine these steps."""
    roles = plan.roles
    if roles is None or not roles.quasi_identifiers:
        raise RolesError(
            "On an engine the plan says which columns identify people; name them under [roles] "
            "(shoal roles suggests some)."
        )
    absent = [name for _, name in roles.items() if name not in rows.columns]
    if absent:
        raise RolesError(f"The source has no column {quoted(absent)}, which the roles name.")
    if plan.pseudonyms or plan.keep_order:
        raise InputError(
            "Pseudonyms and rows in their first order are for tables in memory; leave "
            "'pseudonyms' and 'keep_order' out of the plan, or use the engine 'memory'."
        )
    check_steps(plan.steps, roles)
    for requirement in plan.require:
        fits = requirement.info if isinstance(requirement, Limit) else requirement
        swapped = isinstance(requirement, PrivacyModel) and requirement.bounds_links
        if not fits.by_counts and not swapped:
            name = requirement.key if isinstance(requirement, Limit) else requirement.model
            raise InputError(
                f"The requirement '{name}' needs single records, and an engine counts "
                "combinations; leave it out, or use the engine 'memory'."
            )
    return roles


def _check_people(rows: Rows, roles: Roles, total: int) -> None:
    """Refuse columns that name people undeclared, and persons with several rows unsaid."""
    look = SecretStream.from_state(None).derive("look")
    some = rows.engine.sample(rows, SAMPLED, look, total)
    table = Table(some.select(rows.columns), roles)
    found = table.undeclared_identifiers()
    if found:
        listed = "; ".join(f"'{name}' ({reason})" for name, reason in found.items())
        raise RolesError(
            f"Columns look like identifiers and would be released as they are: {listed}. Name "
            "them under 'identifiers', or under 'insensitive' if they may leave."
        )
    refuse_unknown_owners(table, rows.repeats, total)


def _counted(rows: Rows, roles: Roles) -> list[str]:
    """The columns that classes and models are counted by."""
    names = [*roles.quasi_identifiers, *roles.sensitive, *roles.unit_columns]
    return [name for name in rows.columns if name in names] + [
        name for name in rows.hidden if name in names
    ]


def _tally(rows: Rows, roles: Roles, plan: Plan) -> Table:
    """The combinations of quasi-identifiers and sensitive columns, or only the sizes of classes.

    Sizes are enough where no model asks about sensitive values.
    """
    names = _counted(rows, roles)
    try:
        return rows.tally(names, roles_on(roles, names))
    except TooManyCombinations:
        about_values = [r for r in plan.require if isinstance(r, SensitiveModel)]
        if about_values or roles.unit_columns:
            raise
    return rows.crowds([name for name in names if name in roles.quasi_identifiers])


def _before(rows: Rows, roles: Roles, plan: Plan) -> tuple[Table, Assessment]:
    """What no masking gives: combinations and their assessment.

    Where nearly every record is a class of its own, the classes do not fit; then there is a row
    for each size that classes have, which says as much about risk.
    """
    try:
        found = _tally(rows, roles, plan)
        return found, assess_release(found, None)
    except TooManyCombinations:
        if any(isinstance(requirement, SensitiveModel) for requirement in plan.require):
            raise
    sizes, classes = rows.histogram(roles.quasi_identifiers)
    frame = pl.DataFrame({"size": sizes})
    found = Table(frame, Roles(quasi_identifiers=["size"])).tallied(sizes * classes)
    found = found.with_crowds(sizes)
    assessed = assess_release(found, None)
    count = int(classes.sum())
    facts = replace(assessed.classes, count=count, average=found.records / count)
    return found, replace(assessed, classes=facts)


def _refuse_nothing(course: Course) -> None:
    if course.total == 0 or not course.rows.schema:
        raise RequirementNotMet(
            f"The plan takes out every {'record' if course.total == 0 else 'column'}, so there is "
            "nothing to release; relax the steps that suppress. Nothing was written."
        )
    for record in course.records:
        if "nothing_left" in record.private:
            raise RequirementNotMet(f"{record.private['nothing_left']} Nothing was written.")


def _written_tally(course: Course, written: Rows, workshop: Path, plan: Plan) -> Table:
    """The combinations of what was written; whose rows they are is in the private half."""
    unit = list(course.roles.unit_columns)
    names = [n for n in _counted(written, course.roles) if n not in unit]
    if not unit:
        return _tally(written, course.roles, plan)
    private = written.engine.read(sorted((workshop / "parts" / "private").iterdir()))
    owners = [OWNER + name for name in unit]
    both = written.engine.beside(written, private, owners)
    public = roles_on(course.roles, names)
    return both.tally([*names, *owners], public.replacing(unit=owners))


def _claim(requirement: Any, after: Table, private: Rows, course: Course) -> Claim:
    if isinstance(requirement, PrivacyModel) and requirement.bounds_links:
        return swap_claim(requirement, private, list(course.records), course.roles, after)
    return make_claim(requirement, after, None)


def _sampled(
    rows: Rows, files: Sequence[Path], roles: Roles, workshop: Path
) -> tuple[Table, Table]:
    """Some of the released rows, and what they were.

    Rows lie in a random order, so the first ones of a part are a sample of all.
    """
    first = files[0]
    masked = pl.read_parquet(first, n_rows=SAMPLED)
    keys = pl.read_parquet(workshop / "parts" / "private" / first.name, n_rows=SAMPLED)["row_key"]
    original = as_table(rows.engine.picked(rows, keys.to_numpy()).sort(ROW), roles)
    released = as_table(masked.with_columns(keys.alias(ROW)), roles)
    return original, released.paired(original, keys.to_numpy())


def _with_sampled(found: Assessment, original: Table, released: Table) -> Assessment:
    """The assessment with what compares records, measured on some of the released rows."""
    sampled = {name: discover_all_measures()[name].take(original, released) for name in _BY_RECORDS}
    left = {name: why for name, why in found.left_out.items() if name not in sampled}
    note = (
        f"{', '.join(discover_all_measures()[name].title for name in sampled)}: measured on "
        f"{len(released):,} of the {found.rows:,} released records."
    )
    return replace(
        found,
        measurements={**found.measurements, **sampled},
        left_out=left,
        notes=(*found.notes, note) if len(released) < found.rows else found.notes,
    )


def _warn_about_columns_left(course: Course) -> None:
    touched = {name for record in course.records for name in record.touched}
    left = [
        name
        for name in course.rows.schema
        if course.roles.of(name) in (None, "weight") and name not in touched
    ]
    if left:
        warnings.warn(
            f"These columns have no role and are released unchanged: {quoted(left)}. Mask them, "
            "or call them 'insensitive' if they may leave.",
            UnprotectedColumnWarning,
            stacklevel=4,
        )


def _profiles(
    rows: Rows, written: Rows, roles: Roles, course: Course, some: tuple[Table, Table]
) -> Iterator[ColumnProfile]:
    """What happened to each column, by counts of its values; of a sample where they are many."""
    touched = {name for record in course.records for name in record.touched}
    for name in rows.columns:
        if name in roles.withheld:
            continue
        own = roles_on(roles, [name])
        try:
            before = rows.tally([name], own)
            after = None if name not in written.schema else written.tally([name], own)
        except TooManyCombinations:
            before, after = some
        yield column_profile(before, after, name, None if name in touched else 0.0)


def finish(release: LargeRelease) -> None:
    """Let a release go when the process ends, unless it was saved or closed before."""
    atexit.register(release.closing.close)
    release.closing.callback(atexit.unregister, release.closing.close)
