"""The gate before every page: who may send requests, from where, and what a page may do.

The studio shows personal data on a machine that also visits the web. A page of another origin may
send requests to 127.0.0.1, and for cookies another port of this machine counts as the same site. So
the host and the origin must be exactly those of the studio, every change must name its origin, and
nothing is answered without the cookie, which is given once for a token.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS: Final = "127.0.0.1"
ENTRANCE: Final = "/enter/"
_READING: Final = ("GET", "HEAD")
_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; object-src 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": _POLICY,
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # with "no-referrer" a browser also hides the origin of the studio's own forms
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_LOCKED: Final = (
    "Only the browser that the studio was started with may open it. Open the address that 'shoal "
    "studio' printed; it works once. If it was used, stop the studio and start it again."
)
_WELCOME: Final = """<!doctype html>
<html lang="en"><title>Shoal studio</title><link rel="icon" href="/static/icon.svg">
<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Open the studio</a></p></html>
"""


class Gate:
    """Lets in requests with the cookie, and sets the headers of all responses.

    Parameters
    ----------
    app : ASGI application
        The application behind the gate.
    port : int
        The port of the studio, which is part of its host, its origin and the name of its cookie.
    token : str
        Exchanged for the cookie, once.
    entered : callable, optional
        Called when the token was exchanged.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        port: int,
        token: str,
        entered: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._entered = entered
        self._host = f"{ADDRESS}:{port}"
        self._origin = f"http://{ADDRESS}:{port}"
        self._cookie = f"shoal-{port}"
        self._token: str | None = token
        self._session = secrets.token_urlsafe(32)
        self._entering = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page of the studio needs a websocket
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """The gate's own answer; None if the request may pass."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self._host]:
            return PlainTextResponse("This host is not the studio's.", 421)
        path: str = scope["path"]
        if not path.startswith("/"):  # a request for another host, as sent to a proxy
            return PlainTextResponse("The studio is not a proxy.", 421)
        if path.startswith(ENTRANCE) and scope["method"] == "GET":  # from a file or a terminal
            return self._let_in(path.removeprefix(ENTRANCE), headers)
        if not self._is_own_origin(scope["method"], headers):
            return PlainTextResponse("This origin is not the studio's.", 403)
        return None if self._is_inside(headers) else PlainTextResponse(_LOCKED, 403)

    def _is_own_origin(self, method: str, headers: Headers) -> bool:
        origins, sites = headers.getlist("origin"), headers.getlist("sec-fetch-site")
        if any(origin != self._origin for origin in origins):
            return False
        if any(site not in ("same-origin", "none") for site in sites):
            return False
        return method in _READING or origins == [self._origin]

    def _is_inside(self, headers: Headers) -> bool:
        for given in headers.getlist("cookie"):
            shown = cookie_parser(given).get(self._cookie, "")
            if hmac.compare_digest(shown.encode(), self._session.encode()):
                return True
        return False

    def _let_in(self, token: str, headers: Headers) -> Response:
        """Exchange the token for the cookie, on a page that forwards by itself.

        A redirect would count as coming from where the token was opened, and a browser would not
        send a strict cookie then.
        """
        with self._entering:
            known = self._token
            fits = known is not None and hmac.compare_digest(token.encode(), known.encode())
            if not fits and not self._is_inside(headers):
                return PlainTextResponse(_LOCKED, 403)
            self._token = None if fits else known
        answer = HTMLResponse(_WELCOME)
        if fits:
            if self._entered is not None:
                self._entered()
            answer.set_cookie(
                self._cookie, self._session, httponly=True, samesite="strict", path="/"
            )
        return answer
