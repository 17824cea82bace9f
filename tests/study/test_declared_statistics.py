"""Statistics in a study's file, compared with the functions and with plain counting."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import InputError, PlanError
from shoal.study import Results, Study
from shoal.study._declared import STATISTICS, check, conclude
from shoal.study._results import Row
from shoal.study._statistics import bayes_sign_test, friedman, signed_rank, spearman

TABLES, VARIANTS = ("a", "b", "c", "d"), ("original", "round base=5", "round base=50", "noise")
RNG = np.random.default_rng(3)
RISK = RNG.random((4, 4)).round(1)  # variants by tables, with ties
F1 = RNG.random((4, 4)).round(1) + 0.1


def study_with(*statistics, figures=()):
    return Study.from_dict(
        {
            "tables": [{"name": name, "path": f"{name}.csv", "target": "ill"} for name in TABLES],
            "variants": [
                {"name": "round", "steps": [{"method": "round"}], "grid": {"base": [5, 50]}},
                {"name": "noise", "steps": [{"method": "add_noise", "epsilon": 1.0}]},
            ],
            "measures": [
                "distance_linkage",
                {"measure": "predictive_performance", "name": "F1"},
            ],
            "statistics": list(statistics),
            "figures": list(figures),
        }
    )


def results(missing=()):
    rows = []
    for i, variant in enumerate(VARIANTS):
        family = variant.split()[0]
        parameters = {"base": int(variant[-2:].strip("="))} if family == "round" else {}
        for j, table in enumerate(TABLES):
            for measure, values in (("distance_linkage", RISK), ("F1", F1)):
                if (variant, table) in missing:
                    continue
                rows += [
                    Row(table, variant, family, seed, measure, "done", values[i, j] + shift, None,
                        0.1, parameters)
                    for seed, shift in enumerate((-0.01, 0.01))
                ]  # fmt: skip
    return Results(tuple(rows))


def one(kind, *, given=None, **options):
    study = study_with({"kind": kind, **options})
    check(study)
    (found,) = conclude(study, results() if given is None else given).statistics
    assert found.name == f"1-{kind}"
    return found


def test_every_kind_is_tried_here():
    tried = {"bootstrap", "friedman", "front", "ranks", "sign-test", "signed-rank", "spearman"}
    assert set(STATISTICS) == tried


def test_the_sign_test_counts_less_risk_as_a_win():
    found = one("sign-test", measure="distance_linkage", rope=5.0)
    assert [row[0] for row in found.rows] == list(VARIANTS[1:])
    for place, row in enumerate(found.rows, 1):
        change = 100 * (RISK[place] - RISK[0]) / RISK[0]
        expected = bayes_sign_test(-change, rope=5.0)
        assert row == (VARIANTS[place], 4, *expected.probabilities, expected.verdict)
    assert "at most 5 % are a draw" in found.sentence


def test_a_test_against_another_variant():
    found = one("signed-rank", measure="F1", against="noise")
    assert [row[0] for row in found.rows] == list(VARIANTS[:3])
    for place, row in enumerate(found.rows):
        change = F1[place] - F1[3]
        assert row[1:3] == (4, pytest.approx(np.median(change)))
        assert row[3:] == pytest.approx(signed_rank(change.round(12)))


def test_friedman_on_the_tables_that_all_have():
    found = one("friedman", measure="F1", given=results(missing={("noise", "b")}))
    expected = friedman(F1[:, [0, 2, 3]])
    assert dict(found.rows) == pytest.approx(dict(zip(VARIANTS, expected.mean_ranks, strict=True)))
    assert f"statistic {expected.statistic:.3g}, p = {expected.p_value:.2g}" in found.sentence
    assert f"{expected.critical_difference:.2f}" in found.sentence
    assert [row[1] for row in found.rows] == sorted(row[1] for row in found.rows)


def test_friedman_says_what_it_lacks():
    gone = {(variant, table) for variant in VARIANTS for table in "abc"}
    found = one("friedman", measure="F1", given=results(missing=gone))
    assert found.rows == ()
    assert "4 have results on 1" in found.sentence


def rank_of(place, column):
    """By counting: those below, and half of the others that are equal."""
    return (column < column[place]).sum() + ((column == column[place]).sum() + 1) / 2


def test_ranks_over_all_tables_and_over_the_common_ones():
    given = results(missing={("noise", "b")})
    found = {row[0]: row[1:] for row in one("ranks", measure="distance_linkage", given=given).rows}
    common = [0, 2, 3]
    of_noise = np.mean([rank_of(3, RISK[:, j]) for j in common])
    assert found["noise"] == (3, pytest.approx(of_noise), pytest.approx(of_noise))
    shared = [rank_of(1, RISK[:, j]) for j in common]
    over_all = np.mean([*shared, rank_of(1, RISK[:3, 1])])
    assert found["round base=5"] == (4, pytest.approx(over_all), pytest.approx(np.mean(shared)))


def test_bootstrap_by_a_parameter():
    found = {row[0]: row for row in one("bootstrap", measure="F1", by="base").rows}
    name, count, mean, low, high = found["50"]
    assert (name, count, mean) == ("50", 8, pytest.approx(F1[2].mean()))
    assert low < mean < high
    wide = {row[0]: row for row in one("bootstrap", measure="F1", confidence=0.999).rows}
    close = {row[0]: row for row in one("bootstrap", measure="F1", confidence=0.5).rows}
    assert wide["noise"][3] < close["noise"][3] < close["noise"][4] < wide["noise"][4]


def test_spearman_leaves_the_original_out():
    found = {row[0]: row[1:] for row in one("spearman", risk="distance_linkage", utility="F1").rows}
    assert set(found) == {*TABLES, "all"}
    assert found["all"] == (12, *spearman(RISK[1:].T.ravel().round(12), F1[1:].T.ravel()))
    assert found["a"] == (3, *spearman(RISK[1:, 0], F1[1:, 0]))


def test_the_front_of_each_table():
    found = one("front", risk="distance_linkage", utility="F1").rows
    for j, table in enumerate(TABLES):
        mine = {row[1] for row in found if row[0] == table}
        beaten = {
            VARIANTS[i]
            for i in range(4)
            for other in range(4)
            if RISK[other, j] <= RISK[i, j]
            and F1[other, j] >= F1[i, j]
            and (RISK[other, j], F1[other, j]) != (RISK[i, j], F1[i, j])
        }
        assert mine == set(VARIANTS) - beaten


def test_families_below_a_limit_as_an_upset_plot():
    figure = {"kind": "upset", "measure": "distance_linkage", "below": 0.5, "name": "reached"}
    study = study_with(figures=[figure])
    check(study)
    drawn = conclude(study, results()).figures["reached"]
    expected = {}
    for j in range(4):
        names = [
            name
            for name, rows in (("round", RISK[1:3]), ("noise", RISK[3:]))
            if (rows[:, j] < 0.5).any()
        ]
        label = " & ".join(names) or "none"
        expected[label] = expected.get(label, 0) + 1
    assert dict(drawn.rows) == expected


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"kind": "t-test", "measure": "F1"}, "There is no statistic 't-test'"),
        ({"kind": "ranks"}, "The statistic '1-ranks' needs the option 'measure'"),
        ({"kind": "ranks", "measure": "F2"}, "'F2'"),
        ({"kind": "sign-test", "measure": "F1", "against": "nobody"}, "'nobody'"),
        ({"kind": "sign-test", "measure": "F1", "rope": -1}, "be a number ≥ 0"),
        ({"kind": "friedman", "measure": "F1", "alpha": 1}, "a number > 0 and < 1"),
        ({"kind": "bootstrap", "measure": "F1", "confidence": "high"}, "a number > 0 and < 1"),
        ({"kind": "ranks", "measure": "F1", "name": "../x"}, "file"),
    ],
)
def test_a_statistic_that_cannot_be_is_refused_before_a_run(entry, said):
    with pytest.raises(InputError, match=said):
        check(study_with(entry))


def test_no_result_at_all_gives_empty_tables():
    entries = [
        {"kind": kind, "name": kind, **({"risk": "distance_linkage", "utility": "F1"}
         if kind in ("spearman", "front") else {"measure": "F1"})}
        for kind in STATISTICS
    ]  # fmt: skip
    study = study_with(*entries)
    check(study)
    assert {found.rows for found in conclude(study, Results(())).statistics} == {()}


def test_means_that_differ_by_rounding_alone_are_tied():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1, but the order of seeds makes no difference."""
    by_variant = {
        "original": [0.2],
        "round base=5": [0.1, 0.2, 0.3],
        "round base=50": [0.3, 0.2, 0.1],
        "noise": [0.2, 0.2, 0.2],
    }
    given = Results(
        tuple(
            Row(table, variant, variant, seed, measure, "done", value, None, 0.1)
            for table in TABLES
            for variant, values in by_variant.items()
            for seed, value in enumerate(values)
            for measure in ("distance_linkage", "F1")
        )
    )
    ranks = one("ranks", given=given, measure="distance_linkage")
    assert [row[2:] for row in ranks.rows] == [(2.5, 2.5)] * 4
    front = one("front", given=given, risk="distance_linkage", utility="F1")
    assert len(front.rows) == 16
    changes = one("signed-rank", given=given, measure="F1")
    assert [row[2:] for row in changes.rows] == [(0.0, 0.0, 1.0)] * 3
    assert "p = 1." in one("friedman", given=given, measure="F1").sentence
    related = one("spearman", given=given, risk="distance_linkage", utility="F1")
    assert {row[2:] for row in related.rows} == {(0.0, 1.0)}


def test_equal_changes_are_tied_in_the_signed_rank_test():
    before, after = (0.1, 0.2, 0.3, 0.7), (0.3, 0.4, 0.1, 0.9)  # ± 0.2, each slightly off
    given = Results(
        tuple(
            Row(table, variant, variant, 0, "F1", "done", values[place], None, 0.1)
            for variant, values in (("original", before), ("noise", after))
            for place, table in enumerate(TABLES)
        )
    )
    (row,) = one("signed-rank", given=given, measure="F1").rows
    assert row == ("noise", 4, 0.2, *signed_rank([0.2, 0.2, -0.2, 0.2]))


def test_what_is_grouped_by_lists():
    rows = [
        Row("a", f"swap columns={names}", "swap", 0, "F1", "done", value, None, 0.1,
            {"columns": names})
        for names, value in ((["age"], 0.5), (["age", "city"], 0.7))
    ]  # fmt: skip
    study = study_with({"kind": "bootstrap", "measure": "F1", "by": "columns"})
    (found,) = conclude(study, Results(tuple(rows))).statistics
    assert [row[:3] for row in found.rows] == [("['age']", 1, 0.5), ("['age', 'city']", 1, 0.7)]


@pytest.mark.parametrize("kind", ["sign-test", "signed-rank"])
def test_without_an_original_it_must_be_said_what_to_compare_with(kind):
    given = {
        "tables": [{"path": "a.csv"}],
        "variants": [{"name": "round", "steps": [{"method": "round", "base": 5}]}],
        "measures": ["uniqueness"],
        "baseline": False,
    }
    entry = {"kind": kind, "measure": "uniqueness"}
    with pytest.raises(PlanError, match=r"'against' .* 'original'"):
        check(Study.from_dict({**given, "statistics": [entry]}))
    check(Study.from_dict({**given, "statistics": [{**entry, "against": "round"}]}))


@pytest.mark.parametrize("name", ["é" * 101, "a/b", "a\nb"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(PlanError, match="file"):
        check(study_with({"kind": "ranks", "measure": "F1", "name": name}))
    check(study_with({"kind": "ranks", "measure": "F1", "name": "é" * 100}))


@pytest.mark.parametrize("kind", ["sign-test", "signed-rank"])
def test_a_measure_that_the_original_has_not_compares_nothing_and_says_so(kind):
    rows = tuple(row for row in results() if row.variant != "original")
    found = one(kind, given=Results(rows), measure="F1")
    assert found.rows == ()
    other = " other than 0" if kind == "sign-test" else ""  # there are no percentages of 0
    said = f"No table has a result for it{other} and one for another variant."
    assert found.sentence.endswith(said)
    assert "No table" not in one(kind, measure="F1").sentence
