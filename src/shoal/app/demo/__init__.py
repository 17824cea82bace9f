"""Small tables of invented people, and the plan with which the demo protects one of them."""

from __future__ import annotations

from pathlib import Path

#: People with an income and a diagnosis: the table of the documentation.
PEOPLE = Path(__file__).with_name("people.csv")
#: The same people in a hospital, with dates and postcodes: the table of ``shoal demo``.
PATIENTS = Path(__file__).with_name("patients.csv")
PLAN = Path(__file__).with_name("plan.toml")
