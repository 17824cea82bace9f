"""Runs scripts in copies of a process that has already loaded what takes long to load.

Loading scipy, scikit-learn and polars takes a processor two seconds; a copy of a process that has
done so takes none. Only libraries of others are loaded ahead: each script imports shoal itself,
in an interpreter that has not seen it. Where processes cannot be copied safely (only on Linux are
they, with threads of libraries around), each script has an interpreter of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

LIBRARIES = (
    "jinja2",
    "narwhals",
    "numba",
    "polars",
    "pyarrow",
    "rich",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "tomlkit",
    "typer",
)

# One job a line comes in, its exit code goes out; the copy leaves the loop and is the script.
SERVER = """
import gc, importlib, json, os, runpy, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()
for line in sys.stdin:
    job = json.loads(line)
    copy = os.fork()
    if copy:
        print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
        continue
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    for stream, path in enumerate((os.devnull, *job["streams"])):
        os.dup2(os.open(path, os.O_RDWR), stream)
    sys.argv = job["words"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    break
else:
    sys.exit()
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class WarmProcess:
    """One process that waits for scripts; warnings are errors in it and in them."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(
        self, script: Path, *words: object, folder: Path, streams: Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script with words, inside a folder; what it prints is kept below ``streams``.

        A variable that a library reads while it is loaded comes too late here.
        """
        told = [str(script), *(str(word) for word in words)]
        variables = {**os.environ, **environment}
        if sys.platform != "linux":
            return subprocess.run(
                [sys.executable, "-W", "error", *told],
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        out, err = streams / "stdout", streams / "stderr"
        for stream in (out, err):
            stream.write_text("")
        job = {
            "folder": str(folder),
            "environment": variables,
            "streams": [str(out), str(err)],
            "words": told,
        }
        code = self._ask(json.dumps(job))
        return subprocess.CompletedProcess(told, code, out.read_text(), err.read_text())

    def _ask(self, job: str) -> int:
        if self._server is None:
            found = [name for name in LIBRARIES if importlib.util.find_spec(name.split(".")[0])]
            self._server = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", SERVER, *found],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(job, file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        assert answer, "the process that loads libraries ahead has ended: its error is shown above"
        return int(answer)

    def close(self) -> None:
        """Let the process end."""
        if self._server is not None:
            self._server.communicate()
            self._server = None
