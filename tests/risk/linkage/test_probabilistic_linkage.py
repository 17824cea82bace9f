"""Probabilistic linkage: compared with EM over all pairs, by hand, and its refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.risk import probabilistic_linkage
from shoal.risk.linkage import _probabilistic_linkage as fellegi_sunter

LEAST = 1e-6


def table(columns, names=None):
    frame = pl.DataFrame(columns, strict=False)
    return Table(frame, Roles(quasi_identifiers=names or frame.columns))


def a_pair(rows=150, seed=0, missing=0.1, keep=1.0):
    """A table of four columns, and the same with some cells redrawn or missing and rows removed."""
    draw = np.random.default_rng(seed)
    levels = (2, 4, 9, 30)
    before = np.column_stack([draw.integers(0, n, rows) for n in levels]).astype(float)
    after = before.copy()
    redrawn = draw.random(after.shape) < 0.2
    after[redrawn] = before[draw.integers(0, rows, after.shape), np.arange(4)][redrawn]
    for side in (before, after):
        side[draw.random(side.shape) < missing] = np.nan
        side[0] = 1
    names = ["a", "b", "c", "d"]
    as_columns = [
        {
            n: [None if np.isnan(v) else str(int(v)) for v in column]
            for n, column in zip(names, s.T, strict=True)
        }
        for s in (before, after)
    ]
    original = table(as_columns[0])
    masked = table(as_columns[1]).paired(original)
    kept = draw.random(rows) < keep
    kept[0] = True
    return original, masked.keep(kept) if keep < 1 else masked


def all_pairs(original, masked):
    """Agreement and presence of every pair, as arrays of persons by records by columns."""
    names = original.roles.quasi_identifiers
    one, other = (
        np.array([t.frame[name].fill_null("-1").cast(pl.Int64).to_numpy() for name in names]).T
        for t in (original, masked)
    )
    present = (one[:, None] >= 0) & (other[None] >= 0)
    return (one[:, None] == other[None]) & present, present


def plain_em(original, masked, *, by_person):
    """Expectation-maximization over all pairs, counted one by one."""
    agreed, present = (a.astype(float) for a in all_pairs(original, masked))
    differed = present - agreed
    m = np.full(agreed.shape[2], 0.9)
    u = np.clip(agreed.sum((0, 1)) / present.sum((0, 1)), LEAST, 1 - LEAST)
    presence = len(masked) / len(original)
    prevalence = presence / len(masked)
    for step in range(1, 201):
        ratio = np.exp(agreed @ np.log(m / u) + differed @ np.log((1 - m) / (1 - u)))
        if by_person:
            ours = presence / len(masked) * ratio
            chance = ours / (ours.sum(1, keepdims=True) + 1 - presence)
        else:
            chance = prevalence * ratio / (prevalence * ratio + 1 - prevalence)
        before = np.concatenate([m, u])
        m = np.clip(
            np.einsum("ij,ijc->c", chance, agreed) / np.einsum("ij,ijc->c", chance, present),
            LEAST,
            1 - LEAST,
        )
        u = np.clip(
            np.einsum("ij,ijc->c", 1 - chance, agreed)
            / np.einsum("ij,ijc->c", 1 - chance, present),
            LEAST,
            1 - LEAST,
        )
        prevalence = chance.mean()
        if np.abs(np.concatenate([m, u]) - before).max() < 1e-5:
            return m, u, prevalence, step, True
    return m, u, prevalence, 200, False


def plain_weights(original, masked, m, u):
    agreed, present = all_pairs(original, masked)
    return agreed @ np.log(m / u) + (present & ~agreed) @ np.log((1 - m) / (1 - u))


@pytest.mark.parametrize("estimate", ["by-person", "by-pair"])
@pytest.mark.parametrize("keep", [1.0, 0.6])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_equals_an_em_over_all_pairs(estimate, keep, seed):
    original, masked = a_pair(seed=seed, keep=keep)
    found = probabilistic_linkage(original, masked, estimate=estimate)
    m, u, prevalence, steps, converged = plain_em(
        original, masked, by_person=estimate == "by-person"
    )
    assert list(found.details["m"].values()) == pytest.approx(m.tolist(), abs=1e-7)
    assert list(found.details["u"].values()) == pytest.approx(u.tolist(), abs=1e-7)
    assert found.details["prevalence"] == pytest.approx(prevalence, rel=1e-6)
    assert (found.details["steps"], found.details["converged"]) == (steps, converged)
    assert found.details["learnt_from_persons"] == 150
    weights = plain_weights(original, masked, m, u)
    best = np.isclose(weights, weights.max(1, keepdims=True), rtol=0, atol=1e-6)
    own = original.row_key[:, None] == masked.row_key
    expected = (best & own).any(1) / best.sum(1)
    assert found.per_record.tolist() == pytest.approx(expected.tolist())
    assert found.value == pytest.approx(expected.mean())
    assert found.baseline == 1 / len(original)


class TestWorkedByHand:
    def test_rare_agreement_weighs_more(self):
        """The first person agrees with their own record in one column, with others in two."""
        original = table({"sex": list("fm") * 5, "mood": list("ffmmf") * 2, "name": range(10)})
        masked = original.with_cells_of(
            {"sex": np.array([1, *range(1, 10)]), "mood": np.array([2, *range(1, 10)])}
        )
        found = probabilistic_linkage(original, masked)
        assert found.details["m"]["name"] == 1 - LEAST
        assert found.details["m"]["sex"] == pytest.approx(0.9, abs=1e-4)
        assert found.details["u"]["name"] == LEAST
        assert found.value == 1

    def test_a_constant_column_weighs_nothing(self):
        original = table({"sex": ["f"] * 4, "x": [1, 1, 2, 3]})
        found = probabilistic_linkage(original, original)
        assert found.details["m"]["sex"] == found.details["u"]["sex"] == 1 - LEAST
        assert found.per_record.tolist() == [0.5, 0.5, 1, 1]

    def test_equal_records_tie(self):
        original = table({"x": [1, 1, 1, 2], "y": list("ppqq")})
        found = probabilistic_linkage(original, original)
        assert found.per_record.tolist() == [0.5, 0.5, 1, 1]
        assert found.details["different_records"] == 3
        assert found.details["records"] == 4

    def test_a_missing_value_agrees_with_nothing(self):
        """A person without a value cannot be linked, and every record is equally likely."""
        original = table({"x": [1, 2, None]})
        found = probabilistic_linkage(original, original)
        assert found.per_record.tolist() == pytest.approx([1, 1, 1 / 3])

    def test_one_record_and_one_person(self):
        original = table({"x": [5]})
        found = probabilistic_linkage(original, original)
        assert (found.value, found.baseline) == (1, 1)
        assert "no better than blind guessing" in found.warnings[0]


class TestLearning:
    def test_by_pair_finds_kinds_of_people(self):
        """Columns that say the same about a person look like a match to the textbook's mixture."""
        draw = np.random.default_rng(1)
        kind = draw.integers(0, 3, 600)
        columns = {f"k{i}": np.where(draw.random(600) < 0.95, kind, -1) for i in range(4)}
        columns["number"] = draw.integers(0, 150, 600)
        original = table(columns)
        masked = original.with_numbers(
            {
                name: np.where(draw.random(600) < 0.9, column, draw.permutation(column))
                for name, column in columns.items()
            }
        )
        by_pair = probabilistic_linkage(original, masked, estimate="by-pair")
        by_person = probabilistic_linkage(original, masked)
        assert by_pair.details["prevalence"] > 50 / 600
        assert by_person.details["prevalence"] == pytest.approx(1 / 600)
        assert by_person.value > by_pair.value

    def test_weights_that_have_not_settled_are_told(self, monkeypatch):
        monkeypatch.setattr(fellegi_sunter, "MOST_STEPS", 2)
        found = probabilistic_linkage(*a_pair())
        assert (found.details["steps"], found.details["converged"]) == (2, False)
        assert any("did not converge" in warning for warning in found.warnings)

    def test_fewer_persons_are_learnt_from_where_there_are_many_pairs(self, monkeypatch):
        original, masked = a_pair()
        whole = probabilistic_linkage(original, masked)
        monkeypatch.setattr(fellegi_sunter, "_MOST_PAIRS", 80 * len(masked))
        part = probabilistic_linkage(original, masked)
        assert 80 <= part.details["learnt_from_persons"] < 100
        assert part.details["persons"] == 150
        m, others = (np.array(list(f.details["m"].values())) for f in (whole, part))
        assert np.abs(m - others).max() < 0.2
        turned = np.arange(len(original))[::-1]
        again = probabilistic_linkage(original.reorder(turned), masked)
        assert again.details["m"] == pytest.approx(part.details["m"])
        assert again.details["learnt_from_persons"] == part.details["learnt_from_persons"]

    def test_too_many_patterns_leave_the_start_values(self, monkeypatch):
        monkeypatch.setattr(fellegi_sunter, "_MOST_PATTERNS", 3)
        original, masked = a_pair()
        found = probabilistic_linkage(original, masked)
        agreed, present = all_pairs(original, masked)
        shares = agreed.sum((0, 1)) / present.sum((0, 1))
        assert set(found.details["m"].values()) == {0.9}
        assert list(found.details["u"].values()) == pytest.approx(shares.tolist())
        assert "too many patterns" in found.warnings[0]

    def test_persons_all_over_the_table_come_first(self):
        order = fellegi_sunter._spread(1000)
        assert sorted(order.tolist()) == list(range(1000))
        assert np.diff([0, *np.sort(order[:50]), 1000]).max() < 50

    def test_two_hundred_columns(self):
        draw = np.random.default_rng(4)
        original = table({f"c{i}": draw.integers(0, 3, 40) for i in range(200)})
        found = probabilistic_linkage(original, original)
        assert found.value == 1


class TestOneToOne:
    @pytest.mark.parametrize("keep", [1.0, 0.5])
    def test_the_sum_of_weights_is_as_great_as_it_can_be(self, keep):
        original, masked = a_pair(rows=90, keep=keep)
        found = probabilistic_linkage(original, masked, one_to_one=True)
        m, u = (np.array(list(found.details[name].values())) for name in "mu")
        weights = plain_weights(original, masked, m, u)
        people, records = linear_sum_assignment(weights, maximize=True)
        own = original.row_key[people] == masked.row_key[records]
        assert found.details["one_to_one"] is True
        # there are many equally good solutions, so only what they share can be compared
        assert found.value == pytest.approx(own.sum() / 90, abs=0.1)
        assert found.per_record.sum() <= len(masked)

    def test_nobody_shares_a_record(self):
        """Both persons are nearest to the first record; one to one, each gets their own."""
        original = table({"x": list("aab"), "y": list("ppq"), "z": list("rst")})
        masked = original.with_cells_of({"z": np.array([0, 2, 2])})
        assert probabilistic_linkage(original, masked, one_to_one=True).value == 1

    def test_equal_persons_and_records_are_exchanged_at_random(self):
        original = table({"x": [1, 1, 1, 2], "y": list("pppq")})
        found = probabilistic_linkage(original, original, one_to_one=True)
        assert found.per_record.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])

    def test_equal_persons_share_what_they_are_linked_to(self):
        """Two persons of one kind and one remaining record: either of them is linked to it."""
        original = table({"x": [1, 1, 2], "y": list("ppq")})
        masked = original.with_cells_of({"y": np.array([0, 2, 2])})
        found = probabilistic_linkage(original, masked, one_to_one=True)
        assert found.per_record.tolist() == pytest.approx([0.5, 0.5, 1])

    def test_no_place_in_the_table_is_favoured(self):
        """Nobody agrees with any record: right only by chance, even if the order is kept."""
        original = table({"x": np.arange(400), "y": np.arange(400)})
        masked = original.with_numbers({"x": np.arange(400) + 1000, "y": np.arange(400) + 1000})
        assert probabilistic_linkage(original, masked, one_to_one=True).value < 0.02

    def test_the_order_of_rows_does_not_matter(self):
        """With few values there are many equally good solutions: the same one is always chosen."""
        original, masked = a_pair(rows=120)
        turned = np.random.default_rng(6).permutation(120)
        options = {"one_to_one": True, "known": ["a", "b", "c"]}
        first = probabilistic_linkage(original, masked, **options)
        second = probabilistic_linkage(
            original.reorder(turned), masked.reorder(turned[::-1].copy()), **options
        )
        assert first.per_record[turned].tolist() == pytest.approx(second.per_record.tolist())

    def test_few_persons_and_many_records(self, monkeypatch):
        """The best records of each person are enough: the sum is the same as with all records."""
        from shoal.risk.linkage import _probabilistic_linkage

        original, masked = a_pair(rows=400, missing=0.05)
        options = {"one_to_one": True, "sample": 60}
        whole = probabilistic_linkage(original, masked, **options)
        monkeypatch.setattr(_probabilistic_linkage, "MOST_PERSONS", 60)
        sparse = probabilistic_linkage(original, masked, **options)
        assert sparse.value == pytest.approx(whole.value, abs=0.12)
        assert sparse.details["persons"] == 60

    def test_too_many_persons_are_refused(self, monkeypatch):
        monkeypatch.setattr("shoal.risk.linkage._probabilistic_linkage.MOST_PERSONS", 100)
        with pytest.raises(InputError, match="at most 100 persons; got 150"):
            probabilistic_linkage(*a_pair(), one_to_one=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"one_to_one": 1}, "must be true or false"),
        ({"estimate": "em"}, "'by-person', 'by-pair'"),
        ({"sample": 0}, "'sample' .* must be an integer"),
        ({"known": "some"}, "list of column names"),
    ],
)
def test_what_is_refused(options, message):
    one = table({"x": [1, 2]})
    with pytest.raises(InputError, match=message):
        probabilistic_linkage(one, one, **options)
