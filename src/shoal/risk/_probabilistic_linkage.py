"""Probabilistic linkage: agreement weighs more where it is rare among strangers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.risk._fellegi_sunter import MOST_STEPS, Estimate, Learnt, learn_weights
from shoal.risk._intruder import Integers, Intruder, intruder
from shoal.risk._links import Links, about_coarser, blind_links
from shoal.risk._one_to_one import MOST_PERSONS, one_to_one_chances
from shoal.risk._right_links import right_links
from shoal.risk._scored_links import SCORED_SAMPLE, Compared, best_scores, compared
from shoal.table import Table


@measure(
    "share of right links by agreement",
    direction="lower",
    limits=(0, 1),
    needs_original=True,
    pairs=True,
)
def probabilistic_linkage(
    original: Table,
    masked: Table,
    *,
    known: Sequence[str] | str | None = None,
    one_to_one: bool = False,
    estimate: Estimate = "by-person",
    sample: int = SCORED_SAMPLE,
    random_state: int | None = None,
) -> Measurement:
    """The share of persons who are linked to their own record by agreement of values.

    An intruder compares every person with every masked record: each known column agrees or not.
    Agreement weighs the logarithm of m/u, a difference that of (1-m)/(1-u), where m is how often
    the column agrees for a person and the own record, and u how often for any other record. Both
    are learnt from the tables alone, without knowing who is who. The record with the greatest sum
    is taken for the person's own; where t records have it, and the right one is among them, the
    link counts 1/t. A value that is missing on either side weighs nothing.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, made from ``original``.
    known : list of str or a word, optional
        The columns that the intruder knows: a list, or ``"quasi-identifiers"`` (the default),
        ``"left-in-place"``, ``"informed"`` or ``"everything"``.
    one_to_one : bool
        Whether no record is taken for two persons: the sum of weights over all links is made as
        great as it can be. For at most 3,000 persons.
    estimate : {"by-person", "by-pair"}
        How m and u are learnt, by expectation and maximisation over the counts of agreement
        patterns. ``"by-person"`` knows that a person has one record at most. ``"by-pair"`` is the
        mixture of the textbooks, which takes pairs one by one and estimates how many of them
        belong together; it easily finds kinds of people instead of persons.
    sample : int
        So many persons are linked at most; all masked records are candidates, always.
    random_state : int, optional
        Gives another sample. It is no secret.

    References
    ----------
    Fellegi, Sunter (1969), A theory for record linkage. Jaro (1989), Advances in record-linkage
    methodology as applied to matching the 1985 census of Tampa, Florida. Sadinle (2017),
    Bayesian estimation of bipartite matchings for record linkage, section 2.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 30, 48, 51], "sex": ["f", "m", "m", "m"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age", "sex"]))
    >>> probabilistic_linkage(table, table).value
    1.0
    """
    who = intruder(original, masked, known=known, sample=sample, random_state=random_state)
    links = probabilistic_links(who, *who.people, one_to_one=one_to_one, estimate=estimate)
    return right_links("probabilistic_linkage", who, links)


def probabilistic_links(
    who: Intruder,
    person_labels: Integers,
    record_labels: Integers,
    *,
    one_to_one: bool = False,
    estimate: Estimate = "by-person",
) -> Links:
    """The chance that the record with the greatest weight has the person's label."""
    from shoal.kernels.linkage.best_scores import scoring

    _check(who, one_to_one, estimate)
    if not who.released:
        return blind_links(who, person_labels, record_labels)
    both = compared(who)
    learnt = learn_weights(
        both.persons.codes,
        both.records.codes,
        both.sizes,
        presence=min(1.0, who.masked.person_count / who.original.person_count),
        estimate=estimate,
    )
    how = scoring(learnt.agreeing, learnt.differing, np.empty(0), gauss=False)
    if one_to_one:
        chances = one_to_one_chances(both, how, who.released, person_labels, record_labels)
    else:
        found = best_scores(who, both, how, person_labels, record_labels)
        chances = found.alike / found.ties
    warnings = (*about_coarser(both.coarser), *_about_learning(learnt))
    details = {"one_to_one": one_to_one, "estimate": estimate, **_details(who, both, learnt)}
    return Links(chances, details, warnings)


def _check(who: Intruder, one_to_one: bool, estimate: str) -> None:
    if not isinstance(one_to_one, (bool, np.bool_)):
        raise InputError("The option 'one_to_one' of a linkage must be true or false.")
    if estimate not in ("by-person", "by-pair"):
        raise InputError("The estimate of a linkage must be 'by-person' or 'by-pair'.")
    if one_to_one and len(who.persons) > MOST_PERSONS:
        raise InputError(
            f"One-to-one linkage is for at most {MOST_PERSONS:,} persons; got "
            f"{len(who.persons):,}: give a smaller sample."
        )


def _details(who: Intruder, both: Compared, learnt: Learnt) -> dict[str, object]:
    names = who.released
    return {
        "m": dict(zip(names, learnt.m.tolist(), strict=True)),
        "u": dict(zip(names, learnt.u.tolist(), strict=True)),
        "prevalence": learnt.prevalence,
        "steps": learnt.steps,
        "converged": learnt.converged,
        "learnt_from_persons": learnt.persons,
        "patterns": learnt.patterns,
        "different_records": len(both.sizes),
    }


def _about_learning(learnt: Learnt) -> tuple[str, ...]:
    if learnt.persons == 0:
        return (
            "There are too many patterns of agreement to learn from, so the weights are those that "
            "learning starts from.",
        )
    if not learnt.converged:
        return (f"The weights had not settled after {MOST_STEPS} steps of learning.",)
    return ()
