"""Mask by several plans and measure each beside the original: to be built."""

from __future__ import annotations

from typing import Any

from shoal.app.studio._work import Task


def run(task: Task) -> dict[str, Any]:
    """To be built."""
    return {}
