"""The contract of measures of risk and utility."""

from __future__ import annotations

import inspect
import json
import math

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import Measurement, Roles, Round, Suppress, Table
from shoal.errors import InputError, ShoalError
from shoal.parameters import Anything
from shoal.workflow import discover_all_measures

from .parts.measure_examples import (
    HIGHER_WITH_WILDCARDS,
    MEASURES,
    NOT_BEST_WHEN_UNMASKED,
    OF_CLASSES,
    options_for,
)
from .parts.registry import AWKWARD, crossed, masked_by, people

INFOS = discover_all_measures()
each_example = pytest.mark.parametrize("example", MEASURES, ids=lambda example: example.id)
each_info = pytest.mark.parametrize("info", INFOS.values(), ids=lambda info: info.name)
each_comparing = pytest.mark.parametrize(
    "info", [info for info in INFOS.values() if info.needs_original], ids=lambda info: info.name
)
HAS_READINGS = [
    example
    for example in MEASURES
    if "missing" in inspect.signature(INFOS[example.name].function).parameters
]


def people_for(info):
    """The people, with what the measure must have, and its options."""
    example = next(example for example in MEASURES if example.name == info.name)
    table = example.prepared(people())
    return table, options_for(example, table)


def measured(example, table, masked=None, **more):
    info = INFOS[example.name]
    table = example.prepared(table)
    options = options_for(example, table) | more
    if info.needs_original:
        return info.function(table, table if masked is None else masked, **options)
    return info.function(table, **options)


@pytest.mark.parametrize(("example", "name"), crossed(MEASURES))
def test_value(example, name):
    """The value is within the limits, has the declared direction and follows from the records."""
    table = AWKWARD[name]()
    before = table.frame.clone()
    found = measured(example, table)
    info = INFOS[example.name]
    assert isinstance(found, Measurement)
    assert type(found.value) is float
    low, high = info.limits
    assert low <= found.value <= high
    assert found.direction == info.direction
    assert found.name == info.name == info.function.__name__
    if example.of_records is None:
        assert found.per_record is None
    else:
        assert found.per_record.shape == (len(table),)
        assert found.per_record.min() >= low
        assert found.per_record.max() <= high
        assert found.value == pytest.approx(example.of_records(found.per_record), rel=1e-12)
    assert table.frame.equals(before)


@each_example
def test_facts_are_plain(example):
    """JSON can hold them exactly, without NaN and without anything per record."""
    found = measured(example, people())
    facts = found.to_dict()
    text = json.dumps(facts, allow_nan=False)
    assert json.loads(text) == facts
    assert facts["value"] == found.value
    assert "per_record" not in facts
    assert str(found).startswith(f"{example.name} = ")


@each_example
def test_facts_tell_no_cell(example):
    table = Table(
        pl.DataFrame({"x": ["canary-7d1f", "b", "b"], "y": [918273645, 1, 1]}),
        Roles(quasi_identifiers=["x", "y"]),
    )
    said = repr(measured(example, table)) + json.dumps(measured(example, table).to_dict())
    assert "canary" not in said
    assert "918273645" not in said


@each_example
def test_measuring_twice_gives_the_same(example):
    table = people()
    first, second = measured(example, table), measured(example, table)
    assert first.to_dict() == second.to_dict()


@each_example
def test_the_order_of_rows_and_columns_does_not_matter(example):
    table = people()
    turned = Table(table.frame.select(table.columns[::-1]).reverse(), table.roles)
    first, second = measured(example, table), measured(example, turned)
    assert first.value == pytest.approx(second.value, rel=1e-12)
    if first.per_record is not None:
        assert first.per_record == pytest.approx(second.per_record[::-1])


@pytest.mark.parametrize(("example", "name"), crossed(HAS_READINGS))
def test_wildcards_never_raise_a_risk(example, name):
    """If a missing value agrees with all others, crowds get larger for every record."""
    table = AWKWARD[name]()
    own, wildcard = (measured(example, table, missing=reading) for reading in ("own", "wildcard"))
    gaps = any(map(table.missing_count, table.roles.quasi_identifiers))
    if not gaps:
        assert wildcard.to_dict() == own.to_dict()
    if gaps and example.name in HIGHER_WITH_WILDCARDS:
        return
    assert wildcard.value <= own.value
    if own.per_record is not None:
        assert (wildcard.per_record <= own.per_record).all()


@pytest.mark.parametrize("name", OF_CLASSES)
def test_every_risk_of_classes_has_both_readings(name):
    parameter = inspect.signature(INFOS[name].function).parameters["missing"]
    assert parameter.default == "own"


@pytest.mark.parametrize("example", HAS_READINGS, ids=lambda example: example.id)
def test_a_third_reading_of_missing_is_refused(example):
    with pytest.raises(InputError, match=r"'own',? (or )?'wildcard'"):
        measured(example, people(), missing="any")


@each_example
def test_an_empty_table_is_refused(example):
    table = people()
    empty = table.keep(np.zeros(len(table), dtype=bool))
    info = INFOS[example.name]
    tables = (empty, empty) if info.needs_original else (empty,)
    options = options_for(example, table)
    with pytest.raises(InputError, match=r"\.$"):
        info.function(*tables, **options)


@each_comparing
def test_no_masking_is_no_loss(info):
    table, options = people_for(info)
    value = info.function(table, table, **options).value
    best = info.limits[0] if info.direction == "lower" else info.limits[1]
    if info.name in NOT_BEST_WHEN_UNMASKED:
        assert value != best
    else:
        assert value == best


@each_comparing
def test_it_compares_what_masking_leaves(info):
    """Removed columns, cells and records and changed numbers can all be compared."""
    table, options = people_for(info)
    steps = [
        Suppress(max_distinct=0.3),
        Suppress(min_count=3),
        Suppress(min_class_size=2),
        Suppress(where="age > 50"),
        Round(base=10),
    ]
    for step in steps:
        found = info.function(table, masked_by(step, table), **options)
        assert info.limits[0] <= found.value <= info.limits[1]
        assert math.isfinite(found.value)


@each_info
def test_it_is_exported_beside_its_kin(info):
    home = {"risk": shoal.risk, "utility": shoal.utility}[info.function.__module__.split(".")[1]]
    assert getattr(home, info.name) is info.function
    assert info.name in home.__all__
    assert info.title
    assert info.limits[0] < info.limits[1]


@each_info
def test_options_are_keyword_only(info):
    parameters = list(inspect.signature(info.function).parameters.values())
    tables = 2 if info.needs_original else 1
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters[:tables])
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[tables:])
    assert all(p.default is not p.empty for p in parameters[tables:])


@each_info
def test_options_are_declared(info):
    assert not [each for each in info.options.values() if isinstance(each.constraint, Anything)]


@each_info
def test_a_wrong_option_is_worded_by_shoal(info):
    """Options also come from plans: a text instead of a number must not end in a traceback."""
    for parameter in inspect.signature(info.function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name != "population":
            table, _ = people_for(info)
            tables = (table, table) if info.needs_original else (table,)
            for wrong in ("x", True, -1, math.nan):
                if isinstance(parameter.default, bool) and wrong is True:
                    continue
                with pytest.raises(ShoalError):
                    info.function(*tables, **{parameter.name: wrong})
