"""``orchestrator serve`` as a user has it: a process with an address, ended by Ctrl-C or a kill."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.running import run, start, tree
from tests.control.serving.running import PATIENCE, Running, begin, go_on


def _running(address: str) -> tuple[Running, str]:
    parts = urlsplit(address)
    assert (parts.scheme, parts.hostname) == ("http", "127.0.0.1")
    assert parts.port is not None
    return Running(parts.port), parts.path.strip("/")


def test_a_server_shows_a_campaign_that_goes_on_and_ends_with_ctrl_c() -> None:
    folder = begin(Path("c"), 95)
    before = tree(Path())
    process = start("serve", "c", "--port", "0")
    try:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        running, token = _running(address)
        assert len(token) >= 40
        assert running.ask("/", token=token).status == 200
        assert running.ask("/", token=token[:-1]).status == 403
        with running.stream(token) as stream:
            while (event := next(stream))[1]["state"] == "unread":
                pass
            go_on(folder, 95, 96)
            while next(stream)[1]["version"] == event[1]["version"]:
                pass
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0, "also while somebody looks"
        said = process.stderr.read()
        assert "ssh -L" in said and token not in said
        assert process.stdout.read() == "" and "Traceback" not in said
        assert tree(Path()) == before, "nothing was written"
    finally:
        process.kill()


def test_after_a_kill_the_port_is_free_and_the_address_is_another_one() -> None:
    begin(Path("c"), 95)
    first = start("serve", "--port", "0", "--json")
    second = None
    try:
        assert first.stdout is not None
        document = json.loads("".join(first.stdout.readline() for _ in range(4)))
        running, token = _running(document["address"])
        assert running.port == document["port"]
        with running.stream(token) as stream:
            next(stream)
            first.kill()
            first.wait(PATIENCE)
        second = start("serve", "c", "--port", str(running.port))
        assert second.stdout is not None
        again, other = _running(second.stdout.readline().strip())
        assert again.port == running.port and other != token
        assert again.ask("/", token=token).status == 403
        assert again.ask("/", token=other).status == 200
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()


def test_what_cannot_be_served_is_wrong_usage() -> None:
    Path("empty").mkdir()
    for arguments in ((), ("empty",), ("nowhere",)):
        result = run("serve", *arguments, "--port", "0")
        assert (result.code, result.out) == (2, "")
        assert "no campaign was begun in" in result.err
    begin(Path("c"), 20)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        result = run("serve", "c", "--port", taken)
        assert result.code == 2 and f"port {taken}: Address already in use; give another" in result.err
    for port in ("65536", "-1", "x"):
        assert run("serve", "c", "--port", port).code == 2


def test_without_a_port_another_one_is_taken_where_the_usual_one_is_not_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from orchestrator.control.serving import server

    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(server, "PORT", other.getsockname()[1])
        with server.listener(None) as found:
            assert found.getsockname()[1] not in (0, server.PORT)
