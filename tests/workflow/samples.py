"""A table about people, and a plan that satisfies what it requires."""

from __future__ import annotations

import polars as pl

from shoal import KAnonymity, Limit, Plan, Roles, Round, Suppress, Table

ROLES = Roles(
    identifiers=["name"],
    quasi_identifiers=["age", "city"],
    sensitive=["diagnosis"],
    insensitive=["visits"],
)
COLUMNS = {
    "name": [f"person {i}" for i in range(24)],
    "age": [20 + i for i in range(24)],
    "city": ["Bern", "Jena"] * 12,
    "diagnosis": ["flu", "gout", "asthma"] * 8,
    "visits": [i % 5 for i in range(24)],
}


def people() -> Table:
    return Table(pl.DataFrame(COLUMNS), ROLES)


def plan(*, k: int = 3, base: float = 20, keep_order: bool = False) -> Plan:
    """Ages become 20 and 40: four classes of 5, 6 or 7 people."""
    return Plan([Round(base=base)], require=[KAnonymity(k)], keep_order=keep_order)


def thorough_plan() -> Plan:
    """A requirement of every kind."""
    return Plan(
        [Round(base=20), Suppress(min_class_size=2)],
        require=[
            KAnonymity(3),
            KAnonymity(2, missing="wildcard"),
            Limit("records_at_risk", at_most=0.5, options={"threshold": 0.15}),
            Limit("unchanged_records", at_most=0.5),
            Limit("suppressed_cells", at_most=0.5),
        ],
    )
