"""The file formats that can be written here; some need the libraries of an extra."""

from __future__ import annotations

import importlib.util

from shoal.table import FORMATS, LABELLED

_NEEDS = {"xlsx": ("fastexcel", "xlsxwriter"), **dict.fromkeys(LABELLED, ("pyreadstat",))}


def is_installed(format: str) -> bool:
    """Whether everything is here that a format needs."""
    return all(importlib.util.find_spec(module) for module in _NEEDS.get(format, ()))


INSTALLED = [name for name in FORMATS if is_installed(name)]
