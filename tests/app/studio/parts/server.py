"""The studio as a program of its own, asked over a socket as any other program may ask it."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

PROGRAM = "from shoal.app.cli import main; main()"
PATIENCE = 60.0


@dataclass
class Answer:
    """What came back."""

    code: int
    headers: dict[str, str]
    text: str


@dataclass
class Server:
    """``shoal studio`` in a process; ``place`` is its argument."""

    place: Path
    words: tuple[str, ...] = ()
    program: str = PROGRAM
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start()

    def start(self, port: int = 0) -> None:
        words = ["studio", str(self.place), "--no-browser", "--port", str(port), *self.words]
        kept = {name: value for name, value in os.environ.items() if name != "SHOAL_DEBUG"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**kept, "COLUMNS": "300", **self.environment},
            start_new_session=True,
            text=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "/enter/" in line:
                break
        else:
            raise AssertionError(self.process.communicate()[1])
        self.entrance = line.strip()
        origin, _, self.token = self.entrance.partition("/enter/")
        self.port = int(origin.rpartition(":")[2])
        self.origin = origin
        self.cookie = ""

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal and wait; the exit code and the output after the address."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out + err

    def close(self) -> None:
        """Kill it outright."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    # -- as a browser

    def enter(self) -> Server:
        self.cookie = self.ask("GET", f"/enter/{self.token}").headers["set-cookie"].split(";")[0]
        return self

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """A request; headers as keywords, ``_`` for ``-``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            named.setdefault("cookie", self.cookie)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, named)
            came = connection.getresponse()
            headers = {name.lower(): value for name, value in came.getheaders()}
            return Answer(came.status, headers, came.read().decode())

    def get(self, path: str) -> str:
        answer = self.ask("GET", path)
        assert answer.code == 200, answer.text
        return answer.text

    def post(self, path: str, /, **fields: object) -> Answer:
        form = {"content_type": "application/x-www-form-urlencoded", "origin": self.origin}
        return self.ask("POST", path, urlencode(fields, doseq=True), **form)

    def wait_for(self, path: str, sign: str) -> str:
        """A page once it shows something."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = self.get(path)
            if sign in text:
                return text
            time.sleep(0.05)
        raise AssertionError(f"{path} never shows {sign!r}")

    # -- as somebody else

    def raw(self, request: str | bytes, rest: float = 5.0) -> bytes:
        """Send bytes; the answer until the other side closes or stops."""
        given = request.encode() if isinstance(request, str) else request
        with socket.create_connection(("127.0.0.1", self.port), timeout=rest) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(given)
            came = b""
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                while part := connection.recv(65536):
                    came += part
            return came

    def code(self, *lines: str, body: str = "") -> int:
        """The status for a request of some lines; the connection is to be closed after it."""
        text = "\r\n".join([*lines, "connection: close", "", body])
        came = self.raw(text)
        return int(came.split(b" ", 2)[1]) if came else 0
