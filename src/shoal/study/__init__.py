"""Experiments: designs, the runner, statistics and figures."""

from shoal.study._conclusion import Claim, Conclusion, Finding
from shoal.study._design import Cell, MeasureSpec, Study, Variant
from shoal.study._outcome import Outcome, read_verdict, run_study
from shoal.study._results import Results, Row
from shoal.study._statistics import (
    Friedman,
    SignTest,
    bayes_sign_test,
    bootstrap_interval,
    friedman,
    pareto_front,
    percentage_differences,
    ranks,
    signed_rank,
    spearman,
)
from shoal.study.builtin import (
    PRESETS,
    BuiltIn,
    Fetched,
    built_in,
    built_in_studies,
    fetch_tables,
)
from shoal.study.data._fetching import DATA_VARIABLE
from shoal.study.data._tables import TableSource, tables_at
from shoal.study.running._runner import Run

__all__ = [
    "DATA_VARIABLE",
    "PRESETS",
    "BuiltIn",
    "Cell",
    "Claim",
    "Conclusion",
    "Fetched",
    "Finding",
    "Friedman",
    "MeasureSpec",
    "Outcome",
    "Results",
    "Row",
    "Run",
    "SignTest",
    "Study",
    "TableSource",
    "Variant",
    "bayes_sign_test",
    "bootstrap_interval",
    "built_in",
    "built_in_studies",
    "fetch_tables",
    "friedman",
    "pareto_front",
    "percentage_differences",
    "ranks",
    "read_verdict",
    "run_study",
    "signed_rank",
    "spearman",
    "tables_at",
]
