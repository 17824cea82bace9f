"""Dates of which the year is left, and nothing finer."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.masking._base import Masker, StepLog
from shoal.parameters import ColumnNames, Integer
from shoal.table import Domain, Hierarchy, Meaning, Table, interval_meanings, interval_text


@dataclass(kw_only=True)
class DatesToYear(Masker):
    """Keep the year of dates, and join the years before one.

    A date becomes its year as text. HIPAA's Safe Harbor asks for it, and that the years of birth
    of people of 90 and over are one: ``earliest`` is the first year that is shown by itself.

    Parameters
    ----------
    earliest : int, optional
        Dates before this year become one value, such as ``<1937-01-01``.
    columns : list of str, optional
        The dates to mask; the quasi-identifiers without it.

    References
    ----------
    Code of Federal Regulations, 45 CFR 164.514(b)(2)(i)(C)
    <https://www.ecfr.gov/current/title-45/section-164.514>.

    Examples
    --------
    >>> import datetime as dt
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> born = pl.DataFrame({"born": [dt.date(1961, 5, 3), dt.date(1929, 8, 1), None]})
    >>> table = Table(born, Roles(quasi_identifiers=["born"]))
    >>> DatesToYear(earliest=1937).fit_transform(table).frame["born"].to_list()
    ['1961', '<1937-01-01', None]
    """

    earliest: Annotated[int | None, Integer(minimum=1)] = None
    columns: Annotated[list[str] | None, ColumnNames()] = None

    method = "dates_to_year"
    summary = "keeps the year of dates, and nothing finer"
    reference = "45 CFR 164.514(b)(2)"
    kinds = ("date", "datetime")
    by_counts = True

    def _mask(self, table: Table, columns: Sequence[str], log: StepLog) -> Table:
        log.touched.extend(self._usable(table, columns, log))
        return self._to_years(table, log.touched)

    def _serve(self, table: Table) -> Table:
        return self._to_years(table, [n for n in self.touched_ if table.kind(n) in self.kinds])

    def _to_years(self, table: Table, columns: Sequence[str]) -> Table:
        by_year = Hierarchy.dates(["year"])
        for name in columns:
            tree = by_year.codes(table, name)
            labels = [self._label(year) for year in tree.labels[1]]
            years = {label: None for label in labels if label is not None}
            domain = Domain("date", {**years, **self._before(years)})
            codes = tree.maps[1][tree.column.codes]
            table = table.with_labels(name, labels, codes, domain)
        return table

    def _label(self, year: str | None) -> str | None:
        if year is None or self.earliest is None or int(year) >= self.earliest:
            return year
        return interval_text(None, self._first_day)

    def _before(self, labels: Container[str]) -> Mapping[str, Meaning]:
        """What the text for all earlier years stands for, where a record has it."""
        if self.earliest is None:
            return {}
        first = (np.datetime64(self._first_day) - np.datetime64("1970-01-01")).astype(float)
        told = interval_meanings([None], [self._first_day], np.array([[-np.inf, first]]))
        return {label: meaning for label, meaning in told.items() if label in labels}

    @property
    def _first_day(self) -> str:
        return f"{self.earliest:04}-01-01"
