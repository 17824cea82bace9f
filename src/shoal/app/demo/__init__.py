"""The demo: a small table of invented people and a plan that protects it."""

from __future__ import annotations

from pathlib import Path

PEOPLE = Path(__file__).with_name("people.csv")
PLAN = Path(__file__).with_name("plan.toml")
