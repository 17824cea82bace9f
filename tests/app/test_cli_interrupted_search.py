"""Ctrl-C while `protect` searches for a generalization: it ends, and nothing is written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX are needed")

# Runs shoal with searches that work in the smallest portions, and tells once one of them has got
# as far as it was asked to. A pause after each portion keeps it from ending before the signal.
TELLING = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background
from shoal.kernels.lattice import lattice as _lattice
from shoal.kernels.boxes import mondrian_boxes as _mondrian_boxes
from shoal.kernels.peel import peel as _peel
_lattice._PORTION = _peel._PORTION = 0.0
_mondrian_boxes._CELLS = 1
share, told = float(sys.argv.pop(1)), False

def telling(advance):
    def portion(self):
        global told
        done = advance(self)
        if not told and done > share:
            told = True
            print("searching", flush=True)
        time.sleep(0.05 if told else 0.0)
        return done
    return portion

for kind in (_lattice.FullDomainSearch, _mondrian_boxes.MondrianBoxes, _peel.PeelLattice):
    kind.advance = telling(kind.advance)
from shoal.app.cli import main
main()
"""

SEARCHES = {
    "exact": (5, 0, "suppression_limit = 0.5"),
    "anytime": (12, 0, "suppression_limit = 0.5\nseconds = 60"),
    "mondrian": (5, 0, 'algorithm = "mondrian"'),
    "refining": (5, 0.499, 'algorithm = "local"\nseconds = 60'),
}


@pytest.fixture
def table(tmp_path):
    """Twelve columns of 64 values, the first ones frequent."""
    rng = np.random.default_rng(0)
    columns = {f"c{i}": np.minimum(rng.geometric(0.2, 900), 64) - 1 for i in range(12)}
    path = tmp_path / "data.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def plan_of(columns, options):
    names = [f"c{i}" for i in range(12)]
    lines = "".join(f"{name} = {{ intervals = [2, 4, 8, 16] }}\n" for name in names[:columns])
    return (
        f"[roles]\nquasi_identifiers = {names[:columns]}\ninsensitive = {names[columns:]}\n"
        f'[[steps]]\nmethod = "generalize"\nk = 3\n{options}\n[steps.hierarchies]\n{lines}'
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_stopped(table, tmp_path, name):
    columns, share, options = SEARCHES[name]
    (tmp_path / "plan.toml").write_text(plan_of(columns, options))
    before = sorted(tmp_path.iterdir())
    words = ["protect", str(table), "--plan", "plan.toml", "--out", "release"]
    child = subprocess.Popen(
        [sys.executable, "-c", TELLING, str(share), *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "searching\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "shoal: stopped; nothing is left half written."
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before
