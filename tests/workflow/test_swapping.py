"""What a swap promises and what gets around it: measured, warned about, published in crowds."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pytest

from shoal import KAnonymity, Plan, ProbabilisticKAnonymity, Roles, Round, Swap, Table, protect
from shoal.errors import DisclosureWarning, InputError, ShoalWarning
from shoal.risk import group_disclosure, own_values, rank_matching
from shoal.workflow import assess, verify
from shoal.workflow._leaks import MARGIN, swapping_of

ROLES = Roles(quasi_identifiers=["x", "y"], sensitive=["wage"])


def table(rows=600, *, noise=1.0, seed=1, roles=ROLES, **more):
    """A wage that follows x, apart from noise; without noise it is a straight line."""
    random = np.random.default_rng(seed)
    x, y = random.normal(size=rows), random.normal(size=rows)
    wage = (1 - noise) * x + noise * random.normal(size=rows)
    return Table(pl.DataFrame({"x": x, "y": y, "wage": wage, **more}), roles)


def swapped(original, **how):
    return Swap(**{"k": 5, **how}).fit_transform(original)


def by_ranks(original, **how):
    return swapped(original, informed=True, partition="individual-ranking", **how)


def kinds(original, masked):
    return [leak.kind for leak in swapping_of(original, masked).leaks]


class TestWhatProtects:
    def test_a_swap_of_the_quasi_identifiers(self):
        original = table()
        found = swapping_of(original, swapped(original))
        assert (found.k, found.columns, found.informed) == (5, ("x", "y"), False)
        assert found.linkage.interval[0] <= 0.2 <= found.linkage.interval[1]
        assert found.leaks == ()
        assert found.widths == {}

    def test_a_swap_of_the_secrets(self):
        original = table()
        found = swapping_of(original, by_ranks(original))
        assert (found.k, found.columns, found.informed) == (5, ("wage",), True)
        assert found.linkage.name == "own_values"
        assert found.linkage.interval[0] <= 0.2 <= found.linkage.interval[1]
        assert found.linkage.baseline == pytest.approx(0.2)
        assert 0 < found.widths["wage"] < 0.1
        assert any(one.startswith("the groups show") for one in found.sentences)

    def test_what_is_no_swap_or_does_not_protect(self):
        original = table()
        assert swapping_of(original, original) is None
        assert swapping_of(original, Round(base=1).fit_transform(original)) is None
        assert swapping_of(original, swapped(original, columns=["x"])) is None, "y stays in place"
        assert swapping_of(table(), swapped(original)) is None, "read apart"

    def test_classes_that_are_as_large_need_no_swap(self):
        original = table().with_numbers({"x": np.zeros(600), "y": np.zeros(600)})
        assert swapping_of(original, swapped(original)) is None

    def test_the_swap_that_holds_is_told_and_not_the_broken_one(self):
        """Quasi-identifiers were swapped, then records taken out; the secrets are swapped well."""
        original = table()
        broken = swapped(original).keep(np.arange(600) != 17)
        found = swapping_of(original, by_ranks(broken, k=4))
        assert (found.informed, found.k, found.columns) == (True, 4, ("wage",))
        assert found.k == ProbabilisticKAnonymity(2).level(by_ranks(broken, k=4))

    def test_an_original_without_the_columns(self):
        original = table()
        masked = swapped(original)
        assert swapping_of(original.drop(["x", "y"]), masked) is None
        assert swapping_of(original.drop(["x"]), masked).linkage.details["known"] == ["y"]
        with pytest.raises(InputError, match="same rows"):
            rank_matching(original.keep(np.arange(600) > 3), masked, "wage", known=["x"])

    def test_records_taken_out_make_groups_smaller(self):
        original = table()
        masked = swapped(original)
        one_less = masked.keep(np.arange(600) != 17)
        assert swapping_of(original, one_less) is None, "its group is no permutation any more"


class TestLeaks:
    def test_a_column_left_in_place(self):
        number = np.arange(600)
        roles = ROLES.replacing(insensitive=["number"])
        original = table(roles=roles, number=number)
        leak = swapping_of(original, swapped(original)).leaks[0]
        assert (leak.kind, leak.columns) == ("columns-left-in-place", ("number",))
        assert leak.found.value == 1.0
        assert "the column 'number', which was not swapped, finds 100 %" in leak.sentence()

    @pytest.mark.parametrize("role", ["no role", "target", "weight"])
    def test_whatever_its_role(self, role):
        roles = ROLES if role == "no role" else ROLES.replacing(**{role: "number"})
        original = table(roles=roles, number=np.arange(1, 601))
        assert kinds(original, swapped(original)) == ["columns-left-in-place"]

    def test_not_a_column_that_tells_little(self):
        original = table(roles=ROLES.replacing(insensitive=["few"]), few=np.arange(600) % 7)
        assert kinds(original, swapped(original)) == []

    def test_not_the_one_secret_since_it_is_all_there_is_to_learn(self):
        original = table()
        assert kinds(original, swapped(original)) == []

    def test_other_secrets_that_find_a_first_one(self):
        roles = Roles(quasi_identifiers=["x", "y"], sensitive=["wage", "debt"])
        debt = np.random.default_rng(9).normal(size=600)
        original = table(roles=roles, debt=debt)
        (leak,) = swapping_of(original, swapped(original)).leaks
        assert (leak.kind, leak.columns) == ("columns-left-in-place", ("debt",))

    def test_rows_that_a_swap_of_secrets_leaves_findable(self):
        original = table(roles=ROLES.replacing(insensitive=["few"]), few=np.arange(600) % 7)
        (leak,) = swapping_of(original, by_ranks(original)).leaks
        assert (leak.kind, leak.columns) == ("columns-left-in-place", ("x", "y"))
        nothing_else = table()
        assert kinds(nothing_else, by_ranks(nothing_else)) == []

    @pytest.mark.parametrize("informed", [False, True])
    def test_a_correlation(self, informed):
        original = table(noise=0.05)
        leak = swapping_of(original, swapped(original, informed=informed)).leaks[0]
        assert (leak.kind, leak.columns) == ("correlation", ("wage",))
        assert leak.found.interval[0] > MARGIN * 0.2

    def test_not_a_weak_correlation(self):
        original = table(noise=0.9)
        assert kinds(original, swapped(original)) == []

    @pytest.mark.parametrize("k", [2, 3, 5, 10])
    def test_no_false_alarm_without_any_relation(self, k):
        """Ten tables whose secret is drawn apart from all: no leak in any."""
        for seed in range(10):
            original = table(rows=300, seed=seed)
            assert kinds(original, swapped(original, k=k)) == []

    def test_groups_of_one_value(self):
        wage = np.random.default_rng(3).integers(0, 40, 600)
        original = table().with_numbers({"wage": np.where(wage < 20, 0, wage).astype(float)})
        (leak,) = swapping_of(original, by_ranks(original)).leaks
        assert (leak.kind, leak.columns) == ("groups-of-one-value", ("wage",))
        zeros = (wage < 20).mean()
        assert zeros - 0.02 < leak.found.value < 1

    def test_homogeneous_groups_of_swapped_hints(self):
        original = table().with_numbers({"wage": np.r_[np.zeros(560), np.arange(40) + 1.0]})
        assert kinds(original, swapped(original)) == ["groups-of-one-value"]


class TestRankMatching:
    def test_it_equals_the_mean_over_all_orders_of_ties(self):
        """Three persons, two of them alike; two rows of equal value: all ways counted by hand.

        Guesses 1 2 2 and wages 1 1 2: the first two places have the wage 1, so the first person
        is there for sure, and each of the other two for half of the time.
        """
        frame = pl.DataFrame({"x": [1.0, 2.0, 2.0], "wage": [1.0, 1.0, 2.0]})
        original = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["wage"]))
        masked = Swap(k=3).fit_transform(original)
        # however x was swapped, its regression rises or falls; both are worked out
        rising = np.corrcoef(masked.frame["x"], masked.frame["wage"])[0, 1] > 0
        found = rank_matching(original, masked, "wage", known=["x"])
        assert found.per_record.tolist() == ([0.5, 0.25, 0.5] if rising else [0, 0.5, 0])
        assert found.baseline == pytest.approx(1 / 3)

    @pytest.mark.parametrize("informed", [False, True])
    def test_a_straight_line_gives_everybody_away(self, informed):
        original = table(noise=0.0, roles=ROLES)
        masked = swapped(original, informed=informed)
        assert rank_matching(original, masked, "wage", known=["x"]).value > 0.99

    def test_nothing_known_is_a_blind_choice(self):
        original = table()
        masked = swapped(original)
        found = rank_matching(original, masked, "wage", known=[])
        assert found.per_record == pytest.approx(np.full(600, 0.2))

    def test_categories_missing_values_and_columns_that_are_gone(self):
        random = np.random.default_rng(4)
        town = random.choice(["a", "b", "c", None], 800, p=[0.5, 0.2, 0.2, 0.1]).tolist()
        ill = ["flu" if t == "a" else random.choice(["gout", "ok"]) for t in town]
        others = {f"x{i}": random.choice([1.0, 2.0, None], 800).tolist() for i in range(5)}
        frame = pl.DataFrame({**others, "town": town, "gone": town, "ill": ill})
        quasi = [*others, "town"]
        original = Table(frame, Roles(quasi_identifiers=quasi, sensitive=["ill"]))
        masked = Swap(k=10).fit_transform(original).drop(["gone"])
        telling = rank_matching(original, masked, "ill", known=["town", "gone"])
        blind = rank_matching(original, masked, "ill", known=["gone"])
        assert telling.interval[0] > blind.value == pytest.approx(0.1)
        assert rank_matching(original, masked, "ill", known=quasi).value > 0.1

    def test_a_part_of_the_persons_is_a_part_of_the_groups(self):
        """Whose value was taken out with its row is not found."""
        original = table(noise=0.0)
        masked = by_ranks(original)
        kept = np.arange(600) % 10 != 0
        found = rank_matching(original, masked.keep(kept), "wage", known=["x"])
        gone = set(range(0, 600, 10))
        source = masked.exchanges[0].source
        lost = {int(source[row]) for row in gone}
        keys = np.flatnonzero(kept)
        assert all(found.per_record[i] == 0 for i, key in enumerate(keys) if key in lost)
        assert found.value > 0.5

    def test_a_secret_that_was_swapped_itself_is_sought_in_its_own_groups(self):
        """Beside a swap of the quasi-identifiers: the ranks of a group of ranks tell nothing."""
        original = table(noise=0.2)
        both = by_ranks(swapped(original), k=20)
        assert rank_matching(original, both, "wage", known=["x"]).baseline == pytest.approx(1 / 20)
        assert rank_matching(original, swapped(original), "wage", known=["x"]).baseline == 0.2

    def test_no_swap_hides_it(self):
        original = table()
        with pytest.raises(InputError, match="No swap hides column 'wage'"):
            rank_matching(original, original, "wage", known=["x"])


class TestGroupDisclosure:
    def test_it_equals_a_count_by_hand(self):
        random = np.random.default_rng(2)
        wage = random.integers(0, 2, 90) * 3.5
        original = table(rows=90).with_numbers({"wage": wage})
        masked = swapped(original, k=3)
        groups, values = masked.exchanges[0].groups, masked.frame["wage"].to_numpy()
        spans = [np.ptp(values[groups == group]) for group in groups]
        found = group_disclosure(masked, "wage")
        assert found.per_record.tolist() == [float(span == 0) for span in spans]
        assert found.details["median_width"] == pytest.approx(np.median(spans) / values.std())
        assert found.details["records"] == sum(span == 0 for span in spans) > 0

    def test_text_has_no_width_and_missing_is_a_value(self):
        frame = pl.DataFrame({"x": [1, 2, 30, 40], "ill": [None, None, "a", "b"]})
        original = Table(frame, Roles(quasi_identifiers=["x"], sensitive=["ill"]))
        found = group_disclosure(Swap(k=2).fit_transform(original), "ill")
        assert found.per_record.tolist() == [1, 1, 0, 0]
        assert "median_width" not in found.details


def test_own_values_are_counted_over_all_columns():
    roles = Roles(quasi_identifiers=["x"], sensitive=["y", "wage"])
    masked = by_ranks(table(rows=2000, roles=roles), k=4)
    found = own_values(masked, masked.exchanges)
    shares = [np.mean(e.source == masked.row_key) for e in masked.exchanges]
    assert found.value == pytest.approx(np.mean(shares))
    assert found.interval[0] <= 0.25 <= found.interval[1]


class TestShown:
    @pytest.fixture
    def leaking(self):
        roles = ROLES.replacing(insensitive=["number"])
        return table(noise=0.05, roles=roles, number=np.arange(600))

    def plan(self, **how):
        return Plan([Swap(**{"k": 5, **how})], require=[ProbabilisticKAnonymity(5)])

    def test_protect_warns_of_each_leak(self, leaking):
        with pytest.warns(DisclosureWarning) as told:
            release = protect(leaking, self.plan())
        messages = [str(one.message) for one in told]
        assert len(messages) == len(release.after.swapping.leaks) == 2
        assert "'number'" in messages[0]
        assert "matching by rank" in messages[1]

    def test_and_does_not_where_there_is_none(self):
        assert protect(table(), self.plan()).after.swapping.leaks == ()

    def test_an_assessment_has_them(self, leaking):
        masked = swapped(leaking)
        found = assess(masked, original=leaking)
        facts = json.loads(found.to_json())["swapping"]
        assert facts["k"] == 5
        assert [leak["kind"] for leak in facts["leaks"]] == ["columns-left-in-place", "correlation"]
        assert "within groups of at least 5" in str(found)
        assert "the column 'number'" in str(found)
        assert "within groups of at least 5" in found.to_html()
        assert assess(masked, original=leaking, measures=["uniqueness"]).swapping is None
        assert assess(masked).swapping is None
        assert json.loads(assess(leaking).to_json())["swapping"] is None

    def test_release_json_tells_crowds(self, leaking, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            release = protect(leaking, self.plan())
        out = release.save(tmp_path / "out")
        low, high = release.after.swapping.linkage.interval
        facts = json.loads((out / "public/release.json").read_text("utf-8"))["swapping"]
        assert 0 <= 100 * low - facts["linkage"]["interval"][0] < 2
        assert 0 <= facts["linkage"]["interval"][1] - 100 * high < 2
        assert (facts["k"], facts["columns"]) == (5, ["x", "y"])
        told = [facts["linkage"], *facts["leaks"]]
        for share in told:  # 600 records: ten of them are 2 percent
            assert share["percent"] % 2 == 0
            assert all(end % 2 == 0 for end in share["interval"])
            assert share["interval"][0] <= share["percent"] <= share["interval"][1]
        assert facts["linkage"]["interval"][0] <= 20 <= facts["linkage"]["interval"][1]
        assert "persons" not in json.dumps(facts), "no exact count of the original"

    def test_a_small_table_tells_no_share(self, tmp_path):
        out = protect(table(rows=60), self.plan()).save(tmp_path / "out")
        facts = json.loads((out / "public/release.json").read_text("utf-8"))["swapping"]
        assert facts["linkage"] == {"percent": None, "interval": None}
        assert "not shown" in (out / "public/report.html").read_text("utf-8")

    def test_verify_tries_the_attacks_again(self, leaking, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            out = protect(leaking, self.plan()).save(tmp_path / "out")

        def status():
            checks = verify(out, original=leaking).checks
            return next(c.status for c in checks if c.name == "attacks on the swap")

        assert status() == "passed"
        path = out / "public/release.json"
        facts = json.loads(path.read_text("utf-8"))
        facts["swapping"]["leaks"] = []
        path.write_text(json.dumps(facts), "utf-8")
        assert status() == "failed"

    def test_no_swap_no_word_of_it(self, tmp_path):
        frame = pl.DataFrame({"x": [1, 1, 2, 2] * 50})
        original = Table(frame, Roles(quasi_identifiers=["x"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            out = protect(original, Plan([], require=[KAnonymity(2)])).save(tmp_path / "out")
        assert json.loads((out / "public/release.json").read_text("utf-8"))["swapping"] is None
        assert verify(out, original=original).holds
