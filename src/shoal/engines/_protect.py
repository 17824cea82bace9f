"""Protecting rows on an engine: the same plan as in memory, counted and verified in the same way.

The masked rows are first written in parts to a private workshop. The requirements of the plan are
then counted in these parts, so every claim is about what was written, and a release that does not
satisfy its plan never appears.
"""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines._engine import Engine, Rows, TooManyCombinations
from shoal.engines._measures import (
    SAMPLED,
    Comparison,
    check_limit,
    tally_before,
    tally_of,
    tally_with_owners,
)
from shoal.engines._parts import parts_for
from shoal.engines._swaps import swap_claim
from shoal.engines.steps import Course, check_steps, name_identifiers, run_step
from shoal.errors import InputError, RolesError, UnprotectedColumnWarning, quoted
from shoal.masking import Progress, Secrets
from shoal.masking.grouping._group_models import models_of
from shoal.models import DifferentialPrivacy, PopulationModel, PrivacyModel
from shoal.notebook import listing, view
from shoal.randomness import SecretStream
from shoal.table import OTHER, Roles, Table, role_word
from shoal.table.columns._frames import kind_of
from shoal.workflow import Claim, Limit, Plan, Release
from shoal.workflow._plan import at_step, pseudonymized_by, shifted_by
from shoal.workflow._protect import (
    check_pages,
    check_pseudonyms,
    cure_for_columns_left,
    refuse_empty,
    refuse_undeclared,
    refuse_unknown_owners,
    refuse_unless_all_hold,
    warn_if_histories_stand_out,
)
from shoal.workflow._require import make_claim, publishable_claims, value_on_record
from shoal.workflow._source import check_source
from shoal.workflow.advice._left import what_is_left
from shoal.workflow.release._crowds import crowded_total
from shoal.workflow.release._profile import ColumnProfile, class_size_profile, column_profile


@dataclass(frozen=True, eq=False)
class LargeTable:
    """A masked table on an engine: its roles, columns and files."""

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
        """The rows in the type of the input, not collected."""
        return self.engine.given_back(self.files)

    @property
    def schema(self) -> dict[str, str]:
        """The type of each column, as a release records it."""
        return Table(pl.DataFrame(schema=dict(self.kinds))).schema

    def moved_to(self, folder: Path) -> None:
        """Record that the parts are now in ``folder``."""
        files = tuple(folder / file.name for file in self.files)
        object.__setattr__(self, "files", files)

    @property
    def has_persons(self) -> bool:
        return self.tally.has_persons

    @property
    def person_count(self) -> int:
        return self.tally.person_count

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return f"LargeTable: {self.rows:,} rows, {len(self.kinds)} columns, on {self.engine.name}"

    def _repr_html_(self) -> str:
        rows = ((name, kind, role_word(self.roles.of(name))) for name, kind in self.schema.items())
        return view(repr(self), listing(("column", "type", "role"), rows, of="columns"))


@dataclass(frozen=True, eq=False, repr=False)
class LargeRelease(Release):
    """A release with its rows in parts; ``save`` puts them in place, ``close`` discards them."""

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
    notify = progress or (lambda label, share: None)

    def stage(label: str, low: float, high: float) -> None:
        notify(label, low)
        engine.progress = lambda share: notify(label, low + (high - low) * share)

    stage("Looking at the source", 0.0, 0.1)
    rows, roles = _checked(engine.source(source), plan)
    total = rows.count()
    if total == 0:
        raise InputError("The source has no records.")
    width = _check_people(rows, roles, total)
    before, assessed = tally_before(rows, roles, plan.require)
    owners = [*roles.unit_columns, *roles.household]
    needed = plan.identifiers_needed(roles)
    left = rows.hide([*owners, *needed]).drop([n for n in roles.withheld if n not in owners])
    shown = roles.without([n for n in roles.withheld if n not in owners])
    course = Course(left, shown, total, counted=(left, before))
    for requirement in plan.require:
        if isinstance(requirement, PrivacyModel):
            course.peopled(requirement).check(before)
    each = 0.4 / max(1, len(plan.steps))
    for number, step in enumerate(plan.steps):
        stage(f"Masking: {step.method}", 0.1 + each * number, 0.1 + each * (number + 1))
        with at_step(number, step.method):
            run_step(step, course)
    refuse_empty(course.total, [*course.rows.columns, *course.to_name], course.records)
    names = SecretStream.from_state(None).derive("pseudonyms")
    public = name_identifiers(course, names if plan.pseudonyms else None)
    course.leave_homes()
    stage("Writing the parts", 0.5, 0.8)
    order = SecretStream.from_state(None).derive("row-order")
    engine.write(course.rows, workshop / "parts", order, parts_for(course.total, width))
    files = tuple(sorted((workshop / "parts" / "public").iterdir()))
    stage("Verifying what the plan requires", 0.8, 0.9)
    kept = sorted((workshop / "parts" / "private").iterdir())
    written, private, unit = engine.read(files), engine.read(kept), course.roles.unit_columns
    if unit:
        after = tally_with_owners(written, private, unit, course.roles)
    else:
        after = tally_of(written, course.roles, plan.require)
    covered = {*written.columns} == {*course.roles.quasi_identifiers}
    after = after.on_course(course.past if covered else OTHER)
    both = Comparison(
        rows,
        roles,
        total,
        written,
        private,
        files,
        kept,
        order,
        before,
        after,
        course.population,
    )
    claims = tuple(_claim(requirement, both, course) for requirement in plan.require)
    refuse_unless_all_hold(claims)
    records = course.records
    lost = [r.removed for r in records], [r.losing for r in records]
    claims = publishable_claims(claims, crowded_total(*lost))
    _warn_about_columns_left(course, public)
    if plan.pseudonyms or (course.to_name and after.has_persons):
        warn_if_histories_stand_out(after, claims)

    def measuring(label: str, share: float) -> None:
        notify(label, 0.9 + 0.1 * share)

    masked = LargeTable(public, dict(course.rows.schema), after.records, files, engine, tally=after)
    return LargeRelease(
        masked=masked,
        plan=plan,
        claims=claims,
        steps=tuple(records),
        before=assessed,
        after=both.assessment(notify=measuring),
        class_sizes=class_size_profile(before, after),
        columns=tuple(_profiles(both, course)),
        left=what_is_left(*both.sample, shifted=shifted_by(records)),
        removed_identifiers=tuple(n for n in roles.naming if n not in pseudonymized_by(records)),
        dropped=roles.drop,
        rows_before=total,
        audit=Secrets(
            plan=plan.to_dict(),
            roles=roles.to_dict(),
            steps=[dict(record.private) for record in records],
            requirements=[value_on_record(requirement) for requirement in plan.require],
            order=order.key_hex,
            engine=engine.name,
            course=after.course.to_dict(),
            **({"pseudonyms": names.key_hex} if plan.pseudonyms else {}),
        ),
        workshop=workshop,
        closing=closing,
    )


def _checked(rows: Rows, plan: Plan) -> tuple[Rows, Roles]:
    """The rows and the roles, if the source fits the plan and the engine supports its steps."""
    roles = check_plan(plan)
    if plan.unlisted is not None or plan.read is not None:
        kinds = {name: kind_of(kind) for name, kind in rows.schema.items()}
        total, gaps = rows.count(), rows.gaps(rows.columns)
        empty = [name for name, missing in gaps.items() if missing == total]
        rows = rows.drop(check_source(kinds, plan, empty))
    rows.check_roles(roles)
    for model in _private_models(plan):
        model.check(Table(pl.DataFrame(schema=dict(rows.schema))).with_roles(roles, released=True))
    return rows, roles


def _private_models(plan: Plan) -> list[DifferentialPrivacy]:
    """The models that depend on every column of a release."""
    asked = [*plan.require, *(m for s in plan.steps for m in models_of(getattr(s, "models", None)))]
    return [model for model in asked if isinstance(model, DifferentialPrivacy)]


def check_plan(plan: Plan) -> Roles:
    """The roles of a plan, if an engine can run it; does not look at the source."""
    roles = plan.roles
    if roles is None or not roles.quasi_identifiers:
        raise RolesError(
            "On an engine, the plan must state which columns identify people. List them under "
            "[roles]; 'shoal roles' suggests some."
        )
    if plan.keep_order:
        raise InputError(
            "Only tables in memory can keep their row order. Leave 'keep_order' out of the plan, "
            "or use the engine 'memory'."
        )
    check_pseudonyms(plan, roles)
    check_pages(plan)
    check_steps(plan.steps)
    if _private_models(plan) and (roles.unit_columns or roles.household):
        raise InputError(
            f"{DifferentialPrivacy.title} is proved only for records that are drawn one by one. "
            "Reduce each person to one record first, and leave 'unit' and 'household' out of the "
            "roles."
        )
    counted = any(isinstance(requirement, PopulationModel) for requirement in plan.require)
    if counted and any(getattr(step, "relaxed", False) for step in plan.steps):
        raise InputError(
            "With relaxed boxes in chunks, it is unknown which people of a population belong to "
            "them. Leave out 'relaxed', or use the engine 'memory'."
        )
    for requirement in plan.require:
        if isinstance(requirement, Limit):
            check_limit(requirement)
        elif not requirement.by_counts and not requirement.bounds_links:
            raise InputError(
                f"The requirement '{requirement.model}' needs single records, but an engine only "
                "counts combinations. Leave it out, or use the engine 'memory'."
            )
    return roles


def _check_people(rows: Rows, roles: Roles, total: int) -> float:
    """Refuse undeclared identifiers, and persons with several rows if no unit is declared.

    Returns the bytes of a row.
    """
    some = rows.some(total, SAMPLED)
    table = Table(some.select(rows.columns)).with_roles(roles, released=True)
    refuse_undeclared(table)
    refuse_unknown_owners(table, rows.repeats, total)
    return some.estimated_size() / max(1, some.height)


def _claim(requirement: Any, both: Comparison, course: Course) -> Claim:
    if isinstance(requirement, Limit):
        return both.claim(requirement)
    if requirement.bounds_links:
        return swap_claim(requirement, both.private, course.records, course.roles, both.after)
    claim = make_claim(course.peopled(requirement), both.after, None, served=course.covered)
    return replace(claim, requirement=requirement)


def _warn_about_columns_left(course: Course, public: Roles) -> None:
    touched = {name for record in course.records for name in record.touched}
    left = [
        name
        for name in course.rows.schema
        if public.of(name) in (None, "weight") and name not in touched
    ]
    if left:
        warnings.warn(
            f"Columns that no role protects are released unchanged: {quoted(left)}. "
            f"{cure_for_columns_left(left, public)}",
            UnprotectedColumnWarning,
            stacklevel=4,
        )


def _profiles(both: Comparison, course: Course) -> Iterator[ColumnProfile]:
    """What happened to each column, by counts of its values, or on a sample if they are many."""
    touched = {name for record in course.records for name in record.touched}
    shifted = shifted_by(course.records)
    left = what_is_left(*both.sample, shifted=shifted, public=True)
    for name in both.rows.columns:
        if name in both.roles.withheld:
            continue
        try:
            before, after = both.column(name)
        except TooManyCombinations:
            before, after = both.sample
        changed = None if name in touched else 0.0
        profile = column_profile(before, after, name, changed, alone=name in shifted)
        yield replace(profile, left=left.get(name, ""))


def finish(release: LargeRelease) -> None:
    """Remove a release when the process ends, unless it was saved or closed before."""
    atexit.register(release.closing.close)
    release.closing.callback(atexit.unregister, release.closing.close)
