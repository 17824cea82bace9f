"""A few kills at random moments with every run of the tests; the campaign is by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX are needed")
def test_a_few_kills():
    """The same moments each time; what is at work then depends on the machine, what is left not."""
    script = Path(__file__).with_name("kills.py")
    words = ["--times", "1", "--commands", "protect", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, str(script), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 failures"
