"""The contract of measures if a person may have several rows."""

from __future__ import annotations

import inspect
import math

import numpy as np
import polars as pl
import pytest

from shoal import Round, Suppress, Table
from shoal.workflow import discover_all_measures

from .parts.measure_examples import MEASURES, OF_CLASSES, options_for
from .parts.registry import masked_by, people

INFOS = discover_all_measures()
each_example = pytest.mark.parametrize("example", MEASURES, ids=lambda example: example.id)
each_of_classes = pytest.mark.parametrize(
    "example",
    [example for example in MEASURES if example.name in OF_CLASSES],
    ids=lambda example: example.id,
)


def owned(table, persons):
    """The table with a column that says whose row it is."""
    who = pl.Series("who", persons)
    return Table(table.frame.with_columns(who), table.roles.replacing(unit="who"))


def measured(example, original, masked, options):
    info = INFOS[example.name]
    tables = (original, masked) if info.needs_original else (masked,)
    return info.function(*tables, **options)


def plain(value):
    """Facts without rounding errors of the last digits."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return float(f"{value:.12g}") if isinstance(value, float) and math.isfinite(value) else value


@each_example
@pytest.mark.parametrize("step", [Suppress(where="age > 50", target="records"), Round(base=10)])
def test_a_unit_of_one_row_each_changes_nothing(example, step):
    table = example.prepared(people())
    options = options_for(example, table)
    with_unit = owned(table, [f"p{(7 * row) % 1009}" for row in range(len(table))])
    others = {
        name: owned(given, [f"o{row}" for row in range(len(given))])
        for name, given in options.items()
        if isinstance(given, Table)
    }
    if "population" in others:  # it holds the table, and is masked in the same way
        options["population"] = masked_by(Round(base=10), options["population"])
        others["population"] = masked_by(Round(base=10), others["population"])
    tables = masked_by(step, table), masked_by(step, with_unit)
    if "population" in others:
        tables = tuple(masked_by(Round(base=10), one) for one in tables)
    without = measured(example, table, tables[0], options)
    found = measured(example, with_unit, tables[1].drop(["who"]), options | others)
    assert plain(found.to_dict()) == plain(without.to_dict())
    if without.per_record is not None:
        assert found.per_record == pytest.approx(without.per_record, rel=1e-12, nan_ok=True)


@each_of_classes
@pytest.mark.parametrize("missing", ["own", "wildcard"])
def test_rows_that_a_person_has_twice_count_once(example, missing):
    table = example.prepared(people())
    options = options_for(example, table) | {"missing": missing}
    persons = np.arange(len(table)) * 5 % 9
    once = owned(table, persons)
    twice = Table(pl.concat([once.frame, once.frame]), once.roles)
    kept = np.isin(persons, [1, 2, 3, 5, 8])
    if not INFOS[example.name].needs_original:
        kept[:] = True
    if "population" in options:
        twofold = pl.concat([table.frame.with_columns(pl.Series("who", persons + more))
                             for more in (0, 100)])  # fmt: skip
        options["population"] = Table(twofold, once.roles)
    first = measured(example, once, once.keep(kept), options)
    second = measured(example, twice, twice.keep(np.tile(kept, 2)), options)
    assert second.value == pytest.approx(first.value, rel=1e-12)
    if first.per_record is not None:
        both = np.tile(first.per_record, 2)
        assert second.per_record == pytest.approx(both, rel=1e-12)


def test_every_share_of_records_is_one_of_persons():
    """Five rows of one person and one of another: the first is not five times as important."""
    frame = pl.DataFrame({"age": [1, 1, 1, 1, 1, 2], "ill": list("aaaaab"), "who": [0] * 5 + [1]})
    roles = people().roles.replacing(
        identifiers=[], insensitive=[], quasi_identifiers=["age"], sensitive=["ill"], unit="who"
    )
    table = Table(frame, roles)
    for name in ("uniqueness", "records_at_risk", "marketer_risk", "homogeneity", "suda"):
        assert INFOS[name].function(table).value == 1.0, name
    assert inspect.signature(INFOS["uniqueness"].function).parameters["missing"]
