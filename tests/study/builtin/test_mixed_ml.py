"""The study of swapped mixed data: its design, its verdict, and a small run of it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

from shoal.study import DATA_VARIABLE, Results, Row, built_in
from shoal.study.builtin._mixed_ml import (
    ATTACKS,
    BUDGETS,
    F1,
    KNOWLEDGE,
    LEARNERS,
    LINKS,
    LOSS,
    MEMBERSHIP,
    claims_of,
    compared,
    f1_of,
    figures_of,
    findings_of,
    guessed,
    mean,
    notes_of,
    readings_of,
    table_and_rule,
)
from shoal.study.running._runner import run

STUDY = built_in("mixed-ml")
TABLES = ("cmc", "mammographic", "heart_cleveland", "cardiotocography", "adult", "german")


@pytest.fixture(autouse=True)
def no_tables(monkeypatch, tmp_path):
    """Neither the folder of tables nor the current folder has any."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


class TestDesign:
    def test_quick_has_two_sizes_of_groups_and_two_trials(self):
        study = STUDY.design("quick")
        assert [source.name for source in study.tables] == [
            f"{name}, {rule}" for name in TABLES for rule in ("part", "all")
        ]
        assert {source.held_out for source in study.tables} == {0.3}
        assert {s.rows for s in study.tables if s.name.startswith("adult")} == {2_000}
        assert len(study.variants) == 1 + 5 * 2
        # the original and three generalizations once, two swaps twice
        cells = list(study.cells())
        assert len(cells) == 12 * (1 + 3 * 2 + 2 * 2 * 2)
        each = 3 * 2 + 2 + 1 + 5
        assert sum(len(cell.measures) for cell in cells) == 180 * each + 12 * 4

    def test_full_is_the_papers_grid(self):
        study = STUDY.design("full")
        assert {source.name.split(",")[0] for source in study.tables} == {*TABLES}
        assert all(source.rows is None for source in study.tables)
        assert {variant.parameters.get("k") for variant in study.variants[1:]} == {5, 50, 100, 200}
        assert len(study.seeds) == 5
        assert len(list(study.cells())) == 12 * (1 + 3 * 4 + 2 * 4 * 5)

    def test_what_openml_has_is_fetched_where_its_file_is_not(self):
        numbers = {s.name.split(",")[0]: s.openml for s in STUDY.design("full").tables}
        assert {name: n for name, n in numbers.items() if n is not None} == {
            "cmc": 23,
            "heart_cleveland": 49,
            "adult": 1590,
            "german": 31,
        }

    def test_the_network_is_trained_on_the_original_alone(self):
        for cell in STUDY.design("quick").cells():
            names = {measure.name for measure in cell.measures if "dp-sgd" in measure.name}
            trained = {f1_of("dp-sgd", epsilon) for epsilon in BUDGETS}
            assert names == (trained if cell.variant.name == "original" else set())

    def test_every_plan_can_be_made(self):
        for variant in STUDY.design("full").variants:
            assert len(variant.plan(0).steps) == (variant.name != "original")


def row(table, family, measure, value, *, k=None, seed=0, baseline=None, **details):
    variant = family if k is None else f"{family} k={k}"
    parameters = {} if k is None else {"k": k}
    facts = {"baseline": baseline, "details": details}
    return Row(table, variant, family, seed, measure, "done", value, None, 0.1, parameters, facts)


def invented(*, swapped_f1=0.7, boxes_f1=0.6, network=0.5, left_in_place=0.6):
    """Two tables whose contents the arguments determine."""
    rows = []
    for name, blind in (("one", 0.5), ("two", 0.6)):
        for rule in ("part", "all"):
            table = f"{name}, {rule}"
            further = 0.01 if rule == "all" else 0.0
            for attack in ATTACKS:
                for known in KNOWLEDGE:
                    measure = guessed(attack, known)
                    rows.append(row(table, "original", measure, 1.0, baseline=blind))
                    for family in ("gower", "ahmad-dey"):
                        for k, seed in ((5, 0), (5, 1), (50, 0), (50, 1)):
                            glued = rule == "part" and known == "everything"
                            value = left_in_place if glued else {5: 0.8, 50: blind}[k]
                            found = row(
                                table, family, measure, value, k=k, seed=seed, baseline=blind
                            )
                            rows.append(found)
            rows += [row(table, "original", measure, 0.9, baseline=0.9) for measure in F1]
            rows += [
                row(table, "original", f1_of("dp-sgd", epsilon), network, baseline=0.9)
                for epsilon in BUDGETS
            ]
            rows.append(row(table, "original", MEMBERSHIP, 1.0, baseline=0.5, precision=0.95))
            for k, cost in ((5, 0.0), (50, 0.1)):
                for family in ("gower", "ahmad-dey"):
                    for measure in F1:
                        value = swapped_f1 - cost - further
                        rows.append(row(table, family, measure, value, k=k, baseline=0.9))
                    lost = {"relative": 0.1 + cost + further}
                    rows.append(row(table, family, LOSS, 0.1, k=k, baseline=1.0, **lost))
                    rows.append(row(table, family, LINKS, 0.9 / k, k=k))
                    rows.append(
                        row(table, family, MEMBERSHIP, 0.5, k=k, baseline=0.5, precision=0.49)
                    )
                for measure in F1:
                    value = boxes_f1 - cost
                    rows.append(row(table, "k-anonymity", measure, value, k=k, baseline=0.9))
    return Results(tuple(rows))


def findings(results):
    return {finding.name: finding for finding in findings_of(readings_of(results))}


def claim(results, beginning):
    found = [c for c in claims_of(readings_of(results)) if c.text.startswith(beginning)]
    assert len(found) == 1
    return found[0]


def changed(results, measure, family, **fields):
    """The results with some fields of some rows replaced, each by a function of the row."""
    return Results(
        tuple(
            dataclasses.replace(each, **{name: make(each) for name, make in fields.items()})
            if each.measure == measure and each.family == family
            else each
            for each in results
        )
    )


class TestVerdict:
    def test_numbers_by_hand(self):
        found = findings(invented())
        assert found["secrets guessed on the original, distance"].measured == pytest.approx(1.0)
        # by table: k = 5 leaves 0.8, k = 50 the blind 0.5 or 0.6, so 0.65 and 0.70 of 1
        reduced = found["fewer secrets guessed, all swapped (gower), random forest"]
        assert reduced.measured == pytest.approx(1 - (0.65 + 0.70) / 2)
        assert reduced.published == 0.22
        lost = found["loss of F1, part swapped (gower)"]
        assert lost.measured == pytest.approx(0.9 - (0.7 + 0.6) / 2)
        assert lost.within_tolerance is False
        assert found["loss of F1, all swapped (ahmad-dey)"].within_tolerance is True
        precision = found["precision of a guess of membership, swapped (one half is blind)"]
        assert precision.measured == pytest.approx(0.49)
        assert precision.within_tolerance is True

    def test_other_code_is_compared_on_the_tables_of_both_and_the_k_that_ran(self):
        rows = invented().rows
        linked = "other code: rows linked by distance, part swapped, k = 50"
        known = [
            dataclasses.replace(each, table=f"cmc, {table_and_rule(each.table)[1]}")
            for each in rows
        ]
        foreign = [
            dataclasses.replace(
                each, table=f"cardiotocography, {table_and_rule(each.table)[1]}", value=1.0
            )
            for each in rows
        ]
        found = {f.name: f for f in compared(readings_of(Results((*known, *foreign))))}
        assert found[linked].measured == pytest.approx(0.9 / 50)
        assert found[linked].published == 0.018
        assert not [name for name in found if name.endswith("k = 100")]
        lost = found["other code: loss of F1, all swapped, k = 5"]
        assert (lost.published, lost.measured) == (0.018, pytest.approx(0.21))
        assert lost.within_tolerance is False
        alone = compared(readings_of(Results(tuple(foreign))))
        assert {each.within_tolerance for each in alone} == {None}

    def test_a_table_with_more_rows_counts_as_one(self):
        """Any number of trials on one table: each table has the same weight in the mean."""
        name = guessed("distance", "part")
        more = [
            row("one, part", "original", name, 0.5, seed=seed, baseline=0.5) for seed in range(9)
        ]
        some = Results((*more, row("two, part", "original", name, 1.0, baseline=0.5)))
        assert mean(readings_of(some)) == pytest.approx(0.75)

    def test_an_intruder_is_judged_by_the_columns_that_were_swapped(self):
        """The paper has no number for an intruder who knows everything if a part is swapped."""
        glued, plain = invented(left_in_place=1.0), invented()
        assert findings(glued) == findings(plain)
        name = "Swapping the identifying columns"
        assert claim(plain, name).holds is True
        assert claim(glued, name).holds is False
        assert "0.00 and 1.00" in claim(glued, name).evidence

    def test_every_claim_holds_where_it_should(self):
        found = claims_of(readings_of(invented()))
        assert [each.holds for each in found] == [True] * 10, found

    def test_claims_that_do_not_hold_say_where(self):
        some = invented(swapped_f1=0.6, boxes_f1=0.65, network=0.55)
        boxes = claim(some, "Models learn more from swapped records than from Mondrian's")
        assert boxes.holds is False
        assert boxes.evidence.startswith(
            "not in 4 of 4 comparisons: k-anonymity, part, k = 5: 0.600 against 0.650; "
        )
        network = claim(some, "Models learn more from swapped records than a network")
        assert network.holds is False
        assert network.evidence.startswith("not in 8 of 16 comparisons: ε = 3 against part")

    @pytest.mark.parametrize(
        ("measure", "value", "beginning"),
        [
            (LINKS, lambda r: 1.5 / r.parameters["k"], "An intruder who knows the swapped"),
            (F1[0], lambda r: 0.7, "The loss of F1"),
            (guessed("model", "everything"), lambda r: 1.1, "Swapping leaves fewer secrets"),
            (guessed("model", "part"), lambda r: 0.95, "From k = 50 on, attacks"),
            (guessed("model", "everything"), lambda r: 0.9, "From k = 50 on, a random forest"),
            (F1[0], lambda r: r.value + 0.2, "Gower and Ahmad-Dey"),
        ],
    )
    def test_every_claim_can_fail(self, measure, value, beginning):
        families = ("gower", "ahmad-dey") if measure == LINKS else ("ahmad-dey",)
        some = invented()
        for family in families:
            some = changed(some, measure, family, value=value)
        if beginning == "The loss of F1":
            for name in F1:
                some = changed(some, name, "ahmad-dey", value=value)
        assert claim(some, beginning).holds is False

    def test_a_loss_of_information_that_does_not_grow_is_said(self):
        some = changed(
            invented(), LOSS, "gower", facts=lambda r: {**r.facts, "details": {"relative": 0.1}}
        )
        found = claim(some, "The loss of F1")
        assert found.holds is False
        assert "information, gower, part at k = 5 0.100 to part at k = 50 0.100" in found.evidence

    def test_membership_that_is_told_is_said_to_be(self):
        some = invented()
        for family in ("gower", "ahmad-dey"):
            some = changed(
                some,
                MEMBERSHIP,
                family,
                facts=lambda r: {**r.facts, "details": {"precision": 0.6}},
            )
        found = claim(some, "Swapping hides who was in the table")
        assert found.holds is False
        assert "precision 0.60 (original 0.95)" in found.evidence

    def test_figures_and_their_numbers(self):
        found = STUDY.conclude(invented()).figures
        assert set(found) == {
            "information-against-k",
            *(
                f"{kind}-{rule}"
                for kind in ("f1-against-k", "disclosure-against-k", "risk-utility")
                for rule in ("part", "all")
            ),
        }
        blind = [r for r in found["disclosure-against-k-all"].rows if r[0] == "most frequent class"]
        assert [line[3] for line in blind] == [pytest.approx(0.55)] * 2
        level = [r[3] for r in found["f1-against-k-part"].rows if r[0] == "original"]
        assert level == [pytest.approx(0.9)] * 2
        swapped = next(r for r in found["risk-utility-all"].rows if r[0] == "gower, k = 5")
        assert swapped[2:4] == (pytest.approx(0.8), pytest.approx(0.69))

    def test_a_stopped_study_compares_on_the_tables_that_both_have(self):
        """Only one table has a result for k-anonymity, and everything is worse there."""
        hard = [row("three, part", "k-anonymity", name, 0.3, k=5, baseline=0.4) for name in F1] + [
            row("three, part", "gower", name, 0.35, k=5, baseline=0.4) for name in F1
        ]
        rest = [r for r in invented(swapped_f1=0.2) if r.family != "k-anonymity"]
        some = Results((*rest, *hard))
        found = claim(some, "Models learn more from swapped records than from Mondrian's")
        assert (found.holds, found.evidence) == (True, "in all comparisons (1)")
        figures = figures_of(readings_of(some))
        shown = {line[0] for line in figures["f1-against-k-part"].rows}
        assert "k-anonymity" not in shown
        assert "f1-against-k-all" in figures
        assert "risk-utility-part" not in figures  # the third table has no original yet

    def test_nothing_measured_is_nothing_judged(self):
        conclusion = STUDY.conclude(Results(()))
        assert all(math.isnan(finding.measured) for finding in conclusion.findings)
        assert all(claim.holds is None for claim in conclusion.claims)
        assert not conclusion.figures
        elsewhere = STUDY.elsewhere.conclude(Results(()))
        assert not elsewhere.findings  # they are means over the paper's tables
        assert [c.text for c in elsewhere.claims] == [c.text for c in conclusion.claims]

    def test_without_the_network_the_extra_that_it_needs_is_said(self):
        some = invented()
        for epsilon in BUDGETS:
            name = f1_of("dp-sgd", epsilon)
            some = changed(some, name, "original", status=lambda r: "failed")
        found = claim(some, "Models learn more from swapped records than a network")
        assert found.holds is None
        assert "extra 'dp'" in found.evidence
        told = [note for note in notes_of(some) if "network could not be trained" in note]
        assert len(told) == 1
        assert not any("network" in note for note in notes_of(invented()))


def test_a_small_table_runs_to_the_end(tmp_path, monkeypatch):
    """The design itself on 200 invented people, without the slowest learners."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, 200)
    (tmp_path / "uci").mkdir()
    pl.DataFrame(
        {
            "age": age,
            "height": np.round(rng.normal(170, 10, 200), 1),
            "city": rng.choice(["Bern", "Graz", "Jena"], 200),
            "severity": np.where(age + rng.normal(0, 12, 200) > 60, "1", "0"),
        }
    ).write_parquet(tmp_path / "uci" / "mammographic.parquet")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    whole = STUDY.design("quick")
    slow = {f1_of(name) for name in LEARNERS[2:]}
    study = dataclasses.replace(
        whole,
        tables=tuple(s for s in whole.tables if s.name == "mammographic, part"),
        variants=tuple(
            v for v in whole.variants if v.name in ("original", "gower k=5", "t-closeness k=5")
        ),
        measures=tuple(
            m for m in whole.measures if m.name not in slow and not m.name.endswith(("5", "1"))
        ),
        seeds=(0,),
    )
    ended = run(study, tmp_path / "out", jobs=1)
    results = Results.of(study, tmp_path / "out")
    failed = {row.measure: row.reason for row in results if row.status == "failed"}
    # if the extra is not installed, only the network fails, with the command that installs it
    assert set(failed) <= {f1_of("dp-sgd", 3.0)}
    assert all('[dp]"' in reason for reason in failed.values())
    assert ended.complete
    assert ended.done == 3 * 11 + 1 - len(failed)
    conclusion = STUDY.conclude(results)
    assert "disclosure-against-k-part" in conclusion.figures
    assert claim(results, "Swapping leaves fewer secrets").holds is True
    reduced = findings(results)["fewer secrets guessed, part swapped (gower), distance"]
    assert 0 < reduced.measured < 1
