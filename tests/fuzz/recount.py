"""Claims of a release counted again from the bytes of its public half, in plain Python.

Nothing here is shared with Shoal: classes are formed by the texts that a reader sees, and every
model is its definition, written down once more. What the public half cannot tell is listed with
the reason. Where a person has several rows, ``persons`` says whose row each is: then a class, and
a value in a class, is as large as the number of different people who have it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .public_half import Public

#: Sums of shares are rounded; what misses its bound by less meets it.
HAIR = 1e-9

Key = tuple[str | None, ...]
Shares = Mapping[str | None, float]


class NotPublic(Exception):
    """The public half does not tell what is needed; the text is the reason."""


@dataclass(frozen=True)
class Recount:
    """The classes of a public half, and what follows from them."""

    public: Public
    persons: Sequence[Any] | None = None
    #: For hierarchical closeness: from each value of a column up to the root.
    hierarchies: Mapping[str, Mapping[str | None, Sequence[str]]] | None = None

    @cached_property
    def keys(self) -> list[Key]:
        """What an intruder may know of each row."""
        names = self.public.playing("quasi_identifiers")
        columns = [self.public.columns[name] for name in names]
        return list(zip(*columns, strict=True)) if names else [()] * self.public.rows

    @cached_property
    def classes(self) -> dict[Key, list[int]]:
        """The rows of each class."""
        found: dict[Key, list[int]] = defaultdict(list)
        for row, key in enumerate(self.keys):
            found[key].append(row)
        return dict(found)

    def people(self, rows: Sequence[int]) -> int:
        """How many people the rows are of."""
        return len(rows) if self.persons is None else len({self.persons[row] for row in rows})

    def crowd(self, key: Key, missing: str) -> list[int]:
        """The rows that agree with a class: equal, or with nothing agreeing with everything."""
        if missing == "own":
            return self.classes[key]
        if self.persons is not None:
            raise NotPublic("with wildcards at least so many persons agree, not just so many")
        return [row for other, rows in self.classes.items() if _agree(key, other) for row in rows]

    def sizes(self, missing: str = "own") -> list[int]:
        """For each row the number of people that it may be of."""
        size = {key: self.people(self.crowd(key, missing)) for key in self.classes}
        return [size[key] for key in self.keys]

    def counts(self, column: str, rows: Sequence[int]) -> dict[str | None, int]:
        """How many people of the rows have each value."""
        cells = self.public.columns[column]
        if self.persons is None:
            return dict(Counter(cells[row] for row in rows))
        return dict(
            Counter(value for value, _ in {(cells[row], self.persons[row]) for row in rows})
        )

    def shares(self, column: str, rows: Sequence[int]) -> dict[str | None, float]:
        """The share of each value among those of the people of the rows, who may have several."""
        counts = self.counts(column, rows)
        return {value: count / sum(counts.values()) for value, count in counts.items()}

    def rates(self, column: str, rows: Sequence[int]) -> dict[str | None, float]:
        """The share of the people of the rows who have each value."""
        people = self.people(rows)
        return {value: count / people for value, count in self.counts(column, rows).items()}

    def of_people(self, by_row: Sequence[float]) -> list[float]:
        """The largest number among the rows of each person."""
        if self.persons is None:
            return list(by_row)
        largest: dict[Any, float] = {}
        for person, value in zip(self.persons, by_row, strict=True):
            largest[person] = max(largest.get(person, value), value)
        return list(largest.values())

    def had_by_all(self, column: str, rows: Sequence[int]) -> bool:
        """Whether everybody among the rows has one and the same value."""
        return max(self.counts(column, rows).values()) == self.people(rows)

    def everybody(self, column: str) -> dict[str | None, float]:
        return self.shares(column, range(self.public.rows))

    def secrets(self, column: str | None) -> list[str]:
        """The column that a requirement names, or all sensitive ones."""
        return [column] if column is not None else self.public.playing("sensitive")

    def worst(self, column: str | None, of_class: Callable[[str, list[int]], float]) -> list[float]:
        """What a model says of each class in each column."""
        return [
            of_class(name, rows) for name in self.secrets(column) for rows in self.classes.values()
        ]


def _agree(one: Key, other: Key) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


# -- models: the level, and whether it suffices


def _k_anonymity(
    found: Recount, k: int, missing: str = "own", of: str = "persons"
) -> tuple[float, bool]:
    level = min(found.sizes(missing) if of == "persons" else _histories(found))
    return level, level >= k


def _histories(found: Recount) -> list[int]:
    """For each person how many have rows in the same classes, equally often."""
    owners = range(found.public.rows) if found.persons is None else found.persons
    events: dict[Any, Counter[Key]] = defaultdict(Counter)
    for owner, key in zip(owners, found.keys, strict=True):
        events[owner][key] += 1
    shared = Counter(frozenset(history.items()) for history in events.values())
    return [shared[frozenset(history.items())] for history in events.values()]


def _l_diversity(
    found: Recount,
    l: float,  # noqa: E741 - its name everywhere
    kind: str = "distinct",
    c: float = 0.0,
    column: str | None = None,
) -> tuple[float, bool]:
    def of_class(name: str, rows: list[int]) -> float:
        counts = sorted(found.counts(name, rows).values(), reverse=True)
        if kind == "distinct":
            return 1 if found.had_by_all(name, rows) else len(counts)
        if len(counts) > 1 and found.had_by_all(name, rows):
            return 0 if kind == "recursive" and counts[0] >= c * sum(counts) - HAIR else 1
        if kind == "entropy":
            return math.exp(-math.fsum(n / sum(counts) * math.log(n / sum(counts)) for n in counts))
        # the largest l with r1 < c (r_l + … + r_m)
        tails = [sum(counts[at:]) for at in range(len(counts))]
        return sum(counts[0] < c * tail - HAIR for tail in tails)

    level = min(found.worst(column, of_class))
    return level, level >= l - HAIR


def _t_closeness(
    found: Recount, t: float, distance: str = "equal", column: str | None = None
) -> tuple[float, bool]:
    def of_class(name: str, rows: list[int]) -> float:
        moved = _DISTANCES[distance](found, name, found.shares(name, rows), found.everybody(name))
        there = found.rates(name, range(found.public.rows))
        gain = max(rate - there[value] for value, rate in found.rates(name, rows).items())
        if distance == "ordered":
            gain = gain / (len(there) - 1) if len(there) > 1 else 0.0
        elif distance == "hierarchical":
            gain /= len(next(iter((found.hierarchies or {})[name].values())))
        return max(moved, gain)

    level = max(found.worst(column, of_class))
    return level, level <= t + HAIR


def _equal(found: Recount, name: str, here: Shares, there: Shares) -> float:
    return math.fsum(abs(here.get(value, 0.0) - share) for value, share in there.items()) / 2


def _ordered(found: Recount, name: str, here: Shares, there: Shares) -> float:
    try:
        values = found.public.in_order(name)
    except ValueError as reason:
        raise NotPublic(str(reason)) from None
    moved, ahead = [], 0.0
    for value in values[:-1]:
        ahead += here.get(value, 0.0) - there[value]
        moved.append(abs(ahead))
    return math.fsum(moved) / (len(values) - 1) if len(values) > 1 else 0.0


def _hierarchical(found: Recount, name: str, here: Shares, there: Shares) -> float:
    """Level by level: what is too much below a node meets what is missing below it."""
    if not found.hierarchies or name not in found.hierarchies:
        raise NotPublic("the hierarchy is private")
    above = found.hierarchies[name]
    height = len(next(iter(above.values())))
    moved = []
    # of each node: its path from the root, and what is too much and too little below it
    loose = {
        (*reversed(above[value]), value): here.get(value, 0.0) - share
        for value, share in there.items()
    }
    for level in range(1, height + 1):
        below: dict[Any, list[float]] = defaultdict(list)
        for path, extra in loose.items():
            below[path[:-1]].append(extra)
        for extras in below.values():
            much = math.fsum(extra for extra in extras if extra > 0)
            little = math.fsum(-extra for extra in extras if extra < 0)
            moved.append(level / height * min(much, little))
        loose = {path: math.fsum(extras) for path, extras in below.items()}
    return math.fsum(moved)


_DISTANCES = {"equal": _equal, "ordered": _ordered, "hierarchical": _hierarchical}


def _alpha_k(found: Recount, alpha: float, k: int, column: str | None = None) -> tuple[float, bool]:
    def of_class(name: str, rows: list[int]) -> float:
        people = found.people(rows)
        return max(found.counts(name, rows).values()) / people if people >= k else math.inf

    level = max(found.worst(column, of_class))
    return level, level <= alpha + HAIR


def _beta_likeness(
    found: Recount, beta: float, enhanced: bool = False, column: str | None = None
) -> tuple[float, bool]:
    def of_class(name: str, rows: list[int]) -> float:
        gains = []
        for shares in (found.shares, found.rates):
            there = shares(name, range(found.public.rows))
            for value, share in shares(name, rows).items():
                gain = share / there[value] - 1
                impossible = enhanced and gain > -math.log(there[value]) + HAIR
                gains.append(math.inf if impossible else max(0.0, gain))
        return max(gains)

    level = max(found.worst(column, of_class))
    return level, level <= beta + HAIR


def _delta_disclosure(
    found: Recount, delta: float, column: str | None = None
) -> tuple[float, bool]:
    def of_class(name: str, rows: list[int]) -> float:
        return max(
            abs(math.log(here[value] / share)) if value in here else math.inf
            for shares in (found.shares, found.rates)
            for here in [shares(name, rows)]
            for value, share in shares(name, range(found.public.rows)).items()
        )

    level = max(found.worst(column, of_class))
    return level, level < delta - HAIR


def _average_risk(found: Recount, max: float) -> tuple[float, bool]:
    risks = found.of_people([1 / size for size in found.sizes()])
    level = math.fsum(risks) / len(risks)
    return level, level <= max + HAIR


def _population_uniqueness(
    found: Recount, max: float, sampling_fraction: float, estimator: str = "dankar"
) -> tuple[float, bool]:
    level = _unique_in_population(found, sampling_fraction, estimator)
    return level, level <= max + HAIR


def _unique_in_population(found: Recount, fraction: float, estimator: str) -> float:
    sizes = Counter(found.people(rows) for rows in found.classes.values())
    if not sizes[1]:
        return 0.0
    if estimator != "zayatz":
        raise NotPublic("the estimator is fitted by a search")
    records = sum(size * number for size, number in sizes.items())
    people = round(records / fraction)
    # how likely a class of the population leaves one record in the sample
    once = {
        size: number * size * math.comb(people - size, records - 1) / math.comb(people, records)
        for size, number in sizes.items()
    }
    return once[1] / math.fsum(once.values()) * sizes[1] / records


def _probabilistic_k(found: Recount, k: int) -> tuple[float, bool]:
    if found.public.facts["swapping"] is not None:
        raise NotPublic("the groups of the swap are private")
    return _k_anonymity(found, k)


MODELS: dict[str, Callable[..., tuple[float, bool]]] = {
    "alpha_k_anonymity": _alpha_k,
    "average_risk": _average_risk,
    "beta_likeness": _beta_likeness,
    "delta_disclosure": _delta_disclosure,
    "k_anonymity": _k_anonymity,
    "l_diversity": _l_diversity,
    "population_uniqueness": _population_uniqueness,
    "probabilistic_k_anonymity": _probabilistic_k,
    "t_closeness": _t_closeness,
}

#: What a stranger cannot count, with the reason.
NOT_PUBLIC: dict[str, str] = {
    "delta_presence": "the population is private",
    "differential_privacy": "how records were drawn is private",
    "k_map": "the population is private",
    "household_risk": "it is an estimate over households",
    "individual_risk": "it is an estimate by weights",
    "similarity": "how alike two values are is the business of the measure",
    "suda": "its scores are the business of the measure",
}


# -- limits on measures


def _prosecutor(found: Recount, missing: str = "own") -> float:
    return 1 / min(found.sizes(missing))


def _marketer(
    found: Recount, missing: str = "own", sampling_fraction: float | None = None
) -> float:
    share = 1.0 if sampling_fraction is None else sampling_fraction
    risks = found.of_people([share / size for size in found.sizes(missing)])
    return math.fsum(risks) / len(risks)


def _journalist(
    found: Recount, missing: str = "own", sampling_fraction: float | None = None
) -> float:
    if sampling_fraction is None:
        raise NotPublic("the weights are summed up by class")
    return sampling_fraction / min(found.sizes(missing))


def _at_risk(found: Recount, missing: str = "own", threshold: float = 0.2) -> float:
    risks = found.of_people([1 / size for size in found.sizes(missing)])
    return sum(risk > threshold for risk in risks) / len(risks)


def _uniqueness(found: Recount, missing: str = "own") -> float:
    alone = found.of_people([size == 1 for size in found.sizes(missing)])
    return sum(alone) / len(alone)


def _homogeneity(found: Recount, missing: str = "own", column: str | None = None) -> float:
    def certain(name: str, rows: list[int]) -> bool:
        return found.had_by_all(name, rows)

    return _marked(found, missing, column, certain)


def _skewness(
    found: Recount, missing: str = "own", column: str | None = None, threshold: float = 0.2
) -> float:
    def skewed(name: str, rows: list[int]) -> bool:
        here, there = found.shares(name, rows), found.everybody(name)
        return _equal(found, name, here, there) > threshold + HAIR

    return _marked(found, missing, column, skewed)


def _marked(
    found: Recount, missing: str, column: str | None, mark: Callable[[str, list[int]], bool]
) -> float:
    """The share of the people with rows in classes that are marked in at least one column."""
    marks = {
        key: any(mark(name, found.crowd(key, missing)) for name in found.secrets(column))
        for key in found.classes
    }
    marked = found.of_people([marks[key] for key in found.keys])
    return sum(marked) / len(marked)


def _estimated_uniques(
    found: Recount,
    sampling_fraction: float | None = None,
    estimator: str = "dankar",
    missing: str = "own",
) -> float:
    if sampling_fraction is None or missing != "own":
        raise NotPublic("the estimator is fitted by a search")
    return _unique_in_population(found, sampling_fraction, estimator)


MEASURES: dict[str, Callable[..., float]] = {
    "homogeneity": _homogeneity,
    "journalist_risk": _journalist,
    "marketer_risk": _marketer,
    "population_uniqueness": _estimated_uniques,
    "prosecutor_risk": _prosecutor,
    "records_at_risk": _at_risk,
    "skewness": _skewness,
    "uniqueness": _uniqueness,
}


# -- a whole release


@dataclass(frozen=True)
class Outcome:
    """What a recount came to: claims that were counted, those that cannot be, and what is wrong."""

    counted: tuple[str, ...]
    not_public: Mapping[str, str]
    wrong: tuple[str, ...]


def recount(
    public: Public,
    *,
    persons: Sequence[Any] | None = None,
    hierarchies: Mapping[str, Mapping[str | None, Sequence[str]]] | None = None,
) -> Outcome:
    """Count everything that a release states again; what is wrong is said in one line each."""
    found = Recount(public, persons, hierarchies)
    counted, not_public, wrong = [], {}, []
    for claim in public.facts["claims"]:
        name = claim["claim"]
        try:
            level, holds = level_of(found, claim)
        except NotPublic as reason:
            not_public[name] = str(reason)
            continue
        counted.append(name)
        if not _close(level, claim["measured"]):
            wrong.append(f"{name}: the release measured {claim['measured']!r}, and it is {level!r}")
        if not (holds and claim["holds"] is True):
            wrong.append(f"{name}: it is {level!r} and does not hold")
    for name, stated in public.facts["measured"].items():
        level = _stated(found, name)
        counted.append(name)
        if not _close(level, stated):
            wrong.append(f"{name}: the release states {stated!r}, and it is {level!r}")
    if public.playing("identifiers"):
        wrong.append("identifiers are in the data")
    return Outcome(tuple(counted), not_public, tuple(wrong))


def level_of(found: Recount, claim: Mapping[str, Any]) -> tuple[float, bool]:
    """The level of one claim and whether it holds; NotPublic where a stranger cannot say."""
    name, asked = claim["claim"], claim["requirement"]
    bound, _, measure = name.partition("_")
    reason = NOT_PUBLIC.get(name) or NOT_PUBLIC.get(measure)
    if claim["needs_original"]:
        reason = "it compares with the original"
    if reason is not None:
        raise NotPublic(reason)
    if name in MODELS:
        given = asked if isinstance(asked, Mapping) else {_FIRST[name]: asked}
        return MODELS[name](found, **given)
    options = dict(asked) if isinstance(asked, Mapping) else {"value": asked}
    limit = options.pop("value")
    level = MEASURES[measure](found, **options)
    return level, level <= limit + HAIR if bound == "max" else level >= limit - HAIR


#: What a requirement that is one number is the value of.
_FIRST = {
    "average_risk": "max",
    "beta_likeness": "beta",
    "delta_disclosure": "delta",
    "k_anonymity": "k",
    "l_diversity": "l",
    "probabilistic_k_anonymity": "k",
    "t_closeness": "t",
}


def _stated(found: Recount, name: str) -> float:
    if name == "k":
        return min(found.sizes())
    if name == "classes":
        return len(found.classes)
    if name == "rarest_history":
        return min(_histories(found))
    return MEASURES[name](found)


def _close(level: float, stated: Any) -> bool:
    return isinstance(stated, (int, float)) and math.isclose(
        level, stated, rel_tol=1e-9, abs_tol=1e-9
    )
