"""Protector: a plan in scikit-learn, for rows that come later."""

from __future__ import annotations

import pickle
import warnings
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from shoal import (
    Generalize,
    Hierarchy,
    KAnonymity,
    LDiversity,
    Microaggregate,
    Plan,
    Protector,
    Roles,
    Round,
    Sample,
    Suppress,
    Swap,
    Table,
    TopBottomCode,
)
from shoal.errors import InputError, RequirementNotMet, RolesError, ShoalWarning
from shoal.workflow.advice._advice import with_k


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
    assert served["city"].to_list() == [2.0, 2.0]  # after Kiel and Lindau


def test_what_the_plan_requires_is_verified():
    frame, _ = people()
    with pytest.raises(RequirementNotMet, match="k-anonymity"):
        Protector(Plan([Round(base=2)], require=[KAnonymity(9)], roles=ROLES)).fit(frame)


@pytest.mark.parametrize("step", [Sample(fraction=0.5), Suppress(min_class_size=3)])
def test_a_plan_that_takes_rows_out_is_refused(step):
    frame, _ = people()
    with pytest.raises(InputError, match="rows"):
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


ALGORITHMS = ["full-domain", "mondrian", "local"]
NUMERIC = ["codes", "midpoints", "one-hot"]


@pytest.fixture(scope="module")
def adult(shared_data):
    """Some of Adult with the columns of text that a model cannot take as they are."""
    people = pl.read_parquet(shared_data / "uci" / "adult_arx.parquet")[::20]
    columns = ["age", "sex", "race", "marital-status", "education"]
    return people.select(columns), people["salary-class"]


@pytest.mark.parametrize("encode", NUMERIC)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_cross_validation_on_adult_with_text(adult, algorithm, encode):
    features, target = adult
    plan = Plan([Generalize(algorithm, k=5)], require=[KAnonymity(5)])
    model = make_pipeline(Protector(plan, encode=encode), DecisionTreeClassifier(max_depth=5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        scores = cross_val_score(model, features, target, cv=3, error_score="raise")
    assert scores.min() > 0.7


@pytest.mark.parametrize("encode", NUMERIC)
@pytest.mark.parametrize("step", [Round(base=10), Generalize("mondrian", k=3), Swap(k=3)])
def test_every_column_is_a_number_masked_or_not(step, encode):
    frame, _ = people()
    born = [date(1960, 1, 1) + timedelta(days=int(n)) for n in frame["wage"]]
    exact = frame["wage"].cast(pl.Decimal(10, 2)).alias("exact")
    frame = frame.with_columns(exact, born=pl.Series(born), member=frame["club"] == "a")
    protector = Protector(Plan([step]), roles=ROLES, encode=encode)
    fitted = protector.fit_transform(frame)
    served = protector.transform(frame[:3].with_columns(city=pl.lit("Bonn")))
    assert served.columns == fitted.columns == protector.get_feature_names_out().tolist()
    assert all(dtype.is_numeric() for dtype in (*fitted.dtypes, *served.dtypes))
    assert fitted.to_numpy().dtype == np.float64
    assert fitted["born"][0] == (born[0] - date(1970, 1, 1)).days
    assert fitted["member"].to_list() == frame["member"].cast(pl.Float64).to_list()


def test_texts_that_nobody_or_few_persons_had_share_a_code():
    jobs = ["a", "a", "a", "b", "b", "b", "rare", "rare"]
    frame = pl.DataFrame({"age": range(20, 28), "job": jobs})
    roles = Roles(quasi_identifiers=["age"], insensitive=["job"])
    plan = Plan([Round(base=10)], roles=roles)
    codes = Protector(plan).fit(frame)
    new = pl.DataFrame({"age": [20] * 4, "job": ["b", "rare", "unseen", None]})
    assert codes.transform(new)["job"].to_list()[:3] == [1.0, -1.0, -1.0]
    assert np.isnan(codes.transform(new)["job"][3])
    hot = Protector(plan, encode="one-hot").fit(frame).transform(new)
    assert hot.columns == ["age", "job=a", "job=b"]
    assert hot["job=b"].to_list() == [1.0, 0.0, 0.0, 0.0]
    assert b"rare" not in pickle.dumps(codes)


def test_a_number_that_comes_as_text_later_is_refused_and_none_at_all_is_missing():
    frame, _ = people()
    protector = Protector(Plan([Swap(k=3)], roles=ROLES)).fit(frame)
    nothing = frame[:2].with_columns(wage=pl.Series([None, None]))
    assert protector.transform(nothing)["wage"].is_nan().all()
    with pytest.raises(InputError, match="fitted"):
        protector.transform(frame[:2].with_columns(wage=pl.Series(["much", "little"])))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_in_a_grid_search_with_a_pipeline(algorithm):
    frame, target = people()
    plan = Plan([Generalize(algorithm, k=3)], require=[KAnonymity(3)], roles=ROLES)
    pipeline = make_pipeline(Protector(plan), LogisticRegression(max_iter=5000))
    grid = {"protector__encode": NUMERIC, "protector__k": [3, 6]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(frame, target)
    assert search.best_score_ > 0.5
    assert len(search.cv_results_["params"]) == 6


class TestK:
    """One number in the place of every k of a plan."""

    def test_it_reaches_steps_their_models_and_requirements(self):
        models = [KAnonymity(2), LDiversity(2)]
        plan = Plan(
            [Generalize(k=2, models=models), Microaggregate(2, columns=["wage"])],
            require=[KAnonymity(2), LDiversity(2)],
        )
        changed = with_k(plan, 7)
        assert [step.k for step in changed.steps] == [7, 7]
        assert changed.steps[0].models == [KAnonymity(7), LDiversity(2)]
        assert changed.require == (KAnonymity(7), LDiversity(2))
        assert plan.steps[0].k == 2

    def test_what_has_no_k_keeps_none(self):
        plan = with_k(Plan([Generalize(models=[KAnonymity(2)])]), 4)
        assert (plan.steps[0].k, plan.steps[0].models) == (None, [KAnonymity(4)])

    def test_a_plan_without_a_k_is_refused(self):
        frame, _ = people()
        with pytest.raises(InputError, match="KAnonymity"):
            Protector(Plan([Round(base=5)], roles=ROLES), k=5).fit(frame)

    @pytest.mark.parametrize("k", [2, 10])
    def test_the_released_classes_have_it(self, k):
        frame, _ = people()
        plan = Plan([Generalize("mondrian", k=5)], require=[KAnonymity(5)], roles=ROLES)
        out = Protector(plan, k=k, encode="text").fit_transform(frame)
        counts = out.group_by(ROLES.quasi_identifiers).len()["len"]
        assert k <= counts.min() < 2 * k + 2

    def test_alone_it_asks_for_the_shortest_plan(self):
        frame, _ = people()
        out = Protector(k=4, roles=ROLES.to_dict(), encode="text").fit_transform(frame)
        assert out.group_by(ROLES.quasi_identifiers).len()["len"].min() >= 4


class TestTheTarget:
    """y as a sensitive column of a model."""

    @staticmethod
    def diverse():
        model = LDiversity(2, column="ill")
        return Plan([Generalize("mondrian", k=2, models=model)], require=[KAnonymity(2), model])

    @staticmethod
    def rows():
        ages = [20, 21, 22, 23, 60, 61, 62, 63]
        return pl.DataFrame({"age": ages}), ["no"] * 4 + ["yes"] * 4

    def diversity(self, out, y):
        both = out.with_columns(ill=pl.Series(list(y)))
        return both.group_by("age").agg(pl.col("ill").n_unique())["ill"].min()

    @pytest.mark.parametrize("kind", ["series", "array", "frame"])
    def test_it_takes_part_and_does_not_come_out(self, kind):
        frame, ill = self.rows()
        ill = ill[::2] + ill[1::2]  # no, no, yes, yes, no, no, yes, yes
        y = {"series": pl.Series("ill", ill), "array": np.array(ill)}.get(kind)
        y = pl.DataFrame({"ill": ill}) if y is None else y
        target = "ill" if kind == "array" else None
        protector = Protector(self.diverse(), target=target, encode="text")
        out = protector.fit_transform(frame, y)
        assert out.columns == ["age"] == protector.get_feature_names_out().tolist()
        assert self.diversity(out, ill) == 2
        assert protector.transform(frame).columns == ["age"]
        assert b"yes" not in pickle.dumps(protector)

    def test_pandas_series(self):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        frame, ill = self.rows()
        y = pandas.Series(ill[::2] + ill[1::2], name="ill", index=range(100, 108))
        out = Protector(self.diverse(), encode="text").fit_transform(frame.to_pandas(), y)
        assert self.diversity(pl.from_pandas(out), y) == 2

    def test_a_sensitive_role_names_it(self):
        frame, ill = self.rows()
        model = LDiversity(2)
        plan = Plan([Generalize("mondrian", k=2)], require=[model])
        roles = Roles(quasi_identifiers=["age"], sensitive=["ill"])
        with pytest.raises(RequirementNotMet, match="diversity"):
            Protector(plan, roles=roles).fit(frame, pl.Series("ill", ill))

    def test_a_target_that_is_named_is_sensitive_too(self):
        frame, ill = self.rows()
        plan = Plan([Generalize("mondrian", k=2, models=LDiversity(2))])
        roles = Roles(quasi_identifiers=["age"], target="ill")
        y = ill[::2] + ill[1::2]
        out = Protector(plan, roles=roles, target="ill", encode="text").fit_transform(frame, y)
        assert self.diversity(out, y) == 2

    def test_another_y_is_left_alone(self):
        frame, ill = self.rows()
        plan = Plan([Generalize("mondrian", k=2)], require=[KAnonymity(2)])
        Protector(plan).fit(frame, pl.Series("ill", ill))

    @pytest.mark.parametrize(
        ("target", "y", "said"),
        [
            (None, np.arange(8), "target='ill'"),
            (None, None, "target='ill'"),
            ("ill", None, "not given"),
            ("age", np.arange(8), "X has a column"),
            ("ill", np.arange(7), "7 values"),
        ],
    )
    def test_what_does_not_fit(self, target, y, said):
        frame, _ = self.rows()
        with pytest.raises(InputError, match=said):
            Protector(self.diverse(), target=target).fit(frame, y)

    def test_a_step_that_changes_it_is_refused(self):
        frame, _ = self.rows()
        plan = Plan([Round(base=50, columns=["wage"])])
        with pytest.raises(InputError, match="wage"):
            Protector(plan, target="wage").fit(frame, np.arange(8) * 7)


class TestArrays:
    """Columns without names."""

    matrix = np.array([[20, 1], [21, 2], [60, 3], [61, 4]])
    plan = Plan([Generalize("mondrian", k=2, columns=["age"])])

    def test_names_are_asked_for(self):
        with pytest.raises(InputError, match=r"names="):
            Protector(self.plan, roles=Roles(quasi_identifiers=["age"])).fit(self.matrix)

    def test_names_can_be_given(self):
        protector = Protector(self.plan, names=["age", "size"])
        assert protector.fit_transform(self.matrix)[:, 0].tolist() == [0, 0, 1, 1]
        assert protector.get_feature_names_out().tolist() == ["age", "size"]

    def test_one_for_each(self):
        with pytest.raises(InputError, match="1 names for 2"):
            Protector(self.plan, names=["age"]).fit(self.matrix)


def test_a_quasi_identifier_that_is_not_there_is_refused():
    frame, _ = people()
    with pytest.raises(RolesError, match="Did you mean 'wage'"):
        Protector(Plan([Round(base=5)]), roles=Roles(quasi_identifiers=["wages"])).fit(frame)


def test_a_table_brings_its_roles():
    frame, _ = people()
    by_table = Protector([Round(base=5)]).fit_transform(Table(frame, ROLES))
    assert by_table.equals(Protector([Round(base=5)], roles=ROLES).fit_transform(frame))


def test_a_list_of_steps_or_a_path_is_a_plan(tmp_path):
    frame, _ = people()
    Plan([Round(base=5)], roles=ROLES).save(tmp_path / "plan.toml")
    by_path = Protector(tmp_path / "plan.toml").fit_transform(frame)
    assert by_path.equals(Protector([Round(base=5)], roles=ROLES).fit_transform(frame))


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
    """Neither a value that only one or two persons have, nor any private key of the masking."""
    frame, _ = people()
    marked = frame.with_columns(
        wage=pl.Series([123456.78125, *frame["wage"][1:]]),
        club=pl.Series(["hidden-club", "hidden-club", *frame["club"][2:]]),
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
