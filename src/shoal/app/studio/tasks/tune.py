"""Search for a plan under limits of risk and utility: to be built."""

from __future__ import annotations

from typing import Any

from shoal.app.studio._work import Task


def run(task: Task) -> dict[str, Any]:
    """To be built."""
    return {}
