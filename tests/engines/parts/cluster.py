"""A Spark cluster on this machine: a master and two workers, from pyspark's own classes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import shoal

#: How Java runs best for a minute.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """A master and two workers of one core and one gigabyte each, on loopback."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--port", str(port))
        self._wait(port)
        for number in range(2):
            place = str(folder / f"worker-{number}")
            self._start(
                "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", place, self.url
            )

    def _start(self, name: str, *options: str) -> None:
        here = str(Path(shoal.__file__).parents[1])
        environment = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_DIRS": str(self._folder / "spill"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        with (self._folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [*command, "--host", "127.0.0.1", "--webui-port", "0", *options],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _wait(self, port: int) -> None:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            assert self._processes[0].poll() is None, "the master of Spark ended"
            time.sleep(0.1)
        raise AssertionError("the master of Spark does not answer")

    def close(self) -> None:
        """End the processes that were started here, and those that they started."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        return int(there.getsockname()[1])
