"""Attribute disclosure: how often a person's secret is guessed from a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np

from shoal.errors import InputError, quoted
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.parameters import OneOf
from shoal.risk._options import Control, Count, Draw, Known, Learner, Names, Share, risk
from shoal.risk.attacks._learnt_guesses import (
    MembersAndControl,
    SecretLabels,
    coded_column,
    features_of,
    learn,
    members_and_control,
    secret_labels,
    training_rows,
    unpaired_intruder,
)
from shoal.risk.attacks._success import labels_of_persons
from shoal.risk.attacks._swapped_groups import rank_matching
from shoal.risk.linkage._distance_linkage import distance_links
from shoal.risk.linkage._intruder import SAMPLE, Intruder, one_row_each
from shoal.risk.linkage._probabilistic_linkage import probabilistic_links
from shoal.risk.linkage._right_links import (
    Links,
    Rate,
    about_coarser,
    about_renamed,
    about_sampled,
    correlated_links,
    placed,
)
from shoal.risk.linkage._similarity_linkage import similarity_links
from shoal.table import Table, owned_pairs

_LINKAGES: dict[str, Callable[..., Links]] = {
    "distance": distance_links,
    "probabilistic": probabilistic_links,
    "similarity": similarity_links,
}
_ATTACKS = ("model", "distance", "probabilistic", "similarity", "rank-matching")
Attack = Annotated[str, OneOf(_ATTACKS)]


@dataclass(frozen=True, eq=False)
class _Guessed:
    """The result of an attack on one secret; ``right`` is the chance of each person's guess."""

    intruder: Intruder
    right: Floats
    blind: float
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())

    @cached_property
    def interval(self) -> list[float]:
        """The interval of the share, as that of a linkage."""
        return list(Rate.of(self.right, *correlated_links(self.intruder)).interval)

    @property
    def lift(self) -> float:
        """The share of right guesses among those that a blind guess would get wrong."""
        return _above(self.accuracy, self.blind)


@risk("share of secrets guessed", sensitive=True)
def attribute_inference(
    original: Table,
    masked: Table,
    *,
    secret: Names = None,
    known: Known = None,
    attack: Attack = "model",
    learner: Learner = "random-forest",
    tolerance: Share = 0.1,
    control: Control = None,
    sample: Count = SAMPLE,
    random_state: Draw = None,
) -> Measurement:
    """The share of people whose secret an intruder guesses right from what is known about them.

    An intruder knows some columns of every person in the original and guesses a sensitive one. The
    guess comes from a model trained on the masked table, from the record that a linkage finds (ties
    count by their share), or from matching ranks inside the groups of a swap. A guess is compared
    with the person's value in the original, so the rows of the tables need not be paired unless
    columns were made coarser. If a person has several records, one of them is known, drawn by a
    public key, and a guess is right if it is the secret in any of them.

    The baseline is the share of right guesses if the intruder guesses the most frequent released
    value for everyone. Only what exceeds it is disclosed through what the intruder knows. With
    several secrets, the value is that of the secret with the largest lift,
    (accuracy - baseline) / (1 - baseline). The details hold all of them.

    If a secret has an order and more than 20 different values, it is divided into parts with about
    equally many people each, and a guess is right if it is in the right part. A missing secret is
    a value of its own.

    Parameters
    ----------
    original : Table
        The table before masking.
    masked : Table
        The table after masking.
    secret : list of str, optional
        The columns that the intruder wants to learn. Default: the sensitive columns.
    known : list of str or str, optional
        The columns that the intruder knows: a list of names or, as for a linkage,
        ``"left-in-place"``, ``"informed"`` or ``"everything"``. Default: the quasi-identifiers.
    attack : {"model", "distance", "probabilistic", "similarity", "rank-matching"}
        How the secret is guessed. Matching ranks needs a swap, and its guess must be exact.
    learner : "random-forest" or estimator
        The model: any scikit-learn classifier or regressor. All models together learn from at most
        30,000 released records. If a secret has no order, a model learns its 100 most frequent
        values.
    tolerance : float
        For numbers and dates, the share of ranks that counts as one value.
    control : Table, optional
        People who were not in the original, for the model. What can be guessed about them too is
        knowledge about people in general.
    sample : int
        At most this many people are attacked, the same ones each time.
    random_state : int, optional
        Another number draws another sample of people. It is not a secret.

    References
    ----------
    Senavirathne, Torra (2021), Systematic evaluation of probabilistic k-anonymity for privacy
    preserving micro-data publishing and analysis <https://doi.org/10.5220/0010560703070320>,
    section on attribute disclosure. Domingo-Ferrer, Torra (2003), Disclosure risk assessment in
    statistical microdata protection via advanced record linkage
    <https://doi.org/10.1023/A:1025666923033>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> frame = pl.DataFrame({"age": [30, 31, 48, 48], "ill": ["no", "no", "yes", "yes"]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    >>> found = attribute_inference(table, table, attack="distance")
    >>> found.value, found.baseline
    (1.0, 0.5)
    """
    if control is not None and attack != "model":
        raise InputError(
            "Only the attack 'model' takes a control group; the other attacks assume that a "
            "person's record is in the release."
        )
    intruder = unpaired_intruder(
        original, masked, known=known, sample=sample, random_state=random_state
    )
    secrets = _secrets(original, secret)
    found: dict[str, _Guessed] = {}
    for name in secrets:
        hints = tuple(hint for hint in intruder.known if hint != name)
        if not hints:
            raise InputError(
                f"The intruder knows nothing but the secret '{name}' itself. Name other columns as "
                "'known'."
            )
        about = replace(intruder, known=hints)
        if name not in masked.columns:
            found[name] = _Guessed(about, np.zeros(len(intruder.persons)), 0.0, {"released": False})
        elif attack == "rank-matching":
            found[name] = _by_ranks(about, name)
        else:
            people = members_and_control(original, masked, control, [*about.released, name])
            labels = secret_labels(name, people, tolerance)
            if attack != "model" or not about.released:
                found[name] = _linked(about, people, labels, attack)
            else:
                training = training_rows(masked, about.own, len(secrets))
                found[name] = _by_model(about, people, labels, learner, training)
    return _attack_measurement(found, attack, len(masked))


def _linked(
    intruder: Intruder, people: MembersAndControl, labels: SecretLabels, attack: Attack
) -> _Guessed:
    """The secret of the record that a linkage finds, or a blind guess if nothing is known."""
    secrets, blind, facts = _of_persons(intruder, people, labels)
    if not intruder.released:
        frequent = _frequent(intruder, labels)
        right = secrets.right(frequent) / len(frequent)
        warning = "None of the columns that the intruder knows was released, so the guess is blind."
        return _Guessed(intruder, right, blind, facts, (warning,))
    # raises if a coarser column cannot be mapped
    messages = about_coarser(
        hint for hint in intruder.released if coded_column(hint, people).coarser
    )
    each = replace(
        intruder,
        persons=intruder.persons[secrets.of],
        own=intruder.own[secrets.of],
        secrets=(secrets.labels, labels.records),
    )
    links = _LINKAGES[attack](each)
    return _Guessed(intruder, secrets.summed(links.chances), blind, facts, messages)


def _by_model(
    intruder: Intruder,
    people: MembersAndControl,
    labels: SecretLabels,
    learner: Any,
    training: Integers,
) -> _Guessed:
    """The guess of a model that learned from some of the records."""
    _, blind, facts = _of_persons(intruder, people, labels)
    others = np.arange(people.members, len(people.own))
    others = others[one_row_each(people.persons[others], others)]
    rows = np.append(intruder.persons, others)
    # With a control group, both must be mapped to coarser values in the same way.
    columns = {
        hint: coded_column(hint, people, exactly=len(others) == 0).of(rows)
        for hint in sorted(intruder.released)
    }
    records, everybody = features_of(list(columns.values()), learner)
    messages = about_coarser(hint for hint, terms in columns.items() if terms.coarser)
    model = learn(
        learner, records[training], labels.records[training], intruder.masked.persons[training]
    )
    found = _Secrets.of_rows(rows, people, labels).right(model.guesses(everybody)[:, None])
    facts |= {"learnt_from": len(training), "own_accuracy": model.own_accuracy}
    right, of_others = found[: len(intruder.persons)], found[len(intruder.persons) :]
    if len(others):
        rate = Rate.of(of_others)
        facts["control"] = {
            "persons": len(others),
            "accuracy": rate.share,
            "interval": list(rate.interval),
            "above_control": _above(float(right.mean()), rate.share),
        }
    return _Guessed(intruder, right, blind, facts, (*messages, *model.warnings))


def _by_ranks(intruder: Intruder, name: str) -> _Guessed:
    """Match ranks inside the groups of a swap, for the persons whose records are released."""
    if not intruder.masked.pairs_with(intruder.original):
        raise InputError(
            "The attack 'rank-matching' needs the groups of a swap and paired rows, and the two "
            "tables do not have them. Mask the original with Shoal and measure the result before "
            "you save it and read it again."
        )
    found = rank_matching(intruder.original, intruder.masked, name, known=list(intruder.released))
    assert found.per_record is not None
    assert found.baseline is not None
    persons = intruder.original.rows_of_keys(intruder.masked.row_key)
    order = np.argsort(persons)
    about = replace(intruder, persons=persons[order], own=order)
    return _Guessed(about, found.per_record[order], found.baseline, {"released": True})


def _attack_measurement(found: dict[str, _Guessed], attack: Attack, records: int) -> Measurement:

    def how_bad(name: str) -> tuple[bool, float, float]:
        # a secret that was not released is never the worst one
        return found[name].facts["released"], found[name].lift, found[name].accuracy

    worst = max(found, key=how_bad)
    guessed = found[worst]
    original, masked = guessed.intruder.original, guessed.intruder.masked
    renamed = about_renamed(original, masked, [*guessed.intruder.known, *found])
    warnings = [*guessed.warnings, *renamed, *about_sampled(original, masked)]
    if guessed.interval[0] <= guessed.blind:
        warnings.append("The guesses are no better than always guessing the most frequent value.")
    return Measurement(
        "attribute_inference",
        guessed.accuracy,
        interval=(guessed.interval[0], guessed.interval[1]),
        baseline=guessed.blind,
        per_record=partial(placed, len(original), guessed.intruder.persons, guessed.right),
        details={
            "persons": len(np.unique(original.persons[guessed.intruder.persons])),
            "records": records,
            "attack": attack,
            "known": list(guessed.intruder.released),
            "secret": worst,
            "above_baseline": guessed.accuracy - guessed.blind,
            "lift": guessed.lift,
            "columns": {name: one.accuracy for name, one in found.items()},
            "secrets": {name: _facts(one) for name, one in found.items()},
        },
        warnings=tuple(warnings),
    )


def _facts(guessed: _Guessed) -> dict[str, Any]:
    return {
        "accuracy": guessed.accuracy,
        "interval": guessed.interval,
        "baseline": guessed.blind,
        "above_baseline": guessed.accuracy - guessed.blind,
        "lift": guessed.lift,
        **guessed.facts,
    }


def _above(share: float, blind: float) -> float:
    """The share of right guesses among those that blind guessing misses; 0 if it misses none."""
    return (share - blind) / (1 - blind) if blind < 1 else 0.0


def _frequent(intruder: Intruder, labels: SecretLabels) -> Integers:
    """The most frequent label by persons; several if there is a tie."""
    counts = np.bincount(owned_pairs(labels.records, intruder.masked.persons)[0])
    return np.flatnonzero(counts == counts.max())


@dataclass(frozen=True, eq=False)
class _Secrets:
    """The different labels of persons in all their records: ``labels`` of the person ``of``."""

    of: Integers
    labels: Integers
    persons: int

    @classmethod
    def of_rows(cls, rows: Integers, people: MembersAndControl, labels: SecretLabels) -> _Secrets:
        """The labels of some rows' persons; each row is of a different person."""
        return cls(*labels_of_persons(rows, people.persons, labels.people), len(rows))

    def summed(self, chances: Floats) -> Floats:
        """The chance that any of a person's labels is guessed."""
        return np.minimum(np.bincount(self.of, chances, minlength=self.persons), 1.0)

    def right(self, guesses: Integers) -> Floats:
        """How many guesses are right for each person: the same guesses for all, or their own."""
        own = np.broadcast_to(guesses, (self.persons, guesses.shape[-1]))[self.of]
        right = (own == self.labels[:, None]).sum(axis=1)
        return np.bincount(self.of, right, self.persons).astype(np.float64)


def _of_persons(
    intruder: Intruder, people: MembersAndControl, labels: SecretLabels
) -> tuple[_Secrets, float, dict[str, Any]]:
    """The persons' labels, the share guessed by the most frequent released value, and facts."""
    secrets = _Secrets.of_rows(intruder.persons, people, labels)
    frequent = _frequent(intruder, labels)
    blind = float(secrets.right(frequent).mean() / len(frequent))
    return secrets, blind, {"released": True, "values": labels.values, "parts": labels.parts}


def _secrets(original: Table, secret: Sequence[str] | None) -> list[str]:
    if secret is None:
        secret = original.roles.sensitive
        if not secret:
            raise InputError(
                "The original has no sensitive columns, so there is no secret to guess. Declare "
                "them in the roles, or name columns as 'secret'."
            )
    absent = [name for name in secret if name not in original.columns]
    if absent:
        raise InputError(f"The original has no column {quoted(absent)} to use as a secret.")
    return list(dict.fromkeys(secret))
