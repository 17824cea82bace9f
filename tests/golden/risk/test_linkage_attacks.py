"""Attacks on swapped public tables: linkage near 1/k, and each leak where it is known to be.

The expected numbers were computed once with other code than Shoal's, on the same tables, with the
scheme of Soria-Comas and Domingo-Ferrer (2012) on Census and of Senavirathne and Torra (2021) on
the UCI tables. Every test draws anew, so tolerances are a few times the spread from draw to draw.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from shoal import Roles, Swap, Table
from shoal.risk import (
    distance_linkage,
    group_disclosure,
    probabilistic_linkage,
    rank_matching,
    similarity_linkage,
)
from shoal.workflow._leaks import linking_columns, swapping_of

CENSUS = (
    "AFNLWGT AGI EMCONTRB FEDTAX PTOTVAL STATETAX "
    "TAXINC POTHVAL INTVAL PEARNVAL FICA WSALVAL ERNVAL"
).split()
QUASI, SECRETS = CENSUS[:6], CENSUS[6:]
ADULT = ["age", "education", "marital-status", "occupation", "race", "sex", "native-country"]


@pytest.fixture(scope="module")
def census(shared_data):
    frame = pl.read_parquet(shared_data / "casc" / "census.parquet").select(CENSUS)
    return Table(frame, Roles(quasi_identifiers=QUASI, sensitive=SECRETS))


@pytest.fixture(scope="module")
def adult(shared_data):
    """All 48,842 records; seven quasi-identifiers, the other columns without a role."""
    frame = pl.read_parquet(shared_data / "uci" / "adult.parquet")
    return Table(frame, Roles(quasi_identifiers=ADULT, sensitive=["income"]))


def spread(k, rows):
    """Of the share of a table that a uniform permutation in groups of k leaves in place."""
    return math.sqrt(1 / k / rows)


class TestLinkageByQuasiIdentifiers:
    @pytest.mark.parametrize("k", [3, 5, 10])
    def test_census_jointly(self, census, k):
        """Records are all different: the chance is exactly one over the size of the group."""
        masked = Swap(k=k).fit_transform(census)
        sizes = np.bincount(masked.exchanges[0].groups)[masked.exchanges[0].groups]
        found = distance_linkage(census, masked)
        assert abs(found.value - np.mean(1 / sizes)) < 3.5 * spread(k, len(census))
        own = masked.exchanges[0].source == masked.row_key
        assert found.per_record.tolist() == own.tolist(), "who was left in place is found"

    @pytest.mark.parametrize("k", [3, 5, 10])
    def test_census_by_blocks(self, census, k):
        masked = Swap(k=k, blocks="mutual-information").fit_transform(census)
        assert len(masked.exchanges) == 3
        assert 0.5 / k < distance_linkage(census, masked).value < 1 / k + 3.5 * spread(k, 1080)

    @pytest.mark.parametrize("k", [3, 5, 10])
    @pytest.mark.parametrize("blocks", ["joint", "mutual-information"])
    def test_adult(self, adult, k, blocks):
        """Many records share their quasi-identifiers, so that links are right less often."""
        masked = Swap(k=k, blocks=blocks).fit_transform(adult)
        found = distance_linkage(adult, masked, sample=50_000)
        assert 0.4 / k < found.value < 1 / k

    def test_adult_as_it_came(self, adult):
        """Nobody is swapped, and missing values agree with all: 1 in the records as near."""
        assert distance_linkage(adult, adult, sample=50_000).value == pytest.approx(0.378, abs=1e-3)

    @pytest.mark.parametrize("linkage", [probabilistic_linkage, similarity_linkage])
    def test_adult_by_agreement(self, adult, linkage):
        """As by distance, about half of 1/k: the bound is the same, whoever links."""
        found = linkage(adult, Swap(k=5).fit_transform(adult))
        assert 0.4 / 5 < found.value < 1 / 5
        assert (found.details["bound"], found.details["bound_by"]) == (1 / 5, "swapped groups")
        assert not found.warnings

    @pytest.mark.parametrize(("k", "expected", "tolerance"), [(5, 0.126, 0.03), (50, 0.015, 0.007)])
    def test_all_columns_of_the_uci_tables(self, shared_data, k, expected, tolerance):
        """Row linkage by Gower with all columns as quasi-identifiers, mean over the tables."""
        rates = []
        for name, target in (
            ("cmc", "contraceptive_method"),
            ("heart_cleveland", "disease"),
            ("mammographic", "severity"),
        ):
            frame = pl.read_parquet(shared_data / "uci" / f"{name}.parquet")
            quasi = [column for column in frame.columns if column != target]
            table = Table(frame, Roles(quasi_identifiers=quasi, sensitive=[target]))
            for _ in range(3):
                masked = Swap(k=k, blocks="mutual-information").fit_transform(table)
                rates.append(distance_linkage(table, masked).value)
        assert np.mean(rates) == pytest.approx(expected, abs=tolerance)


class TestColumnsLeftInPlace:
    def test_census(self, census):
        """Whoever knows six of the seven secrets finds everybody, and with that the seventh."""
        leak = swapping_of(census, Swap(k=5).fit_transform(census)).leaks[0]
        assert (leak.kind, leak.columns) == ("columns-left-in-place", tuple(SECRETS[1:]))
        assert leak.found.value > 0.99

    def test_adult(self, adult):
        found = swapping_of(adult, Swap(k=5).fit_transform(adult))
        leaks = {leak.kind: leak for leak in found.leaks}
        assert leaks["columns-left-in-place"].found.value > 0.9
        assert set(leaks["columns-left-in-place"].columns).isdisjoint([*ADULT, "income"])
        assert "correlation" not in leaks, "income says little beyond what the group has in common"
        assert leaks["groups-of-one-value"].found.value > 0.4, "most groups earn little"

    def test_adult_column_by_column(self, adult):
        """The survey weight alone finds more than half, all columns without a role everybody."""
        masked = Swap(k=5).fit_transform(adult)
        alone, together = linking_columns(adult, masked)
        assert (alone.columns, alone.together) == (("fnlwgt",), False)
        assert alone.found.value == pytest.approx(0.58, abs=0.03)
        assert alone.by_quasi_identifiers.value < 1 / 5
        assert together.found.value > 0.9
        assert set(together.columns).isdisjoint([*ADULT, "income"])

    def test_adult_with_nothing_else_in_place(self, adult):
        others = [c for c in adult.columns if c not in (*ADULT, "income")]
        alone = adult.drop(others)
        kinds = [leak.kind for leak in swapping_of(alone, Swap(k=5).fit_transform(alone)).leaks]
        assert kinds == ["groups-of-one-value"]
        assert linking_columns(alone, Swap(k=5).fit_transform(alone)) == ()

    @pytest.mark.parametrize(
        ("k", "expected"), [(5, 0.996), (25, 0.980), (100, 0.904), (300, 0.395)]
    )
    def test_rank_groups_do_not_hide_rows(self, census, k, expected):
        """Intruders who know the twelve other columns, mean over the seven they may be after."""
        masked = Swap(k=k, informed=True, partition="individual-ranking").fit_transform(census)
        rates = [
            distance_linkage(
                census,
                masked,
                known=[name for name in CENSUS if name != secret],
                dissimilarity="euclidean",
            ).value
            for secret in SECRETS
        ]
        assert np.mean(rates) == pytest.approx(expected, abs=0.03)


class TestCorrelations:
    @pytest.mark.parametrize(
        ("k", "taxinc", "intval"),
        [(2, 0.83, 0.59), (3, 0.71, 0.38), (5, 0.55, 0.24), (10, 0.34, 0.13), (25, 0.14, 0.05)],
    )
    def test_matching_by_rank(self, census, k, taxinc, intval):
        """A column that follows the quasi-identifiers, and one that hardly does (r about 0.2)."""
        rates = np.array(
            [
                [
                    rank_matching(census, masked, secret, known=QUASI).value
                    for secret in ("TAXINC", "INTVAL")
                ]
                for masked in (
                    Swap(k=k, dissimilarity="euclidean").fit_transform(census) for _ in range(4)
                )
            ]
        )
        assert rates.mean(axis=0) == pytest.approx([taxinc, intval], abs=0.03)

    def test_the_warning_is_of_those_that_follow(self, census):
        masked = Swap(k=5, dissimilarity="euclidean").fit_transform(census)
        leaks = {leak.kind: leak for leak in swapping_of(census, masked).leaks}
        assert leaks["correlation"].columns[0] == "TAXINC"
        assert "INTVAL" not in leaks["correlation"].columns


class TestRankGroups:
    @pytest.mark.parametrize(
        ("k", "zero_width", "width"),
        [(5, 0.29, 0.006), (12, 0.12, 0.032), (25, None, 0.063), (50, 0.0, 0.13), (300, 0.0, 1.07)],
    )
    def test_how_much_is_disclosed_exactly_and_how_wide_the_rest_is(
        self, census, k, zero_width, width
    ):
        """Cells in groups of one value; median width in standard deviations, mean over columns."""
        masked = Swap(k=k, informed=True, partition="individual-ranking").fit_transform(census)
        found = [group_disclosure(masked, secret) for secret in SECRETS]
        if zero_width is not None:
            assert np.mean([m.value for m in found]) == pytest.approx(zero_width, abs=0.006)
        widths = [m.details["median_width"] for m in found]
        assert np.mean(widths) == pytest.approx(width, rel=0.15)

    def test_the_warning_is_of_tied_columns(self, census):
        def leaks(k):
            swap = Swap(k=k, informed=True, partition="individual-ranking")
            return [leak.kind for leak in swapping_of(census, swap.fit_transform(census)).leaks]

        assert "groups-of-one-value" in leaks(5)
        assert "groups-of-one-value" not in leaks(50)
