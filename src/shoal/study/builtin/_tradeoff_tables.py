"""The tables of the trade-off study that are free to pass on, with the class that is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MEASURED_CLASS = """ailerons analcatdata_supreme bank32nh bank8FM car cpu_act cpu_small
delta_ailerons delta_elevators houses kin8nm letter mfeat_morphological mv nursery optdigits
pendigits pol pollen puma8NH segment socmob space_ga splice visualizing_soil wind""".split()

#: The column of classes, by the name of the file in the folder ``openml``.
_CLASSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(_MEASURED_CLASS, "binaryClass"),
    "bank_marketing": "deposit",
    "banknote_authentication": "Class",
    "cell_segmentation": "class",
    "churn": "churn",
    "coil2000": "CARAVAN",
    "compas": "two_year_recid",
    "credit_default_taiwan": "default-payment-next-month",
    "credit_scoring_es": "Status",
    "electricity": "class",
    "flchain": "death",
    "hill_valley": "class",
    "hmda_boston": "deny",
    "hypothyroid": "binaryClass",
    "jm1": "defects",
    "magic_telescope": "Class",
    "mammography": "class",
    "mozilla4": "state",
    "mushroom": "class",
    "nass_cds": "dead",
    "nmes1988": "insurance",
    "online_shoppers": "revenue",
    "orange_juice": "Purchase",
    "ozone_level_8hr": "Class",
    "phoneme": "class",
    "ringnorm": "class",
    "run_or_walk": "activity",
    "sick": "Class",
    "smoke_ban": "smoker",
    "spambase": "class",
    "stackoverflow_2017": "Remote",
    "twonorm": "class",
}
#: What names the record, gives the class away, or has no value at all.
_WITHOUT: Final[Mapping[str, list[str]]] = {
    "flchain": ["futime", "chapter"],
    "hypothyroid": ["TBG"],
    "nass_cds": ["caseid", "injSeverity"],
    "sick": ["TBG"],
    "splice": ["Instance_name"],
}
#: Where a table can be had from OpenML: its number, and what the class is called there.
_OPENML: Final[Mapping[str, tuple[int, str]]] = {
    "ailerons": (734, "binaryClass"),
    "analcatdata_supreme": (728, "binaryClass"),
    "bank32nh": (833, "binaryClass"),
    "cpu_act": (761, "binaryClass"),
    "cpu_small": (735, "binaryClass"),
    "delta_ailerons": (803, "binaryClass"),
    "delta_elevators": (819, "binaryClass"),
    "houses": (823, "binaryClass"),
    "kin8nm": (807, "binaryClass"),
    "mammography": (310, "class"),
    "mozilla4": (1046, "state"),
    "mushroom": (24, "class"),
    "optdigits": (980, "binaryClass"),
    "phoneme": (1489, "Class"),
    "pollen": (871, "binaryClass"),
    "puma8NH": (816, "binaryClass"),
    "segment": (958, "binaryClass"),
    "sick": (38, "Class"),
    "space_ga": (737, "binaryClass"),
    "spambase": (44, "class"),
    "wind": (847, "binaryClass"),
}
#: Four tables about people, or of people's cells, that between them need every technique.
QUICK: Final = ("breast_cancer", "nmes1988", "orange_juice", "credit_scoring_es")
QUICK_ROWS: Final = 1_000


def tables(preset: str) -> list[dict[str, Any]]:
    """The tables of a preset; that of scikit-learn always is there."""
    breast_cancer = {"scikit_learn": "breast_cancer", "target": "target"}
    names = [name for name in QUICK if name in _CLASSES] if preset == "quick" else [*_CLASSES]
    return [breast_cancer, *(_entry(name, preset) for name in names)]


def _entry(name: str, preset: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": f"openml/{name}.parquet", "target": _CLASSES[name]}
    if name in _WITHOUT:
        entry["without"] = _WITHOUT[name]
    if name in _OPENML:
        entry["openml"], entry["openml_target"] = _OPENML[name]
    if preset == "quick":
        entry["rows"] = QUICK_ROWS
    return entry
