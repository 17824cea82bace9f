"""Linkage by distance: compared with brute force over all pairs, and its refusals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import (
    Generalize,
    Hierarchy,
    Limit,
    Plan,
    ProbabilisticKAnonymity,
    Roles,
    Round,
    Suppress,
    Swap,
    Table,
    protect,
)
from shoal.errors import InputError, ParameterError, PlanError, RequirementNotMet
from shoal.risk import distance_linkage
from shoal.risk.linkage import _distance_linkage, _right_links
from shoal.risk.linkage._intruder import intruder_of
from shoal.risk.linkage._right_links import Links, independent_trials, wilson
from shoal.workflow import assess, verify

QUASI = Roles(quasi_identifiers=["x", "y", "c"])


def table(x, y=None, c=None, roles=QUASI):
    columns = {"x": x, "y": y, "c": c}
    given = {name: values for name, values in columns.items() if values is not None}
    present = [name for name in roles.quasi_identifiers if name in given]
    return Table(pl.DataFrame(given, strict=False), Roles(quasi_identifiers=present))


def by_brute_force(original, masked, *, squared=False):
    """Every person against every record, one column at a time, in plain Python."""
    old, new = original.frame.to_dicts(), masked.frame.to_dicts()
    names = [name for name in original.roles.quasi_identifiers if name in masked.columns]
    scales = {}
    for name in names:
        values = [row[name] for row in old if isinstance(row[name], (int, float))]
        if values:
            scales[name] = float(np.var(values)) if squared else max(values) - min(values)
    chances = []
    for key, person in zip(original.row_key, old, strict=True):
        gaps = [_gap(person, record, names, scales, squared) for record in new]
        nearest = [i for i, gap in enumerate(gaps) if np.isclose(gap, min(gaps), 1e-12, 1e-12)]
        right = [i for i in nearest if masked.row_key[i] == key]
        chances.append(len(right) / len(nearest))
    return chances


def _gap(person, record, names, scales, squared):
    parts = []
    for name in names:
        a, b = person[name], record[name]
        if a is None or b is None:
            continue
        if isinstance(a, str):
            parts.append(float(a != b))
        else:
            gap = abs(a - b) ** (2 if squared else 1)
            parts.append(gap / scales[name] if scales[name] else 0.0)
    return sum(parts) / len(parts) if parts else 1.0


numbers = st.one_of(st.none(), st.integers(0, 6))
texts = st.one_of(st.none(), st.sampled_from("abc"))


@settings(max_examples=80)
@given(st.data(), st.integers(1, 30), st.sampled_from(["round", "swap", "blank", "remove"]))
def test_it_equals_a_brute_force(data, rows, how):
    """With tied and missing values, removed records and another order."""
    columns = {
        "x": data.draw(st.lists(numbers, min_size=rows, max_size=rows)),
        "y": [v / 8 for v in data.draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows))],
        "c": data.draw(st.lists(texts, min_size=rows, max_size=rows)),
    }
    columns["x"][0], columns["c"][0] = 3, "b"  # a quasi-identifier has a value somewhere
    schema = {"x": pl.Int64, "y": pl.Float64, "c": pl.String}
    original = Table(pl.DataFrame(columns, schema=schema), QUASI)
    masked = original
    if how == "round":
        masked = Round(base=0.5).fit_transform(original)
    elif how == "swap" and rows > 1:
        masked = Swap(k=2).fit_transform(original)
    elif how == "blank":
        masked = Suppress(min_count=3).fit_transform(original)
    elif how == "remove":
        masked = original.keep(np.arange(rows) % 3 != 1)
    masked = masked.reorder(np.array(data.draw(st.permutations(range(len(masked))))))
    found = distance_linkage(original, masked)
    expected = by_brute_force(original, masked)
    assert found.per_record.tolist() == pytest.approx(expected)
    assert found.value == pytest.approx(np.mean(expected))
    assert found.baseline == 1 / rows
    assert found.interval[0] <= found.value <= found.interval[1]


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(0, 2**32))
def test_euclidean_is_of_standardised_numbers(rows, seed):
    random = np.random.default_rng(seed)
    x, y = random.exponential(size=rows) ** 3, random.integers(0, 9, rows) / 4
    original = table(x, y)
    masked = original.with_numbers({"x": x + random.normal(size=rows), "y": y[::-1]})
    found = distance_linkage(original, masked, dissimilarity="euclidean")
    expected = by_brute_force(original, masked, squared=True)
    assert found.per_record.tolist() == pytest.approx(expected)


class TestWorkedByHand:
    def test_a_tie_counts_one_in_t_for_the_right_one_only(self):
        original = table([0, 1, 10, 11, 12])
        masked = original.with_numbers({"x": np.array([0, 0, 10, 10, 0])})
        found = distance_linkage(original, masked)
        assert found.per_record.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 2, 1 / 2, 0])
        assert found.details == {
            "persons": 5,
            "records": 5,
            "known": ["x"],
            "bound": 0.5,
            "bound_by": "equal records",
        }

    def test_ranges_are_those_of_the_original(self):
        """Person 0 is 0.4 from its own record and 0.3 from another; 0.04 if masked x counted."""
        original = table([0, 10, 10], [0.0, 5.0, 10.0])
        masked = original.with_numbers({"x": np.array([4, 0, 100]), "y": np.array([0.0, 3.0, 0])})
        assert distance_linkage(original, masked).per_record.tolist() == [0, 0, 0]

    def test_who_was_taken_out_is_not_linked_but_counts(self):
        original = table([1, 2, 3, 4])
        found = distance_linkage(original, original.keep(np.array([True, False, True, False])))
        assert found.per_record.tolist() == [1, 0, 1, 0]
        assert (found.value, found.baseline) == (0.5, 0.25)
        assert (found.details["released_persons"], found.details["of_released"]) == (2, 1)
        assert "2 of 4 persons are not in the masked table" in found.warnings[0]
        assert found.warnings[0].endswith("100 % are linked.")

    def test_a_small_sample_is_no_better_than_its_records(self):
        """Both records are certainly found, by links that are right for 2 of 400 persons."""
        original = table(range(400))
        found = distance_linkage(original, original.keep(np.arange(400) < 2))
        assert (found.value, found.baseline) == (2 / 400, 1 / 400)
        hidden = distance_linkage(original, original.keep(np.arange(400) == 399), sample=2)
        assert hidden.details["of_released"] is None
        assert "'sample'" in hidden.warnings[0]

    def test_a_sample_breaks_what_its_records_promise(self, monkeypatch):
        """All links to released records are right; the 4 in 10 overall must not hide that."""
        original = table(np.arange(1000) // 2)
        promised = SimpleNamespace(k=2, by="equal records")
        sample = original.keep(np.arange(1000) < 400)
        monkeypatch.setattr(_right_links, "bound_of", lambda intruder: promised)
        links = Links((np.arange(1000) < 400).astype(np.float64))
        intruder = intruder_of(original, sample, known=None, sample=1000, random_state=None)
        said = _right_links.right_links("distance_linkage", intruder, links).warnings
        assert any("more often than 1 in 2" in one for one in said)

    def test_a_column_that_was_taken_out_links_nobody(self):
        original = table([1, 2, 3, 4], [1.0, 1.0, 1.0, 2.0])
        one_left = distance_linkage(original, original.drop(["x"]))
        assert one_left.per_record.tolist() == pytest.approx([1 / 3] * 3 + [1])
        assert one_left.details["known"] == ["y"]
        blind = distance_linkage(original, original.drop(["x", "y"]).keep(np.arange(4) > 0))
        assert blind.per_record.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
        assert "no better than blind guessing" in blind.warnings[-1]

    def test_a_column_under_another_name_is_told_of(self):
        original = table([1, 2, 3, 4])
        renamed = Table(original.frame.rename({"x": "z"})).paired(original)
        assert "'z'" in distance_linkage(original, renamed).warnings[0]
        assert not distance_linkage(original, original).warnings

    @pytest.mark.parametrize("kind", [pl.Date, pl.Datetime, pl.Time, pl.Duration])
    def test_dates_and_times_are_near_or_far(self, kind):
        """Each value moved to one that another record had: equality finds nobody."""
        days = pl.Series("x", np.arange(0, 50, 10).repeat(2) + np.tile([0, 1], 5))
        moved = days.to_numpy().reshape(-1, 2)[:, ::-1].ravel()
        original = Table(pl.DataFrame([days.cast(kind)]), Roles(quasi_identifiers=["x"]))
        other = Table(pl.DataFrame([pl.Series("x", moved).cast(kind)]), original.roles)
        assert distance_linkage(original, other.paired(original)).value == 0
        far = Table(pl.DataFrame([pl.Series("x", days + 3).cast(kind)]), original.roles)
        assert distance_linkage(original, far.paired(original)).per_record.tolist() == [1, 0] * 5

    def test_the_intruder_knows_what_is_said(self):
        original = table([1, 2, 3, 4], [1.0, 1.0, 2.0, 2.0])
        assert distance_linkage(original, original).value == 1
        assert distance_linkage(original, original, known=["y"]).value == 0.5

    def test_numbers_beyond_the_digits_of_a_float_are_told_apart(self):
        large = [2**63 - 4, 2**63 - 3, 2**63 - 2, None]
        original = table(large)
        assert distance_linkage(original, original).per_record.tolist()[:3] == [1, 1, 1]
        unsigned = Table(
            pl.DataFrame({"x": pl.Series([0, 2**64 - 2, 2**64 - 1], dtype=pl.UInt64)}),
            Roles(quasi_identifiers=["x"]),
        )
        assert distance_linkage(unsigned, unsigned).per_record[0] == 1

    def test_infinite_numbers_are_equal_or_different(self):
        original = table([1.0, np.inf, np.inf, -np.inf])
        assert distance_linkage(original, original).per_record.tolist() == [1, 0.5, 0.5, 1]

    def test_an_intruder_knows_how_values_became_coarser(self):
        """Two people of [0, 10) hide each other; a person alone in an interval is found."""
        original = table([1, 7, 23])
        masked = Generalize(
            k=2, hierarchies={"x": Hierarchy.intervals([10])}, suppression_limit=0.5
        ).fit_transform(original)
        found = distance_linkage(original, masked)
        assert found.per_record.tolist() == [0.5, 0.5, 0.0]
        assert "'x' was made coarser" in found.warnings[0]
        alone = Hierarchy.intervals([10]).generalize(original, "x", 1)
        assert distance_linkage(original, alone).per_record.tolist() == [0.5, 0.5, 1.0]


@pytest.fixture(scope="module")
def tables():
    random = np.random.default_rng(1)
    original = table(random.normal(size=3000), random.normal(size=3000))
    return original, Round(base=0.25).fit_transform(original)


class TestSample:
    def test_only_persons_are_sampled_never_records(self, tables):
        original, masked = tables
        whole = distance_linkage(original, masked, sample=3000)
        part = distance_linkage(original, masked, sample=400)
        drawn = ~np.isnan(part.per_record)
        assert drawn.sum() == part.details["persons"] == 400
        assert part.per_record[drawn].tolist() == whole.per_record[drawn].tolist()
        assert part.value == pytest.approx(part.per_record[drawn].mean())
        assert part.interval[0] <= whole.value <= part.interval[1]
        assert np.ptp(part.interval) > 2 * np.ptp(whole.interval)

    def test_it_is_the_same_each_time_and_in_any_order_of_rows(self, tables):
        original, masked = tables
        one = distance_linkage(original, masked, sample=100)
        assert one.to_dict() == distance_linkage(original, masked, sample=100).to_dict()
        turned = np.arange(3000)[::-1].copy()
        again = distance_linkage(original.reorder(turned), masked, sample=100)
        np.testing.assert_array_equal(again.per_record, one.per_record[::-1])

    def test_a_random_state_gives_another(self, tables):
        first, second = (
            distance_linkage(*tables, sample=100, random_state=seed).per_record for seed in (1, 2)
        )
        assert not np.array_equal(np.isnan(first), np.isnan(second))


class TestInterval:
    @pytest.mark.parametrize(("right", "trials"), [(0, 10), (10, 10), (3, 17), (200, 1000)])
    def test_it_is_wilsons(self, right, trials):
        stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
        expected = stats.binomtest(right, trials).proportion_ci(method="wilson")
        assert wilson(right / trials, trials) == pytest.approx(tuple(expected), abs=1e-12)

    def test_people_who_share_a_draw_are_one(self):
        pairs = np.repeat(np.arange(500), 2)
        both = np.repeat(np.random.default_rng(1).integers(0, 2, 500).astype(float), 2)
        assert independent_trials(both, pairs) == pytest.approx(500)
        assert independent_trials(both, None) == 1000
        assert independent_trials(both, np.arange(1000)) == pytest.approx(1000)
        assert independent_trials(np.ones(4), np.zeros(4, np.int64)) == 4

    def test_a_swapped_pair_is_one_draw(self):
        """Both in place or neither: the interval is that of half as many persons."""
        original = table(np.arange(2000))
        found = distance_linkage(original, Swap(k=2).fit_transform(original))
        assert found.interval == pytest.approx(wilson(found.value, 1000))

    def test_it_covers_what_swapping_promises(self):
        """Of 100 draws at k = 4, about 95 intervals contain 1/4."""
        original = table(np.arange(400))
        inside = 0
        for _ in range(100):
            low, high = distance_linkage(original, Swap(k=4).fit_transform(original)).interval
            inside += low <= 0.25 <= high
        assert 88 <= inside <= 100


class TestRefused:
    def test_tables_that_do_not_pair(self):
        with pytest.raises(InputError, match="do not come from one input"):
            distance_linkage(table([1, 2]), table([1, 2]))

    @pytest.mark.parametrize("sample", [0, -1, 1.5, True, "7", None])
    def test_a_sample_is_a_count(self, sample):
        one = table([1, 2])
        with pytest.raises(InputError, match=r"'sample' .* must be an integer ≥ 1"):
            distance_linkage(one, one, sample=sample)

    def test_what_is_known(self):
        one = table([1, 2])
        with pytest.raises(InputError, match="no column 'age'"):
            distance_linkage(one, one, known=["x", "age"])
        with pytest.raises(InputError, match="must be a list of column names"):
            distance_linkage(one, one, known="x")
        with pytest.raises(InputError, match="must be a list of column names"):
            distance_linkage(one, one, known=[])
        nobody = one.with_roles(Roles())
        with pytest.raises(InputError, match="no quasi-identifiers"):
            distance_linkage(nobody, nobody)
        assert distance_linkage(nobody, nobody, known=["x"]).value == 1

    def test_euclidean_of_text(self):
        one = table([1, 2], c=["a", "b"])
        with pytest.raises(InputError, match="not numeric: 'c'"):
            distance_linkage(one, one, dissimilarity="euclidean")


class TestInPlans:
    def plan(self, **limit):
        swap = Swap(k=4)
        return Plan(
            [swap], require=[ProbabilisticKAnonymity(4), Limit("distance_linkage", **limit)]
        )

    def test_it_is_called_the_linkage_rate(self):
        plan = self.plan(at_most=0.4, options={"known": ["x"]})
        assert "[require.max_linkage_rate]" in plan.to_toml()
        assert Plan.from_toml(plan.to_toml()).to_dict() == plan.to_dict()
        assert Limit("linkage_rate", at_most=0.4) == Limit("distance_linkage", at_most=0.4)
        for key in ("max_linkage_rate", "max_distance_linkage"):
            assert Plan.from_toml(f"[require]\n{key} = 0.2\n").require[0].at_most == 0.2
        for key in ("linkage_rate", "distance_linkage"):
            with pytest.raises(PlanError, match="Did you mean 'max_linkage_rate'"):
                Plan.from_toml(f"[require]\n{key} = 0.2\n")

    @pytest.mark.parametrize("options", [{"random_state": 1}, {"known": [1]}, {"known": {"x": 1}}])
    def test_options_that_a_plan_cannot_hold(self, options):
        with pytest.raises(ParameterError):
            Limit("linkage_rate", at_most=0.2, options=options)

    def test_a_release_claims_it_and_verifies(self, tmp_path):
        original = table(np.arange(400))
        release = protect(original, self.plan(at_most=0.5))
        claim = release.claims[1]
        assert claim.key == "max_linkage_rate"
        assert claim.measured == pytest.approx(0.25, abs=0.1)
        assert claim.published == round(100 * claim.measured / 3) * 3 / 100
        checks = verify(release.save(tmp_path / "out"), original=original).checks
        assert {c.status for c in checks if c.name == "claim max_linkage_rate"} == {"passed"}

    def test_a_sampled_claim_verifies_too(self, tmp_path):
        """The same persons are measured again; the shares are reported for a crowd of them."""
        original = table(np.arange(900))
        release = protect(original, self.plan(at_most=0.5, options={"sample": 200}))
        assert release.claims[1].rows == 200
        checks = verify(release.save(tmp_path / "out"), original=original).checks
        assert {c.status for c in checks if c.name == "claim max_linkage_rate"} == {"passed"}

    def test_a_limit_that_does_not_hold_says_by_how_much(self):
        with pytest.raises(
            RequirementNotMet, match=r"right links .* at most 0.01 and is .* \(95 %"
        ):
            protect(table(np.arange(400)), self.plan(at_most=0.01))

    def test_an_assessment_shows_it_or_says_why_not(self):
        original = table(np.arange(40))
        swapped = Swap(k=4).fit_transform(original)
        found = assess(swapped, original=original)
        assert found["distance_linkage"].details["persons"] == 40
        assert "share of right links by distance: " in str(found)
        assert "(95 % " in str(found)
        apart = assess(swapped, original=table(np.arange(40)))
        assert "cannot be paired" in apart.left_out["distance_linkage"]
        nobody = assess(swapped, original=original.with_roles(Roles()))
        assert "no quasi-identifiers" in nobody.failed["distance_linkage"]


class TestExactMatches:
    """A person whose own record equals what is known is linked without a search."""

    @staticmethod
    def search_counted(monkeypatch):
        """The numbers of persons for whom a search is made."""
        asked = []
        nearest = _distance_linkage._nearest

        def counting(sides, persons, labels, whom):
            asked.append(len(persons))
            return nearest(sides, persons, labels, whom)

        monkeypatch.setattr(_distance_linkage, "_nearest", counting)
        return asked

    @settings(max_examples=40)
    @given(st.integers(1, 60), st.integers(0, 2**32), st.booleans())
    def test_a_search_finds_the_same(self, rows, seed, euclidean):
        draw = np.random.default_rng(seed)
        original = table(draw.integers(0, 5, rows), draw.integers(0, 9, rows) / 8)
        changed = np.where(draw.random(rows) < 0.5, original.numbers("x").values, 2)
        masked = original.with_numbers({"x": changed}).keep(np.arange(rows) < max(1, rows - 3))
        how = "euclidean" if euclidean else "gower"
        found = distance_linkage(original, masked, dissimilarity=how)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_distance_linkage._Sides, "tells_apart", lambda self: False)
            searched = distance_linkage(original, masked, dissimilarity=how)
        assert found.per_record.tolist() == searched.per_record.tolist()
        assert found.to_dict() == searched.to_dict()

    def test_a_table_beside_itself_needs_none(self, monkeypatch):
        asked = self.search_counted(monkeypatch)
        one = table([1, 1, 2, 3], [0.5, 0.5, 0.5, 0.25], list("aabb"))
        assert distance_linkage(one, one).per_record.tolist() == [0.5, 0.5, 1.0, 1.0]
        assert asked == []

    def test_a_coarser_column_needs_none(self, monkeypatch):
        asked = self.search_counted(monkeypatch)
        original = table(list(range(20)))
        masked = Generalize("mondrian", k=5).fit_transform(original)
        assert distance_linkage(original, masked).value == pytest.approx(masked.classes.count / 20)
        assert asked == []

    def test_nobody_is_searched_for_who_was_taken_out(self, monkeypatch):
        asked = self.search_counted(monkeypatch)
        one = table([1, 2, 2, 3])
        masked = one.keep(np.array([True, False, True, True]))
        assert distance_linkage(one, masked).per_record.tolist() == [1.0, 0.0, 1.0, 1.0]
        assert asked == []

    def test_gaps_are_near_to_all(self, monkeypatch):
        asked = self.search_counted(monkeypatch)
        one = table([1, 2, None], [0.5, 0.5, 0.5])
        assert distance_linkage(one, one).per_record.tolist() == [0.5, 0.5, 1 / 3]
        assert asked == [3]

    def test_whole_numbers_that_are_one_float_tie(self, monkeypatch):
        asked = self.search_counted(monkeypatch)
        one = table([2**60, 2**60 + 1, 0])
        assert distance_linkage(one, one).per_record.tolist() == [0.5, 0.5, 1.0]
        assert asked == [3]

    def test_a_column_that_was_constant_tells_nothing(self, monkeypatch):
        asked = self.search_counted(monkeypatch)
        original = table([7, 7, 7], [1.0, 2.0, 3.0])
        masked = original.with_numbers({"x": np.array([7, 8, 9]), "y": np.array([1.0, 1.0, 3.0])})
        assert distance_linkage(original, masked).per_record.tolist() == [0.5, 1 / 3, 1.0]
        assert asked == [3]
