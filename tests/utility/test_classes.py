"""Discernibility, average class size and suppressed records, by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Suppress, Table
from shoal.errors import InputError
from shoal.utility import average_class_size, discernibility, suppressed_records

from .tables import masked_as, quasi, table


def test_classes_of_three_and_two():
    people = quasi(x=[1, 2, 3, 4, 5])
    masked = masked_as(people, x=["a", "a", "a", "b", "b"])
    found = discernibility(people, masked)
    assert found.details == {"penalty": 9 + 4, "classes": 2, "suppressed": 0}
    assert found.value == 13 / 25
    assert found.baseline == 5 / 25
    assert average_class_size(people, masked).value == 2.5
    assert average_class_size(people, masked, k=2).value == 1.25
    assert average_class_size(people, masked).baseline == 1.0


@pytest.mark.parametrize("gone", ["*", None, "taken out"])
def test_suppressed_records(gone):
    """One class of three; two records cost five each, and are one more class."""
    people = quasi(x=[1, 2, 3, 4, 5], y=list("abcde"))
    if gone == "taken out":
        masked = masked_as(people, x=["a"] * 5, y=["b"] * 5).keep(np.arange(5) < 3)
    else:
        masked = masked_as(people, x=["a"] * 3 + [gone] * 2, y=["b"] * 3 + [gone] * 2)
    assert discernibility(people, masked).details["penalty"] == 9 + 2 * 5
    assert average_class_size(people, masked).value == 5 / 2
    found = suppressed_records(people, masked)
    assert found.value == 2 / 5
    assert sum(found.details.values()) == 2


def test_half_a_record_is_not_suppressed():
    people = quasi(x=[1, 2], y=list("ab"))
    masked = masked_as(people, x=["*", "*"], y=["a", "*"])
    assert suppressed_records(people, masked).value == 0.5
    assert discernibility(people, masked).details == {"penalty": 3, "classes": 1, "suppressed": 1}


def test_missing_from_the_start_is_not_suppressed():
    people = quasi(x=[1, None, None, 4])
    assert suppressed_records(people, people).value == 0.0
    assert discernibility(people, people).details["penalty"] == 1 + 4 + 1
    emptied = people.blank({"x": np.array([True, False, False, False])})
    assert suppressed_records(people, emptied).details == {"taken_out": 0, "emptied": 1}
    apart = table(x=[None, None, None, 4])
    assert suppressed_records(people, apart).value == 0.0  # who is who is not known
    full = quasi(x=[1, 2, 3, 4])
    assert suppressed_records(full, apart).value == 0.75


def test_a_star_of_the_original_is_a_value():
    people = quasi(x=["*", "a"])
    assert suppressed_records(people, people).value == 0.0


def test_without_any_released_quasi_identifier():
    people = Table(pl.DataFrame({"x": [1, 2], "y": [1, 2]}), Roles(quasi_identifiers=["x"]))
    masked = Suppress(max_distinct=0).fit_transform(people)
    assert suppressed_records(people, masked).value == 1.0
    assert discernibility(people, masked).value == 1.0
    assert average_class_size(people, masked).value == 2.0


def test_large_classes_do_not_overflow():
    people = quasi(x=np.zeros(100_000, np.int8))
    found = discernibility(people, people)
    assert found.details["penalty"] == 10**10
    assert found.value == found.baseline == 1.0


def test_more_records_than_before():
    people, more = quasi(x=[1, 2]), quasi(x=[1, 1, 2])
    assert discernibility(people, more).value == 5 / 9
    assert suppressed_records(people, more).value == 0.0


def test_no_quasi_identifiers_are_refused():
    for measure in (discernibility, average_class_size):
        with pytest.raises(InputError, match="no classes"):
            measure(table(x=[1]), table(x=[1]))


def test_k_is_checked():
    people = quasi(x=[1, 2])
    with pytest.raises(InputError, match="'k'"):
        average_class_size(people, people, k=0)
