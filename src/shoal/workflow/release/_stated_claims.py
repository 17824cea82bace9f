"""Checks a claim of ``release.json``: it is possible, agrees with itself, and holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shoal.errors import ShoalError
from shoal.models import KAnonymity, LDiversity, PopulationModel, PrivacyModel, discover_models
from shoal.parameters import parameters_of
from shoal.table import Table
from shoal.workflow._leaks import refutes, swapping_of
from shoal.workflow._require import (
    Limit,
    Requirement,
    has_private_parameters,
    make_claim,
    plain,
    private_names_of,
    requirement_from,
    value_of,
)
from shoal.workflow.release._release_files import Audit
from shoal.workflow.release._verification import Outcome

UNOWNED = "persons were counted, and only the private half records whose rows these are"
MORE_PERSONS = "it states more than the rows or values allow"
_POPULATION = "the population is private, and must be masked as the release was"


def check_claim(
    recorded: Mapping[str, Any],
    number: int,
    masked: Table,
    paired: tuple[Table, Table] | None,
    audit: Audit | None,
    unowned: bool,
) -> Outcome:
    """The outcome for one claim; files outside the release are not opened."""
    key, stated = recorded["claim"], recorded["requirement"]
    model = discover_models().get(key)
    private = private_names_of(key)
    if isinstance(stated, Mapping) and any(name in stated for name in private):
        return False, "it states a parameter that is private, which Shoal never publishes"
    if recorded["private_parameters"] and not private:
        return False, "it states that parameters are private, but it has none that are"
    if audit is None and recorded["private_parameters"]:
        return _skipped_for_parameters(recorded, model)
    value = stated if audit is None else audit.facts["requirements"][number]
    requirement = requirement_from(key, value)
    if audit is not None and plain(value_of(requirement, public=True)) != stated:
        return False, "the release states a different requirement than the private half"
    contradiction = _contradiction(recorded, requirement)
    if contradiction:
        return False, contradiction
    if unowned and (outcome := _of_unknown_persons(recorded, requirement, masked)) is not None:
        return outcome
    reason = _beyond_reach(requirement, audit, paired, recorded["rests_on_seed"])
    if reason is not None:
        unmeasured = _unlikely(recorded, requirement, masked)
        return (False, unmeasured) if unmeasured else (None, reason)
    accept_seed = audit is not None and audit.facts["plan"].get("accept_seed") is True
    return _measured_again(recorded, requirement, masked, paired, accept_seed)


def _of_unknown_persons(
    recorded: Mapping[str, Any], requirement: Requirement, masked: Table
) -> Outcome | None:
    """The outcome if persons were counted and the release does not say whose its rows are.

    A class has no more persons than rows, so a claim can be refuted but not confirmed. None if the
    claim is not about persons.
    """
    if isinstance(requirement, Limit) and requirement.info.needs_original:
        return None
    if (isinstance(requirement, KAnonymity) and requirement.of == "persons") or (
        isinstance(requirement, LDiversity) and requirement.kind == "distinct"
    ):
        by_rows = requirement.level(masked)
        if by_rows < recorded["measured"]:
            return False, MORE_PERSONS
    return None, UNOWNED


def _skipped_for_parameters(
    recorded: Mapping[str, Any], model: type[PrivacyModel] | None
) -> Outcome:
    """A claim whose parameters are private: what it does state must still agree."""
    stated, measured = recorded["requirement"], recorded["measured"]
    if not recorded["holds"]:
        return False, "it says of itself that it does not hold"
    if model is None:
        limit = requirement_from(recorded["claim"], stated)
        required, good = limit.threshold, measured is not None and limit.accepts(measured)
    else:
        first = parameters_of(model)[0]
        required = stated.get(first.name) if isinstance(stated, Mapping) else stated
        if not first.constraint.accepts(required):
            return False, "its parameters do not fit such a claim"
        if _stands_alone(recorded):
            return False, "it states that parameters are private, but none is missing"
        higher = model.direction == "higher"
        good = measured is not None and (measured >= required if higher else measured <= required)
    if not good or not close(required, recorded["required"]):
        return False, "it states a value that does not reach what it requires"
    population = model is not None and issubclass(model, PopulationModel)
    return None, _POPULATION if population else "its parameters are in the private half"


def _stands_alone(recorded: Mapping[str, Any]) -> bool:
    """Whether the claim is complete as it is stated, so that none of its parameters is private."""
    try:
        requirement_from(recorded["claim"], recorded["requirement"])
    except ShoalError:
        return False
    return True


def _contradiction(recorded: Mapping[str, Any], requirement: Requirement) -> str:
    """How a claim contradicts itself or the audit; empty if it does not."""
    needs_original = isinstance(requirement, Limit) and requirement.info.needs_original
    if not recorded["holds"]:
        return "it says of itself that it does not hold"
    if recorded["needs_original"] != needs_original:
        return "it is wrong about whether it compares with the original"
    if recorded["private_parameters"] != has_private_parameters(requirement):
        return "it is wrong about whether its parameters are private"
    if not close(requirement.threshold, recorded["required"]):
        return (
            f"{requirement.threshold:g} is required, but the release states that "
            f"{recorded['required']:g} is"
        )
    if recorded["rests_on_seed"] and not requirement.needs_audit:
        return "it states that it rests on a seed, but it does not depend on chance"
    if recorded["measured"] is None and not needs_original:
        return "it states no measured value"
    return ""


def _beyond_reach(
    requirement: Requirement,
    audit: Audit | None,
    paired: tuple[Table, Table] | None,
    rests_on_seed: bool,
) -> str | None:
    """Why a claim cannot be measured with the files at hand; None if it can."""
    seed = ", and rests on a seed" if rests_on_seed else ""
    if isinstance(requirement, PopulationModel):
        return _POPULATION
    if isinstance(requirement, Limit):
        if requirement.info.needs_original and paired is None:
            return "it compares with the original: pass the original and the private half"
        if audit is None and "household" in {*requirement.info.options} - {*requirement.options}:
            return "who lives together is in the private half"
        given = [requirement.options.get(name) for name in private_names_of(requirement.key)]
    else:
        if requirement.needs_audit and audit is None:
            return f"its evidence is in the private half{seed}"
        given = [getattr(requirement, name) for name in private_names_of(requirement.model)]
    if any(isinstance(value, str) for value in given):
        return "a file that it names lies outside the release, and is not opened"
    return None


def _unlikely(recorded: Mapping[str, Any], requirement: Requirement, masked: Table) -> str:
    """Why a claim that cannot be measured still cannot hold; empty if it might."""
    measured = recorded["measured"]
    if isinstance(requirement, Limit):
        # a share is rounded, so it may lie beyond the limit; other values are not published
        share = requirement.info.limits == (0, 1)
        possible = measured is None or (share and 0 <= measured <= 1)
        return "" if possible else "it states a value that the measure cannot have"
    if not requirement.accepts(measured):
        return "it states a value that does not reach what it requires"
    if not isinstance(requirement, PopulationModel):
        requirement.check(masked)  # raises for what no masking of such a table can reach
    return ""


def _measured_again(
    recorded: Mapping[str, Any],
    requirement: Requirement,
    masked: Table,
    paired: tuple[Table, Table] | None,
    accept_seed: bool,
) -> Outcome:
    if recorded["needs_original"] and paired is not None:
        claim = make_claim(requirement, paired[1], paired[0])
    else:
        claim = make_claim(requirement, masked, None, accept_seed=accept_seed)
    finding = finding_of(requirement.threshold, claim.published)
    if claim.published is None or recorded["measured"] is None:
        # a share of the original is not published if the number of removals is not
        unpublished = recorded["needs_original"] or claim.published is None
        same = recorded["measured"] is None and unpublished
    else:
        same = close(claim.published, recorded["measured"])
    if not same:
        return False, f"{finding}, but the release states another value"
    if claim.rests_on_seed != recorded["rests_on_seed"]:
        return False, f"{finding}, but the release is wrong about whether it rests on a seed"
    swapping = swapping_of(*paired) if paired is not None and claim.bounds_links else None
    if swapping is not None and refutes(swapping, claim):
        return False, f"{finding}, but {swapping.sentence}"
    if claim.rests_on_seed:
        finding += ", with a seed: anyone who learns it can undo the release"
    return claim.holds, finding


def finding_of(required: float, measured: float | None) -> str:
    """A required and a measured value, in words; None if the measured one is not published."""
    shown = "a value that is not published" if measured is None else f"{measured:g}"
    return f"required {required:g}, measured {shown}"


def close(found: float, stated: float) -> bool:
    """Whether two numbers are equal up to rounding."""
    return math.isclose(found, stated, rel_tol=1e-9, abs_tol=1e-12)
