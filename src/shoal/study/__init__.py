"""Experiments: designs, the runner, statistics and figures."""

from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import Cell, MeasureSpec, Study, Variant
from shoal.study._outcome import Outcome, read_verdict, run_study
from shoal.study._own_tables import tables_at
from shoal.study._places import DATA_VARIABLE
from shoal.study._results import Results, Row
from shoal.study._runner import Run
from shoal.study._tables import TableSource
from shoal.study.builtin import PRESETS, BuiltIn, built_in, built_in_studies

__all__ = [
    "DATA_VARIABLE",
    "PRESETS",
    "BuiltIn",
    "Cell",
    "Claim",
    "Conclusion",
    "Finding",
    "MeasureSpec",
    "Outcome",
    "Results",
    "Row",
    "Run",
    "Study",
    "TableSource",
    "Variant",
    "built_in",
    "built_in_studies",
    "read_verdict",
    "run_study",
    "tables_at",
]
