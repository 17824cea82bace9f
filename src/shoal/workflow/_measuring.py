"""Taking measures one after the other: which apply, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import DoesNotApply, ShoalError, quoted
from shoal.masking import Progress
from shoal.measurement import MeasureInfo, Measurement
from shoal.risk import counted_once, journalist_risk_before_sampling
from shoal.table import Table
from shoal.workflow._asked import Options
from shoal.workflow._assessment import Assessment, class_facts
from shoal.workflow._left_in_place import linking_columns
from shoal.workflow._swapping import swapping_of

_POPULATION_MEASURES = ("journalist_risk", "population_uniqueness")
_MANY = 1_000_000  # records from which on only what was asked for takes memory


@dataclass(frozen=True, eq=False)
class Run:
    """One assessment on its way: the tables, what was asked for, and what was found so far.

    ``shared`` are options for every measure that has them, ``own`` those of single measures.
    """

    table: Table
    original: Table | None
    shared: Mapping[str, Any]
    own: Options = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    found: dict[str, Measurement] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def measure(self, chosen: Sequence[MeasureInfo], progress: Progress | None) -> None:
        """Take each measure, or write down why not."""
        with counted_once():
            self._measure(chosen, progress)

    def _measure(self, chosen: Sequence[MeasureInfo], progress: Progress | None) -> None:
        for number, info in enumerate(chosen):
            if progress:
                progress(f"Measuring: {info.title}", number / len(chosen))
            reason = self._reason_to_leave_out(info)
            if reason is not None:
                self.left_out[info.name] = reason
                continue
            try:
                self.found[info.name] = self._measured(info)
            except DoesNotApply as error:
                self.left_out[info.name] = str(error)
            except ShoalError as error:  # one measure that does not apply spoils no other one
                self.failed[info.name] = str(error)
            except Exception as error:  # nor does one that breaks; its words may quote a cell
                self.failed[info.name] = (
                    f"It ended in an unexpected error ({type(error).__name__}); please report it."
                )

    def assessment(self, *, with_swapping: bool = True) -> Assessment:
        """What was found, with what has to be known to read it."""
        notes: list[str] = []
        if "certainty" in self.found:  # a sample that lost its k-anonymity, and who knows the label
            notes += self.found["certainty"].warnings
        swapping = None
        if self.original is not None and with_swapping:
            by_quasi = self._links_by_quasi_identifiers
            swapping = swapping_of(self.original, self.table, by_quasi)
            notes += swapping.sentences if swapping is not None else []
            told = [leak.columns for leak in swapping.leaks] if swapping is not None else []
            linking = linking_columns(self.original, self.table, by_quasi)
            notes += [one.sentence for one in linking if one.columns not in told]
        missing = self.shared["missing"]
        classes = class_facts(self.table, missing)
        notes = [
            *classes.sentences,
            *_about_owners(self.table if self.original is None else self.original),
            *notes,
        ]
        return Assessment(
            rows=len(self.table),
            columns=len(self.table.columns),
            roles=self.table.roles.to_dict(),
            missing=missing,
            classes=classes,
            measurements=self.found,
            notes=tuple(notes),
            left_out=self.left_out,
            failed=self.failed,
            swapping=swapping,
            original_rows=None if self.original is None else len(self.original),
        )

    @property
    def _links_by_quasi_identifiers(self) -> Measurement | None:
        """What linking by the quasi-identifiers gave, where it was measured and by these."""
        otherwise = "known" in self.shared or "distance_linkage" in self.own
        return None if otherwise else self.found.get("distance_linkage")

    def _measured(self, info: MeasureInfo) -> Measurement:
        given = {name: value for name, value in self.shared.items() if name in info.options}
        given |= self.own.get(info.name, {})
        if info.name == "journalist_risk" and self._counts_in_the_original(given):
            assert self.original is not None
            return journalist_risk_before_sampling(
                self.original, self.table, missing=given["missing"]
            )
        return info.take(self.original, self.table, **given)

    def _counts_in_the_original(self, given: Mapping[str, Any]) -> bool:
        """Whether nobody said what the population is, and the original that was sampled is one."""
        unsaid = given.get("population") is None and given.get("sampling_fraction") is None
        return unsaid and self.table.roles.weight is None and self._is_sample

    @property
    def _is_sample(self) -> bool:
        return self.original is not None and len(self.table) < len(self.original)

    def _reason_to_leave_out(self, info: MeasureInfo) -> str | None:
        """Why a measure cannot be taken of these tables, or is not unless asked for by name."""
        table, original = self.table, self.original
        given = {**self.shared, **self.own.get(info.name, {})}
        declared = table.roles if original is None else original.roles
        estimable = given["sampling_fraction"] is not None or table.roles.weight is not None
        people = estimable or given["population"] is not None
        counted = people or (info.name == "journalist_risk" and self._is_sample)
        if info.name in _POPULATION_MEASURES and not counted:
            return "give a population table, a sampling fraction or a weight column"
        homes = info.name == "household_risk" and table.households is not None
        if (info.name == "individual_risk" or homes) and not estimable:
            return "give a sampling fraction or a weight column"
        if info.needs_original and original is None:
            return "it compares with the original; give that too, as original (--original)"
        if info.sensitive and not declared.sensitive:
            return "it is about sensitive columns; declare them in the roles"
        if info.target and declared.target is None:
            return "it is about a target; declare it in the roles"
        if info.on_request is not None and info.name not in self.asked and not homes:
            return info.on_request
        if info.name == "suda" and info.name not in self.asked and len(table) > _MANY:
            return f"it needs much memory for more than {_MANY:,} records; ask for it by name"
        if original is None:
            return None
        if info.name == "certainty" and not self._is_sample:
            return "nobody was left out, so everybody is known to be in the table"
        if info.pairs and not table.pairs_with(original):
            return (
                "the rows of the two tables cannot be paired, since they were read apart: assess "
                "the release folder with its private half, or say that the rows have the same "
                "order (masked.paired(original), or --same-order)"
            )
        return None


def _about_owners(table: Table) -> list[str]:
    """That k counts rows where identifiers show that a person has several."""
    return [
        f"{len(table):,} rows carry {distinct:,} different values of {quoted(names)}, which k does "
        'not count: declare unit in the roles, or unit = "row" if each row is a person.'
        for names, distinct in table.repeating_owners().items()
    ]
