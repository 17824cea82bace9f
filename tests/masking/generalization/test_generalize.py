"""Generalize: what every search gives is safe, told truthfully, and serves rows that come later."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import (
    AverageRisk,
    DifferentialPrivacy,
    Generalize,
    Hierarchy,
    KAnonymity,
    KMap,
    LDiversity,
    Plan,
    PopulationUniqueness,
    Roles,
    Sample,
    Suppress,
    Table,
    TCloseness,
    protect,
    verify,
)
from shoal.errors import (
    InputError,
    NothingLeftWarning,
    NotProvedWarning,
    ParameterError,
    RequirementNotMet,
    UnreachableLevel,
)
from shoal.table import released_column

ALGORITHMS = ("full-domain", "mondrian", "local")
CITIES = {"North": ["Kiel", "Bremen"], "South": ["Ulm", "Passau", "Lindau"]}


def people(rows=200, seed=0):
    """Ages, cities and a date with gaps; a skewed illness."""
    rng = np.random.default_rng(seed)
    cities = [city for group in CITIES.values() for city in group]
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "city": rng.choice(cities, rows),
            "since": pl.Series(rng.integers(0, 4000, rows)).cast(pl.Date),
            "ill": rng.choice(["flu", "gout", "ok"], rows, p=[0.2, 0.1, 0.7]),
        }
    )
    gaps = pl.Series(rng.random(rows) < 0.05)
    frame = frame.with_columns(frame["age"].set(gaps, None))
    return Table(frame, Roles(quasi_identifiers=["age", "city", "since"], sensitive=["ill"]))


HIERARCHIES = {
    "age": Hierarchy.intervals([5, 10, 30, 90]),
    "city": Hierarchy.tree(CITIES),
    "since": Hierarchy.dates(),
}


def generalized(table, *args, **options):
    step = Generalize(*args, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        return step, step.fit_transform(table)


# -- what is released is safe


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(12, 150),
    algorithm=st.sampled_from(ALGORITHMS),
    models=st.sampled_from([None, LDiversity(2), LDiversity(1.5, kind="entropy"), TCloseness(0.4)]),
    given_hierarchies=st.booleans(),
)
def test_every_class_satisfies_what_was_asked(seed, rows, algorithm, models, given_hierarchies):
    """Checked by the models on the released cells, which know nothing of the search."""
    table = people(rows, seed)
    if models is not None and not models.holds(table.drop(table.roles.quasi_identifiers)):
        return
    step, masked = generalized(
        table, algorithm, k=3, models=models, hierarchies=HIERARCHIES if given_hierarchies else None
    )
    assert KAnonymity(3).holds(masked)
    assert models is None or models.holds(masked)
    assert len(masked) == rows
    assert step.suppressed_ == 0
    assert masked.row_key.tolist() == table.row_key.tolist()
    assert 0 <= step.loss_ <= 1 + 1e-9


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3, 1.0])
def test_no_more_records_are_suppressed_than_allowed(limit):
    table = people()
    step, masked = generalized(table, k=4, hierarchies=HIERARCHIES, suppression_limit=limit)
    assert step.suppressed_ == len(table) - len(masked) <= limit * len(table)
    assert step.optimal_
    assert KAnonymity(4).holds(masked)


def test_a_released_value_stands_for_the_original_one():
    """Every cell is the hierarchy's own answer for that record."""
    table = people()
    step, masked = generalized(table, k=4, hierarchies=HIERARCHIES)
    for name, level in step.levels_.items():
        expected = HIERARCHIES[name].generalize(table, name, level)
        assert masked.frame[name].equals(expected.frame[name])


def test_a_box_of_mondrian_holds_its_records():
    table = people()
    masked = generalized(table, "mondrian", k=4)[1]
    for own, text in zip(table.frame["age"], masked.frame["age"], strict=True):
        assert text == "*" or (own is None and text is None) or in_box(own, text)


def in_box(value, text):
    """Whether a number is in a released interval, by the text alone."""
    low, high = -np.inf, np.inf
    if text.startswith("<"):
        high = float(text[1:])
    elif text.startswith(">="):
        low = float(text[2:])
    elif text.startswith("["):
        low, high = map(float, text[1:].removesuffix(")").split(", "))
    elif text != "*":
        return value == float(text)
    return low <= value < high


# -- suppressed records


def outlier():
    ages = [20, 21, 22, 23] * 3 + [99]
    ills = ["flu", "gout", "ok"] * 4 + ["plague"]
    frame = pl.DataFrame({"age": ages, "size": [170] * 13, "ill": ills})
    return Table(frame, Roles(quasi_identifiers=["age", "size"], sensitive=["ill"]))


TENS = {"age": Hierarchy.intervals([10]), "size": Hierarchy.suppression()}


def test_suppressed_records_leave_by_default():
    step, masked = generalized(outlier(), k=3, hierarchies=TENS, suppression_limit=0.1)
    assert step.suppressed_ == step.removed_ == 1
    assert "plague" not in masked.frame["ill"].to_list()
    assert masked.frame["size"].dtype == pl.Int64


@pytest.mark.parametrize(("keep_sensitive", "shown"), [(False, None), (True, "plague")])
def test_suppressed_records_that_stay(keep_sensitive, shown):
    options = {"suppressed": "kept", "keep_sensitive": keep_sensitive}
    step, masked = generalized(outlier(), k=3, hierarchies=TENS, suppression_limit=0.1, **options)
    assert step.suppressed_ == 1
    assert step.removed_ == 0
    assert masked.frame.row(-1) == ("*", "*", shown)
    assert masked.frame["size"].to_list()[0] == "170"
    # a class of its own, too small to be released as k-anonymous
    assert masked.classes.k == 1


# -- what cannot be


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_level_that_no_table_reaches_says_what_can_be_reached(algorithm):
    with pytest.raises(UnreachableLevel, match="l of at most 3") as refused:
        Generalize(algorithm, k=2, models=LDiversity(4)).fit_transform(people())
    assert refused.value.exit_code == 1
    entropy = LDiversity(2.9, kind="entropy")
    with pytest.raises(RequirementNotMet, match=r"cannot be reached.* level is 2\.\d+, and 2.9 is"):
        Generalize(algorithm, k=2, models=entropy).fit_transform(people())


def test_t_of_zero_leaves_nothing_and_says_so():
    table = people()
    step = Generalize(k=2, models=TCloseness(0.0), hierarchies=HIERARCHIES)
    with pytest.warns(NothingLeftWarning, match=r"became '\*'"):
        masked = step.fit_transform(table)
    assert set(masked.frame["age"]) == {"*"}
    # a release of it would be one of nothing: refused, with the closest that can be reached
    warned = r"t-closeness requires 0, and .* 0\.\d+ is the closest.* Nothing was written"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        with pytest.raises(RequirementNotMet, match=warned):
            protect(table, Plan([step]))


def test_bad_calls():
    with pytest.raises(ParameterError, match="needs 'k' or 'models'"):
        Generalize()
    with pytest.raises(ParameterError, match="for the algorithm 'full-domain'"):
        Generalize("mondrian", k=2, suppression_limit=0.1)
    with pytest.raises(ParameterError, match="for the algorithm 'mondrian'"):
        Generalize("local", k=2, relaxed=True)
    with pytest.raises(InputError, match="k = 201 is larger than the table"):
        Generalize(k=201).fit_transform(people())
    with pytest.raises(InputError, match="Did you mean 'age'"):
        Generalize(k=2, hierarchies={"agee": TENS["age"]}).fit_transform(people())
    with pytest.raises(InputError, match="both generalized and protected"):
        Generalize(k=2, models=LDiversity(2, column="ill"), columns=["age", "ill"]).fit_transform(
            people()
        )
    endless = Table(pl.DataFrame({"x": [1.0, 2.0, float("inf")]}), Roles(quasi_identifiers=["x"]))
    for algorithm in ALGORITHMS:
        with pytest.raises(InputError, match="1 infinite values"):
            Generalize(algorithm, k=2).fit_transform(endless)


def test_a_hierarchy_that_lacks_values_is_refused_or_extended():
    table = people()
    lacking = HIERARCHIES | {"city": Hierarchy.tree({"North": ["Kiel", "Bremen"]})}
    with pytest.raises(InputError) as refused:
        Generalize(k=2, hierarchies=lacking).fit_transform(table)
    assert "3" in str(refused.value)
    assert "Ulm" not in str(refused.value)
    masked = generalized(table, k=2, hierarchies=lacking, extend=True)[1]
    assert KAnonymity(2).holds(masked)


# -- rows that come later


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_new_rows_have_an_answer(algorithm):
    """Values that were never seen, below, above, unknown, missing: each gets a released text."""
    table = people()
    step, masked = generalized(table, algorithm, k=4, hierarchies=HIERARCHIES)
    frame = pl.DataFrame(
        {
            "age": [3, 140, 45, None],
            "city": ["Ulm", "Paris", None, "Kiel"],
            "since": pl.Series([-9000, 90000, 200, None]).cast(pl.Date),
        }
    )
    served = step.transform(Table(frame, Roles(quasi_identifiers=frame.columns)))
    assert served.columns == frame.columns
    assert len(served) == 4
    if algorithm != "full-domain":
        for name in step.touched_:
            released = set(masked.frame[name].cast(pl.String))
            assert set(served.frame[name].cast(pl.String)) <= released | {None}


def test_boxes_without_trees_give_fitted_rows_back():
    """Each row lies in the box that it is served; a few boxes overlap, where a cut is not told."""
    table = people().keep(people().frame["age"].is_not_null().to_numpy())
    numbers = Table(table.frame.select("age", "since"), Roles(quasi_identifiers=["age", "since"]))
    step, masked = generalized(numbers, "mondrian", k=4)
    served = step.transform(numbers)
    for name in numbers.columns:
        read = released_column(name, numbers, served)
        assert read.stands_for(read.labels, read.values).all()
    same = [a == b for a, b in zip(served.frame.rows(), masked.frame.rows(), strict=True)]
    assert np.mean(same) > 0.9


def test_what_serves_holds_no_record():
    """The fitted step without records, pickled: no sensitive value, no combination that was one."""
    secret = "tertiary-syphilis"
    frame = people().frame.with_columns(ill=pl.lit(secret))
    table = Table(frame, people().roles)
    step = generalized(table, "mondrian", k=4, hierarchies=HIERARCHIES)[0].without_records()
    assert secret.encode() not in pickle.dumps(step)
    assert step.audit_ == {}
    arrays = [v for v in vars(step).values() if isinstance(v, np.ndarray)]
    assert not arrays


# -- in plans and releases


def test_a_plan_finds_its_hierarchies_beside_it(tmp_path):
    (tmp_path / "cities.csv").write_text(
        "".join(f"{city};{group};*\n" for group, cities in CITIES.items() for city in cities),
        encoding="utf-8",
    )
    text = """
[[steps]]
method = "generalize"
k = 4
models = {l_diversity = 2}

[steps.hierarchies]
age = {intervals = [10, 90]}
city = "cities.csv"
"""
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    plan = Plan.load(tmp_path / "plan.toml")
    (step,) = plan.steps
    assert step.models == LDiversity(2)
    assert Plan.from_toml(plan.to_toml()) == plan
    masked = generalized(people(), **step.get_params())[1]
    assert LDiversity(2).holds(masked)
    # the public half of a release must not name a folder of this machine
    assert "hierarchies" not in step.changed_params(public=True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_through_a_release(algorithm, tmp_path):
    plan = Plan([Generalize(algorithm, k=4, hierarchies=HIERARCHIES)], require=[KAnonymity(4)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        release = protect(people(), plan)
    release.save(tmp_path / "out", format="csv")
    public = (tmp_path / "out" / "public" / "release.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in public
    assert KAnonymity(4).holds(release.masked)


def test_other_steps_work_on_generalized_columns():
    plan = Plan([Generalize("mondrian", k=2), Suppress(min_class_size=4)])
    masked, records = plan.apply(people())
    assert KAnonymity(4).holds(masked)
    assert [record.method for record in records] == ["generalize", "suppress"]


# -- a population


def test_a_search_counts_classes_in_a_population():
    """k-map: alone in the table, but one of many in the population."""
    rng = np.random.default_rng(4)
    everyone = pl.DataFrame({"age": rng.integers(18, 90, 2000)})
    table = Table(everyone[:60], Roles(quasi_identifiers=["age"]))
    model = KMap(20, population=Table(everyone))
    tens = {"age": Hierarchy.intervals([5, 10, 30, 90])}
    step, masked = generalized(table, models=model, hierarchies=tens)
    in_population = HIERARCHIES["age"].generalize(Table(everyone), "age", step.levels_["age"])
    sizes = in_population.frame["age"].value_counts()
    people = dict(zip(sizes["age"], sizes["count"], strict=True))
    assert min(people[age] for age in masked.frame["age"]) >= 20
    assert masked.classes.k < 20  # what k-anonymity would have asked for
    lower = max(0, step.levels_["age"] - 1)
    finer = tens["age"].generalize(Table(everyone), "age", lower).frame["age"].value_counts()
    finer = dict(zip(finer["age"], finer["count"], strict=True))
    own = tens["age"].generalize(table, "age", lower).frame["age"]
    assert step.levels_["age"] == 0 or min(finer[age] for age in own) < 20


def test_k_map_is_required_of_a_generalized_release(tmp_path):
    """The population is masked as the table was; its path stays out of the public half."""
    everyone = people(1500)
    path = tmp_path / "everyone.parquet"
    everyone.frame.write_parquet(path)
    table = Table(everyone.frame[:100], everyone.roles)
    plan = Plan(
        [Generalize(k=2, hierarchies=HIERARCHIES)], require=[KMap(10, population=str(path))]
    )
    release = protect(table, plan)
    (claim,) = release.claims
    assert claim.holds
    assert claim.measured >= 10
    release.save(tmp_path / "out")
    assert str(tmp_path) not in (tmp_path / "out" / "public" / "release.json").read_text()
    verified = verify(tmp_path / "out")
    assert verified.holds
    assert {c.name: c.status for c in verified.checks}["claim k_map"] == "skipped"


def test_differential_privacy_through_a_release(tmp_path):
    ages = pl.DataFrame({"age": np.random.default_rng(0).integers(18, 90, 3000)})
    table = Table(ages, Roles(quasi_identifiers=["age"]))
    steps = [
        Sample(fraction=0.1, strategy="bernoulli"),
        Generalize(
            k=9,
            hierarchies={"age": Hierarchy.intervals([10])},
            levels={"age": 1},
            suppression_limit=1.0,
        ),
    ]
    plan = Plan(steps, require=[DifferentialPrivacy(1.0, 1e-6)])
    release = protect(table, plan)
    release.save(tmp_path / "out")
    checks = {c.name: c.status for c in verify(tmp_path / "out").checks}
    assert checks["claim differential_privacy"] == "passed"
    (tmp_path / "public").mkdir()
    for file in (tmp_path / "out" / "public").iterdir():
        (tmp_path / "public" / file.name).write_bytes(file.read_bytes())
    checks = {c.name: c.status for c in verify(tmp_path / "public").checks}
    assert checks["claim differential_privacy"] == "skipped"
    for wrong in (
        steps[::-1],
        [Sample(fraction=0.1), steps[1]],
        [steps[0], Generalize(k=9, hierarchies={"age": Hierarchy.intervals([10])})],
        [steps[0], steps[1], Suppress(min_class_size=12)],
    ):
        plan = Plan(wrong, require=[DifferentialPrivacy(1.0, 1e-6)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingLeftWarning)
            with pytest.raises(RequirementNotMet, match="in another way"):
                protect(table, plan)


def test_a_lattice_too_large_for_a_proof_is_told():
    """Twelve columns of six levels: two thousand million combinations."""
    rng = np.random.default_rng(0)
    skewed = [np.minimum(rng.geometric(0.2, 900), 64) - 1 for _ in range(12)]
    frame = pl.DataFrame({f"c{i}": column for i, column in enumerate(skewed)})
    table = Table(frame, Roles(quasi_identifiers=frame.columns))
    rungs = dict.fromkeys(frame.columns, Hierarchy.intervals([2, 4, 8, 16]))
    step = Generalize(k=3, hierarchies=rungs, seconds=0.2, suppression_limit=0.3)
    with pytest.warns(NotProvedWarning, match="2,176,782,336 combinations") as caught:
        masked = step.fit_transform(table)
    assert KAnonymity(3).holds(masked)
    assert not step.optimal_
    assert step.lattice_["bound"] <= step.loss_
    assert "no combination can have less" in str(caught[0].message)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "model", [AverageRisk(0.05), PopulationUniqueness(0.01, 0.2, estimator="zayatz")]
)
def test_models_of_a_whole_partition_are_met_by_every_search(algorithm, model):
    table = people(300)
    plain = generalized(table, algorithm, k=2, hierarchies=HIERARCHIES)[1]
    masked = generalized(table, algorithm, k=2, models=model, hierarchies=HIERARCHIES)[1]
    assert model.holds(masked)
    assert KAnonymity(2).holds(masked)
    if algorithm != "full-domain":
        assert masked.classes.count <= plain.classes.count


def test_mondrian_counts_boxes_in_a_population():
    """Every box holds enough people, counted on the released intervals themselves."""
    rng = np.random.default_rng(8)
    frame = pl.DataFrame({"age": rng.integers(18, 90, 1500), "wage": rng.integers(0, 50, 1500)})
    roles = Roles(quasi_identifiers=["age", "wage"])
    table = Table(frame[:80], roles)
    masked = generalized(table, "mondrian", models=KMap(15, population=Table(frame)))[1]
    coarser = generalized(table, "mondrian", models=KMap(15, population=table))[1]
    assert masked.classes.count > coarser.classes.count  # more people allow smaller boxes
    for row in set(masked.frame.rows()):
        inside = np.ones(1500, bool)
        for name, text in zip(("age", "wage"), row, strict=True):
            inside &= [in_box(value, str(text)) for value in frame[name]]
        assert inside.sum() >= 15
