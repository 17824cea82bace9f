"""Inference: a secret read from the nearest released record, compared with a control group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.risk._options import Closeness, ColumnName, Control, Count, Draw, Known, risk
from shoal.risk.attacks._success import (
    SAMPLE,
    Attack,
    Rates,
    ReleasedRegions,
    joint_counts,
    labels_of_persons,
    released_regions,
    risk_above,
)
from shoal.risk.linkage._intruder import known_columns
from shoal.risk.linkage._right_links import Rate, about_sampled
from shoal.table import ReleasedColumn, Table

if TYPE_CHECKING:
    from shoal.kernels.boxes.nearest_regions import Secrets


@risk(
    "risk that a sensitive value is inferred from the release",
    sensitive=True,
    on_request="without people who were not in the table, its result may hold for everyone; "
    "ask for it by name, with a control",
)
def inference(
    original: Table,
    masked: Table,
    *,
    secret: ColumnName = None,
    known: Known = None,
    closeness: Closeness = 0.05,
    control: Control = None,
    sample: Count = SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """How often the nearest released record reveals a person's sensitive value.

    An intruder knows some columns of a person and takes the sensitive value of the nearest released
    record, or of any of several equally near ones. A guess that is also right for people who were
    not in the table is knowledge about the population, which the table does not disclose.

    The value is (r - b) / (1 - b). r is the share of right guesses. b is the share for the best
    single guess for everyone, or for the attack on the control group if that is higher. With
    several sensitive columns, the one with the highest risk counts. People whose secret is missing
    are left out. If a person has several records, one of them is known, drawn by a public key, and
    a guess is right if it is the secret in any of them.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking, or a synthetic one.
    secret : str, optional
        The sensitive column; by default all of them.
    known : list of str, optional
        The columns that the intruder knows. Default: the quasi-identifiers.
    closeness : float
        How far a guessed number or date may be from the true one and still be right, as a share of
        the range of the original.
    control : Table, optional
        People of the same population who were not in the table.
    sample : int
        At most this many people of each group are attacked. Released records are never sampled.
    random_state : int, optional
        Another number draws another sample. It is not a secret.

    References
    ----------
    Article 29 Working Party (2014), Opinion 05/2014 on anonymisation techniques
    <https://ec.europa.eu/justice/article-29/documentation/opinion-recommendation/files/2014/wp216_en.pdf>,
    section 2.2.2. Giomi, Boenisch, Wehmeyer, Tasnádi (2023), A unified framework for quantifying
    privacy risk in synthetic data <https://doi.org/10.56553/popets-2023-0055>, section 4.3.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 48, 52], "ill": ["flu", "flu", "gout", "mumps"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> inference(table, table).value
    1.0
    """
    attack = Attack("inference", original, masked, control)
    secrets = _secrets(original, secret)
    names = [name for name in known_columns(original, masked, known) if name not in secrets]
    if not names:
        raise InputError(
            "The intruder knows nothing but the secret. Name other columns as 'known'."
        )
    read = attack.readable_columns([*names, *secrets])
    attack.warnings += about_sampled(original, masked)
    targets = [column for column in read if column.name in secrets]
    steps = [column for column in read if column.name not in secrets]
    details: dict[str, Any] = {"known": [column.name for column in steps]}
    if not targets or not steps:
        nothing = "Nothing was released from which sensitive values could be guessed."
        return attack.nothing_found(nothing, details | {"persons": 0})
    place = released_regions(steps, masked)
    groups = attack.rows(int(sample), random_state)
    owners = original.persons
    if control is not None:
        owners = np.append(owners, original.person_count + control.persons)
    rates = {
        target.name: _rates(target, place, groups, owners, float(closeness)) for target in targets
    }
    risks = {name: risk_above(found.attack, found.baseline)[0] for name, found in rates.items()}
    worst = max(risks, key=lambda name: (risks[name], name))
    details |= {"persons": len(groups[0]), "secret": worst, "columns": risks}
    return attack.measurement(rates[worst], details)


def _secrets(original: Table, secret: str | None) -> tuple[str, ...]:
    if secret is None:
        if not original.roles.sensitive:
            raise InputError(
                "Inference needs a sensitive column, and the original declares none. Name it in "
                "the roles or as 'secret'."
            )
        return original.roles.sensitive
    return tuple(original.chosen([secret]))


def _rates(
    target: ReleasedColumn,
    place: ReleasedRegions,
    groups: tuple[Integers, Integers | None],
    owners: Integers,
    closeness: float,
) -> Rates:
    """How often the secret is guessed."""
    from shoal.kernels.boxes.nearest_regions import nearest_guesses

    secrets = _label_secrets(target, closeness)
    members = joint_counts(place.classes, target.labels)

    def rate(persons: Integers) -> Rate:
        # the others have no secret to guess
        places, own = labels_of_persons(persons, owners, target.values)
        if not len(own):
            return Rate(0.0)
        found = nearest_guesses(place.regions, place.codes(persons[places]), members, secrets, own)
        return Rate.of(_of_any(target, places, found))

    persons, others = groups
    blind = _blind(target, secrets, *labels_of_persons(persons, owners, target.values))
    return Rates(rate(persons), blind, None if others is None else rate(others))


def _of_any(target: ReleasedColumn, persons: Integers, chances: Floats) -> Floats:
    """The chance to guess any of a person's secrets; for numbers, the likeliest one."""
    starts = np.flatnonzero(np.diff(persons, prepend=-1))
    reduced = np.maximum if target.ordered else np.add
    found: Floats = reduced.reduceat(chances, starts)
    return np.minimum(found, 1.0)


def _label_secrets(target: ReleasedColumn, closeness: float) -> Secrets:
    """What each released label reveals about the secret."""
    from shoal.kernels.boxes.nearest_regions import Secrets
    from shoal.kernels.boxes.predicates import Runs

    count = len(target.starts) - 1
    guesses, worth = np.full(count, np.inf), np.zeros(count)
    some = np.flatnonzero(np.diff(target.starts) > 0)
    if len(some):
        first, last = target.low[target.starts[some]], target.high[target.starts[some + 1] - 1]
        guesses[some] = (target.places[first] + target.places[last]) / 2
        sizes = np.add.reduceat(target.high - target.low + 1, target.starts[some])
        worth[some] = 1.0 / sizes
    runs = Runs(target.starts, target.low, target.high)
    return Secrets(runs, target.places, target.ordered, guesses, worth, closeness)


def _blind(target: ReleasedColumn, secrets: Secrets, persons: Integers, own: Integers) -> Rate:
    """How often the guess that fits most released records is right."""
    released = target.labels[target.labels >= 0]
    if len(released) == 0 or len(own) == 0:
        return Rate(0.0)
    right: Floats
    if target.ordered:
        guesses = np.sort(secrets.guesses[released])
        reach = secrets.closeness + 1e-12
        fits = np.searchsorted(guesses, guesses + reach, side="right")
        best = guesses[np.argmax(fits - np.searchsorted(guesses, guesses - reach))]
        right = (np.abs(target.places[own] - best) <= reach).astype(np.float64)
    else:
        weight = np.bincount(released, minlength=len(secrets.worth)) * secrets.worth
        per_run = np.repeat(weight, np.diff(target.starts))
        mass = np.zeros(len(target.places) + 1)
        np.add.at(mass, target.low, per_run)
        np.add.at(mass, target.high + 1, -per_run)
        right = (own == np.argmax(np.cumsum(mass)[:-1])).astype(np.float64)
    return Rate.of(_of_any(target, persons, right))
