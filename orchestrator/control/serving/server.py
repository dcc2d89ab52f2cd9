"""Listen on this machine only, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from orchestrator.control.serving.app import Site, application
from orchestrator.control.serving.campaigns import Board
from orchestrator.errors import CampaignError

HOST = "127.0.0.1"
"""Not ``localhost``: browsers may take that for ::1, where another user of the machine may listen."""
PORT = 8765
_CONNECTIONS = 200


def serve(directories: Sequence[Path], port: int | None, ready: Callable[[str, int], None]) -> None:
    """Serve campaigns until the process is interrupted.

    Parameters
    ----------
    directories
        Campaign directories, or folders that contain some.
    port
        Where to listen; 0 for any free port, None for `PORT` or, where that is taken, any free one.
    ready
        Is called with the address, token included, and the port, once connections are accepted.

    Raises
    ------
    CampaignError
        If there is no campaign, or the port cannot be used.
    """
    board = Board(directories)
    board.find()
    if not board.campaigns:
        named = ", ".join(map(str, directories))
        raise CampaignError(f"no campaign was begun in {named}, nor up to two folders below; name others")
    token = secrets.token_urlsafe(32)
    open_port = listener(port)
    chosen = open_port.getsockname()[1]
    ready(f"http://{HOST}:{chosen}/{token}/", chosen)
    with open_port, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(board, token, open_port))


async def _run(board: Board, token: str, open_port: socket.socket) -> None:
    await Server(Site(board), token).serve(sockets=[open_port])


class Server(uvicorn.Server):
    """A server whose streams of events end when it stops."""

    def __init__(self, site: Site, token: str):
        super().__init__(_configuration(site, token))
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, as the base class does it."""
        self._site.close()
        await super().shutdown(sockets)


def _configuration(site: Site, token: str) -> uvicorn.Config:
    """Return the settings of the server. Addresses hold the token, so no request is ever logged."""
    return uvicorn.Config(
        application(site, token),
        access_log=False,
        log_level="error",
        server_header=False,
        ws="none",
        http="h11",
        loop="asyncio",
        lifespan="on",
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=1,  # seconds
    )


def listener(port: int | None) -> socket.socket:
    """Return a socket that accepts connections from this machine; ``port`` as in `serve`."""
    for wanted in (PORT, 0) if port is None else (port,):
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((HOST, wanted))
            opened.listen(128)
        except OSError as error:
            opened.close()
            failed = error
        else:
            return opened
    raise CampaignError(
        f"cannot listen on port {wanted}: {failed.strerror}; give another --port, or --port 0 for a free one"
    ) from failed
