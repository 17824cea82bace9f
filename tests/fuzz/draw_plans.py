"""Plans drawn from an integer: what each method and requirement declares, well used or not."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from shoal.masking import discover_maskers
from shoal.masking._suppress import KeySets
from shoal.masking.generalization._hierarchies import Hierarchies
from shoal.masking.grouping._group_models import PrivacyModels
from shoal.models import discover_models
from shoal.parameters import (
    ByColumn,
    ColumnNames,
    Condition,
    Flag,
    Integer,
    OneOf,
    Parameter,
    Population,
    Real,
    Secret,
    Text,
    Tree,
    parameters_of,
)
from shoal.workflow import discover_all_measures

from .draw_tables import Drawn

METHODS = discover_maskers()
MODELS = discover_models()
_NUMBERS = [0, 1e-9, 0.1, 0.25, 0.5, 0.9, 1, 1.5, 2, 5, 10, 25, 50, 99, 100, 1000, 1e9, 1e300]
#: Measures that a limit can be put on at once; the others take a model or an attack.
_LIMITS = [
    "homogeneity", "journalist_risk", "marketer_risk", "population_uniqueness", "prosecutor_risk",
    "records_at_risk", "skewness", "similarity", "suda", "individual_risk", "uniqueness",
    "unchanged_records", "suppressed_cells", "total_variation", "distance_linkage",
]  # fmt: skip
_OF_SECRETS = ("homogeneity", "skewness", "similarity")


def draw_plan(rng: random.Random, table: Drawn) -> dict[str, Any]:
    """A plan that has something to do and to hold; not every one does."""
    steps = [draw_step(rng, table) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if rng.random() < 0.65:
        steps.append(_into_classes(rng, table))
    require: dict[str, Any] = {}
    for _ in range(rng.choice([0, 1, 2, 3, 4])):
        name, value = draw_requirement(rng, table)
        require[name] = value
    plan: dict[str, Any] = {"roles": table.roles, "steps": steps, "require": require}
    if rng.random() < 0.2:
        plan["keep_order"] = True
    return plan


def _into_classes(rng: random.Random, table: Drawn) -> dict[str, Any]:
    k = rng.choice([2, 3, 4, 5])
    algorithm = rng.choice(["mondrian", "local", "full-domain"])
    generalize = {"method": "generalize", "algorithm": algorithm, "k": k}
    if rng.random() < 0.4:
        generalize["models"] = draw_models(rng, table)
    if algorithm == "full-domain" and rng.random() < 0.5:
        generalize["suppression_limit"] = rng.choice([0.05, 0.3, 1.0])
    if rng.random() < 0.2:
        generalize["suppressed"] = "kept"
    return rng.choice(
        [
            {"method": "suppress", "min_class_size": k},
            generalize,
            generalize,
            {"method": "microaggregate", "k": k, "dissimilarity": "gower"},
        ]
    )


def draw_step(rng: random.Random, table: Drawn) -> dict[str, Any]:
    """A method with values that it declares to accept, or close to that."""
    method = rng.choice(list(METHODS))
    if method == "redraw" and not table.roles.get("sensitive"):
        method = "swap"
    declared = parameters_of(METHODS[method])
    step: dict[str, Any] = {"method": method}
    if method == "suppress":
        rule = rng.choice(["max_distinct", "min_count", "min_class_size", "where", "k"])
        declared = tuple(p for p in declared if p.name == rule or rng.random() < 0.1)
    for parameter in declared:
        always = parameter.required or method == "suppress"
        if always or rng.random() < (0.6 if parameter.name in ("k", "algorithm") else 0.07):
            step[parameter.name] = draw_value(rng, parameter, table)
    if method == "generalize" and "k" not in step and rng.random() < 0.9:
        step["k"] = rng.choice([2, 3, 5])
    if method in ("microaggregate", "swap") and rng.random() < 0.8:
        step["dissimilarity"] = rng.choice(["gower", "ahmad-dey"])
    if "refine" in step:
        step["seconds"] = 0.05
    if method == "generalize":
        step["seconds"] = step.get("seconds") or 1.0
        step["seconds"] = min(step["seconds"], 2.0)
    if "seconds" in step:
        step["seconds"] = min(step["seconds"], 0.1)
    return step


def draw_value(rng: random.Random, parameter: Parameter, table: Drawn) -> Any:
    """A value that a parameter accepts, and now and then one that it does not."""
    rows, names = table.frame.height, table.frame.columns
    match parameter.constraint:
        case Integer(minimum=minimum):
            usual = [2, 3, 3, 4, 5] * 3
            return max(minimum, rng.choice([*usual, rows // 2, rows, rows + 1, 10**6]))
        case Real() as constraint:
            return rng.choice([n for n in _NUMBERS if constraint.accepts(n)] or [0])
        case OneOf(choices=choices):
            return rng.choice(choices)
        case Flag():
            return rng.random() < 0.5
        case ColumnNames():
            known = table.roles.get("quasi_identifiers") if rng.random() < 0.8 else None
            columns = rng.sample(known or names, rng.randint(1, len(known or names)))
            return columns if rng.random() < 0.97 else [*columns, "nobody"]
        case Condition():
            name = rng.choice(names).replace('"', '""')
            return rng.choice(
                [f'"{name}" IS NULL', f'"{name}" > 3', f"\"{name}\" = 'f'", "1 = (", ""]
            )
        case Secret():
            return rng.choice([0, 5, 2**70])
        case Hierarchies():
            return {rng.choice(names): draw_hierarchy(rng)}
        case ByColumn(each=Integer()):
            return {rng.choice(names): rng.choice([0, 1, 2, 9])}
        case ByColumn(each=each):
            known = table.roles.get("quasi_identifiers") if rng.random() < 0.9 else None
            of_one = dataclasses.replace(parameter, constraint=each)
            return {rng.choice(known or names): draw_value(rng, of_one, table)}
        case KeySets():
            sets = [1, 2, names[:2], {"columns": names[:1], "k": 3}, {"size": 2}]
            return rng.sample(sets, rng.randint(1, 2))
        case PrivacyModels():
            return draw_models(rng, table)
        case Population() | Tree():
            return rng.choice(["data.parquet", "hierarchy.csv", "nowhere.csv"])
        case Text():
            return rng.choice(names)
    raise NotImplementedError(f"draw a {type(parameter.constraint).__name__} here")


def draw_hierarchy(rng: random.Random) -> Any:
    """A hierarchy as a plan names it."""
    return rng.choice(
        [
            "hierarchy.csv",
            {"intervals": [5, 10]},
            {"intervals": [0.5, 2]},
            {"prefixes": [1, 2]},
            {"dates": ["month", "year"]},
            {"rounding": [10, 100]},
            {"suppression": True},
            {"intervals": [5, 7]},
            {"frequency": [3]},
            {"quantiles": [4, 2]},
            {"sizes": [3]},
            {"ordered": ["f", "m"]},
            {"rows": [["f", "*"], ["m", "*"]]},
            {"nothing": 1},
        ]
    )


def draw_models(rng: random.Random, table: Drawn) -> dict[str, Any]:
    """Models for a search, as a plan writes them."""
    return dict(draw_model(rng, table) for _ in range(rng.choice([1, 1, 2])))


def draw_model(rng: random.Random, table: Drawn) -> tuple[str, Any]:
    """A model with values that some tables reach."""
    k = rng.choice([2, 2, 3, 4, 5])
    secrets = table.roles.get("sensitive")
    secret = rng.choice(secrets or table.frame.columns)
    few = {"column": secret} if rng.random() < 0.3 else {}
    usual: list[tuple[str, Any]] = [
        ("k_anonymity", k),
        ("k_anonymity", {"k": k, "missing": "wildcard"}),
        ("probabilistic_k_anonymity", k),
        ("average_risk", rng.choice([0.2, 0.5, 1])),
        ("population_uniqueness", {"max": 0.5, "sampling_fraction": rng.choice([0.05, 0.5, 1])}),
        (
            "population_uniqueness",
            {"max": 0.9, "sampling_fraction": rng.choice([0.1, 0.5]), "estimator": "zayatz"},
        ),
        ("l_diversity", {"l": 2, **few}),
        ("l_diversity", {"l": rng.choice([1.1, 1.5]), "kind": "entropy", **few}),
        ("l_diversity", {"l": 2, "kind": "recursive", "c": rng.choice([1.5, 4]), **few}),
        ("t_closeness", {"t": rng.choice([0.2, 0.5, 0.9]), **few}),
        ("t_closeness", {"t": rng.choice([0.1, 0.5]), "distance": "ordered", **few}),
        (
            "t_closeness",
            {"t": 0.7, "distance": "hierarchical", "column": secret, "hierarchy": "hierarchy.csv"},
        ),
        ("alpha_k_anonymity", {"alpha": rng.choice([0.5, 0.8, 1]), "k": k, **few}),
        ("beta_likeness", {"beta": rng.choice([0.5, 3, 100]), **few}),
        ("beta_likeness", {"beta": rng.choice([0.5, 3]), "enhanced": True, **few}),
        ("delta_disclosure", {"delta": rng.choice([0.5, 3]), **few}),
        ("k_map", {"k": k, "population": "data.parquet"}),
        ("delta_presence", {"delta_max": 0.9, "population": "data.parquet"}),
        ("differential_privacy", {"epsilon": 1.0, "delta": 1e-3}),
    ]
    if rng.random() < 0.95:
        if not secrets and rng.random() < 0.9:
            usual = usual[:6]  # those that need none
        elif rng.random() < 0.9:
            usual = usual[:-3]
        return rng.choice(usual)
    name = rng.choice(list(MODELS))
    given = {
        p.name: draw_value(rng, p, table)
        for p in parameters_of(MODELS[name])
        if p.required or rng.random() < 0.3
    }
    return name, given


def draw_requirement(rng: random.Random, table: Drawn) -> tuple[str, Any]:
    """A model, or a limit on a measure."""
    if rng.random() < 0.6:
        return draw_model(rng, table)
    measures = discover_all_measures()
    secret = bool(table.roles.get("sensitive")) or rng.random() < 0.1
    known = [name for name in _LIMITS if secret or name not in _OF_SECRETS]
    name = rng.choice([name for name in known if name in measures])
    value = rng.choice([0.0, 0.2, 0.5, 0.9, 1.0])
    options: dict[str, Any] = {}
    if rng.random() < 0.3 and not measures[name].needs_original:
        options["missing"] = rng.choice(["own", "wildcard"])
    if name in ("journalist_risk", "population_uniqueness", "individual_risk", "suda"):
        options["sampling_fraction"] = rng.choice([0.1, 0.5, 1.0])
    if name in ("records_at_risk", "skewness") and rng.random() < 0.5:
        options["threshold"] = rng.choice([0.05, 0.3])
    bound = "min" if rng.random() < 0.1 else "max"
    return f"{bound}_{name}", {"value": value, **options} if options else value
