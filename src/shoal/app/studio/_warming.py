"""Compile what a large table needs behind the first screen: once, and with the lowest priority."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import Final

_PROGRAM: Final = "from shoal.app.cli import main; main()"
_LOWEST: Final = 19


class Warming:
    """A process that compiles the kernels, as ``shoal warm`` does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start, unless already started; if that fails, kernels are compiled on first use."""
        with self._lock, contextlib.suppress(OSError):
            if self.process is not None:
                return
            nothing = subprocess.DEVNULL
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, "warm"],
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
            )
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, _LOWEST)

    def close(self) -> None:
        """Stop; kernels that are compiled are kept."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
