"""What the mixed-ml study calls its measures, and what it reads from their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.study._design import ORIGINAL
from shoal.study._results import Results

#: Which columns are quasi-identifiers, and are swapped.
RULES = ("part", "all")
ATTACKS = ("distance", "model", "probabilistic")
#: What a partly and a fully informed intruder know.
KNOWLEDGE = ("part", "everything")
#: What is known to the intruder whom the paper holds against each choice of columns.
KNOWN_OF = {"part": "part", "all": "everything"}
SWAPS = ("gower", "ahmad-dey")
GENERALIZED = ("k-anonymity", "l-diversity", "t-closeness")
LEARNERS = (
    "logistic-regression",
    "decision-tree",
    "random-forest",
    "svm",
    "multi-layer-perceptron",
)
#: The budgets ε of the network.
BUDGETS = (3.0, 1.0, 0.5, 0.25)
NETWORK = "dp-sgd"
LOSS, LINKS, MEMBERSHIP = "loss of mutual information", "row links", "membership"


def named(table: str, rule: str) -> str:
    """What a table is called under a choice of columns.

    Examples
    --------
    >>> named("cmc", "part")
    'cmc, part'
    """
    return f"{table}, {rule}"


def parted(name: str) -> tuple[str, str]:
    """A table and the choice of columns; all, where a table of somebody's own says nothing.

    Examples
    --------
    >>> parted("cmc, part"), parted("patients, 2020")
    (('cmc', 'part'), ('patients, 2020', 'all'))
    """
    table, _, rule = name.rpartition(", ")
    return (table, rule) if rule in RULES else (name, "all")


def guessed(attack: str, known: str) -> str:
    """The name of an attack on the secret by an intruder who knows so much."""
    return f"secrets guessed by {attack}, {known} known"


def f1_of(learner: str, epsilon: float | None = None) -> str:
    """The name of a learner's score."""
    return f"F1 of {learner}" + ("" if epsilon is None else f", ε = {epsilon:g}")


def short(attack: str) -> str:
    """What an attack is called where people read."""
    return {"model": "random forest", "probabilistic": "probabilistic linkage"}.get(attack, attack)


#: The scores of the learners that are trained on masked records.
F1 = tuple(f1_of(name) for name in LEARNERS)


@dataclass(frozen=True)
class Reading:
    """One result with what it is the result of, apart as the verdict asks for it."""

    table: str
    rule: str
    family: str
    k: int | None
    seed: int
    measure: str
    value: float
    baseline: float
    details: dict[str, Any]


Value = Callable[[Reading], float]


def value_of(reading: Reading) -> float:
    """What was measured."""
    return reading.value


def baseline_of(reading: Reading) -> float:
    """What it is compared with."""
    return reading.baseline


def lift_of(reading: Reading) -> float:
    """The part of what a blind guess does not get that is guessed."""
    blind = reading.baseline
    return (reading.value - blind) / (1 - blind) if blind < 1 else 0.0


def lost_of(reading: Reading) -> float:
    """How much worse than the original."""
    return reading.baseline - reading.value


def relative_of(reading: Reading) -> float:
    """The loss over what there is to lose."""
    return float(reading.details.get("relative", math.nan))


def precision_of(reading: Reading) -> float:
    """The share of members among those who are taken for members."""
    found = reading.details.get("precision")
    return math.nan if found is None else float(found)


@dataclass(frozen=True)
class Readings:
    """All of them, with ways to choose some and to average."""

    all: tuple[Reading, ...]

    @classmethod
    def of(cls, results: Results) -> Readings:
        """The results that have a value."""
        found = []
        for row in results.done:
            table, rule = parted(row.table)
            baseline, details = row.facts.get("baseline"), row.facts.get("details") or {}
            found.append(
                Reading(
                    table,
                    rule,
                    row.family,
                    row.parameters.get("k"),
                    row.seed,
                    row.measure,
                    row.value,
                    math.nan if baseline is None else float(baseline),
                    dict(details),
                )
            )
        return cls(tuple(found))

    def __iter__(self) -> Iterator[Reading]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def where(self, **wanted: Any) -> Readings:
        """Those whose fields have these values; a tuple stands for one of several."""

        def fits(reading: Reading) -> bool:
            return all(
                getattr(reading, name) in (value if isinstance(value, tuple) else (value,))
                for name, value in wanted.items()
            )

        return Readings(tuple(reading for reading in self.all if fits(reading)))

    def known(self, name: str) -> list[Any]:
        """What a field has, without what is not there, in order."""
        return sorted({found for each in self.all if (found := getattr(each, name)) is not None})

    def mean(self, value: Value = value_of) -> float:
        """The mean over tables of the mean on each: every table counts alike."""
        return _mean(
            _mean(value(reading) for reading in self.where(table=table))
            for table in self.known("table")
        )

    def means_where_all_are(self, *choices: Mapping[str, Any]) -> list[float]:
        """The mean of each choice over the tables that every one of them has results of.

        A study that was stopped has some variants on fewer tables than others.
        """
        chosen = [self.where(**choice) for choice in choices]
        shared = set.intersection(*(set(some.known("table")) for some in chosen))
        return [some.where(table=tuple(shared)).mean() for some in chosen]

    def gap(self, one: str, other: str) -> float:
        """How much higher the other family's mean is; NaN where one is missing."""
        return self.where(family=other).mean() - self.where(family=one).mean()

    def by_trial(self, tables: Sequence[str], value: Value = value_of) -> list[float]:
        """The mean of each trial that has come to all of these tables."""
        trials = [self.where(seed=seed) for seed in self.known("seed")]
        return [trial.mean(value) for trial in trials if trial.known("table") == sorted(tables)]

    def reduction(self, attack: str, rule: str, families: tuple[str, ...]) -> float:
        """The mean over tables of 1 - AD(masked) / AD(original)."""
        asked = self.where(rule=rule, measure=guessed(attack, KNOWN_OF[rule]))
        found = []
        for table in asked.known("table"):
            mine = asked.where(table=table)
            before = mine.where(family=ORIGINAL).mean()
            after = mine.where(family=families).mean()
            found.append(1 - after / before if before > 0 else math.nan)
        return _mean(found)


def _mean(values: Iterable[float]) -> float:
    """The mean of the numbers among some; NaN without any."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan
