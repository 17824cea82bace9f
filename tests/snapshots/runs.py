"""The runs whose outcome is on record: a plan, a table and a format each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shoal import (
    AddNoise,
    AlphaKAnonymity,
    AverageRisk,
    BetaLikeness,
    DatesToYear,
    DifferentialPrivacy,
    Generalize,
    Hierarchy,
    KAnonymity,
    LDiversity,
    Limit,
    Microaggregate,
    Plan,
    Pram,
    ProbabilisticKAnonymity,
    Pseudonymize,
    RankSwap,
    Recode,
    Redraw,
    Round,
    Sample,
    ShiftDates,
    Suppress,
    Swap,
    TCloseness,
    TopBottomCode,
)


@dataclass(frozen=True)
class Run:
    """One release: its name is that of its file, and the keys come from it."""

    name: str
    table: str
    plan: Callable[[], Plan]
    format: str = "csv"


def _of(*steps, require=(), **more):
    return lambda: Plan(steps, require=require, **more)


LEVELS = {
    "age": Hierarchy.intervals([5, 10, 20, 40]),
    "zip": Hierarchy.prefixes([3, 2, 1]),
    "sex": Hierarchy.suppression(),
    "height": Hierarchy.intervals([5, 10, 20, 40]),
}


def _written_by_others() -> dict[str, Hierarchy]:
    """Hierarchies in the notations of others: half-open the other way, open ends, sets, dashes."""
    bands = [(0, 29, "<30"), (30, 39, "(29, 39]"), (40, 49, "40-49"), (50, 64, "[50;65)")]
    ages = [
        [str(age), next((text for low, top, text in bands if low <= age <= top), "≥65"), "*"]
        for age in range(18, 90)
    ]
    towns = [f"{1000 + 100 * a + b}" for a in range(6) for b in range(5)]
    sets = {a: "{" + ", ".join(towns[5 * a : 5 * a + 5]) + "}" for a in range(6)}
    zips = [[town, sets[at // 5], "*"] for at, town in enumerate(towns)]
    return {"age": Hierarchy.from_rows(ages), "zip": Hierarchy.from_rows(zips)}


COARSE = Generalize(k=5, suppression_limit=0.1)
K = KAnonymity

RUNS = [
    # -- generalization
    Run(
        "full-domain",
        "people",
        _of(Generalize(k=5, hierarchies=LEVELS), require=[K(5), Limit("suda", at_most=1)]),
    ),
    Run(
        "full-domain-suppressing",
        "people",
        _of(Generalize(k=3, hierarchies=LEVELS, suppression_limit=0.1), require=[K(3)]),
        "parquet",
    ),
    Run(
        "full-domain-kept",
        "people",
        _of(
            Generalize(
                k=4, hierarchies=LEVELS, suppression_limit=0.2, suppressed="kept", loss="entropy"
            ),
            require=[K(4), K(4, missing="wildcard")],
        ),
        "tsv",
    ),
    Run(
        "full-domain-diverse",
        "people",
        _of(
            Generalize(
                k=3,
                models=[LDiversity(2, column="ill")],
                hierarchies=LEVELS,
                suppression_limit=0.05,
                loss="discernibility",
            ),
            require=[K(3), LDiversity(2, column="ill")],
        ),
        "xlsx",
    ),
    Run(
        "full-domain-others",
        "people",
        _of(
            Generalize(
                k=3,
                hierarchies=_written_by_others(),
                levels={"age": 1, "zip": 1},
                columns=["age", "zip"],
                suppression_limit=1.0,
            ),
            TopBottomCode(fence=0.5, columns=["height"]),
        ),
        "csv",
    ),
    Run("full-domain-proposed", "survey", _of(Generalize(k=4, suppression_limit=0.2)), "arrow"),
    Run("full-domain-dates", "calendar", _of(Generalize(k=3, suppression_limit=0.3)), "csv"),
    Run("full-domain-odd", "odd", _of(Generalize(k=3, suppression_limit=0.3)), "csv"),
    Run(
        "full-domain-persons",
        "visits",
        _of(Generalize(k=3, suppression_limit=0.4), require=[K(3)]),
        "csv",
    ),
    Run("mondrian", "people", _of(Generalize("mondrian", k=5), require=[K(5)]), "csv"),
    Run(
        "mondrian-close",
        "people",
        _of(
            Generalize("mondrian", k=5, models=[TCloseness(0.4, column="ill")]),
            require=[K(5), TCloseness(0.4, column="ill")],
        ),
        "parquet",
    ),
    Run("mondrian-relaxed", "numbers", _of(Generalize("mondrian", k=4, relaxed=True)), "arrow"),
    Run("mondrian-missing", "survey", _of(Generalize("mondrian", k=4), require=[K(4)]), "csv"),
    Run("mondrian-dates", "calendar", _of(Generalize("mondrian", k=3), require=[K(3)]), "xlsx"),
    Run("mondrian-odd", "odd", _of(Generalize("mondrian", k=3)), "csv"),
    Run(
        "mondrian-persons",
        "visits",
        _of(Generalize("mondrian", k=4), require=[K(4)], pseudonyms=True),
        "csv",
    ),
    Run(
        "local",
        "people",
        _of(
            Generalize("local", k=4, hierarchies=LEVELS, seconds=0.1),
            require=[K(4), AverageRisk(0.25)],
        ),
        "csv",
    ),
    Run("local-missing", "survey", _of(Generalize("local", k=4, seconds=0.1)), "parquet"),
    Run("local-persons", "visits", _of(Generalize("local", k=3, seconds=0.1)), "tsv"),
    # -- microaggregation
    Run("microaggregate-mdav", "numbers", _of(Microaggregate(5), require=[K(5)]), "csv"),
    Run("microaggregate-raw", "numbers", _of(Microaggregate(4, standardize=False)), "parquet"),
    Run("microaggregate-random", "numbers", _of(Microaggregate(4, partition="mdav-random")), "tsv"),
    Run(
        "microaggregate-v-mdav",
        "numbers",
        _of(Microaggregate(4, partition="v-mdav", gamma=0.4)),
        "csv",
    ),
    Run("microaggregate-mu", "numbers", _of(Microaggregate(5, partition="mu-approx")), "arrow"),
    Run("microaggregate-mondrian", "numbers", _of(Microaggregate(5, partition="mondrian")), "csv"),
    Run(
        "microaggregate-ranking",
        "numbers",
        _of(
            Microaggregate(5, partition="individual-ranking", columns=["first"]),
            Microaggregate(5, partition="optimal", columns=["tail"]),
        ),
        "csv",
    ),
    Run(
        "microaggregate-refined",
        "numbers",
        _of(Microaggregate(5, refine=True, seconds=0.05)),
        "csv",
    ),
    Run(
        "microaggregate-gower",
        "people",
        _of(Microaggregate(4, dissimilarity="gower"), require=[K(4)]),
        "xlsx",
    ),
    Run(
        "microaggregate-gower-refined",
        "people",
        _of(
            Microaggregate(4, dissimilarity="gower", partition="v-mdav", refine=True, seconds=0.03)
        ),
        "csv",
    ),
    Run(
        "microaggregate-ahmad-dey",
        "people",
        _of(Microaggregate(4, dissimilarity="ahmad-dey", partition="mu-approx")),
        "csv",
    ),
    Run(
        "microaggregate-squared",
        "survey",
        _of(Microaggregate(5, dissimilarity="ahmad-dey-squared", partition="mondrian")),
        "parquet",
    ),
    Run(
        "microaggregate-diverse",
        "people",
        _of(
            Microaggregate(5, dissimilarity="gower", models=LDiversity(3, column="ill")),
            require=[K(5), LDiversity(3, column="ill")],
        ),
        "csv",
    ),
    Run("microaggregate-dates", "calendar", _of(Microaggregate(3, dissimilarity="gower")), "csv"),
    Run("microaggregate-odd", "odd", _of(Microaggregate(3, dissimilarity="gower")), "csv"),
    Run(
        "microaggregate-persons",
        "visits",
        _of(Microaggregate(3, dissimilarity="gower"), require=[K(3)]),
        "csv",
    ),
    # -- exchanges
    Run("swap", "people", _of(Swap(4), require=[ProbabilisticKAnonymity(4)]), "csv"),
    Run(
        "swap-blocks",
        "people",
        _of(Swap(3, blocks="mutual-information", partition="mondrian")),
        "parquet",
    ),
    Run("swap-informed", "people", _of(Swap(3, informed=True)), "csv"),
    Run(
        "swap-ranking",
        "people",
        _of(Swap(4, informed=True, partition="individual-ranking")),
        "arrow",
    ),
    Run(
        "swap-euclidean",
        "numbers",
        _of(Swap(5, dissimilarity="euclidean", partition="mdav-random"), keep_order=True),
        "csv",
    ),
    Run("swap-missing", "survey", _of(Swap(3, dissimilarity="ahmad-dey")), "csv"),
    Run("swap-odd", "odd", _of(Swap(3)), "csv"),
    Run("swap-persons", "visits", _of(Swap(3)), "tsv"),
    Run("rank-swap", "people", _of(RankSwap(percent=8)), "csv"),
    Run("rank-swap-missing", "survey", _of(RankSwap(percent=15)), "parquet"),
    # -- noise, draws and coarser numbers
    Run("add-noise", "people", _of(AddNoise(epsilon=2.0)), "csv"),
    Run("add-noise-numbers", "numbers", _of(AddNoise(epsilon=8.0)), "xlsx"),
    Run("pram", "people", _of(Pram(keep=0.7)), "csv"),
    Run("pram-missing", "survey", _of(Pram(keep=0.4)), "csv"),
    Run("round", "people", _of(Round(base=10)), "csv"),
    Run("round-odd", "odd", _of(Round(base=25)), "parquet"),
    Run("recode", "numbers", _of(Recode(magnitude=1.5)), "csv"),
    Run("recode-lowest", "survey", _of(Recode(magnitude=0.5, start="lowest")), "tsv"),
    Run("top-bottom-code", "numbers", _of(TopBottomCode(fence=0.6)), "csv"),
    Run("top-bottom-whisker", "survey", _of(TopBottomCode(fence=0.4, cap="whisker")), "csv"),
    Run("top-code", "survey", _of(TopBottomCode(top=60, bottom=18.5, columns=["age"])), "csv"),
    # -- identifiers and dates
    Run("pseudonyms", "visits", _of(Pseudonymize(["patient", "home"]), COARSE), "csv"),
    Run("pseudonyms-in-form", "visits", _of(Pseudonymize(["patient"], shape="format")), "parquet"),
    Run("shifted-dates", "visits", _of(ShiftDates(days=200, weekdays=True)), "csv"),
    Run("years", "calendar", _of(DatesToYear(columns=["born", "seen"], earliest=1950)), "csv"),
    # -- fewer records or cells
    Run("sample", "people", _of(Sample(fraction=0.4)), "csv"),
    Run(
        "sample-stratified",
        "survey",
        _of(COARSE, Sample(fraction=0.5, strategy="stratified")),
        "parquet",
    ),
    Run("sample-balanced", "survey", _of(COARSE, Sample(fraction=0.4, strategy="balanced")), "csv"),
    Run("sample-persons", "visits", _of(Sample(fraction=0.5)), "csv"),
    Run("suppress-columns", "people", _of(Suppress(max_distinct=0.2)), "csv"),
    Run("suppress-cells", "survey", _of(Suppress(min_count=30)), "csv"),
    Run("suppress-where", "people", _of(Suppress(where="age > 60", target="records")), "arrow"),
    Run(
        "suppress-histories",
        "visits",
        _of(
            Round(base=30),
            Suppress(max_distinct=0.2),
            Suppress(min_class_size=2, of="histories"),
            require=[K(2, of="histories")],
        ),
        "csv",
    ),
    # -- several steps
    Run(
        "round-code-suppress",
        "people",
        _of(
            TopBottomCode(fence=0.2),
            Round(base=20),
            Suppress(min_class_size=3),
            require=[K(3), Limit("unchanged_records", at_most=0.5)],
        ),
        "csv",
    ),
    Run(
        "redraw",
        "survey",
        _of(
            Generalize("mondrian", k=3),
            Redraw(LDiversity(2)),
            require=[K(3), LDiversity(2)],
        ),
    ),
    Run(
        "sample-differential",
        "known",
        _of(
            Sample(fraction=0.5, strategy="bernoulli"),
            Generalize(
                models=[DifferentialPrivacy(2.0, delta=1e-3)],
                hierarchies=LEVELS,
                levels={"age": 3, "zip": 2, "sex": 0, "height": 4},
                suppression_limit=1.0,
            ),
            require=[DifferentialPrivacy(2.0, delta=1e-3)],
        ),
        "csv",
    ),
    Run(
        "mondrian-then-swap",
        "people",
        _of(
            Generalize("mondrian", k=4, columns=["age", "zip"]),
            Swap(3, informed=True),
            require=[Limit("distance_linkage", at_most=1)],
        ),
        "csv",
    ),
    Run(
        "alpha-and-likeness",
        "people",
        _of(
            Suppress(max_distinct=0.2),
            Generalize(
                k=3,
                models=[AlphaKAnonymity(k=3, alpha=0.9, column="ill")],
                hierarchies={name: LEVELS[name] for name in ("age", "zip", "sex")},
            ),
            require=[
                AlphaKAnonymity(k=3, alpha=0.9, column="ill"),
                BetaLikeness(30.0, column="ill"),
            ],
        ),
        "parquet",
    ),
]
