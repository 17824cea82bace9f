"""What the groups of a swap reveal: attacks that a chance of one in k does not cover.

An intruder can form the groups again from the release, since a swap keeps the values that they
were formed from. These attacks read the groups, and who owns which value, from the swap's record
in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError
from shoal.kernels.arrays import Floats, Integers
from shoal.measurement import Measurement
from shoal.risk._classes import one_value_for_all
from shoal.risk.linkage._intruder import is_quantity
from shoal.risk.linkage._right_links import Rate, clusters_if_repeated
from shoal.table import Exchange, Table, stacked_codes, stacked_numbers

_LEARNED_FROM = 20_000  # records at most: enough for a line, and never a matrix of the table
_PRIOR = 10.0  # average records that pull in the mean of a rare category


def rank_matching(
    original: Table, masked: Table, secret: str, *, known: Sequence[str]
) -> Measurement:
    """The share of people whose secret is found by matching ranks inside the groups of a swap.

    The intruder fits a linear regression in the masked table and predicts the secret of every
    person in a group from the known columns. The person with the smallest prediction gets the
    group's smallest value, and so on. Ties count by chance. If the columns are unrelated, this is
    right as often as a blind choice in the group, which is the baseline.

    Parameters
    ----------
    original : Table
        The table before masking: what the intruder knows about the people.
    masked : Table
        The table after a swap, with its record of exchanges.
    secret : str
        The column that the intruder wants to learn.
    known : list of str
        The columns that the intruder knows.

    References
    ----------
    Muralidhar, Sarathy, Dandekar (2006), Why swap when you can shuffle? A comparison of the
    proximity swap and data shuffle for numeric data.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Swap, Table
    >>> frame = pl.DataFrame({"age": range(40), "wage": [900 + 20 * i for i in range(40)]})
    >>> table = Table(frame, Roles(quasi_identifiers=["age"], sensitive=["wage"]))
    >>> found = rank_matching(table, Swap(k=4).fit_transform(table), "wage", known=["age"])
    >>> found.value, found.baseline
    (1.0, 0.25)
    """
    exchange = exchange_about(masked, secret)
    groups = _labels(exchange)
    ranks = _ranks(masked, secret)
    guesses = _predicted(original, masked, _target(masked, secret, ranks), known)
    begins, ends = _runs(groups, guesses)
    first, last = _runs(groups, ranks.astype(np.float64))
    owned = _owned_rows(masked, exchange, secret)
    there = owned >= 0
    overlap = np.minimum(ends, last[owned]) - np.maximum(begins, first[owned])
    choices = (ends - begins) * (last[owned] - first[owned])
    chances = np.where(there, np.maximum(overlap, 0) / choices, 0.0)
    rate = Rate.of(chances, groups, *clusters_if_repeated(masked.persons))
    return Measurement(
        "rank_matching",
        rate.share,
        interval=rate.interval,
        baseline=float((1.0 / np.bincount(groups)[groups]).mean()),
        per_record=chances,
        details={"persons": len(masked), "secret": secret, "known": list(known)},
    )


def group_disclosure(masked: Table, secret: str) -> Measurement:
    """The share of records in groups of a swap whose members all have the same secret.

    If all members have the same secret, it is disclosed exactly, without linking anyone. If a
    person has several records, it is enough that everyone has the secret in one of theirs. For
    numbers, the details hold the median width of the group's interval over the records, in standard
    deviations of the column: this is what the groups disclose about everyone else.

    Parameters
    ----------
    masked : Table
        The table after a swap, with its record of exchanges.
    secret : str
        The column to hide.

    References
    ----------
    Domingo-Ferrer, Torra (2001), A quantitative comparison of disclosure control methods for
    microdata, section 3 (interval disclosure).

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Swap, Table
    >>> table = Table(pl.DataFrame({"wage": [1, 1, 5, 9]}), Roles(sensitive=["wage"]))
    >>> swapped = Swap(k=2, informed=True, partition="individual-ranking").fit_transform(table)
    >>> group_disclosure(swapped, "wage").value
    0.5
    """
    exchange = exchange_about(masked, secret)
    groups = _labels(exchange)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    swapped = secret in exchange.columns
    persons = _persons_of(exchange.source if swapped else masked.row_key, masked)
    one = one_value_for_all(groups, masked.codes(secret).codes, persons)[groups]
    exposed = masked.of_persons(one)
    details = {"persons": masked.person_count, "secret": secret, "records": int(exposed.sum())}
    if is_quantity(secret, masked, masked):
        values = _standard(stacked_numbers(secret, masked, masked)[: len(masked)])[order]
        widths = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
        details["median_width"] = float(np.median(widths[groups]))
    return Measurement(
        "group_disclosure",
        float(exposed.mean()),
        per_record=one,
        details=details,
    )


def own_values(masked: Table, exchanges: Sequence[Exchange]) -> Measurement:
    """The share of cells that still hold their own values after swaps drawn once and uniformly.

    An intruder who certainly finds a person's row, and takes its values for the person's own, is
    right this often: about 1 in the size of the group. Values from another record of the same
    person are the person's own.

    Parameters
    ----------
    masked : Table
        The table after the swaps.
    exchanges : list of Exchange
        The swaps, from the table's record.

    References
    ----------
    Soria-Comas, Domingo-Ferrer (2012), Probabilistic k-anonymity through microaggregation and data
    swapping <https://doi.org/10.1109/FUZZ-IEEE.2012.6251280>, section IV.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Swap, Table
    >>> table = Table(pl.DataFrame({"wage": range(30_000)}), Roles(sensitive=["wage"]))
    >>> swapped = Swap(k=3, informed=True, partition="individual-ranking").fit_transform(table)
    >>> round(own_values(swapped, swapped.exchanges).value, 1)
    0.3
    """
    names = dict.fromkeys(name for exchange in exchanges for name in exchange.columns)
    # the swaps that each column went through; columns that moved together count once
    chains = dict.fromkeys(
        tuple(place for place, exchange in enumerate(exchanges) if name in exchange.columns)
        for name in names
    )
    followed = [[exchanges[place] for place in chain] for chain in chains]
    sources = [_persons_of(_owners(masked, chain), masked) for chain in followed]
    own = np.concatenate([persons == masked.persons for persons in sources])
    groups = [_labels(chain[-1]) for chain in followed]
    starts = np.cumsum([0, *(int(labels.max()) + 1 for labels in groups)])[:-1]
    draws = np.concatenate([labels + start for labels, start in zip(groups, starts, strict=True)])
    together = [np.tile(persons, len(followed)) for persons in clusters_if_repeated(masked.persons)]
    rate = Rate.of(own, draws, *together)
    return Measurement(
        "own_values",
        rate.share,
        interval=rate.interval,
        baseline=float(_blind_shares(masked, groups).mean()),
        details={"persons": masked.person_count, "trials": len(own)},
    )


def _owners(masked: Table, chain: Sequence[Exchange]) -> Integers:
    """The key of the row that first held each row's value; -1 if a link is gone."""
    owners = chain[0].source
    for exchange in chain[1:]:
        at = masked.rows_of_keys(exchange.source)
        owners = np.where(at >= 0, owners[at], -1)
    return owners


def _blind_shares(masked: Table, groups: Sequence[Integers]) -> Floats:
    """For each swap and record, the share of its group that belongs to the record's person."""
    found = []
    for labels in groups:
        keys = labels * masked.person_count + masked.persons
        _, same, own = np.unique(keys, return_inverse=True, return_counts=True)
        found.append(own[same] / np.bincount(labels)[labels])
    return np.concatenate(found)


def _persons_of(keys: Integers, masked: Table) -> Integers:
    """The persons of the rows with these keys; a new person for each row that is gone."""
    rows = masked.rows_of_keys(keys)
    return np.where(rows >= 0, masked.persons[rows], masked.person_count + np.arange(len(rows)))


def exchange_about(masked: Table, secret: str) -> Exchange:
    """The swap that hides a column: that of the column, or else that of the quasi-identifiers."""
    own = [exchange for exchange in masked.exchanges if secret in exchange.columns]
    hints = set(masked.roles.quasi_identifiers)
    others = [exchange for exchange in masked.exchanges if hints & set(exchange.columns)]
    if not own and not others:
        raise InputError(
            f"No swap hides column '{secret}': neither it nor a quasi-identifier was swapped. Swap "
            "it, or choose another attack."
        )
    return own[-1] if own else others[0]


def _owned_rows(masked: Table, exchange: Exchange, secret: str) -> Integers:
    """For each row's person, the row that holds their secret now; -1 if it is gone."""
    if secret not in exchange.columns:
        return np.arange(len(masked))
    order = np.argsort(exchange.source)
    at = np.minimum(np.searchsorted(exchange.source[order], masked.row_key), len(order) - 1)
    return np.where(exchange.source[order[at]] == masked.row_key, order[at], -1)


def _labels(exchange: Exchange) -> Integers:
    """The groups, numbered without gaps: records may have been removed since."""
    return np.unique(exchange.groups, return_inverse=True)[1].astype(np.int64)


def _ranks(masked: Table, secret: str) -> Integers:
    """A secret as ordered numbers; for categories, whether it is the most frequent one."""
    column = masked.codes(secret)
    codes = column.codes.astype(np.int64)
    if masked.kind(secret) in ("text", "boolean") and column.count > 2:
        return (codes == np.bincount(codes).argmax()).astype(np.int64)
    return codes


def _runs(groups: Integers, values: Floats) -> tuple[Integers, Integers]:
    """Where each value's records begin and end in their group's order of values."""
    order = np.lexsort((values, groups))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(groups[order]) != 0) | (np.diff(values[order]) != 0)
    starts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    begins, ends = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    begins[order] = starts[run]
    ends[order] = np.append(starts[1:], len(order))[run]
    return begins, ends


def _predicted(original: Table, masked: Table, target: Floats, known: Sequence[str]) -> Floats:
    """The secret of each row's person, as predicted from the masked table."""
    persons = original.rows_of_keys(masked.row_key)
    if (persons < 0).any():
        raise InputError("The two tables do not come from the same rows.")
    training = np.unique(np.linspace(0, len(masked) - 1, _LEARNED_FROM).astype(np.int64))
    names = [name for name in known if name in masked.columns]
    design = np.ones((len(training), 1 + len(names)))
    for place, name in enumerate(names, start=1):
        both = _predictor(name, original, masked, target)
        design[:, place] = both[len(original) + training]
    weights = np.linalg.lstsq(design, target[training], rcond=None)[0]
    guesses = np.zeros(len(masked))
    for name, weight in zip(names, weights[1:], strict=True):
        # one column at a time, so that equal persons get equal guesses
        guesses += weight * _predictor(name, original, masked, target)[persons]
    return guesses


def _target(masked: Table, secret: str, ranks: Integers) -> Floats:
    if is_quantity(secret, masked, masked):
        return _standard(stacked_numbers(secret, masked, masked)[: len(masked)])
    return _standard(ranks.astype(np.float64))


def _predictor(name: str, original: Table, masked: Table, target: Floats) -> Floats:
    """A known column of both tables as numbers; a category is the mean target of its records."""
    if is_quantity(name, original, masked):
        return _standard(stacked_numbers(name, original, masked))
    codes = stacked_codes(name, original, masked)
    codes = np.where(codes < 0, codes.max(initial=0) + 1, codes)
    released = codes[len(original) :]
    counts = np.bincount(released, minlength=int(codes.max()) + 1)
    sums = np.bincount(released, weights=target, minlength=len(counts))
    # the target has mean 0, so this pulls the mean of few records toward that of all
    means: Floats = sums / (counts + _PRIOR)
    return means[codes]


def _standard(values: Floats) -> Floats:
    """Scale to mean 0 and variance 1; a missing value becomes the mean."""
    present = ~np.isnan(values)
    if not present.any():
        return np.zeros(len(values))
    middle, spread = float(values[present].mean()), float(values[present].std())
    centred = np.where(present, values - middle, 0.0)
    return centred / spread if spread > 0 else np.zeros(len(values))
