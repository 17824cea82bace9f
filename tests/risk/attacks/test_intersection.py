"""Several releases of one table, intersected."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Generalize, Hierarchy, Roles, Sample, Swap, Table
from shoal.errors import InputError
from shoal.risk import homogeneity, intersection

ROLES = Roles(quasi_identifiers=["age", "zip"], sensitive=["ill"])


def people(rows, seed=1):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(20, 80, rows),
            "zip": [f"{z:03d}" for z in rng.integers(0, 300, rows)],
            "ill": [f"d{i}" for i in rng.integers(0, 12, rows)],
        }
    )
    return Table(frame, ROLES)


@pytest.fixture(scope="module")
def releases():
    """Two releases of one table, each 6-anonymous, from different algorithms."""
    original = people(500)
    made = [
        Generalize(algorithm=algorithm, k=6).fit_transform(original)
        for algorithm in ("mondrian", "local")
    ]
    assert min(one.classes.k for one in made) >= 6
    return original, made


def by_brute_force(releases, name):
    """For each person in all releases, the crowd and the values that every class has."""
    keys = sorted(set.intersection(*(set(one.row_key.tolist()) for one in releases)))
    crowds, left = [], []
    for key in keys:
        peers, values = set(keys), None
        for one in releases:
            rows = one.row_key.tolist()
            labels, cells = one.classes.labels, one.frame[name].to_list()
            mine = labels[rows.index(key)]
            here = [i for i, label in enumerate(labels) if label == mine]
            peers &= {rows[i] for i in here}
            said = {cells[i] for i in here}
            values = said if values is None else values & said
        crowds.append(len(peers))
        left.append(len(values))
    return np.array(crowds), np.array(left)


def test_it_equals_a_brute_force(releases):
    original, made = releases
    crowds, left = by_brute_force(made, "ill")
    records = intersection(made, original=original)
    assert records.value == pytest.approx(np.mean(crowds < records.details["k"]))
    assert records.per_record.tolist() == (crowds < records.details["k"]).tolist()
    assert records.details["smallest_crowd"] == crowds.min()
    assert records.details["alone"] == pytest.approx(np.mean(crowds == 1))
    values = intersection(made, attack="values")
    assert values.value == pytest.approx(np.mean(left == 1))
    assert values.details["value_is_certain"]["ill"] == values.value
    assert 0 < values.value < 1


def test_two_safe_releases_are_not_safe_together(releases):
    _, made = releases
    found = intersection(made)
    assert found.baseline == 0.0
    assert found.value > 0.5
    told = intersection(made, attack="values")
    assert told.baseline == max(homogeneity(one).value for one in made) == 0.0
    assert told.value > 0


def test_the_same_release_twice_tells_nothing_new(releases):
    _, made = releases
    found = intersection([made[0], made[0].reorder(np.arange(len(made[0]))[::-1])])
    assert found.value == found.baseline == 0.0
    assert intersection([made[0], made[0]], attack="values").value == 0.0


def test_more_releases_tell_more():
    original = people(400, seed=3)
    made = [
        Generalize(
            k=4,
            algorithm="full-domain",
            hierarchies={"age": Hierarchy.intervals(w)},
            suppression_limit=0.2,
        ).fit_transform(original)
        for w in (15, 20, 25)
    ]
    two, three = (intersection(made[:n], k=4).details["average_crowd"] for n in (2, 3))
    assert three < two


def test_who_is_not_in_all_releases_is_not_judged(releases):
    original, made = releases
    half = made[1].keep(np.arange(len(original)) % 2 == 0)
    found = intersection([made[0], half], original=original)
    assert found.details["persons"] == 250
    assert np.isnan(found.per_record[1::2]).all()
    assert not np.isnan(found.per_record[::2]).any()
    assert "not in all of them" in found.warnings[0]
    crowds, _ = by_brute_force([made[0], half], "ill")
    assert found.details["smallest_crowd"] == crowds.min()


def test_changed_secrets_are_not_disclosed_by_what_is_common():
    """Both classes share one value, but it is no longer that of the person."""
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "zip": ["a"] * 4, "ill": ["p", "q", "r", "s"]})
    first = Table(frame, ROLES)
    second = first.with_cells_of({"ill": np.array([1, 2, 2, 3])})  # q r r s
    found = intersection([first, second], attack="values")
    # the first two only share q, which is now the first's; the others keep r and s
    assert found.per_record.tolist() == [0.0, 0.0, 0.0, 0.0]
    third = first.with_cells_of({"ill": np.array([0, 3, 2, 0])})  # p s r p
    found = intersection([first, third], attack="values")
    assert found.per_record.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_a_missing_secret_is_a_value():
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "zip": ["a"] * 4, "ill": [None, "q", None, None]})
    first = Table(frame, ROLES)
    found = intersection([first, first], attack="values")
    assert found.per_record.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert found.baseline == 0.5


def test_the_baseline_is_the_release_that_tells_most():
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "zip": ["a"] * 4, "ill": ["p", "q", "r", "r"]})
    fine = Table(frame, ROLES)
    coarse = Hierarchy.suppression().generalize(fine, "age", 1)
    for releases in ([fine, coarse], [coarse, fine]):
        found = intersection(releases, attack="values")
        assert found.baseline == found.value == 0.5
        assert sorted(found.details["single_releases"]) == [0.0, 0.5]
        records = intersection(releases, k=3)
        assert records.baseline == records.value == 1.0
        assert sorted(records.details["single_releases"]) == [0.0, 1.0]


def test_a_swap_is_said(releases):
    original, made = releases
    swapped = Swap(k=3).fit_transform(original)
    assert any("swapped" in said for said in intersection([made[0], swapped]).warnings)
    assert any("k = 1" in said for said in intersection([made[0], swapped], k=1).warnings)


def test_who_is_alone_is_exposed_without_a_k():
    table = Table(pl.DataFrame({"x": [1, 2, 2], "y": [1, 1, 1]}), Roles(quasi_identifiers=["x"]))
    found = intersection([table, Table(table.frame, table.roles).paired(table)])
    assert (found.value, found.baseline, found.details["k"]) == (1 / 3, 1 / 3, 2)


def test_what_is_refused(releases):
    original, made = releases
    with pytest.raises(InputError, match=r"shoal\.Tables"):
        intersection([made[0]])
    with pytest.raises(InputError, match="one input"):
        intersection([made[0], people(500)])
    with pytest.raises(InputError, match="'records', 'values'"):
        intersection(made, attack="x")
    with pytest.raises(InputError, match="integer ≥ 1"):
        intersection(made, k=0)
    with pytest.raises(InputError, match="no column 'x'"):
        intersection(made, secret="x")
    with pytest.raises(InputError, match="No sensitive column"):
        intersection([made[0], made[1].drop(["ill"])], attack="values")
    rows = np.arange(len(original))
    with pytest.raises(InputError, match="all of the releases"):
        intersection([made[0].keep(rows < 9), made[1].keep(rows > 9)])
    bare = made[0].with_roles(Roles(sensitive=["ill"]))
    with pytest.raises(InputError, match="no quasi-identifiers"):
        intersection([bare, made[1]])
    coded = Table(original.frame.with_columns(ill=pl.int_range(500, eager=True)), ROLES).paired(
        original
    )
    with pytest.raises(InputError, match="text in some"):
        intersection([made[0], coded], attack="values")
    assert "value_is_certain" not in intersection([made[0], coded]).details


def test_facts_are_plain_and_no_cells(releases):
    import json

    found = intersection(releases[1], attack="values")
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert "d1" not in text
    assert "attack" in found.details


def test_samples_over_time_pair_by_their_rows(frame):
    columns = {"age": [30, 30, 31, 31, 32, 32] * 4, "zip": ["a", "ü"] * 12, "ill": list("pqrs") * 6}
    original = Table(frame(columns), ROLES)
    made = [Sample(fraction=0.7).fit_transform(original) for _ in range(2)]
    assert intersection(made, k=2).details["persons"] <= 17
