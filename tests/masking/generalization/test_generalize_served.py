"""Generalize: what is served later is what was released, whatever the rows come as."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings

import numpy as np
import polars as pl
import pytest

from shoal import (
    AverageRisk,
    DifferentialPrivacy,
    Generalize,
    Hierarchy,
    KAnonymity,
    LDiversity,
    Plan,
    Protector,
    Roles,
    Sample,
    Table,
    TCloseness,
    protect,
    verify,
)
from shoal.errors import (
    InputError,
    ModelMissedWarning,
    NothingLeftWarning,
    ParameterError,
    RequirementNotMet,
    SeedWarning,
    UnreachableLevel,
)
from shoal.utility import suppressed_cells

ALGORITHMS = ("full-domain", "mondrian", "local")
TENS = Hierarchy.intervals([10, 50])


def people(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 70, rows),
            "since": pl.Series(rng.integers(0, 4000, rows)).cast(pl.Date),
        }
    )


# -- rows of other types


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "since", [pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("ms"), pl.Date]
)
@pytest.mark.parametrize("age", [pl.Int8, pl.Float32, pl.Decimal(10, 2)])
def test_equal_values_of_other_types_are_served_alike(algorithm, since, age):
    frame = people()
    protector = Protector(Plan([Generalize(algorithm, k=3)]), encode="text").fit(frame)
    as_fitted = protector.transform(frame)
    served = protector.transform(frame.cast({"since": since, "age": age}))
    assert served.rows() == as_fitted.rows()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", [pl.String, pl.Boolean, pl.Date])
def test_a_column_of_another_kind_is_refused(algorithm, kind):
    frame = people().select("age")
    step = Generalize(algorithm, k=9)
    step.fit_transform(Table(frame, Roles(quasi_identifiers=["age"])))
    with pytest.raises(InputError, match=r"'age' is (text|boolean|date)"):
        step.transform(Table(frame.cast(kind)))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Null, pl.String])
def test_a_single_row_may_lack_its_value(algorithm, dtype):
    """A column without any value is a mistake in a table, and not in one row."""
    frame = people()
    protector = Protector(Plan([Generalize(algorithm, k=3)]), encode="text").fit(frame)
    row = pl.DataFrame({"age": pl.Series([None], dtype=dtype), "since": [dt.date(1975, 1, 1)]})
    assert len(protector.transform(row)) == 1


@pytest.mark.parametrize("algorithm", ["mondrian", "local"])
def test_a_number_beyond_all_boxes_gets_the_nearest(algorithm):
    frame = pl.DataFrame({"age": [21, 22, 33, 34, 65, 66], "side": list("aabbaa")})
    step = Generalize(algorithm, k=2, hierarchies={"age": TENS, "side": Hierarchy.suppression()})
    table = Table(frame, Roles(quasi_identifiers=["age", "side"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLeftWarning)
        assert step.fit_transform(table).frame["age"].unique().len() == 3
    later = pl.DataFrame({"age": [45, 5, 10**15], "side": ["b", "a", "a"]})
    served = step.transform(Table(later)).frame["age"].to_list()
    assert served == ["[30, 40)", "[20, 30)", "[60, 70)"]


# -- suppressed records that are kept


def kept():
    frame = pl.DataFrame(
        {
            "age": [21, 22, 33, 34, 99],
            "size": [170, 170, 180, 180, 777],
            "ill": ["x", "y", "x", "y", "x"],
        }
    )
    step = Generalize(
        k=2,
        hierarchies={"age": TENS, "size": Hierarchy.intervals([10])},
        suppression_limit=0.2,
        suppressed="kept",
    )
    return frame, Roles(quasi_identifiers=["age", "size"], sensitive=["ill"]), step


@pytest.mark.parametrize("encode", ["codes", "midpoints", "one-hot", "text"])
def test_columns_at_level_0_are_served_as_they_were_released(encode):
    frame, roles, step = kept()
    protector = Protector(Plan([step]), roles=roles, encode=encode)
    fitted = protector.fit_transform(frame)
    assert protector.steps_[0].levels_["size"] == 0
    assert protector.transform(frame).schema == fitted.schema
    assert protector.get_feature_names_out().tolist() == fitted.columns
    if encode != "text":
        assert all(fitted[name].dtype.is_numeric() for name in fitted.columns if name != "ill")
    # that of the suppressed record is neither a feature nor kept
    assert b"777" not in pickle.dumps(protector)
    assert np.float64(777).tobytes() not in pickle.dumps(protector)


def test_sensitive_values_that_were_taken_out_are_on_record(tmp_path):
    frame, roles, step = kept()
    table = Table(frame, roles)
    masked = step.fit_transform(table)
    assert step.touched_ == ("age", "size", "ill")
    assert step.skipped_ == {}
    release = protect(table, Plan([step]))
    release.save(tmp_path / "out")
    assert not [c for c in verify(tmp_path / "out", original=table).checks if c.status == "failed"]
    # rows that come later need no sensitive column
    assert len(step.transform(Table(frame.drop("ill"))).columns) == 2
    # of 15 cells 3 are gone, two of them as '*'
    assert suppressed_cells(table, masked).value == pytest.approx(3 / 15)


def test_a_star_that_was_a_value_is_not_suppressed():
    before = Table(pl.DataFrame({"x": ["*", "a"]}))
    assert suppressed_cells(before, before).value == 0.0
    assert suppressed_cells(Table(pl.DataFrame({"x": ["b", "a"]})), before).value == 0.5


# -- models and suppression


def test_what_the_whole_table_fails_may_hold_without_some_records():
    model = LDiversity(2, kind="recursive", c=1.4)
    table = Table(
        pl.DataFrame({"age": [21] * 4 + [33] * 6, "ill": [*"xxyy", *"xxxxxx"]}),
        Roles(quasi_identifiers=["age"], sensitive=["ill"]),
    )
    assert not model.holds(table.drop(["age"]))
    step = Generalize(models=model, hierarchies={"age": TENS}, suppression_limit=0.6)
    masked = step.fit_transform(table)
    assert (len(masked), model.holds(masked)) == (4, True)
    with pytest.raises(RequirementNotMet, match="cannot be reached"):
        Generalize(models=model, hierarchies={"age": TENS}).fit_transform(table)


def test_a_distribution_that_moved_is_told():
    """Sixteen people alone had made 12 in 40 of 12 in 24; without them nobody is close to 0."""
    alone = [100 + 10 * place for place in range(16)]
    frame = pl.DataFrame(
        {"age": [21] * 4 + [33] * 20 + alone, "ill": [*"yyyy", *"x" * 12, *"y" * 24]}
    )
    table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
    options = {
        "k": 2,
        "hierarchies": {"age": Hierarchy.intervals([10])},
        "levels": {"age": 1},
        "suppression_limit": 1.0,
    }
    step = Generalize(models=TCloseness(0.3), **options)
    with pytest.warns(ModelMissedWarning, match=r"level is 0\.5, and 0\.3 was required"):
        assert len(step.fit_transform(table)) == 24
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Generalize(models=TCloseness(0.5), **options).fit_transform(table)


# -- differential privacy is about how a table is made


def sampled(k, columns=None, **levels):
    frame = pl.DataFrame({"age": [21] * 400 + [33] * 400, "size": [1] * 800})
    table = Table(frame, Roles(quasi_identifiers=["age", "size"]))
    steps = [
        Sample(fraction=0.5, strategy="bernoulli"),
        Generalize(
            k=k,
            hierarchies=dict.fromkeys(levels, TENS),
            levels=levels,
            suppression_limit=1.0,
            columns=columns,
        ),
    ]
    return Plan(steps).apply(table)[0]


def test_large_classes_are_no_privacy_where_small_ones_would_have_stayed():
    model = DifferentialPrivacy(1.0, 1e-6)
    needed = model.smallest_class_at(0.5)
    asked, careless = sampled(needed, age=1, size=1), sampled(2, age=1, size=1)
    assert asked.class_sizes().min() > needed
    assert careless.class_sizes().min() > needed
    assert model.holds(asked)
    assert not model.holds(careless)
    # the level is that of the k, and not of classes that happen to be larger
    assert model.level(asked) == pytest.approx(model.level(sampled(needed, age=2, size=2)))
    assert model.level(careless) > 1.0
    assert "k of the step" in model.explain(careless)


def test_columns_left_out_of_the_generalization_are_no_differential_privacy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = sampled(60, columns=["age"], age=1)
    assert not DifferentialPrivacy(1.0, 1e-6).holds(part)


def test_a_limit_of_suppression_is_no_differential_privacy():
    """One person of 105 who is drawn would make the step fail: that it did not tells of them."""
    frame = pl.DataFrame({"age": [21] * 400})
    table = Table(frame, Roles(quasi_identifiers=["age"]))
    model = DifferentialPrivacy(1.0, 1e-6)
    for limit, holds in ((0.0, False), (0.9, False), (1.0, True)):
        options = {"hierarchies": {"age": TENS}, "levels": {"age": 1}, "k": 60}
        steps = [
            Sample(fraction=0.5, strategy="bernoulli"),
            Generalize(suppression_limit=limit, **options),
        ]
        assert model.holds(Plan(steps).apply(table)[0]) == holds


def by_model(models, sample=None, **options):
    """Three thousand ages and eight of 105, sampled and generalized by a plan of two steps."""
    ages = pl.DataFrame({"age": [*np.random.default_rng(0).integers(18, 90, 3000), *[105] * 8]})
    table = Table(ages, Roles(quasi_identifiers=["age"]))
    given = {"hierarchies": {"age": TENS}, "levels": {"age": 1}, "suppression_limit": 1.0}
    step = Generalize(models=models, **(given | options))
    return step, Plan([sample or Sample(fraction=0.1, strategy="bernoulli"), step]).apply(table)[0]


@pytest.mark.parametrize("k", [None, 4, 30])
def test_differential_privacy_is_a_model_of_the_step(k):
    """Its k follows from the fraction of the sample, and a larger one is kept."""
    model = DifferentialPrivacy(1.0, 1e-6)
    _, masked = by_model(model, k=k)
    assert masked.course.smallest == max(k or 0, 9)
    assert masked.classes.k >= masked.course.smallest
    assert "[100, 110)" not in masked.frame["age"].to_list()  # eight at most were drawn
    assert model.holds(masked)
    assert by_model([model, KAnonymity(11)])[1].course.smallest == 11


@pytest.mark.parametrize(
    ("models", "options", "part"),
    [
        ((), {"levels": None}, "every search looks at them"),
        ((), {"levels": None, "algorithm": "mondrian"}, "every search looks at them"),
        ((), {"levels": None, "algorithm": "local"}, "every search looks at them"),
        ((), {"extend": True}, "remove 'suppressed' and 'extend'"),
        ((), {"suppressed": "kept"}, "remove 'suppressed' and 'extend'"),
        ((), {"suppression_limit": 0.5}, "'suppression_limit' to 1"),
        ((AverageRisk(0.1),), {}, "'average risk' removes them"),
    ],
)
def test_what_looks_at_the_data_is_refused_at_the_door(models, options, part):
    if "algorithm" in options:
        options = {**options, "suppression_limit": 0.0}
    with pytest.raises(ParameterError, match=part):
        by_model([DifferentialPrivacy(1.0, 1e-6), *models], **options)


@pytest.mark.parametrize(
    ("sample", "error", "part"),
    [
        (Sample(fraction=0.1), InputError, "strategy 'bernoulli' first"),
        (Sample(fraction=0.1, strategy="bernoulli", random_state=1), InputError, "with a seed"),
        (Sample(fraction=0.7, strategy="bernoulli"), UnreachableLevel, r"at least 1\.204.*0\.6321"),
    ],
)
def test_a_table_that_was_drawn_otherwise_is_refused(sample, error, part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeedWarning)
        with pytest.raises(error, match=part):
            by_model(DifferentialPrivacy(1.0, 1e-6), sample)


def test_a_row_that_a_star_covers_gets_no_number_that_is_not_its_own():
    """The only number that was released is 8: it is nearest to 7, and does not hold it."""
    frame = pl.DataFrame({"age": [8, 8, 7, 30], "city": ["Ulm", "Ulm", "Ulm", "Kiel"]})
    table = Table(frame, Roles(quasi_identifiers=["age", "city"]))
    cities = Hierarchy.from_rows([("Ulm", "DE"), ("Kiel", "DE")])
    hierarchies = {"age": Hierarchy.intervals([5]), "city": cities}
    step = Generalize("local", k=2, hierarchies=hierarchies)
    masked = step.fit_transform(table)
    assert set(masked.frame.rows()) == {("8", "Ulm"), ("*", "*")}
    assert step.transform(table).frame.rows() == masked.frame.rows()


def test_a_value_that_no_box_knows_does_not_pull_a_row_away():
    """An unknown city: the nearest box by age, and not the far one whose city says nothing."""
    frame = pl.DataFrame(
        {
            "age": [20, 22] * 2 + [80, 82] * 2,
            "city": [*["Ulm"] * 4, "Kiel", "Bremen", "Jena", "Graz"],
        }
    )
    table = Table(frame, Roles(quasi_identifiers=["age", "city"]))
    cities = Hierarchy.from_rows(
        [(city, "*") for city in ("Ulm", "Kiel", "Bremen", "Jena", "Graz")]
    )
    for algorithm, hierarchies in (
        ("mondrian", {"city": cities}),
        ("local", {"city": cities, "age": TENS}),
    ):
        step = Generalize(algorithm, k=4, hierarchies=hierarchies)
        masked = step.fit_transform(table)
        assert masked.frame["city"].to_list() == ["Ulm"] * 4 + ["*"] * 4
        later = Table(pl.DataFrame({"age": [21, 79], "city": ["Oslo", "Oslo"]}))
        served = step.transform(later).frame
        assert served["age"].to_list() == [masked.frame["age"][0], masked.frame["age"][4]]
        assert served["city"].to_list() == ["Ulm", "*"]
