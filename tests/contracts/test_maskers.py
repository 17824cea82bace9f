"""The contract of masking methods, whatever they do to the data."""

from __future__ import annotations

import copy
import traceback
import warnings

import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import (
    InputError,
    ShoalError,
    ShoalWarning,
    UnprotectedColumnWarning,
)

from .parts.each_masker import each_example, each_of_columns
from .parts.registry import (
    AWKWARD,
    KNOWN_METHODS,
    MASKERS,
    ROLES,
    crossed,
    masked_by,
    people,
    people_columns,
    quasi,
)

CANARY = "canary-7d1f"


CANARY_NUMBER = 918273645


TRIED = [case for case in crossed(MASKERS) if case.values[1] not in case.values[0].refuses]


REFUSED = [
    pytest.param(example, name, id=f"{example.id}-{name}")
    for example in MASKERS
    for name in example.refuses
]


def original_rows(table, masked):
    """The original of each masked row, found by its key."""
    return table.frame[masked.row_key.tolist()]


def changed_columns(table, masked):
    """Columns that were removed or have a changed cell."""
    before, after = original_rows(table, masked), masked.frame
    return {
        name
        for name in table.columns
        if name not in after.columns or differs(before[name], after[name])
    }


def differs(before, after):
    if after.dtype == pl.String and before.dtype != pl.String:
        return True  # generalized: no cell is what it was
    return before.ne_missing(after).any()


# -- the result


@each_example
def test_fit_learns_what_fit_transform_learns(example):
    table = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        fitted = example.make(table).fit(table)
    whole = example.make(table)
    masked_by(whole, table)
    if not whole.is_random:
        assert fitted.touched_ == whole.touched_
    assert fitted.transform(table).frame.equals(whole.transform(table).frame)


@pytest.mark.parametrize(("example", "name"), TRIED)
def test_result(example, name):
    """Rows, types, missing cells and the log are right on every awkward table."""
    table = AWKWARD[name]()
    masker = example.make(table)
    masked = masked_by(masker, table)

    # the rows keep their order and keys; only a rule over records takes some out
    keys = masked.row_key.tolist()
    assert keys == sorted(keys)
    assert set(keys) <= set(table.row_key.tolist())
    assert len(keys) == len(table) or example.over_records
    assert masker.removed_ == len(table) - len(keys)
    assert masked.pairs_with(table)

    # the columns keep their order and types, and the roles follow them
    left = [column for column in table.columns if column not in masker.removed_columns_]
    assert masked.columns == left
    assert masked.roles == table.roles.without(masker.removed_columns_)
    for column in left:
        if not (example.into_text and column in masker.touched_):
            assert kept_type(table, masked, column), (column, table.schema, masked.schema)

    # what was missing stays so
    before = original_rows(table, masked)
    for column in left if not example.moves_missing else []:
        assert masked.frame[column].filter(before[column].is_null()).null_count() == (
            before[column].null_count()
        )

    # the log says exactly what happened
    changed = changed_columns(table, masked)
    assert set(masker.touched_) == changed
    assert len(set(masker.touched_)) == len(masker.touched_)
    assert not changed & set(masker.skipped_)
    assert changed <= set(table.roles.quasi_identifiers)
    if not example.over_records:
        assert changed | set(masker.skipped_) == set(table.roles.quasi_identifiers)
    assert all(isinstance(reason, str) and reason for reason in masker.skipped_.values())


def kept_type(table, masked, column):
    """The type is the same, or the same kind and wider where the new values need it."""
    before, after = table.frame[column].dtype, masked.frame[column].dtype
    if before == after:
        return True
    widened = masked.frame[column].cast(before, strict=False).null_count()
    return table.kind(column) == masked.kind(column) and (
        widened > masked.frame[column].null_count()
    )


@pytest.mark.parametrize(("example", "name"), REFUSED)
def test_refused_in_one_sentence(example, name):
    table = AWKWARD[name]()
    with pytest.raises(InputError, match=r"\.$"):
        masked_by(example.make(table), table)


@each_example
def test_the_example_does_something(example):
    """Otherwise, the contract would test nothing for it."""
    table = people()
    for _ in range(20):  # a fair draw may leave every record where it was
        masker = example.make(table)
        assert len(masked_by(masker, table))
        if masker.touched_ or masker.removed_:
            return
    pytest.fail("twenty draws changed nothing")


@each_example
def test_identifiers_and_other_columns_stay(example):
    table = people()
    masked = masked_by(example.make(table), table)
    before = original_rows(table, masked)
    for column in ("name", "diagnosis", "ballast"):
        assert masked.frame[column].equals(before[column])


@each_example
def test_frames_of_every_kind(example, frame):
    """The output has the type of the input, and the values do not depend on it."""
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    expected = masked_by(example.make(people(), **random), people())
    table = Table(frame(people_columns()), ROLES)
    masked = masked_by(example.make(table, **random), table)
    assert type(masked.frame) is frame.type
    assert frame.columns(masked.frame) == expected.frame.to_dict(as_series=False)
    assert masked.row_key.tolist() == expected.row_key.tolist()


@each_of_columns
def test_named_columns_only(example):
    """With ``columns`` a method works on those, whatever their role, and on no others."""
    table = people()
    masker = example.make(table, columns=["height", "ballast"])
    masked = masked_by(masker, table)
    assert {*masker.touched_, *masker.skipped_} == {"height", "ballast"}
    assert changed_columns(table, masked) == set(masker.touched_)


# -- what is not touched


@each_example
def test_the_given_table_does_not_change(example):
    table = people()
    before = table.frame.clone()
    keys, roles = table.row_key.copy(), table.roles
    masked_by(example.make(table), table)
    assert table.frame.equals(before)
    assert table.row_key.tolist() == keys.tolist()
    assert table.roles == roles


@each_example
def test_the_parameters_do_not_change(example):
    table = people()
    masker = example.make(table)
    before = copy.deepcopy(masker.get_params())
    masked_by(masker, table)
    assert masker.get_params() == before


@each_example
def test_fitting_again_forgets_the_first_table(example):
    first = quasi(other=[1.5, 2.5, 99.0, None], more=list("abcd"))
    table = people()
    random = {"random_state": 5} if KNOWN_METHODS[example.method].is_random else {}
    masker = example.make(table, **random)
    again = example.make(table, **random)
    if "where" not in example.parameters:
        masked_by(masker, first)
    masked_by(masker, table)
    masked_by(again, table)
    assert (masker.touched_, masker.skipped_) == (again.touched_, again.skipped_)
    assert (masker.removed_, masker.removed_columns_) == (again.removed_, again.removed_columns_)


# -- refusing


@each_example
def test_an_empty_table(example):
    table = Table(people().frame.clear(), ROLES)
    with pytest.raises(InputError, match="without records"):
        example.make(table).fit_transform(table)


@each_example
def test_no_quasi_identifiers(example):
    if not example.make(people()).needs_columns:
        pytest.skip("a condition says by itself which records it takes out")
    table = people().with_roles(Roles(insensitive=people().columns))
    with pytest.raises(InputError, match="quasi-identifiers"):
        example.make(people()).fit_transform(table)


@each_of_columns
def test_an_unknown_column(example):
    with pytest.raises(InputError, match=r"no column 'heigth'.*Did you mean 'height'\?"):
        example.make(people(), columns=["heigth"]).fit_transform(people())


@each_of_columns
def test_an_identifier(example):
    with pytest.raises(InputError, match="identifier 'name'"):
        example.make(people(), columns=["age", "name"]).fit_transform(people())


@each_example
def test_what_is_not_a_table(example):
    with pytest.raises(InputError, match=r"needs a shoal\.Table"):
        example.make(people()).fit_transform(people().frame)


@each_of_columns
def test_a_named_column_that_stays_is_warned_about(example):
    """The caller asked for it, so silence would mean that it was done."""
    masker = example.make(people(), columns=["height", "city", "age", "wage"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        masker.fit_transform(people())
    said = [str(w.message) for w in caught if w.category is UnprotectedColumnWarning]
    assert bool(said) == bool(masker.skipped_)
    for column in masker.skipped_:
        assert f"'{column}'" in said[0]


def canary_table():
    return Table(
        pl.DataFrame(
            {
                "name": [CANARY] * 6,
                "number": [1, 2, 3, 4, 5, CANARY_NUMBER],
                "share": [0.5, 1.5, 2.5, None, 3.5, float(CANARY_NUMBER)],
                "text": ["a", "b", CANARY, "c", None, CANARY],
                "endless": [1.0, 2.0, 3.0, 4.0, float(CANARY_NUMBER), float("inf")],
            }
        ),
        Roles(identifiers=["name"], quasi_identifiers=["number", "share", "text", "endless"]),
    )


@each_example
def test_no_error_or_warning_tells_a_cell(example):
    """Whatever fails, no cell is in the message, in its causes or in a repr."""
    empty = canary_table().frame.clear()
    attempts = [
        lambda: example.make(canary_table()).fit_transform(canary_table()),
        lambda: example.make(canary_table()).fit_transform(canary_table().frame),
        lambda: example.make(canary_table()).fit_transform(Table(empty, canary_table().roles)),
    ]
    if not example.over_records:
        attempts += [
            lambda column=column: example.make(canary_table(), columns=[column]).fit_transform(
                canary_table()
            )
            for column in ("number", "share", "text", "endless", "name", "nobody")
        ]
    said = [repr(canary_table()), repr(example.make(people()))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for attempt in attempts:
            try:
                said.append(repr(attempt()))
            except ShoalError as error:
                said.append("".join(traceback.format_exception(error)))
    said += [str(warning.message) for warning in caught]
    assert len(said) == 2 + len(attempts) + len(caught)
    for text in said:
        assert CANARY not in text
        assert str(CANARY_NUMBER) not in text
