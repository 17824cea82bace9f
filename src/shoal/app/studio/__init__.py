"""The studio: the whole job in a browser, on the steward's own machine."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from shoal.errors import InputError, MissingExtra

if TYPE_CHECKING:
    import uvicorn

__all__ = ["Address", "serve"]

_DOOR: Final = "open.html"
_MOST_CONNECTIONS: Final = 200


@dataclass(frozen=True)
class Address:
    """The address of the studio, and the token that opens it once."""

    port: int
    token: str

    @property
    def entrance(self) -> str:
        return f"http://127.0.0.1:{self.port}/enter/{self.token}"


def serve(
    given: Path, *, port: int = 0, browser: bool = True, announce: Callable[[Address, Path], None]
) -> None:
    """Serve a project until the process is asked to stop.

    Parameters
    ----------
    given : path
        The folder of a project, or a data file, next to which a project is created.
    port : int
        The port; with 0 the system chooses one.
    browser : bool
        Whether to open the page in a browser.
    announce : callable
        Called with the address and the folder when the studio is ready.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("The studio", "studio") from None
    from shoal.app.studio._app import make_app, make_studio
    from shoal.app.studio._project import Project, project_of
    from shoal.app.studio._warming import Warming
    from shoal.app.studio.screens.data import choose

    folder, source = project_of(given)
    project = Project(folder)
    with project.held() as say, _listening(port) as listener:
        studio = make_studio(project, () if source is None else (source.parent,))
        warming = Warming()
        studio.warm = warming.begin
        if source is not None:
            choose(studio, source)
        address = Address(listener.getsockname()[1], secrets.token_urlsafe(32))
        say(address.port)
        door = folder / _DOOR
        app = make_app(
            studio,
            port=address.port,
            token=address.token,
            entered=lambda: door.unlink(missing_ok=True),
        )
        config = uvicorn.Config(
            app,
            http="h11",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
            ws="none",
        )
        for name in ("uvicorn", "uvicorn.error", "asyncio"):
            logging.getLogger(name).disabled = True  # a traceback may hold a value of the data
        server = uvicorn.Server(config)
        announce(address, folder)
        with _opened(address, door) if browser else nullcontext():
            try:
                with _ended_by_a_hangup(server):
                    server.run(sockets=[listener])
            finally:
                warming.close()
                studio.jobs.close()
                studio.dataset.close()


@contextmanager
def _ended_by_a_hangup(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGHUP end the server in good order, as uvicorn does itself for SIGINT and SIGTERM.

    An exception in the middle of its work could leave it waiting for a page that is still open.
    """
    number = getattr(signal, "SIGHUP", None)  # Windows has none
    if number is None or signal.getsignal(number) in (signal.SIG_IGN, signal.SIG_DFL):
        yield
        return
    received = []

    def end(number: int, frame: object) -> None:
        received.append(number)
        server.should_exit = True

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)
    if received:
        signal.raise_signal(number)


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":  # elsewhere it would share the port with another listener
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except (OSError, OverflowError):
            raise InputError(
                f"Port {port} is in use or not allowed. Leave --port out, or choose another one."
            ) from None
        yield listener


@contextmanager
def _opened(address: Address, door: Path) -> Iterator[None]:
    """Open the page through a file that only its owner may read: other users see command lines.

    Some terminal browsers block the process that opens them.
    """
    from shoal.workflow.release._folder import write_private

    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={address.entrance}">'
    door.unlink(missing_ok=True)
    write_private(door, text.encode())
    try:
        Thread(target=webbrowser.open, args=[door.as_uri()], daemon=True).start()
        yield
    finally:
        door.unlink(missing_ok=True)
