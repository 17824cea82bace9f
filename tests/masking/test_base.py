"""What a new method gets from its base class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import polars as pl
import pytest

from shoal import Roles, Table
from shoal.errors import InputError, ParameterError
from shoal.masking import Masker, discover_maskers
from shoal.parameters import ColumnNames, Integer


@dataclass(kw_only=True)
class Forget(Masker):
    """A method as somebody would add it: parameters and one function."""

    k: Annotated[int, Integer(minimum=2)]
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "forget"
    summary = "forgets columns"
    reference = "nobody"

    def _mask(self, table, columns, log):
        log.touched.extend(columns)
        log.removed_columns.extend(columns)
        log.private["secret"] = 5
        return table.drop(columns)


TABLE = Table(pl.DataFrame({"x": [1], "y": [2]}), Roles(quasi_identifiers=["x"]))


def test_it_is_a_method():
    forget = Forget(k=2)
    assert forget.fit_transform(TABLE).columns == ["y"]
    assert (forget.touched_, forget.removed_columns_, forget.removed_) == (("x",), ("x",), 0)
    assert forget.audit_ == {"secret": 5}
    assert repr(forget) == "Forget(k=2)"
    assert forget.get_params() == {"k": 2, "columns": None}


def test_only_methods_of_the_house_are_discovered():
    assert "forget" not in discover_maskers()


def test_checks_are_inherited():
    with pytest.raises(
        ParameterError,
        match=r"The 'k' parameter of Forget must be an integer ≥ 2\. Got 1 instead\.",
    ):
        Forget(k=1)
    with pytest.raises(InputError, match="Forget got a table without records"):
        Forget(k=2).fit_transform(Table(pl.DataFrame({"x": []}), Roles()))
    forget = Forget(k=2)
    forget.k = 0
    with pytest.raises(ParameterError, match="Got 0 instead"):
        forget.fit_transform(TABLE)


def test_from_a_plan():
    assert Forget.from_plan({"k": 3, "columns": ["y"]}) == Forget(k=3, columns=["y"])
    with pytest.raises(ParameterError, match="step 'forget' needs a value for 'k'"):
        Forget.from_plan({})
    with pytest.raises(ParameterError, match=r"no parameter 'kk'\. Did you mean 'k'|Use one of"):
        Forget.from_plan({"kk": 3})
