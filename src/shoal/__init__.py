"""Shoal anonymizes tables about people and proves what it did."""

from shoal import risk, utility
from shoal.masking import AddNoise, Recode, Round, Suppress, TopBottomCode
from shoal.measurement import Measurement
from shoal.models import KAnonymity
from shoal.table import Roles, Table, read, suggest_roles
from shoal.workflow import Assessment, Limit, Plan, Release, assess, protect, verify

__version__ = "0.1.0"

__all__ = [
    "AddNoise",
    "Assessment",
    "KAnonymity",
    "Limit",
    "Measurement",
    "Plan",
    "Recode",
    "Release",
    "Roles",
    "Round",
    "Suppress",
    "Table",
    "TopBottomCode",
    "assess",
    "protect",
    "read",
    "risk",
    "suggest_roles",
    "utility",
    "verify",
]
