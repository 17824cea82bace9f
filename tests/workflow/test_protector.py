"""Protector: a plan in scikit-learn, for rows that come later."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import estimator_checks_generator

from shoal import (
    Generalize,
    Hierarchy,
    KAnonymity,
    Plan,
    Protector,
    Roles,
    Round,
    Sample,
    Suppress,
    Swap,
    TopBottomCode,
)
from shoal.errors import InputError, RequirementNotMet, ShoalWarning


def people(rows=120, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    return pl.DataFrame(
        {
            "age": age,
            "wage": rng.normal(3000, 900, rows).round(2),
            "city": rng.choice(["Kiel", "Ulm", "Lindau"], rows),
            "club": rng.choice(["a", "b"], rows),
        }
    ), (age + rng.normal(0, 10, rows) > 45).astype(int)


ROLES = Roles(quasi_identifiers=["age", "wage", "city"], insensitive=["club"])
TENS = Hierarchy.intervals([10, 40])


CHECKS = list(estimator_checks_generator(Protector(Plan([Generalize("mondrian", k=2)]))))
CHECK_NAMES = [getattr(run, "func", run).__name__ for _, run in CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=CHECK_NAMES)
def test_scikit_learns_own_checks(check):
    estimator, run = check
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(estimator)


def test_fitted_methods_apply_to_new_rows_and_random_ones_do_not():
    frame, _ = people()
    plan = Plan([TopBottomCode(fence=0.5), Round(base=10), Swap(k=3)], roles=ROLES)
    protector = Protector(plan).fit(frame)
    new = pl.DataFrame(
        {"age": [44, 17], "wage": [1e6, 2.0], "city": ["Ulm"] * 2, "club": ["a"] * 2}
    )
    served = protector.transform(new)
    assert served["age"][0] == 40
    assert served["wage"].to_list() == [
        round(cap / 10) * 10 for cap in protector.steps_[0].caps_["wage"][::-1]
    ]
    assert served["city"].to_list() == ["Ulm", "Ulm"]


def test_what_the_plan_requires_is_verified():
    frame, _ = people()
    with pytest.raises(RequirementNotMet, match="k-anonymity"):
        Protector(Plan([Round(base=2)], require=[KAnonymity(9)], roles=ROLES)).fit(frame)


@pytest.mark.parametrize("step", [Sample(fraction=0.5), Suppress(min_class_size=3)])
def test_a_plan_that_takes_rows_out_is_refused(step):
    frame, _ = people()
    with pytest.raises(InputError, match="rows out"):
        Protector(Plan([Round(base=40), step], roles=ROLES)).fit(frame)


@pytest.mark.parametrize(
    ("encode", "expected"),
    [
        ("text", {"age": ["[20, 30)", "[30, 40)", "[90, 100)"]}),
        ("midpoints", {"age": [25.0, 35.0, 95.0]}),
        ("codes", {"age": [0.0, 1.0, 2.0]}),
        ("one-hot", {"age=[20, 30)": [1.0, 0.0, 0.0], "age=[30, 40)": [0.0, 1.0, 0.0]}),
    ],
)
def test_how_generalized_columns_reach_a_model(encode, expected):
    frame = pl.DataFrame({"age": [21, 22, 33, 34]})
    protector = Protector(Plan([Generalize(k=2, hierarchies={"age": TENS})]), encode=encode).fit(
        frame
    )
    served = protector.transform(pl.DataFrame({"age": [29, 30, 95]}))
    assert served.to_dict(as_series=False) == expected
    assert protector.get_feature_names_out().tolist() == list(expected)


def test_missing_and_suppressed_values():
    frame = pl.DataFrame({"age": [21, 22, 23, None, None, 99]})
    step = Generalize(k=2, hierarchies={"age": TENS}, suppression_limit=0.2, suppressed="kept")
    codes = Protector(Plan([step])).fit_transform(frame)["age"].to_list()
    assert codes[:3] == [0.0, 0.0, 0.0]
    assert np.isnan(codes[3])
    assert codes[5] == -1.0


def text_columns(frame):
    return [name for name in frame.columns if not frame[name].dtype.is_numeric()]


@pytest.mark.parametrize("algorithm", ["full-domain", "mondrian", "local"])
def test_in_a_grid_search_with_a_pipeline(algorithm):
    frame, target = people()
    plan = Plan([Generalize(algorithm, k=3)], roles=ROLES)
    text = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text_columns),
        remainder="passthrough",
    )
    pipeline = make_pipeline(Protector(plan), text, LogisticRegression(max_iter=2000))
    search = GridSearchCV(
        pipeline,
        {"protector__encode": ["codes", "midpoints", "one-hot"]},
        cv=2,
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", UserWarning)  # a fold lacks a category
        search.fit(frame, target)
    assert search.best_score_ > 0.5


def test_frames_of_every_kind(frame):
    columns, _ = people()
    plan = Plan([Generalize("mondrian", k=3)], roles=ROLES)
    made = frame(columns.to_dict(as_series=False))
    out = Protector(plan).fit(made).transform(made)
    assert type(out) is frame.type
    expected = Protector(plan).fit(columns).transform(columns).to_dict(as_series=False)
    assert frame.columns(out) == expected


def test_pandas_rows_stay_with_their_index():
    pytest.importorskip("pandas", reason="pandas is not installed")
    data, _ = people()
    frame = data.to_pandas().set_axis(range(500, 620), axis="index")
    out = Protector(Plan([Round(base=5)], roles=ROLES)).fit_transform(frame)
    assert out.index.tolist() == frame.index.tolist()


def test_set_output():
    frame, _ = people()
    protector = Protector(Plan([Generalize("mondrian", k=3)], roles=ROLES))
    matrix = frame.select("age", "wage").to_numpy()
    protector.set_params(roles=None, plan=Plan([Round(base=5)])).set_output(transform="polars")
    out = protector.fit_transform(matrix)
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["x0", "x1"]


def test_a_clone_is_unfitted_and_the_plan_is_left_alone():
    frame, _ = people()
    step = Generalize("mondrian", k=3)
    protector = Protector(Plan([step], roles=ROLES)).fit(frame)
    assert not hasattr(step, "touched_")
    assert not hasattr(clone(protector), "steps_")


@pytest.mark.parametrize("algorithm", ["full-domain", "mondrian", "local"])
def test_a_pickle_holds_no_training_record(algorithm):
    """Neither a value that only one person has, nor any private key of the masking."""
    frame, _ = people()
    marked = frame.with_columns(
        wage=pl.Series([123456.78125, *frame["wage"][1:]]), club=pl.lit("hidden-club")
    )
    plan = Plan([Generalize(algorithm, k=3, columns=["age", "city"]), Swap(k=2)], roles=ROLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)  # a column may stay as it is
        protector = Protector(plan).fit(marked)
    data = pickle.dumps(protector)
    assert b"hidden-club" not in data
    assert np.float64(123456.78125).tobytes() not in data
    again = pickle.loads(data)
    new = frame[:9]
    assert again.transform(new).equals(protector.transform(new))
