"""What columns reveal about each other, and what released values reveal about the original."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import InputError
from shoal.measurement import Measurement, measure
from shoal.table import ROOT, Table, empty_cells
from shoal.utility._columns import (
    Columns,
    Floats,
    Integers,
    columns_to_compare,
    each_quantity,
    present,
    quasi_identifiers_to_compare,
    rows_if_paired,
    sampled_rows,
)

if TYPE_CHECKING:
    from shoal.table import Codes

BINS = 10
_CELLS = 10_000_000  # maximum of records × pairs of columns: about a second


@measure("loss of mutual information", direction="lower", limits=(-math.inf, math.inf))
def mutual_information_loss(
    original: Table, masked: Table, *, columns: Columns = None
) -> Measurement:
    """How much less the columns reveal about each other after masking, in nats.

    For each column this is the mean of its mutual information with each other column, before
    masking minus after. The value is the mean over columns. It can be negative: masking can make
    columns reveal more about each other. The baseline is the mean mutual information of the
    original, which is what can be lost; ``details["relative"]`` is the loss divided by it.

    Numbers are put into ten bins of equal frequency in the original, in both tables; a column with
    at most ten values keeps them. If other quantities became text and rows can be paired, each
    label goes into the bin of the mean of its values. A missing value is a value of its own. A
    removed column reveals nothing. Rows need not be paired. In tables with very many columns a
    sample of the records is counted, the same ones in both tables if rows can be paired.

    Parameters
    ----------
    original, masked : Table
        The table before and after masking.
    columns : list of str, optional
        Only these columns; by default all except the identifiers.

    References
    ----------
    Senavirathne, Torra (2021), Systematic evaluation of probabilistic k-anonymity for privacy
    preserving micro-data publishing and analysis <https://doi.org/10.5220/0010560703070320>,
    section 4. Cover, Thomas (2006), Elements of Information Theory
    <https://doi.org/10.1002/047174882X>, section 2.3.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Table
    >>> before = Table(pl.DataFrame({"x": list("aabb"), "y": list("ccdd")}))
    >>> after = Table(pl.DataFrame({"x": list("aabb"), "y": list("cdcd")}))
    >>> round(mutual_information_loss(before, after).value, 6)
    0.693147
    """
    from shoal.kernels.joint_entropy import mutual_informations

    names = columns_to_compare(original, masked, columns)
    if len(names) < 2:
        raise InputError("Mutual information needs two columns; there is only one to compare.")
    most = max(1000, 2 * _CELLS // (len(names) * (len(names) - 1)))
    rows = [sampled_rows(table.row_key, most) for table in (original, masked)]
    coded = [_categories(original, masked, name) for name in names]
    pairs = len(names) - 1  # that each column is in
    means = [
        mutual_informations([both[place][rows[place]] for both in coded]).sum(axis=1) / pairs
        for place in (0, 1)
    ]
    lost, before = means[0] - means[1], float(means[0].mean())
    value = float(lost.mean())
    return Measurement(
        "mutual_information_loss",
        value,
        baseline=before,
        details={
            "relative": value / before if before > 0 else 0.0,
            "columns": dict(zip(names, lost.tolist(), strict=True)),
            "original": dict(zip(names, means[0].tolist(), strict=True)),
            "records": [len(part) for part in rows],
        },
    )


def _categories(original: Table, masked: Table, name: str) -> tuple[Integers, Integers]:
    """A column of both tables as categories; a removed column is constant."""
    quantity = next(each_quantity(original, masked, [name]), None)
    before = original.codes(name).codes.astype(np.int64)
    if quantity is not None:
        edges = _edges(present(quantity.before))
        before = _into_bins(quantity.before, edges)
        if not quantity.gone:
            return before, _into_bins(quantity.after, edges)
    if name not in masked.columns:
        return before, np.zeros(len(masked), np.int64)
    if quantity is not None and (rows := rows_if_paired(original, masked)) is not None:
        # labels become as coarse as the bins, otherwise they would reveal more than the values
        return before, _into_bins(_means(masked.codes(name), quantity.before[rows]), edges)
    return before, masked.codes(name).codes.astype(np.int64)


def _means(labels: Codes, values: Floats) -> Floats:
    """For each record, the mean of the values with its label; NaN if the label is empty."""
    texts = [*labels.texts, ROOT][: labels.count]  # the missing one, which is last, is empty too
    known = ~np.isnan(values) & np.array([text != ROOT for text in texts])[labels.codes]
    codes = labels.codes[known].astype(np.int64)
    counts = np.bincount(codes, minlength=labels.count)
    sums = np.bincount(codes, weights=values[known], minlength=labels.count)
    means = np.divide(sums, counts, out=np.full(labels.count, np.nan), where=counts > 0)
    found: Floats = means[labels.codes]
    return found


def _edges(values: Floats) -> Floats:
    """Where bins of equal frequency are cut; between all values if there are few."""
    distinct = np.unique(values)
    if len(distinct) > BINS:
        return np.asarray(np.quantile(values, np.arange(1, BINS) / BINS))
    middles = distinct[:-1] / 2 + distinct[1:] / 2
    return np.maximum(middles, np.nextafter(distinct[:-1], np.inf))


def _into_bins(values: Floats, edges: Floats) -> Integers:
    """The bin of each number; missing values have their own bin."""
    bins = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, bins)


@measure(
    "share of information lost (non-uniform entropy)", direction="lower", limits=(0, 1), pairs=True
)
def nonuniform_entropy(original: Table, masked: Table, *, columns: Columns = None) -> Measurement:
    """The share of the information in the quasi-identifiers that the released values lost.

    Each cell counts -log2 of a share: of the records with the cell's released value, those that
    had its original value. This is what remains unknown about the value to someone who sees the
    released one. The sum over cells, in bits, is the non-uniform entropy (``details["bits"]``). The
    value is its share of the possible loss, which is the sum with everything suppressed. Cells of
    removed records, emptied cells and ``*`` count as one released value. A missing value of the
    original is a value.

    Parameters
    ----------
    original, masked : Table
        The table before masking, and the table made from it.
    columns : list of str, optional
        Only these columns; by default the quasi-identifiers.

    References
    ----------
    De Waal, Willenborg (1999), Information loss through global recoding and local suppression,
    described in the Handbook on Statistical Disclosure Control
    <https://sdctools.github.io/HandbookSDC/03-microdata.html>, chapter 3. Gionis, Tassa (2009),
    k-anonymization with minimal loss of information
    <https://doi.org/10.1109/TKDE.2008.129>, section 4.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Hierarchy, Roles, Table
    >>> table = Table(pl.DataFrame({"age": [21, 22, 31, 32]}), Roles(quasi_identifiers=["age"]))
    >>> masked = Hierarchy.intervals(10).generalize(table, "age", 1)
    >>> found = nonuniform_entropy(table, masked)
    >>> found.value, found.details["bits"]
    (0.5, 4.0)
    """
    names = quasi_identifiers_to_compare(original, masked, columns)
    rows = masked.rows_in(original)
    lost, whole = {}, {}
    for name in names:
        values = original.codes(name).codes.astype(np.int64)
        released = np.zeros(len(original), np.int64)
        if name in masked.columns:
            codes = masked.codes(name).codes.astype(np.int64) + 1
            released[rows] = np.where(empty_cells(original, masked, name), 0, codes)
        lost[name] = _unknown_bits(values, released)
        whole[name] = _unknown_bits(values, np.zeros(len(values), np.int64))
    bits, most = sum(lost.values()), sum(whole.values())
    return Measurement(
        "nonuniform_entropy",
        min(1.0, bits / most) if most > 0 else 0.0,
        details={
            "bits": bits,
            "columns": {n: lost[n] / whole[n] if whole[n] > 0 else 0.0 for n in names},
        },
    )


def _unknown_bits(values: Integers, released: Integers) -> float:
    """-log2 of each value's share of the records with its released value, over all records."""
    pairs, together = np.unique(released * (values.max() + 1) + values, return_counts=True)
    alike = np.bincount(released)[pairs // (values.max() + 1)]
    return float((together * np.log2(alike / together)).sum())
