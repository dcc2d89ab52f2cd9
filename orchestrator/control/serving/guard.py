"""What every request must pass before anything is looked up, and what every answer says to the browser.

A page that listens on this machine can be reached by all its users, and by every web page that they open.
So a request needs a secret that is part of the address, must name this machine as its host (a name that an
attacker lets point to 127.0.0.1 is refused: DNS rebinding), and can only read.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts allow-downloads"
)
"""The content security policy of reports: scripts of the page itself, in an origin of their own.

They can load nothing, send nothing, and reach no other page of this server.
"""
FILES = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox"
)
"""The content security policy of what runs have left: no scripts. A report that links there is in a frame."""
_HEADERS = {
    "Content-Security-Policy": _PAGE,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NO_TOKEN = "403: open the whole address that 'orchestrator serve' printed; it ends in a token.\n"


class Guard:
    """Lets requests through that name this host, carry the token and only read; adds headers to all answers.

    Parameters
    ----------
    app
        What answers; it sees paths without the token.
    token
        The secret: the first part of every path.
    """

    def __init__(self, app: ASGIApp, token: str):
        self._app = app
        self._token = token
        self._with_host = TrustedHostMiddleware(self._authorised, list(HOSTS), www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":

            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    for name, value in _HEADERS.items():
                        headers.setdefault(name, value)
                await send(message)

            await self._with_host(scope, receive, send_with_headers)

    async def _authorised(self, scope: Scope, receive: Receive, send: Send) -> None:
        given, slash, _ = scope["path"].removeprefix("/").partition("/")
        answer: Response | None = None
        if not hmac.compare_digest(given.encode(errors="replace"), self._token.encode()):
            answer = PlainTextResponse(_NO_TOKEN, 403)
        elif scope["method"] not in ("GET", "HEAD"):
            answer = PlainTextResponse("405: this server only shows\n", 405, {"Allow": "GET, HEAD"})
        elif not slash:
            answer = RedirectResponse(f"/{self._token}/")
        if answer is not None:
            await answer(scope, receive, send)
        else:
            await self._app({**scope, "root_path": f"/{given}"}, receive, send)
