"""The five techniques of Carvalho et al. (2022), worked by hand and against slow references.

Carvalho, Moniz, Faria, Antunes, "Towards a Data Privacy-Predictive Performance Trade-off",
section 3, with the parameter grids of its experiments. Where the paper leaves a choice open, the
choice is said at the test. The references below are plain Python, one value at a time, and are
compared with the methods on public tables, cell by cell.
"""

from __future__ import annotations

import math
import statistics
import warnings
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from shoal import AddNoise, KAnonymity, Plan, Recode, Roles, Round, Suppress, Table, TopBottomCode
from shoal import protect as protect_table
from shoal.errors import SeedWarning, ShoalWarning
from shoal.randomness import SecretStream

MAX_DISTINCT = (0.7, 0.8, 0.9)
FENCES = (1.5, 3)
EPSILONS = (0.5, 2, 4, 8, 16)
BASES = (0.2, 5, 10)
MAGNITUDES = (0.5, 1.5)


def quasi(columns):
    frame = pl.DataFrame(columns)
    return Table(frame, Roles(quasi_identifiers=frame.columns))


def column(masker, values):
    """One masked column as a list."""
    masked = masker.fit_transform(quasi({"x": values}))
    return masked.frame["x"].to_list()


# -- suppression: a column goes when its share of different values is above the limit


def test_suppress_is_strict():
    """7 of 10 different is a share of 0.7, which is not above 0.7; 8 of 10 is."""
    table = quasi(
        {
            "seven": [1, 2, 3, 4, 5, 6, 7, 7, 7, 7],
            "eight": [1, 2, 3, 4, 5, 6, 7, 8, 8, 8],
            "nine": list("abcdefghii"),
            "ten": [x / 4 for x in range(10)],
        }
    )
    left = {
        share: Suppress(max_distinct=share).fit_transform(table).columns for share in MAX_DISTINCT
    }
    assert left == {0.7: ["seven"], 0.8: ["seven", "eight"], 0.9: ["seven", "eight", "nine"]}
    assert Suppress(max_distinct=1).fit_transform(table).columns == table.columns
    assert Suppress(max_distinct=0).fit_transform(table).columns == []


def test_suppress_does_not_count_missing_as_a_value():
    """Like pandas' nunique: 7 values and 3 gaps are 7 different of 10 records."""
    values = [1, 2, 3, 4, 5, 6, 7, None, None, None]
    assert column(Suppress(max_distinct=0.7), values) == values


def test_suppress_can_take_every_column():
    """Breast cancer: 30 of 30 attributes are floats of which nearly all are different."""
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    data = datasets.load_breast_cancer().data
    table = quasi({f"x{i}": values for i, values in enumerate(data.T)})
    suppress = Suppress(max_distinct=0.7)
    assert suppress.fit_transform(table).columns == []
    assert len(suppress.removed_columns_) == 30


# -- top and bottom coding: beyond the fences to the whiskers


def test_top_bottom_code_uses_whiskers_not_fences():
    """Q1 = 3.25, Q3 = 7.75, IQR = 4.5: the upper fence is 14.5, the whisker 9."""
    values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 30]
    assert column(TopBottomCode(fence=1.5, cap="whisker"), values) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    # 3 x 4.5 above 7.75 is 21.25: 20 stays, and 30 becomes 20.
    values = [1, 2, 3, 4, 5, 6, 7, 8, 20, 30]
    assert column(TopBottomCode(fence=3, cap="whisker"), values) == [1, 2, 3, 4, 5, 6, 7, 8, 20, 20]
    assert column(TopBottomCode(fence=1.5, cap="whisker"), values) == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]


def test_top_bottom_code_keeps_what_is_on_a_fence():
    """Nine values, so the quartiles are the third and seventh: 10 and 14, fences 4 and 20."""
    values = [4, 9, 10, 11, 12, 13, 14, 20, 21]
    assert column(TopBottomCode(fence=1.5, cap="whisker"), values) == [
        4,
        9,
        10,
        11,
        12,
        13,
        14,
        20,
        20,
    ]
    values = [3.5, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 19.5, 20.5]
    expected = [9.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 19.5, 19.5]
    assert column(TopBottomCode(fence=1.5, cap="whisker"), values) == expected


def test_top_bottom_code_skips_columns_without_spread():
    """With equal quartiles every 1 of a flag would be outside and become 0."""
    flags = [0] * 9 + [1]
    method = TopBottomCode(fence=1.5, cap="whisker")
    assert column(method, flags) == flags
    assert method.skipped_ == {"x": "its quartiles are equal"}


# -- noise: Laplace with scale diameter / epsilon


@pytest.fixture
def scales(monkeypatch):
    """The scales that noise is drawn with, column by column."""
    seen = []
    draw = SecretStream.laplace_on_grid

    def watched(self, values, scales, **more):
        seen.append(np.asarray(scales).tolist())
        return draw(self, values, scales, **more)

    monkeypatch.setattr(SecretStream, "laplace_on_grid", watched)
    return seen


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_noise_scale_follows_the_nominal_class(scales, epsilon):
    """Classes are formed by the nominal quasi-identifiers together, not by numbers.

    f/True: 10 and 30, diameter 20. f/False: 12 only, so the column's range 35 - 5 = 30.
    m/True: 5 and 35 (one value missing), diameter 30. m/False: 7 twice, so 30 again.
    """
    table = quasi(
        {
            "income": [10.0, 30.0, 12.0, 5.0, None, 35.0, 7.0, 7.0],
            "sex": ["f", "f", "f", "m", "m", "m", "m", "m"],
            "married": [True, True, False, True, True, True, False, False],
            "age": [1, 2, 3, 4, 5, 6, 7, 8],
        }
    )
    AddNoise(epsilon=epsilon).fit_transform(table)
    diameters = [20, 20, 30, 30, 30, 30, 30]  # of the present values, in order
    assert scales == [[diameter / epsilon for diameter in diameters]]


def test_noise_class_uses_quasi_identifiers_only(scales):
    """A nominal column that an intruder does not know forms no class."""
    frame = pl.DataFrame({"x": [0.0, 1.0, 10.0, 18.0], "kind": list("aabb"), "ill": list("yyyn")})
    roles = Roles(quasi_identifiers=["x", "kind"], sensitive=["ill"])
    AddNoise(epsilon=2).fit_transform(Table(frame, roles))
    assert scales == [[0.5, 0.5, 4.0, 4.0]]


def test_noise_without_nominal_columns_uses_the_range(scales):
    AddNoise(epsilon=4).fit_transform(quasi({"x": [1.0, 9.0, 3.0], "n": [1, 2, 3]}))
    assert scales == [[2.0, 2.0, 2.0]]


def test_noise_is_for_floats_only():
    table = quasi({"whole": [1, 2, 3], "flag": [True, False, True], "share": [0.5, 0.75, 0.5]})
    noise = AddNoise(epsilon=2)
    masked = noise.fit_transform(table)
    assert noise.touched_ == ("share",)
    assert set(noise.skipped_) == {"whole", "flag"}
    assert masked.frame.select("whole", "flag").equals(table.frame.select("whole", "flag"))


def test_noise_is_laplace_with_the_scale_of_the_class():
    """Kolmogorov-Smirnov against scipy's Laplace, class by class; the seed makes it repeatable.

    A wrong scale (the whole range for all, or the variance instead of the scale) is rejected at
    the same level, so that the test can fail.
    """
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    n = 4000
    rng = np.random.default_rng(1)
    wide, narrow = rng.uniform(0, 100, n), rng.uniform(40, 45, n)
    wide[:2], narrow[:2] = (0, 100), (40, 45)
    values = np.concatenate([wide, narrow, np.full(n, 50.0)])
    labels = ["wide"] * n + ["narrow"] * n + ["constant"] * n
    table = quasi({"x": values, "kind": labels})
    with pytest.warns(SeedWarning):
        masked = AddNoise(epsilon=4, random_state=20220101).fit_transform(table)
    noise = masked.frame["x"].to_numpy() - values
    assert (noise != 0).all()
    for part, diameter in ((0, 100.0), (1, 5.0), (2, 100.0)):
        drawn = noise[part * n : (part + 1) * n]
        assert stats.kstest(drawn, stats.laplace(scale=diameter / 4).cdf).pvalue > 0.001
        for wrong in (diameter / 4 * 1.2, math.sqrt(diameter / 4 / 2)):
            assert stats.kstest(drawn, stats.laplace(scale=wrong).cdf).pvalue < 0.001
    # the noise of a record tells nothing about that of its neighbour
    assert abs(np.corrcoef(noise[: n - 1], noise[1:n])[0, 1]) < 0.05


def test_noise_is_on_one_grid_for_the_whole_column():
    """The last bits tell nothing: every released value is a whole number of the same steps."""
    values = [0.1 * i for i in range(200)]
    masked = column(AddNoise(epsilon=2), values)
    step = 2.0**-27  # the scale is 9.95; the grid at most 2**-30 of it
    assert all((value / step).is_integer() for value in masked)
    assert not all((value / step).is_integer() for value in values)


# -- rounding: base * round(x / base)


@pytest.mark.parametrize(
    ("base", "values", "expected"),
    [
        (0.2, [0.09, 0.11, 0.31, 0.5, 0.71, -0.05], [0.0, 0.2, 0.4, 0.4, 0.8, 0.0]),
        (0.2, [3 * 0.2, 7 * 0.2, 0.6, 1.4], [0.6, 1.4, 0.6, 1.4]),
        (5, [2.4, 2.5, 2.6, 7.5, 12.5, -7.5], [0.0, 0.0, 5.0, 10.0, 10.0, -10.0]),
        (10, [0.0, 0.4, 1.0], [0.0, 0.0, 0.0]),
        (5, [7, 8, -7, -8, 0, 12, 13], [5, 10, -5, -10, 0, 10, 15]),
        (10, [5, 15, 25, -5, -15, 14, 16], [0, 20, 20, 0, -20, 10, 20]),
        (0.2, [1, 2, 3, -7], [1, 2, 3, -7]),
        (2.5, [1, 2, 3, 4, 6], [0, 2, 2, 5, 5]),
    ],
)
def test_round(base, values, expected):
    """Halves go to the even multiple, as Python rounds; whole numbers stay whole.

    Base 10 makes a column of shares constant: nothing is scaled first. 2.5 on whole numbers gives
    0, 2.5, 2.5, 5, 5, and then whole numbers of those.
    """
    result = column(Round(base=base), values)
    assert result == expected
    assert [type(value) for value in result] == [type(value) for value in values]
    assert all(math.copysign(1, value) == 1 for value in result if value == 0)


# -- recoding: ranges of int(sd * magnitude), the lower limit kept


@pytest.mark.parametrize(
    ("magnitude", "values", "expected"),
    [
        # sd = sqrt(62.5) = 7.906: widths int(3.953) = 3 and int(11.858) = 11
        (0.5, [20, 25, 30, 35, 40], [20, 23, 29, 35, 38]),
        (1.5, [20, 25, 30, 35, 40], [20, 20, 20, 31, 31]),
        (1.5, [-10, -5, 0, 5, 10], [-10, -10, -10, 1, 1]),
        (1.5, [40, None, 20, 30, 35, 25], [31, None, 20, 20, 31, 20]),
    ],
)
def test_recode(magnitude, values, expected):
    """The ranges start at the smallest value, the width is cut off, not rounded."""
    result = column(Recode(magnitude=magnitude, start="lowest"), values)
    assert result == expected
    assert {type(value) for value in result if value is not None} == {int}


def test_recode_leaves_what_has_no_width():
    """A flag has a deviation of at most 0.71: int(0.71 * 0.5) = 0 is no range."""
    recode = Recode(magnitude=0.5, start="lowest")
    assert column(recode, [0, 1, 0, 1]) == [0, 1, 0, 1]
    assert recode.skipped_ == {"x": "its spread is below one unit"}
    recode = Recode(magnitude=1.5, start="lowest")
    recode.fit_transform(quasi({"x": [1.5, 90.0, 3.0], "n": [1, 2, 90]}))
    assert recode.touched_ == ("n",)


# -- slow references, on public tables


def quantile(ordered, share):
    """Linear between the two nearest, as numpy and R (type 7) do."""
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def reference_top_bottom_code(values, fence):
    ordered = sorted(value for value in values if value is not None)
    first, third = quantile(ordered, 0.25), quantile(ordered, 0.75)
    if first == third:
        return values
    low, high = first - fence * (third - first), third + fence * (third - first)
    inside = [value for value in ordered if low <= value <= high]
    return [None if value is None else min(max(value, inside[0]), inside[-1]) for value in values]


def reference_round(values, base):
    if isinstance(next(v for v in values if v is not None), int):
        exact = Fraction(str(base))
        return [None if v is None else round(exact * round(v / exact)) for v in values]
    return [None if v is None else base * round(v / base) for v in values]


def reference_recode(values, magnitude):
    present = [value for value in values if value is not None]
    width = int(statistics.stdev(present) * magnitude)
    if width == 0:
        return values
    low = min(present)
    return [None if v is None else low + width * ((v - low) // width) for v in values]


TABLES = ["heart_cleveland", "cmc", "mammographic", "cardiotocography", "adult"]


@pytest.fixture(scope="module", params=TABLES)
def public(request, shared_data):
    frame = pl.read_parquet(shared_data / "uci" / f"{request.param}.parquet")
    frame = frame.gather_every(1 + len(frame) // 8000)  # the references are slow
    return Table(frame, Roles(quasi_identifiers=frame.columns[:-1], target=frame.columns[-1]))


def check_columns(table, masker, kinds, reference):
    """The method equals its reference in every column of the kinds, and leaves the others."""
    masked = masker.fit_transform(table)
    changed = []
    for name in table.roles.quasi_identifiers:
        before, after = table.frame[name].to_list(), masked.frame[name].to_list()
        if table.kind(name) not in kinds:
            assert after == before
            continue
        expected = reference(before)
        assert [v is None for v in after] == [v is None for v in expected]
        if table.kind(name) == "integer":
            assert after == expected
        else:
            assert all(
                abs(a - e) <= 1e-12 * max(1.0, abs(e))
                for a, e in zip(after, expected, strict=True)
                if a is not None
            )
        if after != before:
            changed.append(name)
    assert list(masker.touched_) == changed


@pytest.mark.parametrize("share", MAX_DISTINCT)
def test_suppress_on_public_tables(public, share):
    gone = [
        name
        for name in public.roles.quasi_identifiers
        if len({v for v in public.frame[name].to_list() if v is not None}) / len(public) > share
    ]
    suppress = Suppress(max_distinct=share)
    masked = suppress.fit_transform(public)
    assert list(suppress.removed_columns_) == gone
    assert masked.columns == [name for name in public.columns if name not in gone]


@pytest.mark.parametrize("fence", FENCES)
def test_top_bottom_code_on_public_tables(public, fence):
    check_columns(
        public,
        TopBottomCode(fence=fence, cap="whisker"),
        ("integer", "float"),
        lambda values: reference_top_bottom_code(values, fence),
    )


@pytest.mark.parametrize("base", BASES)
def test_round_on_public_tables(public, base):
    check_columns(
        public,
        Round(base=base),
        ("integer", "float"),
        lambda values: reference_round(values, base),
    )


@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_recode_on_public_tables(public, magnitude):
    check_columns(
        public,
        Recode(magnitude=magnitude, start="lowest"),
        ("integer",),
        lambda values: reference_recode(values, magnitude),
    )


def test_heart_in_numbers(shared_data):
    """A few cells of heart_cleveland with the numbers written out (computed with pandas 3.1).

    chol: quartiles 211 and 275, so fences at 115 and 371, and 394 … 564 become the whisker 360;
    deviation 51.78, so ranges of int(25.89) = 25 from 126 on. trestbps: quartiles 120 and 140,
    fences 90 and 170, and 172 … 200 become 170.
    """
    frame = pl.read_parquet(shared_data / "uci" / "heart_cleveland.parquet")
    table = Table(frame, Roles(quasi_identifiers=frame.columns[:-1]))
    coded = TopBottomCode(fence=1.5, cap="whisker")
    masked = coded.fit_transform(table)
    assert {name: tuple(map(int, coded.caps_[name])) for name in ("chol", "trestbps")} == {
        "chol": (126, 360),
        "trestbps": (94, 170),
    }
    assert masked.frame["chol"].max() == 360
    assert masked.frame["trestbps"].max() == 170
    recode = Recode(magnitude=0.5, start="lowest")
    recode.fit_transform(table)
    assert recode.ranges_["chol"] == (126, 25)


def test_all_five_in_one_plan(shared_data):
    """S, T, N, R, G in the paper's order, on every attribute but the target."""
    frame = pl.read_parquet(shared_data / "uci" / "heart_cleveland.parquet")
    table = Table(frame, Roles(quasi_identifiers=frame.columns[:-1], target="disease"))
    plan = Plan(
        [
            Suppress(max_distinct=0.7),
            TopBottomCode(fence=1.5, cap="whisker"),
            AddNoise(epsilon=0.5),
            Round(base=10),
            Recode(magnitude=1.5, start="lowest"),
            Suppress(min_class_size=2),
        ],
        require=[KAnonymity(2)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = protect_table(table, plan)
    assert release.claims[0].holds
    touched = {step.method: step.touched for step in release.steps[:-1]}
    assert touched["add_noise"] == ("oldpeak",)
    assert "oldpeak" in touched["round"]
    assert "chol" in touched["recode"]
    assert all(isinstance(value, int) for value in release.masked.frame["age"])
    assert all(value % 10 == 0 for value in release.masked.frame["oldpeak"])
