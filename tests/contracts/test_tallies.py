"""A tally (combinations with their counts) has the results of its records, or is refused.

Whatever declares ``by_counts`` is tried on a table and on its tally; whatever does not must refuse
the tally, since it would take a combination for a record.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import InputError
from shoal.models import KAnonymity, PopulationModel
from shoal.workflow._assess import assess_release
from shoal.workflow._require import discover_all_measures, make_claim

from .parts.model_examples import KNOWN_MODELS, MODELS
from .parts.registry import MASKERS

_NAMES = ["age", "city", "ill"]


def _records(persons: bool, count: int = 400) -> Table:
    """Records with few combinations and missing cells; rows of a person are not adjacent."""
    draw = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "who": draw.integers(0, 90, count),
            "age": draw.choice([23, 31, 31, 44, 58], count),
            "city": draw.choice(["Bern", "Jena", "Jena", "Graz"], count),
            "ill": draw.choice(["flu", "flu", "gout", "asthma"], count),
        }
    ).with_columns(pl.when(pl.col("who") % 7 == 0).then(None).otherwise("age").alias("age"))
    frame = frame if persons else frame.drop("who")
    return Table(frame, _roles(persons))


def _roles(persons: bool) -> Roles:
    unit = {"unit": "who"} if persons else {}
    return Roles(quasi_identifiers=["age", "city"], sensitive=["ill"], **unit)


def _tally(table: Table) -> Table:
    counted = table.frame.group_by(table.columns, maintain_order=True).len("times")
    return Table(counted.drop("times"), table.roles).tallied(counted["times"].to_numpy())


@pytest.fixture(
    params=[(False, 400), (False, 40), (True, 400)],
    ids=["records", "few records", "persons"],
    scope="module",
)
def both(request: pytest.FixtureRequest) -> tuple[Table, Table]:
    table = _records(*request.param)
    tally = _tally(table)
    assert len(tally) < len(table) == tally.records
    return table, tally


def test_classes(both: tuple[Table, Table]) -> None:
    table, tally = both
    for one, other in (
        (table.classes, tally.classes),
        (table.group(["ill"]), tally.group(["ill"])),
    ):
        assert sorted(zip(one.sizes, one.rows, strict=True)) == sorted(
            zip(other.sizes, other.rows, strict=True)
        )
    assert table.person_count == tally.person_count
    for name in _NAMES:
        assert table.value_counts(name) == tally.value_counts(name)
        assert table.missing_count(name) == tally.missing_count(name)


@pytest.mark.parametrize("example", MODELS, ids=lambda example: example.id)
def test_models(example, both: tuple[Table, Table]) -> None:
    table, tally = both
    model = example.make(table)
    if not model.by_counts:
        with pytest.raises(InputError, match="tally"):
            make_claim(model, tally, None)
        return
    one, other = (make_claim(model, each, None) for each in (table, tally))
    assert other.measured == pytest.approx(one.measured, rel=1e-12)
    assert (other.holds, other.sentence) == (one.holds, one.sentence)


_OF_PEOPLE = [one for one in MODELS if issubclass(KNOWN_MODELS[one.model], PopulationModel)]


@pytest.mark.parametrize("example", _OF_PEOPLE, ids=lambda example: example.id)
def test_a_population_may_be_a_tally_too(example, both: tuple[Table, Table]) -> None:
    model = example.make(both[0])
    counted = replace(model, population=_tally(model.people()))
    one, other = make_claim(model, both[0], None), make_claim(counted, both[1], None)
    assert other.measured == pytest.approx(one.measured, rel=1e-12)
    assert (other.holds, other.sentence) == (one.holds, one.sentence)


def test_histories(both: tuple[Table, Table]) -> None:
    table, tally = both
    model = KAnonymity(2, of="histories")
    assert model.level(table) == model.level(tally)
    assert model.explain(table) == model.explain(tally)


def test_models_that_count_are_known() -> None:
    """Tests above cover a new model; this one notices a model that no longer works by counts."""
    counting = {name for name, model in KNOWN_MODELS.items() if model.by_counts}
    assert counting == {
        "alpha_k_anonymity",
        "average_risk",
        "beta_likeness",
        "delta_disclosure",
        "delta_presence",
        "differential_privacy",
        "k_anonymity",
        "k_map",
        "l_diversity",
        "population_uniqueness",
        "t_closeness",
    }


@pytest.mark.filterwarnings("ignore::shoal.errors.NothingLeftWarning")
@pytest.mark.parametrize("name", sorted(discover_all_measures()))
def test_measures(name: str, both: tuple[Table, Table]) -> None:
    tally = both[1]
    info = discover_all_measures()[name]
    if not info.by_counts:
        with pytest.raises(InputError, match="tally"):
            info.take(tally, tally)
        return
    if info.needs_original:
        masked = [_masked(each) for each in both]
        found = [info.take(a, b) for a, b in zip(both, masked, strict=True)]
    else:
        options = {"sampling_fraction": 0.2} if "sampling_fraction" in info.options else {}
        found = [info.take(None, each, **options) for each in both]
    assert found[1].value == pytest.approx(found[0].value, rel=1e-12)
    assert found[1].details == _about(found[0].details)


def _about(fact: object) -> object:
    """A fact whose numbers may differ in the last digit, since the order of addition differs."""
    if isinstance(fact, dict):
        return {name: _about(each) for name, each in fact.items()}
    return pytest.approx(fact, rel=1e-12) if isinstance(fact, float) else fact


def _masked(table: Table) -> Table:
    from shoal import Generalize

    return Generalize("full-domain", k=20).fit_transform(table)


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
@pytest.mark.parametrize("example", MASKERS, ids=lambda example: example.id)
def test_methods(example, both: tuple[Table, Table]) -> None:
    table, tally = both
    step = example.make(table)
    if not step.by_counts:
        with pytest.raises(InputError, match="tally"):
            step.fit_transform(tally)
        return
    outcomes, steps = [], []
    for each in both:
        step = example.make(table)
        outcomes.append(step.fit_transform(each))
        steps.append(step)
    assert steps[0].removed_ == steps[1].removed_
    assert steps[0].losing_ == steps[1].losing_
    assert steps[0].touched_ == steps[1].touched_
    assert getattr(steps[0], "loss_", 0) == pytest.approx(getattr(steps[1], "loss_", 0))
    found = [_counted(each) for each in outcomes]
    assert found[0] == found[1]


def _counted(table: Table) -> dict:
    times = np.ones(len(table), np.int64) if table.times is None else table.times
    names = [name for name in table.columns if name != "who"]
    frame = table.frame.select(names).with_columns(times=pl.Series(times))
    summed = frame.group_by(names).agg(pl.col("times").sum())
    return {tuple(map(str, row[:-1])): row[-1] for row in summed.iter_rows()}


def test_a_tally_needs_counts() -> None:
    table = _records(False)
    with pytest.raises(InputError, match="tally"):
        table.tallied(np.zeros(len(table), np.int64))


def test_how_risk_is_spread_counts_records(both: tuple[Table, Table]) -> None:
    table, tally = both
    one, other = (assess_release(each, None) for each in (table, tally))
    assert len(one.distributions) > 0
    for first, second in zip(one.distributions, other.distributions, strict=True):
        assert second.to_dict() == _about(first.to_dict())
