"""A seed that is used twice: what an intruder learns from two uses of the same random numbers.

The attacks are those that worked on version 0.1, where a stream depended on the seed, the method
and the column alone.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
import pytest

from shoal import (
    AddNoise,
    Plan,
    ProbabilisticKAnonymity,
    Protector,
    Roles,
    Sample,
    Swap,
    Table,
    protect,
    verify,
)
from shoal.errors import RequirementNotMet, SeedWarning, ShoalWarning
from shoal.masking import Masker
from shoal.parameters import Integer, Real
from shoal.table import Exchange
from shoal.workflow._leaks import refutes, swapping_of
from shoal.workflow._protect import _refuse_if_links_refute
from shoal.workflow._require import make_claim

SEED = 99194853094755497
ROLES = Roles(quasi_identifiers=["age", "income"], sensitive=["ill"])


def people(rows=300, *, month=0, roles=ROLES):
    random = np.random.default_rng(4 + month)
    incomes = np.random.default_rng(7).lognormal(10, 0.5, rows) * (1 + month / 100)
    frame = pl.DataFrame(
        {
            "age": random.permutation(rows),
            "income": incomes,
            "ill": [f"illness {row}" for row in range(rows)],
        }
    )
    return Table(frame, roles)


def masked(step, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return step.fit_transform(table)


def released(table, *steps, k=2, **options):
    plan = Plan(steps, require=[ProbabilisticKAnonymity(k)], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return protect(table, plan)


def noise_of(table, *, epsilon=1.0, seed=SEED):
    """The noise in units of its scale, which is the range over epsilon."""
    noisy = masked(AddNoise(epsilon=epsilon, columns=["income"], random_state=seed), table)
    before, after = table.frame["income"].to_numpy(), noisy.frame["income"].to_numpy()
    return (after - before) / np.ptp(before) * epsilon


class TestNumbersThatAreUsedTwice:
    def test_two_releases_with_more_and_less_noise_do_not_give_the_incomes_away(self):
        """x = (ε₂y₂ - ε₁y₁) / (ε₂ - ε₁) gave every income to the cent."""
        table = people()
        truth = table.frame["income"].to_numpy()
        first, second = (
            masked(AddNoise(epsilon=epsilon, columns=["income"], random_state=SEED), table)
            .frame["income"]
            .to_numpy()
            for epsilon in (1.0, 2.0)
        )
        guess = (2 * second - first) / (2 - 1)
        assert (np.abs(guess - truth) < 0.01).sum() == 0

    def test_the_table_of_next_month_has_noise_of_its_own(self):
        first, second = noise_of(people()), noise_of(people(month=1))
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.2

    def test_one_cell_and_one_role_are_enough(self):
        table = people()
        cell = table.frame.with_columns(pl.col("age").replace({17: 18}))
        roles = Roles(quasi_identifiers=["age", "income"])
        for other in (Table(cell, ROLES), people(roles=roles)):
            assert abs(np.corrcoef(noise_of(table), noise_of(other))[0, 1]) < 0.2

    def test_the_same_again_is_the_same(self):
        assert (noise_of(people()) == noise_of(people())).all()
        assert (noise_of(people(), epsilon=1) == noise_of(people(), epsilon=np.float64(1))).all()
        assert not (noise_of(people()) == noise_of(people(), seed=SEED + 1)).any()

    def test_two_steps_of_a_plan_leave_out_others(self):
        """Half of the half: the same draw would keep all of the first half again."""
        step = Sample(fraction=0.5, strategy="bernoulli", random_state=SEED)
        with pytest.warns(SeedWarning):
            kept, records = Plan([step, step]).apply(people(1_000))
        assert 150 < len(kept) < 350
        assert records[0].private["key"] != records[1].private["key"]


class TestASwapThatUndoesItself:
    @pytest.mark.parametrize("informed", [False, True])
    @pytest.mark.parametrize("k", [2, 3])
    def test_a_seeded_double_swap_keeps_few_rows_in_place(self, k, informed):
        """The permutation of k = 2, drawn twice, was the identity: 298 of 300 rows stayed."""
        table = people()
        steps = [Swap(k=k, informed=informed, random_state=SEED) for _ in range(2)]
        with pytest.warns(SeedWarning):
            after, _ = Plan(steps).apply(table)
        name = "ill" if informed else "income"
        own = (after.frame[name] == table.frame[name]).mean()
        assert own < 1 / k + 0.15

    def test_two_swaps_without_a_seed_are_fine(self, tmp_path):
        for informed in (False, True):
            steps = [Swap(k=2, informed=informed) for _ in range(2)]
            release = released(people(), *steps)
            assert release.claims[0].measured == 2
            assert not release.claims[0].rests_on_seed
        out = release.save(tmp_path / "out")
        assert verify(out, original=people()).holds


class TestAModelThatRestsOnChance:
    def test_it_does_not_hold_under_a_seed(self):
        with pytest.raises(RequirementNotMet, match="accept_seed"):
            released(people(), Swap(k=3, random_state=SEED), k=3)
        model, table = ProbabilisticKAnonymity(3), masked(Swap(k=3, random_state=SEED), people())
        assert model.level(table) == 1
        assert not model.holds(table)

    def test_a_seed_elsewhere_does_not_count(self):
        noise = AddNoise(epsilon=9, columns=["income"], random_state=SEED)
        assert not released(people(), Swap(k=3), noise, k=3).claims[0].rests_on_seed

    def test_a_plan_that_accepts_it_says_so_everywhere(self, tmp_path):
        step = Swap(k=3, random_state=SEED)
        release = released(people(), step, k=3, accept_seed=True)
        assert release.claims[0].holds
        assert release.claims[0].rests_on_seed
        out = release.save(tmp_path / "out")
        (claim,) = json.loads((out / "public/release.json").read_text())["claims"]
        assert claim["rests_on_seed"] is True
        assert "with a seed" in (out / "public/report.html").read_text()
        assert str(SEED) not in "".join(p.read_text() for p in (out / "public").glob("*.[hj]*"))
        found = verify(out, original=people())
        assert found.holds
        assert "seed" in found.claims[0].detail
        assert "seed" in verify(out / "public").claims[0].detail

    @pytest.mark.parametrize("half", ["public", "private"])
    def test_verify_sees_a_seed_that_is_not_stated(self, tmp_path, half):
        out = released(people(), Swap(k=3, random_state=SEED), k=3, accept_seed=True).save(
            tmp_path / "out"
        )
        file = out / ("public/release.json" if half == "public" else "private/audit.json")
        facts = json.loads(file.read_text())
        if half == "public":
            facts["claims"][0]["rests_on_seed"] = False
        else:
            facts["plan"]["accept_seed"] = False
        file.write_text(json.dumps(facts))
        (claim,) = verify(out).claims
        assert claim.status == "failed"

    def test_a_table_that_is_k_anonymous_needs_no_chance(self):
        frame = pl.DataFrame({"age": [20, 20, 30, 30], "ill": [*"abcd"]})
        table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["ill"]))
        claim = released(table, Swap(k=2, random_state=SEED), accept_seed=True).claims[0]
        assert (claim.measured, claim.rests_on_seed) == (2, False)

    def test_a_pipeline_refuses_it_too(self):
        steps = [Swap(k=2, random_state=SEED)]
        for accept in (False, True):
            plan = Plan(steps, require=[ProbabilisticKAnonymity(2)], accept_seed=accept)
            protector = Protector(plan, roles=ROLES)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)
                if accept:
                    protector.fit(people().frame)
                    continue
                with pytest.raises(RequirementNotMet, match="seed"):
                    protector.fit(people().frame)

    def test_the_switch_is_part_of_the_plan(self):
        plan = Plan([Swap(k=2)], accept_seed=True)
        assert Plan.from_toml(plan.to_toml()) == plan
        assert plan != Plan([Swap(k=2)])
        assert Plan.from_dict({"accept_seed": True}).accept_seed


@dataclass
class Undone(Masker):
    """A swap that leaves a share of the rows as they were and says that it was a fair draw."""

    k: Annotated[int, Integer(minimum=2)]
    share: Annotated[float, Real(minimum=0, maximum=1)] = 1.0

    method = "undone"

    def _mask(self, table, columns, log):
        rows = np.arange(len(table))
        groups = (rows // self.k).astype(np.int32)
        turned = rows // self.k * self.k + (rows + 1) % self.k
        source = np.where(rows < self.share * len(rows), rows, turned)
        swapped = table.with_cells_of(dict.fromkeys(columns, source))
        log.touched.extend(columns)
        return swapped.with_exchange(Exchange(tuple(columns), groups, source, "entropy"))


class TestLinksThatRefuteTheBound:
    def test_nothing_is_released_where_links_are_right_too_often(self):
        with pytest.raises(RequirementNotMet, match="attack"):
            released(people(rows=300), Undone(2))

    def test_verify_with_the_original_sees_it_too(self, tmp_path, monkeypatch):
        monkeypatch.setattr("shoal.workflow._protect.refutes", lambda *_: False)
        out = released(people(rows=300), Undone(2)).save(tmp_path / "out")
        assert verify(out).holds, "links cannot be tried without the original"
        found = verify(out, original=people(rows=300))
        assert [check.status for check in found.claims] == ["failed"]

    @pytest.mark.parametrize(("share", "refuted"), [(0.4, False), (0.75, True)])
    def test_chance_is_told_from_a_broken_promise(self, share, refuted):
        table = people(rows=300)
        after = Undone(2, share).fit_transform(table)
        found = swapping_of(table, after)
        claim = make_claim(ProbabilisticKAnonymity(2), after, table)
        assert found.linkage.value == pytest.approx(share, abs=0.02)
        assert refutes(found, claim) is refuted

    def test_a_chain_of_secrets_is_followed_to_its_end(self):
        """Each of two swaps moves half; together they move nothing."""
        table = people(rows=300)
        rows = np.arange(300)
        away = rows ^ 1
        groups = (rows // 2).astype(np.int32)
        for _ in range(2):
            table = table.with_cells_of({"ill": away}).with_exchange(
                Exchange(("ill",), groups, away, "entropy")
            )
        found = swapping_of(table, table)
        assert (found.informed, found.k, found.linkage.value) == (True, 2, 1.0)
        claim = make_claim(ProbabilisticKAnonymity(2), table, table)
        with pytest.raises(RequirementNotMet, match="Nothing was written"):
            _refuse_if_links_refute((claim,), found)

    @pytest.mark.parametrize("k", [2, 3, 7])
    def test_honest_swaps_are_never_refused(self, k):
        """In many draws, the evidence is far from the limit, so no test passes by luck."""
        for seed in range(20):
            table = people(rows=60 + 7 * seed, month=seed)
            after = Swap(k=k).fit_transform(table)
            claim = make_claim(ProbabilisticKAnonymity(k), after, table)
            assert not refutes(swapping_of(table, after), claim)
