"""A server in a thread, with reports that cost nothing; requests as bytes, so that no client tidies them."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.control.serving import server as serving
from orchestrator.control.serving.app import Site
from orchestrator.control.serving.builds import Reports
from orchestrator.control.serving.campaigns import Board
from orchestrator.journal import events
from orchestrator.journal.codec import decode, encode
from orchestrator.journal.file import FILE_NAME

GOLDEN = Path(__file__).parents[2] / "golden" / "journals" / "schema-1.jsonl"
LINES = GOLDEN.read_bytes().splitlines(keepends=True)
TOKEN = "the-token-of-the-tests"
T = TypeVar("T")
PATIENCE = 60.0  # seconds that something may take on a busy machine

# Counts its calls in a file beside the journal, and prints a page that tries what a page may not do.
FAKE = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
with (folder / "builds").open("a") as file:
    file.write("x")
if (folder / "broken").exists():
    sys.exit("cannot be read: <it>")
print("<h1>built", (folder / "journal.jsonl").stat().st_size, "</h1>")
"""


def begin(folder: Path, lines: int, name: str = "golden") -> Path:
    """Write a campaign directory with the first lines of a journal."""
    folder.mkdir(parents=True)
    first = decode(LINES[0])
    assert isinstance(first.event, events.CampaignStarted)
    event = replace(first.event, campaign={**first.event.campaign, "name": name})
    content = [encode(replace(first, event=event)), *LINES[1:lines]]
    (folder / FILE_NAME).write_bytes(b"".join(content))
    return folder


def go_on(folder: Path, begin: int, end: int) -> None:
    """Append lines ``begin + 1`` to ``end`` of the journal."""
    with (folder / FILE_NAME).open("ab") as file:
        file.write(b"".join(LINES[begin:end]))


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A server that listens on a port of this machine."""

    port: int
    site: Site | None = None

    def ask(
        self,
        path: str,
        method: str = "GET",
        host: str | None = None,
        token: str = TOKEN,
        headers: Sequence[str] = (),
    ) -> Answer:
        """Send a request for ``/TOKEN`` and ``path`` exactly as they are given."""
        given = f"Host: {f'127.0.0.1:{self.port}' if host is None else host}"
        lines = [f"{method} /{token}{path} HTTP/1.1", given, "Connection: close", *headers]
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            response = http.client.HTTPResponse(connection, method=method)
            response.begin()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read().decode())

    def wait_for(self, path: str, holds: Callable[[Answer], bool]) -> Answer:
        """Ask until an answer is as wanted."""
        return until(lambda: self.ask(path), holds)

    @contextmanager
    def stream(self, token: str = TOKEN) -> Iterator[Iterator[tuple[str, Any]]]:
        """Open the stream of events; yield an iterator over their names and data."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"/{token}/events")
            response = connection.getresponse()
            assert response.status == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            yield _events(response)
        finally:
            connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name = ""
    while line := response.readline().decode():
        if line.startswith("event: "):
            name = line.removeprefix("event: ").strip()
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def until(ask: Callable[[], T], holds: Callable[[T], bool]) -> T:
    """Ask until the answer is as wanted; fail after `PATIENCE`."""
    end = time.monotonic() + PATIENCE
    while not holds(answer := ask()):
        assert time.monotonic() < end, answer
        time.sleep(0.02)
    return answer


@contextmanager
def served(*directories: Path) -> Iterator[Running]:
    """Serve campaigns in a thread, with fake reports."""
    board = Board(directories)
    board.find()
    listener = serving.listener(0)
    ready: list[Site] = []

    async def run() -> None:
        site = Site(board, look=0.02)
        site.reports = Reports(site.changed, command=(sys.executable, "-c", FAKE))
        ready.append(site)
        servers.append(serving.Server(site, TOKEN))
        await servers[0].serve(sockets=[listener])

    servers: list[serving.Server] = []
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        until(lambda: bool(servers) and servers[0].started, bool)
        yield Running(listener.getsockname()[1], ready[0])
    finally:
        servers[0].should_exit = True
        thread.join(PATIENCE)
        listener.close()
        assert not thread.is_alive()
