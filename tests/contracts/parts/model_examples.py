"""An example for every privacy model, and how its parameters depend on each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from shoal import Table
from shoal.models import PrivacyModel, discover_models

#: What there is, found once.
KNOWN_MODELS = discover_models()


@dataclass(frozen=True)
class ModelExample:
    """A model by its parameters; its tables have a sensitive column, and each is half of a
    population in which everybody occurs twice."""

    model: str
    parameters: dict[str, Any]
    #: Other parameters that cannot be met by a table of so many records, or why nothing is so.
    impossible: Callable[[int], dict[str, Any]] | str
    #: Why records that are all different need not violate it.
    holds_apart: str = ""
    #: Why it is the steps that make it hold, and not what the table looks like.
    by_steps: str = ""

    @property
    def id(self) -> str:
        said = ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.model}({said})"

    def make(self, table: Table | None = None, **changes: Any) -> PrivacyModel:
        """The model with these parameters, and with a population if a table is given."""
        given = self.parameters | changes
        if table is not None and "population" in given:
            given["population"] = _twice(table)
        return KNOWN_MODELS[self.model](**given)


@lru_cache(maxsize=64)
def _twice(table: Table) -> Table:
    return Table(pl.concat([table.frame, table.frame]))


@lru_cache(maxsize=64)
def with_secret(table: Table) -> Table:
    """The table with a sensitive column of five values, unless it has one."""
    if table.roles.sensitive:
        return table
    frame = table.frame.with_columns(secret=pl.Series([f"s{i % 5}" for i in range(len(table))]))
    return Table(frame, table.roles.replacing(sensitive=["secret"]))


_WHOLE_TABLE = "a table that is one class always satisfies it"

MODELS: list[ModelExample] = [
    *(
        ModelExample("k_anonymity", {"k": k, "missing": missing}, lambda n: {"k": n + 1})
        for k in (2, 3, 13)
        for missing in ("own", "wildcard")
    ),
    *(
        ModelExample("probabilistic_k_anonymity", {"k": k}, lambda n: {"k": n + 1})
        for k in (2, 3, 13)
    ),
    ModelExample("alpha_k_anonymity", {"alpha": 0.5, "k": 2}, lambda n: {"k": n + 1}),
    ModelExample("alpha_k_anonymity", {"alpha": 0.6, "k": 3}, lambda n: {"alpha": 1 / n}),
    ModelExample("average_risk", {"max": 0.5}, lambda n: {"max": 0.9 / n}),
    ModelExample("average_risk", {"max": 0.25}, lambda n: {"max": 0.9 / n}),
    ModelExample("beta_likeness", {"beta": 1}, _WHOLE_TABLE),
    ModelExample("beta_likeness", {"beta": 0.5, "enhanced": True}, _WHOLE_TABLE),
    ModelExample("delta_disclosure", {"delta": 0.5}, _WHOLE_TABLE),
    ModelExample(
        "delta_presence",
        {"delta_max": 0.5, "population": "everyone.csv"},
        "whether a share can be reached depends on the population, which is masked too",
        holds_apart="half of the people of every class are in the table",
    ),
    ModelExample(
        "delta_presence",
        {"delta_max": 0.9, "delta_min": 0.4, "population": "everyone.csv"},
        "whether a share can be reached depends on the population, which is masked too",
        holds_apart="half of the people of every class are in the table",
    ),
    ModelExample(
        "differential_privacy",
        {"epsilon": 1.0, "delta": 1e-6},
        "whether a class is large enough depends on the sampling",
        by_steps="records must have been drawn by chance and generalized blindly",
    ),
    ModelExample("k_map", {"k": 3, "population": "everyone.csv"}, lambda n: {"k": 2 * n + 1}),
    ModelExample("l_diversity", {"l": 2}, lambda n: {"l": n + 1}),
    ModelExample("l_diversity", {"l": 3}, lambda n: {"l": n + 1}),
    ModelExample("l_diversity", {"l": 1.5, "kind": "entropy"}, lambda n: {"l": n + 1}),
    ModelExample("l_diversity", {"l": 2, "kind": "recursive", "c": 2}, lambda n: {"l": n + 1}),
    ModelExample(
        "population_uniqueness",
        {"max": 0.05, "sampling_fraction": 0.5},
        "no record of a table that is one class is unique",
    ),
    ModelExample(
        "population_uniqueness",
        {"max": 0.05, "sampling_fraction": 0.05, "estimator": "pitman"},
        "no record of a table that is one class is unique",
    ),
    ModelExample("t_closeness", {"t": 0.2}, _WHOLE_TABLE),
    ModelExample("t_closeness", {"t": 0.2, "distance": "ordered"}, _WHOLE_TABLE),
]


def _diversity(given: dict[str, Any]) -> dict[str, Any]:
    """Values are counted in whole numbers, and only the recursive kind has a factor."""
    kind = given.get("kind", "distinct")
    if kind != "entropy":
        given["l"] = math.floor(given["l"]) + 1
    if kind != "recursive":
        given.pop("c", None)
    return {"c": 2.5, **given} if kind == "recursive" else given


def _closeness(given: dict[str, Any]) -> dict[str, Any]:
    """Only the hierarchical distance has a hierarchy, for one column."""
    if given.get("distance") == "hierarchical":
        return {"hierarchy": "ill.csv", "column": "ill", **given}
    given.pop("hierarchy", None)
    return given


def _presence(given: dict[str, Any]) -> dict[str, Any]:
    """There is a population, and the smallest share is not above the largest."""
    given["delta_min"] = min(given.get("delta_min", 0), given["delta_max"])
    return {"population": "everyone.csv", **given}


#: What the parameters of a model have to do with each other.
def _crowd(given: dict[str, Any]) -> dict[str, Any]:
    """Histories have no wildcards."""
    if given.get("of") == "histories":
        given.pop("missing", None)
    return given


CONSISTENT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "delta_presence": _presence,
    "k_anonymity": _crowd,
    "l_diversity": _diversity,
    "t_closeness": _closeness,
}
