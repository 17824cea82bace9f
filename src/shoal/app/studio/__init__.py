"""The studio: the whole job in the browser, on the steward's own machine."""

from __future__ import annotations

import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import InputError, MissingExtra

__all__ = ["Address", "serve"]


@dataclass(frozen=True)
class Address:
    """Where the studio is, and the token that opens it once."""

    port: int
    token: str

    @property
    def entrance(self) -> str:
        return f"http://127.0.0.1:{self.port}/enter/{self.token}"


def serve(
    given: Path, *, port: int = 0, browser: bool = True, told: Callable[[Address, Path], None]
) -> None:
    """Serve a project until the process is asked to stop.

    Parameters
    ----------
    given : path
        The folder of a project, or a file of data, beside which a project is made.
    port : int
        0 lets the system choose.
    browser : bool
        Whether the page is opened.
    told : callable
        Called with the address and the folder when the studio answers.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("The studio", "studio") from None
    from shoal.app.studio._app import make_app, make_studio
    from shoal.app.studio._project import Project, project_of
    from shoal.app.studio.screens.data import choose

    folder, source = project_of(given)
    project = Project(folder)
    roots = (folder,) if source is None else (folder, source.parent)
    studio = make_studio(project, roots)
    if source is not None:
        choose(studio, source)
    with _listening(port) as listener:
        address = Address(listener.getsockname()[1], secrets.token_urlsafe(32))
        app = make_app(studio, port=address.port, token=address.token)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            ws="none",
        )
        logging.getLogger("uvicorn").disabled = True  # a traceback may hold a value of the data
        logging.getLogger("uvicorn.error").disabled = True
        server = uvicorn.Server(config)
        told(address, folder)
        with _opened(address, folder) if browser else nullcontext():
            try:
                server.run(sockets=[listener])
            finally:
                studio.jobs.close()
                studio.dataset.close()


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            raise InputError(
                f"Port {port} is taken or not allowed; leave --port out, or name another one."
            ) from None
        yield listener


@contextmanager
def _opened(address: Address, folder: Path) -> Iterator[None]:
    """Open the page by a file that only its owner may read: other users see what is called."""
    page = folder / "open.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={address.entrance}">'
    page.unlink(missing_ok=True)
    page.touch(mode=0o600)
    page.write_text(text, encoding="utf-8")
    try:
        webbrowser.open(page.as_uri())
        yield
    finally:
        page.unlink(missing_ok=True)
