"""Protects a table: applies the plan, verifies with separate code, and prepares a release."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from shoal.errors import (
    DisclosureWarning,
    PlanError,
    RequirementNotMet,
    RolesError,
    ShoalError,
    UnprotectedColumnWarning,
    UnreachableLevel,
    quoted,
)
from shoal.masking import Progress, Secrets, ShiftDates, hashed_names, in_order_of
from shoal.models import PrivacyModel
from shoal.randomness import SecretStream
from shoal.table import Roles, Table, return_freed_memory
from shoal.workflow._assess import assess_release, check_assessable
from shoal.workflow._leaks import Swapping, refutes
from shoal.workflow._plan import Plan, StepRecord, in_released_domain, pseudonymized_by, shifted_by
from shoal.workflow._require import (
    Claim,
    make_claim,
    publishable_claims,
    value_on_record,
)
from shoal.workflow._source import as_planned
from shoal.workflow.advice._advice import Advice, advise, has_k, reached
from shoal.workflow.advice._k_curve import k_curve
from shoal.workflow.advice._left import what_is_left
from shoal.workflow.advice._nearest import nearest, nearest_that_masks
from shoal.workflow.papers._pages import attacks_for_pages
from shoal.workflow.release._crowds import crowded_total
from shoal.workflow.release._identities import same_pseudonyms, same_shifts
from shoal.workflow.release._profile import class_size_profile, column_profiles
from shoal.workflow.release._release import Release

#: At most this many columns are named with a reason; a table may have thousands.
_MOST_NAMED = 12


@dataclass(frozen=True, eq=False)
class Masking:
    """The result of a plan on a table, before the requirements decide on its release.

    ``table`` is the original with its roles. The rows of ``masked`` are in the same order.
    """

    table: Table
    masked: Table
    records: list[StepRecord]
    claims: tuple[Claim, ...]


def mask_by(table: Table, plan: Plan, progress: Progress | None = None) -> Masking:
    """Mask a table with a plan and measure the requirements, whether they hold or not."""
    plan = Plan.of(plan)
    table = _checked(table, plan)
    masked, records = plan.mask(table, progress=progress)
    refuse_empty(len(masked), masked.columns, records)
    masked = masked.settled()
    _check_identities(table, masked, records)
    if progress:
        progress("Verifying what the plan requires", 0.0)
    served = functools.partial(in_released_domain, records)
    claims = tuple(
        make_claim(requirement, masked, table, served=served, accept_seed=plan.accept_seed)
        for requirement in plan.require
    )
    return Masking(table, masked, records, claims)


def protect(table: Table, plan: Plan, *, progress: Progress | None = None) -> Release:
    """Mask a table in memory with a plan and verify it; see ``shoal.protect``."""
    plan = Plan.of(plan)
    try:
        made = mask_by(table, plan, progress)
    except (RequirementNotMet, UnreachableLevel) as error:
        _add_nearest(error, table, plan)
        raise
    table, masked, records, claims = made.table, made.masked, made.records, made.claims
    if not all(claim.holds for claim in claims):
        advice = advise(made, plan, progress) or nearest(made, plan)
        raise _not_met(claims, records, advice)
    del made  # its table takes as much memory as the release
    claims = publishable_claims(
        claims, crowded_total([r.removed for r in records], [r.losing for r in records])
    )
    touched = {name for record in records for name in record.touched}
    named = pseudonymized_by(records)
    if not any(r.removed for r in records) and not touched & {*table.roles.quasi_identifiers}:
        warnings.warn(
            "The plan changed no quasi-identifier. All of them are released unchanged.",
            UnprotectedColumnWarning,
            stacklevel=2,
        )
    shifted = shifted_by(records)
    _warn_about_columns_left_in_place(masked, touched)
    if not plan.keep_order:
        stream = SecretStream.from_state(None).derive("row-order")
        masked = masked.reorder(stream.permutation(len(masked)))
    else:
        _warn_of_order(table, records)
    if plan.pseudonyms:
        # made for one release: nobody keeps their key
        key = bytes.fromhex(SecretStream.from_state(None).derive("pseudonyms").key_hex)
        names = hashed_names([str(number) for number in range(masked.person_count)], key)
        masked = masked.with_pseudonyms(table.roles.unit_columns, names)
    if masked.has_persons and (plan.pseudonyms or named or plan.keep_order):
        warn_if_histories_stand_out(masked, claims)
    masked = masked.scrubbed()
    return_freed_memory()  # of the search, whose work needs the most
    before = assess_release(table, table, progress)  # the values without any masking
    after = assess_release(masked, table, progress)
    _refuse_if_links_refute(claims, after.swapping)
    for leak in after.swapping.leaks if after.swapping is not None else ():
        warnings.warn(
            f"What the swap does not cover: {leak.sentence()}.", DisclosureWarning, stacklevel=2
        )
    if progress:
        progress("Comparing the columns", 0.9)
    return Release(
        masked=masked,
        plan=plan,
        claims=claims,
        steps=tuple(records),
        before=before,
        after=after,
        class_sizes=class_size_profile(table, masked),
        columns=tuple(
            replace(
                profile,
                left=told.get(profile.name, ""),
                label=masked.dictionary.labels.get(profile.name, ""),
            )
            for told in [what_is_left(table, masked, shifted=shifted, public=True)]
            for profile in column_profiles(table, masked, shifted=shifted)
        ),
        removed_identifiers=tuple(n for n in table.roles.naming if n not in named),
        rows_before=len(table),
        audit=Secrets(
            plan=plan.to_dict(),
            roles=table.roles.to_dict(),
            steps=[dict(record.private) for record in records],
            requirements=[value_on_record(requirement) for requirement in plan.require],
            course=masked.course.to_dict(),
            **({} if table.manner is None else {"read": table.manner.options.to_dict()}),
        ),
        left=what_is_left(table, masked, shifted=shifted),
        attacks=attacks_for_pages(masked, table, plan.release),
        k_curve=k_curve(table, plan, progress=progress) if _shows_k(plan) else (),
        manner=table.manner,
        dropped=table.roles.drop,
    )


def _check_identities(table: Table, masked: Table, records: Sequence[StepRecord]) -> None:
    """Raise RequirementNotMet if code that did not mask finds a true identifier, or a true date."""
    methods = [
        {"method": one.method, "columns": one.touched, "parameters": one.parameters}
        for one in records
    ]
    for check in (same_pseudonyms, same_shifts):
        good, detail = check({"methods": methods}, table, masked)
        if good is False:
            raise RequirementNotMet(f"The masked table was checked: {detail}. Nothing was written.")


def _warn_of_order(table: Table, records: Sequence[StepRecord]) -> None:
    """Warn if rows that keep their order are sorted by dates that were shifted."""
    shifted = {name for one in records if one.method == "shift_dates" for name in one.touched}
    if sorted_by := in_order_of(table, sorted(shifted)):
        warnings.warn(
            f"The rows keep their order, and that is the order of {quoted(sorted_by)}, which were "
            "shifted. Each true date lies between those of the neighbours, whose shifts even out. "
            "Leave out keep_order.",
            DisclosureWarning,
            stacklevel=3,
        )


def refuse_empty(rows: int, columns: Sequence[str], records: Iterable[StepRecord]) -> None:
    """Raise RequirementNotMet if the steps left nothing to release."""
    if rows == 0 or not columns:
        raise RequirementNotMet(
            f"The plan removes every {'record' if rows == 0 else 'column'}, so there is "
            "nothing to release. Relax the steps that suppress. Nothing was written."
        )
    for record in records:
        if "nothing_left" in record.private:
            raise RequirementNotMet(f"{record.private['nothing_left']} Nothing was written.")


def refuse_unless_all_hold(claims: Sequence[Claim]) -> None:
    """Raise RequirementNotMet with the reasons, in one paragraph."""
    if not all(claim.holds for claim in claims):
        raise _not_met(claims)


def _not_met(
    claims: Sequence[Claim], records: Sequence[StepRecord] = (), advice: Sequence[Advice] = ()
) -> RequirementNotMet:
    """Why there is no release, how far the plan gets, and which changes would hold."""
    broken = [claim.sentence for claim in claims if not claim.holds]
    said = [one.sentence() for one in advice] or [
        "Mask more strongly, remove the records at risk, declare fewer quasi-identifiers, or "
        "relax the requirement"
    ]
    if any(one.asks_less for one in advice):
        said.insert(0, "No change to the steps alone that was tried is enough")
    reasons = [f"The masked table does not satisfy the plan: {'; '.join(broken)}"]
    return RequirementNotMet(
        ". ".join([*reasons, *reached(claims), *said, "Nothing was written."]),
        {
            "requirements": [claim.to_dict() for claim in claims],
            "steps": [record.to_dict() for record in records],
            "advice": [one.to_dict() for one in advice],
        },
    )


def _add_nearest(error: ShoalError, table: Table, plan: Plan) -> None:
    """Add to an error of the masking what the plan could ask of this table instead."""
    advice = nearest_that_masks(table.with_roles(plan.roles_for(table)), plan)
    if not advice:
        return
    end = "Nothing was written."
    said = [f"{one.sentence()}." for one in advice]
    error.args = (" ".join([str(error).removesuffix(end).rstrip(), *said, end]),)
    if isinstance(error, RequirementNotMet):
        error.facts["advice"] = [one.to_dict() for one in advice]


def _refuse_if_links_refute(claims: tuple[Claim, ...], swapping: Swapping | None) -> None:
    """Raise RequirementNotMet if a release would claim a bound that the measured links break."""
    for claim in claims:
        if swapping is not None and refutes(swapping, claim):
            raise RequirementNotMet(
                f"{claim.key} seemed to hold with k = {claim.measured:g}, but an attack showed "
                f"otherwise: {swapping.sentence}. Swaps that keep the bound give this many right "
                "links in less than one of a thousand draws. Do not release this table. Look for "
                "steps that undo each other. Nothing was written."
            )


def _checked(table: Table, plan: Plan) -> Table:
    if isinstance(table, Table):
        table = as_planned(table, plan)
    if isinstance(table, Table) and plan.roles_for(table) != table.roles:
        table = table.with_roles(plan.roles_for(table))
    check_assessable(table)
    check_pages(plan)
    for requirement in plan.require:
        if isinstance(requirement, PrivacyModel):
            requirement.check(table)
    refuse_undeclared(table)
    refuse_unknown_owners(table)
    check_pseudonyms(plan, table.roles)
    return table


def check_pages(plan: Plan) -> None:
    """Raise PlanError if the plan asks for the page on the choice of k, but has no k."""
    if _shows_k(plan) and not has_k(plan):
        raise PlanError(
            "The plan asks for the page 'choice_of_k', but none of its steps and requirements has "
            "a k. Leave out the page, or give a step a k."
        )


def _shows_k(plan: Plan) -> bool:
    return "choice_of_k" in plan.release.pages


def refuse_undeclared(table: Table) -> None:
    """Raise RolesError if columns without a role look like identifiers."""
    undeclared = table.undeclared_identifiers()
    if undeclared:
        first = list(undeclared.items())[:_MOST_NAMED]
        listed = "; ".join(f"'{name}' ({reason})" for name, reason in first)
        if len(undeclared) > _MOST_NAMED:
            listed += f"; and {len(undeclared) - _MOST_NAMED:,} more"
        raise RolesError(
            f"Some columns look like identifiers and would be released unchanged: {listed}. List "
            "them under 'identifiers', or under 'insensitive' if they may be released."
        )


def check_pseudonyms(plan: Plan, roles: Roles) -> None:
    """Raise RolesError if the pseudonyms of a plan do not fit the roles, or each other."""
    if plan.pseudonyms and not roles.unit_columns:
        raise RolesError(
            "The plan asks for pseudonyms, which show which rows belong together, but the roles "
            'name no unit. Declare unit = "..." or leave out pseudonyms.'
        )
    twice = [n for n in roles.unit_columns if n in plan.identifiers_needed(roles)]
    if plan.pseudonyms and twice:
        raise RolesError(
            f"The plan gives {quoted(twice)} two pseudonyms: by a step, and by pseudonyms = true. "
            "Leave out one of the two."
        )
    named: set[str] = set()
    for number, step in enumerate(plan.steps, start=1):
        needed = {*step.identifiers_needed(roles)}
        if not step.names_identifiers and needed & named:
            raise RolesError(
                f"Step {number} ({step.method}) has a key file and needs the unit as it was, but "
                "an earlier step makes pseudonyms of it. Put the step first."
            )
        named |= needed
    shifts = [step.columns for step in plan.steps if isinstance(step, ShiftDates)]
    if any(a is None or b is None or {*a} & {*b} for a, b in combinations(shifts, 2)):
        raise RolesError(
            "The plan shifts dates twice. Two shifts of a person may cancel each other, and leave "
            "the true dates. Keep one shift_dates step for each column."
        )


def refuse_unknown_owners(
    table: Table,
    repeats: Callable[[Sequence[str]], int | None] | None = None,
    rows: int | None = None,
) -> None:
    """Raise RolesError if people seem to have several rows but no unit is declared.

    If the table is a sample of ``rows`` rows, ``repeats`` refers to all of them.
    """
    for names, distinct in table.repeating_owners(repeats).items():
        example = f'"{names[0]}"' if len(names) == 1 else str(list(names)).replace("'", '"')
        raise RolesError(
            f"A person seems to have several rows: the {rows or len(table):,} rows have "
            f"{distinct:,} different values of {quoted(names)}, and k would count rows. Declare "
            f'unit = {example} in the roles to count persons, or unit = "row" if each row is a '
            "different person."
        )


def warn_if_histories_stand_out(masked: Table, claims: tuple[Claim, ...]) -> None:
    """Pseudonyms show histories, and so may the order of the rows."""
    asked = [getattr(claim.requirement, "rarest_history", 1) for claim in claims]
    alone = masked.histories.uniques
    if max(asked, default=1) < 2 and alone:
        warnings.warn(
            "Pseudonyms, or rows in their original order, show which rows belong to one person, "
            f"and {alone:,} of {masked.person_count:,} persons are unique by all of their rows "
            'together. Require k_anonymity with of = "histories", or leave them out.',
            DisclosureWarning,
            stacklevel=3,
        )


def _warn_about_columns_left_in_place(masked: Table, touched: Container[str]) -> None:
    left = [
        name
        for name in masked.columns
        if masked.roles.of(name) in (None, "weight") and name not in touched
    ]
    if not left:
        return
    alone = int((masked.crowds(left).record_sizes == 1).sum())
    warnings.warn(
        f"Columns that no role protects are released unchanged: {quoted(left)}. They single out "
        f"{alone:,} of {len(masked):,} records for anyone who knows them. "
        f"{cure_for_columns_left(left, masked.roles)}",
        UnprotectedColumnWarning,
        stacklevel=3,
    )


def cure_for_columns_left(left: Sequence[str], roles: Roles) -> str:
    """What to do about columns that are released unchanged although no role protects them."""
    others = [name for name in left if name != roles.weight]
    if others == list(left):
        return "Mask them, or declare them 'insensitive' if they may be released."
    rest = f"Mask {quoted(others)}, or declare 'insensitive' what may be released. "
    return (rest if others else "") + f"Round the weight '{roles.weight}' in a step 'round'."
